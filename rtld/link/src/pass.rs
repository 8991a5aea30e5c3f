//! The passes over one object's relocations (x86-64 psABI 4.4) that are made for speed: relative ones by the run, references
//! to symbols many at a time. Everything else goes one by one to `rare_relocations`.
//!
//! A reference is a chain of dependent memory accesses: symbol, name, slot of the table of names, definition, its name. One
//! after another they cost a cache miss each; so up to [`IN_FLIGHT`] references take each step together, and what the next
//! step reads is fetched meanwhile. The slots are written at the end of a batch, in the order of the table.
//!
//! Most references are to symbols that the object defines itself. Their hashes stand in its own hash table; where the table of
//! names has the very definition first, nobody comes before it, and no name is read.
//!
//! Values that resolvers must compute are put off into `Deferred` and run when everything else is in place.

use crate::error::Reason;
use crate::lookup::{Definition, Purpose, suits_itself};
use crate::name_table::{Likely, NameTable, Numbering};
use crate::object::{Object, ObjectIndex};
use crate::places::{Place, Places};
use crate::protect::Preparation;
use crate::relocate::{Binding, Later, Relocator, Target, is_own, named_target};
use rtld_elf::relocation as kind;
use rtld_elf::{Dynamic, Hash, Rela, Sym, SymbolView, Table};

/// How many references take each step together.
const IN_FLIGHT: usize = 32;

/// So many relocations ahead of the one that is applied are fetched: the processor's own prefetching ends with each page.
const AHEAD: usize = 96;

/// The relocations of one object.
pub(crate) struct Pass<'a, 's> {
    pub relocator: &'a Relocator<'s>,
    pub index: ObjectIndex,
    pub object: &'s Object,
    pub dynamic: &'a Dynamic<'static>,
    pub places: Places,
    pub preparation: Preparation,
    /// Segments that are not writable by themselves may be relocated.
    pub text: bool,
    /// The symbol of the rare relocation before and what it came to: neighbours often share it.
    pub last: Option<(u32, Purpose, Target<'s>)>,
    pub later: &'a mut Later,
}

/// A reference to a symbol, and the relocations from `first` to before `end` that make it.
#[derive(Clone, Copy)]
struct Wanted {
    number: u32,
    purpose: Purpose,
    first: usize,
    end: usize,
    own: Sym,
    meaning: Meaning,
    /// For a name: what it most likely means, whose memory is fetched.
    likely: Option<Likely>,
}

/// What is known of what a reference means.
#[derive(Clone, Copy)]
enum Meaning {
    /// It is to be looked up by its name, which was not read yet.
    Unread,
    /// It is looked up by its name, which has this hash.
    Named(&'static [u8], u32),
    /// The object defines it. The hash of its name, without the bit that tables of names leave out.
    Defined(u32),
    /// The symbol itself.
    Itself,
}

impl Wanted {
    const NONE: Wanted = Wanted {
        number: 0,
        purpose: Purpose::Address,
        first: 0,
        end: 0,
        own: Sym { st_name: 0, st_info: 0, st_other: 0, st_shndx: 0, st_value: 0, st_size: 0 },
        meaning: Meaning::Itself,
        likely: None,
    };

    /// Reads the name.
    #[inline(always)]
    fn read_name(&mut self, dynamic: &Dynamic<'static>) -> u32 {
        let (name, hash) = dynamic.strings.get_hashed(self.own.st_name).unwrap_or((b"", rtld_elf::gnu_hash(b"")));
        self.meaning = Meaning::Named(name, hash);
        hash
    }
}

/// The references that are in flight.
struct Batch {
    wanted: [Wanted; IN_FLIGHT],
    count: usize,
}

impl Batch {
    fn references(&mut self) -> &mut [Wanted] {
        self.wanted.get_mut(..self.count).unwrap_or_default()
    }

