//! Files by descriptor: open, identity, reads, links, messages. A [`File`] closes itself.
//!
//! A call that a signal interrupted is made again: on some file systems open, stat and their kin are interrupted too, and
//! callers work inside sections, whose signals are handled at their ends.

use crate::Errno;
use crate::call::{call as call_once, call_again as call};
use core::ffi::CStr;
use core::mem::MaybeUninit;
use linux_raw_sys::general as kernel;

/// An open descriptor, closed when dropped.
#[derive(Debug)]
pub struct File(i32);

/// What fstat(2) tells that a loader needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Device of the file.
    pub device: u64,
    /// Inode on that device.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Type and permission bits.
    pub mode: u32,
}

impl Status {
    /// Whether this is a regular file.
    pub fn is_regular(&self) -> bool {
        self.mode & kernel::S_IFMT == kernel::S_IFREG
    }

    /// Whether this is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & kernel::S_IFMT == kernel::S_IFDIR
    }
}

/// Standard error.
pub const STDERR: i32 = 2;
/// Standard output.
pub const STDOUT: i32 = 1;

/// Opens `/dev/null` for each of the descriptors 0 to 2 that is closed, so that no file opened later becomes somebody's
/// standard error. The kernel gives the lowest free number.
pub fn open_standard_descriptors() -> Result<(), Errno> {
    loop {
        let path = c"/dev/null".as_ptr() as usize;
        let (directory, flags) = (kernel::AT_FDCWD as isize as usize, kernel::O_RDWR as usize);
        // SAFETY: the path is a C string; openat writes no memory of ours.
        let descriptor = unsafe { call(kernel::__NR_openat, [directory, path, flags, 0, 0, 0]) }?;
        if descriptor > STDERR as usize {
            drop(File(descriptor as i32));
            return Ok(());
        }
    }
}

impl File {
    /// Opens `path` for reading, close-on-exec.
    pub fn open(path: &CStr) -> Result<File, Errno> {
        let flags = (kernel::O_RDONLY | kernel::O_CLOEXEC) as usize;
        let directory = kernel::AT_FDCWD as isize as usize;
        // SAFETY: the path is a C string; openat writes no memory of ours.
        let descriptor = unsafe { call(kernel::__NR_openat, [directory, path.as_ptr() as usize, flags, 0, 0, 0]) }?;
        Ok(File(descriptor as i32))
    }

    /// The number of the descriptor.
    pub fn descriptor(&self) -> i32 {
        self.0
    }

    /// fstat(2).
    pub fn status(&self) -> Result<Status, Errno> {
        let mut raw = MaybeUninit::<kernel::stat>::uninit();
        // SAFETY: the buffer has the size of the kernel's structure.
        unsafe { call(kernel::__NR_fstat, [self.0 as usize, raw.as_mut_ptr() as usize, 0, 0, 0, 0]) }?;
        // SAFETY: fstat succeeded, so it filled the structure.
        let raw = unsafe { raw.assume_init() };
        Ok(Status { device: raw.st_dev, inode: raw.st_ino, size: raw.st_size as u64, mode: raw.st_mode })
    }

    /// pread(2) until `buffer` is full or the file ends; returns the bytes read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let position = offset.wrapping_add(done as u64) as usize;
            let arguments = [self.0 as usize, rest.as_mut_ptr() as usize, rest.len(), position, 0, 0];
            // SAFETY: the kernel writes at most rest.len() bytes into rest.
            match unsafe { call(kernel::__NR_pread64, arguments) }? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    /// read(2) at the file's own position until `buffer` is full or the file ends.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let arguments = [self.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        // SAFETY: the kernel writes at most buffer.len() bytes into buffer.
        unsafe { call(kernel::__NR_read, arguments) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is not used afterwards. An error cannot be acted on.
        let _ = unsafe { call_once(kernel::__NR_close, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Whether `path` can be read (access(2) with R_OK).
pub fn is_readable(path: &CStr) -> bool {
    // SAFETY: the path is a C string; access writes no memory.
    unsafe { call(kernel::__NR_access, [path.as_ptr() as usize, 4, 0, 0, 0, 0]) }.is_ok()
}

/// stat(2).
pub fn status(path: &CStr) -> Result<Status, Errno> {
    let mut raw = MaybeUninit::<kernel::stat>::uninit();
    // SAFETY: the path is a C string and the buffer has the size of the kernel's structure.
    unsafe { call(kernel::__NR_stat, [path.as_ptr() as usize, raw.as_mut_ptr() as usize, 0, 0, 0, 0]) }?;
    // SAFETY: stat succeeded, so it filled the structure.
    let raw = unsafe { raw.assume_init() };
    Ok(Status { device: raw.st_dev, inode: raw.st_ino, size: raw.st_size as u64, mode: raw.st_mode })
}

/// readlink(2); the part of `buffer` that was filled. A target of the buffer's full length counts as too long.
pub fn read_link<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let arguments = [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
    // SAFETY: the path is a C string; the kernel writes at most buffer.len() bytes.
    let length = unsafe { call(kernel::__NR_readlink, arguments) }?;
    buffer.get(..length).filter(|_| length < buffer.len()).ok_or(Errno::INVAL)
}

/// getcwd(2) without its terminating NUL.
pub fn working_directory(buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let arguments = [buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0];
    // SAFETY: the kernel writes at most buffer.len() bytes.
    let length = unsafe { call(kernel::__NR_getcwd, arguments) }?;
    buffer.get(..length.saturating_sub(1)).ok_or(Errno::INVAL)
}

/// Writes all of `bytes` to a descriptor; gives up silently when it cannot (there is nobody to tell).
pub fn write_all(descriptor: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let arguments = [descriptor as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        // SAFETY: the kernel reads bytes.len() bytes from bytes.
        match unsafe { call(kernel::__NR_write, arguments) } {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(_) => return,
        }
    }
}
