//! Suite `fork`: fork, vfork, posix_spawn, system and popen of a single-threaded and of a threaded program, and what the child
//! of fork may do: bind, open, look up, iterate, throw, start threads, fork again. Owns the builds; the programs print statuses.

use crate::harness::{Build, Context, Report};
use crate::same::{Want, same, written};
use anyhow::Result;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for name in ["libchild.so", "libbusy.so"] {
        Build::new("tls/module.c").shared().flags(&["-O1", "-DNUMBER=5"]).output(name).build(context)?;
    }
    let program =
        Build::new("fork/processes.c").flags(&["-O1", "-pthread", "-fno-builtin", "-Wl,-z,lazy"]).build(context)?;
    let rest = "vfork 9
posix_spawn 11
posix_spawn of nothing 2
system 3
popen through the pipe
pclose 13
handlers 51
parent 5";
    let want = format!("fork 3 of 3\n{rest}");
    same(context, report, "a single-threaded program", &program, Want::Clean(&want), |run| run);
    // Under ld-linux 2.36 some of these children hang: another thread held the lock of dlopen (users.md 0, 3b).
    let want = format!("fork 100 of 100\n{rest}");
    written(context, report, "a threaded program whose threads open libraries", &program, Want::Clean(&want), |run| {
        run.args(["threads"]).limit(60)
    });
    let program = Build::new("fork/visited.c").flags(&["-O1", "-pthread"]).build(context)?;
    // Under ld-linux the children find the lock around callbacks held for ever.
    let want = "fork 1\n_Fork 1\nclone 1\nhandlers 1";
    written(context, report, "while another thread is in a callback", &program, Want::Clean(want), |run| run.limit(60));
    let library =
        Build::new("threads/thrower_library.cpp").shared().flag("-O1").output("libthrower.so").build(context)?;
    let program =
        Build::new("fork/throwing.cpp").flags(&["-O1", "-pthread", "-Wl,-z,lazy"]).with(library).build(context)?;
    let want = "single 43\nthreaded 20";
    same(context, report, "a child throws and starts threads", &program, Want::Clean(want), |run| run);
    Ok(())
}
