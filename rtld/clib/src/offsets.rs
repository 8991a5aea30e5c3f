//! Where glibc keeps its private data: the shape of one row of the table, and what must hold for every row.
//!
//! Owns the meaning of each offset. May not hold a number of one version (that is `table`) and touches no memory.
//!
//! All offsets are in bytes from the start of the structure that the group names. `None` means that the version has no such
//! field. The structures are glibc's `struct rtld_global`, `struct rtld_global_ro`, `struct link_map` and `struct pthread`;
//! the numbers come from their DWARF descriptions.

/// The private layout of one glibc release.
#[derive(Debug)]
pub struct Offsets {
    /// The release, as `gnu_get_libc_version` gives it.
    pub name: &'static str,
    /// N of the newest `GLIBC_2.N` that libc.so.6 defines. A release without a new symbol of its own keeps the older number.
    pub newest_definition: u16,
    /// `_rtld_global`.
    pub global: GlobalOffsets,
    /// `_rtld_global_ro`.
    pub read_only: ReadOnlyOffsets,
    /// An element of the list of objects.
    pub link_map: LinkMapOffsets,
    /// The thread descriptor; the thread pointer points to its start.
    pub thread: ThreadOffsets,
}

/// Fields of `struct rtld_global` that did not move in any supported release: `_dl_ns[0]`.
pub mod namespace {
    /// `_ns_loaded`: the first object, 8 bytes.
    pub const LOADED: usize = 0;
    /// `_ns_nloaded`: number of objects, 4 bytes.
    pub const LOADED_COUNT: usize = 8;
    /// `_ns_main_searchlist`: address of the main object's `l_searchlist`, 8 bytes.
    pub const MAIN_SEARCH_LIST: usize = 16;
}

/// `struct rtld_global`.
#[derive(Debug)]
pub struct GlobalOffsets {
    /// Size of the structure.
    pub size: usize,
    /// `_dl_nns`: number of namespaces.
    pub namespace_count: usize,
    /// `_dl_load_lock`: a recursive pthread mutex.
    pub load_lock: usize,
    /// `_dl_all_dirs`.
    pub all_directories: usize,
    /// What permissions a thread's stack gets, 4 bytes.
    pub stack_permissions: StackPermissions,
    /// `_dl_stack_used`: head of the list of stacks that glibc allocated.
    pub stack_used: Option<usize>,
    /// `_dl_stack_user`: head of the list of stacks that glibc did not allocate.
    pub stack_user: Option<usize>,
    /// `_dl_stack_cache`: head of the list of stacks to be used again.
    pub stack_cache: Option<usize>,
    /// `_dl_tls_max_dtv_idx`: highest TLS module id.
    pub tls_max_module: usize,
    /// `_dl_tls_dtv_slotinfo_list`: module id to object, read by debuggers.
    pub tls_slotinfo: usize,
    /// `_dl_tls_static_nelem`: number of modules at start.
    pub tls_static_count: usize,
    /// `_dl_initial_dtv`: the main thread's vector.
    pub initial_dtv: usize,
    /// `_dl_tls_generation`.
    pub tls_generation: usize,
    /// `_dl_tls_static_size`, before it moved to `rtld_global_ro`.
    pub tls_static_size: Option<usize>,
    /// `_dl_tls_static_align`, likewise.
    pub tls_static_align: Option<usize>,
    /// `_dl_init_static_tls`: a function pointer.
    pub init_static_tls: Option<usize>,
    /// `_dl_rtld_lock_recursive`, followed by `_dl_rtld_unlock_recursive`: function pointers that libpthread replaces.
    pub lock_functions: Option<usize>,
}

/// How a release writes down what permissions stacks get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackPermissions {
    /// `_dl_stack_flags` at this offset: PF_R, PF_W, PF_X.
    SegmentFlags(usize),
    /// `_dl_stack_prot_flags` at this offset: PROT_READ, PROT_WRITE, PROT_EXEC.
    ProtectionFlags(usize),
}

impl StackPermissions {
    /// The offset of the word.
    pub const fn offset(self) -> usize {
        match self {
            StackPermissions::SegmentFlags(offset) | StackPermissions::ProtectionFlags(offset) => offset,
        }
    }
}

