//! Symbol lookup: which definition a reference means. The rules are glibc's (do_lookup_x, check_match), since the
//! programs were linked and tested with those.
//!
//! A scope is searched object by object. Before an object's hash table is touched, its Bloom filter is asked; the
//! filters of a scope stand beside one another in one vector, because most questions end there.

use crate::fallible::{OutOfMemory, try_push};
use crate::name_table::NameTable;
use crate::object::{Object, ObjectIndex, ObjectTable, Version};
use alloc::vec::Vec;
use rtld_elf::pod::is_same_name;
use rtld_elf::symbol::{STV_HIDDEN, STV_INTERNAL, STV_PROTECTED, SymbolBinding, SymbolKind};
use rtld_elf::version::{VERSYM_HIDDEN, VERSYM_INDEX};
use rtld_elf::{Hash, Sym, SymbolView, Table, gnu_hash, sysv_hash};

/// What a reference is for; it decides which symbols count as definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The address itself: an undefined function that has a value (its entry in the program's PLT) counts.
    Address,
    /// A call or a thread-local offset: only real definitions count.
    Call,
    /// The source of a copy: the program, which holds the copy, does not count.
    Copy,
}

/// A version that a reference asks for.
#[derive(Clone, Copy, Debug)]
pub struct WantedVersion<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// SysV hash of the name.
    pub hash: u32,
    /// Only this very version will do, not an unversioned global (dlvsym).
    pub exact: bool,
}

impl<'a> WantedVersion<'a> {
    /// From an entry of the referring object's table; None where it stands for no version.
    pub fn of(version: Version) -> Option<WantedVersion<'a>> {
        (version.hash != 0).then_some(WantedVersion { name: version.name, hash: version.hash, exact: false })
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// The symbol's name.
    pub name: &'a [u8],
    /// GNU hash of the name.
    pub hash: u32,
    /// The version, if any.
    pub version: Option<WantedVersion<'a>>,
    /// What for.
    pub purpose: Purpose,
    /// Without a version: take the newest definition's default, as dlsym does, not the oldest.
    pub newest: bool,
}

impl<'a> Reference<'a> {
    /// A reference by name alone.
    pub fn to(name: &'a [u8], purpose: Purpose) -> Reference<'a> {
        Reference { name, hash: gnu_hash(name), version: None, purpose, newest: false }
    }
}

/// A definition that was found.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'s> {
    /// The object.
    pub object: &'s Object,
    /// Its place in load order.
    pub index: ObjectIndex,
    /// The symbol's number there.
    pub number: u32,
    /// The symbol.
    pub symbol: Sym,
}

impl Definition<'_> {
    /// Where it is. For an indirect function this is the resolver; for a thread-local symbol it means nothing.
    pub fn address(&self) -> usize {
        if self.symbol.is_absolute() {
            self.symbol.st_value as usize
        } else {
            self.object.address(self.symbol.st_value)
        }
    }

    /// Whether its address is given by calling a resolver.
    pub fn is_indirect(&self) -> bool {
        self.symbol.kind() == SymbolKind::IndirectFunction && !self.symbol.is_undefined()
    }

    /// Whether it names a thread-local variable.
    pub fn is_thread_local(&self) -> bool {
        self.symbol.kind() == SymbolKind::ThreadLocal
    }
}

/// One object of a scope, by its Bloom filter.
#[derive(Debug)]
struct Filter {
    words: Table<'static, u64>,
    mask: u32,
    shift: u32,
    object: ObjectIndex,
}

/// An order in which objects are searched.
#[derive(Debug, Default)]
pub struct Scope {
    filters: Vec<Filter>,
}

/// The filter of an object that has none: lets everything through.
static PASS: [u8; 8] = [0xff; 8];

