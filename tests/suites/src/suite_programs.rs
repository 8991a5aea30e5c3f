//! Suite `programs`: programs of the distribution, all of `../shared/cases/compat/programs.sh` among them, each directly and as PT_INTERP, lazily and bound at
//! start; status and both outputs are those under ld-linux in the same run. A missing program is a failure.

mod opening;

use crate::harness::{Bind, Build, Context, Report, Run, WAYS, Way};
use anyhow::Context as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, the Debian package that has it, its arguments.
type Program = (&'static str, &'static str, &'static [&'static str]);

const PROGRAMS: &[Program] = &[
    ("/bin/true", "coreutils", &[]),
    ("/bin/false", "coreutils", &[]),
    ("/bin/bash", "bash", &["-c", "echo $((1+2)); ls / | wc -l; trap 'echo bye' EXIT; exit 3"]),
    ("/bin/sh", "dash", &["-c", "echo one | cat; kill -TERM $$"]),
    ("/usr/bin/python3", "python3", &["-S", "-c", "import sys; print(sys.version_info[0], sum(range(10)))"]),
    (
        "/usr/bin/python3",
        "python3",
        &["-S", "-c", "import os; p = os.fork(); p or os._exit(7); print(os.waitpid(p, 0)[1])"],
    ),
    (
        "/usr/bin/python3",
        "python3",
        &[
            "-S",
            "-c",
            "import _thread as t; l = t.allocate_lock(); l.acquire(); t.start_new_thread(l.release, ()); l.acquire(); print('joined')",
        ],
    ),
    (
        "/usr/bin/perl",
        "perl",
        &["-e", "print join(',', map { $_ * $_ } 1..10), \"\\n\"; fork or exit 0; wait; print \"done\\n\""],
    ),
    ("/usr/bin/git", "git", &["--version"]),
    ("/usr/bin/git", "git", &["--help"]),
    ("/usr/bin/gdb", "gdb", &["--version"]),
    ("/usr/bin/sqlite3", "sqlite3", &[":memory:", "select 1+2, sqlite_version(), round(sqrt(2), 6);"]),
    ("/usr/bin/strace", "strace", &["--version"]),
    ("/usr/bin/openssl", "openssl", &["version"]),
    ("/usr/bin/openssl", "openssl", &["dgst", "-sha256", "/etc/passwd"]),
    ("/usr/bin/readelf", "binutils", &["-h", "/bin/true"]),
    ("/usr/bin/gcc", "gcc", &["--version"]),
    ("/usr/bin/make", "make", &["--version"]),
    ("/usr/bin/find", "findutils", &["/etc", "-maxdepth", "1", "-name", "p*"]),
    ("/bin/tar", "tar", &["--version"]),
    ("/bin/tar", "tar", &["-cf", "/dev/null", "-C", "/etc", "passwd"]),
    ("/usr/bin/sort", "coreutils", &["-r", "/etc/passwd"]),
    ("/usr/bin/sha512sum", "coreutils", &["/etc/passwd"]),
    ("/usr/bin/id", "coreutils", &[]),
    ("/usr/bin/date", "coreutils", &["-u", "-d", "@86400", "+%Y-%m-%d %A"]),
    ("/usr/bin/awk", "gawk or mawk", &["BEGIN{print 1+1, sin(1)}"]),
    ("/bin/grep", "grep", &["-c", "root", "/etc/passwd"]),
    ("/bin/grep", "grep", &["-P", "^r(o+)t", "/etc/passwd"]),
    ("/bin/sed", "sed", &["-n", "1p", "/etc/passwd"]),
    ("/bin/ls", "coreutils", &["-ld", "/etc", "/nonexistent"]),
    ("/usr/bin/dpkg", "dpkg", &["-l", "libc6"]),
    ("/usr/bin/apt-cache", "apt", &["policy", "libc6"]),
    ("/usr/bin/ssh", "openssh-client", &["-V"]),
    ("/usr/bin/vim", "vim", &["--version"]),
    ("/usr/bin/getent", "libc-bin", &["passwd", "root"]),
    ("/usr/bin/getent", "libc-bin", &["hosts", "localhost"]),
    ("/usr/bin/xz", "xz-utils", &["--version"]),
    ("/usr/bin/locale", "libc-bin", &[]),
    ("/usr/bin/g++", "g++", &["-dumpfullversion"]),
    ("/usr/bin/clang", "clang", &["-dumpversion"]),
    ("/usr/bin/ld.bfd", "binutils", &["--version"]),
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for &(path, package, arguments) in PROGRAMS.iter().chain(opening::PROGRAMS) {
        let program = Path::new(path);
        if program.exists() {
            compare(context, report, program, None, arguments)?;
        } else {
            report.check(path, Err(format!("not installed (Debian package {package})")));
        }
    }
    report.equal("at least 25 programs", PROGRAMS.len() >= 25, true);
    let threads = Build::new("programs/threads.c").flags(&["-O1", "-pthread"]).build(context)?;
    compare(context, report, &threads, None, &[])?;
    opening::built(context, report)?;
    compiler_proper(context, report)?;
    tool_chain(context, report)
}

/// One program in four ways against ld-linux. `copy` is where the copy with our PT_INTERP lies, if its place matters.
fn compare(
    context: &Context,
    report: &mut Report,
    program: &Path,
    copy: Option<&Path>,
    arguments: &[&str],
) -> anyhow::Result<()> {
    let run = Run::new(program).args(arguments);
    let want = run.clone().way(Way::Reference).output(context)?;
    for (way, bind) in WAYS {
        let mut run = run.clone().way(way).bind(bind);
        if let Some(copy) = copy {
            run = run.copy(copy);
        }
        let name = format!("{} {} ({way:?}, {bind:?})", program.display(), arguments.join(" "));
        let result = run.output(context).map_err(|error| format!("{error:#}")).and_then(|got| got.same_as(&want));
        report.check(name, result);
    }
    let bound = run.way(Way::Reference).bind(Bind::Now).output(context)?;
    // If ld-linux itself differed, the comparison above would mean nothing for the bound ways.
    report.check(
        format!("{} {}: ld-linux is the same bound", program.display(), arguments.join(" ")),
        bound.same_as(&want),
    );
    Ok(())
}

/// gcc's C++ compiler proper, the largest program of the set.
fn compiler_proper(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let output = Command::new("g++").arg("-print-prog-name=cc1plus").output().context("g++ (Debian package g++)")?;
    let path = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    compare(context, report, &path, None, &["--version"])
}

/// The Rust tool chain: `$ORIGIN/../lib` in RUNPATH, so that a copy needs the directories around it.
fn tool_chain(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    let root = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let place = context.work.join("sysroot");
    fs::create_dir_all(place.join("bin"))?;
    symlink(root.join("lib"), place.join("lib"))?;
    for name in ["rustc", "cargo"] {
        compare(context, report, &root.join("bin").join(name), Some(&place.join("bin").join(name)), &["--version"])?;
    }
    Ok(())
}
