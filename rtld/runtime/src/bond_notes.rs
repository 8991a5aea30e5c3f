//! What relocation at run time finds out about who is bound to whom. Owns the notes; what becomes of them is `writer`'s.

use crate::pins;
use crate::world::Snapshot;
use crate::writer::Bond;
use alloc::vec::Vec;
use core::cell::RefCell;
use rtld_elf::SymbolView;
use rtld_elf::symbol::SymbolBinding;
use rtld_link::fallible::{OutOfMemory, try_push};
use rtld_link::lookup::Definition;
use rtld_link::object::ObjectIndex;
use rtld_link::relocate::Notes;

/// Takes note of bindings that keep objects loaded.
pub(crate) struct BondNotes<'a> {
    snapshot: &'a Snapshot,
    first_later: ObjectIndex,
    bonds: RefCell<(Vec<Bond>, bool)>,
}

impl<'a> BondNotes<'a> {
    /// Nothing noted yet. Objects from `first_later` on may be unloaded.
    pub(crate) fn new(snapshot: &'a Snapshot, first_later: ObjectIndex) -> BondNotes<'a> {
        BondNotes { snapshot, first_later, bonds: RefCell::new((Vec::new(), false)) }
    }

    /// What was noted; an error if there was no memory for some of it.
    pub(crate) fn into_bonds(self) -> Result<Vec<Bond>, OutOfMemory> {
        let (bonds, out_of_memory) = self.bonds.into_inner();
        if out_of_memory { Err(OutOfMemory) } else { Ok(bonds) }
    }
}

impl Notes for BondNotes<'_> {
    fn copy_size(&self, _: &[u8]) {}

    fn bound(&self, from: ObjectIndex, definition: &Definition<'_>) {
        let to = definition.index;
        if to < self.first_later {
            return;
        }
        if definition.symbol.binding() == SymbolBinding::Unique {
            // Whoever was bound to it must find it at the same address for ever.
            pins::keep(self.snapshot.handle(to));
        }
        if to == from {
            return;
        }
        let bond = Bond { from, to };
        let Ok(mut bonds) = self.bonds.try_borrow_mut() else { return };
        if !bonds.0.contains(&bond) && try_push(&mut bonds.0, bond).is_err() {
            bonds.1 = true;
        }
    }
}
