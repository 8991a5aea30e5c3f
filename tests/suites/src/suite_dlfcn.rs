//! Suite `dlfcn`: dlopen, dlsym, dlclose, dlerror and what tells about objects, through libc's own entry points. Each case is
//! a script of calls (`tests/programs/dlfcn/script.c`) or a small program; the transcript is written down and compared with
//! ld-linux in the same run. Owns the libraries that the cases share.

mod close;
mod errors;
mod flags;
mod information;
mod inside;
mod interposition;
mod lookup;
mod order;
mod together;

use crate::harness::{Bind, Build, Context, Report, Run, WAYS, Way};
use crate::same::{Want, label};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// One subject of the suite.
type Part = fn(&Context, &mut Report, &Script) -> Result<()>;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let script = Script::build(context)?;
    let parts: [(&str, Part); 9] = [
        ("flags", flags::run),
        ("lookup", lookup::run),
        ("close", close::run),
        ("errors", errors::run),
        ("information", information::run),
        ("order", order::run),
        ("interposition", interposition::run),
        ("inside", inside::run),
        ("together", together::run),
    ];
    for (name, part) in parts {
        // One part that cannot be built must not hide the others.
        if let Err(error) = part(context, report, &script) {
            report.check(format!("{name} runs to its end"), Err(format!("{error:#}")));
        }
    }
    Ok(())
}

/// The program that runs scripts.
struct Script {
    program: PathBuf,
}

impl Script {
    fn build(context: &Context) -> Result<Self> {
        let program = Build::new("dlfcn/script.c").flags(&["-O1", "-rdynamic", "-pthread"]).build(context)?;
        Ok(Self { program })
    }

    /// Runs `lines` four ways; each transcript must be `want` and what ld-linux printed, with the same end.
    fn same(&self, context: &Context, report: &mut Report, name: &str, lines: &[&str], want: &[&str]) {
        self.by_bind(context, report, name, lines, want, want);
    }

    /// As `same`, with another transcript where everything is bound at once.
    fn by_bind(
        &self,
        context: &Context,
        report: &mut Report,
        name: &str,
        lines: &[&str],
        lazy: &[&str],
        bound: &[&str],
    ) {
        for (way, bind) in WAYS {
            let want = self.transcript(if bind == Bind::Lazy { lazy } else { bound });
            compare(context, report, name, way, bind, Want::Clean(&want), || Run::new(&self.program).args(lines));
        }
    }

    /// The transcript's text: the given lines, `end` after them unless the case has destructors that run later and names it,
    /// and the program's own path where it is called `./script`.
    fn transcript(&self, lines: &[&str]) -> String {
        let mut text = lines.join("\n");
        if !lines.contains(&"end") {
            text.push_str("\nend");
        }
        text.replace("./script:", &format!("{}:", self.program.display()))
    }

    /// Runs `lines` four ways against a transcript that ld-linux does not print, for the reason that stands beside the call.
    fn written(&self, context: &Context, report: &mut Report, name: &str, lines: &[&str], want: &[&str]) {
        crate::same::written(context, report, name, &self.program, Want::Clean(&self.transcript(want)), |run| {
            run.args(lines)
        });
    }
}

/// One way against ld-linux bound alike.
fn compare(
    context: &Context,
    report: &mut Report,
    name: &str,
    way: Way,
    bind: Bind,
    want: Want,
    run: impl Fn() -> Run,
) {
    let result = (|| -> Result<Result<(), String>> {
        let reference = run().way(Way::Reference).bind(bind).output(context)?;
        if let Err(error) = want.accepts(&reference) {
            return Ok(Err(format!("ld-linux does not do what this case is about: {error}")));
        }
        Ok(run().way(way).bind(bind).output(context)?.same_as(&reference))
    })();
    report.check(format!("{name} ({})", label(way, bind)), result.unwrap_or_else(|error| Err(format!("{error:#}"))));
}

/// Flags that let a library find those that it needs beside itself.
const BESIDE: &str = "-Wl,--enable-new-dtags,-rpath,$ORIGIN";

/// Builds `dlfcn/node.c` as `DIRECTORY/libNUMBER.so`, with that name as its soname, needing `libraries`.
fn node(context: &Context, directory: &str, number: u32, flags: &[&str], libraries: &[&Path]) -> Result<PathBuf> {
    let build = Build::new("dlfcn/node.c")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--no-as-needed", BESIDE])
        .flag(format!("-DNUMBER={number}"))
        .flag(format!("-Wl,-soname,lib{number}.so"))
        .flags(flags)
        .output(format!("{directory}/lib{number}.so"));
    libraries.iter().fold(build, |build, library| build.with(library)).build(context)
}
