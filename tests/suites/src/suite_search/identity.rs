//! When two needed names are one object (same soname, same device and inode), needed names with a slash, and the order in
//! which the objects are loaded.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::harness::{Build, Context, Report, Run, Status, Way};
use crate::namespace::place;
use crate::same::{Want, same};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    by_soname(context, report)?;
    by_inode(context, report)?;
    with_slash(context, report)?;
    order(context, report)
}

/// A library with `flags`, whose soname is `soname` if that is not empty.
fn library(context: &Context, output: &str, soname: &str, flags: &[&str]) -> Result<PathBuf> {
    let mut build = Build::new("search/counted.c").shared().flags(flags).output(output);
    if !soname.is_empty() {
        build = build.flag(format!("-Wl,-soname,{soname}"));
    }
    build.build(context)
}

/// The program that needs the two names; its RUNPATH is the directory `d` beside it.
fn program(context: &Context, directory: &str, names: [&str; 2]) -> Result<PathBuf> {
    let first = library(context, &format!("{directory}/stub1/libstub1.so"), names[0], &["-DFIRST=0"])?;
    let second = library(context, &format!("{directory}/stub2/libstub2.so"), names[1], &["-DSECOND=0"])?;
    Build::new("search/identity.c")
        .flags(&["-rdynamic", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/d"])
        .with(first)
        .with(second)
        .output(format!("{directory}/program"))
        .build(context)
}

fn by_soname(context: &Context, report: &mut Report) -> Result<()> {
    let program = program(context, "soname", ["libx.so", "libcommon.so"])?;
    library(context, "soname/d/libx.so", "libcommon.so", &["-DFIRST=1", "-DSECOND=2"])?;
    library(context, "soname/d/libcommon.so", "libcommon.so", &["-DSECOND=9"])?;
    same(
        context,
        report,
        "a needed name that is the soname of a loaded object is that object",
        &program,
        Want::Prints("1 2 1"),
        |run| run,
    );
    Ok(())
}

fn by_inode(context: &Context, report: &mut Report) -> Result<()> {
    for (kind, want) in [("a symbolic link", "1 2 1"), ("a hard link", "1 2 1"), ("a copy", "1 2 2")] {
        let directory = kind.replace(' ', "-");
        let program = program(context, &directory, ["libone.so", "libtwo.so"])?;
        let one = library(context, &format!("{directory}/d/libone.so"), "", &["-DFIRST=1", "-DSECOND=2"])?;
        let two = one.with_file_name("libtwo.so");
        match kind {
            "a symbolic link" => symlink("libone.so", &two)?,
            "a hard link" => fs::hard_link(&one, &two)?,
            _ => place(&one, &two)?,
        }
        let name = format!("a second name that is {kind} of a loaded file");
        same(context, report, &name, &program, Want::Prints(want), |run| run);
    }
    Ok(())
}

fn with_slash(context: &Context, report: &mut Report) -> Result<()> {
    let cases = [
        (
            "slash-relative",
            "./sub/libone.so",
            "cwd/sub/libone.so",
            "a needed name with a slash is relative to the working directory",
        ),
        ("slash-origin", "$ORIGIN/sub/libone.so", "sub/libone.so", "a needed name with $ORIGIN"),
    ];
    for (directory, needed, place_at, name) in cases {
        fs::create_dir_all(context.work.join(directory).join("cwd"))?;
        let program = program(context, directory, [needed, "libtwo.so"])?;
        library(context, &format!("{directory}/{place_at}"), "", &["-DFIRST=1"])?;
        library(context, &format!("{directory}/d/libone.so"), "", &["-DFIRST=9"])?;
        library(context, &format!("{directory}/d/libtwo.so"), "", &["-DSECOND=2"])?;
        same(context, report, name, &program, Want::Prints("1 2 2"), |run| {
            run.directory(context.work.join(directory).join("cwd"))
        });
    }
    Ok(())
}

/// Builds the graph program -> a b, a -> c d, b -> d e, c -> b, e -> a; and the program that prints what is loaded.
pub fn graph(context: &Context, directory: &str) -> Result<PathBuf> {
    let edges: [(&str, &[&str]); 5] =
        [("a", &["c", "d"]), ("b", &["d", "e"]), ("c", &["b"]), ("d", &[]), ("e", &["a"])];
    let output = |node: &str, place: &str| format!("{directory}/{place}/lib{node}.so");
    let node = |node: &str, needs: &[&str], place: &str| -> Result<PathBuf> {
        let build = Build::new("search/node.c")
            .shared()
            .flag(format!("-DNODE={node}"))
            .flags(&["-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-Wl,-rpath,$ORIGIN"])
            .flag(format!("-Wl,-soname,lib{node}.so"))
            .output(output(node, place));
        needs.iter().fold(build, |build, need| build.with(context.work.join(output(need, "stub")))).build(context)
    };
    for (name, _) in edges {
        node(name, &[], "stub")?;
    }
    for (name, needs) in edges {
        node(name, needs, "d")?;
    }
    Build::new("search/objects.c")
        .flags(&["-Wl,--no-as-needed", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/d"])
        .with(context.work.join(output("a", "stub")))
        .with(context.work.join(output("b", "stub")))
        .output(format!("{directory}/program"))
        .build(context)
}

fn order(context: &Context, report: &mut Report) -> Result<()> {
    let program = graph(context, "order")?;
    let want = Want::Prints("program\nliba.so\nlibb.so\nlibc.so.6\nlibc.so\nlibd.so\nlibe.so");
    same(
        context,
        report,
        "objects are loaded breadth first, in the order of DT_NEEDED, cycles included",
        &program,
        want,
        |run| run,
    );
    report.check("--list gives the same order as ld-linux", list_order(context, &program));
    Ok(())
}

/// The names of `--list` in order, less the loaders' own lines: where they stand is no part of the search order.
fn list_order(context: &Context, program: &Path) -> Result<(), String> {
    let ours = Run::new(program)
        .way(Way::Direct)
        .loader_options(["--list"])
        .output(context)
        .map_err(|error| format!("{error:#}"))?;
    let theirs = std::process::Command::new(&context.reference)
        .arg("--list")
        .arg(program)
        .output()
        .map_err(|error| error.to_string())?;
    let names = |text: &str| -> Vec<String> {
        let paths = text.lines().filter_map(|line| line.trim().split(" (0x").next());
        paths.filter(|line| !line.contains("/ld") && !line.contains("vdso")).map(str::to_owned).collect()
    };
    let (got, want) = (names(&ours.text()), names(&String::from_utf8_lossy(&theirs.stdout)));
    if ours.status == Status::Exit(0) && got == want && want.len() == 6 {
        return Ok(());
    }
    Err(format!("expected {want:?}\ngot      {got:?}\n{}", ours.describe()))
}
