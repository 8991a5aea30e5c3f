//! Suite `runtime-unload`: unloading (issue 6, clause 1) and reclamation (clause 5): what dlclose takes away, what it must keep
//! and for how long, what destructors may do meanwhile, what tells about objects afterwards, and that 10,000 rounds leave nothing.
//! Owns the builds; the programs of `tests/programs/runtime` print what they find.

use crate::clauses::{Case, run_cases};
use crate::harness::{Bind, Build, Context, Report, Run, Status, Way};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::fs;

/// The cases.
pub const CASES: &[Case] = &[
    Case { name: "6.1 counts per handle and per dependency", run: counts },
    Case { name: "6.1 bindings, weak and unique definitions keep what they lead to", run: held },
    Case { name: "6.1 a thread-local destructor that waits keeps its object", run: destructors },
    Case { name: "6.1 atexit handlers run when their object goes", run: exits },
    Case { name: "6.1 finalisers use the loader, also on the object being closed", run: finalisers },
    Case { name: "6.1 TLS module ids are used again and no thread sees an old block", run: modules },
    Case { name: "6.1 scopes, link maps, r_debug, iteration and unwinder follow", run: follows },
    Case { name: "6.5 10,000 rounds by 4 threads leave memory and mappings as after 100", run: bounded },
    Case { name: "6.5 rounds beside callbacks that never pause leave nothing", run: bounded_iterating },
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    run_cases(context, report, CASES);
    Ok(())
}

