//! The machine's own glibc is recognised, and each damage to what the checks look at is noticed.

use std::os::unix::fs::FileExt;

use rtld_clib::{Found, Glibc, Offsets, Reason, Unsupported, recognise};

use crate::mapped::{LIBC, LOADER, Mapped};

unsafe extern "C" {
    safe fn gnu_get_libc_version() -> *const std::ffi::c_char;
}

/// The release that this test runs on.
fn running_version() -> &'static str {
    // SAFETY: glibc returns a constant C string.
    unsafe { std::ffi::CStr::from_ptr(gnu_get_libc_version()) }.to_str().unwrap()
}

pub fn recognised(libc: &Mapped, loader: &Mapped) -> Result<Glibc, Unsupported<'static>> {
    // SAFETY: the loader file is laid out in writable memory of its own, not relocated, never freed.
    unsafe { recognise(&libc.library(), &loader.library(), None) }
}

/// Why the pair is refused after some damage.
fn refused(damage: impl FnOnce(&Mapped, &Mapped)) -> Unsupported<'static> {
    let (libc, loader) = (Mapped::new(LIBC), Mapped::new(LOADER));
    damage(&libc, &loader);
    recognised(&libc, &loader).expect_err("the damage was not noticed")
}

/// The same, for damage that leaves the release known.
fn reason(damage: impl FnOnce(&Mapped, &Mapped)) -> Reason<'static> {
    let unsupported = refused(damage);
    assert_eq!(unsupported.found, Found::Release(running_version()));
    unsupported.reason
}

#[test]
fn the_running_glibc_is_recognised() {
    let glibc = recognised(&Mapped::new(LIBC), &Mapped::new(LOADER)).unwrap();
    assert_eq!(glibc.name(), running_version());
}

/// What stands in the file, and not in memory, decides where the file can be read; `damage` changes what is read.
fn recognised_by_file(damage: fn(&mut [u8])) -> (Result<Glibc, Unsupported<'static>>, usize) {
    let (libc, loader) = (Mapped::new(LIBC), Mapped::new(LOADER));
    let file = std::fs::File::open(LIBC).unwrap();
    let reads = std::cell::Cell::new(0);
    let read = |bytes: &mut [u8], offset: u64| {
        reads.set(reads.get() + 1);
        let length = file.read_at(bytes, offset).ok()?;
        damage(&mut bytes[..length]);
        Some(length)
    };
    // SAFETY: as in `recognised`.
    let result = unsafe { recognise(&libc.library(), &loader.library(), Some(&read)) };
    (result, reads.get())
}

#[test]
fn few_pieces_of_the_file_are_read() {
    let (result, reads) = recognised_by_file(|_| ());
    assert_eq!(result.unwrap().name(), running_version());
    assert!((1..=4).contains(&reads), "{reads} reads");
}

#[test]
fn another_file_than_the_mapped_one_is_noticed() {
    let (result, _) = recognised_by_file(|bytes| bytes.fill(0x5a));
    assert!(matches!(result.expect_err("not noticed").reason, Reason::Field { .. }));
}

#[test]
fn what_cannot_be_read_from_the_file_is_read_in_memory() {
    let (libc, loader) = (Mapped::new(LIBC), Mapped::new(LOADER));
    for length in [None, Some(0), Some(3)] {
        let read = |_: &mut [u8], _: u64| length;
        // SAFETY: as in `recognised`.
        let glibc = unsafe { recognise(&libc.library(), &loader.library(), Some(&read)) };
        assert_eq!(glibc.unwrap().name(), running_version());
    }
}

/// Renames the newest version that libc.so.6 defines to `GLIBC_2.99`.
fn rename_newest_version(libc: &Mapped) {
    let library = libc.library();
    let newest = format!("GLIBC_{}", running_version());
    assert_eq!(newest.len(), "GLIBC_2.99".len());
    let definition = library.dynamic.versions.definitions().find(|definition| definition.name == newest.as_bytes());
    let name = definition.unwrap().name.as_ptr().addr();
    libc.write((name - libc.base) as u64, b"GLIBC_2.99");
}

#[test]
fn an_unknown_release_is_refused_in_one_line() {
    let unsupported = refused(|libc, loader| {
        rename_newest_version(libc);
        loader.set_size("_rtld_global", 5000);
        loader.set_size("_rtld_global_ro", 1000);
    });
    assert_eq!(
        unsupported.to_string(),
        "unsupported C library: found glibc 2.99 (_rtld_global 5000 bytes, _rtld_global_ro 1000 bytes); \
         supported: glibc 2.31, 2.35, 2.36, 2.39, 2.41, 2.43"
    );
}

#[test]
fn a_known_release_with_other_sizes_is_refused() {
    for name in ["_rtld_global", "_rtld_global_ro"] {
        let unsupported = refused(|_, loader| loader.set_size(name, loader.symbol(name).st_size + 8));
        assert!(matches!(unsupported.reason, Reason::Unknown { .. }), "{unsupported}");
    }
}

#[test]
fn a_private_import_that_the_loader_file_lacks_is_named() {
    let unsupported = refused(|libc, _| {
        let library = libc.library();
        let symbol = (1..100)
            .filter_map(|index| library.dynamic.symbols.get(index))
            .find(|symbol| library.dynamic.strings.get(symbol.st_name.into()) == Some(b"__tunable_get_val"));
        let name = library.dynamic.strings.get(symbol.unwrap().st_name.into()).unwrap();
        libc.write((name.as_ptr().addr() - libc.base) as u64, b"__tunable_get_xxx");
    });
    assert_eq!(unsupported.reason, Reason::PrivateImport(b"__tunable_get_xxx"));
    let line = unsupported.to_string();
    assert!(line.contains("libc.so.6 needs __tunable_get_xxx, which ld-linux-x86-64.so.2 does not define"), "{line}");
}

