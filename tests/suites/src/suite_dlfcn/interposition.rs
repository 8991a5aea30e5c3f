//! LD_PRELOAD in front of dlopen, dlsym and malloc, and plug-ins that hold their own copy of what the program holds.

use super::{Script, compare, node};
use crate::harness::{Build, Context, Report, Run, WAYS};
use crate::same::{Want, same};
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    node(context, "interposition", 71, &[], &[])?;
    for name in ["dlopen", "dlsym", "malloc"] {
        Build::new(format!("dlfcn/wrap_{name}.c"))
            .shared()
            .flags(&["-O1", "-fno-builtin"])
            .output(format!("interposition/libwrap_{name}.so"))
            .build(context)?;
    }
    let open: &[&str] = &["open a ./interposition/lib71.so now", "call a own_71"];
    let close: &[&str] = &["close a", "mapped lib71.so"];
    for (preload, ask, answer) in [
        ("dlopen", "call default dlopen_calls", "dlopen_calls 1"),
        ("dlsym", "call default dlsym_calls", "dlsym_calls 1"),
        ("malloc", "call default malloc_used", "malloc_used 1"),
    ] {
        let lines: Vec<&str> = open.iter().chain([&ask]).chain(close).copied().collect();
        let want =
            script.transcript(&["+71", "a opened", "own_71 71", answer, "-71", "a closed", "lib71.so not mapped"]);
        for (way, bind) in WAYS {
            compare(
                context,
                report,
                &format!("{preload} interposed by LD_PRELOAD"),
                way,
                bind,
                Want::Clean(&want),
                || {
                    Run::new(&script.program)
                        .args(&lines)
                        .env("LD_PRELOAD", format!("./interposition/libwrap_{preload}.so"))
                },
            );
        }
    }
    let all = "./interposition/libwrap_dlopen.so ./interposition/libwrap_malloc.so ./interposition/libwrap_dlsym.so";
    let lines = [
        "open a ./interposition/lib71.so now",
        "call default dlopen_calls",
        "call default malloc_used",
        "call default dlsym_calls",
    ];
    let want =
        script.transcript(&["+71", "a opened", "dlopen_calls 1", "malloc_used 1", "dlsym_calls 1", "end", "-71"]);
    for (way, bind) in WAYS {
        compare(context, report, "all three interposed at once", way, bind, Want::Clean(&want), || {
            Run::new(&script.program).args(lines).env("LD_PRELOAD", all)
        });
    }
    own_copies(context, report)
}

fn own_copies(context: &Context, report: &mut Report) -> Result<()> {
    let plug_in = |output: &str, flags: &[&str]| {
        Build::new("dlfcn/counting.c")
            .source("dlfcn/counter.c")
            .shared()
            .flag("-O0")
            .flags(flags)
            .output(output)
            .build(context)
    };
    let plain = plug_in("interposition/libplain.so", &[])?;
    let symbolic = plug_in("interposition/libsymbolic.so", &["-Wl,-Bsymbolic"])?;
    let program = Build::new("dlfcn/static_part.c")
        .source("dlfcn/counter.c")
        .flags(&["-O0", "-rdynamic"])
        .output("static-part")
        .build(context)?;
    for (name, file, deep, want) in [
        ("shared without RTLD_DEEPBIND", &plain, None, "3\n4"),
        ("its own by RTLD_DEEPBIND", &plain, Some("deep"), "1\n3"),
        ("its own by -Bsymbolic", &symbolic, None, "1\n3"),
    ] {
        same(
            context,
            report,
            &format!("a part linked into program and plug-in: {name}"),
            &program,
            Want::Clean(want),
            |run| run.args([file]).args(deep),
        );
    }
    Ok(())
}
