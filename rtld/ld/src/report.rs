//! Messages: each is put together in a fixed buffer and written with one system call, so that lines of several threads
//! or processes do not mix. No allocation, no locale.

use crate::constants::NAME;
use core::fmt::{self, Write};
use rtld_sys::{file, process};

/// A buffer that writes itself out when it is full and when it is dropped.
pub struct Writer {
    descriptor: i32,
    used: usize,
    buffer: [u8; 512],
}

impl Writer {
    /// For a descriptor.
    pub fn new(descriptor: i32) -> Writer {
        Writer { descriptor, used: 0, buffer: [0; 512] }
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.buffer.get_mut(self.used..).unwrap_or_default();
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(place) = room.get_mut(..count) {
                place.copy_from_slice(now);
            }
            self.used += count;
            bytes = later;
            if self.used == self.buffer.len() {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        file::write_all(self.descriptor, self.buffer.get(..self.used).unwrap_or_default());
        self.used = 0;
    }
}

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Writes one message to standard error.
pub fn error(message: fmt::Arguments<'_>) {
    let _ = Writer::new(file::STDERR).write_fmt(message);
}

/// Writes to standard output.
pub fn output(message: fmt::Arguments<'_>) {
    let _ = Writer::new(file::STDOUT).write_fmt(message);
}

/// One line about a mistake of ours, and the end of the process.
pub fn bug(information: &core::panic::PanicInfo<'_>) -> ! {
    match information.location() {
        Some(place) => {
            error(format_args!("{NAME}: bug: panic at {}:{}: {}\n", place.file(), place.line(), information.message()))
        }
        None => error(format_args!("{NAME}: bug: panic\n")),
    }
    process::abort()
}
