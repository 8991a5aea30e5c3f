//! The machine's own glibc is recognised, and each damage to what the checks look at is noticed.

use rtld_clib::{Found, Glibc, Reason, Unsupported, recognise};

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
    unsafe { recognise(&libc.library(), &loader.library()) }
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
            .find(|symbol| library.dynamic.strings.get(symbol.st_name.into()) == Some(b"_dl_fatal_printf"));
        let name = library.dynamic.strings.get(symbol.unwrap().st_name.into()).unwrap();
        libc.write((name.as_ptr().addr() - libc.base) as u64, b"_dl_fatal_xxxxxx");
    });
    assert_eq!(unsupported.reason, Reason::PrivateImport(b"_dl_fatal_xxxxxx"));
    let line = unsupported.to_string();
    assert!(line.contains("libc.so.6 needs _dl_fatal_xxxxxx, which ld-linux-x86-64.so.2 does not define"), "{line}");
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

/// Offsets of glibc 2.36, by its debug information (rtld_global, rtld_global_ro).
#[test]
fn every_static_word_is_compared() {
    assert_eq!(running_version(), "2.36", "the offsets in this test are those of glibc 2.36");
    for (structure, offset, value, name) in [
        ("_rtld_global", 2560, 2, "_dl_nns"),
        ("_rtld_global", 2568 + 16, 0, "the kind of _dl_load_lock"),
        ("_rtld_global", 2728, 1, "_dl_all_dirs"),
        ("_rtld_global", 4192, 6, "_dl_stack_flags"),
        ("_rtld_global", 4200, 1, "_dl_tls_max_dtv_idx"),
        ("_rtld_global", 4208, 1, "_dl_tls_dtv_slotinfo_list"),
        ("_rtld_global", 4264, 1, "_dl_stack_used"),
        ("_rtld_global", 4288, 1, "_dl_stack_user"),
        ("_rtld_global", 4296, 1, "_dl_stack_cache"),
        ("_rtld_global_ro", 24, 8192, "_dl_pagesize"),
        ("_rtld_global_ro", 712, 1, "_dl_init_all_dirs"),
        ("_rtld_global_ro", 720, 1, "_dl_sysinfo_dso"),
        ("_rtld_global_ro", 728, 1, "_dl_sysinfo_map"),
        ("_rtld_global_ro", 736, 1, "a vDSO function"),
        ("_rtld_global_ro", 768, 1, "a vDSO function"),
        ("_rtld_global_ro", 864, 1, "_dl_find_object"),
        ("_rtld_global_ro", 800, 0x1000, "_dl_mcount"),
    ] {
        let reason = reason(|_, loader| {
            let place = loader.symbol(structure).st_value + offset;
            let mut word: u64 = loader.image.read(place).unwrap();
            // Two are halves of words: an int in a mutex, an int beside a bool.
            word = if offset == 2584 || offset == 4192 { word & !0xffff_ffff | value } else { value };
            loader.write(place, &word.to_le_bytes());
        });
        assert!(
            matches!(reason, Reason::Field { name: found, found: number, .. } if found == name && number == value),
            "{name}: {reason:?}"
        );
    }
    for (offset, name) in [
        (808, "_dl_lookup_symbol_x"),
        (816, "_dl_open"),
        (824, "_dl_close"),
        (832, "_dl_catch_error"),
        (840, "_dl_error_free"),
        (848, "_dl_tls_get_addr_soft"),
    ] {
        // The program headers' place: in the file, and no code.
        let reason = reason(|_, loader| {
            loader.write(loader.symbol("_rtld_global_ro").st_value + offset, &64u64.to_le_bytes());
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
