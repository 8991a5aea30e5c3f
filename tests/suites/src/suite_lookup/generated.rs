//! Sets of libraries with all rules of binding in random mixture, from one seed, as assembly: weak, protected, hidden, unique,
//! indirect and thread-local definitions, versions of which several are in one library, symbolic libraries, both hash tables,
//! a program that is copied into and whose PLT entries are addresses, libraries opened later with every scope.

use crate::harness::Context;
use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with its libraries.
pub(super) struct Set {
    /// For the report.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// What is opened later, for the variable OPEN.
    pub open: String,
}

/// Numbers that are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn one_of<const N: usize>(&mut self, words: [&'static str; N]) -> &'static str {
        let chosen = self.below(N as u64) as usize;
        words.get(chosen).copied().unwrap_or_default()
    }
}

/// Names of each kind that the libraries share.
const NAMES: u64 = 40;
/// Functions from this one on may be protected; the linker lets no fixed program take their addresses.
const PROTECTED: u64 = 30;
/// Libraries that the program needs, and that are opened later.
const NEEDED: usize = 20;
const OPENED: usize = 6;

/// The sets: with seeds of their own, and a fixed and a position-independent program.
pub(super) fn sets(context: &Context) -> Result<Vec<Set>> {
    [(1_u64, true), (2, false), (3, true)].into_iter().map(|(seed, fixed)| set(context, seed, fixed)).collect()
}

/// A program with forty libraries of many names, for which a table is worth its making.
pub(super) fn many(context: &Context) -> Result<PathBuf> {
    let directory = context.work.join("many");
    fs::create_dir_all(&directory)?;
    let mut libraries = Vec::new();
    for library in 0..40_u64 {
        let mut text = String::from(".text\n");
        for name in 0..50 {
            let _ = write!(text, ".globl _ZN4many{library}_{name}Ev\n.type _ZN4many{library}_{name}Ev,@function\n");
            let _ = writeln!(text, "_ZN4many{library}_{name}Ev: ret");
        }
        text.push_str(".section .data.rel.ro,\"aw\"\n");
        for name in 0..200_u64 {
            let _ = writeln!(text, ".quad _ZN4many{}_{}Ev", (library * 7 + name) % 40, name % 50);
        }
        libraries.push(link(&directory, &format!("libmany{library}.so"), &text, &["-shared"], &[])?);
    }
    let main = ".globl main\n.text\nmain: xorl %eax,%eax\nret\n";
    link(&directory, "program", main, &["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"], &libraries)
}

fn set(context: &Context, seed: u64, fixed: bool) -> Result<Set> {
    let directory = context.work.join(format!("set{seed}"));
    fs::create_dir_all(&directory)?;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut libraries = Vec::new();
    for number in 0..NEEDED + OPENED {
        // Linked to others, a library refers to versions.
        let linked = if number > 4 && random.below(2) == 0 { number - 4..number } else { 0..0 };
        let linked: Vec<PathBuf> = libraries.get(linked).map(<[PathBuf]>::to_vec).unwrap_or_default();
        libraries.push(library(&directory, number, &linked, &mut random)?);
    }
    let (needed, opened) = libraries.split_at(NEEDED);
    let mut text = String::from(".text\n.globl main\nmain:\n");
    for name in 0..NAMES {
        let _ = writeln!(text, ".weak number{name}");
        // A call and a non-PIC address make a PLT entry that is the function's address; data is copied.
        if fixed && name < PROTECTED {
            let _ = write!(text, "call function{name}@PLT\nmovl $function{name},%eax\nmovq number{name},%rax\n");
        } else {
            let _ = write!(text, "call function{name}@PLT\nmovq number{name}@GOTPCREL(%rip),%rax\n");
        }
    }
    text.push_str("ret\n.globl function3\n.type function3,@function\nfunction3: ret\n");
    let flags: &[&str] = if fixed { &["-no-pie", "-Wl,-z,lazy"] } else { &["-pie"] };
    let mut all = vec!["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", "-rdynamic"];
    all.extend(flags);
    let program = link(&directory, "program", &text, &all, needed)?;
    let scopes = ["l", "g", "d"].into_iter().cycle();
    let words: Vec<String> = scopes.zip(opened).map(|(scope, path)| format!("{scope}:{}", path.display())).collect();
    let kind = if fixed { "fixed" } else { "position-independent" };
    Ok(Set { name: format!("set {seed}, {kind}"), program, open: words.join(" ") })
}

