//! Suite `init-order`: constructors and destructors, in which order they run, what they are given, and on what stack. Owns the
//! fixed cases; graphs of libraries lie in `graph`.

mod graph;

use crate::harness::{Bind, Build, Context, Report, Run, Status, WAYS, Way, always};
use crate::same::{Want, label, same, written};
use graph::Graph;
use std::path::PathBuf;

/// Frame pointers tell the programs whether their stack is aligned; no stack protector: some run without a C library.
const FLAGS: &[&str] = &["-O1", "-fno-omit-frame-pointer", "-fno-stack-protector"];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    graph::named(context, report)?;
    graph::random(context, report)?;
    init_first(context, report)?;
    preloaded(context, report)?;
    every_kind(context, report)?;
    exits(context, report)?;
    bare(context, report)
}

/// DF_1_INITFIRST: before everything else, its own dependencies included, as in glibc.
fn init_first(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::parse("main: a i b\na: c\ni: p\nb:\nc:\np:");
    let program = graph.build(context, "initfirst", &["i"])?;
    let want = "+i\n+p\n+c\n+b\n+a\n+main\nmain\n-main\n-a\n-b\n-c\n-p\n-i";
    // ld-linux finalises it in the place of its dependencies, which is not the reverse of what it did: only ours is asked for.
    written(context, report, "DF_1_INITFIRST", &program, Want::Prints(want), |run| run);
    Ok(())
}

/// A preloaded library that nothing depends on begins before what the program depends on, and after its own dependencies.
/// (ld-linux begins it last, which preloaded allocators and interposers do not expect.)
fn preloaded(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Graph::parse("main: a b\na: c\nb:\nc:").build(context, "preloaded", &[])?;
    let directory = program.with_file_name("");
    Graph::parse("main: q\nq: p\np:").build(context, "preload", &[])?;
    let other = context.work.join("preload");
    let (q, a) = (other.join("libq.so"), directory.join("liba.so"));
    let plain = "+c\n+b\n+a\n+main\nmain\n-main\n-a\n-b\n-c";
    same(context, report, "nothing preloaded", &program, Want::Prints(plain), |run| run);
    let want = "+p\n+q\n+c\n+b\n+a\n+main\nmain\n-main\n-a\n-b\n-c\n-q\n-p";
    written(context, report, "preloaded, unrelated", &program, Want::Prints(want), |run| run.env("LD_PRELOAD", &q));
    let want = "+c\n+a\n+b\n+main\nmain\n-main\n-b\n-a\n-c";
    written(context, report, "preloaded, a dependency of the program", &program, Want::Prints(want), |run| {
        run.env("LD_PRELOAD", &a)
    });
    Ok(())
}

/// Preinitialisers, DT_INIT, arrays, priorities, DT_FINI, handlers of exit; their arguments; the stack with every parity.
fn every_kind(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let legacy = "-Wl,-init=legacy_init,-fini=legacy_fini";
    let library = Build::new("init-order/all_library.c").shared().flags(FLAGS).flag(legacy).build(context)?;
    let program = Build::new("init-order/all.c").flags(FLAGS).flag(legacy).with(&library).build(context)?;
    let arguments = ["first", "second word", ""];
    let variables = [("A", "b"), ("C", ""), ("LONG", "a value of some length")];
    for count in 0..=3 {
        for size in 0..=3 {
            for (way, bind) in WAYS {
                // Equal environments: what the harness sets for one loader alone would show, and shift the stack.
                let given = |run: Run| {
                    let run = run.bind(bind).env_clear().args(arguments.iter().take(count));
                    let run = always().into_iter().fold(run, |run, (name, value)| run.env(name, value));
                    variables.iter().take(size).fold(run, |run, (name, value)| run.env(name, value))
                };
                let result = (|| -> anyhow::Result<Result<(), String>> {
                    let reference = given(Run::new(&program)).way(Way::Reference).output(context)?;
                    let text = reference.text();
                    if reference.status != Status::Exit(0) || text.contains("misaligned") || text.lines().count() != 27
                    {
                        return Ok(Err(format!(
                            "ld-linux does not do what this case is about\n{}",
                            reference.describe()
                        )));
                    }
                    Ok(given(Run::new(&program)).way(way).output(context)?.same_as(&reference))
                })();
                let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
                report.check(format!("every kind, {count} arguments, {size} variables ({})", label(way, bind)), result);
            }
        }
    }
    Ok(())
}

