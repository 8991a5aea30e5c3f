//! What FreeBSD's <dlfcn.h> has beyond Linux's: `fdlopen` and `dlfunc` (dlopen(3) there). No C library of Linux defines them, so
//! they are found by name in this object, the last one that is searched.

use crate::dlfcn;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write as _};
use rtld_runtime::last_error;
use rtld_runtime::world::Handle;
use rtld_sys::file;

/// PATH_MAX of Linux.
const PATH_MAXIMUM: usize = 4096;

/// A C string in memory of its own.
struct Path {
    bytes: [u8; PATH_MAXIMUM + 1],
    length: usize,
}

impl Path {
    const fn empty() -> Path {
        Path { bytes: [0; PATH_MAXIMUM + 1], length: 0 }
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.checked_add(text.len()).filter(|&end| end <= PATH_MAXIMUM).ok_or(fmt::Error)?;
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// `void *fdlopen(int fd, int mode)`: as dlopen, for the file behind a descriptor; -1 is the program. The descriptor stays open, and
/// the caller's. The object is known by the file's path, if that still leads to it.
#[unsafe(no_mangle)]
pub extern "C" fn fdlopen(descriptor: c_int, mode: c_int) -> *mut Handle {
    if descriptor == -1 {
        return dlfcn::open(core::ptr::null(), mode, 0);
    }
    let mut link = Path::empty();
    let known = write!(link, "/proc/self/fd/{descriptor}").ok().and_then(|()| file::status(link.text()).ok());
    let Some(status) = known.filter(|_| descriptor >= 0) else {
        last_error::set(format_args!("fdlopen: {descriptor}: Bad file descriptor"));
        return core::ptr::null_mut();
    };
    let mut path = Path::empty();
    let leads_here = {
        let (link, room) = (link.text(), path.bytes.split_last_mut().map(|(_, room)| room));
        let named = room.is_some_and(|room| file::read_link(link, room).is_ok());
        let there = if named { file::status(path.text()).ok() } else { None };
        there.is_some_and(|there| (there.device, there.inode) == (status.device, status.inode))
    };
    let name = if leads_here { path.text() } else { link.text() };
    dlfcn::open(name.as_ptr(), mode, 0)
}

/// `dlfunc_t dlfunc(void *handle, const char *name)`: dlsym, for who must not turn a pointer to data into one to a function.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn dlfunc(_handle: usize, _name: *const c_char) -> usize {
    // RTLD_NEXT and RTLD_DEFAULT depend on who calls.
    core::arch::naked_asm!("mov rdx, [rsp]", "jmp {symbol}", symbol = sym dlfcn::symbol)
}
