//! Suite `tls`: thread-local storage by general dynamic, local dynamic, TLSDESC and initial exec, in libraries that are needed
//! and in libraries opened while threads run; blocks that come and go, the surplus, the allocator that must not be entered.
//! Owns how the modules are built; the programs check values and addresses and print counts.

use crate::harness::{Build, Compiler, Context, Linker, Report};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::path::PathBuf;

/// Threads that the programs have (`threads.h`).
const THREADS: usize = 8;

/// One subject of the suite.
type Part = fn(&Context, &mut Report) -> Result<()>;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let parts: [(&str, Part); 8] = [
        ("needed", needed),
        ("opened", opened),
        ("alignment", alignments),
        ("reuse", reuse),
        ("symbols", symbols),
        ("many", many),
        ("surplus", surplus),
        ("destructors", destructors),
    ];
    for (name, part) in parts {
        // One part that cannot be built must not hide the others.
        if let Err(error) = part(context, report) {
            report.check(format!("{name} runs to its end"), Err(format!("{error:#}")));
        }
    }
    Ok(())
}

/// A way of access: its name, compiler and flags.
type Access = (&'static str, Compiler, &'static [&'static str]);

/// Every dynamic access that compilers emit. Debian 12's clang has no TLSDESC on x86-64.
const ACCESSES: &[Access] = &[
    ("general dynamic, gcc", Compiler::Gcc, &["-ftls-model=global-dynamic"]),
    ("general dynamic, clang", Compiler::Clang, &["-ftls-model=global-dynamic"]),
    ("local dynamic, gcc", Compiler::Gcc, &["-ftls-model=local-dynamic", "-fvisibility=hidden", "-DHIDDEN"]),
    ("local dynamic, clang", Compiler::Clang, &["-ftls-model=local-dynamic", "-fvisibility=hidden", "-DHIDDEN"]),
    ("TLSDESC, gcc", Compiler::Gcc, &["-mtls-dialect=gnu2"]),
    (
        "TLSDESC, local dynamic, gcc",
        Compiler::Gcc,
        &["-mtls-dialect=gnu2", "-ftls-model=local-dynamic", "-fvisibility=hidden", "-DHIDDEN"],
    ),
];

/// `tls/module.c` as `output`.
fn module(number: u32, flags: &[&str], output: &str) -> Build {
    Build::new("tls/module.c")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy"])
        .flag(format!("-DNUMBER={number}"))
        .flags(flags)
        .output(output)
}

/// The linkers, each with the accesses.
fn each_build(act: &mut dyn FnMut(&str, &str, Linker, &Access) -> Result<()>) -> Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        for (index, access) in ACCESSES.iter().enumerate() {
            act(&format!("{}, {}", access.0, linker.name()), &format!("{}-{index}", linker.name()), linker, access)?;
        }
    }
    Ok(())
}

fn needed(context: &Context, report: &mut Report) -> Result<()> {
    each_build(&mut |name, place, linker, access| {
        let library = module(6, access.2, &format!("needed-{place}/libmodule.so"))
            .compiler(access.1)
            .linker(linker)
            .build(context)?;
        let program = Build::new("tls/needed.c")
            .compiler(access.1)
            .linker(linker)
            .flags(&["-O1", "-pthread", "-DFIRST=6"])
            .with(library)
            .output(format!("needed-{place}/needed"))
            .build(context)?;
        let want = format!("main 1 existing {THREADS} new {THREADS}");
        same(context, report, &format!("a needed library: {name}"), &program, Want::Clean(&want), |run| run);
        Ok(())
    })
}

/// The program that opens modules.
fn opener(context: &Context) -> Result<PathBuf> {
    Build::new("tls/opened.c").flags(&["-O1", "-pthread"]).build(context)
}

fn opened(context: &Context, report: &mut Report) -> Result<()> {
    let program = opener(context)?;
    each_build(&mut |name, place, linker, access| {
        let library = module(6, access.2, &format!("opened-{place}/libmodule.so"))
            .compiler(access.1)
            .linker(linker)
            .build(context)?;
        let want = format!("main 1 existing {THREADS} again {THREADS} main 1\nnew {THREADS}");
        let argument = format!("{}=6", library.display());
        same(context, report, &format!("a library opened: {name}"), &program, Want::Clean(&want), |run| {
            run.args([&argument])
        });
        Ok(())
    })
}

/// Blocks of 100 bytes to 40 kB aligned to 1 to 4096 bytes.
fn alignments(context: &Context, report: &mut Report) -> Result<()> {
    let program = opener(context)?;
    for (dialect, flag) in [("general dynamic", "-mtls-dialect=gnu"), ("TLSDESC", "-mtls-dialect=gnu2")] {
        let mut arguments = Vec::new();
        for power in 0..=12_u32 {
            let (alignment, size) = (1_u32 << power, 100 + 10 * (1_u32 << power));
            let flags = [flag.to_owned(), format!("-DALIGNMENT={alignment}"), format!("-DSIZE={size}")];
            let library = module(6, &flags.each_ref().map(String::as_str), &format!("aligned{flag}/lib{alignment}.so"))
                .build(context)?;
            arguments.push(format!("{}=6", library.display()));
        }
        let line = format!("main 1 existing {THREADS} again {THREADS} main 1\nnew {THREADS}");
        let want = vec![line; arguments.len()].join("\n");
        same(
            context,
            report,
            &format!("alignments 1 to 4096 of opened libraries, {dialect}"),
            &program,
            Want::Clean(&want),
            |run| run.args(&arguments),
        );
    }
    Ok(())
}

