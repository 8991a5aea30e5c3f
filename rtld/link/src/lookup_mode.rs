//! How names are looked up while objects are relocated: by walking the scope, or by a table of all names made for the purpose.
//! The answers are the same; which is faster depends on how much there is to look up.

use crate::lookup::Scopes;
use crate::name_table::{self, NameTable};
use crate::object::{ObjectIndex, ObjectTable};
use crate::relocate::Binding;
use rtld_elf::Dynamic;

/// What is wished for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LookupMode {
    /// The faster, by [`Lookup::choose`]'s rule.
    #[default]
    Auto,
    /// Always the walk.
    Scope,
    /// Always the table.
    Table,
}

impl LookupMode {
    /// By its name.
    pub fn from_name(name: &[u8]) -> Option<LookupMode> {
        [LookupMode::Auto, LookupMode::Scope, LookupMode::Table].into_iter().find(|mode| mode.name().as_bytes() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            LookupMode::Auto => "auto",
            LookupMode::Scope => "scope",
            LookupMode::Table => "table",
        }
    }
}

/// Objects fewer than these are walked through faster than a table is made, however many references there are.
const FEW_OBJECTS: usize = 12;

/// How many definitions are entered into the table in the time in which a walk passes this many objects by (measured:
/// docs/performance.md).
const PASSED_OBJECTS: usize = 6;

/// What was chosen for one relocation of a set of objects.
#[derive(Debug)]
pub struct Lookup {
    names: Option<NameTable>,
    /// How many objects are searched.
    pub objects: usize,
    /// At most so many references are looked up.
    pub references: usize,
    /// How many definitions the objects have; None where nobody had to know.
    pub definitions: Option<usize>,
}

impl Lookup {
    /// Chooses for the relocation of the objects in `relocated`.
    ///
    /// A reference passes half of the objects by until it is found; each costs a test of its Bloom filter. The table costs
    /// one step for each definition of all objects. What is found at the end costs both the same.
    pub fn choose(
        mode: LookupMode,
        objects: &ObjectTable,
        scopes: &Scopes,
        binding: Binding,
        relocated: impl Iterator<Item = ObjectIndex>,
    ) -> Lookup {
        let scope = &scopes.global;
        let dynamic = |index| objects.get(index).and_then(|object| object.dynamic.as_ref());
        let references = relocated.filter_map(dynamic).map(|dynamic| references(dynamic, binding)).sum::<usize>();
        let mut lookup = Lookup { names: None, objects: scope.members().count(), references, definitions: None };
        let passed = references.saturating_mul(lookup.objects / 2);
        let many = lookup.objects >= FEW_OBJECTS && passed / PASSED_OBJECTS >= references;
        if mode == LookupMode::Scope || mode == LookupMode::Auto && !many {
            return lookup;
        }
        let definitions = name_table::definitions(objects, scope);
        lookup.definitions = Some(definitions);
        if mode == LookupMode::Table || passed / PASSED_OBJECTS > definitions {
            lookup.names = NameTable::new(objects, scope, definitions);
        }
        lookup
    }

    /// The table, if there is one.
    pub fn names(&self) -> Option<&NameTable> {
        self.names.as_ref()
    }

    /// What is done.
    pub fn mode(&self) -> LookupMode {
        if self.names.is_some() { LookupMode::Table } else { LookupMode::Scope }
    }
}

/// At most so many symbols of an object are looked up: its relocations with symbols, and no symbol is looked up twice but
/// for its call and its address.
fn references(dynamic: &Dynamic<'static>, binding: Binding) -> usize {
    let now = binding == Binding::Now || dynamic.binds_now();
    let calls = if now { dynamic.plt_relocations.len() } else { 0 };
    let addresses = dynamic.relocations.len() - dynamic.relative_count;
    addresses.min(dynamic.hash.symbol_count() as usize).saturating_add(calls)
}