impl Scope {
    /// The objects in this order; those without symbols are left out.
    pub fn new(objects: &ObjectTable, order: impl Iterator<Item = ObjectIndex>) -> Result<Scope, OutOfMemory> {
        let mut filters = Vec::new();
        for index in order {
            let Some(dynamic) = objects.get(index).and_then(|object| object.dynamic.as_ref()) else {
                continue;
            };
            let filter = match dynamic.hash {
                Hash::None => continue,
                Hash::Gnu(table) => {
                    Filter { words: table.bloom, mask: table.bloom_mask, shift: table.shift, object: index }
                }
                Hash::Sysv(_) => Filter { words: Table::from_bytes(&PASS), mask: 0, shift: 0, object: index },
            };
            try_push(&mut filters, filter)?;
        }
        Ok(Scope { filters })
    }

    /// Its objects in order, those without symbols left out.
    pub fn members(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.filters.iter().map(|filter| filter.object)
    }

    /// Whether an object is searched.
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.members().any(|member| member == object)
    }

    /// The first definition that `reference` may mean.
    pub fn find<'s>(&self, objects: &'s ObjectTable, reference: &Reference<'_>) -> Option<Definition<'s>> {
        let word_index = reference.hash / 64;
        let first_bit = reference.hash % 64;
        for filter in &self.filters {
            let Some(word) = filter.words.get((word_index & filter.mask) as usize) else {
                continue;
            };
            let second_bit = (reference.hash >> filter.shift) % 64;
            if (word >> first_bit) & (word >> second_bit) & 1 == 0 {
                continue;
            }
            if let Some(definition) = find_in(objects, filter.object, reference) {
                return Some(definition);
            }
        }
        None
    }
}

/// The definition of one object, if it has one for the reference.
pub fn find_in<'s>(objects: &'s ObjectTable, index: ObjectIndex, reference: &Reference<'_>) -> Option<Definition<'s>> {
    let object = objects.get(index)?;
    let dynamic = object.dynamic.as_ref()?;
    if reference.purpose == Purpose::Copy && object.role == crate::object::Role::Program {
        return None;
    }
    // Without a version an unversioned name may mean the only versioned definition there is.
    let mut only: Option<(u32, Sym)> = None;
    let mut several = false;
    let mut consider = |number: u32| -> Option<Definition<'s>> {
        let symbol = dynamic.symbols.get(number)?;
        if !is_candidate(&symbol, reference.purpose) || !dynamic.strings.equals(symbol.st_name, reference.name) {
            return None;
        }
        match match_version(object, number, reference) {
            Match::Yes if is_visible(&symbol) => Some(Definition { object, index, number, symbol }),
            Match::OnlyIfAlone => {
                several |= only.is_some();
                only = only.or(Some((number, symbol)));
                None
            }
            _ => None,
        }
    };
    let found = match &dynamic.hash {
        Hash::Gnu(table) => table.candidates(reference.hash).find_map(&mut consider),
        Hash::Sysv(table) => table.candidates(sysv_hash(reference.name)).find_map(&mut consider),
        Hash::None => None,
    };
    let alone = only.filter(|(_, symbol)| !several && is_visible(symbol));
    found.or(alone.map(|(number, symbol)| Definition { object, index, number, symbol }))
}

/// Whether a symbol of the right name is what a walk over its object would end with when it comes to it.
#[inline]
pub(crate) fn is_plain_match(object: &Object, number: u32, symbol: &Sym, reference: &Reference<'_>) -> bool {
    is_candidate(symbol, reference.purpose)
        && matches!(match_version(object, number, reference), Match::Yes)
        && is_visible(symbol)
}

/// Whether a symbol is what its own object's references to it mean, if no object before has the name.
#[inline]
pub(crate) fn suits_itself(object: &Object, number: u32, symbol: &Sym, purpose: Purpose) -> bool {
    let versions = object.dynamic.as_ref().map(|dynamic| &dynamic.versions);
    let fits = match versions.and_then(|versions| versions.symbol_version(number)) {
        // It asks for the version that it has itself.
        Some(versym) => versym & VERSYM_INDEX < FIRST_VERSION || object.version(versym).hash != 0,
        None => true,
    };
    fits && is_candidate(symbol, purpose) && is_visible(symbol)
}

