//! glibc-hwcaps: the sub-directories for levels of the processor, under every kind of search path. Those in the cache and in
//! the default directories are in `cache`.

use anyhow::Result;

use super::Store;
use super::rules::{NEW, OLD};
use crate::harness::{Context, Report};
use crate::same::{Want, same};

/// glibc-hwcaps: of the subdirectories that the processor supports the highest wins, before the directory itself.
pub fn run(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    let supported = supported_levels(context)?;
    report.note(format!("glibc-hwcaps levels of this processor: {}", supported.join(" ")));
    for kind in ["RUNPATH", "RPATH", "LD_LIBRARY_PATH"] {
        for highest in 1..=4u32 {
            let directory = format!("hwcaps-{kind}-{highest}");
            let base = context.work.join(&directory).join("d");
            store.place(1, &base)?;
            let mut found = 1;
            for level in 2..=highest {
                let name = format!("x86-64-v{level}");
                store.place(level, &base.join("glibc-hwcaps").join(&name))?;
                if supported.contains(&name) {
                    found = level;
                }
            }
            let path = format!("-Wl,-rpath,{}", base.display());
            let flags: &[&str] = match kind {
                "RUNPATH" => &[NEW, &path],
                "RPATH" => &[OLD, &path],
                _ => &[],
            };
            let program = store.printer(context, &format!("{directory}/program"), flags)?;
            let name = format!("glibc-hwcaps up to x86-64-v{highest} under {kind}");
            same(context, report, &name, &program, Want::Prints(&found.to_string()), |run| {
                if kind == "LD_LIBRARY_PATH" { run.env(kind, &base) } else { run }
            });
        }
    }
    Ok(())
}

/// The levels that ld-linux names as supported on this processor.
pub fn supported_levels(context: &Context) -> Result<Vec<String>> {
    let output = std::process::Command::new(&context.reference).arg("--help").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("x86-64-v") && line.contains("(supported"));
    Ok(lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}
