//! One table of all names that a scope defines: the same answers as [`Scope::find`], in time that does not grow with the
//! number of objects.
//!
//! It is filled from the chains of the DT_GNU_HASH tables, which hold the hash of every name, so that no name is read and
//! nothing is hashed. Objects are entered in the order of the scope and symbols in that of their chains: what stands first on
//! a probe is what a walk would find first. What is no plain match is asked of [`find_in`], which owns the rules.
//!
//! A table lives as long as the relocation that it was made for, outside the heap, and its memory is given back then.

use crate::fallible::{OutOfMemory, try_push, try_room};
use crate::lookup::{Definition, Purpose, Reference, Scope, find_in, is_plain_match};
use crate::object::{Object, ObjectIndex, ObjectTable};
use alloc::vec::Vec;
use core::mem::size_of;
use rtld_elf::{Dynamic, Hash};
use rtld_sys::memory;

/// Bits of an entry that are left for the name's hash, at the least: with fewer too many names would be compared in vain.
const LEAST_TAG: u32 = 8;

/// A table may need this many steps past occupied slots, as a multiple of its size, until it is given up: names of a damaged
/// file that all have one hash would take the square of their number.
const STEPS: usize = 8;

/// So many definitions ahead of the one that is entered have their slots fetched.
const AHEAD: usize = 16;

/// A table of so many bytes is in the processor's second cache as soon as it is made.
const NEAR: usize = 256 << 10;

/// One object of the scope. All definitions are numbered through: those of one object one after another, in the order of its
/// symbols.
#[derive(Debug)]
struct Member {
    index: ObjectIndex,
    object: &'static Object,
    /// The number of its first definition.
    first: u32,
    /// The symbol that has that number.
    first_symbol: u32,
}

/// A table of names. See the module.
#[derive(Debug)]
pub struct NameTable {
    slots: Slots,
    members: Vec<Member>,
    /// The positions of the members that have the definitions 0, [`STRIDE`], twice that and so on.
    positions: Vec<u16>,
}

/// So many definitions lie between two that are known by their members' positions.
const STRIDE: u32 = 16;

/// Open addressing with linear probing over memory of its own. An entry is the number of a definition, which is never 0, below the
/// upper bits of its name's hash; an entry of 0 is a free slot.
#[derive(Debug)]
struct Slots {
    entries: &'static mut [u32],
    /// How many bits the number has.
    number_bits: u32,
}

impl Slots {
    /// Free slots for at least half as many entries more than `count`.
    fn new(count: usize, eagerly: bool) -> Option<Slots> {
        let number_bits = u32::BITS - u32::try_from(count).ok()?.leading_zeros();
        if number_bits > u32::BITS - LEAST_TAG {
            return None;
        }
        // The least fills a page.
        let capacity = count.checked_add(count / 2)?.max(1024);
        let address = memory::map_scratch(capacity.checked_mul(size_of::<u32>())?, eagerly).ok()?;
        let first = core::ptr::with_exposed_provenance_mut::<u32>(address);
        // SAFETY: a fresh mapping of so many zero words that nobody else knows of; it lives until this value is dropped.
        let entries = unsafe { core::slice::from_raw_parts_mut(first, capacity) };
        // Bit 0 of a hash is not in the chains: it never is in an entry.
        Some(Slots { entries, number_bits: number_bits.max(1) })
    }

    /// The entry of a definition.
    #[inline(always)]
    fn entry(&self, hash: u32, number: u32) -> u32 {
        hash >> self.number_bits << self.number_bits | number
    }