/// `struct rtld_global_ro`.
#[derive(Debug)]
pub struct ReadOnlyOffsets {
    /// Size of the structure.
    pub size: usize,
    /// `_dl_platform`, followed by `_dl_platformlen`.
    pub platform: usize,
    /// `_dl_pagesize`; 4096 in the file.
    pub page_size: usize,
    /// `_dl_minsigstacksize`.
    pub minimum_signal_stack: Option<usize>,
    /// `_dl_clktck`, 4 bytes.
    pub clock_ticks: usize,
    /// `_dl_hwcap`.
    pub hwcap: usize,
    /// `_dl_hwcap2`.
    pub hwcap2: usize,
    /// `_dl_x86_cpu_features`, where its layout and the rules for it are those of `processor`.
    pub processor: Option<usize>,
    /// `_dl_auxv`.
    pub auxv: usize,
    /// `_dl_tls_static_size`: TLS blocks, surplus and thread descriptor.
    pub tls_static_size: Option<usize>,
    /// `_dl_tls_static_align`.
    pub tls_static_align: Option<usize>,
    /// `_dl_init_all_dirs`; zero says "no loader is active".
    pub initial_directories: usize,
    /// `_dl_sysinfo_dso`: the vDSO's ELF header.
    pub vdso_header: usize,
    /// `_dl_sysinfo_map`: the vDSO's object.
    pub vdso_map: usize,
    /// `_dl_vdso_clock_gettime64` and after it `gettimeofday`, `time`, `getcpu`, `clock_getres_time64`.
    pub vdso_functions: usize,
    /// `_dl_vdso_getrandom`.
    pub vdso_getrandom: Option<usize>,
    /// `_dl_mcount`, which the loader file also exports: the anchor that the functions below are checked by.
    pub mcount: usize,
    /// `_dl_lookup_symbol_x`.
    pub lookup_symbol: usize,
    /// `_dl_open`.
    pub open: usize,
    /// `_dl_close`.
    pub close: usize,
    /// `_dl_catch_error`.
    pub catch_error: Option<usize>,
    /// `_dl_error_free`.
    pub error_free: Option<usize>,
    /// `_dl_tls_get_addr_soft`.
    pub tls_get_addr_soft: usize,
    /// `_dl_find_object`.
    pub find_object: Option<usize>,
}

/// Number of words from `vdso_functions` on, the getrandom word not counted.
pub const VDSO_FUNCTION_COUNT: usize = 5;

/// `struct link_map`. The public head (address, name, dynamic section, next, previous) is not listed.
#[derive(Debug)]
pub struct LinkMapOffsets {
    /// Size of the structure.
    pub size: usize,
    /// `l_real`.
    pub real: usize,
    /// `l_libname`.
    pub library_name: usize,
    /// `l_info`: pointers to entries of the dynamic section, by tag.
    pub info: usize,
    /// Number of `l_info` elements that are indexed by the tag itself (glibc's DT_NUM).
    pub info_count: usize,
    /// `l_phdr`; followed by `l_entry` (+8) and `l_phnum` (+16, 2 bytes).
    pub program_headers: usize,
    /// `l_searchlist`: pointer and 4-byte count.
    pub search_list: usize,
    /// `l_map_start`; followed by `l_map_end` (+8).
    pub map_start: usize,
    /// `l_text_end`.
    pub text_end: Option<usize>,
    /// `l_scope`.
    pub scope: usize,
    /// `l_local_scope`.
    pub local_scope: usize,
    /// `l_tls_offset`: distance of the block below the thread pointer; 0 = none.
    pub tls_offset: usize,
    /// `l_tls_modid`.
    pub tls_module: usize,
    /// `l_tls_dtor_count`: thread-local destructors that still wait.
    pub tls_destructor_count: usize,
    /// DT_GNU_HASH as glibc digests it; None where we do not know the places.
    pub gnu_hash: Option<GnuHashOffsets>,
}

/// The fields of `struct link_map` by which `backtrace_symbols` finds names in an object without DT_HASH.
#[derive(Debug)]
pub struct GnuHashOffsets {
    /// The element of `l_info` for DT_GNU_HASH.
    pub info: usize,
    /// `l_nbuckets`, 4 bytes.
    pub bucket_count: usize,
    /// `l_gnu_buckets`.
    pub buckets: usize,
    /// `l_gnu_chain_zero`: where the chain of symbol 0 would be.
    pub chain_zero: usize,
}

/// `struct pthread`.
#[derive(Debug)]
pub struct ThreadOffsets {
    /// Size of the structure.
    pub size: usize,
    /// `list`: two pointers.
    pub list: usize,
    /// `tid`, 4 bytes.
    pub tid: usize,
    /// `robust_prev`.
    pub robust_previous: usize,
    /// `robust_head`: the kernel's robust_list_head, 24 bytes.
    pub robust_head: usize,
    /// `specific_1stblock`.
    pub specific_first_block: usize,
    /// `specific`.
    pub specific: usize,
    /// `report_events`, 1 byte.
    pub report_events: usize,
    /// How the descriptor says that its stack is not glibc's.
    pub stack_owner: StackOwner,
    /// `stackblock_size`.
    pub stack_block_size: usize,
    /// Where the area for restartable sequences lies.
    pub rseq: RseqPlace,
}

/// How the thread descriptor says that its stack is not glibc's to free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackOwner {
    /// `user_stack`, 1 byte: 1.
    Flag(usize),
    /// `stack_mode`, 4 bytes: 2.
    Mode(usize),
}

/// Where a release keeps the area for restartable sequences (rseq(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RseqPlace {
    /// The release registers none.
    None,
    /// At this offset in the thread descriptor.
    Descriptor(usize),
    /// In a block of its own below the thread pointer, after the TLS blocks ("extra TLS").
    ExtraTls,
}

