//! What is stored into the passive loader file: exactly the words that are meant, nothing beside them.
//!
//! Where the words lie is what the table says of the machine's release, which `layout` compares with its debug information.

use std::collections::BTreeMap;

use rtld_clib::offsets::StackPermissions;
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

fn machines_own() -> (Mapped, Glibc) {
    let loader = Mapped::new(LOADER);
    let glibc = recognised(&Mapped::new(LIBC), &loader).unwrap();
    (loader, glibc)
}

/// The field that says whether stacks are executable, and what it holds for a stack with these `p_flags`.
fn stack_permissions(glibc: &Glibc, flags: u64) -> (usize, u64) {
    match glibc.offsets().global.stack_permissions {
        StackPermissions::SegmentFlags(offset) => (offset, flags),
        // PROT_READ is PF_R's bit and the other way round, as PROT_EXEC and PF_X.
        StackPermissions::ProtectionFlags(offset) => (offset, flags >> 2 & 1 | flags & 2 | (flags & 1) << 2),
    }
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
    let (loader, glibc) = machines_own();
    let global_address = loader.base as u64 + loader.symbol("_rtld_global").st_value;
    let mut global = BTreeMap::new();
    let read_only = changes(&loader, "_rtld_global_ro", || {
        global = changes(&loader, "_rtld_global", || glibc.publish(&FACTS).unwrap());
    });
    let offsets = glibc.offsets();
    let (stack, permissions) = stack_permissions(&glibc, 6);
    let mut expected = BTreeMap::from([
        (0, 0x5000_0000),
        (8, 5),
        (16, 0x5000_0000 + offsets.link_map.search_list as u64),
        (offsets.global.all_directories, 0x6000_0000),
        (stack, permissions),
    ]);
    // Lists that are empty: both pointers lead to the list itself.
    let lists = [offsets.global.stack_used, offsets.global.stack_user, offsets.global.stack_cache];
    for offset in lists.into_iter().flatten() {
        expected.extend([(offset, global_address + offset as u64), (offset + 8, global_address + offset as u64)]);
    }
    assert_eq!(global, expected);
    let places = &offsets.read_only;
    let mut expected = BTreeMap::from([
        (places.platform, 0x7000_0200),
        (places.platform + 8, 6),
        (places.page_size, 0x4000),
        (places.clock_ticks, 250),
        (places.hwcap, 0x1111_2222),
        (places.auxv, 0x7000_0100),
        (places.initial_directories, 0x6000_0000),
        (places.hwcap2, 2),
    ]);
    expected.extend(places.minimum_signal_stack.map(|offset| (offset, 3632)));
    expected.extend(places.tls_static_size.map(|offset| (offset, 0x1980)));
    expected.extend(places.tls_static_align.map(|offset| (offset, 64)));
    assert_eq!(read_only, expected);
    assert_eq!(loader.words("_dl_argv"), [0x7000_0008]);
    assert_eq!(loader.words("__libc_stack_end"), [0x7000_0000]);
    let secure: Option<u32> = loader.image.read(loader.symbol("__libc_enable_secure").st_value);
    assert_eq!(secure, Some(1));
}

#[test]
fn what_the_kernel_did_not_say_keeps_glibcs_value() {
    let (loader, glibc) = machines_own();
    let facts = ProcessFacts { platform: None, ..FACTS };
    let read_only = changes(&loader, "_rtld_global_ro", || glibc.publish(&facts).unwrap());
    let platform = glibc.offsets().read_only.platform;
    for offset in [platform, platform + 8] {
        assert!(!read_only.contains_key(&offset), "offset {offset}");
    }
}

#[test]
fn the_callbacks_are_published() {
    let (loader, glibc) = machines_own();
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
    let places = &glibc.offsets().read_only;
    let mut expected =
        BTreeMap::from([(places.lookup_symbol, 1), (places.open, 2), (places.close, 3), (places.tls_get_addr_soft, 4)]);
    expected.extend(places.find_object.map(|offset| (offset, 5)));
    assert_eq!(changed, expected);
    let callbacks = Callbacks { catch_error: Some(6), error_free: Some(7), ..callbacks };
    let changed = changes(&loader, "_rtld_global_ro", || glibc.publish_callbacks(&callbacks).unwrap());
    let expected = places.catch_error.map(|offset| (offset, 6)).into_iter();
    assert_eq!(changed, expected.chain(places.error_free.map(|offset| (offset, 7))).collect());
}

#[test]
fn the_tls_modules_are_published() {
    let (loader, glibc) = machines_own();
    let facts = TlsFacts { slotinfo: 0x1000, max_module: 4, static_count: 3, generation: 1, initial_dtv: 0x2000 };
    let changed = changes(&loader, "_rtld_global", || glibc.publish_tls(&facts).unwrap());
    let places = &glibc.offsets().global;
    let expected = BTreeMap::from([
        (places.tls_max_module, 4),
        (places.tls_slotinfo, 0x1000),
        (places.tls_static_count, 3),
        (places.initial_dtv, 0x2000),
        (places.tls_generation, 1),
    ]);
    assert_eq!(changed, expected);
}

#[test]
fn the_vdso_is_published() {
    let (loader, glibc) = machines_own();
    // Any library serves that defines the names: the running process's vDSO.
    let header = vdso_header();
    let vdso = running_vdso(header);
    let changed = changes(&loader, "_rtld_global_ro", || glibc.publish_vdso(&vdso, 0x3000, header).unwrap());
    let function = |name: &str| vdso.address(name.as_bytes()).unwrap() as u64;
    let places = &glibc.offsets().read_only;
    let mut expected = BTreeMap::from([(places.vdso_header, header as u64), (places.vdso_map, 0x3000)]);
    let names = ["__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu", "__vdso_clock_getres"];
    expected.extend(names.iter().enumerate().map(|(index, name)| (places.vdso_functions + 8 * index, function(name))));
    // Only newer kernels have it.
    let random = places.vdso_getrandom.zip(vdso.address(b"__vdso_getrandom"));
    expected.extend(random.map(|(offset, address)| (offset, address as u64)));
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
    let (loader, glibc) = machines_own();
    glibc.set_stack_permissions(6).unwrap();
    let changed = changes(&loader, "_rtld_global", || glibc.set_stack_permissions(7).unwrap());
    assert_eq!(changed, BTreeMap::from([stack_permissions(&glibc, 7)]));
}
