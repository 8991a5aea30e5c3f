//! What every suite stands on: where things lie (`context`), compiling fixtures (`compile`), running programs on either loader
//! (`run`, `interpreter`, `maps`), counting (`report`), and the run of the suites asked for (`runner`). Knows no suite.

mod compile;
mod context;
mod interpreter;
mod maps;
mod report;
mod run;
mod runner;

pub use compile::{Build, Compiler, Linker};
pub use context::{Context, Workshop};
pub use interpreter::{copy_with_interpreter, interpreter_of};
pub use maps::{FileIdentity, mapped_files};
pub use report::{Counts, Report};
pub use run::{Bind, Outcome, Run, Status, WAYS, Way, environment};
pub use runner::run_suites;
