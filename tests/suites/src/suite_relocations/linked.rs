//! What relocations mean to programs: COPY and what holds the copies' addresses, thread-local variables in every model, pointers by RELA and RELR.

use std::path::{Path, PathBuf};

use crate::harness::{Build, Context, Linker, Outcome, Report, Run, Status, WAYS, Way};

const LINKERS: [Linker; 3] = [Linker::Bfd, Linker::Lld, Linker::Mold];

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    copies(context, report)?;
    copy_sizes(context, report)?;
    thread_local(context, report)?;
    pointers(context, report)
}

/// COPY: after everything else of the library, so that copied pointers are relocated ones; from then on the library uses the copy.
fn copies(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in LINKERS {
        let directory = format!("copy/{}", linker.name());
        let library = Build::new("relocations/copy_library.c")
            .shared()
            .linker(linker)
            .output(format!("{directory}/libcopy.so"))
            .build(context)?;
        let program = program(&directory, "copy").linker(linker).with(library).build(context)?;
        expect_copies(&program, 7)?;
        same(context, report, &format!("COPY by {}", linker.name()), &program)?;
    }
    Ok(())
}

/// Program and library disagree about the size of an object: the smaller one is copied, and the program is told as ld-linux tells it.
fn copy_sizes(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for (words, known, real) in [("larger", "2", "4"), ("smaller", "4", "2"), ("equal", "4", "4")] {
        let build = |size: &str, output: &str| {
            Build::new("relocations/copy_library.c")
                .shared()
                .flag(format!("-DSIZES={size}"))
                .output(format!("copy/{words}/{output}"))
        };
        let link_time = build(known, "link/libcopy.so").flag("-Wl,-soname,libcopy.so").build(context)?;
        build(real, "libcopy.so").flags(&["-Wl,-soname,libcopy.so", "-w"]).build(context)?;
        let program = program(&format!("copy/{words}"), "copy").flag("-DSIZED").with(link_time).build(context)?;
        let reference = reference(context, &program)?;
        let warned =
            reference.error_text().contains("`sized' has different size in shared object, consider re-linking");
        // ld-linux warns of a larger one only: what the program does not know of it is cut off.
        anyhow::ensure!(warned == (words == "larger"), "the fixture shows nothing: {}", reference.describe());
        for (way, bind) in WAYS {
            let outcome = Run::new(&program).way(way).bind(bind).output(context)?;
            report.check(
                format!("COPY of an object that is {words} in the library, {way:?} {bind:?}"),
                outcome.same_as(&reference),
            );
        }
    }
    Ok(())
}

/// Every thread-local model: general, local and initial dynamic by DTPMOD64/DTPOFF64 or TLSDESC, initial exec by TPOFF64, local exec.
fn thread_local(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let models: [(&str, &[&str]); 4] = [
        ("general dynamic", &["-ftls-model=global-dynamic"]),
        ("local dynamic", &["-ftls-model=local-dynamic"]),
        ("initial exec", &["-ftls-model=initial-exec"]),
        ("descriptors", &["-mtls-dialect=gnu2"]),
    ];
    for linker in LINKERS {
        for (words, flags) in models {
            for (optimisation, program_flags) in [("-O0", ["-pie", "-fPIE"]), ("-O2", ["-no-pie", "-fno-pie"])] {
                let directory = format!("tls/{}{optimisation}/{}", linker.name(), words.replace(' ', "_"));
                let library = Build::new("relocations/thread_local_library.c")
                    .shared()
                    .linker(linker)
                    .flag(optimisation)
                    .flags(flags)
                    .output(format!("{directory}/libtls.so"))
                    .build(context)?;
                let program = Build::new("relocations/thread_local.c")
                    .linker(linker)
                    .flags(&[optimisation, "-pthread", "-Wl,-rpath,$ORIGIN"])
                    .flags(&program_flags)
                    .with(library)
                    .output(format!("{directory}/tls"))
                    .build(context)?;
                same(
                    context,
                    report,
                    &format!("thread-local variables, {words}, by {} {optimisation}", linker.name()),
                    &program,
                )?;
            }
        }
    }
    Ok(())
}

