//! Owned names: bytes with a terminating NUL, made fallibly, handed out as C strings.

use crate::fallible::{OutOfMemory, try_extend, try_push};
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;

/// A file name or other text that the loader owns.
#[derive(PartialEq, Eq)]
pub struct Text(Vec<u8>);

impl Text {
    /// The concatenation of `parts`, cut at the first NUL in them (a path cannot hold one).
    pub fn join(parts: &[&[u8]]) -> Result<Text, OutOfMemory> {
        let mut bytes = Vec::new();
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        bytes.try_reserve_exact(length.saturating_add(1)).map_err(|_| OutOfMemory)?;
        for part in parts {
            let end = part.iter().position(|&byte| byte == 0).unwrap_or(part.len());
            try_extend(&mut bytes, part.get(..end).unwrap_or_default())?;
            if end < part.len() {
                break;
            }
        }
        try_push(&mut bytes, 0)?;
        Ok(Text(bytes))
    }

    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Result<Text, OutOfMemory> {
        Text::join(&[bytes])
    }

    /// The empty text, without memory of its own.
    pub const fn empty() -> Text {
        Text(Vec::new())
    }

    /// Another copy.
    pub fn try_clone(&self) -> Result<Text, OutOfMemory> {
        Text::new(self.as_bytes())
    }

    /// The bytes without the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split_last().map_or(&[], |(_, bytes)| bytes)
    }

    /// As a C string.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }

    /// Where its C string begins.
    pub fn as_ptr(&self) -> *const u8 {
        if self.0.is_empty() { c"".as_ptr().cast() } else { self.0.as_ptr() }
    }

    /// Gives the text up to the process, for as long as it lives.
    pub fn leak(self) -> &'static CStr {
        CStr::from_bytes_until_nul(self.0.leak()).unwrap_or_default()
    }

    /// Whether there is no byte before the NUL.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_c_str())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Bytes(self.as_bytes()))
    }
}

/// Shows bytes of unknown encoding as they are where they are UTF-8, and `?` for each byte that is not.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            for _ in chunk.invalid() {
                f.write_str("?")?;
            }
        }
        Ok(())
    }
}

/// The directory part of a path as `$ORIGIN` uses it: "/" for a file in the root, empty for a bare name.
pub fn directory_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => b"/",
        Some(slash) => path.get(..slash).unwrap_or_default(),
        None => b"",
    }
}

/// The last component of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
