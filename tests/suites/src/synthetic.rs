//! Sets of libraries that consist of relocations: N libraries with M functions each, half of M references in data
//! (R_X86_64_64), a quarter in the GOT, a quarter through the PLT, spread evenly over all libraries, and relative relocations,
//! under names as long as C++'s. Owns the generated text; the same shape is always the same set, so that figures compare.

use anyhow::{Context as _, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Relative relocations for each symbol.
const RELATIVE: usize = 5;
/// Method names, in turn.
const METHODS: [&str; 8] = [
    "initialise",
    "getProperty",
    "setProperty",
    "dispatchEvent",
    "queryInterface",
    "acquireReference",
    "releaseReference",
    "serializeTo",
];

/// How large a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Libraries.
    pub libraries: usize,
    /// Functions that each defines, and symbolic relocations that each has.
    pub symbols: usize,
}

impl Shape {
    /// "LIBRARIES x SYMBOLS".
    pub fn name(self) -> String {
        format!("{} x {}", self.libraries, self.symbols)
    }

    /// Symbolic relocations of the whole set.
    pub fn references(self) -> usize {
        self.libraries * self.symbols
    }
}

/// A set on disk.
#[derive(Debug, Clone)]
pub struct Set {
    /// A program that needs the C library and every library of the set.
    pub program: PathBuf,
    /// The same without a C library, which any loader starts: it leaves at its entry point.
    pub bare: PathBuf,
}

/// Builds the set below `directory`, bound at start, unless it lies there whole; an error names what failed.
pub fn build(directory: &Path, shape: Shape) -> anyhow::Result<Set> {
    let directory = directory.join(format!("{}x{}", shape.libraries, shape.symbols));
    let set = Set { program: directory.join("program"), bare: directory.join("bare") };
    let complete = directory.join("complete");
    if complete.exists() {
        return Ok(set);
    }
    fs::create_dir_all(&directory)?;
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= shape.libraries {
                return Ok(());
            }
            library(&directory, shape, number)?;
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread that builds libraries panicked"),
        })
    })?;
    link_program(&directory, shape, &set.program, "int main(void) { return 0; }\n", &[])?;
    let leave = "void _start(void) { __asm__ volatile(\"syscall\" ::\"a\"(231), \"D\"(0)); }\n";
    link_program(&directory, shape, &set.bare, leave, &["-nostdlib"])?;
    fs::write(complete, "")?;
    Ok(set)
}

fn library(directory: &Path, shape: Shape, number: usize) -> anyhow::Result<()> {
    let source = directory.join(format!("{number}.s"));
    fs::write(&source, assembly(shape, number)?)?;
    let mut command = Command::new("gcc");
    command.args(["-shared", "-nostdlib", "-Wl,--hash-style=gnu,-z,now"]);
    command.arg(format!("-Wl,-soname,libs{number}.so")).arg("-o").arg(directory.join(format!("libs{number}.so")));
    run(command.arg(&source))?;
    fs::remove_file(source)?;
    Ok(())
}

fn link_program(directory: &Path, shape: Shape, output: &Path, text: &str, flags: &[&str]) -> anyhow::Result<()> {
    let source = directory.join("program.c");
    fs::write(&source, text)?;
    let mut command = Command::new("gcc");
    command.arg("-O1").args(flags).arg("-o").arg(output).arg(&source);
    command.args(["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed,-z,now"]).arg("-L").arg(directory);
    command.args((0..shape.libraries).map(|number| format!("-ls{number}")));
    run(command.arg(format!("-Wl,-rpath,{}", directory.display())))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let outcome = command.stdin(Stdio::null()).output().context("gcc (Debian package gcc)")?;
    if !outcome.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&outcome.stderr).trim_end());
    }
    Ok(())
}

/// One library's text.
fn assembly(shape: Shape, number: usize) -> anyhow::Result<String> {
    let mut text = String::from(".text\n");
    for index in 0..shape.symbols {
        let name = symbol(number, index);
        writeln!(text, ".globl {name}\n.type {name},@function\n{name}: ret\n.size {name},1")?;
    }
    let mut random = Random(number as u64 + 1);
    let targets = distinct(shape, &mut random);
    let (data, rest) = targets.split_at(targets.len() / 2);
    let (got, plt) = rest.split_at(rest.len() / 2);
    writeln!(text, ".globl user{number}\n.type user{number},@function\nuser{number}:")?;
    got.iter().try_for_each(|name| writeln!(text, "cmpq {name}@GOTPCREL(%rip),%rax"))?;
    plt.iter().try_for_each(|name| writeln!(text, "call {name}@PLT"))?;
    writeln!(text, "ret\n.section .data.rel.ro,\"aw\"\n.p2align 3\nfirst:")?;
    data.iter().try_for_each(|name| writeln!(text, ".quad {name}"))?;
    (0..RELATIVE * shape.symbols / 2).try_for_each(|_| writeln!(text, ".quad first"))?;
    writeln!(text, ".section .note.GNU-stack,\"\",@progbits")?;
    Ok(text)
}

/// As many different names as a library has references, from all libraries.
fn distinct(shape: Shape, random: &mut Random) -> Vec<String> {
    let all = shape.references();
    let mut numbers = std::collections::BTreeSet::new();
    let mut names = Vec::new();
    while names.len() < shape.symbols {
        let number = random.below(all);
        if numbers.insert(number) {
            names.push(symbol(number / shape.symbols, number % shape.symbols));
        }
    }
    names
}

/// A name in C++'s mangling, of about a hundred letters.
fn symbol(library: usize, index: usize) -> String {
    let method = METHODS.get(index % METHODS.len()).copied().unwrap_or_default();
    let (place, class) = (format!("framework{library:04}"), format!("Component{:04}", index / METHODS.len()));
    let parts = ["com", "sun", "star", &place, "implementation", &class, method];
    let path: String = parts.iter().map(|part| format!("{}{part}", part.len())).collect();
    format!("_ZN{path}ERKNS0_8anyvalueE")
}

/// The generator splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 1) as usize % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_as_many_references_as_symbols_and_is_always_the_same() {
        let shape = Shape { libraries: 10, symbols: 20 };
        let text = assembly(shape, 3).unwrap();
        let count = |word: &str| text.matches(word).count();
        assert_eq!((count("@GOTPCREL"), count("@PLT"), count(".quad _ZN"), count(".quad first")), (5, 5, 10, 50));
        assert_eq!(count(".globl _ZN"), 20);
        assert_eq!(text, assembly(shape, 3).unwrap());
        assert_ne!(text, assembly(shape, 4).unwrap());
    }

    #[test]
    fn references_go_to_all_libraries() {
        let shape = Shape { libraries: 10, symbols: 200 };
        let names = distinct(shape, &mut Random(1));
        for library in 0..10 {
            let of = names.iter().filter(|name| name.contains(&format!("framework{library:04}"))).count();
            assert!(of > 5, "{of} of library {library}");
        }
    }
}
