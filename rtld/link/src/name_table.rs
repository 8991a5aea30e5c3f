//! One table of all names that a scope defines: the same answers as [`Scope::find`], in time that does not grow with the
//! number of objects.
//!
//! It is filled from the chains of the DT_GNU_HASH tables, which hold the hash of every name, so that no name is read and
//! nothing is hashed. Objects are entered in the order of the scope and symbols in that of their chains: what stands first on
//! a probe is what a walk would find first. What is no plain match is asked of [`find_in`], which owns the rules.
//!
//! A table lives as long as the relocation that it was made for, outside the heap, and its memory is given back then.

use crate::fallible::{OutOfMemory, try_push};
use crate::lookup::{Definition, Purpose, Reference, Scope, find_in, is_plain_match};
use crate::object::{Object, ObjectIndex, ObjectTable};
use alloc::vec::Vec;
use core::mem::size_of;
use rtld_elf::{Dynamic, Hash};
use rtld_sys::memory;

/// Bits of an entry: the number of a symbol, the object's position in the scope, the upper bits of the name's hash.
const SYMBOL_BITS: u32 = 24;
const POSITION_BITS: u32 = 12;
/// Bits of a hash that an entry leaves out. The first of them is not in the chains either.
const HASH_LEFT_OUT: u32 = 4;

/// A table may need this many steps past occupied slots, as a multiple of its size, until it is given up: names of a damaged
/// file that all have one hash would take the square of their number.
const STEPS: usize = 8;

/// So many definitions ahead of the one that is entered have their slots fetched.
const AHEAD: usize = 16;

/// A table of so many bytes is in the processor's second cache as soon as it is made.
const NEAR: usize = 256 << 10;

/// One object of the scope.
#[derive(Debug)]
struct Member {
    index: ObjectIndex,
    object: &'static Object,
}

/// A table of names. See the module.
#[derive(Debug)]
pub struct NameTable {
    slots: Slots,
    members: Vec<Member>,
}

/// Open addressing with linear probing over memory of its own; an entry of 0 is a free slot.
#[derive(Debug)]
struct Slots {
    entries: &'static mut [u64],
}