/// Libraries that stand beside those that need them.
const BESIDE: [&str; 2] = ["-Wl,--no-as-needed", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"];

/// `runtime/part.c` as `DIRECTORY/libpart-NAME.so`.
fn part(directory: &str, name: &str) -> Build {
    let build = Build::new("runtime/part.c").shared().flags(&["-O1"]).flags(&BESIDE).flag(format!("-DNAME={name}"));
    build.flag(format!("-Wl,-soname,libpart-{name}.so")).output(format!("{directory}/libpart-{name}.so"))
}

fn counts(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let base = part("counts", "base").build(context)?;
    let one = part("counts", "one").flag("-DNEEDS=base").with(&base).build(context)?;
    part("counts", "two").flag("-DNEEDS=one").with(&one).with(&base).build(context)?;
    // Loads fresh libraries, then fails.
    let fresh = part("counts", "fresh").build(context)?;
    let missing =
        Build::inline("counts/missing.c", "int missing;\n").shared().output("counts/libmissing.so").build(context)?;
    part("counts", "broken").flag("-DNEEDS=fresh").with(&fresh).with(&base).with(&missing).build(context)?;
    fs::remove_file(missing)?;
    let program = Build::new("runtime/counts.c").flag("-O1").output("counts/program").build(context)?;
    let want = "+base\n+one\n+two\none handle 1, values 3 1\nnot loaded anew 1
two closed once: base 1 one 1 two 1\nstill 3\n-two\ntwo closed twice: base 1 one 1 two 0\none 2
base closed: base 1 one 1 two 0\n-one\n-base\none closed: base 0 one 0 two 0
closed once too often 1, loaded 0
+base\n+one\nfailed 1\nafter a failure: base 1 one 1 two 0\n-one\n-base\nend: base 0 one 0 two 0";
    // Under ld-linux the handle that is closed once too often may be freed memory.
    written(context, report, name, &program, Want::Clean(want), |run| run);
    Ok(())
}

fn held(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    for number in 1..=4 {
        let output = format!("held/libgiver{number}.so");
        Build::new("runtime/giver.c").shared().flag("-O1").output(output).build(context)?;
    }
    for (output, flag) in [("held/libuser.so", "-Wl,-z,lazy"), ("held/libbound.so", "-Wl,-z,now")] {
        Build::new("runtime/user.c").shared().flags(&["-O1", flag]).output(output).build(context)?;
    }
    Build::inline("held/other.c", "char other[100000];\n").shared().output("held/libother.so").build(context)?;
    for number in 1..=2 {
        let output = format!("held/libunique{number}.so");
        Build::new("dlfcn/unique.cpp").shared().flag("-O1").output(output).build(context)?;
    }
    let program = Build::new("runtime/held.cpp").flag("-O1").output("held/program").build(context)?;
    let line =
        |title: &str, value: u32| format!("{title}: {value}, closed: mapped 1, {value}, user closed: mapped 0\n");
    let want = [
        line("a function", 11),
        line("a weak function", 12),
        line("at load", 11),
        line("a name by RTLD_DEFAULT", 13),
        "unique 11 12, mapped 1, again 13".to_owned(),
    ];
    same(context, report, name, &program, Want::Clean(&want.concat()), |run| run);
    Ok(())
}

fn destructors(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    Build::new("tls/destructor.cpp").shared().flag("-O1").output("libdestructor.so").build(context)?;
    let program = Build::new("tls/destroyed.cpp").flags(&["-O1", "-pthread"]).build(context)?;
    let round = "touched 5\nclosed, mapped 1\ndestroyed 5\nended\nclosed again, mapped 0";
    same(context, report, name, &program, Want::Clean(&format!("{round}\n{round}")), |run| run);
    Ok(())
}

fn exits(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    Build::new("runtime/exiting.c").shared().flag("-O1").output("libexiting.so").build(context)?;
    let program = Build::new("runtime/exits.c").flags(&["-O1", "-pthread"]).build(context)?;
    let round = "destructor\nhandler of 2\nhandler of 1\nclosed, mapped 0";
    let want = format!("{round}\n{round}\nend\nhandler of 3\nthe program's own\ndestructor");
    same(context, report, name, &program, Want::Clean(&want), |run| run);
    Ok(())
}

fn finalisers(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    Build::new("runtime/finaliser.c").shared().flag("-O1").output("finalisers/libfinaliser.so").build(context)?;
    part("finalisers", "x").build(context)?;
    let program =
        Build::new("runtime/finalisers.c").flags(&["-O1", "-pthread"]).output("finalisers/program").build(context)?;
    let plain = "closed 0\nmapped 0, another 0\nanew 1";
    let shared = [
        ("looks", format!("by handle 2, by address libfinaliser.so, default 1\n{plain}")),
        ("opens", format!("the same 1, 2, closed 0\n{plain}")),
        ("another", "+x\nopened another 1\nclosed 0\nmapped 0, another 1\nanew 1\n-x".to_owned()),
    ];
    for (argument, want) in &shared {
        same(context, report, &format!("{name}: {argument}"), &program, Want::Clean(want), |run| run.args([argument]));
    }
    // Under ld-linux 2.36 the destructor's handle leads to unmapped memory, a count that is 0 is counted down, the destructors of what
    // it closes are left out, and a thread that the destructor waits for waits for the destructor.
    let own = [
        ("keeps", "kept 2\nclosed 0\nmapped 1, another 0\nstill 3, closed 0, mapped 0\nanew 1".to_owned()),
        ("itself", format!("closed once more 1: ./finalisers/libfinaliser.so: shared object not open\n{plain}")),
        ("closes", format!("+x\nclosed another 0\n-x\n{plain}")),
        ("thread", format!("+x\nopened another 1\nclosed another 0\n-x\n{plain}")),
    ];
    for (argument, want) in &own {
        let name = format!("{name}: {argument}");
        written(context, report, &name, &program, Want::Clean(want), |run| run.args([argument]).limit(30));
    }
    Ok(())
}

fn modules(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    for (dialect, flag) in [("general dynamic", "-mtls-dialect=gnu"), ("TLSDESC", "-mtls-dialect=gnu2")] {
        for number in 1..=3 {
            let build = Build::new("tls/module.c").shared().flags(&["-O1", flag]).flag(format!("-DNUMBER={number}"));
            build.flag(format!("-DSIZE={}", number * 3000)).output(format!("modules/lib{number}.so")).build(context)?;
        }
        let program =
            Build::new("runtime/modules.c").flags(&["-O1", "-pthread"]).output("modules/program").build(context)?;
        // ld-linux 2.34 to 2.36 is known to confuse blocks here (users.md D6).
        let name = format!("{name}: {dialect}");
        written(context, report, &name, &program, Want::Clean("right 1800 of 1800, module ids 1"), |run| run);
    }
    Ok(())
}

fn follows(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    Build::new("runtime/followed.cpp").shared().flag("-O1").output("follows/libfollowed.so").build(context)?;
    let program =
        Build::new("runtime/follows.cpp").flags(&["-O1", "-std=c++17"]).output("follows/program").build(context)?;
    let mut want = String::new();
    for round in 1..=6 {
        let global = (round + 1) % 2;
        want += &format!(
            "open: listed 1 0, iterated 1, more 1, adds {round} subs {}, dladdr libfollowed.so, found 1, global {global}, caught 1
closed: listed 0 0, iterated 0, more 0, adds {round} subs {round}, dladdr (no object), found 0, global 0\n",
            round - 1
        );
    }
    same(context, report, name, &program, Want::Clean(want.trim_end()), |run| run);
    Ok(())
}

fn bounded(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    rounds(context, report, name, "10000", &[], Slack { mappings: 4, resident: 128 })
}

/// What iterating threads hold up at the last moment is there still: some objects of five mappings.
fn bounded_iterating(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    rounds(context, report, name, "2000", &["iterating"], Slack { mappings: 100, resident: 1024 })
}

/// How much more there may be after the last round: the loader's heap keeps the largest extent that it had, in pieces of 64 KiB.
/// One object in a hundred rounds, or 40 bytes in each, would be more.
struct Slack {
    mappings: u64,
    /// KiB beside 1 %.
    resident: u64,
}

/// Mappings, descriptors, objects, next TLS module, resident KiB at one moment.
type Counts = [u64; 5];

/// Four checks: right values, the same counts, mappings and resident memory no more than the slack above those after 100 rounds.
fn rounds(
    context: &Context,
    report: &mut Report,
    name: &str,
    rounds: &str,
    beside: &[&str],
    slack: Slack,
) -> Result<()> {
    for (number, dialect) in [(0, "gnu"), (1, "gnu2"), (2, "gnu"), (3, "gnu2"), (4, "gnu2")] {
        Build::new("runtime/bounded_library.cpp")
            .shared()
            .flags(&["-O1", "-std=c++17", "-Wl,-z,lazy"])
            .flag(format!("-mtls-dialect={dialect}"))
            .output(format!("bounded/libbounded{number}.so"))
            .build(context)?;
    }
    let flags = ["-O1", "-std=c++17", "-pthread", "-Wl,--no-as-needed"];
    let program = Build::new("runtime/bounded.cpp").flags(&flags).output("bounded/program").build(context)?;
    let run = Run::new(&program).way(Way::Interpreter).bind(Bind::Lazy).args([rounds]).args(beside).limit(120);
    let outcome = run.output(context)?;
    let text = outcome.text();
    let right = outcome.status == Status::Exit(0) && text.ends_with("wrong 0\n") && outcome.stderr.is_empty();
    let verdict =
        if right { Ok(()) } else { Err(format!("expected Exit(0), wrong 0\ngot      {}", outcome.describe())) };
    report.check(format!("{name}: right in every round"), verdict);
    let counts: Vec<Counts> = text.lines().filter_map(parse).collect();
    // The first one touched what counting needs.
    let [_, early, late] = counts.as_slice() else {
        report.check(format!("{name}: counts"), Err(format!("no counts\n{}", outcome.describe())));
        return Ok(());
    };
    report.note(format!("{name}: {early:?} after 100 rounds, {late:?} after {rounds}"));
    let ([early_mappings, same_early @ .., before], [late_mappings, same_late @ .., after]) = (early, late);
    report.equal(format!("{name}: descriptors, objects, TLS modules"), same_late, same_early);
    at_most(report, &format!("{name}: mappings"), *late_mappings, early_mappings + slack.mappings);
    at_most(report, &format!("{name}: resident memory"), *after, before + before / 100 + slack.resident);
    Ok(())
}

fn at_most(report: &mut Report, name: &str, got: u64, most: u64) {
    report.check(name, if got <= most { Ok(()) } else { Err(format!("expected {most} at most\ngot      {got}")) });
}

fn parse(line: &str) -> Option<Counts> {
    line.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()
}
