//! Snapshots: what a section reads is not freed before it ends, or rests; what nobody reads is freed.

use super::memory::{Loom, One, Section, Thing};
use crate::published::Published;
use crate::reclaim::Retired;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

struct Shared {
    current: Published<Loom>,
    things: [Thing; 3],
    section: Section,
}

fn shared() -> Arc<Shared> {
    let current = Published { current: AtomicUsize::new(0) };
    Arc::new(Shared { current, things: [Thing::new(), Thing::new(), Thing::new()], section: Section::new() })
}

/// Publishes thing after thing beside a reader, frees what it can after each, and all of them in the end.
fn write(shared: &Arc<Shared>, reader: impl FnOnce(&Shared) + Send + 'static) {
    let theirs = Arc::clone(shared);
    let reader = thread::spawn(move || reader(&theirs));
    let mut retired = Retired::new();
    for fresh in 1..shared.things.len() {
        retired.retire(shared.current.replace(fresh)).unwrap();
        retired.reclaim(&One(&shared.section), |&old| {
            shared.things[old].free();
            true
        });
    }
    reader.join().unwrap();
    retired.reclaim(&One(&shared.section), |&old| {
        shared.things[old].free();
        true
    });
    assert!(retired.is_empty(), "what nobody reads is kept");
}

#[test]
fn what_a_section_reads_is_not_freed() {
    loom::model(|| {
        write(&shared(), |shared| {
            shared.section.enter();
            let thing = &shared.things[shared.current.read()];
            thing.look();
            thing.look();
            shared.section.leave();
        });
    });
}

#[test]
fn what_is_read_after_a_rest_is_not_freed() {
    loom::model(|| {
        write(&shared(), |shared| {
            shared.section.enter();
            shared.things[shared.current.read()].look();
            shared.section.rest();
            shared.things[shared.current.read()].look();
            shared.section.leave();
        });
    });
}
