//! Which glibc this is, and whether its files are laid out as the table says.
//!
//! Owns the self-checks. Reads the two mapped files before their relocations are applied, runs none of their code, changes
//! nothing. A release that the table does not hold is refused; deriving a layout for it would take the table's place in
//! [`recognise`] and go through the same checks.

use core::cell::Cell;
use rtld_elf::symbol::SymbolView;
use rtld_elf::version::VERSYM_INDEX;
use rtld_elf::{Hash, PF_W, PF_X, Pod, Sym, Table};

use crate::host::{Glibc, PassiveSymbols};
use crate::library::Library;
use crate::offsets::{Offsets, VDSO_FUNCTION_COUNT};
use crate::processor;
use crate::region::Region;
use crate::table::TABLE;
use crate::unsupported::{Found, Reason, Unsupported};

/// First release that holds libpthread inside libc.so.6, and with it the descriptions for libthread_db.
const MERGED_LIBPTHREAD: u16 = 34;
/// PTHREAD_MUTEX_RECURSIVE_NP, at this offset in a pthread_mutex_t.
const RECURSIVE_MUTEX: u64 = 1;
const MUTEX_KIND: usize = 16;
/// PF_R|PF_W|PF_X and PROT_READ|PROT_WRITE|PROT_EXEC are the same number: what stacks get until somebody knows better.
const ALL_PERMISSIONS: u64 = 7;

/// Reads a file from an offset on; gives how many bytes there were.
pub type ReadFile<'f> = &'f dyn Fn(&mut [u8], u64) -> Option<usize>;

/// Recognises the C library in libc.so.6 and the loader file that it needs. `file` reads libc.so.6: a few constants of it are read
/// there where that can be, since a page of the mapping comes with fifteen others.
///
/// # Safety
/// `loader` is mapped privately for this process, its segments with PF_W can be written (RELRO is not yet applied), nothing
/// borrows that memory, and its relocations are not yet applied. It stays mapped as long as the result is used.
pub unsafe fn recognise<'a>(
    libc: &Library<'a>,
    loader: &Library<'a>,
    file: Option<ReadFile<'_>>,
) -> Result<Glibc, Unsupported<'a>> {
    let newest = newest_definition(libc);
    let mut found = newest.map_or(Found::Nothing, Found::Definition);
    let symbol = |name: &'static str| {
        loader.symbol(name.as_bytes()).ok_or(Unsupported { found, reason: Reason::NoSymbol(name) })
    };
    let (global, read_only) = (symbol("_rtld_global")?, symbol("_rtld_global_ro")?);
    let offsets = TABLE
        .iter()
        .find(|row| {
            Some(row.newest_definition) == newest
                && row.global.size as u64 == global.st_size
                && row.read_only.size as u64 == read_only.st_size
        })
        .ok_or(Unsupported {
            found,
            reason: Reason::Unknown { global: global.st_size, read_only: read_only.st_size },
        })?;
    found = Found::Release(offsets.name);
    let constants = Constants::new(libc, file);
    let check = Check { libc, loader, constants, offsets, global: global.st_value, read_only: read_only.st_value };
    check.all().map_err(|reason| Unsupported { found, reason })?;
    let region = |symbol: Sym, name: &'static str| {
        if !loader.image.contains(symbol.st_value, symbol.st_size, PF_W) {
            return Err(Unsupported { found, reason: Reason::Unreachable(name) });
        }
        let address = loader.base.wrapping_add(symbol.st_value as usize);
        // SAFETY: inside a segment that can be written, and the caller lets us write there.
        Ok(unsafe { Region::new(address, symbol.st_size as usize) })
    };
    let optional = |name: &'static str| loader.symbol(name.as_bytes()).map(|symbol| region(symbol, name)).transpose();
    let symbols = PassiveSymbols {
        argv: optional("_dl_argv")?,
        stack_end: optional("__libc_stack_end")?,
        enable_secure: optional("__libc_enable_secure")?,
        rseq_offset: optional("__rseq_offset")?,
        rseq_size: optional("__rseq_size")?,
        initial_report_events: optional("__nptl_initial_report_events")?,
    };
    Ok(Glibc {
        offsets,
        global: region(global, "_rtld_global")?,
        read_only: region(read_only, "_rtld_global_ro")?,
        symbols,
        early_init: libc.address(b"__libc_early_init"),
    })
}

/// N of the newest `GLIBC_2.N` that an object defines.
fn newest_definition(libc: &Library<'_>) -> Option<u16> {
    libc.dynamic
        .versions
        .definitions()
        .filter_map(|definition| {
            let minor = definition.name.strip_prefix(b"GLIBC_2.")?;
            core::str::from_utf8(minor).ok()?.parse().ok()
        })
        .max()
}

/// Calls `act` with every symbol that `object` leaves to others, by number, until it returns something.
fn undefined_symbols<T>(object: &Library<'_>, mut act: impl FnMut(u32, Sym) -> Option<T>) -> Option<T> {
    // In a table for DT_GNU_HASH the symbols that cannot be found come first.
    let end = match &object.dynamic.hash {
        Hash::Gnu(table) => table.symbol_offset,
        other => other.symbol_count(),
    };
    (1..end).find_map(|index| {
        let symbol = object.dynamic.symbols.get(index)?;
        if symbol.is_undefined() { act(index, symbol) } else { None }
    })
}