/// The same pointers as RELATIVE records and packed; the packed ones without the version GLIBC_ABI_DT_RELR as well.
fn pointers(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let want = reference(context, &pointer_program(context, "pointers/plain", Linker::Bfd, &[])?)?;
    let packed: [(&str, Linker, &[&str]); 5] = [
        ("RELA, by bfd", Linker::Bfd, &[]),
        ("RELA, by lld", Linker::Lld, &[]),
        ("RELR, by bfd, which asks for GLIBC_ABI_DT_RELR", Linker::Bfd, &["-Wl,-z,pack-relative-relocs"]),
        // ld-linux refuses these two, because nothing in them asks for that version (users.md C11).
        ("RELR, by lld", Linker::Lld, &["-Wl,--pack-dyn-relocs=relr"]),
        ("RELR, by mold", Linker::Mold, &["-Wl,--pack-dyn-relocs=relr"]),
    ];
    for (words, linker, flags) in packed {
        let program = pointer_program(context, &format!("pointers/{words}").replace([' ', ','], "_"), linker, flags)?;
        anyhow::ensure!(has_relr(&program)? != flags.is_empty(), "{words}: the linker did otherwise");
        for (way, bind) in WAYS {
            let outcome = Run::new(&program).way(way).bind(bind).output(context)?;
            report.check(format!("pointers by {words}, {way:?} {bind:?}"), outcome.same_as(&want));
        }
    }
    Ok(())
}

fn pointer_program(context: &Context, directory: &str, linker: Linker, flags: &[&str]) -> anyhow::Result<PathBuf> {
    let library = Build::new("relocations/pointers.c")
        .shared()
        .linker(linker)
        .flag("-DLIBRARY")
        .flags(flags)
        .output(format!("{directory}/libpointers.so"))
        .build(context)?;
    Build::new("relocations/pointers.c")
        .linker(linker)
        .flags(&["-pie", "-fPIE", "-Wl,-rpath,$ORIGIN"])
        .flags(flags)
        .with(library)
        .output(format!("{directory}/pointers"))
        .build(context)
}

fn has_relr(program: &Path) -> anyhow::Result<bool> {
    let entries = crate::elf_writer::Image::read(program)?.dynamic()?;
    Ok(entries.iter().any(|entry| entry.0 == crate::elf_writer::DynamicTag::RELR))
}

/// A position-dependent program, whose references to data of libraries are direct.
fn program(directory: &str, name: &str) -> Build {
    Build::new(format!("relocations/{name}.c"))
        .flags(&["-no-pie", "-fno-pie", "-O1", "-Wl,-rpath,$ORIGIN"])
        .output(format!("{directory}/{name}"))
}

/// The fixture is worth nothing if the compiler went through the GOT.
fn expect_copies(program: &Path, count: usize) -> anyhow::Result<()> {
    let image = crate::elf_writer::Image::read(program)?;
    let copies =
        image.relocations()?.iter().filter(|relocation| relocation.kind == crate::elf_writer::Type::COPY).count();
    anyhow::ensure!(copies == count, "{} has {copies} COPY relocations, not {count}", program.display());
    Ok(())
}

fn reference(context: &Context, program: &Path) -> anyhow::Result<Outcome> {
    let outcome = Run::new(program).way(Way::Reference).output(context)?;
    anyhow::ensure!(outcome.status == Status::Exit(0), "ld-linux does not run the fixture: {}", outcome.describe());
    Ok(outcome)
}

/// Four ways each, compared with ld-linux.
fn same(context: &Context, report: &mut Report, name: &str, program: &Path) -> anyhow::Result<()> {
    let reference = reference(context, program)?;
    for (way, bind) in WAYS {
        let outcome = Run::new(program).way(way).bind(bind).output(context)?;
        report.check(format!("{name}, {way:?} {bind:?}"), outcome.same_as(&reference));
    }
    Ok(())
}
