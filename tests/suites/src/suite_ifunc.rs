//! Suite `ifunc`: indirect functions, whose resolvers must run after everything they can need is in place, and whose results
//! must reach every copy of what was initialised with their address. Owns the list of shapes. ld-linux 2.36 crashes on
//! several of them (glibc BZ 28218, 30976, 34164), so most expectations are written down here.

use crate::harness::{Bind, Build, Context, Linker, Outcome, Report, Run, Status, WAYS};
use crate::same::{Want, label, same, written};
use std::path::{Path, PathBuf};

const LINKERS: [Linker; 3] = [Linker::Bfd, Linker::Lld, Linker::Mold];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    through_plt(context, report)?;
    pointers(context, report)?;
    own_pointers(context, report)?;
    thread_local(context, report)?;
    equality(context, report)?;
    for linker in LINKERS {
        chain(context, report, linker)?;
        stack(context, report, linker)?;
        outside(context, report, linker)?;
    }
    Ok(())
}

/// A library of this suite in the directory of its case.
fn library(directory: &str, source: &str, linker: Linker, name: &str) -> Build {
    Build::new(source).shared().linker(linker).flag("-O1").output(format!("{directory}/{name}"))
}

/// A program of this suite in the directory of its case.
fn program(directory: &str, source: &str, linker: Linker) -> Build {
    Build::new(source).linker(linker).flags(&["-O1", "-pthread", "-Wl,-z,lazy"]).output(format!("{directory}/program"))
}

/// `cases/t1`: a resolver that calls another library through the PLT.
fn through_plt(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in LINKERS {
        for visibility in ["default", "hidden"] {
            for when in ["lazy", "now"] {
                let directory = format!("t1-{}-{visibility}-{when}", linker.name());
                let dependency = library(&directory, "cases/t1dep.c", linker, "libt1dep.so").build(context)?;
                let work = library(&directory, "cases/t1lib.c", linker, "libt1.so");
                let work = work
                    .flag(format!("-DVISIBILITY=\"{visibility}\""))
                    .flag(format!("-Wl,-z,{when}"))
                    .with(&dependency)
                    .build(context)?;
                let program = program(&directory, "cases/t1.c", linker).with(&work).build(context)?;
                let name = format!("resolver through the PLT, {} {visibility} -z {when}", linker.name());
                written(context, report, &name, &program, Want::Prints("call_work 22"), |run| run);
            }
        }
    }
    Ok(())
}

/// A variable that is copied into the program, and thread-local variables, that hold the address of an indirect function.
fn pointers(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let want = "copy 42\nthread-local 42\nsame 1\nin a thread 42\nin a thread 42";
    for linker in LINKERS {
        for visibility in ["default", "hidden"] {
            let directory = format!("pointer-{}-{visibility}", linker.name());
            let owner = library(&directory, "ifunc/pointer_library.c", linker, "libpointer.so");
            let owner = owner.flag(format!("-DVISIBILITY=\"{visibility}\"")).build(context)?;
            let program = program(&directory, "ifunc/pointer.c", linker)
                .flags(&["-fno-pie", "-no-pie"])
                .with(&owner)
                .build(context)?;
            let name = format!("COPY and .tdata of an indirect address, {} {visibility}", linker.name());
            report.check(format!("{name}: the program has a copy"), has_copy(&program));
            same(context, report, &name, &program, Want::Prints(want), |run| run);
        }
    }
    Ok(())
}

/// That the case is about a copy at all: R_X86_64_COPY (5) among the program's dynamic relocations.
fn has_copy(program: &PathBuf) -> Result<(), String> {
    use object::{Object as _, ObjectSymbolTable as _, RelocationFlags};
    let bytes = std::fs::read(program).map_err(|error| error.to_string())?;
    let file = object::File::parse(&*bytes).map_err(|error| error.to_string())?;
    let table = file.dynamic_symbol_table().ok_or("no dynamic symbols")?;
    let found = file.dynamic_relocations().into_iter().flatten().any(|(_, relocation)| {
        let pointer = match relocation.target() {
            object::RelocationTarget::Symbol(index) => {
                table.symbol_by_index(index).is_ok_and(|symbol| object::ObjectSymbol::name(&symbol) == Ok("pointer"))
            }
            _ => false,
        };
        pointer && relocation.flags() == RelocationFlags::Elf { r_type: object::elf::R_X86_64_COPY }
    });
    if found { Ok(()) } else { Err("no R_X86_64_COPY of `pointer`".to_owned()) }
}

