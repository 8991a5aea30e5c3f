//! `cargo xtask kernel off`: without its option the patch leaves no trace. Owns that comparison: the object files of every
//! source that the patch touches, compiled from the kernel as Debian has it and from the patched one without the option,
//! must be the same but for the line numbers that BUG() and WARN() note.

use super::source::{self, Source, run};
use super::tree::Tree;
use super::{Config, Debian, build};
use anyhow::Context as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the hooks change, and what includes the headers that they change and uses the structures in them.
const OBJECTS: &[&str] = &[
    "drivers/tty/tty_jobctrl.o",
    "fs/exec.o",
    "kernel/entry/common.o",
    "kernel/fork.o",
    "kernel/ptrace.o",
    "kernel/sched/core.o",
    "kernel/signal.o",
    "kernel/sys.o",
];
/// On top of the lab's configuration. The check for sleeping in atomic context passes line numbers as arguments.
const WITHOUT: &str = "CONFIG_SIGFASTBLOCK=n\nCONFIG_DEBUG_ATOMIC_SLEEP=n\n";

/// Compares; true if every object file is the same.
pub fn test(debian: Debian) -> anyhow::Result<bool> {
    let source = source::find(debian)?;
    let place = super::directory()?.join(format!("off-{}", std::process::id()));
    let result = compare(&source, &place);
    fs::remove_dir_all(&place).with_context(|| place.display().to_string())?;
    let (same, different) = result?;
    println!("kernel off: {same} passed, {different} failed (Linux {}, {})", debian.linux(), source.version);
    Ok(different == 0 && same > 0)
}

fn compare(source: &Source, place: &Path) -> anyhow::Result<(usize, usize)> {
    let tree = Tree::unpack(source, place)?;
    let configuration = build::fragments(Config::Default)? + WITHOUT;
    tree.configure(&configuration)?;
    tree.compile(OBJECTS)?;
    let before = contents(&tree)?;
    tree.apply(&build::whole_patch(source.debian)?)?;
    tree.configure(&configuration)?;
    tree.compile(OBJECTS)?;
    let after = contents(&tree)?;
    let mut same = 0;
    for ((name, before), after) in OBJECTS.iter().zip(&before).zip(&after) {
        if before == after {
            same += 1;
            println!("ok {name} ({} bytes)", after.len());
        } else {
            println!("FAILED {name} differs");
        }
    }
    Ok((same, OBJECTS.len() - same))
}

/// The object files without what holds line numbers: debugging information, the table of bugs, and the names of initcalls, which
/// are local symbols that nothing refers to (`__initcall__kmod_exec__440_2221_init_fs_exec_sysctls5`).
fn contents(tree: &Tree) -> anyhow::Result<Vec<Vec<u8>>> {
    let copy = tree.objects.join("compared.o");
    let one = |name: &&str| {
        let mut objcopy = Command::new("objcopy");
        objcopy.args(["--strip-debug", "--discard-all", "--remove-section=.comment", "--remove-section=__bug_table"]);
        run(objcopy.arg(tree.objects.join(name)).arg(&copy), "objcopy")?;
        fs::read(&copy).with_context(|| copy.display().to_string())
    };
    OBJECTS.iter().map(one).collect()
}