    /// The first slot for a hash. Bit 0 is left out: chains do not hold it.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        // Consecutive names have consecutive hashes: the golden ratio spreads them.
        let spread = u64::from((hash | 1).wrapping_mul(0x9e37_79b1));
        (spread.wrapping_mul(self.entries.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn next(&self, place: usize) -> usize {
        let next = place.wrapping_add(1);
        if next < self.entries.len() { next } else { 0 }
    }

    /// Whether they are so few that the caches next to the processor hold them.
    fn are_near(&self) -> bool {
        size_of_val(self.entries) <= NEAR
    }

    /// Has the first slot for a hash fetched.
    #[inline(always)]
    fn prefetch(&self, hash: u32) {
        rtld_elf::pod::prefetch(self.entries.as_ptr().wrapping_add(self.home(hash)).cast());
    }

    /// Enters one symbol behind all with the same hash; false if the budget of steps is used up.
    #[inline(always)]
    fn insert(&mut self, hash: u32, number: u32, steps: &mut usize) -> bool {
        let entry = self.entry(hash, number);
        let mut place = self.home(hash);
        loop {
            let next = self.next(place);
            let Some(slot) = self.entries.get_mut(place) else {
                return false;
            };
            if *slot == 0 {
                *slot = entry;
                return true;
            }
            let Some(left) = steps.checked_sub(1) else {
                return false;
            };
            *steps = left;
            place = next;
        }
    }

    /// The numbers of the definitions that may have this hash, from the first entered on.
    #[inline(always)]
    fn candidates(&self, hash: u32) -> impl Iterator<Item = u32> + '_ {
        let mut place = self.home(hash);
        core::iter::from_fn(move || {
            loop {
                // There are always free slots.
                let entry = *self.entries.get(place).filter(|&&entry| entry != 0)?;
                place = self.next(place);
                if (entry ^ hash) >> self.number_bits == 0 {
                    return Some(entry ^ self.entry(hash, 0));
                }
            }
        })
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let start = self.entries.as_ptr().expose_provenance();
        // SAFETY: the mapping that `new` made; the slice dies with this value.
        let _ = unsafe { memory::unmap(start, core::mem::size_of_val(self.entries)) };
    }
}

/// What a name most likely means.
#[derive(Clone, Copy, Debug)]
pub struct Likely {
    position: usize,
    symbol: u32,
}

/// See [`NameTable::numbering`].
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    difference: u32,
}

/// How many definitions the objects of a scope have.
pub fn definitions(objects: &ObjectTable, scope: &Scope) -> usize {
    let dynamic = |index| objects.get(index).and_then(|object| object.dynamic.as_ref());
    scope.members().filter_map(dynamic).map(entries_of).sum()
}

/// An object has hardly fewer definitions than this; no memory of its table is touched to know it. Linkers make at most two
/// buckets for a symbol.
pub fn fewest_definitions(dynamic: &Dynamic<'static>) -> usize {
    match &dynamic.hash {
        Hash::Gnu(table) => table.buckets.len() / 2,
        Hash::Sysv(table) => table.symbol_count() as usize,
        Hash::None => 0,
    }
}

fn entries_of(dynamic: &Dynamic<'static>) -> usize {
    match &dynamic.hash {
        Hash::Gnu(table) => table.symbol_count().saturating_sub(table.symbol_offset) as usize,
        Hash::Sysv(table) => table.symbol_count() as usize,
        Hash::None => 0,
    }
}

impl NameTable {
    /// The names of a scope with this many definitions; `eagerly` as for [`memory::map_scratch`]. None where they do not fit, or
    /// there is no memory: the scope itself serves as well.
    pub fn new(objects: &ObjectTable, scope: &Scope, definitions: usize, eagerly: bool) -> Option<NameTable> {
        let slots = Slots::new(definitions, eagerly)?;
        // One for each STRIDE of numbers, which begin with 1.
        let positions = definitions / STRIDE as usize + 1;
        let (members, positions) = (try_room(scope.members().count()).ok()?, try_room(positions).ok()?);
        let mut table = NameTable { slots, members, positions };
        let mut steps = table.slots.entries.len().saturating_mul(STEPS);
        let mut next = 1;
        for index in scope.members() {
            next = table.enter(objects.get(index)?, index, next, &mut steps)?;
        }
        Some(table)
    }

    /// Enters the definitions of an object, numbered from `first` on; the number after the last one.
    fn enter(&mut self, object: &'static Object, index: ObjectIndex, first: u32, steps: &mut usize) -> Option<u32> {
        let dynamic = object.dynamic.as_ref()?;
        let first_symbol = match &dynamic.hash {
            Hash::Gnu(table) => table.symbol_offset,
            _ => 0,
        };
        let after = first.checked_add(u32::try_from(entries_of(dynamic)).ok()?)?;
        if after.wrapping_sub(1) >> self.slots.number_bits != 0 {
            return None;
        }
        let position = u16::try_from(self.members.len()).ok()?;
        try_push(&mut self.members, Member { index, object, first, first_symbol }).map_err(|OutOfMemory| ()).ok()?;
        while self.positions.len() < after.div_ceil(STRIDE) as usize {
            try_push(&mut self.positions, position).map_err(|OutOfMemory| ()).ok()?;
        }
        let slots = &mut self.slots;
        let entered = match &dynamic.hash {
            Hash::Gnu(table) => {
                let entries = table.entries();
                // Symbol 0 is none, and no definition.
                let is_none = |number| number == first && first_symbol == 0;
                if slots.are_near() {
                    (first..).zip(entries).all(|(number, hash)| is_none(number) || slots.insert(hash, number, steps))
                } else {
                    let ahead = entries.from(AHEAD).iter().chain(core::iter::repeat(0));
                    (first..).zip(entries.iter().zip(ahead)).all(|(number, (hash, later))| {
                        slots.prefetch(later);
                        is_none(number) || slots.insert(hash, number, steps)
                    })
                }
            }
            // The table of the gABI holds no hashes.
            Hash::Sysv(table) => (first..).zip(1..table.symbol_count()).all(|(before, symbol)| {
                let record = dynamic.symbols.get(symbol).filter(|record| record.st_value != 0 || record.st_shndx != 0);
                let name = record.and_then(|record| dynamic.strings.get_hashed(record.st_name));
                name.is_none_or(|(_, hash)| slots.insert(hash, before + 1, steps))
            }),
            Hash::None => true,
        };
        entered.then_some(after)
    }

