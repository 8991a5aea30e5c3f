//! What the runs of one row came to in each variant, and the table and the report made of it. Owns the arithmetic; decides nothing
//! about what is good.

use super::cases::{Phase, Variant};
use crate::bench::startup::{Times, median};
use serde_json::{Value, json};
use std::path::Path;

/// One phase of one program in every variant.
pub struct Row {
    /// The program's name.
    pub case: &'static str,
    /// The phase's.
    pub phase: String,
    series: Vec<(Variant, Vec<Phase>)>,
}

/// What the runs of one variant came to; nanoseconds an operation.
pub struct Summary {
    /// Processor time: least and median of the runs.
    pub processor: Times,
    /// User time of all runs by all operations.
    pub user: f64,
    /// System time, likewise.
    pub system: f64,
    /// System time of the run in the middle: none, where the kernel's samples hit the system by chance only.
    pub median_system: f64,
}

impl Row {
    /// "case phase".
    pub fn name(&self) -> String {
        format!("{} {}", self.case, self.phase)
    }

    fn runs(&self, variant: Variant) -> &[Phase] {
        self.series.iter().find(|(own, _)| *own == variant).map_or(&[], |(_, runs)| runs)
    }

    /// What the runs of a variant came to; nothing if it has none (ld-linux has no functions for sections).
    pub fn summary(&self, variant: Variant) -> Option<Summary> {
        let runs = self.runs(variant);
        if runs.is_empty() {
            return None;
        }
        let sum = |value: fn(&Phase) -> f64| runs.iter().map(value).sum::<f64>();
        let operations = sum(|run| run.count);
        Some(Summary {
            processor: Times::of(runs.iter().map(|run| run.processor / run.count).collect()),
            user: sum(|run| run.user) / operations,
            system: sum(|run| run.system) / operations,
            median_system: median(runs.iter().map(|run| run.system / run.count).collect()),
        })
    }

    /// The median over the rounds of one variant's processor time divided by another's in the same round.
    pub fn ratio(&self, one: Variant, other: Variant) -> Option<f64> {
        let pairs = self.runs(one).iter().zip(self.runs(other));
        let ratios: Vec<f64> = pairs.map(|(one, other)| one.processor / other.processor).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }
}

/// Adds one run's phase to its row.
pub fn add(rows: &mut Vec<Row>, case: &'static str, variant: Variant, phase: Phase) {
    let is_row = |row: &&mut Row| row.case == case && row.phase == phase.name;
    let Some(row) = rows.iter_mut().find(is_row) else {
        rows.push(Row { case, phase: phase.name.clone(), series: vec![(variant, vec![phase])] });
        return;
    };
    match row.series.iter_mut().find(|(own, _)| *own == variant) {
        Some((_, runs)) => runs.push(phase),
        None => row.series.push((variant, vec![phase])),
    }
}

/// Prints the table.
pub fn print(rows: &[Row], rounds: usize) {
    println!(
        "processor time of one operation, ns, of {rounds} alternating rounds; user and system: of all rounds together;"
    );
    println!("ratio: median of the variant's time / that of off in the same round");
    println!(
        "{:20} {:12} {:>10} {:>10} {:>10} {:>10} {:>8}",
        "operation", "variant", "minimum", "median", "user", "system", "ratio"
    );
    for row in rows {
        for variant in Variant::ALL {
            let Some(summary) = row.summary(variant) else { continue };
            println!(
                "{:20} {:12} {:10.2} {:10.2} {:10.2} {:10.2} {:8.3}",
                row.name(),
                variant.name(),
                summary.processor.minimum,
                summary.processor.median,
                summary.user,
                summary.system,
                row.ratio(variant, Variant::Off).unwrap_or(f64::NAN),
            );
        }
    }
}

/// The report for a file: the table, and every run's times.
pub fn json(rows: &[Row], rounds: usize, loader: &Path) -> Value {
    let list: Vec<Value> = rows
        .iter()
        .flat_map(|row| Variant::ALL.map(|variant| (row, variant)))
        .filter_map(|(row, variant)| {
            let summary = row.summary(variant)?;
            let runs: Vec<f64> = row.runs(variant).iter().map(|run| run.processor / run.count).collect();
            Some(json!({
                "operation": row.name(),
                "variant": variant.name(),
                "processor_ns": { "minimum": summary.processor.minimum, "median": summary.processor.median },
                "user_ns": summary.user,
                "system_ns": summary.system,
                "median_system_ns": summary.median_system,
                "ratio_to_off": row.ratio(variant, Variant::Off),
                "rounds_ns": runs,
            }))
        })
        .collect();
    json!({ "bench": "sigblock", "rounds": rounds, "loader": loader, "operations": list })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A run of `count` operations that took `processor` nanoseconds each, a part of them in the system.
    pub fn phase(name: &str, processor: f64, system: f64) -> Phase {
        let count = 10.0;
        let user = (processor - system) * count;
        Phase { name: name.to_owned(), count, processor: processor * count, user, system: system * count }
    }

    #[test]
    fn runs_come_together_in_their_row() {
        let mut rows = Vec::new();
        for (variant, time) in [(Variant::User, 8.0), (Variant::Off, 4.0), (Variant::User, 9.0), (Variant::Off, 3.0)] {
            add(&mut rows, "throw", variant, phase("depth-1", time, 1.0));
        }
        add(&mut rows, "throw", Variant::User, phase("depth-10", 1.0, 0.0));
        assert_eq!(rows.len(), 2);
        let row = rows.first().unwrap();
        let summary = row.summary(Variant::User).unwrap();
        assert_eq!((summary.processor.minimum, summary.processor.median), (8.0, 9.0));
        assert_eq!((summary.user, summary.system, summary.median_system), (7.5, 1.0, 1.0));
        // Of 2 and 3, the upper.
        assert_eq!(row.ratio(Variant::User, Variant::Off), Some(3.0));
        assert!(row.summary(Variant::Reference).is_none());
    }
}