    /// Takes in the references of the relocations from `next` on, as far as they are addresses of symbols and there is
    /// room; where it ended.
    fn gather(
        &mut self,
        dynamic: &Dynamic<'static>,
        defined: Option<Defined<'_>>,
        relocations: Table<'static, Rela>,
        mut next: usize,
    ) -> usize {
        self.count = 0;
        let (mut last, mut last_purpose) = (0, Purpose::Address);
        while let Some(relocation) = relocations.get(next) {
            let number = kind::symbol(&relocation);
            let purpose = match kind::kind(&relocation) {
                kind::R_X86_64_64 | kind::R_X86_64_GLOB_DAT => Purpose::Address,
                kind::R_X86_64_JUMP_SLOT => Purpose::Call,
                _ => break,
            };
            if number == 0 {
                break;
            }
            if number == last && purpose == last_purpose {
                if let Some(wanted) = self.wanted.get_mut(self.count.wrapping_sub(1)) {
                    wanted.end = next + 1;
                }
            } else {
                let Some(wanted) = self.wanted.get_mut(self.count) else { break };
                (wanted.number, wanted.purpose, wanted.first, wanted.end) = (number, purpose, next, next + 1);
                self.count += 1;
                (last, last_purpose) = (number, purpose);
                dynamic.symbols.records().prefetch(number as usize);
                dynamic.versions.symbol_versions().prefetch(number as usize);
                if let Some(defined) = &defined {
                    defined.prefetch(number);
                }
            }
            relocations.prefetch(next.wrapping_add(AHEAD));
            next += 1;
        }
        next
    }
}

impl<'s> Pass<'_, 's> {
    /// Applies all of them.
    pub fn run(&mut self) -> Result<(), Reason> {
        self.packed()?;
        self.table(self.dynamic.relocations)?;
        let slots = self.dynamic.plt_relocations;
        let lazy = self.relocator.binding == Binding::Lazy && !self.dynamic.binds_now();
        match self.dynamic.plt_got.filter(|_| lazy && !slots.is_empty()) {
            Some(table) => self.prepare_lazy(table, slots),
            None => self.table(slots),
        }
    }

    /// The checked place of a relocation.
    #[inline]
    pub fn place(&mut self, vaddr: u64, size: usize, kind: u32) -> Result<Place, Reason> {
        self.places.at(vaddr, size).ok_or(Reason::RelocationTarget { kind, offset: vaddr })
    }

    /// DT_RELR: adds the load bias to the words that it names.
    fn packed(&mut self) -> Result<(), Reason> {
        let bias = self.object.mapping.bias as u64;
        let address = |vaddr: u64| vaddr.wrapping_add(bias) as usize;
        let mut places = kind::relr_addresses(self.dynamic.relr);
        while let Some(vaddr) = places.next() {
            let Some(place) = self.places.at(vaddr, 8) else {
                return Err(Reason::RelocationTarget { kind: kind::R_X86_64_RELATIVE, offset: vaddr });
            };
            if self.preparation.is_due(place.address()) {
                self.preparation.make(place.address(), places.clone().map(address));
            }
            place.store(place.load().wrapping_add(bias));
        }
        Ok(())
    }

    /// A table of relocations, in its order: runs of relative ones, batches of references, single others.
    fn table(&mut self, relocations: Table<'static, Rela>) -> Result<(), Reason> {
        let mut next = self.relative(relocations, 0)?;
        if next == relocations.len() {
            return Ok(());
        }
        let mut batch = Batch { wanted: [Wanted::NONE; IN_FLIGHT], count: 0 };
        let defined = Defined::new(self.relocator, self.index, self.object, self.dynamic);
        loop {
            let end = batch.gather(self.dynamic, defined, relocations, next);
            if end > next {
                self.references(&mut batch, relocations, defined)?;
                next = end;
            } else {
                let Some(relocation) = relocations.get(next) else { return Ok(()) };
                if kind::kind(&relocation) == kind::R_X86_64_RELATIVE {
                    next = self.relative(relocations, next)?;
                } else {
                    self.apply_other(&relocation, kind::kind(&relocation))?;
                    next += 1;
                }
            }
        }
    }

