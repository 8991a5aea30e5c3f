//! Suite `artifact`: facts of the loader's own file, read from its segments and dynamic section as a kernel or another loader
//! would, and from its section headers where the fact is about sections. May not run the loader; people's tool it may.

use crate::harness::{Context, Report, always};
use anyhow::Context as _;
use object::elf::{
    DT_FLAGS_1, DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NEEDED, DT_PLTRELSZ, DT_SONAME, DT_TEXTREL, EM_X86_64, ET_DYN,
    FileHeader64, PF_W, PF_X, PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_TLS, R_X86_64_RELATIVE, SHN_UNDEF,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

type Header = FileHeader64<object::Endianness>;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let bytes = fs::read(&context.artifact)?;
    let header = Header::parse(&*bytes).context("the loader is not a 64-bit ELF file")?;
    let endian = header.endian()?;
    report.equal("file type is ET_DYN", header.e_type(endian), ET_DYN);
    report.equal("machine is x86-64", header.e_machine(endian), EM_X86_64);
    let mode = fs::metadata(&context.artifact)?.permissions().mode() & 0o7777;
    report.equal("mode is 0755", format!("{mode:o}"), "755");
    segments(report, header, &bytes)?;
    dynamic(report, header, &bytes)?;
    sections(report, header, &bytes)?;
    tool(context, report)
}

fn segments(report: &mut Report, header: &Header, bytes: &[u8]) -> anyhow::Result<()> {
    let endian = header.endian()?;
    let segments = header.program_headers(endian, bytes)?;
    let has = |kind| segments.iter().any(|segment| segment.p_type(endian) == kind);
    report.equal("no PT_INTERP", has(PT_INTERP), false);
    report.equal("no PT_TLS: the thread pointer is not ours to use", has(PT_TLS), false);
    let both = PF_W | PF_X;
    let loads = || segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    report.equal("has PT_LOAD", loads().count() > 0, true);
    report.equal(
        "no segment is writable and executable",
        loads().any(|segment| segment.p_flags(endian) & both == both),
        false,
    );
    let stack = segments.iter().find(|segment| segment.p_type(endian) == PT_GNU_STACK);
    report.equal("PT_GNU_STACK asks for no execution", stack.map(|segment| segment.p_flags(endian) & PF_X), Some(0));
    Ok(())
}

fn dynamic(report: &mut Report, header: &Header, bytes: &[u8]) -> anyhow::Result<()> {
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let (entries, link) = sections.dynamic(endian, bytes)?.context("no dynamic section")?;
    let strings = sections.strings(endian, bytes, link)?;
    let find = |tag| entries.iter().find(|entry| entry.tag32(endian) == Some(tag));
    for (tag, name) in
        [(DT_NEEDED, "DT_NEEDED"), (DT_JMPREL, "DT_JMPREL"), (DT_PLTRELSZ, "DT_PLTRELSZ"), (DT_TEXTREL, "DT_TEXTREL")]
    {
        report.equal(format!("no {name}"), find(tag).is_some(), false);
    }
    for (tag, name) in [(DT_HASH, "DT_HASH"), (DT_GNU_HASH, "DT_GNU_HASH"), (DT_SONAME, "DT_SONAME")] {
        report.equal(format!("has {name}"), find(tag).is_some(), true);
    }
    let soname = find(DT_SONAME).and_then(|entry| entry.string(endian, strings).ok()).map(String::from_utf8_lossy);
    report.equal("soname", soname.as_deref(), Some("ld-elf.so.1"));
    // 0x08000000 is DF_1_PIE: debuggers take such a file for a program.
    let flags = find(DT_FLAGS_1).map_or(0, |entry| entry.d_val.get(endian));
    report.equal("not marked as a program (DF_1_PIE)", flags & 0x0800_0000, 0);
    Ok(())
}

