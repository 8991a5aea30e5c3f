//! What runs when objects are opened and closed: constructors and destructors in order, from any depth, with threads and
//! exceptions; indirect functions, unique symbols, weak definitions and copies.

use super::{BESIDE, Script, node};
use crate::harness::{Build, Compiler, Context, Linker, Report};
use crate::same::{Want, same};
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    graphs(context, report, script)?;
    nested(context, report)?;
    constructor(context, report, script)?;
    indirect(context, report, script)?;
    unique(context, report, script)?;
    weak(context, report, script)?;
    copied(context, report)?;
    exceptions(context, report)
}

/// 60 needs 62 and 61, both need 63; 64 and 65 need one another and 63.
fn graphs(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let bottom = node(context, "order", 63, &[], &[])?;
    let left = node(context, "order", 61, &[], &[&bottom])?;
    let right = node(context, "order", 62, &[], &[&bottom])?;
    node(context, "order", 60, &[], &[&right, &left])?;
    script.same(
        context,
        report,
        "a diamond",
        &["open a ./order/lib60.so now", "close a"],
        &["+63", "+61", "+62", "+60", "a opened", "-60", "-62", "-61", "-63", "a closed"],
    );
    // Finalisers run in the reverse order of the initialisers, here as at exit (docs/decisions); ld-linux sorts anew and
    // ends 61 before 62, and in a cycle the one that began first.
    script.written(
        context,
        report,
        "half a diamond that is open already",
        &["open b ./order/lib61.so now", "open a ./order/lib60.so now", "close b", "close a"],
        &["+63", "+61", "b opened", "+62", "+60", "a opened", "b closed", "-60", "-62", "-61", "-63", "a closed"],
    );
    let first = node(context, "order", 65, &[], &[&bottom])?;
    let other = node(context, "order", 64, &[], &[&first, &bottom])?;
    std::fs::remove_file(&first)?;
    node(context, "order", 65, &[], &[&other, &bottom])?;
    for (opened, order) in
        [("64", ["+63", "+65", "+64", "-64", "-65", "-63"]), ("65", ["+63", "+64", "+65", "-65", "-64", "-63"])]
    {
        let [one, two, three, four, five, six] = order;
        script.written(
            context,
            report,
            &format!("a cycle, by {opened}"),
            &[&format!("open a ./order/lib{opened}.so now"), "close a", &format!("mapped lib{opened}.so")],
            &[one, two, three, "a opened", four, five, six, "a closed", &format!("lib{opened}.so not mapped")],
        );
    }
    Ok(())
}

/// A constructor that opens a library, a destructor that finds itself and closes it: `cases/t9`.
fn nested(context: &Context, report: &mut Report) -> Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        let place = format!("t9-{}", linker.name());
        for name in ["t9a", "t9b"] {
            Build::new(format!("cases/{name}.c"))
                .shared()
                .linker(linker)
                .output(format!("{place}/{name}.so"))
                .build(context)?;
        }
        let program = Build::new("cases/t9.c")
            .linker(linker)
            .flags(&["-rdynamic", "-w"])
            .output(format!("{place}/t9"))
            .build(context)?;
        let directory = context.work.join(&place);
        same(context, report, &format!("t9, {}", linker.name()), &program, Want::Clean("AB+|Sab\nAB+|Sab"), |run| {
            run.directory(&directory)
        });
    }
    Ok(())
}

fn constructor(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    for (name, flag) in [("libarguments.so", "-UTHREAD_LOOKS"), ("liblooking.so", "-DTHREAD_LOOKS")] {
        Build::new("dlfcn/arguments.c")
            .shared()
            .flags(&["-O0", "-pthread", flag])
            .output(format!("order/{name}"))
            .build(context)?;
    }
    let lines = |name: &str| {
        [
            format!("open a ./order/{name} now"),
            "call a which".to_owned(),
            "close a".to_owned(),
            format!("mapped {name}"),
        ]
    };
    let want = |name: &str, found: &str| {
        [
            "arguments 5, last given, environment 1".to_owned(),
            "aligned 1".to_owned(),
            format!("thread 5 {found}"),
            "cos in libm.so.6".to_owned(),
            "a opened".to_owned(),
            "which 4".to_owned(),
            "a closed".to_owned(),
            format!("{name} not mapped"),
        ]
    };
    let (own_lines, own_want) = (lines("libarguments.so"), want("libarguments.so", "(no object)"));
    script.same(
        context,
        report,
        "a constructor gets its arguments, starts a thread, opens a library",
        &own_lines.each_ref().map(String::as_str),
        &own_want.each_ref().map(String::as_str),
    );
    // ld-linux holds its lock while constructors run, so that dlsym in the thread waits for the constructor and it for the thread.
    let (own_lines, own_want) = (lines("liblooking.so"), want("liblooking.so", "libc.so.6"));
    script.written(
        context,
        report,
        "a constructor waits for a thread that looks up a symbol",
        &own_lines.each_ref().map(String::as_str),
        &own_want.each_ref().map(String::as_str),
    );
    Ok(())
}

