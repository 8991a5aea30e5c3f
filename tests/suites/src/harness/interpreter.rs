//! PT_INTERP of a program: reading it, and making a copy of the program that names another interpreter. The string is
//! overwritten in place and padded with NUL, so nothing else in the file moves.

use anyhow::{Context as _, bail};
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the PT_INTERP string lies in the file, terminator included; `None` in a file without an interpreter.
fn interpreter_range(bytes: &[u8]) -> anyhow::Result<Option<Range<usize>>> {
    let header = FileHeader64::<object::Endianness>::parse(bytes).context("not a 64-bit ELF file")?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) == PT_INTERP {
            let (offset, size) = segment.file_range(endian);
            let start = usize::try_from(offset)?;
            let end = start.checked_add(usize::try_from(size)?).context("PT_INTERP wraps around")?;
            return Ok(Some(start..end));
        }
    }
    Ok(None)
}

/// The interpreter that `program` names; `None` for a static program.
pub fn interpreter_of(program: &Path) -> anyhow::Result<Option<PathBuf>> {
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    let Some(range) = interpreter_range(&bytes).with_context(|| program.display().to_string())? else {
        return Ok(None);
    };
    let string = bytes.get(range).context("PT_INTERP lies outside the file")?;
    let string = string.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(string))))
}

/// Copies `program` to `copy`, mode kept, with `interpreter` in place of its PT_INTERP string.
pub fn copy_with_interpreter(program: &Path, copy: &Path, interpreter: &Path) -> anyhow::Result<()> {
    let mut bytes = fs::read(program).with_context(|| program.display().to_string())?;
    let Some(range) = interpreter_range(&bytes).with_context(|| program.display().to_string())? else {
        bail!("{} has no PT_INTERP", program.display());
    };
    let place = bytes.get_mut(range).context("PT_INTERP lies outside the file")?;
    let name = interpreter.as_os_str().as_bytes();
    if name.len() >= place.len() {
        bail!(
            "{} does not fit into the {} bytes of PT_INTERP of {}",
            interpreter.display(),
            place.len(),
            program.display()
        );
    }
    place.fill(0);
    for (to, from) in place.iter_mut().zip(name) {
        *to = *from;
    }
    // Written beside and renamed: an older copy may still be running.
    let mut fresh = copy.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    fs::write(&fresh, &bytes)?;
    let mode = fs::metadata(program)?.permissions().mode() & 0o777;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(mode | 0o500))?;
    fs::rename(&fresh, copy)?;
    Ok(())
}