    /// The run of R_X86_64_RELATIVE from `next` on; where it ends.
    fn relative(&mut self, relocations: Table<'static, Rela>, mut next: usize) -> Result<usize, Reason> {
        let bias = self.object.mapping.bias as u64;
        while let Some(relocation) = relocations.get(next) {
            if kind::kind(&relocation) != kind::R_X86_64_RELATIVE {
                break;
            }
            let Some(place) = self.places.at(relocation.r_offset, 8) else {
                return Err(Reason::RelocationTarget { kind: kind::R_X86_64_RELATIVE, offset: relocation.r_offset });
            };
            if self.preparation.is_due(place.address()) {
                self.preparation.make(place.address(), RelativePlaces { relocations, next: next + 1, bias });
            }
            place.store(bias.wrapping_add_signed(relocation.r_addend));
            relocations.prefetch(next.wrapping_add(AHEAD));
            next += 1;
        }
        Ok(next)
    }

    /// Resolves the references of a batch together and writes their slots.
    fn references(
        &mut self,
        batch: &mut Batch,
        relocations: Table<'static, Rela>,
        defined: Option<Defined<'s>>,
    ) -> Result<(), Reason> {
        let dynamic = self.dynamic;
        let names = self.relocator.resolver.names;
        for wanted in batch.references() {
            let Some(own) = dynamic.symbols.get(wanted.number) else {
                let offset = relocations.get(wanted.first).map_or(0, |relocation| relocation.r_offset);
                return Err(Reason::SymbolIndex { symbol: wanted.number, offset });
            };
            wanted.own = own;
            wanted.meaning = if is_own(&own) {
                Meaning::Itself
            } else if let Some((names, hash)) = defined.and_then(|defined| defined.hash(wanted.number, &own)) {
                names.prefetch_slot(hash);
                Meaning::Defined(hash)
            } else {
                dynamic.strings.prefetch(own.st_name);
                Meaning::Unread
            };
        }
        for wanted in batch.references() {
            if let Meaning::Unread = wanted.meaning {
                let hash = wanted.read_name(dynamic);
                if let Some(names) = names {
                    names.prefetch_slot(hash);
                }
            }
        }
        if let Some(names) = names {
            let is_first = |hash, symbol| defined.is_some_and(|own| names.has_first(hash, own.numbering, symbol));
            for wanted in batch.references() {
                match wanted.meaning {
                    Meaning::Named(_, hash) => wanted.likely = names.prefetch_symbol(hash),
                    Meaning::Defined(hash)
                        if is_first(hash, wanted.number)
                            && suits_itself(self.object, wanted.number, &wanted.own, wanted.purpose) =>
                    {
                        wanted.meaning = Meaning::Itself;
                    }
                    Meaning::Defined(_) => {
                        let hash = wanted.read_name(dynamic);
                        wanted.likely = names.prefetch_symbol(hash);
                    }
                    _ => {}
                }
            }
            for wanted in batch.references() {
                if let (Meaning::Named(name, _), Some(likely)) = (wanted.meaning, wanted.likely) {
                    names.prefetch_name(likely, name.len());
                }
            }
        }
        for wanted in batch.references() {
            self.bind(wanted, relocations)?;
        }
        Ok(())
    }

    /// Writes the slots of one reference.
    #[inline]
    fn bind(&mut self, wanted: &Wanted, relocations: Table<'static, Rela>) -> Result<(), Reason> {
        let relocator = self.relocator;
        let (index, number, own) = (self.index, wanted.number, &wanted.own);
        let target = if let Meaning::Named(name, hash) = wanted.meaning {
            let reference = (index, number, own);
            named_target(&relocator.resolver, relocator.substitutes, reference, (name, hash), wanted.purpose)?
        } else {
            Target::Definition(Definition { object: self.object, index, number, symbol: *own })
        };
        let value = match relocator.noted(self.index, target)? {
            Target::Definition(definition) if definition.is_indirect() => {
                for relocation in (wanted.first..wanted.end).filter_map(|next| relocations.get(next)) {
                    let place = self.place(relocation.r_offset, 8, kind::kind(&relocation))?;
                    self.defer(place, definition.address(), addend(&relocation), wanted.number)?;
                }
                return Ok(());
            }
            Target::Definition(definition) => definition.address(),
            Target::Substitute(address) => address,
            Target::Nothing => 0,
        };
        for relocation in (wanted.first..wanted.end).filter_map(|next| relocations.get(next)) {
            let Some(place) = self.places.at(relocation.r_offset, 8) else {
                let (kind, offset) = (kind::kind(&relocation), relocation.r_offset);
                return Err(Reason::RelocationTarget { kind, offset });
            };
            place.store((value as u64).wrapping_add_signed(addend(&relocation)));
        }
        Ok(())
    }