fn sections(report: &mut Report, header: &Header, bytes: &[u8]) -> anyhow::Result<()> {
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let has = |name: &[u8]| sections.section_by_name(endian, name).is_some();
    for name in [".plt", ".plt.got", ".plt.sec", ".rela.plt"] {
        // An empty one, as a linker may leave it, does nothing; one with contents is a PLT.
        let size =
            sections.section_by_name(endian, name.as_bytes()).map_or(0, |(_, section)| section.sh_size.get(endian));
        report.equal(format!("no {name}"), size, 0);
    }
    report.equal("has .symtab", has(b".symtab"), true);
    let note = sections.section_by_name(endian, b".note.gnu.build-id").map(|(_, section)| section.sh_size.get(endian));
    report.equal("has a build-id", note.is_some_and(|size| size > 16), true);
    for kind in [object::elf::SHT_DYNSYM, object::elf::SHT_SYMTAB] {
        let table = sections.symbols(endian, bytes, kind)?;
        let mut undefined = Vec::new();
        for symbol in table.iter().skip(1).filter(|symbol| symbol.st_shndx(endian) == SHN_UNDEF) {
            undefined.push(String::from_utf8_lossy(symbol.name(endian, table.strings())?).into_owned());
        }
        let name = if kind == object::elf::SHT_DYNSYM { ".dynsym" } else { ".symtab" };
        report.equal(format!("{name} has symbols"), table.len() > 1, true);
        report.equal(format!("{name} has no undefined symbol"), undefined, Vec::<String>::new());
    }
    let mut odd = Vec::new();
    for section in sections.iter() {
        let Some((relocations, _)) = section.rela(endian, bytes)? else {
            continue;
        };
        let kinds = relocations.iter().map(|relocation| relocation.r_type(endian, false));
        odd.extend(kinds.filter(|&kind| kind != R_X86_64_RELATIVE));
    }
    report.equal("only R_X86_64_RELATIVE (or RELR)", odd, Vec::<u32>::new());
    // What a start does not need lies apart (rtld/ld/late.ld), which makes the rest smaller: names in it are of modules that move.
    let place = |name: &str| {
        let found = sections.section_by_name(endian, name.as_bytes()).map(|(_, section)| section);
        found.map(|section| (section.sh_addr.get(endian), section.sh_size.get(endian)))
    };
    let size = |name: &str| place(name).map_or(0, |(_, size)| size);
    let (used, later) = (size(".text") / 1024, size(".text.later") / 1024);
    report.equal(format!("code of a start ({used} KiB) below 216 KiB"), used < 216, true);
    report.equal(format!("code for later ({later} KiB) above 100 KiB"), later > 100, true);
    let bss = place(".bss").map(|(start, size)| (start + size).next_multiple_of(4096));
    report.equal("no page between data and the heap's first pages", place(".late").map(|(start, _)| start), bss);
    report.equal("data that is no heap takes at most 4 pages", size(".bss") <= 4 * 4096, true);
    Ok(())
}

/// `rtld`, beside the loader.
fn tool(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let tool = context.artifact.with_file_name("rtld");
    let mode = fs::metadata(&tool).with_context(|| tool.display().to_string())?.mode() & 0o7777;
    report.equal("rtld: mode is 0755", format!("{mode:o}"), "755");
    let help = Command::new(&tool).arg("--help").output()?;
    let text = String::from_utf8_lossy(&help.stdout);
    report.equal("rtld --help: exit code", help.status.code(), Some(0));
    report.equal("rtld --help: names its command", text.contains("run"), true);
    let fits = text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80);
    report.equal(format!("rtld --help: fits a screen of 24 x 80 ({} lines)", text.lines().count()), fits, true);
    let version = Command::new(&tool).arg("--version").output()?;
    let text = String::from_utf8_lossy(&version.stdout);
    report.equal("rtld --version", text.trim(), format!("rtld {}", env!("CARGO_PKG_VERSION")));
    let run = Command::new(&tool).args(["run", "--", "/bin/echo", "-n", "--help"]).envs(always()).output()?;
    let shown = (run.status.code(), String::from_utf8_lossy(&run.stdout).into_owned());
    report.equal("rtld run -- /bin/echo -n --help", shown, (Some(0), "--help".to_owned()));
    let missing = Command::new(&tool).args(["run", "--loader", "/nonexistent", "/bin/true"]).output()?;
    report.equal("rtld run with a loader that is not there: exit code", missing.status.code(), Some(127));
    Ok(())
}
