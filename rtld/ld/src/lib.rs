//! `ld-elf.so.1`: the artifact. Entry, options, the list of phases, the one static world, and exports of one line each.
//!
//! Everything that can be decided without globals lives in the other crates.
#![no_std]

extern crate alloc;

mod bring_up;
mod callback;
mod command;
mod constants;
mod debug;
mod diagnostics;
mod dlfcn;
mod entry;
mod environment;
mod exceptions;
mod executable_stack;
mod exports;
mod failure;
mod freebsd;
mod heap;
mod help;
mod host;
mod link_maps;
mod linking;
mod list;
mod main_thread;
mod options;
mod preload;
mod program;
mod report;
mod stack;
mod start;
mod trampoline;

#[panic_handler]
fn panic(information: &core::panic::PanicInfo<'_>) -> ! {
    report::bug(information)
}
