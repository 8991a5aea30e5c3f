//! `_dl_find_object` (dl_find_object(3)): the object of a program counter, for unwinders. No lock, no allocation.

use crate::world::Snapshot;

/// `struct dl_find_object` of <dlfcn.h>.
#[repr(C)]
#[derive(Debug)]
pub struct FoundObject {
    flags: u64,
    map_start: usize,
    map_end: usize,
    link_map: usize,
    eh_frame: usize,
    reserved: [u64; 7],
}

/// What is known about the object at `address`.
pub fn find_object(snapshot: &Snapshot, address: usize) -> Option<FoundObject> {
    let index = snapshot.object_at(address)?;
    let object = snapshot.objects.get(index)?;
    let eh_frame = object.mapping.layout.eh_frame_header.map_or(0, |vaddr| object.address(vaddr));
    Some(FoundObject {
        flags: 0,
        map_start: object.mapping.start,
        map_end: object.mapping.end,
        link_map: snapshot.handle(index).expose_provenance(),
        eh_frame,
        reserved: [0; 7],
    })
}
