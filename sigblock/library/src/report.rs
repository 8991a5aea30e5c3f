//! One line on standard error.

use core::fmt::{self, Write};
use rtld_sys::file;

/// Text that is written in one piece, cut where it is too long.
struct Line {
    bytes: [u8; 512],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

/// Bytes as text: those that are no printable ASCII are escaped.
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// Writes a line, which has its end.
pub fn line(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 512], used: 0 };
    let _ = line.write_fmt(text);
    if let Some(bytes) = line.bytes.get(..line.used) {
        file::write_all(file::STDERR, bytes);
    }
}
