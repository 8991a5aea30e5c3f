//! Slots whose values are computed by code of the objects themselves: resolvers of indirect functions. They run last,
//! when everything that they may use is in place, and their results go also to wherever the slot was copied before.

use crate::error::{Error, Reason};
use crate::map::Pages;
use crate::object::{Object, ObjectIndex, ObjectTable};
use crate::places::Place;
use crate::protect::{close_text, open_text};
use crate::static_tls::Module;
use crate::text::Text;
use goblin::elf64::program_header::PF_X;
use rtld_elf::segments;

/// A slot that waits for a resolver.
#[derive(Clone, Copy, Debug)]
pub struct Deferred {
    /// The object that holds the slot.
    pub object: ObjectIndex,
    /// The slot.
    pub place: Place,
    /// The resolver.
    pub resolver: usize,
    /// What is added to the resolver's result.
    pub addend: i64,
    /// The symbol in the object, 0 for none.
    pub symbol: u32,
    /// The slot may lie in a segment that is not writable now.
    pub in_text: bool,
}

/// Data of a library that the program copied.
#[derive(Clone, Copy, Debug)]
pub struct CopiedRange {
    /// Where it was.
    pub from: usize,
    /// Where it is.
    pub to: usize,
    /// Bytes.
    pub size: usize,
}

/// What is needed to run resolvers.
pub struct Resolvers<'s> {
    /// All objects.
    pub objects: &'s ObjectTable,
    /// Copies made so far.
    pub copies: &'s [CopiedRange],
    /// Static modules, whose images may hold slots and were copied into the thread's blocks already.
    pub modules: &'s [Module],
    /// The thread whose blocks were filled from the images already.
    pub thread_pointer: usize,
    /// Pages.
    pub pages: Pages,
    /// Calls a resolver.
    pub call: &'s dyn Fn(usize) -> usize,
}

impl Resolvers<'_> {
    /// Runs the resolver of one slot and stores the result.
    pub fn run(&self, deferred: &Deferred) -> Result<(), Error> {
        let Some(object) = self.objects.get(deferred.object) else {
            return Ok(());
        };
        let fail = |reason: Reason| reason.of(object.path.as_bytes());
        let result = self.resolve(deferred).map_err(fail)?;
        let value = (result as u64).wrapping_add_signed(deferred.addend);
        if deferred.in_text {
            open_text(object, self.pages).map_err(fail)?;
        }
        deferred.place.store(value);
        if deferred.in_text {
            close_text(object, self.pages).map_err(fail)?;
        }
        self.store_in_copies(deferred.place.address(), value);
        Ok(())
    }

    fn resolve(&self, deferred: &Deferred) -> Result<usize, Reason> {
        if !is_executable(self.objects, deferred.resolver) {
            return Err(Reason::ResolverOutside { address: deferred.resolver });
        }
        let result = (self.call)(deferred.resolver);
        // A null result is a function that is not there; its caller finds out as with any null pointer.
        if result != 0 && !is_executable(self.objects, result) {
            return Err(Reason::ResolverResult { name: self.name(deferred)?, result });
        }
        Ok(result)
    }

    fn name(&self, deferred: &Deferred) -> Result<Text, Reason> {
        let dynamic = self.objects.get(deferred.object).and_then(|object| object.dynamic.as_ref());
        let symbol = dynamic.filter(|_| deferred.symbol != 0).and_then(|dynamic| {
            let symbol = dynamic.symbols.get(deferred.symbol)?;
            dynamic.strings.get(u64::from(symbol.st_name))
        });
        Ok(Text::new(symbol.unwrap_or_default())?)
    }

    fn store_in_copies(&self, address: usize, value: u64) {
        for copy in self.copies {
            if let Some(inside) = word_inside(address, copy.from, copy.size) {
                store(copy.to.wrapping_add(inside), value);
            }
        }
        for module in self.modules {
            if let Some(inside) = word_inside(address, module.image, module.segment.filesz as usize) {
                store(self.thread_pointer.wrapping_sub(module.offset).wrapping_add(inside), value);
            }
        }
    }
}

/// The distance of a word from the start of a range that holds all of it.
fn word_inside(address: usize, start: usize, size: usize) -> Option<usize> {
    let inside = address.checked_sub(start)?;
    (inside.checked_add(8)? <= size).then_some(inside)
}

fn store(address: usize, value: u64) {
    let word = core::ptr::with_exposed_provenance_mut::<u64>(address);
    // SAFETY: the word lies inside a copy that was made earlier, at the place of the slot in the original.
    unsafe { word.write_unaligned(value) };
}

/// Whether an address lies in an executable segment of some object.
pub fn is_executable(objects: &ObjectTable, address: usize) -> bool {
    objects.iter().any(|(_, object)| object.mapping.spans(address) && is_code(object, address))
}

/// Whether an address lies in an executable segment of this object.
pub fn is_code(object: &Object, address: usize) -> bool {
    segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_X != 0).any(|load| {
        let start = object.address(load.p_vaddr);
        (start..start.wrapping_add(load.p_memsz as usize)).contains(&address)
    })
}
