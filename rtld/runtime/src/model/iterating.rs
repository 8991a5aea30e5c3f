//! The iterate lock: one thread at a time, and no end is missed by a thread that goes to sleep.

use super::memory::{Loom, Thing};
use crate::iterate_lock::IterateLock;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicUsize};
use loom::thread;

struct Shared {
    lock: IterateLock<Loom>,
    cache: Thing,
}

fn shared() -> Arc<Shared> {
    let lock = IterateLock {
        owner: AtomicUsize::new(0),
        waiting: AtomicU32::new(0),
        ends: AtomicU32::new(0),
        shared: AtomicU32::new(0),
    };
    lock.share();
    Arc::new(Shared { lock, cache: Thing::new() })
}

/// As `enter`, without the section around it.
fn iterate(shared: &Shared, me: usize) {
    while shared.lock.take(me) != 0 {
        shared.lock.wait();
    }
    assert_eq!(shared.lock.take(me), me, "who owns it does not take it again");
    shared.cache.change();
    shared.lock.release();
}

#[test]
fn one_at_a_time_and_nobody_sleeps_for_ever() {
    loom::model(|| {
        let shared = shared();
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || iterate(&theirs, 2));
        iterate(&shared, 1);
        other.join().unwrap();
        assert_eq!(shared.lock.take(1), 0);
    });
}

#[test]
fn three_threads() {
    let mut model = loom::model::Builder::new();
    // All orders of three threads are too many: those with two changes of threads at arbitrary places.
    model.preemption_bound = Some(2);
    model.check(|| {
        let shared = shared();
        let others = [2, 3].map(|me| {
            let theirs = Arc::clone(&shared);
            thread::spawn(move || iterate(&theirs, me))
        });
        iterate(&shared, 1);
        for other in others {
            other.join().unwrap();
        }
    });
}
