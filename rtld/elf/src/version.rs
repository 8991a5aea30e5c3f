//! Symbol versions: DT_VERSYM, DT_VERDEF and DT_VERNEED (LSB "Symbol Versioning", after Sun's linker and libraries guide).
//!
//! The chains are checked as a whole when an object is digested: each record and name inside the object, each list of the
//! length that it claims, and no more records in all than bytes for them. It decides nothing about matching.

pub(crate) mod record;
mod walk;

use core::fmt;

use crate::{StringTable, Table};
use record::{DefinitionName, DefinitionRecord, NeedRecord, NeedVersionRecord};
pub use walk::{Definitions, NeedVersions, Needs};

/// Bit of a raw versym: the version is not the default one, it must be asked for by name.
pub const VERSYM_HIDDEN: u16 = 0x8000;
/// The index inside a raw versym.
pub const VERSYM_INDEX: u16 = 0x7fff;
/// Index of a symbol that is local to its object.
pub const VER_NDX_LOCAL: u16 = 0;
/// Index of a symbol without version.
pub const VER_NDX_GLOBAL: u16 = 1;
/// Flag of a definition: it names the object itself.
pub const VER_FLG_BASE: u16 = 1;
/// Flag of a need: its absence is no error.
pub const VER_FLG_WEAK: u16 = 2;

/// Why the version tables are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionError {
    /// A record's format (vd_version, vn_version) is not 1. The table's tag, the format.
    Format(&'static str, u16),
    /// A record is outside the object, a list ends too early, or there are more records than can lie there.
    Damaged(&'static str),
    /// A name is outside the string table. The table's tag, the offset.
    Name(&'static str, u32),
}

impl fmt::Display for VersionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionError::Format(tag, format) => {
                write!(formatter, "unsupported version {format} of {tag} record")
            }
            VersionError::Damaged(tag) => write!(formatter, "{tag} is damaged"),
            VersionError::Name(tag, offset) => {
                write!(formatter, "{tag} name {offset:#x} is not inside the string table")
            }
        }
    }
}

impl core::error::Error for VersionError {}

/// The version tables of an object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Versions<'a> {
    strings: StringTable<'a>,
    symbols: Table<'a, u16>,
    /// From the first record to the end of the PT_LOAD, and how many records.
    definitions: Table<'a, u8>,
    definition_count: usize,
    needs: Table<'a, u8>,
    need_count: usize,
}

/// A version that an object defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// SysV hash of the name, as the file says.
    pub hash: u32,
    /// Its index in the object's versyms.
    pub index: u16,
    /// VER_FLG_*.
    pub flags: u16,
}

impl Definition<'_> {
    /// Whether it names the object, not a version.
    pub const fn is_base(&self) -> bool {
        self.flags & VER_FLG_BASE != 0
    }
}

/// The versions that an object needs of one file.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    /// The file's soname.
    pub file: &'a [u8],
    versions: NeedVersions<'a>,
}

impl<'a> Need<'a> {
    /// The versions needed of it.
    pub const fn versions(&self) -> NeedVersions<'a> {
        self.versions
    }
}

/// A version that an object needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedVersion<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// SysV hash of the name, as the file says.
    pub hash: u32,
    /// VER_FLG_WEAK.
    pub flags: u16,
    /// Its index in the object's versyms, with VERSYM_HIDDEN as in the file.
    pub index: u16,
}

impl NeedVersion<'_> {
    /// Whether its absence is no error.
    pub const fn is_weak(&self) -> bool {
        self.flags & VER_FLG_WEAK != 0
    }
}

/// What an index in an object's versyms stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionName<'a> {
    /// The version's name.
    pub name: &'a [u8],
    /// SysV hash of the name.
    pub hash: u32,
    /// The file that is to define it; `None` if this object does.
    pub file: Option<&'a [u8]>,
    /// VERSYM_HIDDEN was set in the index asked for.
    pub hidden: bool,
}

impl<'a> Versions<'a> {
    /// The tables of an object without versions.
    pub const fn empty() -> Self {
        Versions {
            strings: StringTable::empty(),
            symbols: Table::empty(),
            definitions: Table::empty(),
            definition_count: 0,
            needs: Table::empty(),
            need_count: 0,
        }
    }

