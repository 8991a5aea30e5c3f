//! Programs and libraries as linkers lay them out, and as tools leave them: other linkers and flags, no section headers, program headers
//! moved, alignment that only says more than the layout keeps.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::probe::BOTH_WAYS;
use crate::elf_writer::{Image, SegmentKind};
use crate::harness::{Bind, Build, Context, Linker, Report, Run, Status, WAYS, Way};

const WITHOUT_PHDR: &str = "without PT_PHDR";

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    layouts(context, report)?;
    edited(context, report)?;
    two_names(context, report)
}

fn layouts(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let layouts: [(&str, Linker, &[&str]); 10] = [
        ("bfd", Linker::Bfd, &["-Wl,-z,separate-code"]),
        ("bfd, code and constants in one segment", Linker::Bfd, &["-Wl,-z,noseparate-code"]),
        ("bfd, pages of 2 MiB", Linker::Bfd, &["-Wl,-z,max-page-size=0x200000"]),
        ("bfd, pages of 2 MiB, without RELRO", Linker::Bfd, &["-Wl,-z,max-page-size=0x200000,-z,norelro"]),
        ("lld", Linker::Lld, &[]),
        ("lld, constants with the code", Linker::Lld, &["-Wl,--no-rosegment"]),
        ("lld, separate code", Linker::Lld, &["-Wl,-z,separate-code"]),
        ("lld, no two segments in one page of the file", Linker::Lld, &["-Wl,-z,separate-loadable-segments"]),
        ("mold", Linker::Mold, &[]),
        ("mold, separate segments", Linker::Mold, &["-Wl,-z,separate-loadable-segments"]),
    ];
    for (words, linker, flags) in layouts {
        for (kind, kind_flags) in [("position-independent", &["-pie", "-fPIE"]), ("non-PIE", &["-no-pie", "-fno-pie"])]
        {
            let directory = format!("linked/{words}, {kind}").replace([' ', ','], "_");
            let library = Build::new("mapping/linked.c")
                .shared()
                .linker(linker)
                .flags(&["-O1", "-DLIBRARY"])
                .flags(flags)
                .output(format!("{directory}/liblinked.so"))
                .build(context)?;
            let program = Build::new("mapping/linked.c")
                .linker(linker)
                .flags(&["-O1", "-Wl,-rpath,$ORIGIN"])
                .flags(kind_flags)
                .flags(flags)
                .with(library)
                .output(format!("{directory}/linked"))
                .build(context)?;
            same(context, report, &format!("{kind} program and library by {words}"), &program)?;
        }
    }
    Ok(())
}

/// What tools do to the files.
fn edited(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    type Edit = fn(&mut Image) -> anyhow::Result<()>;
    let library_edits: [(&str, Edit); 5] = [
        ("without section headers", |image| image.strip_section_headers()),
        ("cut where its segments end", |image| image.truncate_to_segments().map(drop)),
        ("with program headers at the end of the file", |image| {
            let offset = image.move_program_headers_to_end()?;
            anyhow::ensure!(offset > 0x1000, "the program headers are in the first page");
            Ok(())
        }),
        ("with p_align of 2 MiB where the layout keeps 4096", align_segments),
        ("without PT_GNU_RELRO", |image| image.remove_program_headers(SegmentKind::GNU_RELRO)),
    ];
    let program_edits: [(&str, Edit); 4] = [
        ("without section headers", |image| image.strip_section_headers()),
        ("cut where its segments end", |image| image.truncate_to_segments().map(drop)),
        ("with program headers in a segment at the end of the file", |image| {
            let offset = image.move_program_headers_to_segment()?;
            anyhow::ensure!(offset > 0x1000, "the program headers are in the first page");
            Ok(())
        }),
        (WITHOUT_PHDR, |image| image.remove_program_headers(SegmentKind::PHDR)),
    ];
    for (words, edit) in library_edits {
        let (program, library) = pair(context, &format!("library {words}"), &["-pie", "-fPIE"])?;
        change(&library, edit)?;
        same(context, report, &format!("library {words}"), &program)?;
    }
    for (kind, flags) in [("position-independent", ["-pie", "-fPIE"]), ("non-PIE", ["-no-pie", "-fno-pie"])] {
        for (words, edit) in program_edits {
            // The load bias of a position-independent program that the kernel mapped is known from PT_PHDR alone: ld-linux crashes.
            if words == WITHOUT_PHDR && kind != "non-PIE" {
                continue;
            }
            let name = format!("{kind} program {words}");
            let (program, _) = pair(context, &name, &flags)?;
            change(&program, edit)?;
            same(context, report, &name, &program)?;
        }
    }
    Ok(())
}

