//! `--help`, `--version`, and what is said about a wrong command line.

use crate::constants::{FAILURE, NAME, VERSION};
use crate::environment::VARIABLES;
use crate::options::{OPTIONS, Stop};
use crate::report::{Writer, error, output};
use core::fmt::Write;
use rtld_link::object::ObjectSet;
use rtld_link::search::Search;
use rtld_link::text::Bytes;
use rtld_sys::{file, process};

/// Says what there is to say instead of starting a program, and ends the process.
pub fn stop(stop: Stop, ourselves: &[u8], search: &mut Search<'_>) -> ! {
    let me = Bytes(ourselves);
    match stop {
        Stop::Help => {
            help(ourselves, search);
            process::exit(0)
        }
        Stop::Version => {
            output(format_args!("{NAME} {VERSION}\nA dynamic linker for x86-64 ELF programs; hosts glibc.\n"));
            process::exit(0)
        }
        // The command line's side has done this one: it needs more than the search.
        Stop::Diagnostics => process::exit(0),
        Stop::NoProgram => {
            error(format_args!("{me}: missing program name\nTry '{me} --help' for more information.\n"));
        }
        Stop::Unknown(option) => {
            let option = Bytes(option.to_bytes());
            error(format_args!("{me}: unrecognized option '{option}'\nTry '{me} --help' for more information.\n"));
        }
        Stop::NoValue(option) => {
            let option = Bytes(option.to_bytes());
            error(format_args!("{me}: option '{option}' needs a value\nTry '{me} --help' for more information.\n"));
        }
    }
    process::exit(FAILURE)
}

fn help(ourselves: &[u8], search: &mut Search<'_>) {
    let mut out = Writer::new(file::STDOUT);
    let _ = writeln!(out, "Usage: {} [OPTION]... PROGRAM [ARGUMENT]...", Bytes(ourselves));
    for option in OPTIONS {
        let name = option.names.first().copied().unwrap_or_default();
        let value = option.value_name().unwrap_or_default();
        let width = 23_usize.saturating_sub(name.len() + 1);
        let _ = writeln!(out, "  {name} {value:width$} {}", option.meaning);
    }
    out.bytes(b"  --                      end of the options\nEnvironment (ignored in secure mode):\n");
    for variable in VARIABLES {
        let width = 23_usize.saturating_sub(3);
        let _ = writeln!(out, "  LD_{:width$} {}", variable.name, variable.meaning);
    }
    out.bytes(b"Libraries are looked for in DT_RPATH, then in this order:\n");
    let shown = search.describe(&ObjectSet::new(), |path, origin| {
        let path = path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path);
        out.bytes(b"  ");
        out.bytes(path);
        let _ = writeln!(out, " ({origin})");
    });
    if shown.is_err() {
        out.bytes(b"  (cannot allocate memory)\n");
    }
    out.bytes(b"Subdirectories of glibc-hwcaps, best first:");
    for level in search.levels() {
        let _ = write!(out, " {}", level.name());
    }
    out.bytes(b"\n");
}
