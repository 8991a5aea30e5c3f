//! The dynamic section, digested: one pass over PT_DYNAMIC, then every address and size that it gives is checked once.
//!
//! What it hands out are views that stay inside the object. Pointers in the section are virtual addresses: digest before
//! anything relocates the section in place. Unknown tags are passed over; of a tag that comes twice the last one counts.

mod error;
mod flags;
mod values;

pub use error::DynamicError;
pub use flags::{Flags, Flags1};

use crate::pod::TableIterator;
use crate::tag::{
    DT_AUXILIARY, DT_FILTER, DT_FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ,
    DT_NEEDED, DT_NULL, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_RELR, DT_RELRSZ, DT_RPATH, DT_RUNPATH, DT_SONAME,
    DT_SYMTAB,
};
use crate::{Dyn, Hash, Image, Range, Rela, StringTable, Sym, SymbolTable, Table, Versions};
use values::{Values, array, function, table};

/// An object's dynamic section, checked.
#[derive(Debug, Clone, Copy)]
pub struct Dynamic<'a> {
    /// The entries up to DT_NULL.
    entries: Table<'a, Dyn>,
    /// DT_STRTAB; empty without one.
    pub strings: StringTable<'a>,
    /// DT_SYMTAB, bounded by its PT_LOAD; empty without one.
    pub symbols: SymbolTable<'a>,
    /// DT_GNU_HASH, or DT_HASH.
    pub hash: Hash<'a>,
    /// DT_VERSYM, DT_VERDEF, DT_VERNEED.
    pub versions: Versions<'a>,
    /// DT_SONAME.
    pub soname: Option<&'a [u8]>,
    /// DT_RPATH; `None` if there is a DT_RUNPATH.
    pub rpath: Option<&'a [u8]>,
    /// DT_RUNPATH.
    pub runpath: Option<&'a [u8]>,
    /// DT_RELA, without what it shares with DT_JMPREL.
    pub relocations: Table<'a, Rela>,
    /// How many of `relocations`, from the first on, are R_X86_64_RELATIVE, as the file claims (DT_RELACOUNT): at most all of
    /// them. Not checked, which would read a large table twice: look at each type, or take all of these for relative.
    pub relative_count: usize,
    /// DT_JMPREL.
    pub plt_relocations: Table<'a, Rela>,
    /// DT_RELR.
    pub relr: Table<'a, u64>,
    /// DT_PLTGOT: three writable words, if there are DT_JMPREL relocations.
    pub plt_got: Option<u64>,
    /// DT_INIT, inside an executable segment.
    pub init: Option<u64>,
    /// DT_FINI, inside an executable segment.
    pub fini: Option<u64>,
    /// DT_INIT_ARRAY: readable; a whole number of 8-byte pointers, which are not checked.
    pub init_array: Option<Range>,
    /// DT_FINI_ARRAY, likewise.
    pub fini_array: Option<Range>,
    /// DT_PREINIT_ARRAY, likewise.
    pub preinit_array: Option<Range>,
    /// DT_FLAGS and the tags that stand for one of its flags.
    pub flags: Flags,
    /// DT_FLAGS_1.
    pub flags_1: Flags1,
    /// Virtual address of the d_val of DT_DEBUG.
    pub debug_slot: Option<u64>,
}

