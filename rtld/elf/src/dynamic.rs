//! The dynamic section, digested: one pass over PT_DYNAMIC, then every address and size that it gives is checked once.
//!
//! What it hands out are views that stay inside the object. Pointers in the section are virtual addresses: digest before
//! anything relocates the section in place. Unknown tags are passed over; of a tag that comes twice the last one counts.

use core::fmt;

use bitflags::bitflags;

use crate::hash::HashError;
use crate::pod::TableIterator;
use crate::tag::{self, *};
use crate::version::VersionError;
use crate::{
    Dyn, Hash, Image, PF_W, PF_X, Range, Rela, StringTable, Sym, SymbolTable, Table, Versions,
};

bitflags! {
    /// DT_FLAGS, with what DT_SYMBOLIC, DT_TEXTREL and DT_BIND_NOW say folded in.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags: u64 {
        /// DF_ORIGIN: uses $ORIGIN.
        const ORIGIN = 0x1;
        /// DF_SYMBOLIC: its own definitions come first for it.
        const SYMBOLIC = 0x2;
        /// DF_TEXTREL: relocations may change segments that cannot be written.
        const TEXTREL = 0x4;
        /// DF_BIND_NOW: no lazy binding.
        const BIND_NOW = 0x8;
        /// DF_STATIC_TLS: uses the initial-exec model.
        const STATIC_TLS = 0x10;
        /// What this crate has no name for.
        const _ = !0;
    }

    /// DT_FLAGS_1.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags1: u64 {
        /// DF_1_NOW: no lazy binding.
        const NOW = 0x1;
        /// DF_1_GLOBAL: joins the global scope.
        const GLOBAL = 0x2;
        /// DF_1_NODELETE: is never unloaded.
        const NODELETE = 0x8;
        /// DF_1_LOADFLTR: its filtees are loaded at once.
        const LOADFLTR = 0x10;
        /// DF_1_INITFIRST: its initialisers run before all others.
        const INITFIRST = 0x20;
        /// DF_1_NOOPEN: cannot be had by dlopen.
        const NOOPEN = 0x40;
        /// DF_1_ORIGIN: uses $ORIGIN.
        const ORIGIN = 0x80;
        /// DF_1_INTERPOSE: comes right behind the program in lookup.
        const INTERPOSE = 0x400;
        /// DF_1_NODEFLIB: its dependencies are not looked for in the default directories.
        const NODEFLIB = 0x800;
        /// DF_1_PIE: a program, not a library.
        const PIE = 0x0800_0000;
        /// What this crate has no name for.
        const _ = !0;
    }
}

