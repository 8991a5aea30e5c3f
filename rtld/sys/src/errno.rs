//! Kernel error numbers and the texts people know for them (those of glibc's strerror).

use core::fmt;
use linux_raw_sys::errno as number;

/// A kernel error number, 1 to 4095.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub u16);

impl Errno {
    /// No such file or directory.
    pub const NOENT: Errno = Errno(number::ENOENT as u16);
    /// Not a directory.
    pub const NOTDIR: Errno = Errno(number::ENOTDIR as u16);
    /// Permission denied.
    pub const ACCES: Errno = Errno(number::EACCES as u16);
    /// Cannot allocate memory.
    pub const NOMEM: Errno = Errno(number::ENOMEM as u16);
    /// Too many open files.
    pub const MFILE: Errno = Errno(number::EMFILE as u16);
    /// Is a directory.
    pub const ISDIR: Errno = Errno(number::EISDIR as u16);
    /// Exec format error.
    pub const NOEXEC: Errno = Errno(number::ENOEXEC as u16);
    /// Interrupted system call.
    pub const INTR: Errno = Errno(number::EINTR as u16);
    /// Invalid argument.
    pub const INVAL: Errno = Errno(number::EINVAL as u16);

    /// From the negative result of a system call.
    pub(crate) fn from_result(result: isize) -> Errno {
        Errno(result.unsigned_abs() as u16)
    }

    /// The usual text, or None for a number that a loader does not meet.
    pub fn text(self) -> Option<&'static str> {
        Some(match u32::from(self.0) {
            number::EPERM => "Operation not permitted",
            number::ENOENT => "No such file or directory",
            number::EINTR => "Interrupted system call",
            number::EIO => "Input/output error",
            number::ENXIO => "No such device or address",
            number::E2BIG => "Argument list too long",
            number::ENOEXEC => "Exec format error",
            number::EBADF => "Bad file descriptor",
            number::EAGAIN => "Resource temporarily unavailable",
            number::ENOMEM => "Cannot allocate memory",
            number::EACCES => "Permission denied",
            number::EFAULT => "Bad address",
            number::EBUSY => "Device or resource busy",
            number::EEXIST => "File exists",
            number::ENODEV => "No such device",
            number::ENOTDIR => "Not a directory",
            number::EISDIR => "Is a directory",
            number::EINVAL => "Invalid argument",
            number::ENFILE => "Too many open files in system",
            number::EMFILE => "Too many open files",
            number::ETXTBSY => "Text file busy",
            number::EFBIG => "File too large",
            number::ENOSPC => "No space left on device",
            number::ESPIPE => "Illegal seek",
            number::EROFS => "Read-only file system",
            number::ENAMETOOLONG => "File name too long",
            number::ENOSYS => "Function not implemented",
            number::ELOOP => "Too many levels of symbolic links",
            number::EOVERFLOW => "Value too large for defined data type",
            number::ESTALE => "Stale file handle",
            _ => return None,
        })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "Error {}", self.0),
        }
    }
}