/// Constants of libc.so.6, which stand close to each other.
struct Constants<'c, 'a> {
    libc: &'c Library<'a>,
    file: Option<ReadFile<'c>>,
    /// What was read last: the bytes, how many there were, and their offset in the file.
    read: Cell<([u8; READ_AT_ONCE], usize, u64)>,
}

/// As much of the file as is read for a constant.
const READ_AT_ONCE: usize = 1024;

impl<'c, 'a> Constants<'c, 'a> {
    fn new(libc: &'c Library<'a>, file: Option<ReadFile<'c>>) -> Constants<'c, 'a> {
        Constants { libc, file, read: Cell::new(([0; READ_AT_ONCE], 0, 0)) }
    }

    /// The record at a virtual address.
    fn get<T: Pod>(&self, vaddr: u64) -> Option<T> {
        self.in_file(vaddr).or_else(|| self.libc.read(vaddr))
    }

    fn in_file<T: Pod>(&self, vaddr: u64) -> Option<T> {
        let offset = self.libc.image.file_offset(vaddr, size_of::<T>() as u64)?;
        let read = self.file?;
        let known = || {
            let (bytes, length, start) = self.read.get();
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            Table::from_bytes(bytes.get(from..length)?).get(0)
        };
        known().or_else(|| {
            let mut bytes = [0; READ_AT_ONCE];
            let start = offset.saturating_sub(READ_AT_ONCE as u64 / 2);
            let length = read(&mut bytes, start)?;
            self.read.set((bytes, length, start));
            known()
        })
    }
}

/// One comparison of the files with a row of the table.
struct Check<'c, 'a> {
    libc: &'c Library<'a>,
    loader: &'c Library<'a>,
    constants: Constants<'c, 'a>,
    offsets: &'static Offsets,
    /// Virtual addresses of the two structures.
    global: u64,
    read_only: u64,
}

