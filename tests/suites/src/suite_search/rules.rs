//! The search path rules: RPATH, RUNPATH, LD_LIBRARY_PATH, and what is skipped. One table row a case;
//! `@` in a flag or variable stands for the case's directory, where the program is and whose `cwd` it runs in.

use std::path::PathBuf;

use anyhow::Result;

use super::{NOT_ELF, Store, WRONG_CLASS, WRONG_MACHINE};
use crate::elf_edit::{Image, tag};
use crate::harness::{Build, Context, Report, Run};
use crate::same::{Want, same};

/// What needs `libw.so`.
enum Program<'a> {
    /// The program itself, linked with these flags.
    Own(&'a [&'a str]),
    /// `librelay.so` in this directory, with its flags; the program needs that, with its own flags.
    Relay { program: &'a [&'a str], directory: &'a str, relay: &'a [&'a str] },
    /// The program needs `librelay.so`, that needs `libmiddle.so`, that needs `libw.so`: flags and directory of each.
    Chain { program: &'a [&'a str], relay: (&'a str, &'a [&'a str]), middle: (&'a str, &'a [&'a str]) },
}

/// One rule.
struct Case<'a> {
    name: &'a str,
    libraries: &'a [(&'a str, u32)],
    program: Program<'a>,
    environment: &'a [(&'a str, &'a str)],
    want: Want<'a>,
}

/// The linker writes DT_RPATH.
pub const OLD: &str = "-Wl,--disable-new-dtags";
/// The linker writes DT_RUNPATH.
pub const NEW: &str = "-Wl,--enable-new-dtags";
/// What ld-linux says when no rule finds the library.
pub const MISSING: Want<'static> =
    Want::Fails(127, "libw.so: cannot open shared object file: No such file or directory");

