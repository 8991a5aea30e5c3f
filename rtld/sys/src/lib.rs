//! Every system call of the workspace, the auxiliary vector, the thread pointer, and the memory
//! functions that compiled code expects to find.
//!
//! Depends on nothing of ours, keeps no state, allocates nothing. Errors are [`Errno`] values.
#![cfg_attr(not(test), no_std)]

pub mod auxv;
mod call;
pub mod errno;
pub mod file;
#[cfg(feature = "freestanding")]
mod freestanding;
pub mod lock;
pub mod memory;
pub mod process;
pub mod processor;
mod registers;
pub mod signal;
pub mod thread;

pub use errno::Errno;
