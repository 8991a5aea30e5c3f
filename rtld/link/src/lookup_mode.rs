//! How names are looked up while objects are relocated: by walking the scope, or by a table of all names made for the purpose.
//! The answers are the same; which is faster depends on how much there is to look up.

use crate::lookup::Scopes;
use crate::map::Pages;
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

/// How many definitions are entered into the table in the time in which a walk passes this many objects by (measured:
/// docs/performance.md).
const PASSED_OBJECTS: usize = 2;

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
        pages: Pages,
        relocated: impl Iterator<Item = ObjectIndex> + Clone,
    ) -> Lookup {
        let scope = &scopes.global;
        let dynamic = |index| objects.get(index).and_then(|object| object.dynamic.as_ref());
        let searched = scope.members().count();
        let is_worth = |references: usize, definitions: usize| {
            references.saturating_mul(searched / 2) / PASSED_OBJECTS > definitions
        };
        let relocated = relocated.filter_map(dynamic);
        // What costs little to know decides most: neither counted exactly, nor are the tables that are counted touched.
        let most = relocated.clone().map(|dynamic| most_references(dynamic, binding)).sum();
        let least = scope.members().filter_map(dynamic).map(name_table::fewest_definitions).sum();
        let mut lookup = Lookup { names: None, objects: searched, references: most, definitions: None };
        if mode == LookupMode::Scope || mode == LookupMode::Auto && !is_worth(most, least) {
            return lookup;
        }
        lookup.references = relocated.map(|dynamic| references(dynamic, binding)).sum();
        let definitions = name_table::definitions(objects, scope);
        lookup.definitions = Some(definitions);
        if mode == LookupMode::Table || is_worth(lookup.references, definitions) {
            lookup.names = NameTable::new(objects, scope, definitions, pages.are_of_start());
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

/// So many relocations of an object have symbols, at the most: those of its data, and those of its calls that are bound now.
fn relocations_with_symbols(dynamic: &Dynamic<'static>, binding: Binding) -> (usize, usize) {
    let now = binding == Binding::Now || dynamic.binds_now();
    let calls = if now { dynamic.plt_relocations.len() } else { 0 };
    (dynamic.relocations.len() - dynamic.relative_count, calls)
}

fn most_references(dynamic: &Dynamic<'static>, binding: Binding) -> usize {
    let (addresses, calls) = relocations_with_symbols(dynamic, binding);
    addresses.saturating_add(calls)
}

/// At most so many symbols of an object are looked up: no symbol is looked up twice but for its call and its address.
fn references(dynamic: &Dynamic<'static>, binding: Binding) -> usize {
    let (addresses, calls) = relocations_with_symbols(dynamic, binding);
    addresses.min(dynamic.hash.symbol_count() as usize).saturating_add(calls)
}
