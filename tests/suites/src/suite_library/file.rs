//! Facts of the files: which symbols libsigblock exports, what it needs, and that the words' instructions assemble for the other
//! architecture.

use super::Library;
use crate::harness::{Context, Report};
use anyhow::{Context as _, Result, bail, ensure};
use object::elf::{DT_NEEDED, STB_LOCAL};
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _, Sym as _};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What it exports besides the functions of the C library that sections replace.
const OTHERS: [&str; 12] = [
    "dl_iterate_phdr",
    "dlopen",
    "dlsym",
    "dlclose",
    "sigblock_enter",
    "sigblock_leave",
    "sigblock_word",
    "sigblock_backend",
    "sigblock_mask",
    "sigblock_counts",
    "sigblock_register",
    "sigblock_release",
];

/// Checks all of it.
pub fn check(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let bytes = fs::read(&library.shared)?;
    let file: ElfFile64<'_, object::Endianness> = ElfFile64::parse(&*bytes)?;
    let (endian, header) = (file.endian(), file.elf_header());
    let mut got = BTreeSet::new();
    let symbols = header.sections(endian, &*bytes)?.symbols(endian, &*bytes, object::elf::SHT_DYNSYM)?;
    for symbol in symbols.iter().skip(1) {
        if !symbol.is_undefined(endian) && symbol.st_bind() != STB_LOCAL {
            got.insert(String::from_utf8_lossy(symbol.name(endian, symbols.strings())?).into_owned());
        }
    }
    let replaced = sigblock::REPLACED.iter().map(|name| String::from_utf8_lossy(name).into_owned());
    let want: BTreeSet<String> = OTHERS.map(str::to_owned).into_iter().chain(replaced).collect();
    report.equal("exports what it must and nothing else", got, want);
    let header_text = fs::read_to_string(context.root.join("sigblock/include/sigblock.h"))?;
    let undeclared: Vec<_> = OTHERS
        .iter()
        .filter(|name| name.starts_with("sigblock_") && !header_text.contains(&format!("{name}(")))
        .collect();
    report.equal("functions that sigblock.h does not declare", undeclared, Vec::<&&str>::new());
    let sections = file.elf_section_table();
    let (entries, strings) = sections.dynamic(endian, &*bytes)?.context("no dynamic section")?;
    let strings = sections.strings(endian, &*bytes, strings)?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let needed: Vec<_> =
        needed.filter_map(|entry| entry.string(endian, strings).ok()).map(String::from_utf8_lossy).collect();
    report.equal("needs the C library alone", needed, vec!["libc.so.6"]);
    for (name, operation) in [("enter", "add"), ("leave", "sub")] {
        let result = assembles(context, name, operation).map_err(|error| format!("{error:#}"));
        report.check(format!("aarch64: {name} is one exclusive read-modify-write"), result);
    }
    Ok(())
}

/// Assembles the instructions for aarch64, with registers in place of operands, and looks at what came out.
fn assembles(context: &Context, name: &str, operation: &str) -> Result<()> {
    let text = fs::read_to_string(context.root.join(format!("sigblock/src/word/aarch64_{name}.s")))?;
    let operands = [("{word}", "x0"), ("{fresh:w}", "w1"), ("{failed:w}", "w2"), ("{step}", "16")];
    let text = operands.iter().fold(text, |text, (operand, register)| text.replace(operand, register));
    ensure!(!text.contains('{'), "operands of another name:\n{text}");
    let source = context.work.join(format!("{name}.s"));
    fs::write(&source, format!(".text\n{text}"))?;
    let object = source.with_extension("o");
    let mut clang = Command::new("clang");
    clang.arg("--target=aarch64-linux-gnu").arg("-c").arg(&source).arg("-o").arg(&object);
    let output = clang.output().context("clang (Debian package clang)")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let code = code(&object)?;
    let (add, kind) = match operation {
        "add" => (0x1100_4021, "add w1, w1, #16"),
        _ => (0x5100_4021, "sub w1, w1, #16"),
    };
    // ldxr w1, [x0]; ...; stxr w2, w1, [x0]; cbnz w2, -12 (Arm Architecture Reference Manual, C6.2).
    let want: [u32; 4] = [0x885f_7c01, add, 0x8802_7c01, 0x35ff_ffa2];
    ensure!(code == want, "expected {want:x?} ({kind})\ngot      {code:x?}");
    Ok(())
}

fn code(object: &Path) -> Result<Vec<u32>> {
    use object::read::{Object as _, ObjectSection as _};
    let bytes = fs::read(object)?;
    let file = object::File::parse(&*bytes)?;
    if file.architecture() != object::Architecture::Aarch64 {
        bail!("{} is for {:?}", object.display(), file.architecture());
    }
    let data = file.section_by_name(".text").context("no .text")?.data()?;
    Ok(data.chunks_exact(4).filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?))).collect())
}
