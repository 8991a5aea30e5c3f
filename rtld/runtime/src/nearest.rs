//! `dladdr`(3): the object and the symbol that an address belongs to.

use crate::world::{Snapshot, World};
use rtld_elf::symbol::SymbolKind;
use rtld_elf::{Sym, SymbolView};
use rtld_link::object::{Object, ObjectIndex};

/// `Dl_info` of <dlfcn.h>.
#[repr(C)]
#[derive(Debug)]
pub struct Information {
    /// dli_fname: the object's path.
    pub file_name: usize,
    /// dli_fbase: where its first page is.
    pub file_base: usize,
    /// dli_sname: the symbol's name, null for none.
    pub symbol_name: usize,
    /// dli_saddr: the symbol's address, null for none.
    pub symbol_address: usize,
}

/// The symbol of an object that holds an address, and its number.
pub fn nearest_symbol(object: &Object, address: usize) -> Option<(u32, Sym)> {
    let dynamic = object.dynamic.as_ref()?;
    let wanted = address.wrapping_sub(object.mapping.bias) as u64;
    let holds = |symbol: &Sym| {
        let inside = wanted.checked_sub(symbol.st_value);
        let sized = inside.is_some_and(|inside| inside < symbol.st_size);
        sized || symbol.st_size == 0 && inside == Some(0)
    };
    let named = |symbol: &Sym| {
        !symbol.is_undefined()
            && !symbol.is_absolute()
            && symbol.st_value != 0
            && symbol.kind() != SymbolKind::ThreadLocal
    };
    let numbered = (0..dynamic.hash.symbol_count()).filter_map(|number| Some((number, dynamic.symbols.get(number)?)));
    let fitting = numbered.filter(|(_, symbol)| named(symbol) && holds(symbol));
    // Of several names for one place the first counts.
    fitting.reduce(|best, other| if other.1.st_value > best.1.st_value { other } else { best })
}

/// What is known about an address; None if it is in no object.
pub fn describe(world: &World, snapshot: &Snapshot, address: usize) -> Option<(ObjectIndex, Information)> {
    let index = snapshot.object_at(address)?;
    let object = snapshot.objects.get(index)?;
    let name = if index.position() == 0 { world.process.program_name } else { object.path.as_c_str() };
    let mut information = Information {
        file_name: name.as_ptr().expose_provenance(),
        file_base: object.mapping.start,
        symbol_name: 0,
        symbol_address: 0,
    };
    if let Some((_, symbol)) = nearest_symbol(object, address) {
        let dynamic = object.dynamic.as_ref();
        let name = dynamic.and_then(|dynamic| dynamic.strings.get(u64::from(symbol.st_name)));
        information.symbol_name = name.map_or(0, |name| name.as_ptr().expose_provenance());
        information.symbol_address = object.address(symbol.st_value);
    }
    Some((index, information))
}
