//! Suite `documentation`: what the documents say can be checked is checked: options and variables against the loader's own
//! `--help`, links and paths against the tree, supported releases against the table, suites against the list of suites. Owns
//! no text; whether prose is true is not its business.

use crate::SUITES;
use crate::harness::{Context, Report, environment};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What begins the names of the loader's long options and of its variables.
const PREFIXES: [&str; 2] = ["--", "LD_"];

/// Directories of the workspace that documents name paths in.
const DIRECTORIES: [&str; 7] = ["rtld/", "sigblock/", "tests/", "xtask/", "docs/", "ld-scripts/", ".ci/"];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let read = |path: &str| fs::read_to_string(context.root.join(path)).with_context(|| path.to_owned());
    let (readme, manual) = (read("README.md")?, read("docs/rtld.1")?);
    for page in ["docs/rtld.1", "docs/sigblock.2"] {
        lint(context, report, page)?;
    }
    let known = names_in_help(context)?;
    report.equal("the manual's options and variables are those of --help", names_in_manual(&manual), known.clone());
    report.equal("the README's options and variables are those of --help", names_in_tables(&readme), known);
    report.equal("the README's first code block", first_block(&readme), Some(vec!["./setup run", "./setup test"]));
    let documents = documents(&context.root)?;
    ensure!(documents.len() > 3, "only {} documents in {}", documents.len(), context.root.display());
    for document in &documents {
        references(context, report, document)?;
    }
    decisions(context, report)?;
    let compatibility = read("docs/compatibility.md")?;
    let releases = releases_in_table(&read("rtld/clib/src/table.rs")?);
    ensure!(!releases.is_empty(), "no releases in rtld/clib/src/table.rs");
    report.equal("docs/compatibility.md's releases of glibc", first_cells(&compatibility, "2."), releases);
    let design = read("docs/design.md")?;
    let unnamed: Vec<_> =
        SUITES.iter().map(|suite| suite.name).filter(|name| !design.contains(&format!("`{name}`"))).collect();
    report.equal("suites that docs/design.md does not name", unnamed, Vec::<&str>::new());
    Ok(())
}

/// A manual page is clean.
fn lint(context: &Context, report: &mut Report, page: &str) -> Result<()> {
    let output = Command::new("mandoc")
        .arg("-Tlint")
        .arg(context.root.join(page))
        .output()
        .context("mandoc (Debian package mandoc)")?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    report.equal(format!("mandoc -Tlint {page}"), (output.status.code(), said.into_owned()), (Some(0), String::new()));
    Ok(())
}

/// Whether a word is the name of an option or of a variable of the loader.
fn is_name(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// The first word of each line of `--help` that lists something.
fn names_in_help(context: &Context) -> Result<BTreeSet<String>> {
    let output = Command::new(&context.loader).arg("--help").env_clear().envs(environment()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let words = text.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: BTreeSet<String> = words.filter(|word| is_name(word)).map(str::to_owned).collect();
    ensure!(names.len() > 10, "--help lists {names:?}");
    Ok(names)
}

/// The tags of lists of options (`.It Fl`) and of variables (`.It Ev`), as a reader sees them.
fn names_in_manual(manual: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in manual.lines() {
        if let Some(flags) = line.strip_prefix(".It Fl ") {
            names.extend(flags.split(' ').map(|flag| format!("-{flag}")));
        } else if let Some(variables) = line.strip_prefix(".It Ev ") {
            names.extend(variables.split(' ').map(str::to_owned));
        }
    }
    names.retain(|name| is_name(name));
    names
}

/// Text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The first word of everything that the first cells of tables quote.
fn names_in_tables(document: &str) -> BTreeSet<String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let words = cells.flat_map(quoted).filter_map(|text| text.split(' ').next());
    words.filter(|word| is_name(word)).map(str::to_owned).collect()
}

/// The first cells of table rows that begin so, in order.
fn first_cells(document: &str, start: &str) -> Vec<String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    cells.map(str::trim).filter(|cell| cell.starts_with(start)).map(str::to_owned).collect()
}

/// The lines of the first code block.
fn first_block(document: &str) -> Option<Vec<&str>> {
    let mut lines = document.lines().skip_while(|line| !line.starts_with("```"));
    lines.next()?;
    Some(lines.take_while(|line| !line.starts_with("```")).collect())
}

/// README.md and everything below docs that is Markdown.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = vec![root.join("README.md")];
    for directory in ["docs", "docs/decisions"] {
        for entry in fs::read_dir(root.join(directory)).with_context(|| directory.to_owned())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

/// What a document refers to exists: targets of links, and paths of the workspace in backticks.
fn references(context: &Context, report: &mut Report, document: &Path) -> Result<()> {
    let text = fs::read_to_string(document)?;
    let directory = document.parent().context("a document lies in a directory")?;
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let links = links.filter(|link| !link.is_empty() && !link.contains("://"));
    let mut missing: Vec<String> =
        links.filter(|link| !directory.join(link).exists()).map(|link| format!("link {link}")).collect();
    let plain = outside_blocks(&text);
    let paths = quoted(&plain).filter(|text| DIRECTORIES.iter().any(|start| text.starts_with(start)));
    let paths = paths.filter(|path| !path.contains(['*', ' ', '{']));
    missing.extend(paths.filter(|path| !context.root.join(path).exists()).map(|path| format!("path {path}")));
    let name = document.strip_prefix(&context.root).unwrap_or(document).display();
    report.equal(format!("{name}: references that lead nowhere"), missing, Vec::<String>::new());
    Ok(())
}

/// The text without its code blocks, whose fences are backticks too.
fn outside_blocks(text: &str) -> String {
    let mut inside = false;
    let mut plain = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

/// Decisions are numbered without gaps, and the index leads to each.
fn decisions(context: &Context, report: &mut Report) -> Result<()> {
    let directory = context.root.join("docs/decisions");
    let index = fs::read_to_string(directory.join("README.md")).context("docs/decisions/README.md")?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "README.md" {
            names.push(name);
        }
    }
    names.sort();
    let numbers: Vec<_> = names.iter().map(|name| name.get(..5).unwrap_or_default().to_owned()).collect();
    let want: Vec<_> = (1..=names.len()).map(|number| format!("{number:04}-")).collect();
    report.equal("decisions are numbered without gaps", numbers, want);
    let unlisted: Vec<_> = names.iter().filter(|name| !index.contains(&format!("]({name})"))).collect();
    report.equal("decisions that the index does not list", unlisted, Vec::<&String>::new());
    Ok(())
}

/// The names of the table's rows.
fn releases_in_table(source: &str) -> Vec<String> {
    let names = source.lines().filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","));
    names.map(str::to_owned).collect()
}
