//! The list of tunables in the passive loader file: where it is, and what a record of it holds.
//!
//! Owns finding the list, which has no symbol, by its content, and access to the records. No layout is written down here: it
//! follows from records whose numbers are known. Sets nothing by itself.
//!
//! A record holds a name, a type with limits, in some releases a default, a value, a mark that it was set, and the name of an
//! older variable of the environment. Names are arrays in the record, or before 2.33 pointers to strings.

use rtld_elf::{PF_W, StringTable, relocation, segments};

use crate::library::Library;
use crate::region::{OutsideRegion, Region};

/// How every name starts, as the low six bytes of a word.
const PREFIX: &[u8; 6] = b"glibc.";
const PREFIX_WORD: u64 = u64::from_le_bytes(*b"glibc.\0\0");
const PREFIX_MASK: u64 = 0xffff_ffff_ffff;
/// No record is longer.
const LONGEST_RECORD: u64 = 512;
/// Type codes (`tunable_type_code_t`).
const TYPE_INT_32: u32 = 0;
const TYPE_SIZE: u32 = 2;
const TYPE_STRING: u32 = 3;

/// Records with known contents: type SIZE_T, limits 1 and 16, value 4 in every release; and one with an older name.
const KNOWN_NUMBERS: &[u8] = b"glibc.rtld.nns";
const KNOWN_LIMITS: [u64; 3] = [1, 16, 4];
const KNOWN_ALIAS: (&[u8], &[u8]) = (b"glibc.malloc.perturb", b"MALLOC_PERTURB_");

/// The list.
#[derive(Debug, Clone, Copy)]
pub struct Tunables<'a> {
    loader: Library<'a>,
    /// Virtual address of the first record.
    first: u64,
    /// Bytes of a record.
    stride: u64,
    count: u64,
    /// The records as a string table, where names are arrays; `None` where they are pointers.
    texts: Option<StringTable<'a>>,
    layout: RecordLayout,
    memory: Region,
}

/// Offsets in a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RecordLayout {
    kind: usize,
    minimum: usize,
    maximum: usize,
    value: usize,
    /// Bytes of the value: 16 if a text's length follows its address.
    value_size: usize,
    is_set: usize,
    alias: u64,
}

/// One tunable.
#[derive(Debug, Clone, Copy)]
pub struct Tunable<'a> {
    list: Tunables<'a>,
    index: u64,
}

impl<'a> Tunables<'a> {
    /// Finds the list in the loader file; `None` if there is none that can be understood.
    ///
    /// # Safety
    /// As [`crate::recognise`]: the file is mapped privately and can be written where PF_W says so as long as the result is
    /// used to store, and nothing borrows it.
    pub unsafe fn find(loader: &Library<'a>) -> Option<Tunables<'a>> {
        let inline = inline_names(loader);
        let (first, stride, count) = inline.or_else(|| pointed_names(loader))?;
        let size = stride.checked_mul(count)?;
        if stride > LONGEST_RECORD || !loader.image.contains(first, size, PF_W) {
            return None;
        }
        let address = loader.base.wrapping_add(first as usize);
        // SAFETY: inside a segment that can be written, and the caller lets us write there.
        let memory = unsafe { Region::new(address, size as usize) };
        let texts = match inline {
            Some(_) => Some(loader.image.strings(first, size)?),
            None => None,
        };
        let layout = RecordLayout::default();
        let mut list = Tunables { loader: *loader, first, stride, count, texts, layout, memory };
        list.layout = list.derive()?;
        Some(list)
    }

    /// All tunables.
    pub fn iter(&self) -> impl Iterator<Item = Tunable<'a>> + use<'a> {
        let list = *self;
        (0..self.count).map(move |index| Tunable { list, index })
    }

    /// The tunable of this name.
    pub fn find_name(&self, name: &[u8]) -> Option<Tunable<'a>> {
        self.iter().find(|tunable| tunable.is_text_at(0, name))
    }

    /// The value of a numeric tunable, as it is now.
    pub fn value(&self, name: &[u8]) -> Option<i64> {
        let tunable = self.find_name(name)?;
        if tunable.is_text().ok()? {
            return None;
        }
        Some(tunable.number().ok()? as i64)
    }

