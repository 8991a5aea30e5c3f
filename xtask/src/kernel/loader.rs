//! Suite `loader` of the lab: the image with our loader, the programs of the suites of sections and the parts of the machine's
//! own userland that they need, at the paths that they have here; and what runs in the guest. What is tested, and with
//! which figures, is the suites' business (`rtld_suites::guest`).

use super::image::{Archive, DIRECTORY, REGULAR, SYMBOLIC_LINK};
use super::source::{output, run};
use anyhow::{Context as _, bail};
use rtld_suites::guest;
use rtld_suites::harness::{Counts, Workshop};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lists what a program needs, with the paths that it would get.
const LISTER: &str = "/lib64/ld-linux-x86-64.so.2";
/// Chooses a program of suite semantics.
const SUBJECT: &str = "RTLD_SUBJECT";
/// This program in the image.
const PROGRAM: &str = "/bin/xtask";

/// An image that can be booted.
pub struct Image {
    /// The archive.
    pub file: PathBuf,
    /// What process 1 is to run, and its arguments.
    pub program: Vec<String>,
    /// Holds the directory that the image is a copy of.
    _workshop: Workshop,
}

/// Compiles the programs of the suites named, or of all, and packs them.
pub fn image(names: &[&str]) -> anyhow::Result<Image> {
    let artifact = crate::artifact::build()?;
    let workshop = guest::prepare(&artifact, names)?;
    let mut tree = Tree::default();
    let xtask = super::directory()?.join(format!("xtask-{}", std::process::id()));
    run(Command::new("strip").arg("-o").arg(&xtask).arg(std::env::current_exe()?), "strip")?;
    tree.needed_by(&xtask)?;
    tree.take(PROGRAM.as_ref(), &xtask)?;
    fs::remove_file(&xtask)?;
    for file in guest::NEEDED.iter().chain(&["/etc/passwd", "/etc/group", "/etc/ld.so.cache"]) {
        tree.file(file.as_ref())?;
    }
    tree.directory(workshop.directory())?;
    // Named by programs that were compiled for it.
    tree.file(LISTER.as_ref())?;
    let mut program = vec![PROGRAM.to_owned(), "kernel".to_owned(), "guest".to_owned()];
    program.push(workshop.directory().to_str().context("the workshop's path is no text")?.to_owned());
    // One program of suite semantics alone, as its own variable says.
    program.extend(std::env::var(SUBJECT).ok().map(|subject| format!("{SUBJECT}={subject}")));
    program.extend(names.iter().map(|&name| name.to_owned()));
    Ok(Image { file: tree.pack()?, program, _workshop: workshop })
}

/// In the guest: runs the suites and tells the lab, which counts the lines of each check.
pub fn guest(directory: &Path, names: &[String]) -> anyhow::Result<bool> {
    // SAFETY: this process has one thread yet.
    unsafe { std::env::set_var("RTLD_VERBOSE", "1") };
    // SAFETY: as above. Process 1 gives none.
    unsafe { std::env::set_var("PATH", "/usr/bin:/bin") };
    for (name, value) in names.iter().filter_map(|name| name.split_once('=')) {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.contains('=')).collect();
    let Counts { passed, failed } = guest::run(directory, &names)?;
    println!("tests {} passed {passed}", passed + failed);
    Ok(failed == 0 && passed > 0)
}

