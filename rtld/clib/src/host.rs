//! What glibc's own loader would have left in its data for libc.so.6, stored into the passive loader file.
//!
//! Owns the stores into `_rtld_global`, `_rtld_global_ro` and the loader file's data symbols, and the one call into
//! libc.so.6 at start. It decides nothing: every value comes in as a fact. The thread descriptor is `thread`'s.
//!
//! Order: `publish`, `publish_vdso` and `Glibc::prepare_main_thread` before any relocation is applied (a program may copy one
//! of the variables, libc's resolvers read the vDSO's words); `publish_callbacks` after the loader file's own relocations and
//! its IRELATIVE; `publish_tls` when the modules are numbered; RELRO of the loader file after all of these; then `early_init`.

use crate::library::Library;
use crate::offsets::{Offsets, StackPermissions, VDSO_FUNCTION_COUNT, namespace};
use crate::processor::{self, Features, Processor};
use crate::region::{OutsideRegion, Region};

/// A recognised glibc whose loader file is mapped and passive.
#[derive(Debug, Clone, Copy)]
pub struct Glibc {
    pub(crate) offsets: &'static Offsets,
    /// `_rtld_global`.
    pub(crate) global: Region,
    /// `_rtld_global_ro`.
    pub(crate) read_only: Region,
    pub(crate) symbols: PassiveSymbols,
    /// Address of libc's `__libc_early_init` (2.32 and later).
    pub(crate) early_init: Option<usize>,
}

/// Variables of the loader file that libc.so.6 and programs know by name.
#[derive(Debug, Clone, Copy)]
pub struct PassiveSymbols {
    pub(crate) argv: Option<Region>,
    pub(crate) stack_end: Option<Region>,
    pub(crate) enable_secure: Option<Region>,
    pub(crate) rseq_offset: Option<Region>,
    pub(crate) rseq_size: Option<Region>,
    pub(crate) initial_report_events: Option<Region>,
}

/// What glibc wants to know about the process. Addresses are addresses in memory.
#[derive(Debug, Clone, Copy)]
pub struct ProcessFacts {
    /// The argument vector: address of argv[0].
    pub argv: usize,
    /// The stack pointer at entry: address of argc.
    pub initial_stack: usize,
    /// The auxiliary vector.
    pub auxv: usize,
    /// AT_PAGESZ, in bytes.
    pub page_size: usize,
    /// AT_MINSIGSTKSZ in bytes, 0 if the kernel gave none.
    pub minimum_signal_stack: usize,
    /// AT_CLKTCK: ticks in a second.
    pub clock_ticks: u32,
    /// AT_HWCAP.
    pub hwcap: u64,
    /// AT_HWCAP2.
    pub hwcap2: u64,
    /// AT_PLATFORM: address of the C string and its length; `None` if absent.
    pub platform: Option<(usize, usize)>,
    /// Whether the process runs in secure mode.
    pub secure: bool,
    /// The permissions that stacks need (PF_*).
    pub stack_flags: u32,
    /// TLS blocks, surplus and thread descriptor, in bytes.
    pub tls_static_size: usize,
    /// Alignment of the thread descriptor, in bytes.
    pub tls_static_align: usize,
    /// The program's `LinkMap`, first of the list.
    pub main_map: usize,
    /// Number of objects in the list.
    pub object_count: u32,
    /// 64 zero bytes or more that stay: the end of the list of search directories, of which glibc knows none.
    pub empty_directory: usize,
}

/// Functions of ours that libc.so.6 calls through `_rtld_global_ro`, by address and with glibc's signatures.
#[derive(Debug, Clone, Copy)]
pub struct Callbacks {
    /// `lookup_t (const char *name, link_map *, const Sym **, r_scope_elem **, const r_found_version *, int, int, link_map *)`.
    pub lookup_symbol: usize,
    /// `void *(const char *file, int mode, const void *caller, Lmid_t, int argc, char **argv, char **env)`.
    pub open: usize,
    /// `void (void *map)`.
    pub close: usize,
    /// `void *(link_map *)`: the calling thread's block, or null if it has none yet.
    pub tls_get_addr_soft: usize,
    /// `int (void *, dl_find_object *)`.
    pub find_object: usize,
    /// `int (const char **object, const char **error, bool *malloced, void (*)(void *), void *)`; `None` leaves glibc's.
    pub catch_error: Option<usize>,
    /// `void (void *)`; `None` leaves glibc's.
    pub error_free: Option<usize>,
    /// `void (link_map *)`, wanted before 2.34.
    pub initialise_static_tls: usize,
}

