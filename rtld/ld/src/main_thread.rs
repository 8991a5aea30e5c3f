//! The main thread as the C library expects it, and what the C library is told about the process before anything is
//! relocated. Without a C library the same steps do what the psABI asks.

use crate::host::{Host, library_of, outside, publish_processor, rseq_facts};
use crate::stack::InitialStack;
use core::sync::atomic::Ordering;
use rtld_clib::{ProcessFacts, ThreadFacts};
use rtld_link::error::{Error, Reason};
use rtld_link::object::{ObjectIndex, Role};
use rtld_link::search::Trust;
use rtld_runtime::world::{Snapshot, World};
use rtld_runtime::{thread_local, threads};
use rtld_sys::auxv::{
    AT_CLKTCK, AT_HWCAP, AT_HWCAP2, AT_MINSIGSTKSZ, AT_PAGESZ, AT_PLATFORM, AT_RANDOM, AT_SYSINFO_EHDR, AuxVector,
};
use rtld_sys::thread;

/// Makes the main thread's control block, static blocks and vector, and sets the thread pointer; before that the C
/// library is told everything that does not need relocation. `extra` is where the C library's own area lies.
pub fn make(
    world: &'static World,
    snapshot: &Snapshot,
    library: Option<&'static Host>,
    stack: InitialStack,
    trust: Trust,
    extra: usize,
) -> Result<usize, Error> {
    let control = thread_local::allocate_block(world).ok_or(Reason::OutOfMemory)?;
    // SAFETY: the block is fresh and no thread uses it yet.
    unsafe { thread_local::attach(world, snapshot, control) }.ok_or(Reason::OutOfMemory)?;
    let auxiliary = stack.auxiliary();
    let random = random_bytes(auxiliary);
    if let Some(host) = library {
        publish(world, snapshot, host, stack, trust)?;
        host.initial_vector.store(vector(control), Ordering::Relaxed);
    } else {
        // SAFETY: the descriptor is ours and has room for the head.
        unsafe { rtld_clib::thread::write_head(control, vector(control), random) }.map_err(outside)?;
    }
    // SAFETY: the control block is fresh, and the thread pointer is set before anything else happens.
    unsafe { threads::prepare_first(world, control) };
    // SAFETY: the control block's first word is its own address.
    unsafe { thread::set_pointer(control) }.map_err(|error| Reason::ThreadPointer(error).of(b""))?;
    if let Some(host) = library {
        let rseq = rseq_facts(host, auxiliary, extra);
        let facts = ThreadFacts { dtv: vector(control), random, initial_stack: stack.address(), rseq };
        // SAFETY: the descriptor is the main thread's, of the size that the library wants.
        unsafe { host.glibc.prepare_main_thread(control, &facts) }.map_err(outside)?;
    }
    Ok(control)
}

/// The word of the control block that holds the thread's vector.
fn vector(control: usize) -> usize {
    let word = core::ptr::with_exposed_provenance::<usize>(control.wrapping_add(8));
    // SAFETY: the control block was made by allocate_block.
    unsafe { word.read() }
}

fn random_bytes(auxiliary: AuxVector) -> Option<[u64; 2]> {
    let address = auxiliary.get(AT_RANDOM).filter(|&address| address != 0)?;
    let pointer = core::ptr::with_exposed_provenance::<[u64; 2]>(address);
    // SAFETY: AT_RANDOM points to 16 bytes of the kernel's, of any alignment.
    Some(unsafe { pointer.read_unaligned() })
}

/// Zero words that stand for the C library's list of search directories, of which it must see none.
static NO_DIRECTORIES: [u64; 64] = [0; 64];

fn publish(world: &World, snapshot: &Snapshot, host: &Host, stack: InitialStack, trust: Trust) -> Result<(), Error> {
    let auxiliary = stack.auxiliary();
    let value = |key| auxiliary.get(key).unwrap_or(0);
    let platform = auxiliary.get(AT_PLATFORM).filter(|&address| address != 0).map(|address| {
        let text = core::ptr::with_exposed_provenance(address);
        // SAFETY: AT_PLATFORM is a C string that the kernel made.
        (address, unsafe { core::ffi::CStr::from_ptr(text) }.count_bytes())
    });
    let facts = ProcessFacts {
        argv: stack.arguments(),
        initial_stack: stack.address(),
        auxv: auxiliary.as_ptr().expose_provenance(),
        page_size: value(AT_PAGESZ),
        minimum_signal_stack: value(AT_MINSIGSTKSZ),
        clock_ticks: value(AT_CLKTCK) as u32,
        hwcap: value(AT_HWCAP) as u64,
        hwcap2: value(AT_HWCAP2) as u64,
        platform,
        secure: trust == Trust::Secure,
        stack_flags: world.process.stack_flags,
        tls_static_size: thread_local::static_size(world),
        tls_static_align: world.process.static_tls_alignment,
        main_map: snapshot.handle(ObjectIndex(0)).expose_provenance(),
        object_count: snapshot.objects.count() as u32,
        empty_directory: (&raw const NO_DIRECTORIES).expose_provenance(),
    };
    host.glibc.publish(&facts).map_err(outside)?;
    publish_processor(host, facts.minimum_signal_stack)?;
    let vdso = snapshot.objects.iter().find(|(_, object)| object.role == Role::Vdso);
    if let Some((index, object)) = vdso
        && let Some(library) = library_of(object)
    {
        let map = snapshot.handle(index).expose_provenance();
        host.glibc.publish_vdso(&library, map, value(AT_SYSINFO_EHDR)).map_err(outside)?;
    }
    Ok(())
}
