//! Text relocations: applied, in memory that is never writable and executable at once, and executable afterwards.

use std::path::{Path, PathBuf};

use super::probe::{BOTH_WAYS, refused};
use super::system_calls::{trace, writable_and_executable};
use crate::elf_writer::{DynamicTag, Image};
use crate::harness::{Build, Context, Linker, Report, Run, Status, Way};

/// The bit of DT_FLAGS (gABI).
const DF_TEXTREL: u64 = 4;

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let cases = [
        ("marked by DT_TEXTREL and DF_TEXTREL", Linker::Bfd, true, true),
        ("marked by DT_TEXTREL alone", Linker::Bfd, true, false),
        ("marked by DF_TEXTREL alone", Linker::Bfd, false, true),
        ("as lld links it", Linker::Lld, true, true),
    ];
    for (index, (words, linker, by_tag, by_flag)) in cases.into_iter().enumerate() {
        let program = build(context, &format!("text/{index}"), linker, by_tag, by_flag)?;
        applied(context, report, words, &program)?;
    }
    let program = Build::new("mapping/text_relocations_program.c")
        .source("mapping/text_relocations_program.S")
        .flags(&["-pie", "-fPIE", "-Wl,-z,notext"])
        .output("text/program/text")
        .build(context)?;
    anyhow::ensure!(
        Image::read(&program)?.dynamic_value(DynamicTag::TEXTREL).is_ok(),
        "the program has no text relocation"
    );
    applied(context, report, "in the program itself", &program)?;

    // ld-linux dies of SIGSEGV.
    let program = build(context, "text/unsaid", Linker::Bfd, false, false)?;
    for (way, way_words) in BOTH_WAYS {
        let outcome = Run::new(&program).way(way).output(context)?;
        let texts =
            ["/text: error while loading shared libraries: ", "/libtext.so: ", "is outside the writable segments"];
        report
            .check(format!("text relocations without DT_TEXTREL are refused, {way_words}"), refused(&outcome, &texts));
    }
    Ok(())
}

/// The program prints 42 and the permissions of its text, and nothing was writable and executable on the way.
fn applied(context: &Context, report: &mut Report, words: &str, program: &Path) -> anyhow::Result<()> {
    let reference = Run::new(program).way(Way::Reference).output(context)?;
    anyhow::ensure!(
        reference.status == Status::Exit(0) && reference.text() == "42\nr-xp\n",
        "{words}: ld-linux does not run the fixture: {}",
        reference.describe()
    );
    for (way, way_words) in BOTH_WAYS {
        let run = Run::new(program).way(way);
        report.check(format!("text relocations {words}, {way_words}"), run.output(context)?.same_as(&reference));
        let calls = trace(context, &run, "mmap,mprotect,pkey_mprotect");
        let name = format!("text relocations {words} never make memory writable and executable, {way_words}");
        report.check(name, calls.and_then(|calls| writable_and_executable(&calls)));
    }
    Ok(())
}

/// Program and library in `directory`; the library says by DT_TEXTREL, by DT_FLAGS, by both or by neither that it has text relocations.
fn build(context: &Context, directory: &str, linker: Linker, by_tag: bool, by_flag: bool) -> anyhow::Result<PathBuf> {
    let library = Build::new("mapping/text_relocations.S")
        .shared()
        .linker(linker)
        .flag("-Wl,-z,notext")
        .output(format!("{directory}/libtext.so"))
        .build(context)?;
    say(&library, by_tag, by_flag)?;
    Build::new("mapping/text_relocations.c")
        .flag("-Wl,-rpath,$ORIGIN")
        .flag("-rdynamic")
        .with(&library)
        .output(format!("{directory}/text"))
        .build(context)
}

fn say(library: &Path, by_tag: bool, by_flag: bool) -> anyhow::Result<()> {
    let mut image = Image::read(library)?;
    let has = |image: &Image, tag| image.dynamic().map(|entries| entries.iter().any(|entry| entry.0 == tag));
    anyhow::ensure!(has(&image, DynamicTag::TEXTREL)?, "the linker made no text relocation");
    // An entry that shall not be there becomes a second DT_SYMENT, which changes nothing.
    const SYMENT: (u64, u64) = (DynamicTag::SYMENT, 24);
    if !has(&image, DynamicTag::FLAGS)? {
        anyhow::ensure!(by_tag, "no room for DT_FLAGS");
        if by_flag {
            image.add_dynamic(DynamicTag::FLAGS, DF_TEXTREL)?;
        }
    } else if !by_flag {
        image.set_dynamic(DynamicTag::FLAGS, SYMENT.0, SYMENT.1)?;
    }
    if !by_tag {
        image.set_dynamic(DynamicTag::TEXTREL, SYMENT.0, SYMENT.1)?;
    }
    image.write(library)
}
