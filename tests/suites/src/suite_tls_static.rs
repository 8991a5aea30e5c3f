//! Suite `tls-static`: thread-local storage of what is loaded at start: where blocks lie, what they hold in every thread, and
//! what is left of small stacks. Owns the shapes of the blocks; the programs check themselves.

use crate::elf_edit::Image;
use crate::harness::{Build, Compiler, Context, Linker, Report, Run, Status, WAYS, Way};
use crate::same::{Want, label, same};
use anyhow::Context as _;
use std::path::Path;

/// `p_type` of the TLS segment (gABI).
const PT_TLS: u32 = 7;
/// Offsets of `p_vaddr` and `p_align` in a program header (gABI, `Elf64_Phdr`).
const P_VADDR: usize = 16;
const P_ALIGN: usize = 48;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    alignments(context, report)?;
    shifted_library(context, report)?;
    shifted_program(context, report)?;
    carried_over(context, report)?;
    small_stacks(context, report)?;
    surplus(context, report)
}

/// Thirteen libraries with alignments 1 to 4096 and odd sizes, by access model and linker.
fn alignments(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        for (model, dialect) in [("global-dynamic", "gnu"), ("global-dynamic", "gnu2"), ("initial-exec", "gnu")] {
            let directory = format!("aligned-{}-{model}-{dialect}", linker.name());
            let mut program = Build::new("tls-static/aligned.c")
                .linker(linker)
                .flags(&["-O1", "-pthread"])
                .output(format!("{directory}/aligned"));
            let (mut declarations, mut checks, mut names) = (String::new(), String::new(), String::new());
            let mut alignment = 1;
            let mut count = 0;
            while alignment <= 4096 {
                let library = Build::new("tls-static/aligned_library.c").shared().linker(linker).flag("-O1");
                let library = library.flag(format!("-DALIGNMENT={alignment}")).flag(format!("-DODD={}", 2 * count + 3));
                let library = library.flag(format!("-DMODEL=\"{model}\"")).flag(format!("-mtls-dialect={dialect}"));
                program = program.with(library.output(format!("{directory}/lib{alignment}.so")).build(context)?);
                declarations.push_str(&format!("int check_{alignment}(void);\n"));
                checks.push_str(&format!("check_{alignment},"));
                names.push_str(&format!("\"alignment {alignment}\","));
                alignment *= 2;
                count += 1;
            }
            let table = format!(
                "{declarations}int (*const checks[])(void) = {{{checks}}};\nconst char *const names[] = {{{names}}};\nconst int count = {count};\n"
            );
            let program = program.text(&format!("{directory}/table.c"), &table).build(context)?;
            let name = format!("alignments 1 to 4096, {} {model} {dialect}", linker.name());
            same(context, report, &name, &program, Want::Prints("13 libraries right"), |run| run);
        }
    }
    Ok(())
}

/// The `p_vaddr` and `p_align` of a file's PT_TLS.
fn tls_segment(path: &Path) -> anyhow::Result<(u64, u64)> {
    let image = Image::read(path)?;
    let header = image.program_header(PT_TLS, 0)?;
    Ok((image.number(header + P_VADDR, 8)?, image.number(header + P_ALIGN, 8)?))
}

/// A library whose p_vaddr is not a multiple of its p_align: the block's start must be congruent to p_vaddr.
fn shifted_library(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let library = Build::new("tls-static/shifted_library.c")
        .shared()
        .flag("-O1")
        .output("shifted/libshifted.so")
        .build(context)?;
    let mut image = Image::read(&library)?;
    let header = image.program_header(PT_TLS, 0)?;
    image.set(header + P_ALIGN, 8, 4096)?;
    image.write(&library)?;
    let (address, alignment) = tls_segment(&library)?;
    report.check("the library's p_vaddr is not a multiple of p_align", incongruent(address, alignment));
    let program =
        Build::new("tls-static/shifted.c").flag("-pthread").with(&library).output("shifted/shifted").build(context)?;
    // The variable's own place in the block, then the block's place modulo its alignment.
    let (symbol, _) = image.symbol("first")?;
    let line = format!("{:#x} 1", (address + image.number(symbol + 8, 8)?) % 4096);
    let want = format!("{line}\n{line}\n{line}");
    same(context, report, "a library's p_vaddr not a multiple of p_align", &program, Want::Prints(&want), |run| run);
    Ok(())
}

/// The same for local exec in a program, laid out by lld and a linker script.
fn shifted_program(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let script = context.programs.join("tls-static/shifted.ld");
    for (kind, flags) in [("PIE", ["-fpie", "-pie"]), ("non-PIE", ["-fno-pie", "-no-pie"])] {
        let program =
            Build::new("tls-static/shifted_program.c").compiler(Compiler::Clang).linker(Linker::Lld).flags(&flags);
        let program = program.flags(&["-O1", "-pthread"]).flag(format!("-Wl,-T,{}", script.display()));
        let program = program.output(format!("shifted-program-{kind}")).build(context)?;
        let (address, alignment) = tls_segment(&program)?;
        report.check(
            format!("the program's p_vaddr is not a multiple of p_align, {kind}"),
            incongruent(address, alignment),
        );
        let line = "first 3 aligned 0 zero 0";
        let want = format!("{line}\n{line}\n{line}");
        let name = format!("a program's p_vaddr not a multiple of p_align, {kind}");
        same(context, report, &name, &program, Want::Prints(&want), |run| run);
    }
    Ok(())
}

