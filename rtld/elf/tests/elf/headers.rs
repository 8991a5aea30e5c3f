//! The ELF header: what ld-linux says of a damaged one, in the same run, is what we say.

use std::fs;
use std::process::Command;

use rtld_elf::header::{self, HEADER_SIZE, HeaderError};

use crate::support::Scratch;

const LD_LINUX: &str = "/lib64/ld-linux-x86-64.so.2";

/// Bytes that say much as a version, class, encoding or ABI.
const VALUES: [u8; 10] = [0, 1, 2, 3, 4, 5, 9, 64, 97, 255];

/// What ld-linux says of a file: `None` if it starts it.
fn ld_linux(file: &std::path::Path, bytes: &[u8]) -> Option<String> {
    fs::write(file, bytes).unwrap();
    let output = Command::new(LD_LINUX).arg(file).env("LC_ALL", "C").output().expect("ld-linux runs");
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = file.display();
    let prefix = format!("{name}: error while loading shared libraries: {name}: ");
    let reason = text.strip_prefix(&prefix).unwrap_or_else(|| panic!("ld-linux said {text:?}, {:?}", output.status));
    Some(reason.trim_end().to_owned())
}

/// `true`, with byte `offset` of its header changed.
fn changed(offset: usize, value: u8) -> Vec<u8> {
    let mut bytes = fs::read("/usr/bin/true").unwrap();
    bytes[offset] = value;
    bytes
}

fn ours(bytes: &[u8]) -> Option<String> {
    header::check(bytes, Some(bytes.len() as u64)).err().map(|error| error.to_string())
}

/// Where each field lies that is compared; e_machine is not: see `machines_are_named`.
const OFFSETS: [usize; 24] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 20, 21, 23, 34, 38, 39, 54, 55, 0x3a, 0x3e];

#[test]
fn damaged_headers_are_refused_in_the_words_of_ld_linux() {
    let scratch = Scratch::new("headers");
    let (mut refused, mut differences) = (0, Vec::new());
    let each = OFFSETS.into_iter().flat_map(|offset| VALUES.map(|value| (offset, value, changed(offset, value))));
    // EI_ABIVERSION once more, with EI_OSABI of GNU/Linux.
    let of_gnu = VALUES.map(|value| {
        let mut bytes = changed(7, 3);
        bytes[8] = value;
        (8, value, bytes)
    });
    for (offset, value, bytes) in each.chain(of_gnu) {
        let (ours, theirs) = (ours(&bytes), ld_linux(&scratch.0.join("file"), &bytes));
        refused += u32::from(theirs.is_some());
        if ours != theirs {
            differences.push(format!("byte {offset} = {value}: {ours:?}, ld-linux {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(refused > 100, "ld-linux refused only {refused}");
}

/// glibc reads a file's first 832 bytes in one go; what is shorter than the header is "too short", whatever it holds.
#[test]
fn short_files_are_refused_in_the_words_of_ld_linux() {
    let scratch = Scratch::new("short");
    let whole = fs::read("/usr/bin/true").unwrap();
    for length in [0, 1, 4, 16, 63, 64, 100] {
        let bytes = &whole[..length];
        assert_eq!(ours(bytes), ld_linux(&scratch.0.join("file"), bytes), "{length} bytes");
    }
    for length in [0, 3, 64, 200] {
        let bytes = vec![b'#'; length];
        assert_eq!(ours(&bytes), ld_linux(&scratch.0.join("file"), &bytes), "{length} bytes of text");
    }
}

/// Ours alone: ld-linux passes over such a file as if it were not there, and people look for it in vain.
#[test]
fn machines_are_named() {
    let text = |machine: u16| {
        let mut bytes = fs::read("/usr/bin/true").unwrap();
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        ours(&bytes).unwrap()
    };
    assert_eq!(text(183), "wrong ELF machine: AArch64 (need x86-64)");
    assert_eq!(text(243), "wrong ELF machine: RISC-V (need x86-64)");
    assert_eq!(text(258), "wrong ELF machine: LoongArch (need x86-64)");
    assert_eq!(text(0xbeef), "wrong ELF machine: 0xbeef (need x86-64)");
}

#[test]
fn the_header_of_true_says_where_its_program_headers_are() {
    let bytes = fs::read("/usr/bin/true").unwrap();
    let header = header::check(&bytes[..HEADER_SIZE], None).unwrap();
    assert_eq!(header.program_header_offset, 64);
    assert_eq!(header.kind, header::FileKind::SharedObject);
    assert!(header.program_header_count > 5);
    // An offset near 2^64 is refused even if the size of the file is not known.
    let mut wrapping = bytes.clone();
    wrapping[32..40].copy_from_slice(&(u64::MAX - 8).to_le_bytes());
    assert_eq!(header::check(&wrapping, None), Err(HeaderError::ProgramHeaderOffset));
}
