//! What every suite stands on: where things lie (`context`), compiling fixtures (`compile`), running programs on either loader
//! (`run`, `child`, `outcome`, `interpreter`, `maps`) and counting its instructions (`instructions`), checks (`report`), and the
//! run of the suites asked for (`runner`). Knows no suite.

mod child;
mod compile;
mod context;
mod instructions;
mod interpreter;
mod maps;
mod outcome;
mod report;
mod run;
mod runner;

pub use compile::{Build, Compiler, Linker};
pub use context::{Context, Place, Workshop};
pub use instructions::instructions;
pub use interpreter::{copy_with_interpreter, interpreter_of};
pub use maps::{FileIdentity, mapped_files};
pub use outcome::{Outcome, Status};
pub use report::{Counts, Report};
pub use run::{Bind, Run, WAYS, Way, always, backend, environment, lookup};
pub(crate) use runner::run_suite;
pub use runner::{run_suites, run_suites_in};
