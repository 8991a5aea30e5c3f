//! `dl_iterate_phdr`(3): what a callback is told about each object.
//!
//! Each step looks at the snapshot that is current then, so an object that was loaded meanwhile is told too, and one
//! that was unloaded is not. The object that a callback is told about is not unmapped before the next step.

use crate::pins;
use crate::thread_local;
use crate::threads;
use crate::world::{Handle, Snapshot, World};
use rtld_link::object::ObjectIndex;

/// `struct dl_phdr_info` of <link.h>.
#[repr(C)]
#[derive(Debug)]
pub struct ProgramHeaderInfo {
    address: usize,
    name: *const u8,
    headers: *const u8,
    count: u16,
    adds: u64,
    subs: u64,
    tls_module: usize,
    tls_data: usize,
}

/// One step of an iteration.
pub struct Step {
    /// What to tell.
    pub information: ProgramHeaderInfo,
    /// Where to go on.
    pub next: ObjectIndex,
    /// The object that is being told about; [`end_step`] lets it go.
    visited: *mut Handle,
}

/// The first object from an index on; None after the last one.
pub fn step(world: &World, from: ObjectIndex) -> Option<Step> {
    threads::read(world, |snapshot| {
        let rest = (from.0..snapshot.objects.bound() as u32).map(ObjectIndex);
        let index = rest
            .filter(|&index| snapshot.objects.get(index).is_some())
            .find(|&index| pins::visit(snapshot.handle(index)))?;
        let visited = snapshot.handle(index);
        let information = information(snapshot, index)?;
        Some(Step { information, next: ObjectIndex(index.0 + 1), visited })
    })
}

/// Ends the visit of a step.
pub fn end_step(step: &Step) {
    pins::end_visit(step.visited);
}

fn information(snapshot: &Snapshot, index: ObjectIndex) -> Option<ProgramHeaderInfo> {
    let object = snapshot.objects.get(index)?;
    let module = snapshot.tls.id(index);
    let tls_data = if module == 0 { 0 } else { thread_local::block(snapshot, module).unwrap_or(0) };
    Some(ProgramHeaderInfo {
        address: object.mapping.bias,
        name: object.path.as_c_str().as_ptr().cast(),
        headers: object.mapping.headers.as_ptr(),
        count: object.mapping.headers.len() as u16,
        adds: snapshot.adds,
        subs: snapshot.subs,
        tls_module: module,
        tls_data,
    })
}
