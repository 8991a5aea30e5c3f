//! The raw values of the tags, collected in one pass, and the checks that turn each into a view.

use crate::pod::Pod;
use crate::tag::*;
use crate::{Dyn, Image, PF_W, PF_X, Range, Rela, StringTable, Table, Versions};

use super::{DynamicError, Flags, Flags1};

/// The values of the tags that this crate reads, as the file gives them.
#[derive(Default)]
pub(super) struct Values {
    pub(super) string_table: Option<u64>,
    pub(super) string_table_size: Option<u64>,
    pub(super) symbol_table: Option<u64>,
    pub(super) gnu_hash: Option<u64>,
    pub(super) sysv_hash: Option<u64>,
    pub(super) rela: Option<u64>,
    pub(super) rela_size: u64,
    pub(super) rela_count: u64,
    pub(super) jmprel: Option<u64>,
    pub(super) jmprel_size: u64,
    pub(super) relr: Option<u64>,
    pub(super) relr_size: u64,
    pub(super) init_array: Option<u64>,
    pub(super) init_array_size: u64,
    pub(super) fini_array: Option<u64>,
    pub(super) fini_array_size: u64,
    pub(super) preinit_array: Option<u64>,
    pub(super) preinit_array_size: u64,
    pub(super) symbol_versions: Option<u64>,
    pub(super) version_definitions: Option<u64>,
    pub(super) version_definition_count: u64,
    pub(super) version_needs: Option<u64>,
    pub(super) version_need_count: u64,
    pub(super) plt_got: Option<u64>,
    pub(super) init: Option<u64>,
    pub(super) fini: Option<u64>,
    pub(super) soname: Option<u64>,
    pub(super) rpath: Option<u64>,
    pub(super) runpath: Option<u64>,
    pub(super) rel_size: u64,
    pub(super) flags: Flags,
    pub(super) flags_1: Flags1,
    pub(super) debug_slot: Option<u64>,
}

impl Values {
    /// One pass over the entries; `start` is the virtual address of the first.
    pub(super) fn collect(entries: Table<'_, Dyn>, start: u64) -> Result<Values, DynamicError> {
        let mut values = Values::default();
        for (index, Dyn { d_tag: tag, d_val: value }) in entries.iter().enumerate() {
            let expect = |expected: u64| {
                if value == expected { Ok(()) } else { Err(DynamicError::EntrySize { tag, value, expected }) }
            };
            match tag {
                DT_STRTAB => values.string_table = Some(value),
                DT_STRSZ => values.string_table_size = Some(value),
                DT_SYMTAB => values.symbol_table = Some(value),
                DT_SYMENT => expect(24)?,
                DT_GNU_HASH => values.gnu_hash = Some(value),
                DT_HASH => values.sysv_hash = Some(value),
                DT_RELA => values.rela = Some(value),
                DT_RELASZ => values.rela_size = value,
                DT_RELAENT => expect(24)?,
                DT_RELACOUNT => values.rela_count = value,
                DT_RELSZ => values.rel_size = value,
                DT_JMPREL => values.jmprel = Some(value),
                DT_PLTRELSZ => values.jmprel_size = value,
                DT_PLTREL if value != DT_RELA => {
                    return Err(DynamicError::PltRelocationType(value));
                }
                DT_RELR => values.relr = Some(value),
                DT_RELRSZ => values.relr_size = value,
                DT_RELRENT => expect(8)?,
                DT_PLTGOT => values.plt_got = Some(value),
                DT_INIT => values.init = Some(value),
                DT_FINI => values.fini = Some(value),
                DT_INIT_ARRAY => values.init_array = Some(value),
                DT_INIT_ARRAYSZ => values.init_array_size = value,
                DT_FINI_ARRAY => values.fini_array = Some(value),
                DT_FINI_ARRAYSZ => values.fini_array_size = value,
                DT_PREINIT_ARRAY => values.preinit_array = Some(value),
                DT_PREINIT_ARRAYSZ => values.preinit_array_size = value,
                DT_VERSYM => values.symbol_versions = Some(value),
                DT_VERDEF => values.version_definitions = Some(value),
                DT_VERDEFNUM => values.version_definition_count = value,
                DT_VERNEED => values.version_needs = Some(value),
                DT_VERNEEDNUM => values.version_need_count = value,
                DT_SONAME => values.soname = Some(value),
                DT_RPATH => values.rpath = Some(value),
                DT_RUNPATH => values.runpath = Some(value),
                DT_SYMBOLIC => values.flags |= Flags::SYMBOLIC,
                DT_TEXTREL => values.flags |= Flags::TEXTREL,
                DT_BIND_NOW => values.flags |= Flags::BIND_NOW,
                DT_FLAGS => values.flags |= Flags::from_bits_retain(value),
                DT_FLAGS_1 => values.flags_1 |= Flags1::from_bits_retain(value),
                // The entry lies inside a segment, so these sums do not wrap.
                DT_DEBUG => values.debug_slot = Some(start.wrapping_add(index as u64 * 16 + 8)),
                _ => {}
            }
        }
        Ok(values)
    }