    /// Whether the release ignores what does not parse to its end (2.39 and later, which keep the length of texts).
    pub(super) const fn is_strict(&self) -> bool {
        self.layout.value_size == 16
    }

    /// The layout of a record, from the records whose contents are known.
    fn derive(&self) -> Option<RecordLayout> {
        let known = self.find_name(KNOWN_NUMBERS)?;
        let word = |offset: usize| known.word(offset).ok();
        let stride = self.stride as usize;
        let kind = (0..stride).step_by(8).find(|&offset| {
            word(offset).is_some_and(|kind| kind as u32 == TYPE_SIZE)
                && [word(offset + 8), word(offset + 16), word(offset + 24)] == KNOWN_LIMITS.map(Some)
        })?;
        // The first value behind the limits; where releases keep a default too (2.41), that comes before the value.
        let first = kind + 24;
        let alias = self.derive_alias(first)?;
        let default = KNOWN_LIMITS.last().copied();
        let (value, value_size, is_set) = if word(first + 8) == default {
            (first + 8, 8, first + 16)
        } else if word(first + 16) == default {
            (first + 16, 16, first + 32)
        } else {
            // No default. What lies before the older name is the mark alone (1 byte), or the mark, a security level and
            // perhaps room (8 bytes); a pointer to the older name is aligned, so there is room too.
            match (alias as usize).checked_sub(first)? {
                9 | 16 => (first, 8, first + 8),
                17 | 24 => (first, 16, first + 16),
                _ => return None,
            }
        };
        (is_set < stride).then_some(RecordLayout {
            kind,
            minimum: kind + 8,
            maximum: kind + 16,
            value,
            value_size,
            is_set,
            alias,
        })
    }

    /// Where a record keeps the older name, which comes behind the value.
    fn derive_alias(&self, value: usize) -> Option<u64> {
        let (name, alias) = KNOWN_ALIAS;
        let record = self.find_name(name)?;
        (value as u64..self.stride).find(|&offset| record.is_text_at(offset, alias))
    }
}

impl<'a> Tunable<'a> {
    /// Its name.
    pub fn name(&self) -> Option<&'a [u8]> {
        self.text(0)
    }

    /// The older variable of the environment that sets it.
    pub fn alias(&self) -> Option<&'a [u8]> {
        self.text(self.list.layout.alias).filter(|name| !name.is_empty())
    }

    /// Whether the older variable of the environment that sets it has this name.
    pub fn has_alias(&self, name: &[u8]) -> bool {
        !name.is_empty() && self.is_text_at(self.list.layout.alias, name)
    }

    /// The text that the record holds, or points to, at `offset`.
    fn text(&self, offset: u64) -> Option<&'a [u8]> {
        let inside = self.index.checked_mul(self.list.stride)?.checked_add(offset)?;
        match self.list.texts {
            Some(texts) => texts.get(inside),
            None => self.pointed_text(inside),
        }
    }

    fn pointed_text(&self, inside: u64) -> Option<&'a [u8]> {
        let loader = &self.list.loader;
        let place = self.list.first.checked_add(inside)?;
        let pointer = loader.link_time_word(place).filter(|&pointer| pointer != 0)?;
        StringTable::from_table(loader.image.table_to_end(pointer)?).get(0)
    }

    /// Whether the record holds, or points to, `text` at `offset`.
    fn is_text_at(&self, offset: u64, text: &[u8]) -> bool {
        let Some(texts) = &self.list.texts else {
            return self.text(offset) == Some(text);
        };
        let inside = self.index.checked_mul(self.list.stride).and_then(|start| start.checked_add(offset));
        inside.and_then(|inside| u32::try_from(inside).ok()).is_some_and(|inside| texts.equals(inside, text))
    }

    fn place(&self, offset: usize) -> usize {
        (self.index as usize).wrapping_mul(self.list.stride as usize).wrapping_add(offset)
    }

    fn word(&self, offset: usize) -> Result<u64, OutsideRegion> {
        self.list.memory.read_u64(self.place(offset))
    }

    fn kind(&self) -> Result<u32, OutsideRegion> {
        self.list.memory.read_u32(self.place(self.list.layout.kind))
    }

    /// Whether its value is a text.
    pub fn is_text(&self) -> Result<bool, OutsideRegion> {
        Ok(self.kind()? == TYPE_STRING)
    }

    /// Whether its value is an `int`.
    pub(super) fn is_int(&self) -> Result<bool, OutsideRegion> {
        Ok(self.kind()? == TYPE_INT_32)
    }

    /// Whether it was set by anybody.
    pub fn is_set(&self) -> Result<bool, OutsideRegion> {
        Ok(self.list.memory.read_u8(self.place(self.list.layout.is_set))? != 0)
    }

    /// Its value; for a text, its address.
    pub fn number(&self) -> Result<u64, OutsideRegion> {
        self.word(self.list.layout.value)
    }

    /// Whether a number is inside its limits. No limit is negative, so a negative number is above them without its sign.
    pub(super) fn allows(&self, number: u64) -> Result<bool, OutsideRegion> {
        let minimum = self.word(self.list.layout.minimum)?;
        let maximum = self.word(self.list.layout.maximum)?;
        Ok((minimum..=maximum).contains(&number))
    }

    pub(super) fn store_number(&self, number: u64) -> Result<(), OutsideRegion> {
        self.list.memory.write_u64(self.place(self.list.layout.value), number)?;
        self.mark()
    }

    pub(super) fn store_text(&self, address: usize, length: usize) -> Result<(), OutsideRegion> {
        let value = self.place(self.list.layout.value);
        self.list.memory.write_usize(value, address)?;
        if self.list.layout.value_size == 16 {
            self.list.memory.write_usize(value.wrapping_add(8), length)?;
        }
        self.mark()
    }

    fn mark(&self) -> Result<(), OutsideRegion> {
        self.list.memory.write_u8(self.place(self.list.layout.is_set), 1)
    }
}