/// Whether `width` bytes at `offset` lie inside `size` bytes, naturally aligned.
const fn fits(offset: usize, width: usize, size: usize) -> bool {
    offset.is_multiple_of(width) && offset <= size && width <= size - offset
}

const fn optional_word_fits(offset: Option<usize>, size: usize) -> bool {
    match offset {
        Some(offset) => fits(offset, 8, size),
        None => true,
    }
}

impl Offsets {
    /// Whether every field lies inside its structure, and whether the groups of fields that glibc keeps together are together.
    pub const fn is_consistent(&self) -> bool {
        self.global_is_consistent()
            && self.read_only_is_consistent()
            && self.link_map_is_consistent()
            && self.thread_is_consistent()
    }

    const fn global_is_consistent(&self) -> bool {
        let global = &self.global;
        let size = global.size;
        let lists_follow = match (global.stack_used, global.stack_user, global.stack_cache) {
            (Some(used), Some(user), Some(cache)) => {
                user == used + 16 && cache == user + 16 && fits(cache + 8, 8, size)
            }
            (None, None, None) => true,
            _ => false,
        };
        fits(global.namespace_count, 8, size)
            && global.load_lock == global.namespace_count + 8
            && fits(global.all_directories, 8, size)
            && fits(global.stack_permissions.offset(), 4, size)
            && global.stack_permissions.offset() + 8 == global.tls_max_module
            && global.tls_slotinfo == global.tls_max_module + 8
            && global.tls_static_count == global.tls_slotinfo + 8
            && global.tls_generation == global.initial_dtv + 8
            && fits(global.tls_generation, 8, size)
            && lists_follow
            && optional_word_fits(global.tls_static_size, size)
            && optional_word_fits(global.tls_static_align, size)
            && optional_word_fits(global.init_static_tls, size)
            && optional_word_fits(global.lock_functions, size - 8)
            && global.tls_static_size.is_some() != self.read_only.tls_static_size.is_some()
    }

    const fn read_only_is_consistent(&self) -> bool {
        let read_only = &self.read_only;
        let size = read_only.size;
        fits(read_only.platform + 8, 8, size)
            && fits(read_only.page_size, 8, size)
            && optional_word_fits(read_only.minimum_signal_stack, size)
            && fits(read_only.clock_ticks, 4, size)
            && fits(read_only.hwcap, 8, size)
            && fits(read_only.hwcap2, 8, size)
            && read_only.auxv == read_only.hwcap + 8
            && optional_word_fits(read_only.tls_static_size, size)
            && optional_word_fits(read_only.tls_static_align, size)
            && read_only.vdso_header == read_only.initial_directories + 8
            && read_only.vdso_map == read_only.vdso_header + 8
            && read_only.vdso_functions == read_only.vdso_map + 8
            && fits(read_only.vdso_functions + 8 * VDSO_FUNCTION_COUNT, 8, size)
            && optional_word_fits(read_only.vdso_getrandom, size)
            && read_only.lookup_symbol == read_only.mcount + 8
            && read_only.open == read_only.lookup_symbol + 8
            && read_only.close == read_only.open + 8
            && optional_word_fits(read_only.catch_error, size)
            && optional_word_fits(read_only.error_free, size)
            && fits(read_only.tls_get_addr_soft, 8, size)
            && optional_word_fits(read_only.find_object, size)
    }

    const fn link_map_is_consistent(&self) -> bool {
        let map = &self.link_map;
        let size = map.size;
        fits(map.info + 8 * (map.info_count - 1), 8, map.program_headers)
            && fits(map.program_headers + 16, 8, size)
            && fits(map.search_list + 8, 8, size)
            && fits(map.map_start + 8, 8, size)
            && optional_word_fits(map.text_end, size)
            && map.local_scope == map.scope + 8
            && fits(map.local_scope + 8, 8, size)
            && map.tls_module == map.tls_offset + 8
            && map.tls_destructor_count == map.tls_module + 8
            && fits(map.tls_destructor_count, 8, size)
    }

    const fn thread_is_consistent(&self) -> bool {
        let thread = &self.thread;
        let size = thread.size;
        let owner = match thread.stack_owner {
            StackOwner::Flag(offset) => offset == thread.report_events + 1,
            StackOwner::Mode(offset) => fits(offset, 4, size),
        };
        let rseq = match thread.rseq {
            RseqPlace::Descriptor(offset) => fits(offset, 32, size),
            RseqPlace::None | RseqPlace::ExtraTls => true,
        };
        fits(thread.list + 8, 8, size)
            && fits(thread.tid, 4, size)
            && fits(thread.robust_previous, 8, size)
            && thread.robust_head == thread.robust_previous + 8
            && fits(thread.robust_head + 16, 8, size)
            // 32 keys of two words lie between the first block and the pointers to the blocks.
            && thread.specific == thread.specific_first_block + 512
            && fits(thread.specific, 8, size)
            && thread.report_events < size
            && fits(thread.stack_block_size, 8, size)
            // The thread descriptor is aligned to 64, and the block below it depends on that.
            && size.is_multiple_of(64)
            && owner
            && rseq
    }
}
