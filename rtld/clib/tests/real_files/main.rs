//! The crate against the machine's own glibc: its files laid out in memory, and what glibc's debug information, its own loader
//! and the running process say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test may panic and allocate"
)]

mod layout;
mod mapped;
mod publish;
mod recognise;
mod thread;
mod tunables;
