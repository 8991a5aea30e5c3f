//! What readers see: one address, replaced by one store. Owns the orders of memory of that; when what was replaced may be freed
//! is `reclaim`'s.

use crate::atomics::{Machine, Memory, Word};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of what is published.
#[derive(Debug)]
pub struct Published<M: Memory = Machine> {
    pub(crate) current: M::Address,
}

impl Published {
    /// The first one.
    pub const fn new(address: usize) -> Published {
        Published { current: AtomicUsize::new(address) }
    }
}

impl<M: Memory> Published<M> {
    /// What is published, whole: what its publisher wrote before is seen.
    #[inline]
    pub fn read(&self) -> usize {
        self.current.load(Ordering::Acquire)
    }

    /// Publishes another one; gives the one before, which somebody may still be reading.
    pub fn replace(&self, address: usize) -> usize {
        self.current.swap(address, Ordering::AcqRel)
    }
}