fn reuse(context: &Context, report: &mut Report) -> Result<()> {
    for (dialect, flag) in [("general dynamic", "-mtls-dialect=gnu"), ("TLSDESC", "-mtls-dialect=gnu2")] {
        for number in 1..=3 {
            // Blocks of unlike sizes, so that the old one could not serve.
            let size = format!("-DSIZE={}", number * 3000);
            module(number, &[flag, &size], &format!("reuse/lib{number}.so")).build(context)?;
        }
        let program = Build::new("tls/reuse.c").flags(&["-O1", "-pthread"]).output("reuse-program").build(context)?;
        // ld-linux 2.34 to 2.36 is known to confuse blocks here (users.md D6): the right answer is written down.
        written(
            context,
            report,
            &format!("closed and another opened: every thread sees fresh values, {dialect}"),
            &program,
            Want::Clean("right 180 of 180"),
            |run| run,
        );
    }
    Ok(())
}

fn symbols(context: &Context, report: &mut Report) -> Result<()> {
    let first = module(1, &[], "symbol/lib1.so").build(context)?;
    // Its own `exported`, not that of the library the program needs.
    module(2, &["-Wl,-Bsymbolic"], "symbol/lib2.so").build(context)?;
    let program = Build::new("tls/symbol.c")
        .flags(&["-O1", "-pthread", "-rdynamic"])
        .with(first)
        .output("symbol/symbol")
        .build(context)?;
    let want = format!("main 1 existing {THREADS} new {THREADS}");
    same(context, report, "dlsym of thread-local variables", &program, Want::Clean(&want), |run| run);
    Ok(())
}

fn many(context: &Context, report: &mut Report) -> Result<()> {
    let model = module(5, &["-DSIZE=50"], "many/lib0.so").build(context)?;
    for number in 1..200 {
        std::fs::copy(&model, context.work.join(format!("many/lib{number}.so")))?;
    }
    let program = Build::new("tls/many.c").flags(&["-O1", "-pthread"]).output("many-program").build(context)?;
    let all = THREADS * 200;
    let want = format!("last first {THREADS} the rest {} main 200 new {all}\nagain 200", all - THREADS);
    same(context, report, "200 modules in one process", &program, Want::Clean(&want), |run| run);
    let preload = Build::new("tls/forbidding.c").shared().flags(&["-O1", "-fno-builtin"]).build(context)?;
    let program = Build::new("tls/forbidden.c").flags(&["-O1", "-pthread"]).build(context)?;
    let want = format!("right {0}\nright {0}\nallocator used 1", 40 * (THREADS + 1));
    // ld-linux allocates a block by the program's malloc at the first access (users.md D11).
    written(context, report, "an access enters no allocator of the program", &program, Want::Clean(&want), |run| {
        run.env("LD_PRELOAD", &preload)
    });
    Ok(())
}

fn surplus(context: &Context, report: &mut Report) -> Result<()> {
    let initial = "-DMODEL=\"initial-exec\"";
    let program = Build::new("tls/exhausted.c").flags(&["-O1", "-pthread"]).build(context)?;
    let library = |size: u32, alignment: u32, output: &str| {
        module(6, &[initial, &format!("-DSIZE={size}"), &format!("-DALIGNMENT={alignment}")], output).build(context)
    };
    let fitting = library(100, 64, "surplus/libfitting.so")?;
    let right = format!("main 1 existing {THREADS} new {THREADS}");
    same(
        context,
        report,
        "initial exec in a library opened, in threads old and new",
        &program,
        Want::Clean(&right),
        |run| run.args(["fit".as_ref(), fitting.as_os_str()]),
    );
    library(100_000, 16, "surplus/libhuge.so")?;
    // The text that people search for is glibc's; how much was asked and is left is ours.
    let text = "cannot allocate memory in static TLS block (# bytes aligned to # asked for, # left)";
    let refused = format!("./surplus/libhuge.so: {text}");
    written(context, report, "too large for the surplus", &program, Want::Clean(&refused), |run| {
        run.args(["refuse", "./surplus/libhuge.so"])
    });
    let small = library(500, 16, "surplus/libsmall.so")?;
    let both = Build::inline("surplus/both.c", "int both;\n")
        .shared()
        .flags(&["-Wl,--no-as-needed", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(&small)
        .with(context.work.join("surplus/libhuge.so"))
        .output("surplus/libboth.so")
        .build(context)?;
    let want = format!("failed 1000\n{right}\n{right}");
    written(context, report, "1000 failed loads give back what they took", &program, Want::Clean(&want), |run| {
        let fit = ["fit", "./surplus/libfitting.so", "fit", "./surplus/libsmall.so"];
        run.args(["rounds".as_ref(), both.as_os_str()]).args(fit)
    });
    for number in 0..64 {
        std::fs::copy(&small, context.work.join(format!("surplus/copy{number}.so")))?;
    }
    let want = format!("fitted some 1\n./surplus/copy#.so: {text}");
    written(context, report, "filled until none is left", &program, Want::Clean(&want), |run| {
        run.args(["fill", "./surplus/copy"])
    });
    Ok(())
}

fn destructors(context: &Context, report: &mut Report) -> Result<()> {
    Build::new("tls/destructor.cpp").shared().flag("-O1").output("libdestructor.so").build(context)?;
    let program = Build::new("tls/destroyed.cpp").flags(&["-O1", "-pthread"]).build(context)?;
    let round = "touched 5\nclosed, mapped 1\ndestroyed 5\nended\nclosed again, mapped 0";
    let want = format!("{round}\n{round}");
    same(
        context,
        report,
        "a thread_local object's destructor keeps its library",
        &program,
        Want::Clean(&want),
        |run| run,
    );
    Ok(())
}