fn incongruent(address: u64, alignment: u64) -> Result<(), String> {
    if address.checked_rem(alignment).is_some_and(|rest| rest != 0) {
        return Ok(());
    }
    Err(format!("p_vaddr {address:#x} is a multiple of p_align {alignment:#x}"))
}

/// `cases/t5` less what it loads later.
fn carried_over(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        let directory = format!("t5-{}", linker.name());
        let aligned = |name: &str, alignment: u32, model: &str| {
            let library =
                Build::new("cases/t5a.c").shared().linker(linker).flags(&["-O1", &format!("-ftls-model={model}")]);
            let library = library.flag(format!("-DNAME={name}")).flag(format!("-DALIGNMENT={alignment}"));
            library.output(format!("{directory}/lib{name}.so")).build(context)
        };
        let odd = Build::new("cases/t5d.c")
            .shared()
            .linker(linker)
            .output(format!("{directory}/libodd.so"))
            .build(context)?;
        let program = Build::new("cases/t5.c").linker(linker).flags(&["-O0", "-pthread"]).with(&odd);
        let program = program.with(aligned("a64", 64, "global-dynamic")?).with(aligned("a256", 256, "global-dynamic")?);
        let program =
            program.with(aligned("a128", 128, "initial-exec")?).output(format!("{directory}/t5")).build(context)?;
        same(context, report, &format!("t5, {}", linker.name()), &program, Want::Prints("misaligned 0"), |run| run);
    }
    Ok(())
}

/// Threads start on the smallest stacks that they start on under ld-linux.
fn small_stacks(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("tls-static/small_stack.c").flags(&["-O1", "-pthread"]).build(context)?;
    let want = "16384: own 0 given 0\n16384: own 0 given 0\n32768: own 0 given 0\n65536: own 0 given 0";
    let sizes = ["0", "16384", "32768", "65536"];
    same(context, report, "threads on PTHREAD_STACK_MIN and other small stacks", &program, Want::Prints(want), |run| {
        run.args(sizes)
    });
    // glibc takes static TLS out of every thread's stack: with this much there is no room, and pthread_create says EINVAL (22).
    let want = "16384: own 22 given 22\n32768: own 22 given 22\n1048576: own 0 given 0";
    same(context, report, "no room with a surplus of 64 KiB by tunable", &program, Want::Prints(want), |run| {
        run.args(["16384", "32768", "1048576"]).env("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=65536")
    });
    for (way, bind) in WAYS {
        let run = Run::new(&program)
            .way(way)
            .bind(bind)
            .args(["16384", "32768", "1048576"])
            .env("LD_STATIC_TLS_EXTRA", "65536");
        let result = run
            .output(context)
            .map_err(|error| format!("{error:#}"))
            .and_then(|outcome| Want::Prints(want).accepts(&outcome));
        report.check(format!("no room with LD_STATIC_TLS_EXTRA of 64 KiB ({})", label(way, bind)), result);
    }
    Ok(())
}

/// How much surplus there is, seen through the least stack that glibc computes from it.
fn surplus(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("tls-static/surplus.c").flag("-pthread").build(context)?;
    let least = |way: Way, bind, variable: Option<(&str, &str)>| -> anyhow::Result<i64> {
        let mut run = Run::new(&program).way(way).bind(bind);
        if let Some((name, value)) = variable {
            run = run.env(name, value);
        }
        let outcome = run.output(context)?;
        if outcome.status != Status::Exit(0) {
            anyhow::bail!("{}", outcome.describe());
        }
        outcome.text().trim().parse().with_context(|| outcome.describe())
    };
    for (way, bind) in WAYS {
        let words = label(way, bind);
        let (ours, theirs) = (least(way, bind, None)?, least(Way::Reference, bind, None)?);
        report.note(format!("least stack {ours} bytes, ld-linux {theirs} ({words})"));
        let within = (theirs..=theirs + 4096).contains(&ours);
        report.check(
            format!("surplus by default ({words})"),
            if within { Ok(()) } else { Err(format!("expected {theirs} to {} bytes\ngot      {ours}", theirs + 4096)) },
        );
        for (name, value) in [
            ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=0"),
            ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=8192"),
            ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=0x10000"),
            ("GLIBC_TUNABLES", "glibc.rtld.nns=10"),
            ("GLIBC_TUNABLES", "glibc.rtld.nns=16:glibc.rtld.optional_static_tls=4096"),
        ] {
            let got = least(way, bind, Some((name, value)))? - ours;
            let want = least(Way::Reference, bind, Some((name, value)))? - theirs;
            report.equal(format!("surplus changed by {name}={value} ({words})"), got, want);
        }
        let raised = least(way, bind, Some(("LD_STATIC_TLS_EXTRA", "65536")))? - ours;
        // At least that many bytes of surplus in all, rounded up to the alignment of the static block.
        let right = (65536 - 4096..=65536 + 64).contains(&raised);
        report.check(
            format!("LD_STATIC_TLS_EXTRA=65536 raises the surplus ({words})"),
            if right { Ok(()) } else { Err(format!("expected 61440 to 65600 bytes more\ngot      {raised}")) },
        );
        for value in ["16", "0", "", "x", "-1"] {
            let got = least(way, bind, Some(("LD_STATIC_TLS_EXTRA", value)))? - ours;
            report.equal(format!("LD_STATIC_TLS_EXTRA={value:?} does not change it ({words})"), got, 0);
        }
    }
    Ok(())
}
