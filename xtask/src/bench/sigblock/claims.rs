//! What the figures must show: the claims of fast sigblock's proposal and of this project's issues. Owns the bounds.

use super::cases::Variant;
use super::figures::Row;
use anyhow::Context as _;

/// How much dearer exceptions through `dl_iterate_phdr` must be with sigprocmask than with the word.
const TWICE: f64 = 2.0;
/// How much dearer the word may be than no section at all.
const NO_DEARER: f64 = 1.03;
/// What a section may cost, nanoseconds.
const SECTION: f64 = 5.0;

/// A claim, and whether it holds.
pub struct Claim {
    /// What is claimed.
    pub words: String,
    /// What was measured.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Every claim, judged; an error if a figure that one needs is missing.
pub fn judge(rows: &[Row]) -> anyhow::Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for phase in ["depth-1", "depth-10"] {
        let row = find(rows, "throw", phase)?;
        let ratio = |one, other| row.ratio(one, other).with_context(|| format!("{}: a variant is missing", row.name()));
        let dearer = ratio(Variant::Sigprocmask, Variant::User)?;
        claims.push(Claim {
            words: format!("{}: sigprocmask takes at least {TWICE} times the word's time", row.name()),
            measured: format!("{dearer:.3}{}", bound(row)),
            holds: dearer >= TWICE,
        });
        let near = ratio(Variant::User, Variant::Off)?;
        claims.push(Claim {
            words: format!("{}: the word takes at most {NO_DEARER} times the time of off", row.name()),
            measured: format!("{near:.3}"),
            holds: near <= NO_DEARER,
        });
        let word = row.summary(Variant::User).with_context(|| row.name())?;
        claims.push(Claim {
            // A kernel that samples at its tick charges what interrupts take to whoever runs, in some runs: the middle one counts.
            words: format!("{}: the word has no system time (median of the runs)", row.name()),
            measured: format!(
                "{:.2} ns (sum of all runs: {:.2} of {:.2} ns)",
                word.median_system, word.system, word.user
            ),
            holds: word.median_system == 0.0,
        });
    }
    let row = find(rows, "section", "word")?;
    let word = row.summary(Variant::User).with_context(|| row.name())?;
    claims.push(Claim {
        words: format!("a section costs less than {SECTION} ns"),
        measured: format!("{:.2} ns", word.processor.median),
        holds: word.processor.median < SECTION,
    });
    Ok(claims)
}

/// What the calls cost beside what the operation takes under ld-linux, which has no sections: where they cost less, no loader of
/// its speed is twice as fast without them.
fn bound(row: &Row) -> String {
    let median = |variant| row.summary(variant).map(|summary| summary.processor.median);
    let all = (median(Variant::Sigprocmask), median(Variant::User), median(Variant::Reference));
    let (Some(sigprocmask), Some(word), Some(reference)) = all else { return String::new() };
    format!(" (the calls cost {:.0} ns; ld-linux without any takes {reference:.0} ns)", sigprocmask - word)
}

fn find<'a>(rows: &'a [Row], case: &str, phase: &str) -> anyhow::Result<&'a Row> {
    rows.iter().find(|row| row.case == case && row.phase == phase).with_context(|| format!("no row {case} {phase}"))
}

#[cfg(test)]
mod tests {
    use super::super::figures::{add, tests::phase};
    use super::*;

    /// Rows with these times, and the claims that fail in them.
    fn failing(word: f64, sigprocmask: f64, off: f64, system: f64, section: f64) -> usize {
        let mut rows = Vec::new();
        for depth in ["depth-1", "depth-10"] {
            add(&mut rows, "throw", Variant::User, phase(depth, word, system));
            add(&mut rows, "throw", Variant::Sigprocmask, phase(depth, sigprocmask, 0.0));
            add(&mut rows, "throw", Variant::Off, phase(depth, off, 0.0));
        }
        add(&mut rows, "section", Variant::User, phase("word", section, 0.0));
        judge(&rows).unwrap().iter().filter(|claim| !claim.holds).count()
    }

    #[test]
    fn each_claim_can_fail() {
        assert_eq!(failing(1000.0, 2100.0, 980.0, 0.0, 0.5), 0);
        assert_eq!(failing(1000.0, 1990.0, 980.0, 0.0, 0.5), 2);
        assert_eq!(failing(1000.0, 2100.0, 900.0, 0.0, 0.5), 2);
        assert_eq!(failing(1000.0, 2100.0, 980.0, 1.0, 0.5), 2);
        assert_eq!(failing(1000.0, 2100.0, 980.0, 0.0, 6.0), 1);
    }

    #[test]
    fn a_busy_machine_is_no_system_time_of_ours() {
        let mut rows = Vec::new();
        for system in [0.0, 0.0, 100.0] {
            add(&mut rows, "throw", Variant::User, phase("depth-1", 1000.0, system));
        }
        let summary = rows.first().and_then(|row| row.summary(Variant::User)).unwrap();
        assert!(summary.system > 0.0 && summary.median_system == 0.0);
    }

    #[test]
    fn a_missing_figure_is_an_error() {
        assert!(judge(&[]).is_err());
    }
}