/// Whether a library has its own indirect function resolved without its symbol, as mold links it from some release on:
/// R_X86_64_IRELATIVE (37) among its dynamic relocations.
fn resolves_by_itself(library: &Path) -> anyhow::Result<bool> {
    use object::{Object as _, RelocationFlags};
    let bytes = std::fs::read(library)?;
    let file = object::File::parse(&*bytes)?;
    let kind = RelocationFlags::Elf { r_type: object::elf::R_X86_64_IRELATIVE };
    Ok(file.dynamic_relocations().into_iter().flatten().any(|(_, relocation)| relocation.flags() == kind))
}

/// The same within the program.
fn own_pointers(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in LINKERS {
        for (kind, flags) in [("PIE", ["-fpie", "-pie"]), ("non-PIE", ["-fno-pie", "-no-pie"])] {
            let directory = format!("own-{}-{kind}", linker.name());
            let other = library(&directory, "ifunc/own_pointer_library.c", linker, "libother.so").build(context)?;
            let program =
                program(&directory, "ifunc/own_pointer.c", linker).flags(&flags).with(&other).build(context)?;
            let name = format!(".data and .tdata of the program's own, {} {kind}", linker.name());
            let want = Want::Prints("data 42 local 42 foreign 43\ndata 42 local 42 foreign 43");
            same(context, report, &name, &program, want, |run| run);
        }
    }
    Ok(())
}

/// A resolver that reads a thread-local variable.
fn thread_local(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in LINKERS {
        for model in ["global-dynamic", "initial-exec"] {
            for dialect in ["gnu", "gnu2"] {
                let directory = format!("tls-{}-{model}-{dialect}", linker.name());
                let owner = library(&directory, "ifunc/thread_local_library.c", linker, "libowner.so");
                let owner = owner
                    .flag(format!("-DMODEL=\"{model}\""))
                    .flag(format!("-mtls-dialect={dialect}"))
                    .build(context)?;
                let program = program(&directory, "ifunc/thread_local.c", linker).with(&owner).build(context)?;
                let name = format!("resolver reads a thread-local variable, {} {model} {dialect}", linker.name());
                written(context, report, &name, &program, Want::Prints("call_work 55"), |run| run);
            }
        }
    }
    Ok(())
}

/// Pointers to one indirect function compare equal everywhere.
fn equality(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let want = Want::Prints("calls 42 42 42\nequal 1 1");
    let want_apart = Want::Prints("calls 42 42 42\nequal 0 0");
    let want_own = Want::Prints("calls 42 42 42\nequal 1");
    for linker in LINKERS {
        for (kind, flags) in [("PIE", ["-fpie", "-pie"]), ("non-PIE", ["-fno-pie", "-no-pie"])] {
            let directory = format!("equality-{}-{kind}", linker.name());
            let owner = library(&directory, "ifunc/equality_library.c", linker, "libowner.so")
                .flag("-DDEFINES")
                .build(context)?;
            let user = program(&directory, "ifunc/equality.c", linker).flags(&flags).with(&owner).build(context)?;
            let name = format!("one address, library's function, {} {kind}", linker.name());
            // Then the library never asks for the address that the program gave the function in its own PLT.
            let apart = kind == "non-PIE" && resolves_by_itself(&owner)?;
            same(context, report, &name, &user, if apart { want_apart } else { want }, |run| run);
            // ld-linux refuses some of these ("unsatisfiable circular dependency"): it runs resolvers before all is relocated.
            let directory = format!("equality-own-{}-{kind}", linker.name());
            let plain = library(&directory, "ifunc/equality_library.c", linker, "libplain.so").build(context)?;
            let user = program(&directory, "ifunc/equality.c", linker)
                .flags(&flags)
                .flag("-DDEFINES")
                .with(&plain)
                .build(context)?;
            let name = format!("one address, program's function, {} {kind}", linker.name());
            written(context, report, &name, &user, want_own, |run| run);
        }
    }
    Ok(())
}

