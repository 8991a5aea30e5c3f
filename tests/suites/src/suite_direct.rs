//! Suite `direct`: `LOADER PROGRAM ARGUMENTS`. What the program sees is what it would see when started by the kernel, and
//! the loader's own options do what ld-linux's do. Owns the cases. `/proc/self/exe` is the one known difference: it is the
//! loader's file, which only the kernel can change; the documentation says so.

mod listing;
mod options;
mod seen;

use anyhow::Result;

use crate::harness::{Context, Report};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    seen::run(context, report)?;
    options::run(context, report)?;
    listing::run(context, report)
}
