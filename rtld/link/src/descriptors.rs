//! The records that TLS descriptors of dynamic modules point to. Owns their memory: each lives as long as the object whose
//! descriptor it is, whose code may use it until it is unmapped.

use crate::fallible::{OutOfMemory, try_box};
use crate::object::ObjectIndex;
use alloc::boxed::Box;

/// What a TLS descriptor of a dynamic module points to. The first two words are what `__tls_get_addr` takes.
#[repr(C)]
#[derive(Debug)]
pub struct DynamicDescriptor {
    /// Module id.
    pub module: u64,
    /// Offset in its block.
    pub offset: u64,
    /// A thread whose vector is as new as this knows the module.
    pub generation: u64,
}

/// A record in a chain.
#[repr(C)]
#[derive(Debug)]
struct Record {
    /// What code sees; comes first.
    descriptor: DynamicDescriptor,
    /// Whose descriptor it is.
    object: ObjectIndex,
    next: *mut Record,
}

/// Records, of one object or of all that are loaded together. Dropping them frees them.
#[derive(Debug)]
pub struct Descriptors {
    first: *mut Record,
}

impl Default for Descriptors {
    fn default() -> Descriptors {
        Descriptors::new()
    }
}

impl Descriptors {
    /// None.
    pub const fn new() -> Descriptors {
        Descriptors { first: core::ptr::null_mut() }
    }

    /// One more; gives the address to store into the object's descriptor.
    pub fn add(&mut self, object: ObjectIndex, descriptor: DynamicDescriptor) -> Result<usize, OutOfMemory> {
        let record = Box::into_raw(try_box(Record { descriptor, object, next: self.first })?);
        self.first = record;
        Ok(record.expose_provenance())
    }

    /// Takes the last one that was added out of the chain.
    fn pop(&mut self) -> Option<*mut Record> {
        let record = self.first;
        // SAFETY: null, or a record that `add` made, which is in this chain only.
        self.first = unsafe { record.as_ref() }?.next;
        Some(record)
    }

    /// Gives each record to the chain of its object; those of objects without one stay for good.
    pub fn hand_out<'a>(mut self, mut chain: impl FnMut(ObjectIndex) -> Option<&'a mut Descriptors>) {
        while let Some(record) = self.pop() {
            // SAFETY: `add` made the record, and it is in no chain now.
            let record = unsafe { &mut *record };
            if let Some(chain) = chain(record.object) {
                record.next = chain.first;
                chain.first = record;
            }
        }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        while let Some(record) = self.pop() {
            // SAFETY: `add` made the record from a box, and it is in no chain now.
            drop(unsafe { Box::from_raw(record) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(chain: &Descriptors) -> usize {
        let mut count = 0;
        let mut record = chain.first;
        // SAFETY: null, or a record of the chain.
        while let Some(this) = unsafe { record.as_ref() } {
            count += 1;
            record = this.next;
        }
        count
    }

    #[test]
    fn each_object_gets_its_own() {
        let mut all = Descriptors::new();
        for (object, offset) in [(1, 10), (2, 20), (1, 30)] {
            let descriptor = DynamicDescriptor { module: 7, offset, generation: 3 };
            let address = all.add(ObjectIndex(object), descriptor).unwrap();
            let seen = core::ptr::with_exposed_provenance::<DynamicDescriptor>(address);
            // SAFETY: the record that was made above.
            assert_eq!(unsafe { (*seen).offset }, offset);
        }
        let (mut one, mut two) = (Descriptors::new(), Descriptors::new());
        let (first, second) = (&raw mut one, &raw mut two);
        all.hand_out(|object| {
            let chain = if object == ObjectIndex(1) { first } else { second };
            // SAFETY: the chains outlive the call, and each is borrowed for one record at a time.
            unsafe { chain.as_mut() }
        });
        assert_eq!((count(&one), count(&two)), (2, 1));
    }
}