/// Why an object's dynamic section is refused. `Display` is the text after "FILE: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicError {
    /// PT_DYNAMIC is in no segment that can be read.
    Unreadable,
    /// No DT_NULL inside PT_DYNAMIC.
    NotTerminated,
    /// What `tag` points to is not, with its size, inside one segment that can be read.
    Outside {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// What `tag` points to is not inside an executable segment.
    NotExecutable {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// What `tag` points to is not inside a segment that can be written.
    NotWritable {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// The size of an entry is not that of x86-64.
    EntrySize {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
        /// Bytes.
        expected: u64,
    },
    /// The size of a table is not a multiple of its entry's.
    TableSize {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
        /// Bytes of an entry.
        entry: u64,
    },
    /// A tag is absent that another one needs.
    Missing {
        /// DT_* that is absent.
        tag: u64,
        /// DT_* that needs it.
        needed_by: u64,
    },
    /// A name's offset is not inside the string table, or the name has no end there.
    Name {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// Relocations without addend.
    Rel,
    /// DT_PLTREL is not DT_RELA.
    PltRelocationType(u64),
    /// DT_GNU_HASH or DT_HASH.
    Hash(HashError),
    /// DT_VERDEF or DT_VERNEED.
    Version(VersionError),
}

impl fmt::Display for DynamicError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DynamicError::Unreadable => {
                formatter.write_str("dynamic section is not inside any loaded segment")
            }
            DynamicError::NotTerminated => formatter.write_str("dynamic section is not terminated"),
            DynamicError::Outside { tag, value } => {
                write!(
                    formatter,
                    "{} {value:#x} is not inside any loaded segment",
                    tag::name(tag)
                )
            }
            DynamicError::NotExecutable { tag, value } => {
                write!(
                    formatter,
                    "{} {value:#x} is not inside an executable segment",
                    tag::name(tag)
                )
            }
            DynamicError::NotWritable { tag, value } => {
                write!(
                    formatter,
                    "{} {value:#x} is not inside a writable segment",
                    tag::name(tag)
                )
            }
            DynamicError::EntrySize {
                tag,
                value,
                expected,
            } => {
                write!(
                    formatter,
                    "{} is {value}, expected {expected}",
                    tag::name(tag)
                )
            }
            DynamicError::TableSize { tag, value, entry } => {
                write!(
                    formatter,
                    "{} is {value}, not a multiple of {entry}",
                    tag::name(tag)
                )
            }
            DynamicError::Missing { tag, needed_by } => {
                write!(
                    formatter,
                    "{} without {}",
                    tag::name(needed_by),
                    tag::name(tag)
                )
            }
            DynamicError::Name { tag, value } => {
                write!(
                    formatter,
                    "{} name {value:#x} is not inside the string table",
                    tag::name(tag)
                )
            }
            DynamicError::Rel => formatter.write_str("DT_REL relocations are not used on x86-64"),
            DynamicError::PltRelocationType(kind) => {
                write!(formatter, "unexpected PLT reloc type {kind:#x}")
            }
            DynamicError::Hash(error) => error.fmt(formatter),
            DynamicError::Version(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for DynamicError {}

/// The values of the tags that this crate reads, as the file gives them.
#[derive(Default)]
struct Values {
    string_table: Option<u64>,
    string_table_size: Option<u64>,
    symbol_table: Option<u64>,
    gnu_hash: Option<u64>,
    sysv_hash: Option<u64>,
    rela: Option<u64>,
    rela_size: u64,
    rela_count: u64,
    jmprel: Option<u64>,
    jmprel_size: u64,
    relr: Option<u64>,
    relr_size: u64,
    init_array: Option<u64>,
    init_array_size: u64,
    fini_array: Option<u64>,
    fini_array_size: u64,
    preinit_array: Option<u64>,
    preinit_array_size: u64,
    symbol_versions: Option<u64>,
    version_definitions: Option<u64>,
    version_definition_count: u64,
    version_needs: Option<u64>,
    version_need_count: u64,
    plt_got: Option<u64>,
    init: Option<u64>,
    fini: Option<u64>,
    soname: Option<u64>,
    rpath: Option<u64>,
    runpath: Option<u64>,
    rel_size: u64,
    has_names: bool,
    flags: Flags,
    flags_1: Flags1,
    debug_slot: Option<u64>,
}

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
        let entries: Table<'a, Dyn> = image
            .table(range.start, range.size / size_of::<Dyn>() as u64)
            .ok_or(DynamicError::Unreadable)?;
        let length = entries
            .iter()
            .position(|entry| entry.d_tag == DT_NULL)
            .ok_or(DynamicError::NotTerminated)?;
        let entries = entries.sub(0, length).unwrap_or_default();
        let values = Values::collect(entries, range.start)?;

        let strings = values.strings(image)?;
        let name = |tag: u64, offset: Option<u64>| {
            offset
                .map(|value| strings.get(value).ok_or(DynamicError::Name { tag, value }))
                .transpose()
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
            Some(value) => image
                .table_to_end::<Sym>(value)
                .ok_or(DynamicError::Outside {
                    tag: DT_SYMTAB,
                    value,
                })?,
        };
        let symbols = SymbolTable::new(symbols);
        let (relocations, plt_relocations) = values.relocations(image)?;

        Ok(Dynamic {
            entries,
            strings,
            symbols,
            hash: Hash::digest(image, values.gnu_hash, values.sysv_hash, symbols)
                .map_err(DynamicError::Hash)?,
            versions: values.versions(image, strings)?,
            soname: name(DT_SONAME, values.soname)?,
            rpath,
            runpath,
            relocations,
            relative_count: usize::try_from(values.rela_count)
                .unwrap_or(usize::MAX)
                .min(relocations.len()),
            plt_relocations,
            relr: table(image, DT_RELR, values.relr, DT_RELRSZ, values.relr_size)?,
            plt_got: values.plt_got(image, !plt_relocations.is_empty())?,
            init: function(image, DT_INIT, values.init)?,
            fini: function(image, DT_FINI, values.fini)?,
            init_array: array(
                image,
                DT_INIT_ARRAY,
                values.init_array,
                DT_INIT_ARRAYSZ,
                values.init_array_size,
            )?,
            fini_array: array(
                image,
                DT_FINI_ARRAY,
                values.fini_array,
                DT_FINI_ARRAYSZ,
                values.fini_array_size,
            )?,
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
        Names {
            entries: self.entries.iter(),
            strings: self.strings,
            tag,
        }
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
        self.entries
            .iter()
            .filter(|entry| entry.d_tag == tag)
            .last()
            .map(|entry| entry.d_val)
    }

    /// The entries before DT_NULL, as they are now.
    pub const fn entries(&self) -> Table<'a, Dyn> {
        self.entries
    }
}

impl Values {
    /// One pass over the entries; `start` is the virtual address of the first.
    fn collect(entries: Table<'_, Dyn>, start: u64) -> Result<Values, DynamicError> {
        let mut values = Values::default();
        for (
            index,
            Dyn {
                d_tag: tag,
                d_val: value,
            },
        ) in entries.iter().enumerate()
        {
            let expect = |expected: u64| {
                if value == expected {
                    Ok(())
                } else {
                    Err(DynamicError::EntrySize {
                        tag,
                        value,
                        expected,
                    })
                }
            };
            match tag {
                DT_NEEDED | DT_FILTER | DT_AUXILIARY => values.has_names = true,
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

    fn strings<'a>(&self, image: &Image<'a>) -> Result<StringTable<'a>, DynamicError> {
        let Some(value) = self.string_table else {
            return Ok(StringTable::empty());
        };
        let missing = DynamicError::Missing {
            tag: DT_STRSZ,
            needed_by: DT_STRTAB,
        };
        let size = self.string_table_size.ok_or(missing)?;
        image.strings(value, size).ok_or(DynamicError::Outside {
            tag: DT_STRTAB,
            value,
        })
    }

    /// DT_RELA and DT_JMPREL as two tables without common entries.
    fn relocations<'a>(
        &self,
        image: &Image<'a>,
    ) -> Result<(Table<'a, Rela>, Table<'a, Rela>), DynamicError> {
        if self.rel_size != 0 {
            return Err(DynamicError::Rel);
        }
        let relocations: Table<'a, Rela> =
            table(image, DT_RELA, self.rela, DT_RELASZ, self.rela_size)?;
        let plt: Table<'a, Rela> =
            table(image, DT_JMPREL, self.jmprel, DT_PLTRELSZ, self.jmprel_size)?;
        // Some linkers count the PLT's relocations, at the end, among the others too.
        let end = |start: Option<u64>, size: u64| start.map(|start| start.wrapping_add(size));
        if end(self.rela, self.rela_size) == end(self.jmprel, self.jmprel_size)
            && let Some(own) = relocations.len().checked_sub(plt.len())
        {
            return Ok((relocations.sub(0, own).unwrap_or_default(), plt));
        }
        Ok((relocations, plt))
    }

    fn versions<'a>(
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
            Some(value) => image
                .table_to_end::<u16>(value)
                .ok_or(DynamicError::Outside {
                    tag: DT_VERSYM,
                    value,
                })?,
        };
        let definitions = bytes(
            DT_VERDEF,
            self.version_definitions,
            self.version_definition_count,
        )?;
        let needs = bytes(DT_VERNEED, self.version_needs, self.version_need_count)?;
        Versions::new(strings, symbols, definitions, needs).map_err(DynamicError::Version)
    }

    fn plt_got(&self, image: &Image<'_>, is_used: bool) -> Result<Option<u64>, DynamicError> {
        match self.plt_got {
            Some(value) if image.contains(value, 24, PF_W) => Ok(Some(value)),
            Some(value) if is_used => Err(DynamicError::NotWritable {
                tag: DT_PLTGOT,
                value,
            }),
            _ => Ok(None),
        }
    }
}

/// A table of whole records at the value of `tag`, of the size that `size_tag` gives.
fn table<'a, T: crate::Pod>(
    image: &Image<'a>,
    tag: u64,
    vaddr: Option<u64>,
    size_tag: u64,
    size: u64,
) -> Result<Table<'a, T>, DynamicError> {
    let entry = size_of::<T>() as u64;
    let Some(value) = vaddr else {
        return if size == 0 {
            Ok(Table::empty())
        } else {
            Err(DynamicError::Missing {
                tag,
                needed_by: size_tag,
            })
        };
    };
    if !size.is_multiple_of(entry) {
        return Err(DynamicError::TableSize {
            tag: size_tag,
            value: size,
            entry,
        });
    }
    image
        .table(value, size / entry)
        .ok_or(DynamicError::Outside { tag, value })
}

/// An array of function pointers, where it lies.
fn array(
    image: &Image<'_>,
    tag: u64,
    vaddr: Option<u64>,
    size_tag: u64,
    size: u64,
) -> Result<Option<Range>, DynamicError> {
    let pointers: Table<'_, u64> = table(image, tag, vaddr, size_tag, size)?;
    Ok(vaddr
        .filter(|_| !pointers.is_empty())
        .map(|start| Range { start, size }))
}

/// A function's virtual address; 0 stands for none.
fn function(image: &Image<'_>, tag: u64, vaddr: Option<u64>) -> Result<Option<u64>, DynamicError> {
    match vaddr {
        None | Some(0) => Ok(None),
        Some(value) if image.contains(value, 1, PF_X) => Ok(Some(value)),
        Some(value) => Err(DynamicError::NotExecutable { tag, value }),
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
        let entry = self
            .entries
            .by_ref()
            .find(|entry| entry.d_tag == self.tag)?;
        self.strings.get(entry.d_val)
    }
}
