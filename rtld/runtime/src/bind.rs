//! Lazy binding: the first call through a PLT slot finds the function, stores it, and goes there.

use crate::world::{Handle, World};
use rtld_elf::relocation as kind;
use rtld_elf::{Rela, SymbolView};
use rtld_link::deferred::{is_code, is_executable};
use rtld_link::error::{Error, Reason};
use rtld_link::lookup::Purpose;
use rtld_link::object::Object;
use rtld_link::places::Places;
use rtld_link::relocate::{self, Target};
use rtld_link::text::Text;

/// Binds slot number `slot` of the object with this handle; gives the function's address. `call_resolver` must keep
/// the caller's vector registers.
///
/// # Safety
/// `handle` must be what start-up stored into the object's GOT.
pub unsafe fn bind(
    world: &World,
    handle: *const Handle,
    slot: usize,
    call_resolver: &dyn Fn(usize) -> usize,
) -> Result<usize, Error> {
    // SAFETY: handles are never freed (caller's promise that it is one); the index is never written again.
    let index = unsafe { (*handle).index };
    let Some(object) = world.objects.get(index) else {
        return Ok(0);
    };
    let fail = |reason: Reason| reason.of(object.path.as_bytes());
    let missing = Reason::RelocationType { kind: kind::R_X86_64_JUMP_SLOT, offset: slot as u64 };
    let relocation = object.dynamic.as_ref().and_then(|dynamic| dynamic.plt_relocations.get(slot));
    let relocation = relocation.ok_or_else(|| fail(missing))?;
    find_and_store(world, index, object, &relocation, call_resolver).map_err(fail)
}

fn find_and_store(
    world: &World,
    index: rtld_link::object::ObjectIndex,
    object: &Object,
    relocation: &Rela,
    call_resolver: &dyn Fn(usize) -> usize,
) -> Result<usize, Reason> {
    let offset = relocation.r_offset;
    let number = kind::symbol(relocation);
    let own = object.dynamic.as_ref().and_then(|dynamic| dynamic.symbols.get(number));
    let own = own.ok_or(Reason::SymbolIndex { symbol: number, offset })?;
    let target = relocate::target(&world.resolver(), &world.substitutes, index, number, &own, Purpose::Call)?;
    let address = match target {
        Target::Definition(definition) if definition.is_indirect() => {
            let resolver = definition.address();
            if !is_executable(&world.objects, resolver) {
                return Err(Reason::ResolverOutside { address: resolver });
            }
            let result = call_resolver(resolver);
            if result != 0 && !is_executable(&world.objects, result) {
                let name = object.dynamic.as_ref().and_then(|dynamic| dynamic.strings.get(u64::from(own.st_name)));
                return Err(Reason::ResolverResult { name: Text::new(name.unwrap_or_default())?, result });
            }
            result
        }
        Target::Definition(definition) => {
            let address = definition.address();
            if !is_code(definition.object, address) && !definition.symbol.is_absolute() {
                let name = object.dynamic.as_ref().and_then(|dynamic| dynamic.strings.get(u64::from(own.st_name)));
                return Err(Reason::DefinitionOutside { name: Text::new(name.unwrap_or_default())?, address });
            }
            address
        }
        Target::Substitute(address) => address,
        Target::Nothing => 0,
    };
    let missing = Reason::RelocationTarget { kind: kind::R_X86_64_JUMP_SLOT, offset };
    let place = Places::new(object, false)?.at(offset, 8).ok_or(missing)?;
    place.store(address as u64);
    Ok(address)
}
