//! The kernel's source: Debian's package linux-source-N, installed, or fetched into a private root for another release of
//! Debian. Owns that root; changes nothing of the machine's packages and knows no mirror by name.

use super::Debian;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel's source, packed.
pub struct Source {
    /// Whose.
    pub debian: Debian,
    /// The package's version.
    pub version: String,
    /// The tar archive.
    pub archive: PathBuf,
}

/// The source of that release's kernel; fetched if it is not installed.
pub fn find(debian: Debian) -> anyhow::Result<Source> {
    let package = format!("linux-source-{}", debian.linux());
    let archive = PathBuf::from(format!("/usr/src/{package}.tar.xz"));
    if archive.exists() {
        let version = output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", &package]))?;
        return Ok(Source { debian, version, archive });
    }
    fetch(debian, &package)
}

fn fetch(debian: Debian, package: &str) -> anyhow::Result<Source> {
    let root = super::directory()?.join(format!("apt-{}", debian.codename()));
    let stamp = root.join(format!("{package}.version"));
    let archive = root.join(format!("{package}.tar.xz"));
    if let (Ok(version), true) = (fs::read_to_string(&stamp), archive.exists()) {
        return Ok(Source { debian, version, archive });
    }
    eprintln!("kernel: fetching {package} of Debian {}", debian.codename());
    for part in ["etc", "state/lists/partial", "cache/archives/partial"] {
        let path = root.join(part);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    let list = root.join("etc/sources.list");
    fs::write(&list, sources_list(debian.codename())?).with_context(|| list.display().to_string())?;
    run(apt(&root)?.arg("update"), "apt-get update for another release")?;
    run(
        apt(&root)?.current_dir(&root).args(["download", package]),
        &format!("no {package} to be had: apt-get download"),
    )?;
    unpack(&root, package, &archive)?;
    let version = fs::read_to_string(&stamp).with_context(|| stamp.display().to_string())?;
    Ok(Source { debian, version, archive })
}

/// apt-get with everything of its own but the keys and the way to the network.
fn apt(root: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new("apt-get");
    command.arg("-qq");
    for option in [
        format!("Dir::Etc::sourcelist={}", root.join("etc/sources.list").display()),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State={}", root.join("state").display()),
        format!("Dir::Cache={}", root.join("cache").display()),
        "APT::Sandbox::User=root".to_owned(),
        "Acquire::Languages=none".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    Ok(command)
}

/// Takes the archive out of the package that was fetched.
fn unpack(root: &Path, package: &str, archive: &Path) -> anyhow::Result<()> {
    let prefix = format!("{package}_");
    let mut debs = Vec::new();
    for entry in fs::read_dir(root).with_context(|| root.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(&prefix) && name.ends_with(".deb") {
            debs.push(path);
        }
    }
    let [deb] = debs.as_slice() else {
        bail!("{}: {} packages named {prefix}*.deb, one expected", root.display(), debs.len());
    };
    let tree = root.join("tree");
    run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&tree), "dpkg-deb")?;
    let version = output(Command::new("dpkg-deb").args(["-f"]).arg(deb).arg("Version"))?;
    let inside = tree.join(format!("usr/src/{package}.tar.xz"));
    fs::rename(&inside, archive).with_context(|| inside.display().to_string())?;
    fs::write(root.join(format!("{package}.version")), version.trim())?;
    fs::remove_dir_all(&tree)?;
    fs::remove_file(deb)?;
    Ok(())
}

/// The machine's own Debian sources with another release's name, one a line.
fn sources_list(codename: &str) -> anyhow::Result<String> {
    let own = os_release("VERSION_CODENAME")?;
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut list = String::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => list.push_str(&one_line_entries(&text, &own, codename)),
            Some("sources") => list.push_str(&stanza_entries(&text, &own, codename)),
            _ => {}
        }
    }
    if list.is_empty() {
        bail!("/etc/apt has no source of {own} that one of {codename} could be derived from");
    }
    Ok(list)
}

/// Of the traditional format: lines `deb [options] address suite component...` whose suite is the machine's own release.
fn one_line_entries(text: &str, own: &str, codename: &str) -> String {
    let mut list = String::new();
    for line in text.lines().filter(|line| line.split_whitespace().next() == Some("deb")) {
        let words: Vec<String> = line.split_whitespace().map(|word| other_suite(word, own, codename)).collect();
        if line.split_whitespace().any(|word| is_suite(word, own)) {
            list.push_str(&words.join(" "));
            list.push('\n');
        }
    }
    list
}

/// Of the stanza format, the same as lines of the other.
fn stanza_entries(text: &str, own: &str, codename: &str) -> String {
    let mut list = String::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            let value = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.unwrap_or_default().trim().to_owned()
        };
        if !field("Types").split_whitespace().any(|kind| kind == "deb") || field("Enabled") == "no" {
            continue;
        }
        let keys = field("Signed-By");
        let options = if keys.starts_with('/') { format!("[signed-by={keys}] ") } else { String::new() };
        for address in field("URIs").split_whitespace() {
            for suite in field("Suites").split_whitespace().filter(|suite| is_suite(suite, own)) {
                let suite = other_suite(suite, own, codename);
                list.push_str(&format!("deb {options}{address} {suite} main\n"));
            }
        }
    }
    list
}

/// `bookworm`, `bookworm-updates`, `bookworm-security`; not the backports, whose kernels are other ones.
fn is_suite(word: &str, own: &str) -> bool {
    ["", "-updates", "-security"].iter().any(|end| word.strip_prefix(own) == Some(end))
}

fn other_suite(word: &str, own: &str, codename: &str) -> String {
    if is_suite(word, own) { word.replacen(own, codename, 1) } else { word.to_owned() }
}

fn os_release(key: &str) -> anyhow::Result<String> {
    let text = super::read(Path::new("/etc/os-release"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    Ok(value.with_context(|| format!("/etc/os-release has no {key}"))?.trim_matches('"').to_owned())
}

/// What a command prints.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| name.clone())?;
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command quietly; what it printed is shown if it fails.
pub fn run(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let output = command.output().with_context(|| what.to_owned())?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n");
        bail!("{what}: {}\n{tail}", output.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_another_release() {
        let lines = "# x\ndeb [arch=amd64] mirror: bookworm main contrib\ndeb-src mirror: bookworm main\n\
                     deb mirror: bookworm-backports main\ndeb other: stable main\n";
        assert_eq!(one_line_entries(lines, "bookworm", "trixie"), "deb [arch=amd64] mirror: trixie main contrib\n");
        let stanzas = "Types: deb deb-src\nURIs: a: b:\nSuites: bookworm bookworm-security sid\nComponents: main\n\
                       Signed-By: /k.gpg\n\nTypes: deb-src\nURIs: c:\nSuites: bookworm\n";
        assert_eq!(
            stanza_entries(stanzas, "bookworm", "trixie"),
            "deb [signed-by=/k.gpg] a: trixie main\ndeb [signed-by=/k.gpg] a: trixie-security main\n\
             deb [signed-by=/k.gpg] b: trixie main\ndeb [signed-by=/k.gpg] b: trixie-security main\n"
        );
    }
}
