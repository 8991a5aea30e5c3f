//! What is stored into the passive loader file: exactly the words that are meant, nothing beside them.
//!
//! The offsets are those of glibc 2.36, by its debug information.

use std::collections::BTreeMap;

use rtld_clib::{Callbacks, Glibc, Library, ProcessFacts, TlsFacts};

use crate::mapped::{LIBC, LOADER, Mapped};
use crate::recognise::recognised;

/// The words of a variable that `act` changes, by offset.
fn changes(loader: &Mapped, name: &str, act: impl FnOnce()) -> BTreeMap<usize, u64> {
    let before = loader.words(name);
    act();
    let pairs = before.into_iter().zip(loader.words(name)).enumerate();
    pairs.filter(|(_, (before, after))| before != after).map(|(index, (_, after))| (8 * index, after)).collect()
}

fn glibc_2_36() -> (Mapped, Glibc) {
    let loader = Mapped::new(LOADER);
    let glibc = recognised(&Mapped::new(LIBC), &loader).unwrap();
    assert_eq!(glibc.name(), "2.36", "the offsets in this test are those of glibc 2.36");
    (loader, glibc)
}

const FACTS: ProcessFacts = ProcessFacts {
    argv: 0x7000_0008,
    initial_stack: 0x7000_0000,
    auxv: 0x7000_0100,
    page_size: 0x4000,
    minimum_signal_stack: 3632,
    clock_ticks: 250,
    hwcap: 0x1111_2222,
    hwcap2: 2,
    platform: Some((0x7000_0200, 6)),
    secure: true,
    stack_flags: 6,
    tls_static_size: 0x1980,
    tls_static_align: 64,
    main_map: 0x5000_0000,
    object_count: 5,
    empty_directory: 0x6000_0000,
};

#[test]
fn the_process_is_published() {
    let (loader, glibc) = glibc_2_36();
    let global_address = loader.base as u64 + loader.symbol("_rtld_global").st_value;
    let mut global = BTreeMap::new();
    let read_only = changes(&loader, "_rtld_global_ro", || {
        global = changes(&loader, "_rtld_global", || glibc.publish(&FACTS).unwrap());
    });
    let list = |offset: u64| global_address + offset;
    let expected = BTreeMap::from([
        (0, 0x5000_0000),
        (8, 5),
        (16, 0x5000_0000 + 728),
        (2728, 0x6000_0000),
        (4192, 6),
        (4264, list(4264)),
        (4272, list(4264)),
        (4280, list(4280)),
        (4288, list(4280)),
        (4296, list(4296)),
        (4304, list(4296)),
    ]);
    assert_eq!(global, expected);
    let expected = BTreeMap::from([
        (8, 0x7000_0200),
        (16, 6),
        (24, 0x4000),
        (32, 3632),
        (64, 250),
        (96, 0x1111_2222),
        (104, 0x7000_0100),
        (672, 0x1980),
        (680, 64),
        (712, 0x6000_0000),
        (776, 2),
    ]);
    assert_eq!(read_only, expected);
    assert_eq!(loader.words("_dl_argv"), [0x7000_0008]);
    assert_eq!(loader.words("__libc_stack_end"), [0x7000_0000]);
    let secure: Option<u32> = loader.image.read(loader.symbol("__libc_enable_secure").st_value);
    assert_eq!(secure, Some(1));
}

#[test]
fn what_the_kernel_did_not_say_keeps_glibcs_value() {
    let (loader, glibc) = glibc_2_36();
    let facts = ProcessFacts { platform: None, ..FACTS };
    let read_only = changes(&loader, "_rtld_global_ro", || glibc.publish(&facts).unwrap());
    for offset in [8, 16] {
        assert!(!read_only.contains_key(&offset), "offset {offset}");
    }
}