const CASES: &[Case] = &[
    Case {
        name: "RPATH of the requester comes before LD_LIBRARY_PATH",
        libraries: &[("d1", 1), ("d2", 2)],
        program: Program::Own(&[OLD, "-Wl,-rpath,@/d1"]),
        environment: &[("LD_LIBRARY_PATH", "@/d2")],
        want: Want::Prints("1"),
    },
    Case {
        name: "RPATH lists are tried in order",
        libraries: &[("d2", 2), ("d3", 3)],
        program: Program::Own(&[OLD, "-Wl,-rpath,@/d1:@/d2:@/d3"]),
        environment: &[],
        want: Want::Prints("2"),
    },
    Case {
        name: "LD_LIBRARY_PATH comes before RUNPATH",
        libraries: &[("d1", 1), ("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d1"]),
        environment: &[("LD_LIBRARY_PATH", "@/d2")],
        want: Want::Prints("2"),
    },
    Case {
        name: "RUNPATH of the requester",
        libraries: &[("d1", 1)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d1"]),
        environment: &[("LD_LIBRARY_PATH", "@/d2")],
        want: Want::Prints("1"),
    },
    Case {
        name: "RPATH of the program is used for a library's needs",
        libraries: &[("d1", 1)],
        program: Program::Relay { program: &[OLD, "-Wl,-rpath,@/d1"], directory: "d1", relay: &[] },
        environment: &[],
        want: Want::Prints("1"),
    },
    Case {
        name: "RPATH of the requester comes before that of the program",
        libraries: &[("d1", 1), ("d2", 2)],
        program: Program::Relay {
            program: &[OLD, "-Wl,-rpath,@/d1"],
            directory: "d1",
            relay: &[OLD, "-Wl,-rpath,@/d2"],
        },
        environment: &[],
        want: Want::Prints("2"),
    },
    Case {
        name: "RPATH is inherited along the chain of loaders",
        libraries: &[("d3", 3)],
        program: Program::Chain { program: &[], relay: ("d1", &[OLD, "-Wl,-rpath,@/d2:@/d3"]), middle: ("d2", &[]) },
        environment: &[("LD_LIBRARY_PATH", "@/d1")],
        want: Want::Prints("3"),
    },
    Case {
        name: "the chain of loaders comes before the program",
        libraries: &[("d3", 3), ("d4", 4)],
        program: Program::Chain {
            program: &[OLD, "-Wl,-rpath,@/d1:@/d4"],
            relay: ("d1", &[OLD, "-Wl,-rpath,@/d2:@/d3"]),
            middle: ("d2", &[]),
        },
        environment: &[],
        want: Want::Prints("3"),
    },
    Case {
        name: "RUNPATH is not inherited",
        libraries: &[("d1", 1)],
        program: Program::Relay { program: &[NEW, "-Wl,-rpath,@/d1"], directory: "d1", relay: &[] },
        environment: &[],
        want: MISSING,
    },
    Case {
        name: "RUNPATH of the requester disables the RPATH of its loaders",
        libraries: &[("d1", 1)],
        program: Program::Relay {
            program: &[OLD, "-Wl,-rpath,@/d1"],
            directory: "d1",
            relay: &[NEW, "-Wl,-rpath,@/empty"],
        },
        environment: &[],
        want: MISSING,
    },
    Case {
        name: "RUNPATH of a loader in the chain does not hide the program's RPATH",
        libraries: &[("d1", 1)],
        program: Program::Chain {
            program: &[OLD, "-Wl,-rpath,@/d1"],
            relay: ("d1", &[NEW, "-Wl,-rpath,@/d2"]),
            middle: ("d2", &[]),
        },
        environment: &[],
        want: Want::Prints("1"),
    },
    Case {
        name: "LD_LIBRARY_PATH is tried in order",
        libraries: &[("d2", 2), ("d3", 3)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1:@/d2:@/d3")],
        want: Want::Prints("2"),
    },
    Case {
        name: "LD_LIBRARY_PATH may separate by semicolons",
        libraries: &[("d2", 2), ("d3", 3)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1;@/d3;@/d2")],
        want: Want::Prints("3"),
    },
    Case {
        name: "an empty first element of LD_LIBRARY_PATH is the working directory",
        libraries: &[("cwd", 4), ("d1", 1)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", ":@/d1")],
        want: Want::Prints("4"),
    },
    Case {
        name: "an empty last element of LD_LIBRARY_PATH is the working directory",
        libraries: &[("cwd", 4)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1:")],
        want: Want::Prints("4"),
    },
    Case {
        name: "an empty middle element of LD_LIBRARY_PATH is the working directory",
        libraries: &[("cwd", 4), ("d2", 2)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1::@/d2")],
        want: Want::Prints("4"),
    },
    Case {
        name: "an empty LD_LIBRARY_PATH is no element",
        libraries: &[("cwd", 4), ("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d2"]),
        environment: &[("LD_LIBRARY_PATH", "")],
        want: Want::Prints("2"),
    },
    Case {
        name: "a relative element of LD_LIBRARY_PATH",
        libraries: &[("cwd/sub", 5)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "sub")],
        want: Want::Prints("5"),
    },
    Case {
        name: "trailing slashes in LD_LIBRARY_PATH",
        libraries: &[("d2", 2)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1//:@/d2///")],
        want: Want::Prints("2"),
    },
    Case {
        name: "an element of LD_LIBRARY_PATH that is a file",
        libraries: &[("d1", 1), ("d2", 2)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/d1/libw.so:@/d2")],
        want: Want::Prints("2"),
    },
    Case {
        name: "$ORIGIN in LD_LIBRARY_PATH is the program's directory",
        libraries: &[("d2", 2)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "$ORIGIN/d1:$ORIGIN/d2")],
        want: Want::Prints("2"),
    },
    Case {
        name: "${ORIGIN} in RUNPATH",
        libraries: &[("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,${ORIGIN}/d2"]),
        environment: &[],
        want: Want::Prints("2"),
    },
    Case {
        name: "$ORIGIN in a library's RPATH is the library's directory",
        libraries: &[("d1", 1), ("d1/d1", 5)],
        program: Program::Relay {
            program: &[OLD, "-Wl,-rpath,$ORIGIN/d1"],
            directory: "d1",
            relay: &[OLD, "-Wl,-rpath,$ORIGIN/d1"],
        },
        environment: &[],
        want: Want::Prints("5"),
    },
    Case {
        name: "$LIB",
        libraries: &[("lib/x86_64-linux-gnu", 1), ("lib", 2), ("lib64", 3), ("$LIB", 4)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/$LIB"]),
        environment: &[],
        want: Want::Prints("1"),
    },
    Case {
        name: "${LIB} in LD_LIBRARY_PATH",
        libraries: &[("lib/x86_64-linux-gnu", 1), ("lib", 2), ("lib64", 3), ("${LIB}", 4)],
        program: Program::Own(&[]),
        environment: &[("LD_LIBRARY_PATH", "@/${LIB}")],
        want: Want::Prints("1"),
    },
    Case {
        name: "a library of the wrong class is skipped in RPATH",
        libraries: &[("d1", WRONG_CLASS), ("d2", 2)],
        program: Program::Own(&[OLD, "-Wl,-rpath,@/d1:@/d2"]),
        environment: &[],
        want: Want::Prints("2"),
    },
    Case {
        name: "a library of the wrong class is skipped in LD_LIBRARY_PATH, the next rule goes on",
        libraries: &[("d1", WRONG_CLASS), ("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d2"]),
        environment: &[("LD_LIBRARY_PATH", "@/d1")],
        want: Want::Prints("2"),
    },
    Case {
        name: "only a library of the wrong class",
        libraries: &[("d1", WRONG_CLASS)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d1"]),
        environment: &[],
        want: Want::Fails(127, "libw.so: wrong ELF class: ELFCLASS32"),
    },
    Case {
        name: "a library for another machine is skipped",
        libraries: &[("d1", WRONG_MACHINE), ("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d1:@/d2"]),
        environment: &[],
        want: Want::Prints("2"),
    },
    Case {
        name: "a file that is not ELF ends the search",
        libraries: &[("d1", NOT_ELF), ("d2", 2)],
        program: Program::Own(&[NEW, "-Wl,-rpath,@/d1:@/d2"]),
        environment: &[],
        want: Want::Fails(127, "d1/libw.so: invalid ELF header"),
    },
];

/// Runs the table and the case that needs an edited file.
pub fn run(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    for (index, case) in CASES.iter().enumerate() {
        run_case(context, report, store, case, &format!("rule{index}"))?;
    }
    both_tags(context, report, store)
}

/// Makes the directories and the program of one case and compares.
fn run_case(context: &Context, report: &mut Report, store: &Store, case: &Case, directory: &str) -> Result<()> {
    let base = context.work.join(directory);
    std::fs::create_dir_all(base.join("cwd"))?;
    for (place, number) in case.libraries {
        store.place(*number, &base.join(place))?;
    }
    let program = build_program(context, store, &case.program, directory)?;
    let at = base.to_string_lossy();
    same(context, report, case.name, &program, case.want, |run| {
        with_environment(run, case.environment, &at).directory(base.join("cwd"))
    });
    Ok(())
}

fn with_environment(run: Run, environment: &[(&str, &str)], at: &str) -> Run {
    environment.iter().fold(run, |run, (name, value)| run.env(name, value.replace('@', at)))
}

fn build_program(context: &Context, store: &Store, program: &Program, directory: &str) -> Result<PathBuf> {
    let base = context.work.join(directory);
    let at = base.to_string_lossy().into_owned();
    let flags = |list: &[&str]| -> Vec<String> { list.iter().map(|flag| flag.replace('@', &at)).collect() };
    let build = |source: &str, list: &[&str], next: PathBuf, output: String| -> Result<PathBuf> {
        let mut build =
            Build::new(source).with(next).output(output).flag("-Wl,--unresolved-symbols=ignore-in-shared-libs");
        if source == "search/relay.c" {
            build = build.shared();
        }
        flags(list).into_iter().fold(build, Build::flag).build(context)
    };
    let named = |name: &str, function: &str, next: &str, list: &[&str]| -> Vec<String> {
        let own = [format!("-Wl,-soname,{name}"), format!("-DNAME={function}"), format!("-DNEXT={next}")];
        flags(list).into_iter().chain(own).collect()
    };
    let library =
        |(place, list): (&str, &[&str]), name: &str, function: &str, next: &str, needed: PathBuf| -> Result<PathBuf> {
            let all = named(name, function, next, list);
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            build("search/relay.c", &all, needed, format!("{directory}/{place}/{name}"))
        };
    match program {
        Program::Own(list) => build("search/print.c", list, store.library(1), format!("{directory}/program")),
        Program::Relay { program, directory: place, relay } => {
            let relay = library((place, relay), "librelay.so", "relay", "which", store.library(1))?;
            build("search/print_relay.c", program, relay, format!("{directory}/program"))
        }
        Program::Chain { program, relay, middle } => {
            let middle = library(*middle, "libmiddle.so", "middle", "which", store.library(1))?;
            let relay = library(*relay, "librelay.so", "relay", "middle", middle)?;
            build("search/print_relay.c", program, relay, format!("{directory}/program"))
        }
    }
}

/// An object with both tags: RPATH is ignored. The linker writes one of the two, so the string of another tag is used.
fn both_tags(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    let base = context.work.join("both");
    store.place(1, &base.join("d1"))?;
    store.place(2, &base.join("d2"))?;
    let rpath = format!("-Wl,-rpath,{}", base.join("d1").display());
    let other = format!("-Wl,--depaudit,{}", base.join("d2").display());
    let program = store.printer(context, "both/program", &[OLD, &rpath, &other])?;
    let mut image = Image::read(&program)?;
    image.retag(tag::DEPAUDIT, tag::RUNPATH)?;
    image.write(&program)?;
    same(context, report, "RPATH is ignored in an object that has RUNPATH", &program, Want::Prints("2"), |run| run);
    Ok(())
}
