//! Files that are no usable library or program: as a needed library, as the program given to the loader, and in LD_PRELOAD.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{library, program};
use crate::elf_edit::{Image, PROGRAM_HEADER_SIZE, PT_DYNAMIC, PT_LOAD};
use crate::harness::{Build, Context, Outcome, Report, Run, Status, WAYS, Way, environment};
use crate::same::label;

/// Whose words are right.
enum Right {
    /// ld-linux's, which contain this.
    Same(&'static str),
    /// These; ld-linux says or does something else.
    Written(&'static str),
}
use Right::{Same, Written};

/// A damaged copy of a good file: the field of the file header, its width, the value; and the reason that is given.
const HEADERS: &[(&str, usize, usize, u64, Right)] = &[
    ("wrong magic", 0, 1, 0x7e, Same("invalid ELF header")),
    ("class 32", 4, 1, 1, Same("wrong ELF class: ELFCLASS32")),
    ("big endian", 5, 1, 2, Same("ELF file data encoding not little-endian")),
    ("identification version 0", 6, 1, 0, Same("ELF file version ident does not match current one")),
    ("foreign operating system", 7, 1, 9, Same("ELF file OS ABI invalid")),
    ("ABI version 77", 8, 1, 77, Same("ELF file ABI version invalid")),
    ("identification padding", 9, 1, 1, Same("nonzero padding in e_ident")),
    ("version 2", 20, 4, 2, Same("ELF file version does not match current one")),
    ("relocatable file", 16, 2, 1, Same("only ET_DYN and ET_EXEC can be loaded")),
    ("core file", 16, 2, 4, Same("only ET_DYN and ET_EXEC can be loaded")),
    ("program header size", 54, 2, 55, Same("ELF file's phentsize not the expected size")),
    ("machine AArch64", 18, 2, 183, Written("wrong ELF machine: AArch64 (need x86-64)")),
    ("machine i386", 18, 2, 3, Written("wrong ELF machine: i386 (need x86-64)")),
    ("machine RISC-V", 18, 2, 243, Written("wrong ELF machine: RISC-V (need x86-64)")),
    ("machine unknown", 18, 2, 0xbeef, Written("wrong ELF machine: 0xbeef (need x86-64)")),
];

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let files = make_files(context)?;
    let one = library(context, "number.c", "preload", "libone.so", &["-DFUNCTION=one", "-DNUMBER=1"], &[])?;
    let healthy = program(context, "needs.c", "preload", &["-DFIRST=one"], &[&one])?;
    for file in &files {
        as_library(context, report, file)?;
        as_program(context, report, file)?;
        as_preload(context, report, file, &healthy)?;
    }
    permission(context, report)
}

/// One bad file.
struct Bad {
    name: String,
    path: PathBuf,
    right: Right,
}

/// Makes all bad files from one good library.
fn make_files(context: &Context) -> Result<Vec<Bad>> {
    let base = context.work.join("files");
    let good = library(context, "number.c", "files", "libgood.so", &["-DFUNCTION=one", "-DNUMBER=1"], &[])?;
    let image = Image::read(&good)?;
    let mut files = Vec::new();
    let path = |name: &str| base.join(format!("{}.so", name.replace(' ', "-")));
    let mut add = |name: &str, right: Right, make: &dyn Fn(&Path) -> Result<()>| -> Result<()> {
        let path = path(name);
        make(&path)?;
        files.push(Bad { name: name.to_owned(), path, right });
        Ok(())
    };
    for (name, offset, width, value, right) in HEADERS {
        let right = match right {
            Same(text) => Same(text),
            Written(text) => Written(text),
        };
        add(name, right, &|path| {
            let mut bad = image.clone();
            bad.set(*offset, *width, *value)?;
            bad.write(path)
        })?;
    }
    let headers_end = 64 + PROGRAM_HEADER_SIZE * image.program_headers()?.len();
    for (name, length) in [("empty file", 0), ("ten bytes", 10), ("one byte less than a header", 63), ("four bytes", 4)]
    {
        add(name, Same("file too short"), &|path| cut(&image, length, path))?;
    }
    for (name, length) in [("file header only", 64), ("cut in the program headers", headers_end - 8)] {
        add(name, Same("cannot read file data"), &|path| cut(&image, length, path))?;
    }
    add("segment beyond the end", Written("file too short"), &|path| cut(&image, headers_end + 100, path))?;
    add("a text file", Same("invalid ELF header"), &|path| Ok(fs::write(path, "x".repeat(900))?))?;
    add("a short text file", Same("file too short"), &|path| Ok(fs::write(path, "not ELF\n")?))?;
    add("a directory", Written("cannot read file data: Is a directory"), &|path| Ok(fs::create_dir_all(path)?))?;
    add("no such file", Same("cannot open shared object file: No such file or directory"), &|_| Ok(()))?;
    add("a dangling link", Same("cannot open shared object file: No such file or directory"), &|path| {
        Ok(symlink("nowhere", path)?)
    })?;
    add("a link to itself", Written("cannot open shared object file: Too many levels of symbolic links"), &|path| {
        Ok(symlink(path.file_name().context("name")?, path)?)
    })?;
    add("no loadable segment", Same("object file has no loadable segments"), &|path| {
        let mut bad = image.clone();
        for header in image.program_headers()? {
            if image.number(header, 4)? == u64::from(PT_LOAD) {
                bad.set(header, 4, 0)?;
            }
        }
        bad.write(path)
    })?;
    add("no dynamic section", Same("object file has no dynamic section"), &|path| {
        let mut bad = image.clone();
        bad.set(image.program_header(PT_DYNAMIC, 0)?, 4, 0)?;
        bad.write(path)
    })?;
    add("alignment no power of two", Written("segment alignment 0x1800 is not a power of two"), &|path| {
        let mut bad = image.clone();
        bad.set(image.program_header(PT_LOAD, 0)? + 48, 8, 0x1800)?;
        bad.write(path)
    })?;
    add("offset and address not congruent", Same("ELF load command address/offset not page-aligned"), &|path| {
        let mut bad = image.clone();
        let header = image.program_header(PT_LOAD, 1)?;
        bad.set(header + 16, 8, image.number(header + 16, 8)? + 8)?;
        bad.write(path)
    })?;
    Ok(files)
}

fn cut(image: &Image, length: usize, path: &Path) -> Result<()> {
    let mut bad = image.clone();
    bad.truncate(length);
    bad.write(path)
}

/// The program needs the file by its path.
fn as_library(context: &Context, report: &mut Report, file: &Bad) -> Result<()> {
    let directory = format!("needs/{}", file.name.replace(' ', "-"));
    let stub = Build::new("errors/number.c")
        .shared()
        .flags(&["-DFUNCTION=one", "-DNUMBER=1", &format!("-Wl,-soname,{}", file.path.display())])
        .output(format!("{directory}/stub.so"))
        .build(context)?;
    let program = program(context, "needs.c", &directory, &["-DFIRST=one"], &[&stub])?;
    let reference = Run::new(&program).way(Way::Reference).output(context);
    for (way, bind) in WAYS {
        let outcome = Run::new(&program).way(way).bind(bind).output(context);
        let result = judge(outcome, &reference, &program.display().to_string(), file);
        report.check(format!("needed library: {} ({})", file.name, label(way, bind)), result);
    }
    Ok(())
}

/// The line for a file that cannot be loaded.
fn line(program: &str, file: &Bad, text: &str) -> String {
    format!("{program}: error while loading shared libraries: {}: {text}\n", file.path.display())
}

fn judge(outcome: Result<Outcome>, reference: &Result<Outcome>, program: &str, file: &Bad) -> Result<(), String> {
    let outcome = outcome.map_err(|error| format!("{error:#}"))?;
    let want = match &file.right {
        Written(text) => line(program, file, text),
        Same(text) => {
            let reference = reference.as_ref().map_err(|error| format!("ld-linux: {error:#}"))?;
            let want = line(program, file, text);
            if reference.status != Status::Exit(127) || reference.error_text() != want {
                return Err(format!(
                    "ld-linux does not do what this case is about: expected {want:?}\ngot      {}",
                    reference.describe()
                ));
            }
            want
        }
    };
    if outcome.status == Status::Exit(127) && outcome.stdout.is_empty() && outcome.error_text() == want {
        return Ok(());
    }
    Err(format!("expected Exit(127), {want:?}\ngot      {}", outcome.describe()))
}

/// The file is given to the loader as the program.
fn as_program(context: &Context, report: &mut Report, file: &Bad) -> Result<()> {
    // A file without dynamic section may be a static program: the library has no entry point to be one.
    if file.name == "no dynamic section" {
        return Ok(());
    }
    let output = Command::new(&context.reference).arg(&file.path).env_clear().envs(environment()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = Run::new(&file.path).way(Way::Direct).output(context);
    let name = file.path.display().to_string();
    let want = match file.right {
        Same(text) | Written(text) => line(&name, file, text),
    };
    let result = outcome.map_err(|error| format!("{error:#}")).and_then(|outcome| {
        if matches!(file.right, Same(_)) && (output.status.code() != Some(127) || said != want) {
            return Err(format!(
                "ld-linux does not do what this case is about: expected {want:?}\ngot      {:?} {said}",
                output.status
            ));
        }
        let right = outcome.status == Status::Exit(127) && outcome.stdout.is_empty() && outcome.error_text() == want;
        if right { Ok(()) } else { Err(format!("expected Exit(127), {want:?}\ngot      {}", outcome.describe())) }
    });
    report.check(format!("given as the program: {}", file.name), result);
    Ok(())
}

/// The file is in LD_PRELOAD: a warning with the reason, and the program runs.
fn as_preload(context: &Context, report: &mut Report, file: &Bad, program: &Path) -> Result<()> {
    // The preload message has the reason without the text of the error number.
    let reason = match file.right {
        Same(text) | Written(text) => text,
    };
    let reason =
        reason.strip_prefix("cannot open shared object file").map_or(reason, |_| "cannot open shared object file");
    let reason = reason.strip_suffix(": Is a directory").unwrap_or(reason);
    let want = format!(
        "ERROR: ld.so: object '{}' from LD_PRELOAD cannot be preloaded ({reason}): ignored.\n",
        file.path.display()
    );
    let reference = Run::new(program).way(Way::Reference).env("LD_PRELOAD", &file.path).output(context)?;
    for way in [Way::Direct, Way::Interpreter] {
        let outcome = Run::new(program).way(way).env("LD_PRELOAD", &file.path).output(context);
        let result = outcome.map_err(|error| format!("{error:#}")).and_then(|outcome| {
            if matches!(file.right, Same(_)) && reference.error_text() != want {
                return Err(format!(
                    "ld-linux does not do what this case is about: expected {want:?}\ngot      {}",
                    reference.describe()
                ));
            }
            let right = outcome.status == Status::Exit(0) && outcome.text() == "1\n" && outcome.error_text() == want;
            if right { Ok(()) } else { Err(format!("expected 1 and {want:?}\ngot      {}", outcome.describe())) }
        });
        report.check(format!("in LD_PRELOAD: {} ({})", file.name, label(way, crate::harness::Bind::Lazy)), result);
    }
    Ok(())
}

/// A library that this user may not read; root may read everything.
fn permission(context: &Context, report: &mut Report) -> Result<()> {
    // By a path: along a search path the last directory's reason would be given.
    let path = context.work.join("permission/d/libone.so");
    let soname = format!("-Wl,-soname,{}", path.display());
    let one = Build::new("errors/number.c")
        .shared()
        .flags(&["-DFUNCTION=one", "-DNUMBER=1", &soname])
        .output("permission/d/libone.so")
        .build(context)?;
    let program = program(context, "needs.c", "permission", &["-DFIRST=one"], &[&one])?;
    fs::set_permissions(&one, fs::Permissions::from_mode(0o600))?;
    let reason = "cannot open shared object file: Permission denied";
    let want = format!("{}: error while loading shared libraries: {}: {reason}\n", program.display(), path.display());
    for (way, bind) in WAYS {
        let run = |way| {
            Run::new(&program)
                .way(way)
                .bind(bind)
                .user(65534, 65534)
                .output(context)
                .map_err(|error| format!("{error:#}"))
        };
        let result = run(Way::Reference).and_then(|reference| {
            if reference.error_text() != want {
                return Err(format!(
                    "ld-linux does not do what this case is about: expected {want:?}\ngot      {}",
                    reference.describe()
                ));
            }
            run(way)?.same_as(&reference)
        });
        report.check(format!("needed library: permission denied ({})", label(way, bind)), result);
    }
    // As the program.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    let want = format!("{0}: error while loading shared libraries: {0}: {reason}\n", program.display());
    let outcome = Run::new(&program).way(Way::Direct).user(65534, 65534).output(context)?;
    report.equal(
        "given as the program: permission denied",
        (outcome.status, outcome.error_text()),
        (Status::Exit(127), want),
    );
    Ok(())
}
