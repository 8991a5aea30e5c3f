//! AT_PAGESZ is what decides, not 4096: the auxiliary vector of a program without any C library is changed at its exec stop.
//!
//! Files cannot be mapped in larger pages than the kernel has, and the loader's own file is laid out for 4 KiB, so that with a larger
//! page size there is one right answer: words. Unlike the other groups this one starts its program itself, because the harness leaves the
//! process at the exec stop.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::harness::{Build, Context, FileIdentity, Report, Run, Way, mapped_files};

/// Tags of the auxiliary vector (getauxval(3)).
const AT_NULL: i64 = 0;
const AT_IGNORE: i64 = 1;
const AT_PAGESZ: i64 = 6;

/// What becomes of the entry AT_PAGESZ.
#[derive(Clone, Copy)]
enum PageSize {
    Is(i64),
    Absent,
}

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let large = build(context, "page/large", "0x10000")?;
    let small = build(context, "page/small", "0x1000")?;
    for (words, program, page_size) in [
        ("a library laid out for 4 KiB pages with AT_PAGESZ 4096", &small, PageSize::Is(4096)),
        ("a library laid out for 64 KiB pages with AT_PAGESZ 4096", &large, PageSize::Is(4096)),
        ("a library laid out for 4 KiB pages without AT_PAGESZ", &small, PageSize::Absent),
    ] {
        let (status, error) = start(context, program, page_size)?;
        let right = status == Some(42) && error.is_empty();
        report
            .check(words, if right { Ok(()) } else { Err(format!("expected exit 42\ngot      {status:?}, {error}")) });
    }
    let (status, error) = start(context, &large, PageSize::Is(16384))?;
    let text = "error while loading shared libraries: ELF load command address/offset not page-aligned\n";
    let right = status == Some(127) && error.ends_with(text) && error.lines().count() == 1;
    report.check(
        "files laid out for 4 KiB pages are refused with AT_PAGESZ 16384",
        if right { Ok(()) } else { Err(format!("expected exit 127 and {text}got      {status:?}, {error}")) },
    );
    Ok(())
}

/// Program and library, laid out for pages of `size`.
fn build(context: &Context, directory: &str, size: &str) -> anyhow::Result<PathBuf> {
    let pages = format!("-Wl,-z,max-page-size={size},-z,common-page-size={size}");
    let library = Build::new("mapping/page_size.c")
        .shared()
        .flags(&["-nostdlib", "-O1", "-DLIBRARY"])
        .flag(&pages)
        .output(format!("{directory}/libpage.so"))
        .build(context)?;
    Build::new("mapping/page_size.c")
        .flags(&["-nostdlib", "-nostartfiles", "-O1", "-Wl,-rpath,$ORIGIN"])
        .flag(&pages)
        .with(library)
        .output(format!("{directory}/page"))
        .build(context)
}

/// Run `LOADER PROGRAM` with the page size in its auxiliary vector; exit status and standard error.
fn start(context: &Context, program: &Path, page_size: PageSize) -> anyhow::Result<(Option<i32>, String)> {
    let mut command = Run::new(program).way(Way::Direct).command(context)?;
    command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = traced(&mut command)?;
    let process = Pid::from_raw(i32::try_from(child.id())?);
    if let Err(error) = at_exec(context, process, page_size) {
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    let output = child.wait_with_output()?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn traced(command: &mut Command) -> anyhow::Result<Child> {
    // SAFETY: between fork and exec the closure makes one system call: no allocation, no lock.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    command.spawn().context("cannot start the loader")
}

/// At the exec stop: assert the loader, change AT_PAGESZ, let go.
fn at_exec(context: &Context, process: Pid, page_size: PageSize) -> anyhow::Result<()> {
    let status = waitpid(process, None)?;
    anyhow::ensure!(
        matches!(status, WaitStatus::Stopped(_, Signal::SIGTRAP)),
        "expected the stop at exec, got {status:?}"
    );
    let mapped = mapped_files(process.as_raw())?;
    anyhow::ensure!(mapped.contains(&FileIdentity::of(&context.loader)?), "the loader is not mapped");
    let read = |address: u64| ptrace::read(process, address as ptrace::AddressType);
    // psABI "Process Initialization": argc, argv, NULL, environment, NULL, auxiliary vector of pairs.
    let mut address = ptrace::getregs(process)?.rsp;
    address += 8 * (u64::try_from(read(address)?)? + 2);
    while read(address)? != 0 {
        address += 8;
    }
    address += 8;
    loop {
        match read(address)? {
            AT_NULL => anyhow::bail!("no AT_PAGESZ"),
            AT_PAGESZ => break,
            _ => address += 16,
        }
    }
    match page_size {
        PageSize::Is(size) => ptrace::write(process, (address + 8) as ptrace::AddressType, size)?,
        PageSize::Absent => ptrace::write(process, address as ptrace::AddressType, AT_IGNORE)?,
    }
    ptrace::detach(process, None)?;
    Ok(())
}
