//! The command line of a direct start: `ld-elf.so.1 [OPTION]... PROGRAM [ARGUMENT]...`, from one table.

use crate::stack::InitialStack;
use core::ffi::CStr;

/// What is to be done with the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Start it.
    #[default]
    Run,
    /// Tell what would be loaded.
    List,
    /// Tell by the exit status whether it can be loaded.
    Verify,
}

/// What the command line asks for.
#[derive(Default, Debug)]
pub struct Options {
    /// Mode.
    pub mode: Mode,
    /// --library-path.
    pub library_path: Option<&'static [u8]>,
    /// --preload.
    pub preload: Option<&'static [u8]>,
    /// --argv0.
    pub argument_zero: Option<&'static CStr>,
    /// --inhibit-cache.
    pub inhibit_cache: bool,
}

/// What to do with an option.
enum Action {
    Flag(fn(&mut Options)),
    Value(&'static str, fn(&mut Options, &'static CStr)),
    Stop(Stop),
}

/// Why there is no program to start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// --help.
    Help,
    /// --version.
    Version,
    /// --list-diagnostics.
    Diagnostics,
    /// No program was named.
    NoProgram,
    /// An option that we do not have.
    Unknown(&'static CStr),
    /// An option without the value it needs.
    NoValue(&'static CStr),
}

/// One option.
pub struct Declaration {
    /// Its names; the first is the one to show.
    pub names: &'static [&'static str],
    /// For people.
    pub meaning: &'static str,
    action: Action,
}

impl Declaration {
    /// The name of the option's value, if it takes one.
    pub fn value_name(&self) -> Option<&'static str> {
        match self.action {
            Action::Value(name, _) => Some(name),
            _ => None,
        }
    }
}

/// All options.
pub const OPTIONS: &[Declaration] = &[
    Declaration {
        names: &["--list"],
        meaning: "list what would be loaded; run nothing",
        action: Action::Flag(|options| options.mode = Mode::List),
    },
    Declaration {
        names: &["--verify"],
        meaning: "exit 0: can be loaded; 2: names no interpreter; 1: no",
        action: Action::Flag(|options| options.mode = Mode::Verify),
    },
    Declaration {
        names: &["--library-path"],
        meaning: "directories of libraries, instead of LD_LIBRARY_PATH",
        action: Action::Value("PATH", |options, value| options.library_path = Some(value.to_bytes())),
    },
    Declaration {
        names: &["--preload"],
        meaning: "libraries to load first, after those of LD_PRELOAD",
        action: Action::Value("LIST", |options, value| options.preload = Some(value.to_bytes())),
    },
    Declaration {
        names: &["--argv0"],
        meaning: "what the program sees as its argv[0]",
        action: Action::Value("STRING", |options, value| options.argument_zero = Some(value)),
    },
    Declaration {
        names: &["--inhibit-cache"],
        meaning: "do not use /etc/ld.so.cache",
        action: Action::Flag(|options| options.inhibit_cache = true),
    },
    Declaration {
        names: &["--help", "-h"],
        meaning: "this text, with the search path in effect",
        action: Action::Stop(Stop::Help),
    },
    Declaration {
        names: &["--list-diagnostics"],
        meaning: "what a report of a mistake should say, one a line",
        action: Action::Stop(Stop::Diagnostics),
    },
    Declaration { names: &["--version", "-v"], meaning: "name and version", action: Action::Stop(Stop::Version) },
];

/// Reads the options; gives them and how many arguments stand before the program, argv[0] included.
pub fn parse(stack: InitialStack) -> (Options, Result<usize, Stop>) {
    let mut options = Options::default();
    let mut index = 1;
    loop {
        let Some(argument) = stack.argument(index) else {
            return (options, Err(Stop::NoProgram));
        };
        let bytes = argument.to_bytes();
        if bytes == b"--" {
            let program = stack.argument(index + 1).is_some();
            return (options, if program { Ok(index + 1) } else { Err(Stop::NoProgram) });
        }
        if bytes.first() != Some(&b'-') {
            return (options, Ok(index));
        }
        let (name, attached) = match bytes.iter().position(|&byte| byte == b'=') {
            Some(equals) => (bytes.get(..equals).unwrap_or(bytes), argument.to_bytes_with_nul().get(equals + 1..)),
            None => (bytes, None),
        };
        let known = OPTIONS.iter().find(|option| option.names.iter().any(|known| known.as_bytes() == name));
        let Some(option) = known else {
            return (options, Err(Stop::Unknown(argument)));
        };
        index += 1;
        match &option.action {
            Action::Flag(_) | Action::Stop(_) if attached.is_some() => {
                return (options, Err(Stop::Unknown(argument)));
            }
            Action::Flag(set) => set(&mut options),
            Action::Stop(stop) => return (options, Err(*stop)),
            Action::Value(_, set) => {
                let attached = attached.and_then(|bytes| CStr::from_bytes_with_nul(bytes).ok());
                let value = attached.or_else(|| {
                    index += 1;
                    stack.argument(index - 1)
                });
                let Some(value) = value else {
                    return (options, Err(Stop::NoValue(argument)));
                };
                set(&mut options, value);
            }
        }
    }
}