    /// Makes every slot of the PLT lead to the binder: the slot holds the address, in the file, of the code in the
    /// PLT that pushes its number.
    fn prepare_lazy(&mut self, table: u64, slots: Table<'static, Rela>) -> Result<(), Reason> {
        let handle = self.place(table.wrapping_add(8), 16, kind::R_X86_64_JUMP_SLOT)?;
        handle.store((self.relocator.handle)(self.index) as u64);
        handle.second().store(self.relocator.entries.bind as u64);
        let bias = self.object.mapping.bias as u64;
        let constant = self.object.mapping.layout.relro;
        let is_constant = |vaddr| constant.is_some_and(|range| (range.start..range.end()).contains(&vaddr));
        for relocation in slots {
            match kind::kind(&relocation) {
                // A slot that is to become constant cannot be bound later.
                kind::R_X86_64_JUMP_SLOT if is_constant(relocation.r_offset) => {
                    self.apply_other(&relocation, kind::R_X86_64_JUMP_SLOT)?;
                }
                kind::R_X86_64_JUMP_SLOT => {
                    let Some(place) = self.places.at(relocation.r_offset, 8) else {
                        let kind = kind::R_X86_64_JUMP_SLOT;
                        return Err(Reason::RelocationTarget { kind, offset: relocation.r_offset });
                    };
                    place.store(place.load().wrapping_add(bias));
                }
                kind @ (kind::R_X86_64_IRELATIVE | kind::R_X86_64_TLSDESC) => self.apply_other(&relocation, kind)?,
                kind => return Err(Reason::PltRelocationType { kind }),
            }
        }
        Ok(())
    }
}

/// The addresses that a run of relative relocations writes to, from one of them on.
#[derive(Clone)]
struct RelativePlaces {
    relocations: Table<'static, Rela>,
    next: usize,
    bias: u64,
}

impl Iterator for RelativePlaces {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.nth(0)
    }

    fn nth(&mut self, count: usize) -> Option<usize> {
        let index = self.next.checked_add(count)?;
        let relocation = self.relocations.get(index).filter(|next| kind::kind(next) == kind::R_X86_64_RELATIVE)?;
        self.next = index.saturating_add(1);
        Some(relocation.r_offset.wrapping_add(self.bias) as usize)
    }
}

/// Where the hashes of an object's own definitions stand, if the first definition in the table of names is what its references
/// to them mean.
#[derive(Clone, Copy)]
struct Defined<'s> {
    names: &'s NameTable,
    numbering: Numbering,
    chains: Table<'static, u32>,
    offset: u32,
}

impl<'s> Defined<'s> {
    /// Only where no object looks in other scopes before the global one; what is found in the C library's objects may be
    /// substituted, for which its name is needed.
    fn new(
        relocator: &Relocator<'s>,
        index: ObjectIndex,
        object: &Object,
        dynamic: &Dynamic<'static>,
    ) -> Option<Defined<'s>> {
        let names = relocator.resolver.names?;
        let Hash::Gnu(table) = &dynamic.hash else { return None };
        let global_first = relocator.resolver.scopes.deep.is_empty();
        let suits = global_first && !object.is_system;
        let numbering = names.numbering(index).filter(|_| suits)?;
        Some(Defined { names, numbering, chains: table.chains, offset: table.symbol_offset })
    }

    /// Has the hash of a symbol fetched.
    #[inline(always)]
    fn prefetch(&self, number: u32) {
        self.chains.prefetch(number.wrapping_sub(self.offset) as usize);
    }

    /// The hash of a symbol's name, if the object defines it.
    #[inline(always)]
    fn hash(self, number: u32, own: &Sym) -> Option<(&'s NameTable, u32)> {
        if own.is_undefined() {
            return None;
        }
        Some((self.names, self.chains.get(number.checked_sub(self.offset)? as usize)?))
    }
}

/// What is added to the symbol's address: only R_X86_64_64 adds.
#[inline(always)]
fn addend(relocation: &Rela) -> i64 {
    if kind::kind(relocation) == kind::R_X86_64_64 { relocation.r_addend } else { 0 }
}
