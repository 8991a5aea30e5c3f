//! `bench instructions`: instructions in user mode from the first to the first initialiser of the large programs and of the
//! synthetic set, counted by valgrind's callgrind under either loader, which is started directly: valgrind's own launcher would
//! take the preload of an environment for its own. What may not grow is suite `instructions`'.

use super::Settings;
use super::programs::{Origin, Program};
use super::stage::{self, Staged};
use rtld_suites::harness::{Context, instructions};
use serde_json::{Value, json};

/// Counts every row that can be measured here; the report. Nothing is judged.
pub fn measure(context: &Context, settings: &Settings<'_>) -> anyhow::Result<(bool, Value)> {
    println!("instructions to the first initialiser (callgrind), millions");
    println!("{:13} {:>10} {:>10} {:>7}", "program", "ours", "ld-linux", "ratio");
    let mut list = Vec::new();
    let wanted = |program: &Program| program.large || matches!(program.origin, Origin::Synthetic(_) | Origin::Empty);
    let rest = stage::each(context, wanted, settings.only, |staged| {
        let (ours, theirs) = (count(context, staged, true)?, count(context, staged, false)?);
        println!(
            "{:13} {:10.2} {:10.2} {:7.3}",
            staged.program.name,
            ours as f64 / 1e6,
            theirs as f64 / 1e6,
            ours as f64 / theirs as f64
        );
        list.push(json!({ "program": staged.program.name, "ours": ours, "ld_linux": theirs }));
        Ok(())
    })?;
    Ok((rest.tell(), Value::Array(list)))
}

fn count(context: &Context, staged: &Staged, ours: bool) -> anyhow::Result<u64> {
    let loader = if ours { &context.loader } else { &context.reference };
    instructions(context, loader, &staged.ending, &staged.theirs, staged.program.arguments)
}
