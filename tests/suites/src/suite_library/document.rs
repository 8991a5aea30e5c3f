//! Each test that `docs/signals.md` names is there: what it puts between quotation marks stands in a test's source.

use crate::harness::{Context, Report};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;

/// Checks it.
pub fn check(context: &Context, report: &mut Report) -> Result<()> {
    let document = fs::read_to_string(context.root.join("docs/signals.md"))?;
    let mut sources = String::new();
    for directory in ["tests/programs/sigblock", "tests/suites/src"] {
        collect(&context.root.join(directory), &mut sources)?;
    }
    let names: Vec<&str> = document.split('"').skip(1).step_by(2).collect();
    ensure!(names.len() > 30, "docs/signals.md names {} tests", names.len());
    // In a source the name begins a string, or ends one that is put together.
    let is_there = |name: &str| sources.contains(&format!("\"{name}")) || sources.contains(&format!(" {name} ("));
    let missing: Vec<_> = names.iter().map(|name| name.replace('\n', " ")).filter(|name| !is_there(name)).collect();
    report.equal("tests that docs/signals.md names and that are not there", missing, Vec::<String>::new());
    Ok(())
}

fn collect(directory: &Path, sources: &mut String) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, sources)?;
        } else if let Ok(text) = fs::read_to_string(&path) {
            sources.push_str(&text);
        }
    }
    Ok(())
}
