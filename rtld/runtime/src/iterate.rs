//! `dl_iterate_phdr`(3): what a callback is told about each object.

use crate::thread_local;
use crate::world::World;
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

/// What to tell about the object with this index; None after the last one.
///
/// # Safety
/// The thread pointer must be set.
pub unsafe fn info(world: &World, index: ObjectIndex) -> Option<ProgramHeaderInfo> {
    let object = world.objects.get(index)?;
    let module = world.tls.id(index) as usize;
    let tls_data = match module {
        0 => 0,
        // SAFETY: the caller's promise.
        module => unsafe { thread_local::block(module) }.unwrap_or(0),
    };
    Some(ProgramHeaderInfo {
        address: object.mapping.bias,
        name: object.path.as_c_str().as_ptr().cast(),
        headers: object.mapping.headers.as_ptr(),
        count: object.mapping.headers.len() as u16,
        adds: world.objects.len() as u64,
        subs: 0,
        tls_module: module,
        tls_data,
    })
}