/// Entries by path, so that each comes once and after its directory.
#[derive(Default)]
struct Tree {
    entries: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl Tree {
    /// A file of the machine, the links that its path leads through, and what it needs.
    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        let place = self.parent(path)?.join(path.file_name().with_context(|| path.display().to_string())?);
        if self.entries.contains_key(&place) {
            return Ok(());
        }
        let kind = fs::symlink_metadata(&place).with_context(|| format!("{} is missing", path.display()))?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&place)?;
            self.add(&place, SYMBOLIC_LINK | 0o777, target.as_os_str().as_bytes().to_vec());
            return self.file(&place.parent().context("a link has a directory")?.join(target));
        }
        self.take(&place, &place)?;
        self.needed_by(&place)
    }

    /// The directory of a path without links, whose links are entries then.
    fn parent(&mut self, path: &Path) -> anyhow::Result<PathBuf> {
        let parent = path.parent().with_context(|| format!("{} has no directory", path.display()))?;
        let mut given = PathBuf::from("/");
        for part in parent.components().skip(1) {
            given.push(part);
            let real = given.canonicalize().with_context(|| given.display().to_string())?;
            if fs::symlink_metadata(&given)?.is_symlink() {
                self.add(&given, SYMBOLIC_LINK | 0o777, real.as_os_str().as_bytes().to_vec());
            }
            given = real;
        }
        Ok(given)
    }

    /// A file's content and mode under some path.
    fn take(&mut self, path: &Path, from: &Path) -> anyhow::Result<()> {
        let content = fs::read(from).with_context(|| from.display().to_string())?;
        let mode = fs::metadata(from)?.permissions().mode() & 0o7777;
        let place = self.parent(path)?.join(path.file_name().context("a file has a name")?);
        self.add(&place, REGULAR | mode, content);
        Ok(())
    }

    /// Everything below a directory of ours, which has no links.
    fn directory(&mut self, path: &Path) -> anyhow::Result<()> {
        for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
            let entry = entry?;
            let (kind, place) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                self.directory(&place)?;
            } else if kind.is_file() {
                // Sources and archives are of no use there.
                if is_dynamic(&place)? {
                    self.take(&place, &place)?;
                    self.needed_by(&place)?;
                }
            } else {
                bail!("{} is neither file nor directory", place.display());
            }
        }
        Ok(())
    }

    /// The libraries that a dynamic program or library gets here.
    fn needed_by(&mut self, path: &Path) -> anyhow::Result<()> {
        if !is_dynamic(path)? || needs_nothing(path)? {
            return Ok(());
        }
        // "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for the loader and the vDSO, which has no path.
        for line in output(Command::new(LISTER).arg("--list").arg(path))?.lines() {
            let target = line.split_once("=> ").map_or(line, |(_, target)| target).trim();
            let target = target.split_once(" (").map_or(target, |(target, _)| target);
            if target.starts_with('/') {
                self.file(target.as_ref())?;
            } else if target.contains("not found") {
                bail!("{}: {}", path.display(), line.trim());
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, mode: u32, content: Vec<u8>) {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| directory.parent().is_some()) {
            // Whoever runs as another user must get through.
            self.entries.entry(directory.to_owned()).or_insert((DIRECTORY | 0o755, Vec::new()));
            above = directory.parent();
        }
        self.entries.insert(path.to_owned(), (mode, content));
    }

    fn pack(self) -> anyhow::Result<PathBuf> {
        let mut archive = Archive::with_init()?;
        for (path, (mode, content)) in &self.entries {
            let name = path.strip_prefix("/")?.to_str().with_context(|| format!("{} is no text", path.display()))?;
            // Those that every image has.
            if !["dev", "proc", "sys", "tmp"].contains(&name) {
                archive.add(name, *mode, content)?;
            }
        }
        archive.store("loader")
    }
}

/// Whether a file is a program or library with a dynamic section.
fn is_dynamic(path: &Path) -> anyhow::Result<bool> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(dynamic(&bytes).is_some())
}

/// Our loader, which cannot be listed.
fn needs_nothing(path: &Path) -> anyhow::Result<bool> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(dynamic(&bytes).is_none_or(|needed| needed == 0))
}

/// How many libraries an ELF file needs; none for a file without a dynamic section.
fn dynamic(bytes: &[u8]) -> Option<usize> {
    use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let entries = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok()?)?;
    Some(entries.iter().filter(|entry| entry.tag32(endian) == Some(object::elf::DT_NEEDED)).count())
}