/// Resolvers that call indirect functions of their dependencies.
fn chain(context: &Context, report: &mut Report, linker: Linker) -> anyhow::Result<()> {
    let directory = format!("chain-{}", linker.name());
    let source = "ifunc/chain_library.c";
    let last = library(&directory, source, linker, "libchain3.so").flags(&["-DLEVEL=3", "-DLAST"]).build(context)?;
    let middle = library(&directory, source, linker, "libchain2.so")
        .flags(&["-DLEVEL=2", "-DNEXT=3"])
        .with(&last)
        .build(context)?;
    let first = library(&directory, source, linker, "libchain1.so")
        .flags(&["-DLEVEL=1", "-DNEXT=2"])
        .with(&middle)
        .build(context)?;
    let program =
        program(&directory, "ifunc/chain.c", linker).flag("-Wl,--allow-shlib-undefined").with(&first).build(context)?;
    let name = format!("resolvers along three libraries, {}", linker.name());
    written(context, report, &name, &program, Want::Prints("chain 6"), |run| run);
    Ok(())
}

/// The stack in a resolver.
fn stack(context: &Context, report: &mut Report, linker: Linker) -> anyhow::Result<()> {
    let directory = format!("stack-{}", linker.name());
    let owner = library(&directory, "ifunc/aligned_library.c", linker, "libaligned.so")
        .flag("-fno-omit-frame-pointer")
        .build(context)?;
    let program = program(&directory, "ifunc/aligned.c", linker).with(&owner).build(context)?;
    let name = format!("stack of a resolver, {}", linker.name());
    same(context, report, &name, &program, Want::Prints("at start 16 lazily 16"), |run| run);
    Ok(())
}

/// A resolver that returns an address outside any text ends in one line, not in a signal.
fn outside(context: &Context, report: &mut Report, linker: Linker) -> anyhow::Result<()> {
    for early in [false, true] {
        let directory = format!("outside-{}-{early}", linker.name());
        let mut owner = library(&directory, "ifunc/outside_library.c", linker, "liboutside.so");
        if early {
            owner = owner.flag("-DEARLY");
        }
        let owner = owner.flag("-Wl,-z,lazy").build(context)?;
        let program = program(&directory, "ifunc/outside.c", linker).with(&owner).build(context)?;
        // Which slot comes first decides whether the message can name the function: a linker may give a library's own
        // function a slot without its symbol.
        let told = |function: &str| {
            format!(
                "{}: IFUNC resolver of {function} returned 0x10, which is not inside executable memory\n",
                owner.display()
            )
        };
        let (named, unnamed) = (told("outside"), told("(no symbol)"));
        let either = resolves_by_itself(&owner)?;
        for (way, bind) in WAYS {
            // mold makes no PLT entry for an indirect function of the library itself: it is resolved at start.
            let started = !early && bind == Bind::Lazy && linker != Linker::Mold;
            let result = Run::new(&program).way(way).bind(bind).output(context).map_err(|error| format!("{error:#}"));
            let before = if started { "before\n" } else { "" };
            let result = result.and_then(|outcome| {
                let by_name = refused(&outcome, before, &named);
                if either { by_name.or_else(|_| refused(&outcome, before, &unnamed)) } else { by_name }
            });
            let when = if early { "needed at start" } else { "needed by a call" };
            report.check(format!("resolver returns 0x10, {when}, {} ({})", linker.name(), label(way, bind)), result);
        }
    }
    Ok(())
}

/// Exit status 127, this on standard output, and one line that ends so on standard error.
fn refused(outcome: &Outcome, text: &str, line: &str) -> Result<(), String> {
    let error = outcome.error_text();
    if outcome.status == Status::Exit(127)
        && outcome.text() == text
        && error.ends_with(line)
        && error.lines().count() == 1
    {
        return Ok(());
    }
    Err(format!(
        "expected Exit(127), stdout {text:?}, one line on stderr that ends in {line:?}\ngot      {}",
        outcome.describe()
    ))
}
