//! The programs of `../shared/cases/compat/programs.sh` that load more while they run: interpreters with extension modules, TLS
//! libraries with engines, name services and converters inside libc; and its three C and C++ programs.

use super::{Program, compare};
use crate::harness::{Build, Context, Report};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

pub(super) const PROGRAMS: &[Program] = &[
    ("/usr/bin/python3", "python3", &["-c", "import ssl, ctypes, json; print(1)"]),
    (
        "/usr/bin/python3",
        "python3",
        &[
            "-c",
            "import threading, sqlite3, decimal, hashlib, multiprocessing, subprocess, zlib, lzma, bz2, curses, readline
l = []
ts = [threading.Thread(target=lambda i=i: l.append(hashlib.sha256(b'x' * i).hexdigest())) for i in range(8)]
[t.start() for t in ts]
[t.join() for t in ts]
print(len(l), subprocess.run(['echo', 'hi'], capture_output=True).stdout, sqlite3.connect(':memory:').execute('select 1+1').fetchone())",
        ],
    ),
    (
        "/usr/bin/python3",
        "python3",
        &[
            "-c",
            "import ctypes, socket
l = ctypes.CDLL('libc.so.6')
print(l.strlen(b'abc'), ctypes.CDLL(None).getpid() > 0)
m = ctypes.CDLL('libm.so.6')
m.cos.restype = ctypes.c_double
m.cos.argtypes = [ctypes.c_double]
print(m.cos(0.0), socket.getaddrinfo('localhost', 80)[0][4])",
        ],
    ),
    (
        "/usr/bin/python3",
        "python3",
        &[
            "-c",
            "import ctypes
try:
    ctypes.CDLL('libnosuch.so.9')
except OSError as error:
    print(error)
try:
    ctypes.CDLL(None).no_such_function
except AttributeError as error:
    print(str(error).split(': ')[-1])",
        ],
    ),
    (
        "/usr/bin/perl",
        "perl",
        &[
            "-e",
            "use POSIX; use Socket; use List::Util qw(sum); print sum(1..10), ' ', floor(3.7), \"\\n\"; fork or exit 0; wait; print \"done\\n\"",
        ],
    ),
    ("/usr/bin/curl", "curl", &["--version"]),
    ("/usr/bin/curl", "curl", &["-s", "file:///etc/hostname"]),
    ("/usr/bin/openssl", "openssl", &["list", "-providers"]),
    ("/usr/bin/find", "findutils", &["/etc", "-maxdepth", "1"]),
    ("/usr/bin/sort", "coreutils", &["--version"]),
    ("/usr/bin/date", "coreutils", &["+%Y"]),
    ("/usr/bin/awk", "gawk or mawk", &["BEGIN{print 1+1, sin(1)}"]),
    ("/bin/grep", "grep", &["-c", "root", "/etc/passwd"]),
    ("/usr/bin/iconv", "libc-bin", &["-f", "UTF-8", "-t", "UTF-7", "/etc/hostname"]),
    ("/usr/bin/iconv", "libc-bin", &["-f", "UTF-8", "-t", "EUC-JP", "/etc/hostname"]),
    ("/bin/bash", "bash", &["-c", "echo $((1+2)); ls | wc -l"]),
];

/// The programs that are built, and rustc by its name on PATH.
pub(super) fn built(context: &Context, report: &mut Report) -> Result<()> {
    let library = Build::new("cases/cxa.cpp").shared().flag("-O1").output("libcxa.so").build(context)?;
    let program = Build::new("cases/cxm.cpp").flags(&["-O1", "-pthread"]).with(library).build(context)?;
    compare(context, report, &program, None, &[])?;
    let program = Build::new("cases/thr.c").flags(&["-O1", "-pthread"]).build(context)?;
    compare(context, report, &program, None, &[])?;
    let program = Build::new("cases/nss.c").flag("-O1").build(context)?;
    compare(context, report, &program, None, &[])?;
    let path = std::env::var_os("PATH").context("PATH")?;
    let rustc: PathBuf = std::env::split_paths(&path)
        .map(|directory| directory.join("rustc"))
        .find(|file| file.is_file())
        .context("no rustc on PATH")?;
    if Path::new(&rustc).canonicalize()?.ends_with("rustup") {
        // A proxy of rustup: a program of its own, which starts the tool chain's.
        compare(context, report, &rustc, None, &["--version"])?;
    }
    Ok(())
}
