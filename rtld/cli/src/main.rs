//! `rtld`, people's tool around ld-elf.so.1. Owns its command line and finding the loader; may not load anything itself: it
//! becomes the loader by exec, so that what runs is what would run without it.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The loader's file name.
const LOADER: &str = "ld-elf.so.1";

/// Where an installed loader lies.
const INSTALLED: &str = "/usr/lib/rtld";

/// The exit code of a loader that cannot start a program, as shells have it.
const CANNOT_START: u8 = 127;

/// Runs programs on the dynamic linker ld-elf.so.1.
#[derive(Parser)]
#[command(name = "rtld", bin_name = "rtld", version, about, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run a program on the loader, whatever its own interpreter
    Run {
        /// The loader [default: beside rtld, in target/release, in /usr/lib/rtld]
        #[arg(long, value_name = "PATH")]
        loader: Option<PathBuf>,
        /// The program, sought on PATH unless it has a slash, and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let Task::Run { loader, program } = Arguments::parse().command;
    let error = match loader.or_else(find_loader) {
        Some(loader) => become_program(&loader, &program),
        None => format!("no {LOADER} beside rtld, in target/release, or in {INSTALLED}"),
    };
    eprintln!("rtld: {error}");
    ExitCode::from(CANNOT_START)
}

/// Execs the loader with the program; returns only why it could not.
fn become_program(loader: &Path, program: &[OsString]) -> String {
    let Some((name, arguments)) = program.split_first() else {
        return "no program".to_owned();
    };
    // `--` ends the loader's options: a program's name may begin with a dash.
    let error = Command::new(loader).arg("--").arg(on_path(name)).args(arguments).exec();
    format!("{}: {error}", loader.display())
}

/// The loader nearest to this tool.
fn find_loader() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|tool| tool.with_file_name(LOADER));
    let candidates = [beside, Some(Path::new("target/release").join(LOADER)), Some(Path::new(INSTALLED).join(LOADER))];
    candidates.into_iter().flatten().find(|path| path.is_file())
}

/// The file that a shell would run for `name`: the loader itself does not search PATH.
fn on_path(name: &OsString) -> PathBuf {
    let given = PathBuf::from(name);
    if name.as_encoded_bytes().contains(&b'/') {
        return given;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(&given)).find(|file| file.is_file()).unwrap_or(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_is_not_sought() {
        assert_eq!(on_path(&OsString::from("./sh")), PathBuf::from("./sh"));
        assert_ne!(on_path(&OsString::from("sh")), PathBuf::from("sh"));
    }

    #[test]
    fn options_after_the_program_are_its_own() {
        let parsed = Arguments::try_parse_from(["rtld", "run", "ls", "--loader", "-l"]).unwrap();
        let Task::Run { loader, program } = parsed.command;
        assert_eq!(loader, None);
        assert_eq!(program, ["ls", "--loader", "-l"]);
    }
}