impl Slots {
    /// Free slots for at least half as many entries more than `count`.
    fn new(count: usize) -> Option<Slots> {
        // The least fills a page; 32 bits of a hash can tell no more slots apart.
        let capacity = u32::try_from(count.checked_add(count / 2)?.max(512)).ok()? as usize;
        let address = memory::map_scratch(capacity.checked_mul(size_of::<u64>())?).ok()?;
        let first = core::ptr::with_exposed_provenance_mut::<u64>(address);
        // SAFETY: a fresh mapping of so many zero words that nobody else knows of; it lives until this value is dropped.
        let entries = unsafe { core::slice::from_raw_parts_mut(first, capacity) };
        Some(Slots { entries })
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
    fn insert(&mut self, hash: u32, entry: u64, steps: &mut usize) -> bool {
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

    /// The entries that may stand for a hash, from the first entered on.
    #[inline(always)]
    fn candidates(&self, hash: u32) -> impl Iterator<Item = Entry> + '_ {
        let mut place = self.home(hash);
        let wanted = Entry::tag(hash);
        core::iter::from_fn(move || {
            loop {
                // There are always free slots.
                let entry = *self.entries.get(place).filter(|&&entry| entry != 0)?;
                place = self.next(place);
                if entry >> (SYMBOL_BITS + POSITION_BITS) == wanted {
                    return Some(Entry(entry));
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

/// An occupied slot.
#[derive(Clone, Copy)]
struct Entry(u64);

impl Entry {
    fn tag(hash: u32) -> u64 {
        u64::from(hash >> HASH_LEFT_OUT)
    }

    fn position(self) -> usize {
        (self.0 >> SYMBOL_BITS) as usize & ((1 << POSITION_BITS) - 1)
    }

    fn symbol(self) -> u32 {
        self.0 as u32 & ((1 << SYMBOL_BITS) - 1)
    }
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
    /// The names of a scope with this many definitions. None where they do not fit, or there is no memory: the scope itself
    /// serves as well.
    pub fn new(objects: &ObjectTable, scope: &Scope, definitions: usize) -> Option<NameTable> {
        let mut table = NameTable { slots: Slots::new(definitions)?, members: Vec::new() };
        let mut steps = table.slots.entries.len().saturating_mul(STEPS);
        for index in scope.members() {
            table.enter(objects.get(index)?, index, &mut steps)?;
        }
        Some(table)
    }

    fn enter(&mut self, object: &'static Object, index: ObjectIndex, steps: &mut usize) -> Option<()> {
        let position = self.members.len();
        if position >> POSITION_BITS != 0 {
            return None;
        }
        try_push(&mut self.members, Member { index, object }).map_err(|OutOfMemory| ()).ok()?;
        let dynamic = object.dynamic.as_ref()?;
        let base = (position as u64) << SYMBOL_BITS;
        let slots = &mut self.slots;
        let mut insert = |slots: &mut Slots, hash: u32, symbol: u64| {
            let tag = Entry::tag(hash) << (SYMBOL_BITS + POSITION_BITS);
            // Symbol 0 is none, and no definition.
            symbol == 0 || symbol >> SYMBOL_BITS == 0 && slots.insert(hash, tag | base | symbol, steps)
        };
        let entered = match &dynamic.hash {
            Hash::Gnu(table) => {
                let (first, entries) = (u64::from(table.symbol_offset), table.entries());
                if slots.are_near() {
                    (first..).zip(entries).all(|(symbol, hash)| insert(slots, hash, symbol))
                } else {
                    let ahead = entries.from(AHEAD).iter().chain(core::iter::repeat(0));
                    (first..).zip(entries.iter().zip(ahead)).all(|(symbol, (hash, later))| {
                        slots.prefetch(later);
                        insert(slots, hash, symbol)
                    })
                }
            }
            // The table of the gABI holds no hashes.
            Hash::Sysv(table) => (0..table.symbol_count()).all(|symbol| {
                let record = dynamic.symbols.get(symbol).filter(|record| record.st_value != 0 || record.st_shndx != 0);
                let name = record.and_then(|record| dynamic.strings.get_hashed(record.st_name));
                name.is_none_or(|(_, hash)| insert(slots, hash, u64::from(symbol)))
            }),
            Hash::None => true,
        };
        entered.then_some(())
    }

    /// The first definition that `reference` may mean, as [`Scope::find`].
    pub fn find<'s>(&self, reference: &Reference<'_>, objects: &'s ObjectTable) -> Option<Definition<'s>> {
        // The position of an object that has been asked for all it has.
        let mut asked = None;
        for entry in self.slots.candidates(reference.hash) {
            let position = entry.position();
            if asked == Some(position) {
                continue;
            }
            let member = self.members.get(position)?;
            let (object, dynamic) = (member.object, member.object.dynamic.as_ref()?);
            let Some(symbol) = dynamic.symbols.get(entry.symbol()) else { continue };
            if !dynamic.strings.equals(symbol.st_name, reference.name) {
                continue;
            }
            let number = entry.symbol();
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

    /// Whether the first definition that may have this hash is symbol `number` of an object.
    #[inline(always)]
    pub fn has_first(&self, hash: u32, index: ObjectIndex, number: u32) -> bool {
        self.slots.candidates(hash).next().is_some_and(|entry| {
            entry.symbol() == number && self.members.get(entry.position()).is_some_and(|member| member.index == index)
        })
    }

    /// Has the first slot of a hash fetched.
    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u32) {
        self.slots.prefetch(hash);
    }

    /// Has the symbol and the version that a hash leads to fetched; the slot should be at hand.
    #[inline(always)]
    pub fn prefetch_symbol(&self, hash: u32) {
        if let Some((dynamic, number)) = self.first(hash) {
            dynamic.symbols.records().prefetch(number as usize);
            dynamic.versions.symbol_versions().prefetch(number as usize);
        }
    }

    /// Has the name that a hash leads to, of `length` bytes if it is the one that is looked for, fetched; the symbol should be
    /// at hand.
    #[inline(always)]
    pub fn prefetch_name(&self, hash: u32, length: usize) {
        if let Some((dynamic, number)) = self.first(hash)
            && let Some(symbol) = dynamic.symbols.get(number)
        {
            // The end is compared first.
            dynamic.strings.prefetch(symbol.st_name.wrapping_add(length as u32));
            dynamic.strings.prefetch(symbol.st_name);
        }
    }

    #[inline(always)]
    fn first(&self, hash: u32) -> Option<(&Dynamic<'static>, u32)> {
        let entry = self.slots.candidates(hash).next()?;
        let dynamic = self.members.get(entry.position())?.object.dynamic.as_ref()?;
        Some((dynamic, entry.symbol()))
    }
}
