//! A direct start: options, the program named on the command line, and the stack as the program is to see it.

use crate::constants::{FAILURE, NO_INTERPRETER};
use crate::diagnostics;
use crate::environment::Variables;
use crate::failure::cannot_start;
use crate::help;
use crate::options::{self, Mode, Options, Stop};
use crate::program;
use crate::stack::InitialStack;
use core::ffi::CStr;
use rtld_link::map::Pages;
use rtld_link::object::Object;
use rtld_link::search::{Search, Settings, Trust};
use rtld_sys::process;

/// A program that was named on the command line, opened and mapped.
pub struct Command {
    /// The program.
    pub program: Object,
    /// The path it was named by.
    pub path: &'static CStr,
    /// The options.
    pub options: Options,
    /// How many arguments came before the program.
    skipped: usize,
}

impl Command {
    /// Reads the command line and maps the program; ends the process where there is nothing to start.
    pub fn read(stack: InitialStack, variables: &Variables, trust: Trust, base: usize, pages: Pages) -> Command {
        let ourselves = stack.argument(0).map_or(&b"ld-elf.so.1"[..], CStr::to_bytes);
        let (options, parsed) = options::parse(stack);
        let skipped = match parsed {
            Ok(skipped) => skipped,
            Err(stop) => {
                let library_path = options.library_path.or(variables.library_path);
                let use_cache = !options.inhibit_cache;
                let settings = Settings { library_path, platform: None, use_cache, trust, own_header: &[] };
                let mut search = Search::new(settings);
                if stop == Stop::Diagnostics {
                    let wish = variables.wish(|_| 0);
                    diagnostics::list(ourselves, stack.auxiliary(), &mut search, wish, variables.lookup);
                }
                help::stop(stop, ourselves, &mut search)
            }
        };
        let path = stack.argument(skipped).unwrap_or_default();
        let program = match program::open(path, base, pages) {
            Ok(program) => program,
            Err(_) if options.mode == Mode::Verify => process::exit(FAILURE),
            Err(reason) => cannot_start(path.to_bytes(), &reason.of(path.to_bytes())),
        };
        Command { program, path, options, skipped }
    }

    /// `--verify`: tells by the exit status and ends the process.
    pub fn verify(&self) -> ! {
        let dynamic = self.program.dynamic.is_some();
        let interpreter = self.program.mapping.layout.interpreter.is_some();
        process::exit(match (dynamic, interpreter) {
            (false, _) => FAILURE,
            (true, false) => NO_INTERPRETER,
            (true, true) => 0,
        })
    }

    /// Changes the stack to what the kernel would have made for the program.
    pub fn rewrite(&self, stack: InitialStack, base: usize) {
        stack.drop_arguments(self.skipped);
        if let Some(name) = self.options.argument_zero {
            stack.set_argument(0, name);
        }
        program::disguise(stack, &self.program, self.path, base, program::is_static(&self.program));
    }
}
