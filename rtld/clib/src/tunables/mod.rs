//! glibc's tunables: the user's settings, stored into the passive loader file's list, where libc.so.6 asks for them.
//!
//! Owns what GLIBC_TUNABLES and the older variables (MALLOC_ARENA_MAX, ...) do to the list, by the rules of the release that
//! the file is from. `list` finds the list and its records, `parse` reads the texts. In secure mode nothing of this may be
//! called.
//!
//! The settings must be stored before the loader file's IRELATIVE relocation is applied: its resolver works out what
//! depends on the processor, and looks at the tunables for it.

mod list;
mod parse;

pub use list::{Tunable, Tunables};

use crate::region::OutsideRegion;

/// What 2.39 and later tell the user of: the setting has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake<'a> {
    /// GLIBC_TUNABLES as a whole is no list of settings.
    List(&'a [u8]),
    /// The value is no number.
    Value {
        /// The value as it was given.
        value: &'a [u8],
        /// The tunable.
        name: &'a [u8],
    },
}

impl<'a> Mistake<'a> {
    /// The line that glibc writes to standard error, in pieces, as the texts need not be UTF-8.
    pub const fn line(&self) -> [&'a [u8]; 5] {
        match *self {
            Mistake::List(text) => [b"WARNING: ld.so: invalid GLIBC_TUNABLES `", text, b"': ignored.\n", b"", b""],
            Mistake::Value { value, name } => {
                [b"WARNING: ld.so: invalid GLIBC_TUNABLES value `", value, b"' for option `", name, b"': ignored.\n"]
            }
        }
    }
}

impl Tunables<'_> {
    /// Stores what the environment sets. Its variables come as (name, value).
    ///
    /// `keep` copies a value of a text tunable to where it stays, followed by a NUL, and returns the address; `None` (no
    /// memory) leaves that tunable alone. `tell` hears of what the user did wrong.
    pub fn apply<'e>(
        &self,
        environment: impl Iterator<Item = (&'e [u8], &'e [u8])>,
        mut keep: impl FnMut(&[u8]) -> Option<usize>,
        mut tell: impl FnMut(Mistake<'_>),
    ) -> Result<(), OutsideRegion> {
        let initials = self.iter().filter_map(|tunable| tunable.alias()?.first().copied()).fold(0, with_initial);
        for (name, value) in environment {
            if name == b"GLIBC_TUNABLES" {
                self.apply_text(value, &mut keep, &mut tell)?;
                continue;
            }
            // Most variables have nothing to do with us: their first letter says so.
            if name.first().is_none_or(|&first| with_initial(initials, first) != initials) {
                continue;
            }
            // Of an old variable the first setting counts, and none if GLIBC_TUNABLES set the tunable before.
            let tunable = self.iter().find(|tunable| tunable.has_alias(name));
            if let Some(tunable) = tunable
                && !tunable.is_set()?
            {
                self.set(&tunable, value, &mut keep, &mut tell)?;
            }
        }
        Ok(())
    }

    /// `name=value:name=value`. Unknown names are left out. Of two settings of one tunable the later one counts.
    fn apply_text(
        &self,
        text: &[u8],
        keep: &mut impl FnMut(&[u8]) -> Option<usize>,
        tell: &mut impl FnMut(Mistake<'_>),
    ) -> Result<(), OutsideRegion> {
        if !self.is_strict() {
            for (name, value) in parse::settings(text) {
                if let Some(tunable) = self.find_name(name) {
                    self.set(&tunable, value, keep, tell)?;
                }
            }
            return Ok(());
        }
        if !parse::is_well_formed(text) {
            if !text.is_empty() {
                tell(Mistake::List(text));
            }
            return Ok(());
        }
        // From the last one on, which alone counts of several with one name, even if it is wrong.
        for (index, (name, value)) in parse::settings(text).rev().enumerate() {
            let is_repeated = parse::settings(text).rev().take(index).any(|(later, _)| later == name);
            if !is_repeated && let Some(tunable) = self.find_name(name) {
                self.set(&tunable, value, keep, tell)?;
            }
        }
        Ok(())
    }

    /// One setting. A number outside the tunable's limits is ignored.
    fn set(
        &self,
        tunable: &Tunable<'_>,
        value: &[u8],
        keep: &mut impl FnMut(&[u8]) -> Option<usize>,
        tell: &mut impl FnMut(Mistake<'_>),
    ) -> Result<(), OutsideRegion> {
        if tunable.is_text()? {
            return match keep(value) {
                Some(address) => tunable.store_text(address, value.len()),
                None => Ok(()),
            };
        }
        let (number, length) = parse::number(value, self.is_strict());
        if self.is_strict() && length != value.len() {
            tell(Mistake::Value { value, name: tunable.name().unwrap_or_default() });
            return Ok(());
        }
        let number = if self.is_strict() && tunable.is_int()? { i64::from(number as i32) as u64 } else { number };
        if tunable.allows(number)? { tunable.store_number(number) } else { Ok(()) }
    }
}

/// A set of letters with one more.
const fn with_initial(letters: u32, letter: u8) -> u32 {
    letters | 1 << (letter & 31)
}
