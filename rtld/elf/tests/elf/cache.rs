//! `/etc/ld.so.cache`: files by ldconfig in its three forms, files made by hand, damaged files.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use rtld_elf::cache::{Cache, compare};

use crate::support::{Scratch, bytes_of};

/// Where ldconfig is, for people who are not root.
const LDCONFIG: &str = "/sbin/ldconfig";

/// A cache of the system's libraries and of those in `directories`, in one of ldconfig's forms: "new", "old", "compat".
fn by_ldconfig(scratch: &Scratch, form: &str, directories: &[PathBuf]) -> Vec<u8> {
    let (config, cache) = (scratch.0.join("conf"), scratch.0.join(form));
    let lines: String = directories.iter().map(|directory| format!("{}\n", directory.display())).collect();
    fs::write(&config, lines + "include /etc/ld.so.conf\n").unwrap();
    let output =
        Command::new(LDCONFIG).arg("-X").arg("-f").arg(&config).arg("-C").arg(&cache).args(["-c", form]).output();
    let output = output.expect("ldconfig runs");
    assert!(output.status.success(), "ldconfig: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(cache).unwrap()
}

/// What `ldconfig -p` says of a cache: soname and path of each entry for this machine.
fn printed(scratch: &Scratch, form: &str) -> Vec<(String, String)> {
    let output = Command::new(LDCONFIG).arg("-p").arg("-C").arg(scratch.0.join(form)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let entry = |line: &str| {
        let (head, path) = line.trim().split_once(" => ")?;
        let (soname, kind) = head.split_once(" (")?;
        kind.starts_with("libc6,x86-64").then(|| (soname.to_owned(), path.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

#[test]
fn each_entry_of_ldconfig_is_found_in_each_form() {
    let scratch = Scratch::new("cache");
    for form in ["new", "old", "compat"] {
        let bytes = by_ldconfig(&scratch, form, &[]);
        let cache = Cache::parse(&bytes).unwrap_or_else(|| panic!("{form} is a cache"));
        let printed = printed(&scratch, form);
        assert!(printed.len() > 100, "ldconfig printed {} entries", printed.len());
        let entries: Vec<_> = cache.iter().collect();
        assert_eq!(entries.len(), printed.len(), "{form}");
        for (soname, path) in &printed {
            assert!(entries.contains(&(soname.as_bytes(), path.as_bytes())), "{form}: {soname}");
            let first = printed.iter().find(|(name, _)| name == soname).unwrap();
            let found = cache.lookup(soname.as_bytes(), |_| None).map(String::from_utf8_lossy);
            assert_eq!(found.as_deref(), Some(first.1.as_str()), "{form}: {soname}");
        }
        for absent in ["libc.so.6.1", "", "a", "zzz", "libc.so.", "libc.so.0000000000000000000007"] {
            assert_eq!(cache.lookup(absent.as_bytes(), |_| None), None, "{form}: {absent}");
        }
        // The order of the file is the order that is searched.
        for two in entries.windows(2) {
            assert_ne!(compare(two[0].0, two[1].0), Ordering::Less, "{form}: {two:?}");
        }
    }
}

#[test]
fn the_best_hardware_directory_wins() {
    let scratch = Scratch::new("hwcaps");
    let library = Path::new("/lib/x86_64-linux-gnu/libm.so.6");
    let base = scratch.0.join("lib");
    for place in ["", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3"] {
        fs::create_dir_all(base.join(place)).unwrap();
        fs::copy(library, base.join(place).join("libm.so.6")).unwrap();
    }
    for form in ["new", "compat"] {
        let bytes = by_ldconfig(&scratch, form, std::slice::from_ref(&base));
        let cache = Cache::parse(&bytes).unwrap();
        let found = |enabled: &[&str]| {
            let priority =
                |name: &[u8]| enabled.iter().position(|enabled| enabled.as_bytes() == name).map(|place| place as u32);
            let path = cache.lookup(b"libm.so.6", priority).unwrap();
            String::from_utf8(path.to_vec()).unwrap().strip_prefix(base.to_str().unwrap()).map(str::to_owned)
        };
        let text = |path: &str| Some(path.to_owned());
        assert_eq!(found(&["x86-64-v3", "x86-64-v2"]), text("/glibc-hwcaps/x86-64-v3/libm.so.6"), "{form}");
        assert_eq!(found(&["x86-64-v2", "x86-64-v3"]), text("/glibc-hwcaps/x86-64-v2/libm.so.6"), "{form}");
        assert_eq!(found(&["x86-64-v4", "x86-64-v2"]), text("/glibc-hwcaps/x86-64-v2/libm.so.6"), "{form}");
        assert_eq!(found(&[]), text("/libm.so.6"), "{form}");
    }
}

/// A cache of the new form: flags, soname, path, hwcap of each entry.
fn new_form(entries: &[(u32, &str, &str, u64)]) -> Vec<u8> {
    let strings = 48 + entries.len() * 24;
    let (mut records, mut text) = (Vec::new(), Vec::new());
    for (flags, soname, path, hwcap) in entries {
        let soname_at = (strings + text.len()) as u32;
        text.extend_from_slice(soname.as_bytes());
        text.push(0);
        let path_at = (strings + text.len()) as u32;
        text.extend_from_slice(path.as_bytes());
        text.push(0);
        records.extend([*flags, soname_at, path_at, 0, *hwcap as u32, (hwcap >> 32) as u32]);
    }
    let head = bytes_of(&[entries.len() as u32, text.len() as u32, 2, 0, 0, 0, 0]);
    [b"glibc-ld.so.cache1.1".as_slice(), &head, &bytes_of(&records), &text].concat()
}

#[test]
fn only_libraries_for_this_machine_count() {
    let bytes = new_form(&[
        (0x0303, "libb.so.10", "/ten", 0),
        (0x0303, "libb.so.9", "/nine", 0),
        (0x0003, "liba.so.1", "/i386", 0),
        (0x0303, "liba.so.1", "/haswell", 1 << 8),
        (0x0303, "liba.so.1", "/right", 0),
        (0x0303, "liba.so.1", "/second", 0),
        (0x0803, "liba.so.1", "/x32", 0),
        // A glibc-hwcaps entry without a list of names.
        (0x0303, "lib0.so", "/nowhere", 1 << 62),
    ]);
    let cache = Cache::parse(&bytes).unwrap();
    let found = |name: &str| cache.lookup(name.as_bytes(), |_| Some(0)).map(String::from_utf8_lossy);
    assert_eq!(found("liba.so.1").as_deref(), Some("/right"));
    assert_eq!(found("libb.so.9").as_deref(), Some("/nine"));
    assert_eq!(found("libb.so.10").as_deref(), Some("/ten"));
    assert_eq!((found("lib0.so"), found("libb.so.11"), found("libb.so")), (None, None, None));
    assert!(!cache.is_empty());
}

/// The list of hardware directories is believed only if all of it is what it should be.
#[test]
fn damaged_lists_of_hardware_directories() {
    let mut cache = new_form(&[(0x0303, "liba.so", "/v9", 1 << 62), (0x0303, "liba.so", "/base", 0)]);
    let name_at = cache.len() as u32;
    cache.extend_from_slice(b"v9\0");
    cache.resize(cache.len().next_multiple_of(4), 0);
    let directory = cache.len();
    cache[32..36].copy_from_slice(&(directory as u32).to_le_bytes());
    // Magic, one section: tag, flags, offset, size; the list of one name.
    let list = directory as u32 + 24;
    cache.extend_from_slice(&bytes_of(&[0xeaa4_2174u32, 1, 1, 0, list, 4, name_at]));
    let found = |bytes: &[u8]| {
        let priority = |name: &[u8]| (name == b"v9").then_some(0);
        String::from_utf8(Cache::parse(bytes).unwrap().lookup(b"liba.so", priority).unwrap().to_vec()).unwrap()
    };
    assert_eq!(found(&cache), "/v9");
    // Magic; number of sections; tag; offset and size of the list; offset of the name.
    for (word, value) in
        [(0, 1), (1, 0), (1, u32::MAX), (2, 0), (4, u32::MAX), (5, 0), (5, u32::MAX), (6, u32::MAX), (6, 48)]
    {
        let mut damaged = cache.clone();
        let place = directory + word * 4;
        damaged[place..place + 4].copy_from_slice(&u32::to_le_bytes(value));
        assert_eq!(found(&damaged), "/base", "word {word} = {value:#x}");
    }
}

#[test]
fn damage_gives_no_cache_or_no_entry() {
    let good = new_form(&[(0x0303, "libb.so", "/b", 0), (0x0303, "liba.so", "/a", 0)]);
    let with = |offset: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let lookup = |bytes: &[u8], name: &str| {
        Cache::parse(bytes).map(|cache| cache.lookup(name.as_bytes(), |_| None).map(<[u8]>::to_vec))
    };
    assert_eq!(lookup(&good, "liba.so"), Some(Some(b"/a".to_vec())));
    // Too many entries, big-endian, marked invalid.
    for bytes in
        [with(20, 3), with(20, u32::MAX), with(28, 3), with(28, 1), b"".to_vec(), good[..47].to_vec(), vec![0; 100]]
    {
        assert_eq!(lookup(&bytes, "liba.so"), None);
    }
    // Written before the byte order was.
    assert_eq!(lookup(&with(28, 0), "liba.so"), Some(Some(b"/a".to_vec())));
    // A soname or path outside, or without end: that entry is none, the other one stays.
    for bytes in [with(48 + 8, u32::MAX), with(48 + 8, good.len() as u32)] {
        assert_eq!(lookup(&bytes, "libb.so"), Some(None));
        assert_eq!(lookup(&bytes, "liba.so"), Some(Some(b"/a".to_vec())));
    }
    assert_eq!(lookup(&with(48 + 4, u32::MAX), "liba.so"), Some(Some(b"/a".to_vec())));
    assert_eq!(lookup(&good[..good.len() - 1], "liba.so"), Some(None));
    // Extensions that are nowhere, not aligned, or not extensions.
    for offset in [1, 2, 48, good.len() as u32, u32::MAX - 3] {
        assert_eq!(lookup(&with(32, offset), "liba.so"), Some(Some(b"/a".to_vec())));
    }
}

#[test]
fn numbers_in_names_are_numbers() {
    for (left, right, order) in [
        ("libx.so.9", "libx.so.10", Ordering::Less),
        ("libx.so.10", "libx.so.10", Ordering::Equal),
        ("libx.so.010", "libx.so.10", Ordering::Equal),
        ("libx1", "libxa", Ordering::Greater),
        ("libx", "libx1", Ordering::Less),
        ("libx.", "libx", Ordering::Greater),
        ("a", "b", Ordering::Less),
        ("", "", Ordering::Equal),
        ("a\u{e4}", "a", Ordering::Less),
    ] {
        assert_eq!(compare(left.as_bytes(), right.as_bytes()), order, "{left} {right}");
        assert_eq!(compare(right.as_bytes(), left.as_bytes()), order.reverse(), "{right} {left}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the bytes are, a lookup ends, and what it finds is in the file.
    #[test]
    fn damaged_caches_do_no_harm(
        form in 0usize..3,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..8),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let new = new_form(&[(0x0303, "libb.so", "/b", 0), (0x0303, "liba.so", "/a", 1 << 62), (0x0303, "liba.so", "/a", 0)]);
        let old = [b"ld.so-1.7.0\0".as_slice(), &bytes_of(&[1u32, 0x0303, 0, 8]), b"liba.so\0/a\0"].concat();
        let mut padded = old.clone();
        padded.truncate(28);
        padded.resize(32, 0);
        let mut bytes = [new.clone(), old, [padded, new].concat()][form].clone();
        for (place, value, in_head) in changes {
            let end = if in_head { 64.min(bytes.len()) } else { bytes.len() };
            let place = place.index(end);
            bytes[place] = value;
        }
        if cut {
            bytes.truncate(length.index(bytes.len() + 1));
        }
        if let Some(cache) = Cache::parse(&bytes) {
            for name in ["liba.so", "libb.so", "", "x"] {
                let found = cache.lookup(name.as_bytes(), |_| Some(1));
                prop_assert!(found.is_none_or(|path| bytes.as_ptr_range().contains(&path.as_ptr())));
            }
            prop_assert!(cache.iter().count() <= bytes.len());
        }
    }
}