/// Which ways of leaving run destructors.
fn exits(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("init-order/exits.c").flags(FLAGS).flag("-pthread").build(context)?;
    for (how, status, text) in [
        ("return", Status::Exit(3), "-main\n"),
        ("exit", Status::Exit(5), "-main\n"),
        ("_exit", Status::Exit(6), ""),
        ("quick_exit", Status::Exit(7), "at_quick_exit\n"),
        ("thread", Status::Exit(4), "-main\n"),
        ("abort", Status::Signal(6), ""),
    ] {
        for (way, bind) in WAYS {
            let result = Run::new(&program)
                .way(way)
                .bind(bind)
                .args([how])
                .output(context)
                .map_err(|error| format!("{error:#}"));
            let result = result.and_then(|outcome| {
                let right = outcome.status == status && outcome.text() == text;
                if right {
                    Ok(())
                } else {
                    Err(format!("expected {status:?}, {text:?}\ngot      {}", outcome.describe()))
                }
            });
            report.check(format!("leaving by {how} ({})", label(way, bind)), result);
        }
    }
    let leaves = Build::new("init-order/exit_in_constructor.c").shared().flags(FLAGS).build(context)?;
    let below = Build::new("init-order/node.c")
        .shared()
        .flags(FLAGS)
        .flag("-DNODE=below")
        .output("libbelow.so")
        .build(context)?;
    let program = Build::new("init-order/root.c").flags(FLAGS).flag("-Wl,--no-as-needed").with(&leaves).with(&below);
    let program = program.output("exit_in_constructor").build(context)?;
    for (way, bind) in WAYS {
        let result = (|| -> anyhow::Result<Result<(), String>> {
            let reference = Run::new(&program).way(Way::Reference).bind(bind).output(context)?;
            if reference.status != Status::Exit(9) {
                return Ok(Err(format!("ld-linux does not do what this case is about\n{}", reference.describe())));
            }
            Ok(Run::new(&program).way(way).bind(bind).output(context)?.same_as(&reference))
        })();
        let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
        report.check(format!("a constructor that leaves ({})", label(way, bind)), result);
    }
    Ok(())
}

/// A program without a C library: entry, rdx, library, thread-local variables.
fn bare(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let plain = ["-nostdlib", "-nostartfiles"];
    // No access through `__tls_get_addr`: under ld-linux that needs a C library (calloc).
    for (model, flag) in [("initial-exec", "-ftls-model=initial-exec"), ("descriptors", "-mtls-dialect=gnu2")] {
        let directory = format!("bare-{model}");
        let library = Build::new("init-order/bare_library.c").shared().flags(FLAGS).flags(&plain).flag(flag);
        let library = library.output(format!("{directory}/libbare.so")).build(context)?;
        for (kind, flags) in [("PIE", ["-fpie", "-pie"]), ("non-PIE", ["-fno-pie", "-no-pie"])] {
            let program =
                Build::new("init-order/bare.S").source("init-order/bare.c").flags(FLAGS).flags(&plain).flags(&flags);
            let program: PathBuf = program.with(&library).output(format!("{directory}/bare-{kind}")).build(context)?;
            for count in 0..=3 {
                let arguments: Vec<&str> = ["x", "y", "z"].into_iter().take(count).collect();
                for (way, bind) in WAYS {
                    // ld-linux ends such a program with a failed assertion of its own (dl-fini.c), so this is written down.
                    let bound = if bind == Bind::Now { " [LD_BIND_NOW=1]" } else { "" };
                    let words: String = arguments.iter().map(|word| format!(" [{word}]")).collect();
                    let kept: String = always().iter().map(|(name, value)| format!(" [{name}={value}]")).collect();
                    let given = format!(" {}{words} |{bound}{kept}\n", count + 1);
                    let want = format!(
                        "program preinit\nlibrary constructor\n{given}entry\nprogram\n{given}AT_ENTRY is the program's\nlibrary called\nlibrary destructor\n"
                    );
                    let run = Run::new(&program).way(way).bind(bind).env_clear().args(&arguments);
                    let result = run.output(context).map_err(|error| format!("{error:#}")).and_then(|outcome| {
                        if outcome.status == Status::Exit(0) && outcome.text() == want {
                            return Ok(());
                        }
                        Err(format!("expected Exit(0), {want:?}\ngot      {}", outcome.describe()))
                    });
                    report.check(
                        format!("no C library, {model} {kind}, {count} arguments ({})", label(way, bind)),
                        result,
                    );
                }
            }
        }
    }
    Ok(())
}