/// First record, size of a record and number of records, where the records begin with their names.
fn inline_names(loader: &Library<'_>) -> Option<(u64, u64, u64)> {
    let starts_here = |vaddr: u64| loader.read::<u64>(vaddr).is_some_and(|word| word & PREFIX_MASK == PREFIX_WORD);
    for load in segments::loads(loader.image.headers()).filter(|load| load.p_flags & PF_W != 0) {
        let start = load.p_vaddr.checked_next_multiple_of(8)?;
        let words =
            loader.image.table::<u64>(start, load.p_vaddr.checked_add(load.p_filesz)?.saturating_sub(start) / 8)?;
        let mut hits = words.iter().enumerate().filter(|(_, word)| word & PREFIX_MASK == PREFIX_WORD);
        let (Some((first, _)), Some((second, _))) = (hits.next(), hits.next()) else {
            continue;
        };
        let stride = (second as u64).checked_sub(first as u64)?.checked_mul(8)?;
        let first = start.checked_add((first as u64).checked_mul(8)?)?;
        let most = load.p_filesz / stride;
        let count = (0..most)
            .take_while(|index| {
                index.checked_mul(stride).and_then(|offset| first.checked_add(offset)).is_some_and(starts_here)
            })
            .count();
        return Some((first, stride, count as u64));
    }
    None
}

/// The same, where the records begin with pointers, which the file holds as relocations.
fn pointed_names(loader: &Library<'_>) -> Option<(u64, u64, u64)> {
    let points_to_name = |vaddr: u64| {
        let name = loader.image.table::<u8>(vaddr, PREFIX.len() as u64);
        name.is_some_and(|name| name.iter().eq(PREFIX.iter().copied()))
    };
    let (mut first, mut second, mut count) = (u64::MAX, u64::MAX, 0);
    for record in loader.dynamic.relocations.iter() {
        if relocation::kind(&record) != relocation::R_X86_64_RELATIVE || !points_to_name(record.r_addend as u64) {
            continue;
        }
        count += 1;
        if record.r_offset < first {
            second = first;
            first = record.r_offset;
        } else if record.r_offset < second {
            second = record.r_offset;
        }
    }
    if count < 2 {
        return None;
    }
    Some((first, second.checked_sub(first)?, count))
}
