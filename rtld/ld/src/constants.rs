//! Names and numbers that people and other programs see.

/// What this program calls itself in its own messages.
pub const NAME: &str = "ld-elf.so.1";
/// Its version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exit status when a program cannot be started: a library or a symbol is missing, a file is damaged.
pub const CANNOT_START: i32 = 127;
/// Exit status of a wrong command line, of a missing version, and of a listing with something missing.
pub const FAILURE: i32 = 1;
/// Exit status of `--verify` for an object that this linker would load but that names no interpreter.
pub const NO_INTERPRETER: i32 = 2;
