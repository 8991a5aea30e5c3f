//! Fast sigblock: a word in user memory that says whether its thread is inside a section, and what makes signals wait for
//! the section's end.
//!
//! A thread inside a section runs no handler of an asynchronous signal. Entering and leaving is one write to the thread's
//! own word; only if a signal came is there more to do at the end. What honours the word is the back end: a patched
//! kernel, our own first-line handlers (user mode), two sigprocmask calls, or nothing.
//!
//! Depends on rtld-sys alone, allocates nothing, and is entered only by threads whose [`ThreadState`] is there.
#![cfg_attr(not(test), no_std)]

mod action;
pub mod api;
pub mod backend;
pub mod callback;
mod change_lock;
mod deliver;
mod direct;
mod disposition;
mod first_line;
pub mod fork;
mod hold;
mod jump;
pub mod lineage;
mod mask;
mod outside;
mod replace;
pub mod section;
mod stash;
mod state;
mod thread_end;
mod vfork;
mod wait;
pub mod word;

pub use replace::{REPLACED, replacement};
pub use state::{AREA, ThreadState, clear, current, forget, of, prepare, set_area};