/// One library of a set.
fn library(directory: &Path, number: usize, linked: &[PathBuf], random: &mut Random) -> Result<PathBuf> {
    let mut text = String::new();
    let mut versions = String::from("V1 { global: versioned*; };\nV2 { global: versioned*; } V1;\n");
    let has_versions = random.below(3) == 0;
    for name in 0..NAMES {
        function(&mut text, name, linked.is_empty(), random);
        data(&mut text, name, random);
        if has_versions && random.below(4) == 0 {
            // An old version beside the default one.
            let _ = write!(text, ".text\n.globl old{name}\nold{name}: ret\n.symver old{name},versioned{name}@V1\n");
            let _ = write!(text, ".globl new{name}\nnew{name}: ret\n.symver new{name},versioned{name}@@V2\n");
        }
    }
    references(&mut text, random);
    let mut flags = vec!["-shared".to_owned(), "-nostdlib".to_owned()];
    flags.push(format!("-Wl,--hash-style={}", random.one_of(["gnu", "sysv", "both", "gnu"])));
    flags.push(format!("-Wl,-z,{}", random.one_of(["lazy", "now"])));
    flags.push("-Wl,--allow-shlib-undefined".to_owned());
    if random.below(5) == 0 {
        flags.push("-Wl,-Bsymbolic".to_owned());
    }
    if has_versions {
        let script = directory.join(format!("versions{number}"));
        versions.push_str("V3 { global: *; } V2;\n");
        fs::write(&script, if random.below(2) == 0 { versions } else { "V1 { };\nV2 { } V1;\n".to_owned() })?;
        flags.push(format!("-Wl,--version-script={}", script.display()));
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    link(directory, &format!("libset{number}.so"), &text, &flags, linked)
}

/// Perhaps a definition of a function; hidden only where no library that is linked to refers to it.
fn function(text: &mut String, name: u64, hidden: bool, random: &mut Random) {
    let Some(binding) = [".globl", ".weak", ".globl"].get(random.below(9) as usize) else { return };
    let kind = if random.below(8) == 0 { "gnu_indirect_function" } else { "function" };
    let _ = write!(text, ".text\n{binding} function{name}\n.type function{name},@{kind}\n");
    match random.below(8) {
        0 if name >= PROTECTED => _ = writeln!(text, ".protected function{name}"),
        1 if hidden => _ = writeln!(text, ".hidden function{name}"),
        _ => {}
    }
    if kind == "function" {
        let _ = write!(text, "function{name}: ret\n.size function{name},1\n");
    } else {
        let _ = write!(text, "function{name}: leaq 1f(%rip),%rax\nret\n1: ret\n.size function{name},8\n");
    }
}

/// Perhaps definitions of a variable, a unique one and a thread-local one.
fn data(text: &mut String, name: u64, random: &mut Random) {
    if random.below(4) == 0 {
        let binding = if random.below(3) == 0 { ".weak" } else { ".globl" };
        let _ = write!(text, ".data\n.balign 8\n{binding} number{name}\n.type number{name},@object\n");
        let _ = write!(text, ".size number{name},8\nnumber{name}: .quad {}\n", random.below(1000));
    }
    if random.below(6) == 0 {
        let _ = write!(text, ".data\n.balign 8\n.globl unique{name}\n.type unique{name},@gnu_unique_object\n");
        let _ = write!(text, ".size unique{name},8\nunique{name}: .quad 1\n");
    }
    if random.below(8) == 0 {
        let _ = write!(text, ".section .tdata,\"awT\",@progbits\n.balign 8\n.globl local{name}\n");
        let _ = write!(text, ".type local{name},@tls_object\n.size local{name},8\nlocal{name}: .quad 1\n");
    }
}

/// References of all types, weak throughout: not every name is defined everywhere.
fn references(text: &mut String, random: &mut Random) {
    text.push_str(".text\nuser: ret\n");
    let mut weak = String::new();
    for name in 0..NAMES {
        for kind in ["function", "number", "unique", "versioned"] {
            if !text.contains(&format!("\n{kind}{name}:")) {
                let _ = writeln!(weak, ".weak {kind}{name}");
            }
        }
        if text.contains(&format!("\nlocal{name}:")) {
            let _ = writeln!(text, "movq local{name}@GOTTPOFF(%rip),%rax");
        }
        if random.below(2) == 0 {
            let _ = writeln!(text, "call function{name}@PLT\ncall versioned{name}@PLT");
        }
        if random.below(2) == 0 {
            let _ = writeln!(text, "movq number{name}@GOTPCREL(%rip),%rax\nmovq unique{name}@GOTPCREL(%rip),%rax");
        }
    }
    text.push_str(".section .data.rel.ro,\"aw\"\n.balign 8\n");
    for name in 0..NAMES {
        match random.below(3) {
            0 => _ = writeln!(text, ".quad function{name}\n.quad versioned{name} + 8\n.quad unique{name}"),
            1 => _ = writeln!(text, ".quad number{name} + {name}\n.quad function{name}\n.quad absent{name}"),
            _ => {}
        }
    }
    for name in 0..NAMES {
        let _ = writeln!(weak, ".weak absent{name}");
    }
    text.push_str(&weak);
}

/// Assembles and links one object.
fn link(directory: &Path, name: &str, text: &str, flags: &[&str], libraries: &[PathBuf]) -> Result<PathBuf> {
    let (source, output) = (directory.join(format!("{name}.s")), directory.join(name));
    fs::write(&source, format!("{text}.section .note.GNU-stack,\"\",@progbits\n"))?;
    let mut command = Command::new("gcc");
    command.args(flags).arg("-o").arg(&output).arg(&source).args(libraries);
    command.arg(format!("-Wl,-rpath,{}", directory.display())).arg(format!("-Wl,-soname,{name}"));
    let result = command.output().context("gcc (Debian package gcc)")?;
    if !result.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&result.stderr));
    }
    Ok(output)
}