#[test]
fn every_description_for_debuggers_is_compared() {
    for name in [
        "_thread_db_pthread_list",
        "_thread_db_pthread_tid",
        "_thread_db_pthread_specific",
        "_thread_db_pthread_report_events",
        "_thread_db_link_map_l_tls_modid",
        "_thread_db_link_map_l_tls_offset",
        "_thread_db_rtld_global__dl_stack_used",
        "_thread_db_rtld_global__dl_stack_user",
        "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list",
    ] {
        let reason = reason(|libc, _| libc.write(libc.symbol(name).st_value + 8, &9999u32.to_le_bytes()));
        assert!(
            matches!(reason, Reason::Field { name: found, found: 9999, .. } if found == name),
            "{name}: {reason:?}"
        );
    }
    let name = "_thread_db_sizeof_pthread";
    let reason = reason(|libc, _| libc.write(libc.symbol(name).st_value, &9999u32.to_le_bytes()));
    assert!(matches!(reason, Reason::Field { name: found, found: 9999, .. } if found == name), "{reason:?}");
}

/// A field whose value in the file is known: the variable it is in, where, its bytes, a wrong value, and what it is called.
type StaticWord = (&'static str, usize, usize, u64, &'static str);

/// Those of the machine's release.
fn static_words(Offsets { global, read_only, .. }: &Offsets) -> Vec<StaticWord> {
    let mut words: Vec<StaticWord> = vec![
        ("_rtld_global", global.namespace_count, 8, 2, "_dl_nns"),
        ("_rtld_global", global.load_lock + 16, 4, 0, "the kind of _dl_load_lock"),
        ("_rtld_global", global.all_directories, 8, 1, "_dl_all_dirs"),
        ("_rtld_global", global.stack_permissions.offset(), 4, 6, "_dl_stack_flags"),
        ("_rtld_global", global.tls_max_module, 8, 1, "_dl_tls_max_dtv_idx"),
        ("_rtld_global", global.tls_slotinfo, 8, 1, "_dl_tls_dtv_slotinfo_list"),
        ("_rtld_global_ro", read_only.page_size, 8, 8192, "_dl_pagesize"),
        ("_rtld_global_ro", read_only.initial_directories, 8, 1, "_dl_init_all_dirs"),
        ("_rtld_global_ro", read_only.vdso_header, 8, 1, "_dl_sysinfo_dso"),
        ("_rtld_global_ro", read_only.vdso_map, 8, 1, "_dl_sysinfo_map"),
        ("_rtld_global_ro", read_only.vdso_functions, 8, 1, "a vDSO function"),
        ("_rtld_global_ro", read_only.vdso_functions + 32, 8, 1, "a vDSO function"),
        ("_rtld_global_ro", read_only.mcount, 8, 0x1000, "_dl_mcount"),
    ];
    let mut optional = |variable, offset: Option<usize>, name| {
        words.extend(offset.map(|offset| (variable, offset, 8, 1, name)));
    };
    optional("_rtld_global", global.stack_used, "_dl_stack_used");
    optional("_rtld_global", global.stack_user.map(|offset| offset + 8), "_dl_stack_user");
    optional("_rtld_global", global.stack_cache, "_dl_stack_cache");
    optional("_rtld_global_ro", read_only.find_object, "_dl_find_object");
    optional("_rtld_global_ro", read_only.vdso_getrandom, "_dl_vdso_getrandom");
    words
}

#[test]
fn every_static_word_is_compared() {
    let glibc = recognised(&Mapped::new(LIBC), &Mapped::new(LOADER)).unwrap();
    for (variable, offset, size, value, name) in static_words(glibc.offsets()) {
        let reason = reason(|_, loader| {
            loader.write(loader.symbol(variable).st_value + offset as u64, &value.to_le_bytes()[..size]);
        });
        assert!(
            matches!(reason, Reason::Field { name: found, found: number, .. } if found == name && number == value),
            "{name}: {reason:?}"
        );
    }
    let read_only = &glibc.offsets().read_only;
    for (offset, name) in [
        (Some(read_only.lookup_symbol), "_dl_lookup_symbol_x"),
        (Some(read_only.open), "_dl_open"),
        (Some(read_only.close), "_dl_close"),
        (read_only.catch_error, "_dl_catch_error"),
        (read_only.error_free, "_dl_error_free"),
        (Some(read_only.tls_get_addr_soft), "_dl_tls_get_addr_soft"),
    ] {
        let Some(offset) = offset else { continue };
        // The program headers' place: in the file, and no code.
        let reason = reason(|_, loader| {
            loader.write(loader.symbol("_rtld_global_ro").st_value + offset as u64, &64u64.to_le_bytes());
        });
        assert_eq!(reason, Reason::NotCode(name));
    }
}

#[test]
fn a_library_that_is_not_glibc_is_refused() {
    // The loader file in libc's place defines nothing newer than GLIBC_2.35.
    let loader = Mapped::new(LOADER);
    let unsupported = recognised(&loader, &loader).unwrap_err();
    assert_eq!(unsupported.found, Found::Definition(35));
    // And libc.so.6 in the loader file's place has no _rtld_global.
    let libc = Mapped::new(LIBC);
    let unsupported = recognised(&libc, &libc).unwrap_err();
    assert_eq!(unsupported.reason, Reason::NoSymbol("_rtld_global"));
}