fn align_segments(image: &mut Image) -> anyhow::Result<()> {
    image.edit_program_headers(|header| {
        if header.kind == SegmentKind::LOAD {
            header.alignment = 0x20_0000;
        }
    })?;
    let congruent =
        image.program_headers()?.iter().all(|header| (header.address - header.offset).is_multiple_of(0x20_0000));
    anyhow::ensure!(!congruent, "the linker kept offset and address congruent: the fixture shows nothing");
    Ok(())
}

/// Program and library in a directory of their own.
fn pair(context: &Context, name: &str, flags: &[&str]) -> anyhow::Result<(std::path::PathBuf, std::path::PathBuf)> {
    let directory = format!("edited/{name}").replace([' ', ','], "_");
    let library = Build::new("mapping/linked.c")
        .shared()
        .flags(&["-O1", "-DLIBRARY"])
        .output(format!("{directory}/liblinked.so"))
        .build(context)?;
    let program = Build::new("mapping/linked.c")
        .flags(&["-O1", "-Wl,-rpath,$ORIGIN"])
        .flags(flags)
        .with(&library)
        .output(format!("{directory}/linked"))
        .build(context)?;
    Ok((program, library))
}

fn change(path: &Path, edit: fn(&mut Image) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut image = Image::read(path)?;
    edit(&mut image)?;
    image.write(path)
}

/// Four ways each, compared with ld-linux.
fn same(context: &Context, report: &mut Report, name: &str, program: &Path) -> anyhow::Result<()> {
    let reference = Run::new(program).way(Way::Reference).output(context)?;
    anyhow::ensure!(
        reference.status == Status::Exit(0),
        "{name}: ld-linux does not run the fixture: {}",
        reference.describe()
    );
    for (way, bind) in WAYS {
        let outcome = Run::new(program).way(way).bind(bind).output(context)?;
        report.check(format!("{name}, {way:?} {bind:?}"), outcome.same_as(&reference));
    }
    Ok(())
}

/// One file under two names in DT_NEEDED is one object: by a symbolic link and by a hard link.
fn two_names(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    // Linked against two files, so that the linker sees two libraries.
    let first = Build::inline("two_names/first.c", "int first(void) { return 0; }")
        .shared()
        .output("two_names/link/first.so")
        .build(context)?;
    let second = Build::inline("two_names/second.c", "int second(void) { return 0; }")
        .shared()
        .output("two_names/link/second.so")
        .build(context)?;
    let directory = context.work.join("two_names/link");
    let program = Build::new("mapping/two_names.c")
        .flag(format!("-L{}", directory.display()))
        .flags(&["-Wl,--no-as-needed", "-l:first.so", "-l:second.so"])
        .output("two_names/program")
        .build(context)?;
    anyhow::ensure!(first.exists() && second.exists());
    let library =
        Build::new("mapping/two_names.c").shared().flag("-DLIBRARY").output("two_names/library").build(context)?;
    let want = "constructed\n1 2\nmapped from offset 0: 1\n";
    for (words, hard) in [("a symbolic link", false), ("a hard link", true)] {
        let directory = context.work.join("two_names").join(if hard { "hard" } else { "symbolic" });
        std::fs::create_dir_all(&directory)?;
        for name in ["first.so", "second.so"] {
            if hard {
                std::fs::hard_link(&library, directory.join(name))?;
            } else {
                symlink(&library, directory.join(name))?;
            }
        }
        // Away from the program's own path, whose mapping from offset 0 must not count.
        let program_elsewhere = context.work.join("two_names_program");
        std::fs::copy(&program, &program_elsewhere)?;
        let run = |way| {
            Run::new(&program_elsewhere).way(way).bind(Bind::Lazy).env("LD_LIBRARY_PATH", &directory).output(context)
        };
        let reference = run(Way::Reference)?;
        anyhow::ensure!(reference.text() == want, "ld-linux does otherwise: {}", reference.describe());
        for (way, way_words) in BOTH_WAYS {
            report.check(
                format!("a library needed by two names, {words}, is mapped once, {way_words}"),
                run(way)?.same_as(&reference),
            );
        }
    }
    Ok(())
}
