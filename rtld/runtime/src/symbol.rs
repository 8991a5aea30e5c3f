//! `dlsym`(3) and `dlvsym`: the address of a symbol by name, as a handle or the caller's place says.

use crate::bind::needs_bond;
use crate::thread_local::{self, Reference as TlsReference};
use crate::threads;
use crate::world::{Handle, Snapshot, World};
use crate::writer::{self, Bond};
use core::fmt;
use rtld_elf::{gnu_hash, sysv_hash};
use rtld_link::lookup::{Definition, Purpose, Reference, WantedVersion, find_in};
use rtld_link::object::ObjectIndex;
use rtld_link::text::{Bytes, Text};

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    /// RTLD_DEFAULT: as the caller's own references do.
    Default,
    /// RTLD_NEXT: behind the caller.
    Next,
    /// The closure of a handle.
    Handle(*const Handle),
}

/// Why there is no address.
#[derive(Debug)]
pub enum Failure {
    /// The handle is none.
    BadHandle,
    /// RTLD_NEXT from code that is in no object.
    NoCaller,
    /// No definition.
    Undefined {
        /// The object that was asked, or that asks.
        object: Text,
        /// The symbol.
        name: Text,
        /// The version; empty for none.
        version: Text,
    },
    /// No memory.
    OutOfMemory,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BadHandle => f.write_str("invalid handle"),
            Failure::NoCaller => f.write_str("RTLD_NEXT used in code not dynamically loaded"),
            Failure::Undefined { object, name, version } => {
                write!(f, "{object}: undefined symbol: {name}")?;
                if version.is_empty() { Ok(()) } else { write!(f, ", version {version}") }
            }
            Failure::OutOfMemory => f.write_str("cannot allocate memory"),
        }
    }
}

/// What was found, before anything foreign is asked.
enum Found {
    Address(usize),
    Resolver(usize),
    ThreadLocal(TlsReference),
    /// The caller keeps the address, and nobody will tell when it is done with it: a bond comes first.
    Tie(Bond),
}

/// The address of `name` (in `version`, if given) for the code at `caller`.
pub fn find(
    world: &World,
    place: Where,
    name: &[u8],
    version: Option<&[u8]>,
    caller: usize,
    call_resolver: &dyn Fn(usize) -> usize,
) -> Result<usize, Failure> {
    let wanted = version.map(|name| WantedVersion { name, hash: sysv_hash(name), exact: true });
    let newest = version.is_none();
    let reference = Reference { name, hash: gnu_hash(name), version: wanted, purpose: Purpose::Address, newest };
    let mut tied = None;
    loop {
        match threads::read(world, |snapshot| look(world, snapshot, place, &reference, caller, tied))? {
            Found::Address(address) => return Ok(address),
            Found::Resolver(resolver) => return Ok(call_resolver(resolver)),
            Found::ThreadLocal(variable) => {
                return thread_local::address(world, variable).ok_or(Failure::OutOfMemory);
            }
            Found::Tie(bond) => tied = writer::write(world, |state| state.bind(bond)).then_some(bond.to),
        }
    }
}

fn look(
    world: &World,
    snapshot: &Snapshot,
    place: Where,
    reference: &Reference<'_>,
    caller: usize,
    tied: Option<ObjectIndex>,
) -> Result<Found, Failure> {
    let from = snapshot.object_at(caller);
    let (asked, definition) = match place {
        Where::Default => {
            let from = from.unwrap_or(ObjectIndex(0));
            (from, snapshot.resolver().find(from, reference))
        }
        Where::Next => {
            let from = from.ok_or(Failure::NoCaller)?;
            (from, next(snapshot, from, reference))
        }
        Where::Handle(handle) => {
            let root = snapshot.index_of(handle).ok_or(Failure::BadHandle)?;
            (root, in_closure(snapshot, root, reference).ok_or(Failure::BadHandle)?)
        }
    };
    let Some(definition) = definition else { return Err(undefined(world, snapshot, asked, reference)) };
    let to = definition.index;
    if !matches!(place, Where::Handle(_)) && tied != Some(to) && needs_bond(snapshot, asked, to) {
        return Ok(Found::Tie(Bond { from: asked, to }));
    }
    if definition.object.is_system
        && let Some(address) = world.process.substitutes.address(reference.name, reference.hash)
    {
        return Ok(Found::Address(address));
    }
    Ok(if definition.is_thread_local() {
        let module = snapshot.tls.id(definition.index);
        Found::ThreadLocal(TlsReference { module, offset: definition.symbol.st_value as usize })
    } else if definition.is_indirect() {
        Found::Resolver(definition.address())
    } else {
        Found::Address(definition.address())
    })
}

/// A definition in what a handle opens; None for an object that was not opened. The program's handle means the global
/// scope.
fn in_closure<'s>(
    snapshot: &'s Snapshot,
    root: ObjectIndex,
    reference: &Reference<'_>,
) -> Option<Option<Definition<'s>>> {
    if root.position() == 0 {
        return Some(snapshot.scopes.global.find(&snapshot.objects, reference));
    }
    let closure = snapshot.scopes.closure(root)?;
    Some(closure.scope.find(&snapshot.objects, reference))
}

/// The next definition behind an object, in the order of the scope it was loaded into: the global one at start, later that
/// of the first opened object that brought it in, also where it was opened for all.
fn next<'s>(snapshot: &'s Snapshot, from: ObjectIndex, reference: &Reference<'_>) -> Option<Definition<'s>> {
    let scopes = &snapshot.scopes;
    if from < snapshot.first_later {
        return behind(snapshot, from, scopes.global.members(), reference);
    }
    let holding = scopes.closures.iter().find(|closure| closure.members.contains(&from))?;
    behind(snapshot, from, holding.members.iter().copied(), reference)
}

fn behind<'s>(
    snapshot: &'s Snapshot,
    from: ObjectIndex,
    mut members: impl Iterator<Item = ObjectIndex>,
    reference: &Reference<'_>,
) -> Option<Definition<'s>> {
    members.find(|&index| index == from)?;
    members.find_map(|index| find_in(&snapshot.objects, index, reference))
}

fn undefined(world: &World, snapshot: &Snapshot, asked: ObjectIndex, reference: &Reference<'_>) -> Failure {
    let object = snapshot.objects.get(asked).map_or(&b""[..], |object| object.path.as_bytes());
    let object = if object.is_empty() { world.process.program_name.to_bytes() } else { object };
    let version = reference.version.map_or(&b""[..], |version| version.name);
    match (Text::new(object), Text::new(reference.name), Text::new(version)) {
        (Ok(object), Ok(name), Ok(version)) => Failure::Undefined { object, name, version },
        _ => Failure::OutOfMemory,
    }
}

/// The symbol entry of a name in what a handle opens, for the C library's own lookups: the object and where its entry
/// is in memory.
pub fn entry(snapshot: &Snapshot, root: ObjectIndex, reference: &Reference<'_>) -> Option<(ObjectIndex, usize)> {
    let definition = match in_closure(snapshot, root, reference) {
        Some(found) => found?,
        None => find_in(&snapshot.objects, root, reference)?,
    };
    let table = definition.object.dynamic.as_ref()?.symbols.records().as_ptr();
    let size = size_of::<rtld_elf::Sym>();
    Some((definition.index, table.wrapping_add(definition.number as usize * size).expose_provenance()))
}

/// How an object is named in messages.
pub fn name_of<'a>(world: &'a World, path: &'a [u8]) -> Bytes<'a> {
    Bytes(if path.is_empty() { world.process.program_name.to_bytes() } else { path })
}
