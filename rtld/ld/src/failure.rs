//! How a start ends that cannot go on: the line that says why, and the exit status.

use crate::constants::CANNOT_START;
use crate::report::error;
use rtld_link::error::{Class, Error};
use rtld_link::text::Bytes;
use rtld_sys::process;

/// Ends the process with the line that says why a program cannot be started.
pub fn cannot_start(program: &[u8], failure: &Error) -> ! {
    tell(program, failure);
    process::exit(CANNOT_START)
}

/// Writes the line that says why something cannot be loaded or linked.
pub fn tell(program: &[u8], failure: &Error) {
    let program = Bytes(program);
    match failure.reason.class() {
        Class::Load => error(format_args!("{program}: error while loading shared libraries: {failure}\n")),
        Class::SymbolLookup => {
            let file = if failure.file.is_empty() { program } else { Bytes(failure.file.as_bytes()) };
            error(format_args!("{program}: symbol lookup error: {file}: {}\n", failure.reason));
        }
    }
}
