//! Walks over version tables that were checked: a list ends where its count says, or earlier if a relocation has since
//! damaged it.

use super::record::{DefinitionName, DefinitionRecord, NeedRecord, NeedVersionRecord};
use super::{Definition, Need, NeedVersion};
use crate::{StringTable, Table};

/// See [`Versions::definitions`].
#[derive(Debug, Clone, Copy)]
pub struct Definitions<'a> {
    pub(super) bytes: Table<'a, u8>,
    pub(super) strings: StringTable<'a>,
    pub(super) place: usize,
    pub(super) left: usize,
}

impl<'a> Definitions<'a> {
    #[inline]
    fn next_record(&mut self) -> Option<(DefinitionRecord, DefinitionName)> {
        self.left = self.left.checked_sub(1)?;
        let record: DefinitionRecord = self.bytes.read(self.place)?;
        let name: DefinitionName = self.bytes.read(self.place.checked_add(record.vd_aux as usize)?)?;
        self.place = self.place.checked_add(record.vd_next as usize)?;
        Some((record, name))
    }

    /// Whether the version is among them. Names are read only where hashes agree.
    pub(super) fn has(mut self, wanted: &NeedVersion<'_>) -> bool {
        let strings = self.strings;
        core::iter::from_fn(|| self.next_record())
            .any(|(record, name)| record.vd_hash == wanted.hash && strings.equals(name.vda_name, wanted.name))
    }
}

impl<'a> Iterator for Definitions<'a> {
    type Item = Definition<'a>;

    fn next(&mut self) -> Option<Definition<'a>> {
        let (record, name) = self.next_record()?;
        Some(Definition {
            name: self.strings.get(name.vda_name.into())?,
            hash: record.vd_hash,
            index: record.vd_ndx,
            flags: record.vd_flags,
        })
    }
}

/// See [`Versions::needs`].
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    pub(super) bytes: Table<'a, u8>,
    pub(super) strings: StringTable<'a>,
    pub(super) place: usize,
    pub(super) left: usize,
}

impl<'a> Iterator for Needs<'a> {
    type Item = Need<'a>;

    fn next(&mut self) -> Option<Need<'a>> {
        self.left = self.left.checked_sub(1)?;
        let record: NeedRecord = self.bytes.read(self.place)?;
        let versions = NeedVersions {
            bytes: self.bytes,
            strings: self.strings,
            place: self.place.checked_add(record.vn_aux as usize)?,
            left: record.vn_cnt.into(),
        };
        self.place = self.place.checked_add(record.vn_next as usize)?;
        Some(Need { file: self.strings.get(record.vn_file.into())?, versions })
    }
}

/// See [`Need::versions`].
#[derive(Debug, Clone, Copy)]
pub struct NeedVersions<'a> {
    pub(super) bytes: Table<'a, u8>,
    pub(super) strings: StringTable<'a>,
    pub(super) place: usize,
    pub(super) left: usize,
}

impl<'a> Iterator for NeedVersions<'a> {
    type Item = NeedVersion<'a>;

    fn next(&mut self) -> Option<NeedVersion<'a>> {
        self.left = self.left.checked_sub(1)?;
        let record: NeedVersionRecord = self.bytes.read(self.place)?;
        self.place = self.place.checked_add(record.vna_next as usize)?;
        Some(NeedVersion {
            name: self.strings.get(record.vna_name.into())?,
            hash: record.vna_hash,
            flags: record.vna_flags,
            index: record.vna_other,
        })
    }
}
