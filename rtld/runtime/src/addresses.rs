//! Which object an address belongs to: a sorted array of ranges, searched by halves, never changed once made.

use alloc::vec::Vec;
use rtld_link::fallible::{OutOfMemory, try_insert};
use rtld_link::object::{ObjectIndex, ObjectTable};

#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
    object: ObjectIndex,
}

/// The ranges of all objects.
#[derive(Debug, Default)]
pub struct AddressMap {
    ranges: Vec<Range>,
}

impl AddressMap {
    /// The ranges of these objects. Mappings of a process do not overlap.
    pub fn new(objects: &ObjectTable) -> Result<AddressMap, OutOfMemory> {
        let mut ranges: Vec<Range> = Vec::new();
        ranges.try_reserve_exact(objects.count()).map_err(|_| OutOfMemory)?;
        // Linux gives out addresses from the highest down, so most come in order from the last object on.
        for (object, record) in objects.iter().rev() {
            let (start, end) = (record.mapping.start, record.mapping.end);
            let place = match ranges.last() {
                Some(last) if last.start > start => ranges.partition_point(|range| range.start <= start),
                _ => ranges.len(),
            };
            try_insert(&mut ranges, place, Range { start, end, object })?;
        }
        Ok(AddressMap { ranges })
    }

    /// The object whose range holds `address`.
    pub fn find(&self, address: usize) -> Option<ObjectIndex> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address < range.end).then_some(range.object)
    }
}