    /// The member that has a definition, and which symbol that is there.
    #[inline(always)]
    fn symbol(&self, number: u32) -> Option<(usize, u32)> {
        let mut position = usize::from(*self.positions.get((number / STRIDE) as usize)?);
        while self.members.get(position + 1).is_some_and(|next| next.first <= number) {
            position += 1;
        }
        let member = self.members.get(position)?;
        Some((position, number.wrapping_sub(member.first).wrapping_add(member.first_symbol)))
    }

    /// The first definition that `reference` may mean, as [`Scope::find`].
    pub fn find<'s>(&self, reference: &Reference<'_>, objects: &'s ObjectTable) -> Option<Definition<'s>> {
        // The position of an object that has been asked for all it has.
        let mut asked = None;
        for number in self.slots.candidates(reference.hash) {
            let (position, number) = self.symbol(number)?;
            if asked == Some(position) {
                continue;
            }
            let member = self.members.get(position)?;
            let (object, dynamic) = (member.object, member.object.dynamic.as_ref()?);
            let Some(symbol) = dynamic.symbols.get(number) else { continue };
            if !dynamic.strings.equals(symbol.st_name, reference.name) {
                continue;
            }
            let has_chains = matches!(dynamic.hash, Hash::Gnu(_));
            if has_chains && reference.purpose != Purpose::Copy && is_plain_match(object, number, &symbol, reference) {
                return Some(Definition { object, index: member.index, number, symbol });
            }
            if let Some(definition) = find_in(objects, member.index, reference) {
                return Some(definition);
            }
            asked = Some(position);
        }
        None
    }

    /// What makes the numbers of an object's definitions of those of its symbols.
    pub fn numbering(&self, index: ObjectIndex) -> Option<Numbering> {
        let member = self.members.iter().find(|member| member.index == index)?;
        Some(Numbering { difference: member.first.wrapping_sub(member.first_symbol) })
    }

    /// Whether the first definition that may have this hash is a certain symbol of an object.
    #[inline(always)]
    pub fn has_first(&self, hash: u32, object: Numbering, symbol: u32) -> bool {
        self.slots.candidates(hash).next() == Some(symbol.wrapping_add(object.difference))
    }

    /// Has the first slot of a hash fetched.
    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u32) {
        self.slots.prefetch(hash);
    }

    /// Has the symbol and the version that a hash leads to fetched; the slot should be at hand. Which symbol that is.
    #[inline(always)]
    pub fn prefetch_symbol(&self, hash: u32) -> Option<Likely> {
        let (position, symbol) = self.symbol(self.slots.candidates(hash).next()?)?;
        let dynamic = self.members.get(position)?.object.dynamic.as_ref()?;
        dynamic.symbols.records().prefetch(symbol as usize);
        dynamic.versions.symbol_versions().prefetch(symbol as usize);
        Some(Likely { position, symbol })
    }

    /// Has a symbol's name fetched, which has `length` bytes if it is the one that is looked for; the symbol should be at hand.
    #[inline(always)]
    pub fn prefetch_name(&self, likely: Likely, length: usize) {
        if let Some(dynamic) = self.members.get(likely.position).and_then(|member| member.object.dynamic.as_ref())
            && let Some(symbol) = dynamic.symbols.get(likely.symbol)
        {
            // The end is compared first.
            dynamic.strings.prefetch(symbol.st_name.wrapping_add(length as u32));
            dynamic.strings.prefetch(symbol.st_name);
        }
    }
}