#[test]
fn the_callbacks_are_published() {
    let (loader, glibc) = glibc_2_36();
    let callbacks = Callbacks {
        lookup_symbol: 1,
        open: 2,
        close: 3,
        tls_get_addr_soft: 4,
        find_object: 5,
        catch_error: None,
        error_free: None,
        initialise_static_tls: 8,
    };
    let changed = changes(&loader, "_rtld_global_ro", || glibc.publish_callbacks(&callbacks).unwrap());
    assert_eq!(changed, BTreeMap::from([(808, 1), (816, 2), (824, 3), (848, 4), (864, 5)]));
    let callbacks = Callbacks { catch_error: Some(6), error_free: Some(7), ..callbacks };
    let changed = changes(&loader, "_rtld_global_ro", || glibc.publish_callbacks(&callbacks).unwrap());
    assert_eq!(changed, BTreeMap::from([(832, 6), (840, 7)]));
}

#[test]
fn the_tls_modules_are_published() {
    let (loader, glibc) = glibc_2_36();
    let facts = TlsFacts { slotinfo: 0x1000, max_module: 4, static_count: 3, generation: 1, initial_dtv: 0x2000 };
    let changed = changes(&loader, "_rtld_global", || glibc.publish_tls(&facts).unwrap());
    assert_eq!(changed, BTreeMap::from([(4200, 4), (4208, 0x1000), (4216, 3), (4240, 0x2000), (4248, 1)]));
}

#[test]
fn the_vdso_is_published() {
    let (loader, glibc) = glibc_2_36();
    // Any library serves that defines the names: the running process's vDSO.
    let header = vdso_header();
    let vdso = running_vdso(header);
    let changed = changes(&loader, "_rtld_global_ro", || glibc.publish_vdso(&vdso, 0x3000, header).unwrap());
    let function = |name: &str| vdso.address(name.as_bytes()).unwrap() as u64;
    let expected = BTreeMap::from([
        (720, header as u64),
        (728, 0x3000),
        (736, function("__vdso_clock_gettime")),
        (744, function("__vdso_gettimeofday")),
        (752, function("__vdso_time")),
        (760, function("__vdso_getcpu")),
        (768, function("__vdso_clock_getres")),
    ]);
    assert_eq!(changed, expected);
}

fn vdso_header() -> usize {
    // AT_SYSINFO_EHDR
    let address = std::fs::read("/proc/self/auxv").unwrap();
    let words: Vec<u64> = address.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    words.chunks_exact(2).find(|pair| pair[0] == 33).expect("the kernel gave no vDSO")[1] as usize
}

fn running_vdso(header: usize) -> Library<'static> {
    let first: *const u8 = std::ptr::with_exposed_provenance(header);
    // SAFETY: the kernel mapped the vDSO there: at least a page, never unmapped.
    let prefix = unsafe { std::slice::from_raw_parts(first, 64) };
    let file = rtld_elf::header::check(prefix, None).unwrap();
    let headers = first.wrapping_add(file.program_header_offset as usize);
    // SAFETY: the headers lie on the first page.
    let headers = unsafe { rtld_elf::Table::from_raw(headers, file.program_header_count.into()) };
    let layout = rtld_elf::Layout::new(headers, file.program_header_offset, 4096, None).unwrap();
    let base = header - layout.lowest as usize;
    // SAFETY: the kernel mapped all of it, for good.
    let image = unsafe { rtld_elf::Image::loaded(std::ptr::with_exposed_provenance(base), headers) };
    let dynamic = rtld_elf::Dynamic::digest(&image, layout.dynamic.unwrap()).unwrap();
    Library { base, image, dynamic: Box::leak(Box::new(dynamic)) }
}

#[test]
fn stacks_become_executable_when_told_so() {
    let (loader, glibc) = glibc_2_36();
    glibc.set_stack_permissions(6).unwrap();
    let changed = changes(&loader, "_rtld_global", || glibc.set_stack_permissions(7).unwrap());
    assert_eq!(changed, BTreeMap::from([(4192, 7)]));
}
