//! The machine's own glibc is recognised, and each damage to what the checks look at is noticed.

mod real;

use real::{LIBC, LOADER, Mapped};
use rtld_clib::recognise::Reason;
use rtld_clib::{Glibc, Unsupported, recognise};

unsafe extern "C" {
    safe fn gnu_get_libc_version() -> *const std::ffi::c_char;
}

fn running_version() -> &'static str {
    // SAFETY: glibc returns a constant C string.
    unsafe { std::ffi::CStr::from_ptr(gnu_get_libc_version()) }
        .to_str()
        .unwrap()
}

fn recognised(libc: &Mapped, loader: &Mapped) -> Result<Glibc, Unsupported<'static>> {
    // SAFETY: the loader file is laid out in writable memory of its own, not relocated, never freed.
    unsafe { recognise(&libc.library(), &loader.library()) }
}

#[test]
fn the_running_glibc_is_recognised() {
    let glibc = recognised(&Mapped::new(LIBC), &Mapped::new(LOADER)).unwrap();
    assert_eq!(glibc.name(), running_version());
}
