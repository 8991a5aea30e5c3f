//! Lazy binding: the first call through a PLT slot finds the function, stores it, and goes there.

use crate::pins;
use crate::threads;
use crate::world::{Handle, Snapshot, World};
use crate::writer::{self, Bond};
use rtld_elf::relocation as kind;
use rtld_elf::{Rela, Sym, SymbolView};
use rtld_link::deferred::{is_code, is_executable};
use rtld_link::error::{Error, Reason};
use rtld_link::lookup::{Closure, Purpose};
use rtld_link::object::{Object, ObjectIndex};
use rtld_link::places::{Place, Places};
use rtld_link::relocate::{self, Target};
use rtld_link::text::Text;

/// What one look at the current snapshot gave.
enum Look {
    /// The function; it was stored.
    Bound(usize),
    /// A resolver must say; then its result goes to the slot.
    Ask { resolver: usize, place: Place, object: &'static Object, own: Sym },
    /// The definition is in an object that might be unloaded before the slot is: a bond comes first.
    Tie(ObjectIndex),
}

/// Binds slot number `slot` of the object with this handle; gives the function's address. `call_resolver` must keep
/// the caller's vector registers.
///
/// # Safety
/// `handle` must be what relocation stored into the object's GOT, and the object must be loaded.
pub unsafe fn bind(
    world: &World,
    handle: *const Handle,
    slot: usize,
    call_resolver: &dyn Fn(usize) -> usize,
) -> Result<usize, Error> {
    // SAFETY: the handle lives as long as its object (caller's promise); the index is never written again.
    let index = unsafe { (*handle).index };
    let mut tied = None;
    loop {
        match threads::read(world, |snapshot| look(world, snapshot, index, slot, tied))? {
            Look::Bound(address) => return Ok(address),
            Look::Tie(to) => {
                let bond = Bond { from: index, to };
                tied = writer::write(world, |state| state.bind(bond)).then_some(to);
            }
            Look::Ask { resolver, place, object, own } => {
                let result = call_resolver(resolver);
                let valid = result == 0 || threads::read(world, |snapshot| is_executable(&snapshot.objects, result));
                if !valid {
                    let name = Text::new(name_of(object, &own))?;
                    return Err(Reason::ResolverResult { name, result }.of(object.path.as_bytes()));
                }
                place.store(result as u64);
                return Ok(result);
            }
        }
    }
}

fn name_of(object: &Object, own: &Sym) -> &'static [u8] {
    let dynamic = object.dynamic.as_ref();
    dynamic.and_then(|dynamic| dynamic.strings.get(u64::from(own.st_name))).unwrap_or_default()
}

fn look(
    world: &World,
    snapshot: &Snapshot,
    index: ObjectIndex,
    slot: usize,
    tied: Option<ObjectIndex>,
) -> Result<Look, Error> {
    let Some(object) = snapshot.objects.get(index) else { return Ok(Look::Bound(0)) };
    let fail = |reason: Reason| reason.of(object.path.as_bytes());
    let missing = Reason::RelocationType { kind: kind::R_X86_64_JUMP_SLOT, offset: slot as u64 };
    let relocation = object.dynamic.as_ref().and_then(|dynamic| dynamic.plt_relocations.get(slot));
    let relocation = relocation.ok_or_else(|| fail(missing))?;
    look_for(world, snapshot, (index, object), &relocation, tied).map_err(fail)
}

fn look_for(
    world: &World,
    snapshot: &Snapshot,
    (index, object): (ObjectIndex, &'static Object),
    relocation: &Rela,
    tied: Option<ObjectIndex>,
) -> Result<Look, Reason> {
    let offset = relocation.r_offset;
    let number = kind::symbol(relocation);
    let own = object.dynamic.as_ref().and_then(|dynamic| dynamic.symbols.get(number));
    let own = own.ok_or(Reason::SymbolIndex { symbol: number, offset })?;
    let missing = Reason::RelocationTarget { kind: kind::R_X86_64_JUMP_SLOT, offset };
    let place = Places::find(object, offset, 8).ok_or(missing)?;
    let substitutes = &world.process.substitutes;
    let address = match relocate::target(&snapshot.resolver(), substitutes, index, number, &own, Purpose::Call)? {
        Target::Definition(definition) => {
            if tied != Some(definition.index) && needs_bond(snapshot, index, definition.index) {
                return Ok(Look::Tie(definition.index));
            }
            let address = definition.address();
            if definition.is_indirect() {
                if !is_executable(&snapshot.objects, address) {
                    return Err(Reason::ResolverOutside { address });
                }
                return Ok(Look::Ask { resolver: address, place, object, own });
            }
            if !is_code(definition.object, address) && !definition.symbol.is_absolute() {
                return Err(Reason::DefinitionOutside { name: Text::new(name_of(object, &own))?, address });
            }
            address
        }
        Target::Substitute(address) => address,
        Target::Nothing => 0,
    };
    place.store(address as u64);
    Ok(Look::Bound(address))
}

/// Whether something from one object may lead to another only after a bond was noted: not where the other one stays
/// anyway, nor where it is needed by the first.
pub(crate) fn needs_bond(snapshot: &Snapshot, from: ObjectIndex, to: ObjectIndex) -> bool {
    let needs = |closure: &&Closure| closure.root == from && closure.members.contains(&to);
    to != from
        && !pins::stays(snapshot.handle(to))
        && snapshot.needs.binary_search(&(from, to)).is_err()
        && !snapshot.scopes.closures.iter().any(needs)
}
