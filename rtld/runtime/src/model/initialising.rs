//! Waiting for an object that another thread initialises: who waits sees what the initialiser did, and does not sleep for ever.

use super::memory::{Loom, Thing};
use crate::waiters::Waiters;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

const INITIALISING: u32 = 5;
const READY: u32 = 1;

struct Shared {
    waiters: Waiters<Loom>,
    progress: AtomicU32,
    object: Thing,
}

#[test]
fn who_waits_sees_it_initialised() {
    loom::model(|| {
        let waiters = Waiters { count: AtomicU32::new(0) };
        let shared = Arc::new(Shared { waiters, progress: AtomicU32::new(INITIALISING), object: Thing::new() });
        let theirs = Arc::clone(&shared);
        let waiter = thread::spawn(move || {
            let reached = theirs.waiters.wait(&theirs.progress, INITIALISING, |progress| progress == INITIALISING);
            theirs.object.look();
            reached
        });
        shared.object.change();
        shared.waiters.tell(&shared.progress, READY);
        assert_eq!(waiter.join().unwrap(), READY);
    });
}
