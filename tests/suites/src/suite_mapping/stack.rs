//! PT_GNU_STACK: the stacks of the main thread and of new threads are executable where ld-linux of glibc 2.36 makes them so: if the program
//! asks for it, or any library asks or has no PT_GNU_STACK. Started directly, a program has the stacks it has when the kernel starts it (which
//! is less than ld-linux gives to a program without PT_GNU_STACK that is started directly).

use super::probe::BOTH_WAYS;
use crate::elf_writer::{Image, SegmentKind};
use crate::harness::{Build, Context, Report, Run, Status, Way};

/// What a file says about the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stack {
    Plain,
    Executable,
    Silent,
}

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let cases = [
        ("neither asks", Stack::Plain, Stack::Plain, ["rw-p", "rw-p"]),
        ("the program asks", Stack::Executable, Stack::Plain, ["rwxp", "rwxp"]),
        ("the library asks", Stack::Plain, Stack::Executable, ["rwxp", "rwxp"]),
        ("the library has no PT_GNU_STACK", Stack::Plain, Stack::Silent, ["rwxp", "rwxp"]),
        // The kernel (5.8 and later) gives a 64-bit program that is silent a stack without execution; ld-linux takes silence for a wish.
        ("the program has no PT_GNU_STACK", Stack::Silent, Stack::Plain, ["rw-p", "rwxp"]),
    ];
    for (index, (words, program_stack, library_stack, [main, new])) in cases.into_iter().enumerate() {
        let library = build(context, &format!("stack/{index}/libstack.so"), library_stack, None)?;
        let program = build(context, &format!("stack/{index}/stack"), program_stack, Some(&library))?;
        let reference = Run::new(&program).way(Way::Reference).output(context)?;
        let want = format!("main thread: {main}\nnew thread: {new}\n");
        anyhow::ensure!(
            reference.status == Status::Exit(0) && reference.text() == want,
            "{words}: ld-linux does not do what is written down: {}",
            reference.describe()
        );
        for (way, way_words) in BOTH_WAYS {
            let outcome = Run::new(&program).way(way).output(context)?;
            report.check(format!("executable stack: {words}, {way_words}"), outcome.same_as(&reference));
        }
    }
    Ok(())
}

fn build(
    context: &Context,
    output: &str,
    stack: Stack,
    library: Option<&std::path::Path>,
) -> anyhow::Result<std::path::PathBuf> {
    let mut build = Build::new("mapping/stack.c").flag("-pthread").output(output);
    build = match library {
        Some(library) => build.flag("-Wl,-rpath,$ORIGIN").with(library),
        None => build.shared().flag("-DLIBRARY"),
    };
    let path = build
        .flag(if stack == Stack::Executable { "-Wl,-z,execstack" } else { "-Wl,-z,noexecstack" })
        .build(context)?;
    if stack == Stack::Silent {
        let mut image = Image::read(&path)?;
        image.remove_program_headers(SegmentKind::GNU_STACK)?;
        image.write(&path)?;
    }
    Ok(path)
}
