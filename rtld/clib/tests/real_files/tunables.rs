//! The tunables of the machine's own loader file, set by an environment, against what ld-linux makes of the same environment.

use std::collections::BTreeMap;
use std::process::Command;

use crate::mapped::{LOADER, Mapped};
use rtld_clib::Tunables;

/// Values by name, of those that the processor has no part in.
type Values = BTreeMap<String, u64>;

fn depends_on_processor(name: &str) -> bool {
    name.starts_with("glibc.cpu.")
}

/// `ld.so --list-tunables` with this environment alone: all names, the numbers, and the warnings.
fn from_ld_linux(loader: &str, environment: &[(&str, &str)]) -> (Vec<String>, Values, String) {
    let output =
        Command::new(loader).arg("--list-tunables").env_clear().envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{loader} --list-tunables: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names = Vec::new();
    let mut values = Values::new();
    for line in text.lines() {
        let (name, rest) = line.split_once(':').unwrap();
        names.push(name.to_string());
        let number = rest.split_whitespace().next().unwrap_or("");
        let value = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => number.parse::<i64>().ok().map(|value| value as u64),
        };
        if let Some(value) = value.filter(|_| !depends_on_processor(name)) {
            values.insert(name.to_string(), value);
        }
    }
    names.sort();
    (names, values, String::from_utf8(output.stderr).unwrap())
}

fn found(loader: &Mapped) -> Tunables<'static> {
    // SAFETY: the file is laid out in writable memory of its own that is never freed.
    unsafe { Tunables::find(&loader.library()) }.expect("no list of tunables found")
}

/// What is kept of a text, so that it stays for the test.
fn keep(text: &[u8]) -> Option<usize> {
    let mut copy = text.to_owned();
    copy.push(0);
    Some(copy.leak().as_ptr().expose_provenance())
}

fn from_list(loader: &str, environment: &[(&str, &str)]) -> (Vec<String>, Values, String) {
    let list = found(&Mapped::new(loader));
    let bytes = environment.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut warnings = Vec::new();
    list.apply(bytes, keep, |mistake| warnings.extend(mistake.line().concat())).unwrap();
    let mut names = Vec::new();
    let mut values = Values::new();
    for tunable in list.iter() {
        let name = String::from_utf8(tunable.name().unwrap().to_vec()).unwrap();
        names.push(name.clone());
        if !tunable.is_text().unwrap() && !depends_on_processor(&name) {
            values.insert(name, tunable.number().unwrap());
        }
    }
    names.sort();
    (names, values, String::from_utf8(warnings).unwrap())
}

fn compare(environment: &[(&str, &str)]) -> Values {
    let (our_names, ours, our_warnings) = from_list(LOADER, environment);
    let (their_names, theirs, their_warnings) = from_ld_linux(LOADER, environment);
    assert_eq!(our_names, their_names, "{environment:?}");
    assert_eq!(ours, theirs, "{environment:?}");
    assert_eq!(our_warnings, their_warnings, "{environment:?}");
    ours
}

#[test]
fn all_tunables_are_found_with_their_defaults() {
    let values = compare(&[]);
    assert_eq!(values.get("glibc.rtld.optional_static_tls"), Some(&512));
}

#[test]
fn glibc_tunables_sets_several() {
    let values =
        compare(&[("GLIBC_TUNABLES", "glibc.malloc.perturb=165:glibc.rtld.nns=0x8:glibc.malloc.tcache_count=010")]);
    assert_eq!(values.get("glibc.malloc.perturb"), Some(&165));
    assert_eq!(values.get("glibc.rtld.nns"), Some(&8));
    assert_eq!(values.get("glibc.malloc.tcache_count"), Some(&8));
}

#[test]
fn older_variables_set_their_tunable() {
    let values = compare(&[("MALLOC_PERTURB_", "165"), ("MALLOC_ARENA_MAX", "3"), ("MALLOC_TOP_PAD_", "4096")]);
    assert_eq!(values.get("glibc.malloc.perturb"), Some(&165));
    assert_eq!(values.get("glibc.malloc.arena_max"), Some(&3));
}

#[test]
fn glibc_tunables_wins_over_the_older_variable_in_either_order() {
    // The test passes both orders to the list; ld-linux gets whichever order the process's environment has.
    let (alias, tunables) = (("MALLOC_PERTURB_", "1"), ("GLIBC_TUNABLES", "glibc.malloc.perturb=2"));
    for environment in [[alias, tunables], [tunables, alias]] {
        assert_eq!(compare(&environment).get("glibc.malloc.perturb"), Some(&2));
    }
}

#[test]
fn what_is_wrong_is_ignored() {
    for text in [
        "glibc.malloc.perturb=256",
        "glibc.malloc.perturb=-1",
        "glibc.malloc.perturb=0x100000001",
        "glibc.malloc.perturb",
        "glibc.malloc.perturb=",
        "glibc.malloc.perturb:glibc.rtld.nns=8",
        "glibc.malloc.perturb=7=8",
        "glibc.malloc.perturb=7:",
        ":glibc.malloc.perturb=7",
        "glibc.malloc.perturb=7::glibc.rtld.nns=8",
        "glibc.malloc.perturb=9x",
        "glibc.malloc.perturb=7:glibc.malloc.perturb=8",
        "glibc.malloc.perturb=7:glibc.malloc.perturb=800",
        "glibc.no.such=7:glibc.malloc.perturb=8",
        "glibc.malloc.arena_max=0",
        "glibc.malloc.arena_max=18446744073709551615",
        "glibc.malloc.arena_max=18446744073709551609",
        "glibc.malloc.arena_max=99999999999999999999",
        "glibc.pthread.mutex_spin_count=-5",
        "glibc.malloc.perturb=7z:glibc.malloc.arena_max=3z",
        "malloc.perturb=7",
        "=",
        "",
    ] {
        compare(&[("GLIBC_TUNABLES", text)]);
    }
    for text in ["256", "-1", "", "x", " 7", "7 ", "+7", "07", "08"] {
        compare(&[("MALLOC_PERTURB_", text)]);
    }
}

#[test]
fn a_text_is_kept_and_a_missing_copy_changes_nothing() {
    let list = found(&Mapped::new(LOADER));
    let setting = || [(&b"GLIBC_TUNABLES"[..], &b"glibc.cpu.hwcaps=-AVX2_Usable:glibc.rtld.nns=5"[..])].into_iter();
    list.apply(setting(), |_| None, |_| {}).unwrap();
    let hwcaps = list.find_name(b"glibc.cpu.hwcaps").unwrap();
    assert!(!hwcaps.is_set().unwrap());
    list.apply(setting(), keep, |_| {}).unwrap();
    assert!(hwcaps.is_set().unwrap());
    let address = std::ptr::with_exposed_provenance(hwcaps.number().unwrap() as usize);
    // SAFETY: `keep` made it, and it is never freed.
    let text = unsafe { std::ffi::CStr::from_ptr(address) };
    assert_eq!(text, c"-AVX2_Usable");
    assert_eq!(list.value(b"glibc.rtld.nns"), Some(5));
    assert_eq!(list.value(b"glibc.cpu.hwcaps"), None);
    assert_eq!(list.value(b"glibc.no.such"), None);
}