    /// Checks the version tables. `symbols` is DT_VERSYM; `definitions` and `needs` are the bytes from DT_VERDEF and
    /// DT_VERNEED to the end of the PT_LOAD, each with its number of records.
    pub fn new(
        strings: StringTable<'a>,
        symbols: Table<'a, u16>,
        (definitions, definition_count): (Table<'a, u8>, u64),
        (needs, need_count): (Table<'a, u8>, u64),
    ) -> Result<Self, VersionError> {
        // A record takes more than one byte: a larger count is damaged, and the check will say so.
        let count = |count: u64, bytes: Table<'a, u8>| usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len());
        let versions = Versions {
            strings,
            symbols,
            definitions,
            definition_count: count(definition_count, definitions),
            needs,
            need_count: count(need_count, needs),
        };
        versions.check_definitions()?;
        versions.check_needs()?;
        Ok(versions)
    }

    fn check_definitions(&self) -> Result<(), VersionError> {
        const TAG: &str = "DT_VERDEF";
        let mut place = 0;
        for left in (0..self.definition_count).rev() {
            let record: DefinitionRecord = self.definitions.read(place).ok_or(VersionError::Damaged(TAG))?;
            if record.vd_version != 1 {
                return Err(VersionError::Format(TAG, record.vd_version));
            }
            let name: DefinitionName = (record.vd_cnt != 0)
                .then(|| self.definitions.read(place.checked_add(record.vd_aux as usize)?))
                .flatten()
                .ok_or(VersionError::Damaged(TAG))?;
            self.strings.get(name.vda_name.into()).ok_or(VersionError::Name(TAG, name.vda_name))?;
            place = following(place, record.vd_next, left, size_of::<DefinitionRecord>(), TAG)?;
        }
        Ok(())
    }

    fn check_needs(&self) -> Result<(), VersionError> {
        const TAG: &str = "DT_VERNEED";
        // Lists of two files that share their records would make the work grow with the square of the file's size.
        let mut budget = self.needs.len() / size_of::<NeedVersionRecord>();
        let mut place = 0;
        for left in (0..self.need_count).rev() {
            let record: NeedRecord = self.needs.read(place).ok_or(VersionError::Damaged(TAG))?;
            if record.vn_version != 1 {
                return Err(VersionError::Format(TAG, record.vn_version));
            }
            self.strings.get(record.vn_file.into()).ok_or(VersionError::Name(TAG, record.vn_file))?;
            let mut version_place = place.saturating_add(record.vn_aux as usize);
            for left in (0..record.vn_cnt as usize).rev() {
                budget = budget.checked_sub(1).ok_or(VersionError::Damaged(TAG))?;
                let version: NeedVersionRecord = self.needs.read(version_place).ok_or(VersionError::Damaged(TAG))?;
                self.strings.get(version.vna_name.into()).ok_or(VersionError::Name(TAG, version.vna_name))?;
                version_place = following(version_place, version.vna_next, left, size_of::<NeedVersionRecord>(), TAG)?;
            }
            place = following(place, record.vn_next, left, size_of::<NeedRecord>(), TAG)?;
        }
        Ok(())
    }

    /// Whether the symbols have no versions (no DT_VERSYM).
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether the object defines any version (DT_VERDEF).
    pub const fn has_definitions(&self) -> bool {
        self.definition_count != 0
    }

    /// The raw versym of a symbol: an index, perhaps with VERSYM_HIDDEN. `None` without DT_VERSYM.
    #[inline(always)]
    pub fn symbol_version(&self, symbol_index: u32) -> Option<u16> {
        self.symbols.get(symbol_index as usize)
    }

    /// DT_VERSYM, up to the end of its PT_LOAD.
    pub const fn symbol_versions(&self) -> Table<'a, u16> {
        self.symbols
    }

    /// The versions that the object defines, its own name (VER_FLG_BASE) included.
    pub const fn definitions(&self) -> Definitions<'a> {
        Definitions { bytes: self.definitions, strings: self.strings, place: 0, left: self.definition_count }
    }

    /// Whether the object defines a version that another needs of it.
    pub fn defines(&self, wanted: &NeedVersion<'_>) -> bool {
        self.definitions().has(wanted)
    }

    /// The versions that the object needs, file by file.
    pub const fn needs(&self) -> Needs<'a> {
        Needs { bytes: self.needs, strings: self.strings, place: 0, left: self.need_count }
    }

    /// What `index` (a raw versym) stands for; `None` for local, global, the object's own name and unknown indexes.
    /// Walks both lists: callers with many questions keep an array.
    pub fn name_of(&self, index: u16) -> Option<VersionName<'a>> {
        let hidden = index & VERSYM_HIDDEN != 0;
        let index = index & VERSYM_INDEX;
        if index <= VER_NDX_GLOBAL {
            return None;
        }
        let defined =
            self.definitions().find(|definition| definition.index & VERSYM_INDEX == index && !definition.is_base());
        if let Some(definition) = defined {
            return Some(VersionName { name: definition.name, hash: definition.hash, file: None, hidden });
        }
        self.needs().find_map(|need| {
            let version = need.versions().find(|version| version.index & VERSYM_INDEX == index)?;
            Some(VersionName { name: version.name, hash: version.hash, file: Some(need.file), hidden })
        })
    }

    /// The highest index that either list defines (at least 1): the size of an array over all versions, less one.
    pub fn highest_index(&self) -> u16 {
        let defined = self.definitions().map(|definition| definition.index & VERSYM_INDEX).max();
        let needed = self.needs().flat_map(|need| need.versions()).map(|version| version.index & VERSYM_INDEX).max();
        defined.max(needed).unwrap_or(VER_NDX_GLOBAL).max(VER_NDX_GLOBAL)
    }
}

/// The place of the next record, which there must be while any are `left`; it may not overlap this one.
fn following(place: usize, next: u32, left: usize, size: usize, tag: &'static str) -> Result<usize, VersionError> {
    if left == 0 {
        return Ok(place);
    }
    let next = next as usize;
    if next < size {
        return Err(VersionError::Damaged(tag));
    }
    place.checked_add(next).ok_or(VersionError::Damaged(tag))
}