/// Whether a symbol can be a definition at all.
#[inline]
fn is_candidate(symbol: &Sym, purpose: Purpose) -> bool {
    let kind = symbol.kind();
    if symbol.st_value == 0 && !symbol.is_absolute() && kind != SymbolKind::ThreadLocal {
        return false;
    }
    // An undefined function with a value is its PLT entry in a fixed program: good as an address, not as a target.
    if symbol.is_undefined() && purpose != Purpose::Address {
        return false;
    }
    !matches!(kind, SymbolKind::Other(_))
}

/// Local, hidden and internal symbols are in the table by accident; they define nothing for others.
fn is_visible(symbol: &Sym) -> bool {
    let global = matches!(symbol.binding(), SymbolBinding::Global | SymbolBinding::Weak | SymbolBinding::Unique);
    global && !matches!(symbol.visibility(), STV_HIDDEN | STV_INTERNAL)
}

/// Indexes of versions below this one are the unversioned base.
const FIRST_VERSION: u16 = 3;

enum Match {
    Yes,
    OnlyIfAlone,
    No,
}

fn match_version(object: &Object, number: u32, reference: &Reference<'_>) -> Match {
    let versym = object.dynamic.as_ref().and_then(|dynamic| dynamic.versions.symbol_version(number));
    let Some(versym) = versym else {
        // An object without versions defines every version.
        return Match::Yes;
    };
    let hidden = versym & VERSYM_HIDDEN != 0;
    match reference.version {
        Some(wanted) => {
            let own = object.version(versym);
            if own.hash == wanted.hash && is_same_name(own.name, wanted.name) {
                return Match::Yes;
            }
            // A definition that belongs to no version serves everybody, unless exactly this version was asked for.
            if own.hash == 0 && !hidden && !wanted.exact { Match::Yes } else { Match::No }
        }
        None => {
            // dlsym also counts the oldest version as a version.
            let first_version = if reference.newest { FIRST_VERSION - 1 } else { FIRST_VERSION };
            match versym & VERSYM_INDEX {
                index if index < first_version => Match::Yes,
                _ if hidden => Match::No,
                _ => Match::OnlyIfAlone,
            }
        }
    }
}

/// An object that was opened, and what it needs: the order in which its symbols are looked for.
#[derive(Debug)]
pub struct Closure {
    /// The object.
    pub root: ObjectIndex,
    /// It and what it needs, breadth first.
    pub members: Vec<ObjectIndex>,
    /// The same as a scope.
    pub scope: Scope,
}

/// Where the objects of a process look for symbols.
#[derive(Debug, Default)]
pub struct Scopes {
    /// The program, its libraries, and what was opened for all.
    pub global: Scope,
    /// What was opened, in the order of opening. Whoever makes the scopes keeps them as long as the scopes are read.
    pub closures: Vec<&'static Closure>,
    /// Roots whose closures come before the global scope for their members (RTLD_DEEPBIND).
    pub deep: Vec<ObjectIndex>,
}

impl Scopes {
    /// The closure of a root.
    pub fn closure(&self, root: ObjectIndex) -> Option<&Closure> {
        self.closures.iter().copied().find(|closure| closure.root == root)
    }

    /// The closures that an object is a member of, without the program's, all of which is in the global scope.
    fn containing(&self, member: ObjectIndex) -> impl Iterator<Item = &'static Closure> {
        let others = self.closures.iter().copied().filter(|closure| closure.root != ObjectIndex(0));
        others.filter(move |closure| closure.members.contains(&member))
    }
}

/// How the objects of a process look their references up.
#[derive(Clone, Copy, Debug)]
pub struct Resolver<'s> {
    /// All objects.
    pub objects: &'s ObjectTable,
    /// Where they look.
    pub scopes: &'s Scopes,
    /// The names of the global scope, where there is a table of them.
    pub names: Option<&'s NameTable>,
}

