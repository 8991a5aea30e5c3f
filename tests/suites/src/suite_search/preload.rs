//! LD_PRELOAD and /etc/ld.so.preload: separators, tokens, order, and the warnings about what cannot be preloaded.

use std::fs;

use anyhow::Result;

use super::{NOT_ELF, Store, WRONG_CLASS, identity};
use crate::harness::{Build, Context, Report};
use crate::namespace::{in_namespace, place};
use crate::same::{Want, same, written};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    variable(context, report, store)?;
    system_wide(context, report)
}

fn variable(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    let base = context.work.join("preload");
    for (number, name) in [(5, "first.so"), (6, "second.so"), (7, "sp ace.so")] {
        Build::new("search/which.c")
            .shared()
            .flags(&[&format!("-DNUMBER={number}"), "-Wl,-soname,", "-DNAME=which"])
            .output(format!("preload/{name}"))
            .build(context)?;
    }
    store.place(1, &base.join("d1"))?;
    place(&base.join("first.so"), &base.join("d1/bare.so"))?;
    place(&base.join("first.so"), &base.join("lib/x86_64-linux-gnu/tokens.so"))?;
    place(&store.library(WRONG_CLASS), &base.join("wrong.so"))?;
    place(&store.library(NOT_ELF), &base.join("text.so"))?;
    fs::write(base.join("empty.so"), "")?;
    fs::create_dir_all(base.join("directory.so"))?;
    let runpath = format!("-Wl,--enable-new-dtags,-rpath,{}", base.join("d1").display());
    let program = store.printer(context, "preload/program", &[&runpath])?;
    let cannot = "from LD_PRELOAD cannot be preloaded";
    let missing = format!("{cannot} (cannot open shared object file): ignored.");
    let wrong = format!("{cannot} (wrong ELF class: ELFCLASS32): ignored.");
    let cases: &[(&str, &str, Want)] = &[
        ("LD_PRELOAD comes before the needed libraries", "@/first.so", Want::Prints("5")),
        ("LD_PRELOAD separates by spaces", "@/second.so @/first.so", Want::Prints("6")),
        ("LD_PRELOAD separates by colons", "@/second.so:@/first.so", Want::Prints("6")),
        ("LD_PRELOAD may mix separators and repeat them", " ::@/first.so  : @/second.so: ", Want::Prints("5")),
        ("LD_PRELOAD may name a file twice", "@/first.so:@/first.so", Want::Prints("5")),
        ("LD_PRELOAD expands $ORIGIN", "$ORIGIN/first.so", Want::Prints("5")),
        ("LD_PRELOAD expands ${ORIGIN} and $LIB", "${ORIGIN}/$LIB/tokens.so", Want::Prints("5")),
        ("LD_PRELOAD searches a bare name", "bare.so", Want::Prints("5")),
        ("LD_PRELOAD of a relative path", "./first.so", Want::Prints("5")),
        ("an empty LD_PRELOAD", "", Want::Prints("1")),
        ("LD_PRELOAD of separators only", " : : ", Want::Prints("1")),
        ("a missing file in LD_PRELOAD is a warning", "/nonexist.so", Want::Warns("1", &missing)),
        ("a missing bare name in LD_PRELOAD is a warning", "nonexist.so", Want::Warns("1", &missing)),
        ("a file of the wrong class in LD_PRELOAD is a warning", "@/wrong.so", Want::Warns("1", &wrong)),
        ("after a bad file in LD_PRELOAD the next is loaded", "/nonexist.so:@/second.so", Want::Warns("6", &missing)),
        ("two bad files in LD_PRELOAD are two warnings", "/nonexist.so @/wrong.so", Want::Warns("1", &wrong)),
        ("a text file in LD_PRELOAD is a warning", "@/text.so", Want::Warns("1", "(invalid ELF header): ignored.")),
        ("an empty file in LD_PRELOAD is a warning", "@/empty.so", Want::Warns("1", "(file too short): ignored.")),
    ];
    let at = base.to_string_lossy();
    for (name, value, want) in cases {
        same(context, report, name, &program, *want, |run| {
            run.env("LD_PRELOAD", value.replace('@', &at)).directory(&base)
        });
    }
    let graph = identity::graph(context, "preload-order")?;
    let preload = format!("{at}/second.so:{at}/first.so");
    let want = Want::Prints("program\nsecond.so\nfirst.so\nliba.so\nlibb.so\nlibc.so.6\nlibc.so\nlibd.so\nlibe.so");
    same(context, report, "preloaded objects stand behind the program, in order", &graph, want, |run| {
        run.env("LD_PRELOAD", &preload)
    });
    Ok(())
}

/// /etc/ld.so.preload, in a mount namespace where /etc is ours.
fn system_wide(context: &Context, report: &mut Report) -> Result<()> {
    let base = context.work.join("preload");
    let at = base.to_string_lossy().into_owned();
    let cases: &[(&str, &str, &str, Want)] = &[
        ("/etc/ld.so.preload", "@/first.so\n", "", Want::Prints("5")),
        (
            "/etc/ld.so.preload: comments and separators",
            "# not @/first.so\n\t@/second.so : @/first.so \n",
            "",
            Want::Prints("6"),
        ),
        ("LD_PRELOAD comes before /etc/ld.so.preload", "@/first.so\n", "@/second.so", Want::Prints("6")),
        ("/etc/ld.so.preload without a last newline", "@/first.so", "", Want::Prints("5")),
        ("an empty /etc/ld.so.preload", "", "", Want::Prints("1")),
        (
            "a missing file in /etc/ld.so.preload is a warning",
            "/nonexist.so @/first.so",
            "",
            Want::Warns("5", "from /etc/ld.so.preload cannot be preloaded (cannot open shared object file): ignored."),
        ),
    ];
    in_namespace(context, |namespace| {
        namespace.overlay("/etc")?;
        for (name, content, variable, want) in cases {
            fs::write("/etc/ld.so.preload", content.replace('@', &at))?;
            same(context, report, name, &base.join("program"), *want, |run| {
                if variable.is_empty() { run } else { run.env("LD_PRELOAD", variable.replace('@', &at)) }
            });
        }
        // ld-linux 2.36 takes the words of a comment after the first for names, against its own manual page.
        fs::write("/etc/ld.so.preload", format!("# one\n{at}/second.so # more words\n# {at}/first.so\n"))?;
        let name = "/etc/ld.so.preload: several comments";
        written(context, report, name, &base.join("program"), Want::Clean("6"), |run| run);
        Ok(())
    })
}