impl<'a> Check<'_, 'a> {
    fn all(&self) -> Result<(), Reason<'a>> {
        self.private_imports()?;
        self.descriptions()?;
        self.global_words()?;
        self.read_only_words()?;
        self.functions()
    }

    /// Every private symbol that libc.so.6 wants of the loader file must be there.
    fn private_imports(&self) -> Result<(), Reason<'a>> {
        let versions = &self.libc.dynamic.versions;
        let needs = versions.needs().filter(|need| need.file.starts_with(b"ld-linux"));
        let private = needs.flat_map(|need| need.versions()).find(|version| version.name == b"GLIBC_PRIVATE");
        let Some(private) = private else {
            return Ok(());
        };
        let missing = undefined_symbols(self.libc, |index, symbol| {
            if versions.symbol_version(index)? & VERSYM_INDEX != private.index & VERSYM_INDEX {
                return None;
            }
            let name = self.libc.dynamic.strings.get(symbol.st_name.into())?;
            self.loader.symbol(name).is_none().then_some(name)
        });
        missing.map_or(Ok(()), |name| Err(Reason::PrivateImport(name)))
    }

    /// What libc.so.6 tells libthread_db about itself: three u32 for a field (bits, elements, offset), one for a size.
    fn descriptions(&self) -> Result<(), Reason<'a>> {
        let (global, map, thread) = (&self.offsets.global, &self.offsets.link_map, &self.offsets.thread);
        self.size_description("_thread_db_sizeof_pthread", thread.size)?;
        for (name, expected) in [
            ("_thread_db_pthread_list", Some(thread.list)),
            ("_thread_db_pthread_tid", Some(thread.tid)),
            ("_thread_db_pthread_specific", Some(thread.specific)),
            ("_thread_db_pthread_report_events", Some(thread.report_events)),
            ("_thread_db_link_map_l_tls_modid", Some(map.tls_module)),
            ("_thread_db_link_map_l_tls_offset", Some(map.tls_offset)),
            ("_thread_db_rtld_global__dl_stack_used", global.stack_used),
            ("_thread_db_rtld_global__dl_stack_user", global.stack_user),
            ("_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", Some(global.tls_slotinfo)),
        ] {
            let Some(expected) = expected else { continue };
            let Some(symbol) = self.description(name)? else {
                continue;
            };
            let [_, _, found]: [u32; 3] = self.constants.get(symbol.st_value).ok_or(Reason::Unreachable(name))?;
            same(name, found.into(), expected as u64)?;
        }
        Ok(())
    }

    fn size_description(&self, name: &'static str, expected: usize) -> Result<(), Reason<'a>> {
        let Some(symbol) = self.description(name)? else {
            return Ok(());
        };
        let found: u32 = self.constants.get(symbol.st_value).ok_or(Reason::Unreachable(name))?;
        same(name, found.into(), expected as u64)
    }

    /// A description's symbol. Before libpthread became part of libc.so.6, it held them.
    fn description(&self, name: &'static str) -> Result<Option<Sym>, Reason<'a>> {
        match self.libc.symbol(name.as_bytes()) {
            Some(symbol) => Ok(Some(symbol)),
            None if self.offsets.newest_definition < MERGED_LIBPTHREAD => Ok(None),
            None => Err(Reason::NoSymbol(name)),
        }
    }

    fn global_words(&self) -> Result<(), Reason<'a>> {
        let global = &self.offsets.global;
        same("_dl_nns", self.word("_dl_nns", self.global, global.namespace_count)?, 1)?;
        let kind = self.half_word("_dl_load_lock", self.global, global.load_lock + MUTEX_KIND)?;
        same("the kind of _dl_load_lock", kind, RECURSIVE_MUTEX)?;
        let permissions = self.half_word("_dl_stack_flags", self.global, global.stack_permissions.offset())?;
        same("_dl_stack_flags", permissions, ALL_PERMISSIONS)?;
        for (name, offset) in [
            ("_dl_stack_used", global.stack_used),
            ("_dl_stack_user", global.stack_user),
            ("_dl_stack_cache", global.stack_cache),
        ] {
            if let Some(offset) = offset {
                self.zero(name, self.global, offset)?;
                self.zero(name, self.global, offset + 8)?;
            }
        }
        self.zero("_dl_tls_max_dtv_idx", self.global, global.tls_max_module)?;
        self.zero("_dl_tls_dtv_slotinfo_list", self.global, global.tls_slotinfo)?;
        self.zero("_dl_all_dirs", self.global, global.all_directories)
    }

    fn read_only_words(&self) -> Result<(), Reason<'a>> {
        let read_only = &self.offsets.read_only;
        let page_size = self.word("_dl_pagesize", self.read_only, read_only.page_size)?;
        same("_dl_pagesize", page_size, 4096)?;
        self.zero("_dl_init_all_dirs", self.read_only, read_only.initial_directories)?;
        self.zero("_dl_sysinfo_dso", self.read_only, read_only.vdso_header)?;
        self.zero("_dl_sysinfo_map", self.read_only, read_only.vdso_map)?;
        for index in 0..VDSO_FUNCTION_COUNT {
            self.zero("a vDSO function", self.read_only, read_only.vdso_functions + 8 * index)?;
        }
        if let Some(offset) = read_only.processor {
            self.zero("_dl_x86_cpu_features", self.read_only, offset)?;
            let flags = self.word("_dl_x86_hwcap_flags", self.read_only, offset + processor::SIZE)?;
            same("_dl_x86_hwcap_flags", flags, u64::from_le_bytes(*b"sse2\0\0\0\0"))?;
        }
        if let Some(offset) = read_only.vdso_getrandom {
            self.zero("_dl_vdso_getrandom", self.read_only, offset)?;
        }
        Ok(())
    }

    /// The function pointers that we take over must point to the loader's code, and the one before them to an exported function.
    fn functions(&self) -> Result<(), Reason<'a>> {
        let read_only = &self.offsets.read_only;
        let mcount = self.loader.symbol(b"_dl_mcount").ok_or(Reason::NoSymbol("_dl_mcount"))?;
        let found = self.function("_dl_mcount", read_only.mcount)?;
        same("_dl_mcount", found, mcount.st_value)?;
        for (name, offset) in [
            ("_dl_lookup_symbol_x", Some(read_only.lookup_symbol)),
            ("_dl_open", Some(read_only.open)),
            ("_dl_close", Some(read_only.close)),
            ("_dl_catch_error", read_only.catch_error),
            ("_dl_error_free", read_only.error_free),
            ("_dl_tls_get_addr_soft", Some(read_only.tls_get_addr_soft)),
        ] {
            if let Some(offset) = offset {
                let value = self.function(name, offset)?;
                if !self.loader.image.contains(value, 1, PF_X) {
                    return Err(Reason::NotCode(name));
                }
            }
        }
        // The one pointer that glibc's loader stores only when it runs.
        match read_only.find_object {
            Some(offset) => self.zero("_dl_find_object", self.read_only, offset),
            None => Ok(()),
        }
    }

    fn function(&self, name: &'static str, offset: usize) -> Result<u64, Reason<'a>> {
        let place = self.read_only.wrapping_add(offset as u64);
        self.loader.link_time_word(place).ok_or(Reason::Unreachable(name))
    }

    fn word(&self, name: &'static str, structure: u64, offset: usize) -> Result<u64, Reason<'a>> {
        self.loader.read(structure.wrapping_add(offset as u64)).ok_or(Reason::Unreachable(name))
    }

    fn half_word(&self, name: &'static str, structure: u64, offset: usize) -> Result<u64, Reason<'a>> {
        let word: u32 = self.loader.read(structure.wrapping_add(offset as u64)).ok_or(Reason::Unreachable(name))?;
        Ok(word.into())
    }

    fn zero(&self, name: &'static str, structure: u64, offset: usize) -> Result<(), Reason<'a>> {
        same(name, self.word(name, structure, offset)?, 0)
    }
}

fn same<'a>(name: &'static str, found: u64, expected: u64) -> Result<(), Reason<'a>> {
    if found == expected { Ok(()) } else { Err(Reason::Field { name, found, expected }) }
}