impl<'s> Resolver<'s> {
    /// The first definition in the global scope.
    #[inline]
    fn find_global(&self, reference: &Reference<'_>) -> Option<Definition<'s>> {
        match self.names {
            Some(names) => names.find(reference, self.objects),
            None => self.scopes.global.find(self.objects, reference),
        }
    }

    /// The definition that a reference from an object means by its scopes: the global one, then those of what was opened
    /// and holds the object; the other way round for what was opened, and loaded thereby, with RTLD_DEEPBIND.
    pub fn find(&self, from: ObjectIndex, reference: &Reference<'_>) -> Option<Definition<'s>> {
        if self.scopes.deep.is_empty()
            && let Some(found) = self.find_global(reference)
        {
            // What the global scope has first is also the only unique one that counts.
            return Some(found);
        }
        let global = || self.find_global(reference);
        let in_closure = |closure: &Closure| closure.scope.find(self.objects, reference);
        // What was loaded before the root keeps looking at the global scope first.
        let is_deep = |root: ObjectIndex| from >= root && self.scopes.deep.contains(&root);
        if self.scopes.deep.is_empty() {
            let found = self.scopes.containing(from).find_map(in_closure)?;
            return Some(self.only_one(found, reference));
        }
        let local = |deep: bool| {
            self.scopes.containing(from).filter(|closure| is_deep(closure.root) == deep).find_map(in_closure)
        };
        let found = local(true).or_else(global).or_else(|| local(false))?;
        Some(self.only_one(found, reference))
    }

    /// The definition that a reference from `from` means: the object's own first if it is symbolic, then its scopes.
    /// Copies look in all objects but the program.
    /// `own` is the symbol of the reference itself, number `number` in `from`.
    pub fn resolve(
        &self,
        from: ObjectIndex,
        number: u32,
        own: &Sym,
        reference: &Reference<'_>,
    ) -> Option<Definition<'s>> {
        let object = self.objects.get(from)?;
        if self.is_symbolic(object)
            && let Some(definition) = find_in(self.objects, from, reference)
        {
            return Some(self.only_one(definition, reference));
        }
        let found = self.find(from, reference);
        if own.visibility() != STV_PROTECTED {
            return found;
        }
        self.protect(found, Definition { object, index: from, number, symbol: *own }, reference)
    }

    /// A unique symbol has one address in the process: that of the first unique definition in load order, also for an
    /// object that prefers its own or cannot see the first one. What the global scope gives is that already.
    fn only_one(&self, found: Definition<'s>, reference: &Reference<'_>) -> Definition<'s> {
        if found.symbol.binding() != SymbolBinding::Unique
            || self.find_global(reference).is_some_and(|first| first.index == found.index)
        {
            return found;
        }
        let mut all = self.objects.iter().filter_map(|(index, _)| find_in(self.objects, index, reference));
        all.find(|first| first.symbol.binding() == SymbolBinding::Unique).unwrap_or(found)
    }

    fn is_symbolic(&self, object: &Object) -> bool {
        use rtld_elf::dynamic::Flags;
        object.dynamic.as_ref().is_some_and(|dynamic| dynamic.flags.contains(Flags::SYMBOLIC))
    }

    /// A protected symbol means the object's own definition, except that its address may be the PLT entry that a
    /// fixed program made for it, so that function pointers compare equal.
    fn protect(
        &self,
        found: Option<Definition<'s>>,
        own: Definition<'s>,
        reference: &Reference<'_>,
    ) -> Option<Definition<'s>> {
        let definition = found?;
        if definition.index == own.index {
            return Some(definition);
        }
        if reference.purpose == Purpose::Call {
            return Some(own);
        }
        let call = Reference { purpose: Purpose::Call, ..*reference };
        match self.find(own.index, &call) {
            Some(real) if real.index != own.index => Some(own),
            _ => Some(definition),
        }
    }
}