fn indirect(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let needed = context.work.join("order/lib61.so");
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        let name = format!("order/libresolver-{}.so", linker.name());
        Build::new("dlfcn/resolver.c")
            .shared()
            .linker(linker)
            .flags(&["-O1", "-Wl,-z,lazy", "-fno-plt", BESIDE])
            .with(&needed)
            .output(&name)
            .build(context)?;
        // The resolver calls into a library through the table of the object that is being relocated. Where a linker places
        // IRELATIVE before the table's own entries ld-linux 2.36 dies of it, so that the transcript is written down.
        script.written(
            context,
            report,
            &format!("indirect functions of a plug-in, {}", linker.name()),
            &[
                &format!("open a ./{name} now"),
                "call a call_indirect",
                "call a call_inner",
                "call a call_pointer",
                "call a call_inner_pointer",
                "call a equal_pointers",
                "call a indirect",
            ],
            &[
                "+63",
                "+61",
                "a opened",
                "call_indirect 2",
                "call_inner 2",
                "call_pointer 2",
                "call_inner_pointer 2",
                "equal_pointers 1",
                "indirect 2",
                "end",
                "-61",
                "-63",
            ],
        );
    }
    Ok(())
}

fn unique(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    for name in ["one", "two"] {
        Build::new("dlfcn/unique.cpp")
            .shared()
            .flag("-O1")
            .output(format!("order/libunique-{name}.so"))
            .build(context)?;
    }
    script.same(
        context,
        report,
        "unique symbols of two plug-ins opened RTLD_LOCAL are one",
        &[
            "open a ./order/libunique-one.so now+local",
            "open b ./order/libunique-two.so now+local",
            "call a next_member",
            "call b next_member",
            "call a next_local",
            "call b next_local",
            "close a",
            "close b",
            "mapped libunique-one.so",
            "open b ./order/libunique-two.so now+local",
            "call b next_member",
        ],
        &[
            "a opened",
            "b opened",
            "next_member 11",
            "next_member 12",
            "next_local 21",
            "next_local 22",
            "a closed",
            "b closed",
            "libunique-one.so mapped",
            "b opened",
            "next_member 13",
        ],
    );
    Ok(())
}

fn weak(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    Build::new("dlfcn/weak.c").shared().flags(&["-O0", "-Wl,-z,lazy"]).output("order/libweak.so").build(context)?;
    node(context, "order", 66, &["-DQUIET", "-DALSO=maybe"], &[])?;
    script.same(
        context,
        report,
        "a weak definition is as good as another; an undefined weak reference is 0",
        &[
            "open a ./order/libweak.so lazy+global",
            "open b ./order/lib66.so now+global",
            "call a call_maybe",
            "call b maybe",
            "call default maybe",
            "call a has_absent",
            "call a has_absent_value",
        ],
        &["a opened", "b opened", "call_maybe 1", "maybe 66", "maybe 1", "has_absent 0", "has_absent_value 0"],
    );
    script.same(
        context,
        report,
        "a definition that is global already comes before a plug-in's own weak one",
        &["open b ./order/lib66.so now+global", "open a ./order/libweak.so lazy", "call a call_maybe", "call a maybe"],
        &["b opened", "a opened", "call_maybe 66", "maybe 1"],
    );
    Ok(())
}

fn copied(context: &Context, report: &mut Report) -> Result<()> {
    let library = node(context, "order", 67, &["-DQUIET"], &[])?;
    Build::new("dlfcn/user.c").shared().output("order/libuser.so").build(context)?;
    let program = Build::new("dlfcn/copied.c")
        .flags(&["-fno-pie", "-no-pie", "-O1"])
        .with(&library)
        .output("copied")
        .build(context)?;
    same(context, report, "a plug-in uses the program's copy", &program, Want::Clean("167 167\nthe copy"), |run| {
        run.env("LD_LIBRARY_PATH", context.work.join("order"))
    });
    Ok(())
}

fn exceptions(context: &Context, report: &mut Report) -> Result<()> {
    for compiler in [Compiler::Gcc, Compiler::Clang] {
        Build::new("dlfcn/thrower.cpp")
            .shared()
            .compiler(compiler)
            .flags(&["-O1", "-std=c++17", "-Wl,-z,lazy"])
            .output("order/libthrower.so")
            .build(context)?;
        let program = Build::new("dlfcn/thrown.cpp")
            .compiler(compiler)
            .flags(&["-O1", "-std=c++17"])
            .output(format!("thrown-{}", compiler.name()))
            .build(context)?;
        let name = format!("exceptions of a plug-in are caught in the program, {}", compiler.name());
        same(context, report, &name, &program, Want::Clean("caught 200"), |run| run);
    }
    Ok(())
}
