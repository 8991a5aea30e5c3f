//! Pins: an object is either bound to for good or closed, never both; and what a callback looks at outside sections is unmapped
//! after its visit.

use super::memory::{Loom, One, Section, Thing};
use crate::pins::Hold;
use crate::published::Published;
use crate::reclaim::Retired;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicUsize};
use loom::thread;

/// An object, in snapshot 0 and not in snapshot 1.
struct Shared {
    hold: Hold<Loom>,
    current: Published<Loom>,
    section: Section,
    object: Thing,
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        hold: Hold(AtomicU32::new(0)),
        current: Published { current: AtomicUsize::new(0) },
        section: Section::new(),
        object: Thing::new(),
    })
}

/// Closes the object if it may be closed; whether it may.
fn close(shared: &Shared, retired: &mut Retired<()>) -> bool {
    if !shared.hold.close() {
        return false;
    }
    shared.current.replace(1);
    retired.retire(()).unwrap();
    true
}

fn unmap(shared: &Shared, retired: &mut Retired<()>) {
    retired.reclaim(&One(&shared.section), |()| {
        let free = !shared.hold.is_visited();
        if free {
            shared.object.free();
        }
        free
    });
}

#[test]
fn what_is_bound_to_for_good_is_not_closed() {
    loom::model(|| {
        let shared = shared();
        let theirs = Arc::clone(&shared);
        let binder = thread::spawn(move || {
            theirs.section.enter();
            let kept = theirs.current.read() == 0 && theirs.hold.keep();
            theirs.section.leave();
            if kept {
                theirs.object.look();
            }
            kept
        });
        let mut retired = Retired::new();
        let closed = close(&shared, &mut retired);
        unmap(&shared, &mut retired);
        let kept = binder.join().unwrap();
        assert!(kept != closed, "kept {kept}, closed {closed}");
    });
}

#[test]
fn what_is_visited_is_unmapped_after_the_visit() {
    loom::model(|| {
        let shared = shared();
        let theirs = Arc::clone(&shared);
        let visitor = thread::spawn(move || {
            theirs.section.enter();
            let visits = theirs.current.read() == 0 && theirs.hold.visit();
            // The callback may end the section; the visit lasts.
            theirs.section.leave();
            if visits {
                theirs.object.look();
                theirs.hold.end_visit();
            }
        });
        let mut retired = Retired::new();
        assert!(close(&shared, &mut retired));
        unmap(&shared, &mut retired);
        visitor.join().unwrap();
        unmap(&shared, &mut retired);
        assert!(retired.is_empty(), "what nobody visits is kept");
    });
}

#[test]
fn an_object_that_is_opened_again_can_be_kept() {
    loom::model(|| {
        let shared = shared();
        let theirs = Arc::clone(&shared);
        let binder = thread::spawn(move || theirs.hold.keep());
        let closed = shared.hold.close();
        if closed {
            shared.hold.reopen();
        }
        let kept = binder.join().unwrap();
        assert!(kept || shared.hold.keep());
        assert!(!shared.hold.close());
    });
}
