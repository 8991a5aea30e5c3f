//! LD_DEBUG: what it can ask for, from one table, and what is said about words that are not in it. The texts are glibc's.

use crate::report::{Writer, error};
use core::fmt::Write;
use rtld_link::text::Bytes;
use rtld_sys::{file, process};

/// What is to be told.
#[derive(Clone, Copy, Default, Debug)]
pub struct Debug {
    /// One line about sections at exit.
    pub sigblock: bool,
    /// One line about the relocation of the start.
    pub statistics: bool,
}

/// One word.
struct Category {
    name: &'static str,
    meaning: &'static str,
    ask: fn(&mut Debug),
}

const CATEGORIES: &[Category] = &[
    Category { name: "sigblock", meaning: "tell at exit how signals are held, and how often", ask: ask_for_sigblock },
    Category { name: "statistics", meaning: "tell how names were looked up at start", ask: ask_for_statistics },
    Category { name: "all", meaning: "all previous options combined", ask: ask_for_all },
    Category { name: "help", meaning: "display this help message and exit", ask: |_| help() },
];

fn ask_for_sigblock(debug: &mut Debug) {
    debug.sigblock = true;
}

fn ask_for_statistics(debug: &mut Debug) {
    debug.statistics = true;
}

fn ask_for_all(debug: &mut Debug) {
    *debug = Debug { sigblock: true, statistics: true };
}

impl Debug {
    /// What a value asks for. Words are separated as in glibc.
    pub fn parse(value: &[u8]) -> Debug {
        let mut debug = Debug::default();
        for word in value.split(|byte| b" ,:".contains(byte)).filter(|word| !word.is_empty()) {
            match CATEGORIES.iter().find(|category| category.name.as_bytes() == word) {
                Some(category) => (category.ask)(&mut debug),
                None => {
                    let word = Bytes(word);
                    error(format_args!("warning: debug option `{word}' unknown; try LD_DEBUG=help\n"));
                }
            }
        }
        debug
    }
}

fn help() {
    let mut out = Writer::new(file::STDOUT);
    out.bytes(b"Valid options for the LD_DEBUG environment variable are:\n\n");
    for Category { name, meaning, .. } in CATEGORIES {
        let _ = writeln!(out, "  {name:10}  {meaning}");
    }
    drop(out);
    process::exit(0)
}