/// What glibc and debuggers read about TLS modules.
#[derive(Debug, Clone, Copy)]
pub struct TlsFacts {
    /// A `dtv_slotinfo_list`: length, next, then for each module id {generation, object}.
    pub slotinfo: usize,
    /// Highest module id.
    pub max_module: usize,
    /// Number of modules at start.
    pub static_count: usize,
    /// Generation of the modules.
    pub generation: usize,
    /// The main thread's vector, as its descriptor holds it; never 0.
    pub initial_dtv: usize,
}

/// The lock functions of glibc before 2.34 (`int (void *)`), until its libpthread puts in its own.
extern "C" fn lock_without_threads(_lock: usize) -> i32 {
    0
}

/// Whatever glibc calls these functions, the vDSO names them so. In the order of `_rtld_global_ro`.
const VDSO_FUNCTIONS: [&[u8]; VDSO_FUNCTION_COUNT] =
    [b"__vdso_clock_gettime", b"__vdso_gettimeofday", b"__vdso_time", b"__vdso_getcpu", b"__vdso_clock_getres"];
const VDSO_GETRANDOM: &[u8] = b"__vdso_getrandom";

impl Glibc {
    /// The release, as `gnu_get_libc_version` would give it.
    pub const fn name(&self) -> &'static str {
        self.offsets.name
    }

    /// Its layout.
    pub const fn offsets(&self) -> &'static Offsets {
        self.offsets
    }

    /// Size of the thread descriptor, which starts at the thread pointer, in bytes.
    pub const fn descriptor_size(&self) -> usize {
        self.offsets.thread.size
    }

    /// Stores what the process is.
    pub fn publish(&self, facts: &ProcessFacts) -> Result<(), OutsideRegion> {
        self.publish_global(facts)?;
        self.publish_read_only(facts)?;
        if let Some(argv) = self.symbols.argv {
            argv.write_usize(0, facts.argv)?;
        }
        if let Some(stack_end) = self.symbols.stack_end {
            stack_end.write_usize(0, facts.initial_stack)?;
        }
        if let Some(secure) = self.symbols.enable_secure {
            secure.write_u32(0, facts.secure.into())?;
        }
        Ok(())
    }

    fn publish_global(&self, facts: &ProcessFacts) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.global;
        let global = self.global;
        self.publish_objects(facts.main_map, facts.object_count)?;
        global.write_usize(offsets.namespace_count, 1)?;
        global.write_usize(offsets.all_directories, facts.empty_directory)?;
        self.set_stack_permissions(facts.stack_flags)?;
        for head in [offsets.stack_used, offsets.stack_user, offsets.stack_cache].into_iter().flatten() {
            let address = global.address(head);
            global.write_usize(head, address)?;
            global.write_usize(head + 8, address)?;
        }
        if let Some(size) = offsets.tls_static_size {
            global.write_usize(size, facts.tls_static_size)?;
        }
        if let Some(align) = offsets.tls_static_align {
            global.write_usize(align, facts.tls_static_align)?;
        }
        if let Some(functions) = offsets.lock_functions {
            let function = lock_without_threads as *const ();
            global.write_usize(functions, function.expose_provenance())?;
            global.write_usize(functions + 8, function.expose_provenance())?;
        }
        Ok(())
    }

    fn publish_read_only(&self, facts: &ProcessFacts) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.read_only;
        let read_only = self.read_only;
        if let Some((platform, length)) = facts.platform {
            read_only.write_usize(offsets.platform, platform)?;
            read_only.write_usize(offsets.platform + 8, length)?;
        }
        read_only.write_usize(offsets.page_size, facts.page_size)?;
        if let Some(offset) = offsets.minimum_signal_stack {
            // 0 lets glibc ask the processor, as it does where the kernel says nothing.
            read_only.write_usize(offset, facts.minimum_signal_stack)?;
        }
        read_only.write_u32(offsets.clock_ticks, facts.clock_ticks)?;
        read_only.write_u64(offsets.hwcap, facts.hwcap)?;
        read_only.write_u64(offsets.hwcap2, facts.hwcap2)?;
        read_only.write_usize(offsets.auxv, facts.auxv)?;
        if let Some(size) = offsets.tls_static_size {
            read_only.write_usize(size, facts.tls_static_size)?;
        }
        if let Some(align) = offsets.tls_static_align {
            read_only.write_usize(align, facts.tls_static_align)?;
        }
        // Not zero: that would tell libc that there is no loader, and it would leave out checks and crash in dlopen.
        read_only.write_usize(offsets.initial_directories, facts.empty_directory)
    }

    /// Stores what the processor is, if there are rules for it and for this release; whether it did. After `publish`, and before
    /// the loader file's resolver, which otherwise finds out itself. Not if the user has set one of the tunables of the processor,
    /// or the kernel gave no AT_MINSIGSTKSZ: the resolver knows what follows from that.
    pub fn publish_processor(&self, processor: &impl Processor) -> Result<bool, OutsideRegion> {
        let offsets = &self.offsets.read_only;
        let Some(start) = offsets.processor else { return Ok(false) };
        let Some(features) = Features::of(processor) else { return Ok(false) };
        processor::store(&features, start, offsets, self.read_only)?;
        Ok(true)
    }

    /// Stores the head and the length of the list of objects.
    pub fn publish_objects(&self, main_map: usize, count: u32) -> Result<(), OutsideRegion> {
        self.global.write_usize(namespace::LOADED, main_map)?;
        self.global.write_u32(namespace::LOADED_COUNT, count)?;
        let search_list = main_map.wrapping_add(self.offsets.link_map.search_list);
        self.global.write_usize(namespace::MAIN_SEARCH_LIST, search_list)
    }

    /// Stores the permissions that new threads' stacks get (PF_*); again when an object wants executable stacks.
    pub fn set_stack_permissions(&self, flags: u32) -> Result<(), OutsideRegion> {
        match self.offsets.global.stack_permissions {
            StackPermissions::SegmentFlags(offset) => self.global.write_u32(offset, flags),
            StackPermissions::ProtectionFlags(offset) => self.global.write_u32(offset, protection(flags)),
        }
    }

    /// Stores the vDSO: its functions, its `LinkMap` and its ELF header.
    pub fn publish_vdso(&self, vdso: &Library<'_>, map: usize, header: usize) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.read_only;
        self.read_only.write_usize(offsets.vdso_header, header)?;
        self.read_only.write_usize(offsets.vdso_map, map)?;
        for (index, name) in VDSO_FUNCTIONS.iter().enumerate() {
            self.read_only.write_usize(offsets.vdso_functions + 8 * index, vdso.address(name).unwrap_or(0))?;
        }
        if let Some(offset) = offsets.vdso_getrandom {
            self.read_only.write_usize(offset, vdso.address(VDSO_GETRANDOM).unwrap_or(0))?;
        }
        Ok(())
    }

    /// Puts our functions in the place of the passive loader's.
    pub fn publish_callbacks(&self, callbacks: &Callbacks) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.read_only;
        let read_only = self.read_only;
        read_only.write_usize(offsets.lookup_symbol, callbacks.lookup_symbol)?;
        read_only.write_usize(offsets.open, callbacks.open)?;
        read_only.write_usize(offsets.close, callbacks.close)?;
        read_only.write_usize(offsets.tls_get_addr_soft, callbacks.tls_get_addr_soft)?;
        if let Some(offset) = offsets.find_object {
            read_only.write_usize(offset, callbacks.find_object)?;
        }
        if let (Some(offset), Some(function)) = (offsets.catch_error, callbacks.catch_error) {
            read_only.write_usize(offset, function)?;
        }
        if let (Some(offset), Some(function)) = (offsets.error_free, callbacks.error_free) {
            read_only.write_usize(offset, function)?;
        }
        if let Some(offset) = self.offsets.global.init_static_tls {
            self.global.write_usize(offset, callbacks.initialise_static_tls)?;
        }
        Ok(())
    }

    /// Stores the TLS modules; again after each change of them.
    pub fn publish_tls(&self, facts: &TlsFacts) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.global;
        self.global.write_usize(offsets.tls_slotinfo, facts.slotinfo)?;
        self.global.write_usize(offsets.tls_max_module, facts.max_module)?;
        self.global.write_usize(offsets.tls_static_count, facts.static_count)?;
        self.global.write_usize(offsets.initial_dtv, facts.initial_dtv)?;
        self.global.write_usize(offsets.tls_generation, facts.generation)
    }

    /// Lets libc.so.6 set up its thread-local variables and its defaults for threads, before any constructor runs.
    ///
    /// # Safety
    /// All objects are relocated, the main thread's TLS is initialised, and everything was published.
    pub unsafe fn early_init(&self) {
        let Some(address) = self.early_init else {
            return;
        };
        let pointer = core::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: `void __libc_early_init (_Bool initial)`, found by that name in libc.so.6.
        let function = unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn(bool)>(pointer) };
        // SAFETY: the caller's promise is what the function needs.
        unsafe { function(true) }
    }
}

/// PROT_* for PF_*: the bits of reading and executing are exchanged.
const fn protection(flags: u32) -> u32 {
    (flags & 4) >> 2 | (flags & 2) | (flags & 1) << 2
}
