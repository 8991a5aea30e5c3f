//! Suite `cxx`: exceptions, thread-local and static objects of C++ across a program and three libraries, by every pair of
//! compiler and C++ library. Owns what is built; the transcript is judged by the same file's run under ld-linux.

use crate::harness::{Build, Compiler, Context, Linker, Report, Run, Status, WAYS, Way};
use crate::same::label;
use std::path::PathBuf;

/// The sum of everything the program caught: 11 + 12 + 13 + 7 + 111 + 13 + 1000 + 11 for the calls in `main`, 2 + 3 + 4 for
/// the callbacks, 111 in each of two threads, 12 carried out of a thread.
const LAST_WORD: &str = "-- caught 1421\n";

/// A C++ library and the flags that make a compiler use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    Gnu,
    Llvm,
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Library::Gnu => "libstdc++",
            Library::Llvm => "libc++",
        }
    }

    /// Flags for compiling and linking.
    fn flags(self, compiler: Compiler) -> anyhow::Result<Vec<String>> {
        let own = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
        Ok(match (compiler, self) {
            (Compiler::Gcc, Library::Gnu) => Vec::new(),
            (Compiler::Clang, Library::Gnu) => own(&["-stdlib=libstdc++"]),
            (Compiler::Clang, Library::Llvm) => own(&["-stdlib=libc++"]),
            (Compiler::Gcc, Library::Llvm) => {
                let mut flags: Vec<String> =
                    own(&["-nostdinc++", "-nodefaultlibs", "-lc++", "-lc++abi", "-lm", "-lgcc_s", "-lgcc", "-lc"]);
                flags.push(format!("-isystem{}", llvm_headers()?.display()));
                flags
            }
        })
    }
}

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for compiler in [Compiler::Gcc, Compiler::Clang] {
        for library in [Library::Gnu, Library::Llvm] {
            for optimisation in ["-O0", "-O2"] {
                let name = format!("{} {} {optimisation}", compiler.name(), library.name());
                match build(context, compiler, library, optimisation, None) {
                    Ok(program) => transcript(context, report, &name, &program),
                    Err(error) => report.check(format!("{name}: build"), Err(format!("{error:#}"))),
                }
            }
        }
    }
    // Other linkers lay out the tables for unwinding and the order of initialisers in their own way.
    for linker in [Linker::Lld, Linker::Mold] {
        match build(context, Compiler::Gcc, Library::Gnu, "-O2", Some(linker)) {
            Ok(program) => transcript(context, report, linker.name(), &program),
            Err(error) => report.check(format!("{}: build", linker.name()), Err(format!("{error:#}"))),
        }
    }
    Ok(())
}

/// The program of one combination, in a directory of its own.
fn build(
    context: &Context,
    compiler: Compiler,
    library: Library,
    optimisation: &str,
    linker: Option<Linker>,
) -> anyhow::Result<PathBuf> {
    let flags = library.flags(compiler)?;
    let linked = linker.map_or("", Linker::name);
    let directory = format!("{}-{}{optimisation}{linked}", compiler.name(), library.name());
    let start = |source: &str| {
        let mut build =
            Build::new(format!("cxx/{source}.cpp")).compiler(compiler).flags(&["-std=c++17", optimisation, "-pthread"]);
        if let Some(linker) = linker {
            build = build.linker(linker);
        }
        for flag in &flags {
            build = build.flag(flag);
        }
        build
    };
    let first = start("first").shared().output(format!("{directory}/libfirst.so")).build(context)?;
    let second = start("second").shared().with(&first).output(format!("{directory}/libsecond.so")).build(context)?;
    let third =
        start("third").shared().with(&second).with(&first).output(format!("{directory}/libthird.so")).build(context)?;
    start("main").with(&third).with(&second).with(&first).output(format!("{directory}/main")).build(context)
}

/// Four ways, each with the transcript of ld-linux and the written-down sum.
fn transcript(context: &Context, report: &mut Report, name: &str, program: &PathBuf) {
    for (way, bind) in WAYS {
        let result = (|| -> anyhow::Result<Result<(), String>> {
            let reference = Run::new(program).way(Way::Reference).bind(bind).output(context)?;
            if reference.status != Status::Exit(0) || !reference.text().contains(LAST_WORD) {
                return Ok(Err(format!("ld-linux does not do what this case is about\n{}", reference.describe())));
            }
            Ok(Run::new(program).way(way).bind(bind).output(context)?.same_as(&reference))
        })();
        let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
        report.check(format!("{name} ({})", label(way, bind)), result);
    }
}

/// Where libc++'s headers lie: `/usr/lib/llvm-N/include/c++/v1`, the newest N.
fn llvm_headers() -> anyhow::Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir("/usr/lib")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("llvm-").and_then(|number| number.parse().ok());
        let headers = entry.path().join("include/c++/v1");
        if let Some(number) = number
            && headers.is_dir()
        {
            found.push((number, headers));
        }
    }
    found.sort();
    found.pop().map(|(_, path)| path).ok_or_else(|| anyhow::anyhow!("no headers of libc++ (Debian package libc++-dev)"))
}
