//! Libraries that are loaded before those that the program needs: by LD_PRELOAD, `--preload` and /etc/ld.so.preload. One
//! that cannot be had is told about and left out.

use crate::report::Writer;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::Write;
use rtld_link::error::{Error, Reason};
use rtld_link::fallible::try_push;
use rtld_link::load::Loader;
use rtld_link::object::ObjectIndex;
use rtld_link::text::Bytes;
use rtld_sys::file;

/// Loads them; gives those that were loaded, in order. `variable` is LD_PRELOAD, `option` the value of `--preload`.
pub fn preload(
    loader: &mut Loader<'_, '_>,
    variable: Option<&[u8]>,
    option: Option<&[u8]>,
) -> Result<Vec<ObjectIndex>, Error> {
    let mut preloaded = Vec::new();
    for name in split_preload(variable.unwrap_or_default()) {
        preload_one(loader, &mut preloaded, name, "LD_PRELOAD")?;
    }
    for name in split_preload(option.unwrap_or_default()) {
        preload_one(loader, &mut preloaded, name, "--preload")?;
    }
    if file::is_readable(SYSTEM_PRELOAD) {
        let text = read_whole(SYSTEM_PRELOAD)?;
        for line in text.split(|&byte| byte == b'\n') {
            let names = line.split(|&byte| byte == b'#').next().unwrap_or_default();
            for name in split_preload(names) {
                preload_one(loader, &mut preloaded, name, "/etc/ld.so.preload")?;
            }
        }
    }
    Ok(preloaded)
}

fn preload_one(
    loader: &mut Loader<'_, '_>,
    preloaded: &mut Vec<ObjectIndex>,
    name: &[u8],
    origin: &str,
) -> Result<(), Error> {
    match loader.load(ObjectIndex(0), Some(ObjectIndex(0)), name) {
        Ok(index) => try_push(preloaded, index)?,
        Err(failure) => {
            let name = Bytes(name);
            let mut out = Writer::new(file::STDERR);
            let _ = write!(out, "ERROR: ld.so: object '{name}' from {origin} cannot be preloaded (");
            let _ = match &failure.reason {
                Reason::Open(_) => out.write_str("cannot open shared object file"),
                Reason::Read(_) => out.write_str("cannot read file data"),
                reason => write!(out, "{reason}"),
            };
            let _ = out.write_str("): ignored.\n");
        }
    }
    Ok(())
}

/// Libraries that the administrator wants in every process (ld.so(8), FILES).
const SYSTEM_PRELOAD: &CStr = c"/etc/ld.so.preload";

/// The names in a list of libraries to preload.
fn split_preload(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b':' | b'\t')).filter(|name| !name.is_empty())
}

fn read_whole(path: &CStr) -> Result<Vec<u8>, Error> {
    let fail = |reason: Reason| reason.of(path.to_bytes());
    let file = file::File::open(path).map_err(|error| fail(Reason::Open(error)))?;
    let status = file.status().map_err(|error| fail(Reason::Read(error)))?;
    let mut text = rtld_link::fallible::try_filled(0_u8, usize::try_from(status.size).unwrap_or(0))?;
    let length = file.read_at(&mut text, 0).map_err(|error| fail(Reason::Read(error)))?;
    text.truncate(length);
    Ok(text)
}
