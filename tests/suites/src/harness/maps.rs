//! `/proc/PID/maps` (proc_pid_maps(5)) read for one question: which files are mapped. A file is known by device and inode,
//! because a path says nothing about what is behind it.

use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileIdentity {
    major: u64,
    minor: u64,
    inode: u64,
}

impl FileIdentity {
    /// The identity of the file at `path`, symbolic links followed.
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
        let device = metadata.dev();
        Ok(Self { major: nix::sys::stat::major(device), minor: nix::sys::stat::minor(device), inode: metadata.ino() })
    }
}

/// The files mapped by a process, stopped or running.
pub fn mapped_files(process: i32) -> anyhow::Result<BTreeSet<FileIdentity>> {
    let path = format!("/proc/{process}/maps");
    let text = fs::read_to_string(&path).with_context(|| path)?;
    Ok(text.lines().filter_map(identity_in_line).collect())
}

/// "START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH"; inode 0 is anonymous memory.
fn identity_in_line(line: &str) -> Option<FileIdentity> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok().filter(|&inode: &u64| inode != 0)?;
    Some(FileIdentity {
        major: u64::from_str_radix(major, 16).ok()?,
        minor: u64::from_str_radix(minor, 16).ok()?,
        inode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_file_mapping() {
        let line = "7f0-7f1 r--p 00000000 fd:0a 1234                       /usr/lib/x y.so (deleted)";
        assert_eq!(identity_in_line(line), Some(FileIdentity { major: 0xfd, minor: 0x0a, inode: 1234 }));
    }

    #[test]
    fn anonymous_memory_is_no_file() {
        assert_eq!(identity_in_line("7f0-7f1 rw-p 00000000 00:00 0      [stack]"), None);
    }

    #[test]
    fn own_program_is_mapped() {
        let own = FileIdentity::of(Path::new("/proc/self/exe")).unwrap();
        let process = i32::try_from(std::process::id()).unwrap();
        assert!(mapped_files(process).unwrap().contains(&own));
    }
}