impl<'a> Dynamic<'a> {
    /// Digests PT_DYNAMIC at `range`.
    pub fn digest(image: &Image<'a>, range: Range) -> Result<Dynamic<'a>, DynamicError> {
        let entries: Table<'a, Dyn> =
            image.table(range.start, range.size / size_of::<Dyn>() as u64).ok_or(DynamicError::Unreadable)?;
        let length = entries.iter().position(|entry| entry.d_tag == DT_NULL).ok_or(DynamicError::NotTerminated)?;
        let entries = entries.sub(0, length).unwrap_or_default();
        let values = Values::collect(entries, range.start)?;

        let strings = values.strings(image)?;
        let name = |tag: u64, offset: Option<u64>| {
            offset.map(|value| strings.get(value).ok_or(DynamicError::Name { tag, value })).transpose()
        };
        for entry in entries {
            if matches!(entry.d_tag, DT_NEEDED | DT_FILTER | DT_AUXILIARY) {
                name(entry.d_tag, Some(entry.d_val))?;
            }
        }
        let runpath = name(DT_RUNPATH, values.runpath)?;
        let rpath = name(DT_RPATH, values.rpath)?.filter(|_| runpath.is_none());

        let symbols = match values.symbol_table {
            None => Table::empty(),
            Some(value) => image.table_to_end::<Sym>(value).ok_or(DynamicError::Outside { tag: DT_SYMTAB, value })?,
        };
        let symbols = SymbolTable::new(symbols);
        let (relocations, plt_relocations) = values.relocations(image)?;

        Ok(Dynamic {
            entries,
            strings,
            symbols,
            hash: Hash::digest(image, values.gnu_hash, values.sysv_hash, symbols).map_err(DynamicError::Hash)?,
            versions: values.versions(image, strings)?,
            soname: name(DT_SONAME, values.soname)?,
            rpath,
            runpath,
            relocations,
            relative_count: usize::try_from(values.rela_count).unwrap_or(usize::MAX).min(relocations.len()),
            plt_relocations,
            relr: table(image, DT_RELR, values.relr, DT_RELRSZ, values.relr_size)?,
            plt_got: values.plt_got(image, !plt_relocations.is_empty())?,
            init: function(image, DT_INIT, values.init)?,
            fini: function(image, DT_FINI, values.fini)?,
            init_array: array(image, DT_INIT_ARRAY, values.init_array, DT_INIT_ARRAYSZ, values.init_array_size)?,
            fini_array: array(image, DT_FINI_ARRAY, values.fini_array, DT_FINI_ARRAYSZ, values.fini_array_size)?,
            preinit_array: array(
                image,
                DT_PREINIT_ARRAY,
                values.preinit_array,
                DT_PREINIT_ARRAYSZ,
                values.preinit_array_size,
            )?,
            flags: values.flags,
            flags_1: values.flags_1,
            debug_slot: values.debug_slot,
        })
    }

    /// The names of the libraries that the object needs (DT_NEEDED), in order, repetitions included.
    pub const fn needed(&self) -> Names<'a> {
        self.names(DT_NEEDED)
    }

    /// The names of the objects that take this one's place in lookup (DT_FILTER).
    pub const fn filters(&self) -> Names<'a> {
        self.names(DT_FILTER)
    }

    /// The names of the objects that come before this one in lookup (DT_AUXILIARY).
    pub const fn auxiliaries(&self) -> Names<'a> {
        self.names(DT_AUXILIARY)
    }

    const fn names(&self, tag: u64) -> Names<'a> {
        Names { entries: self.entries.iter(), strings: self.strings, tag }
    }

    /// Whether relocations may change segments that cannot be written.
    pub const fn has_textrel(&self) -> bool {
        self.flags.contains(Flags::TEXTREL)
    }

    /// Whether the object asks for no lazy binding.
    pub const fn binds_now(&self) -> bool {
        self.flags.contains(Flags::BIND_NOW) || self.flags_1.contains(Flags1::NOW)
    }

    /// The raw value of the last entry with a tag; reads the section as it is now, unchecked.
    pub fn entry_value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().filter(|entry| entry.d_tag == tag).last().map(|entry| entry.d_val)
    }

    /// The entries before DT_NULL, as they are now.
    pub const fn entries(&self) -> Table<'a, Dyn> {
        self.entries
    }
}

/// The names of all entries with one tag, in order.
#[derive(Clone)]
pub struct Names<'a> {
    entries: TableIterator<'a, Dyn>,
    strings: StringTable<'a>,
    tag: u64,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let entry = self.entries.by_ref().find(|entry| entry.d_tag == self.tag)?;
        self.strings.get(entry.d_val)
    }
}
