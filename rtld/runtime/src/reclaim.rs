//! What was replaced and may still be looked at: when it may be freed. Owns the queue and the rule; what is freed, and how one
//! sees that a thread reads nothing, is the caller's.
//!
//! What is retired has been replaced, so who begins to read afterwards does not find it. It is unread when each thread that
//! existed has been seen outside sections once since, or has rested in one since, not all at one moment: there may never be a
//! moment at which none of many threads iterates. Nothing waits: a writer looks, frees what it can, and leaves the rest to the
//! next one.

use alloc::vec::Vec;
use rtld_link::fallible::{OutOfMemory, try_push};

/// The threads that may be reading.
pub(crate) trait Readers {
    /// Makes what each thread has done visible to this one, and what this one has done to each; false if that cannot be had.
    fn barrier(&self) -> bool;
    /// Adds every thread to a list.
    fn collect(&self, threads: &mut Vec<Reader>) -> Result<(), OutOfMemory>;
    /// Whether a thread reads nothing that was replaced before it was collected: it is outside, has rested, or is gone.
    fn is_outside(&self, reader: Reader) -> bool;
}

/// A thread that may be reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reader {
    /// Its control block.
    pub(crate) control: usize,
    /// How often it had rested.
    pub(crate) rests: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Not looked at yet.
    Fresh,
    /// Waits for the threads of the list.
    Waiting,
    /// Nobody reads it; something else may still hold it.
    Unread,
}

#[derive(Debug)]
struct Item<T> {
    what: T,
    stage: Stage,
}

/// Everything that was retired and not freed yet.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    items: Vec<Item<T>>,
    /// Who was not seen outside sections since the waiting ones were retired.
    threads: Vec<Reader>,
}

impl<T> Retired<T> {
    pub(crate) const fn new() -> Retired<T> {
        Retired { items: Vec::new(), threads: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How much it is.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Makes room for so many more, so that as many calls of `retire` cannot fail.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.items.try_reserve(count).map_err(|_| OutOfMemory)
    }

    /// Adds something that who reads from now on does not find any more. Without memory for the note it is never freed.
    pub(crate) fn retire(&mut self, what: T) -> Result<(), OutOfMemory> {
        try_push(&mut self.items, Item { what, stage: Stage::Fresh })
    }

    /// Frees what nobody reads. `free` tells whether it freed the thing; if not it is asked again next time.
    pub(crate) fn reclaim(&mut self, readers: &impl Readers, mut free: impl FnMut(&T) -> bool) {
        // Twice: what came in while others were waited for may be unread by now as well.
        while self.items.iter().any(|item| item.stage != Stage::Unread) && self.all_outside(readers) {
            for item in self.items.iter_mut().filter(|item| item.stage == Stage::Waiting) {
                item.stage = Stage::Unread;
            }
        }
        self.items.retain(|item| item.stage != Stage::Unread || !free(&item.what));
    }

    /// Whether all threads of the list have been outside; the list is made first if nothing waits yet.
    fn all_outside(&mut self, readers: &impl Readers) -> bool {
        // Before the list is made: who rests after what the list says sees what was published.
        if !readers.barrier() {
            return false;
        }
        if !self.items.iter().any(|item| item.stage == Stage::Waiting) {
            self.threads.clear();
            if readers.collect(&mut self.threads).is_err() {
                return false;
            }
            self.items
                .iter_mut()
                .filter(|item| item.stage == Stage::Fresh)
                .for_each(|item| item.stage = Stage::Waiting);
        }
        self.threads.retain(|&reader| !readers.is_outside(reader));
        self.threads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Which threads there are and which of them are inside.
    struct Fake(RefCell<Vec<(usize, bool)>>);

    impl Fake {
        fn set(&self, thread: usize, inside: bool) {
            self.0.borrow_mut().retain(|(known, _)| *known != thread);
            try_push(&mut self.0.borrow_mut(), (thread, inside)).unwrap();
        }
    }

    impl Readers for Fake {
        fn barrier(&self) -> bool {
            true
        }
        fn collect(&self, threads: &mut Vec<Reader>) -> Result<(), OutOfMemory> {
            threads.extend(self.0.borrow().iter().map(|&(control, _)| Reader { control, rests: 0 }));
            Ok(())
        }
        fn is_outside(&self, reader: Reader) -> bool {
            !self.0.borrow().contains(&(reader.control, true))
        }
    }

    fn freed(retired: &mut Retired<u32>, fake: &Fake) -> Vec<u32> {
        let mut freed = Vec::new();
        retired.reclaim(fake, |&what| try_push(&mut freed, what).is_ok());
        freed
    }

    #[test]
    fn each_thread_must_have_been_outside_once_and_not_all_together() {
        let (mut retired, fake) = (Retired::new(), Fake(RefCell::new(Vec::new())));
        fake.set(1, true);
        fake.set(2, true);
        retired.retire(10).unwrap();
        assert!(freed(&mut retired, &fake).is_empty());
        fake.set(1, false);
        assert!(freed(&mut retired, &fake).is_empty());
        // The first is inside again, but cannot read what was replaced before.
        fake.set(1, true);
        fake.set(2, false);
        retired.retire(11).unwrap();
        assert_eq!(freed(&mut retired, &fake), [10]);
        fake.set(1, false);
        fake.set(2, true);
        // The second was seen outside when 11 was first looked at.
        assert_eq!(freed(&mut retired, &fake), [11]);
        assert!(retired.is_empty());
    }

    #[test]
    fn what_came_in_while_others_were_waited_for_is_freed_with_them_if_it_can() {
        let (mut retired, fake) = (Retired::new(), Fake(RefCell::new(Vec::new())));
        fake.set(1, true);
        retired.retire(10).unwrap();
        assert!(freed(&mut retired, &fake).is_empty());
        retired.retire(11).unwrap();
        fake.set(1, false);
        assert_eq!(freed(&mut retired, &fake), [10, 11]);
    }

    #[test]
    fn what_is_unread_and_held_is_asked_for_again_and_holds_up_nothing() {
        let (mut retired, fake) = (Retired::new(), Fake(RefCell::new(Vec::new())));
        retired.retire(10).unwrap();
        retired.reclaim(&fake, |_| false);
        retired.retire(11).unwrap();
        let mut seen = Vec::new();
        retired.reclaim(&fake, |&what| {
            try_push(&mut seen, what).unwrap();
            what == 11
        });
        assert_eq!(seen, [10, 11]);
        assert_eq!(freed(&mut retired, &fake), [10]);
    }
}
