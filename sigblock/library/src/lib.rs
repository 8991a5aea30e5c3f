//! `libsigblock`: fast sigblock as a library, for programs on any loader. It gives a program the functions of
//! `sigblock.h`, and brackets the loader's own functions with sections.
//!
//! It depends on the C library alone, allocates nothing, and leaves everything to our own loader where it runs under that.
#![no_std]

mod area;
mod brackets;
mod exports;
mod report;
mod start;
mod system;

#[panic_handler]
fn panic(information: &core::panic::PanicInfo<'_>) -> ! {
    report::line(format_args!("libsigblock: {information}\n"));
    rtld_sys::process::abort()
}
