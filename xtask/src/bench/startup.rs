//! `bench startup`: from before vfork to after wait of a process that ends in the first initialiser, under either loader in
//! turn. Owns the arithmetic of times and the table; the rows and what they must show are `programs`'.

use super::programs::Program;
use super::stage::{self, Staged};
use super::{Settings, Verdict};
use indicatif::ProgressBar;
use rtld_suites::harness::Context;
use serde_json::{Value, json};

/// Wall time of one process, microseconds.
pub struct Times {
    /// The shortest.
    pub minimum: f64,
    /// The median.
    pub median: f64,
}

impl Times {
    /// The least and the median of the values.
    pub fn of(values: Vec<f64>) -> Self {
        Self { minimum: values.iter().copied().fold(f64::INFINITY, f64::min), median: median(values) }
    }
}

/// One program under both loaders.
pub struct Comparison {
    /// The command, as measured.
    pub command: String,
    /// Under our loader.
    pub ours: Times,
    /// Under ld-linux.
    pub theirs: Times,
    /// Median over the rounds of ours divided by theirs.
    pub ratio: f64,
    /// The least processor time of ours divided by theirs.
    pub processor: f64,
}

impl Comparison {
    /// The shortest of ours divided by the shortest of theirs.
    pub fn ratio_of_minima(&self) -> f64 {
        self.ours.minimum / self.theirs.minimum
    }

    /// What a row came to: both ratios count.
    fn verdict(&self, program: &Program) -> Verdict {
        let worse = self.ratio.max(self.ratio_of_minima());
        Verdict::of(worse, program.must, program.aim)
    }
}

/// Measures every row that can be measured here; whether all of them hold, and the report.
pub fn measure(context: &Context, settings: &Settings<'_>) -> anyhow::Result<(bool, Value)> {
    println!("wall time from vfork to wait, exec to the first initialiser, us; {} alternating rounds", settings.rounds);
    println!("ratio: ours / ld-linux, of the minima and the median of the rounds'; cpu: of the least processor times");
    println!(
        "{:13} {:>10} {:>10} {:>10} {:>10} {:>7} {:>7} {:>6} {:>6} {:>6}",
        "program", "ours min", "median", "theirs min", "median", "minima", "median", "cpu", "must", "aim"
    );
    let mut holds = true;
    let mut list = Vec::new();
    let rest = stage::each(
        context,
        |_| true,
        settings.only,
        |staged| {
            let (comparison, rounds) = compare(staged, settings.rounds)?;
            let program = staged.program;
            let (ours, theirs) = (&comparison.ours, &comparison.theirs);
            let verdict = comparison.verdict(program);
            println!(
                "{:13} {:10.1} {:10.1} {:10.1} {:10.1} {:7.3} {:7.3} {:6.3} {:6.2} {:6.2}  {verdict}",
                program.name,
                ours.minimum,
                ours.median,
                theirs.minimum,
                theirs.median,
                comparison.ratio_of_minima(),
                comparison.ratio,
                comparison.processor,
                program.must,
                program.aim,
            );
            holds &= verdict != Verdict::Misses;
            list.push(json!({
                "program": program.name,
                "command": comparison.command,
                "ours_us": { "minimum": ours.minimum, "median": ours.median },
                "ld_linux_us": { "minimum": theirs.minimum, "median": theirs.median },
                "ratio_of_minima": comparison.ratio_of_minima(),
                "median_ratio": comparison.ratio,
            "processor_ratio": comparison.processor,
                "must": program.must,
                "aim": program.aim,
                "rounds_us": rounds,
            }));
            Ok(())
        },
    )?;
    let all_ran = rest.tell();
    Ok((holds && all_ran, Value::Array(list)))
}

/// Both loaders in turn; also every round's pair of times.
fn compare(staged: &Staged, rounds: usize) -> anyhow::Result<(Comparison, Vec<(f64, f64)>)> {
    let rounds = rounds * staged.program.repeats;
    // Drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(u64::try_from(rounds)?);
    let mut pairs = Vec::new();
    for round in 0..=rounds {
        // Who goes first alternates too.
        let pair = if round % 2 == 0 {
            let ours = staged.time(true)?;
            (ours, staged.time(false)?)
        } else {
            let theirs = staged.time(false)?;
            (staged.time(true)?, theirs)
        };
        // The first round warms the page cache.
        if round > 0 {
            pairs.push(pair);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let processor =
        least(&mut pairs.iter().map(|pair| pair.0.processor)) / least(&mut pairs.iter().map(|pair| pair.1.processor));
    let pairs: Vec<(f64, f64)> = pairs.iter().map(|pair| (pair.0.wall, pair.1.wall)).collect();
    let comparison = Comparison {
        command: staged.line(),
        processor,
        ours: Times::of(pairs.iter().map(|pair| pair.0).collect()),
        theirs: Times::of(pairs.iter().map(|pair| pair.1).collect()),
        ratio: median(pairs.iter().map(|pair| pair.0 / pair.1).collect()),
    };
    Ok((comparison, pairs))
}

/// The middle value; not a number of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn both_ratios_must_hold() {
        let program = PROGRAMS.iter().find(|program| program.must == 0.75).unwrap();
        let verdict = |minimum: f64, ratio: f64| {
            let times = |minimum| Times { minimum, median: 0.0 };
            Comparison { command: String::new(), ours: times(minimum), theirs: times(1.0), ratio, processor: 9.0 }
                .verdict(program)
        };
        assert_eq!(verdict(0.60, 0.59), Verdict::Aim);
        assert_eq!(verdict(0.75, 0.5), Verdict::Must);
        assert_eq!(verdict(0.76, 0.5), Verdict::Misses);
        assert_eq!(verdict(0.5, 0.76), Verdict::Misses);
    }
}
