//! AT_PAGESZ is what decides, not 4096: the auxiliary vector of a program without any C library is changed at its exec stop, and the loader
//! must then ask for congruence modulo the larger page and still map what has it.
//!
//! Unlike the other groups this one starts its program itself, because the harness leaves the process at the exec stop.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::harness::{Build, Context, FileIdentity, Report, Run, Way, mapped_files};

/// `AT_PAGESZ` and `AT_NULL` (getauxval(3)).
const AT_PAGESZ: i64 = 6;
const AT_NULL: i64 = 0;

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let large = build(context, "page/large", "0x10000")?;
    let small = build(context, "page/small", "0x1000")?;
    for page_size in [4096, 16384] {
        let result = start(context, &large, page_size)?;
        let check = if result.0 == Some(42) {
            Ok(())
        } else {
            Err(format!("expected exit 42\ngot      {result:?}"))
        };
        report.check(
            format!("a library laid out for 64 KiB pages with AT_PAGESZ {page_size}"),
            check,
        );
    }
    let result = start(context, &small, 4096)?;
    let check = if result.0 == Some(42) {
        Ok(())
    } else {
        Err(format!("expected exit 42\ngot      {result:?}"))
    };
    report.check(
        "a library laid out for 4 KiB pages with AT_PAGESZ 4096",
        check,
    );
    let result = start(context, &small, 16384)?;
    let text = "libpage.so: ELF load command address/offset not page-aligned";
    let check = if result.0 == Some(127) && result.1.contains(text) {
        Ok(())
    } else {
        Err(format!(
            "expected exit 127 and {text:?}\ngot      {result:?}"
        ))
    };
    report.check(
        "a library laid out for 4 KiB pages is refused with AT_PAGESZ 16384",
        check,
    );
    Ok(())
}

/// Library for pages of `size`; the program is laid out for 64 KiB always.
fn build(context: &Context, directory: &str, size: &str) -> anyhow::Result<PathBuf> {
    let library = Build::new("mapping/page_size.c")
        .shared()
        .flags(&["-nostdlib", "-O1", "-DLIBRARY", "-Wl,-z,noseparate-code"])
        .flag(format!(
            "-Wl,-z,max-page-size={size},-z,common-page-size={size}"
        ))
        .output(format!("{directory}/libpage.so"))
        .build(context)?;
    Build::new("mapping/page_size.c")
        .flags(&[
            "-nostdlib",
            "-nostartfiles",
            "-O1",
            "-Wl,-z,max-page-size=0x10000,-z,common-page-size=0x10000",
            "-Wl,-rpath,$ORIGIN",
        ])
        .with(library)
        .output(format!("{directory}/page"))
        .build(context)
}

/// Run `LOADER PROGRAM` with `page_size` in its auxiliary vector; exit status and standard error.
fn start(
    context: &Context,
    program: &Path,
    page_size: i64,
) -> anyhow::Result<(Option<i32>, String)> {
    let mut command = Run::new(program).way(Way::Direct).command(context)?;
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .stdin(Stdio::null());
    let child = traced(&mut command)?;
    let process = Pid::from_raw(i32::try_from(child.id())?);
    let prepared = at_exec(context, process, page_size);
    if prepared.is_err() {
        let _ = ptrace::kill(process);
    }
    prepared?;
    let output = child.wait_with_output()?;
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn traced(command: &mut Command) -> anyhow::Result<Child> {
    let prepare = || {
        // The kernel places files at multiples of 4096; without randomisation the loader happens to lie at a multiple of 16384, as it
        // would on a machine with such pages.
        let persona = personality::get()? | Persona::ADDR_NO_RANDOMIZE;
        personality::set(persona)?;
        Ok(ptrace::traceme()?)
    };
    // SAFETY: between fork and exec `prepare` makes system calls only: no allocation, no lock.
    unsafe { command.pre_exec(prepare) };
    command.spawn().context("cannot start the loader")
}

/// At the exec stop: assert the loader, change AT_PAGESZ, let go.
fn at_exec(context: &Context, process: Pid, page_size: i64) -> anyhow::Result<()> {
    let status = waitpid(process, None)?;
    anyhow::ensure!(
        matches!(status, WaitStatus::Stopped(_, Signal::SIGTRAP)),
        "expected the stop at exec, got {status:?}"
    );
    anyhow::ensure!(
        mapped_files(process.as_raw())?.contains(&FileIdentity::of(&context.loader)?),
        "the loader is not mapped"
    );
    let read = |address: u64| ptrace::read(process, address as ptrace::AddressType);
    let base = loader_base(context, process)?;
    anyhow::ensure!(
        base.is_multiple_of(16384),
        "the loader lies at {base:#x}: the fixture shows nothing"
    );
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
    ptrace::write(process, (address + 8) as ptrace::AddressType, page_size)?;
    ptrace::detach(process, None)?;
    Ok(())
}

/// The lowest address at which the loader is mapped.
fn loader_base(context: &Context, process: Pid) -> anyhow::Result<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let path = context.loader.to_string_lossy();
    let line = maps
        .lines()
        .find(|line| line.ends_with(path.as_ref()))
        .context("the loader is not mapped")?;
    Ok(u64::from_str_radix(
        line.split('-').next().unwrap_or_default(),
        16,
    )?)
}
