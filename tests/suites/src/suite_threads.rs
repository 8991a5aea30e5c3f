//! Suite `threads`: what glibc's threads need of the loader: thread-local blocks of new and reused stacks, cancellation,
//! C++ objects, binding from many threads at once, exceptions and threads while libraries come and go. Owns the builds; the
//! programs check themselves and print counts.

use crate::harness::{Build, Compiler, Context, Report};
use crate::same::{Want, same, written};
use anyhow::Result;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    tour(context, report)?;
    binding(context, report)?;
    objects(context, report)?;
    unwinding(context, report)?;
    racing(context, report)
}

/// Subjects one by one, 64 threads in 50 rounds, and `cases/compat`'s own tour.
fn tour(context: &Context, report: &mut Report) -> Result<()> {
    let program = Build::new("threads/tour.c").flags(&["-O1", "-pthread"]).build(context)?;
    let want = "one after another 100, stack reused 99, keys destroyed 100
eight at a time 160, keys destroyed 260
exit 9 cleaned 1
cancelled 1 cleaned 2
cancelled at once 1 cleaned 3
cancellation refused 5
detached 0
stack: inside 1 size 262144 guard 8192
stack: inside 1 size 131072 guard 0
main stack: inside 1
default stack 8388608
robust: owner died 1 consistent 0 unlocked 0
signalled 1 cleaned 4
name renamed";
    same(
        context,
        report,
        "create, join, exit, cancel, stacks, robust mutexes, keys",
        &program,
        Want::Clean(want),
        |run| run,
    );
    let program = Build::new("threads/crowd.c").flags(&["-O1", "-pthread"]).build(context)?;
    same(context, report, "64 threads, 50 rounds", &program, Want::Clean("3200"), |run| run);
    let program = Build::new("threads/first-malloc.c").flags(&["-O1", "-pthread"]).build(context)?;
    same(
        context,
        report,
        "the first uses of malloc are those of four threads",
        &program,
        Want::Clean("all rounds"),
        |run| run,
    );
    let program = Build::new("cases/thr.c").flags(&["-O1", "-pthread"]).build(context)?;
    let want = "join ok=1 dtors=12
cancel 1 cleanup 1
stack 1
fork child 7
cpu>=0 1
time 1
sysconf 4096 100 1
system 3
popen";
    same(context, report, "cases/thr", &program, Want::Clean(want), |run| run);
    Ok(())
}

/// First calls from eight threads at once, many times over, as a race shows only sometimes.
fn binding(context: &Context, report: &mut Report) -> Result<()> {
    let library = Build::new("threads/bound_library.c").shared().flag("-O1").build(context)?;
    let program =
        Build::new("threads/bound.c").flags(&["-O1", "-pthread", "-Wl,-z,lazy"]).with(library).build(context)?;
    for round in 1..=10 {
        same(
            context,
            report,
            &format!("64 functions bound by 8 threads at once, {round}"),
            &program,
            Want::Clean("512"),
            |run| run,
        );
    }
    Ok(())
}

fn objects(context: &Context, report: &mut Report) -> Result<()> {
    for compiler in [Compiler::Gcc, Compiler::Clang] {
        let place = format!("objects-{}", compiler.name());
        let library = Build::new("threads/object_library.cpp")
            .shared()
            .compiler(compiler)
            .flag("-O1")
            .output(format!("{place}/libobject.so"))
            .build(context)?;
        let program = Build::new("threads/objects.cpp")
            .compiler(compiler)
            .flags(&["-O1", "-pthread"])
            .with(library)
            .output(format!("{place}/objects"))
            .build(context)?;
        // Two objects in each of nine threads, one in the cancelled one, two in main that live on.
        let want =
            "returned: made 16 gone 16\nexited: made 18 gone 18\ncancelled: made 19 gone 19\nmain: made 21 gone 19";
        let name = format!("thread_local objects of program and library, {}", compiler.name());
        same(context, report, &name, &program, Want::Clean(want), |run| run);
    }
    Ok(())
}

fn unwinding(context: &Context, report: &mut Report) -> Result<()> {
    let library =
        Build::new("threads/thrower_library.cpp").shared().flag("-O1").output("libthrower.so").build(context)?;
    for number in 0..3 {
        Build::new("dlfcn/thread_value.c").shared().output(format!("unwinding/lib{number}.so")).build(context)?;
    }
    let program = Build::new("threads/unwinding.cpp")
        .flags(&["-O1", "-pthread"])
        .with(library)
        .output("unwind")
        .build(context)?;
    let want = "opened 300, caught enough 1, wrong 0";
    let name = "exceptions in 8 threads while another opens and closes";
    same(context, report, name, &program, Want::Clean(want), |run| run);
    Ok(())
}

fn racing(context: &Context, report: &mut Report) -> Result<()> {
    // Three modules that blocks are made for in each thread, and one that lies in every thread's static blocks: of two, closed in
    // the order they were opened in, neither gives its place back, under ld-linux as under ours.
    for number in 0..4 {
        let size =
            if number < 3 { format!("-DSIZE={}", 100 + 3000 * number) } else { "-DMODEL=\"initial-exec\"".to_owned() };
        Build::new("tls/module.c")
            .shared()
            .flags(&["-O1", "-DNUMBER=5"])
            .flag(size)
            .output(format!("racing/lib{number}.so"))
            .build(context)?;
    }
    let program =
        Build::new("threads/racing.c").flags(&["-O1", "-pthread", "-rdynamic"]).output("race").build(context)?;
    let name = "threads come and go while modules with thread-local data are opened and closed";
    // Threads that begin while a module is opened are where ld-linux has failed for years (BZ 19329, users.md D4).
    written(context, report, name, &program, Want::Clean("wrong 0"), |run| run);
    Ok(())
}
