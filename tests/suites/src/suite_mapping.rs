//! Suite `mapping`: every legal shape of segments is mapped as the file says, on memory that has the file's permissions and no others.
//!
//! Owns: the list of groups, one file each. Files that no linker makes come from [`crate::elf_writer`].

mod alignment;
mod huge;
mod linked;
mod page_size;
mod places;
pub(crate) mod probe;
mod relro;
mod segments;
mod stack;
mod system_calls;
mod text_relocations;

use crate::harness::{Context, Report};

/// Run every group.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let probe = probe::Probe::build(context)?;
    segments::run(report, &probe)?;
    alignment::run(report, &probe)?;
    relro::run(context, report, &probe)?;
    linked::run(context, report)?;
    huge::run(context, report)?;
    stack::run(context, report)?;
    text_relocations::run(context, report)?;
    system_calls::run(context, report, &probe)?;
    page_size::run(context, report)?;
    places::run(context, report)
}
