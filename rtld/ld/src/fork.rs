//! What happens around the C library's `fork`: its handlers (pthread_atfork(3)) are how we hear of it. Ours are registered before
//! any other code runs, so that they are the last ones before the fork and the first ones after it: no handler of the
//! program's runs while our locks are held.

use crate::exports::here;
use crate::heap;
use crate::host::by_soname;
use rtld_link::lookup::{Purpose, Reference, find_in};
use rtld_runtime::fork;
use rtld_runtime::world::Snapshot;

/// glibc's `int __register_atfork (void (*) (void), void (*) (void), void (*) (void), void *)`, which programs reach through
/// pthread_atfork(3).
type Register = extern "C" fn(extern "C" fn(), extern "C" fn(), extern "C" fn(), usize) -> i32;

/// Registers our handlers. Where the C library cannot, a child may find what other threads had begun.
pub fn register(snapshot: &Snapshot) {
    let reference = Reference::to(b"__register_atfork", Purpose::Call);
    let found = by_soname(&snapshot.objects, b"libc.so.6")
        .and_then(|(index, _)| find_in(&snapshot.objects, index, &reference))
        .filter(|found| !found.is_indirect() && rtld_link::deferred::is_code(found.object, found.address()));
    let Some(found) = found else { return };
    let pointer = core::ptr::with_exposed_provenance::<()>(found.address());
    // SAFETY: the function of that name in glibc's libc.so.6 has this type since 2.3.2.
    let register = unsafe { core::mem::transmute::<*const (), Register>(pointer) };
    // It fails without memory only.
    let _ = register(before, in_parent, in_child, 0);
}

extern "C" fn before() {
    fork::before(here());
    heap::keep();
}

extern "C" fn in_parent() {
    heap::let_go();
    fork::in_parent(here());
}

extern "C" fn in_child() {
    heap::let_go();
    fork::in_child(here());
}
