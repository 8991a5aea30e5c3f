//! Suite `relocations`: every relocation type of the x86-64 psABI that occurs in loaded objects leaves the value the psABI says, RELA and RELR,
//! and what cannot be applied is refused in words.
//!
//! Owns: the list of groups, one file each. Single records are hand-made; what they mean to programs is shown with linked ones.

mod linked;
mod refused;
mod tables;
mod thread_local;
mod values;

use crate::harness::{Context, Report};
use crate::suite_mapping::probe::Probe;

/// Run every group.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let probe = Probe::build(context)?;
    values::run(report, &probe)?;
    tables::run(report, &probe)?;
    thread_local::run(report, &probe)?;
    refused::run(report, &probe)?;
    linked::run(context, report)
}
