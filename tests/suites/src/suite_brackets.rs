//! Suite `brackets`: every entry into the loader is a section, what a section costs in system calls in each back end,
//! and how a back end is chosen and named. Owns the fixtures' builds; `cost` counts calls, `entries` looks at each
//! entry, `choice` at the settings.

mod choice;
mod cost;
mod entries;

use crate::harness::{Context, Report};
use anyhow::Result;

/// The programs of the suite, for a guest.
pub fn fixtures(context: &Context) -> Result<()> {
    cost::programs(context)?;
    entries::programs(context)?;
    choice::programs(context)?;
    Ok(())
}

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    cost::run(context, report)?;
    entries::run(context, report)?;
    choice::run(context, report)
}

/// What the loader says at exit under LD_DEBUG=sigblock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    back_end: String,
    reason: String,
    sections: u64,
    held: u64,
}

/// Reads the only line of `text`, `sigblock: backend=NAME reason="TEXT" sections=N held=N`.
fn account(text: &str) -> Result<Account, String> {
    let wrong = || format!("expected one line sigblock: backend=.. reason=\"..\" sections=N held=N\ngot      {text}");
    let line = text.strip_suffix('\n').filter(|line| !line.contains('\n')).ok_or_else(wrong)?;
    let rest = line.strip_prefix("sigblock: backend=").ok_or_else(wrong)?;
    let (back_end, rest) = rest.split_once(" reason=\"").ok_or_else(wrong)?;
    let (reason, rest) = rest.split_once("\" sections=").ok_or_else(wrong)?;
    let (sections, held) = rest.split_once(" held=").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    if reason.is_empty() {
        return Err(wrong());
    }
    Ok(Account {
        back_end: back_end.to_owned(),
        reason: reason.to_owned(),
        sections: number(sections)?,
        held: number(held)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read_whole() {
        let want = Account { back_end: "user".to_owned(), reason: "no kernel's".to_owned(), sections: 12, held: 3 };
        assert_eq!(account("sigblock: backend=user reason=\"no kernel's\" sections=12 held=3\n"), Ok(want));
        for wrong in ["", "\n", "sigblock: backend=user reason=\"\" sections=1 held=1\n", "sigblock: backend=user\n"] {
            assert!(account(wrong).is_err(), "{wrong}");
        }
        assert!(account("sigblock: backend=user reason=\"x\" sections=1 held=1\nmore\n").is_err());
        assert!(account("sigblock: backend=user reason=\"x\" sections=-1 held=1\n").is_err());
    }
}
