//! Compiling a fixture with gcc or clang and a chosen linker. Owns the command line's order; a missing tool is an error that
//! names the Debian package, never a skipped test.

use super::{Context, Place};
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The compiler driver; a C++ source among the sources selects the C++ driver of the same compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// gcc or g++.
    Gcc,
    /// clang or clang++.
    Clang,
}

/// The linker, given to the compiler driver as `-fuse-ld=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linker {
    /// GNU ld.
    Bfd,
    /// LLVM's lld.
    Lld,
    /// mold.
    Mold,
}

impl Compiler {
    /// Name for a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
        }
    }
}

impl Linker {
    /// Name for a report, and the value of `-fuse-ld`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfd => "bfd",
            Self::Lld => "lld",
            Self::Mold => "mold",
        }
    }

    /// Its program and the Debian package that has it.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Self::Bfd => ("ld.bfd", "binutils"),
            Self::Lld => ("ld.lld", "lld"),
            Self::Mold => ("ld.mold", "mold"),
        }
    }
}

/// One compilation and link, from sources to a program or shared object in the suite's work directory.
///
/// Flags that begin with `-l` come after the sources and objects, all others before them, each group in the order given.
#[derive(Debug, Clone)]
pub struct Build {
    sources: Vec<PathBuf>,
    texts: Vec<(String, String)>,
    compiler: Compiler,
    linker: Option<Linker>,
    shared: bool,
    flags: Vec<OsString>,
    objects: Vec<PathBuf>,
    output: Option<String>,
}

impl Build {
    /// Starts with one source: a path under `tests/programs`, or an absolute path.
    pub fn new(source: impl Into<PathBuf>) -> Self {
        Self {
            sources: vec![source.into()],
            texts: Vec::new(),
            compiler: Compiler::Gcc,
            linker: None,
            shared: false,
            flags: Vec::new(),
            objects: Vec::new(),
            output: None,
        }
    }

    /// Starts with one source given as text; the name's suffix says its language.
    pub fn inline(name: &str, text: &str) -> Self {
        let mut build = Self::new("");
        build.sources.clear();
        build.text(name, text)
    }

    /// One more source.
    pub fn source(mut self, source: impl Into<PathBuf>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// One more source given as text, written into the work directory under this name.
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.texts.push((name.to_owned(), text.to_owned()));
        self
    }

    /// The compiler; gcc unless said.
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = compiler;
        self
    }

    /// The linker; the compiler's own default unless said.
    pub fn linker(mut self, linker: Linker) -> Self {
        self.linker = Some(linker);
        self
    }

    /// A shared object (`-shared -fPIC`) in place of a program.
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// One more flag.
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// More flags.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(OsString::from));
        self
    }

    /// An object or library to link, by path.
    pub fn with(mut self, object: impl AsRef<Path>) -> Self {
        self.objects.push(object.as_ref().to_owned());
        self
    }

    /// Links the program with this interpreter.
    pub fn interpreter(self, path: impl AsRef<Path>) -> Self {
        let mut flag = OsString::from("-Wl,--dynamic-linker=");
        flag.push(path.as_ref());
        self.flag(flag)
    }

    /// File name in the work directory (sub-directories are made); the first source's name without suffix unless said, with
    /// `lib` and `.so` around it for a shared object.
    pub fn output(mut self, name: impl Into<String>) -> Self {
        self.output = Some(name.into());
        self
    }

    /// Compiles and links; the path of the result. In a guest that must be there already.
    pub fn build(&self, context: &Context) -> anyhow::Result<PathBuf> {
        let output = context.work.join(self.output_name()?);
        if context.place == Place::Guest {
            if !output.exists() {
                bail!("no fixture {}: it was not built before the guest started", output.display());
            }
            return Ok(output);
        }
        let mut sources = Vec::new();
        for source in &self.sources {
            let path = context.programs.join(source);
            if !path.exists() {
                bail!("no source {}", path.display());
            }
            sources.push(path);
        }
        for (name, text) in &self.texts {
            let path = context.work.join(name);
            make_parent(&path)?;
            fs::write(&path, text)?;
            sources.push(path);
        }
        make_parent(&output)?;
        let program = self.driver(&sources);
        let mut command = Command::new(program);
        command.current_dir(&context.work).stdin(Stdio::null()).arg("-pipe").arg("-o").arg(&output);
        if self.shared {
            command.args(["-shared", "-fPIC"]);
        }
        if let Some(linker) = self.linker {
            let (name, package) = linker.program();
            require(name, package)?;
            command.arg(format!("-fuse-ld={}", linker.name()));
        }
        let is_library = |flag: &&OsString| flag.as_encoded_bytes().starts_with(b"-l");
        command.args(self.flags.iter().filter(|flag| !is_library(flag)));
        command.args(&sources).args(&self.objects).args(self.flags.iter().filter(is_library));
        require(program, if program == "clang++" { "clang" } else { program })?;
        let outcome = command.output().with_context(|| program.to_owned())?;
        if !outcome.status.success() {
            bail!(
                "cannot build {}: {}\n{command:?}",
                output.display(),
                String::from_utf8_lossy(&outcome.stderr).trim_end()
            );
        }
        Ok(output)
    }

    fn output_name(&self) -> anyhow::Result<String> {
        if let Some(name) = &self.output {
            return Ok(name.clone());
        }
        let text = self.texts.first().map(|(name, _)| Path::new(name));
        let stem = self
            .sources
            .first()
            .map(PathBuf::as_path)
            .or(text)
            .and_then(Path::file_stem)
            .context("a build without sources needs an output name")?;
        let stem = stem.to_string_lossy();
        Ok(if self.shared { format!("lib{stem}.so") } else { stem.into_owned() })
    }

    fn driver(&self, sources: &[PathBuf]) -> &'static str {
        let is_cxx = |path: &PathBuf| {
            path.extension().is_some_and(|suffix| suffix == "cpp" || suffix == "cc" || suffix == "cxx")
        };
        match (self.compiler, sources.iter().any(is_cxx)) {
            (Compiler::Gcc, false) => "gcc",
            (Compiler::Gcc, true) => "g++",
            (Compiler::Clang, false) => "clang",
            (Compiler::Clang, true) => "clang++",
        }
    }
}

/// An error that names the package if `program` is not on PATH.
fn require(program: &str, package: &str) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
        return Ok(());
    }
    bail!("{program} is not installed (Debian package {package})");
}

fn make_parent(path: &Path) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(())
}