    pub(super) fn strings<'a>(&self, image: &Image<'a>) -> Result<StringTable<'a>, DynamicError> {
        let Some(value) = self.string_table else {
            return Ok(StringTable::empty());
        };
        let missing = DynamicError::Missing { tag: DT_STRSZ, needed_by: DT_STRTAB };
        let size = self.string_table_size.ok_or(missing)?;
        image.strings(value, size).ok_or(DynamicError::Outside { tag: DT_STRTAB, value })
    }

    /// DT_RELA and DT_JMPREL as two tables without common entries.
    pub(super) fn relocations<'a>(
        &self,
        image: &Image<'a>,
    ) -> Result<(Table<'a, Rela>, Table<'a, Rela>), DynamicError> {
        if self.rel_size != 0 {
            return Err(DynamicError::Rel);
        }
        let relocations: Table<'a, Rela> = table(image, DT_RELA, self.rela, DT_RELASZ, self.rela_size)?;
        let plt: Table<'a, Rela> = table(image, DT_JMPREL, self.jmprel, DT_PLTRELSZ, self.jmprel_size)?;
        // Some linkers count the PLT's relocations, at the end, among the others too.
        let end = |start: Option<u64>, size: u64| start.map(|start| start.wrapping_add(size));
        if end(self.rela, self.rela_size) == end(self.jmprel, self.jmprel_size)
            && let Some(own) = relocations.len().checked_sub(plt.len())
        {
            return Ok((relocations.sub(0, own).unwrap_or_default(), plt));
        }
        Ok((relocations, plt))
    }

    pub(super) fn versions<'a>(
        &self,
        image: &Image<'a>,
        strings: StringTable<'a>,
    ) -> Result<Versions<'a>, DynamicError> {
        let bytes = |tag: u64, vaddr: Option<u64>, count: u64| match vaddr.filter(|_| count != 0) {
            None => Ok((Table::empty(), 0)),
            Some(value) => match image.table_to_end::<u8>(value) {
                None => Err(DynamicError::Outside { tag, value }),
                Some(bytes) => Ok((bytes, count)),
            },
        };
        let symbols = match self.symbol_versions {
            None => Table::empty(),
            Some(value) => image.table_to_end::<u16>(value).ok_or(DynamicError::Outside { tag: DT_VERSYM, value })?,
        };
        let definitions = bytes(DT_VERDEF, self.version_definitions, self.version_definition_count)?;
        let needs = bytes(DT_VERNEED, self.version_needs, self.version_need_count)?;
        Versions::new(strings, symbols, definitions, needs).map_err(DynamicError::Version)
    }

    pub(super) fn plt_got(&self, image: &Image<'_>, is_used: bool) -> Result<Option<u64>, DynamicError> {
        match self.plt_got {
            Some(value) if image.contains(value, 24, PF_W) => Ok(Some(value)),
            Some(value) if is_used => Err(DynamicError::NotWritable { tag: DT_PLTGOT, value }),
            _ => Ok(None),
        }
    }
}

/// A table of whole records at the value of `tag`, of the size that `size_tag` gives.
pub(super) fn table<'a, T: Pod>(
    image: &Image<'a>,
    tag: u64,
    vaddr: Option<u64>,
    size_tag: u64,
    size: u64,
) -> Result<Table<'a, T>, DynamicError> {
    let entry = size_of::<T>() as u64;
    let Some(value) = vaddr else {
        return if size == 0 { Ok(Table::empty()) } else { Err(DynamicError::Missing { tag, needed_by: size_tag }) };
    };
    if !size.is_multiple_of(entry) {
        return Err(DynamicError::TableSize { tag: size_tag, value: size, entry });
    }
    image.table(value, size / entry).ok_or(DynamicError::Outside { tag, value })
}

/// An array of function pointers, where it lies.
pub(super) fn array(
    image: &Image<'_>,
    tag: u64,
    vaddr: Option<u64>,
    size_tag: u64,
    size: u64,
) -> Result<Option<Range>, DynamicError> {
    let pointers: Table<'_, u64> = table(image, tag, vaddr, size_tag, size)?;
    Ok(vaddr.filter(|_| !pointers.is_empty()).map(|start| Range { start, size }))
}

/// A function's virtual address; 0 stands for none.
pub(super) fn function(image: &Image<'_>, tag: u64, vaddr: Option<u64>) -> Result<Option<u64>, DynamicError> {
    match vaddr {
        None | Some(0) => Ok(None),
        Some(value) if image.contains(value, 1, PF_X) => Ok(Some(value)),
        Some(value) => Err(DynamicError::NotExecutable { tag, value }),
    }
}
