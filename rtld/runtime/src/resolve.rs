//! Runs the resolvers that relocation put off, in an order in which they may use one another's objects.

use crate::world::{Snapshot, World};
use alloc::vec::Vec;
use rtld_link::deferred::{Deferred, Resolvers};
use rtld_link::error::Error;
use rtld_link::fallible::{OutOfMemory, try_filled, try_push};
use rtld_link::object::{ObjectIndex, Role};

/// The slots in the order in which their resolvers are to run: those of the C library's own loader first, since what
/// they find out about the processor is what others ask for (how many they are is told); then by the dependency order
/// of the objects that the *resolvers* belong to, wherever their slots are.
pub fn order(
    snapshot: &Snapshot,
    init_order: &[ObjectIndex],
    deferred: &[Deferred],
) -> Result<(Vec<Deferred>, usize), OutOfMemory> {
    let mut rank = try_filled(usize::MAX, snapshot.objects.bound())?;
    for (position, index) in init_order.iter().enumerate() {
        if let Some(place) = rank.get_mut(index.position()) {
            *place = position + 1;
        }
    }
    let passive = snapshot.objects.find(|object| object.role == Role::PassiveLoader);
    let mut keys: Vec<(usize, usize)> = Vec::new();
    keys.try_reserve_exact(deferred.len()).map_err(|_| OutOfMemory)?;
    for (position, slot) in deferred.iter().enumerate() {
        let owner = snapshot.object_at(slot.resolver).unwrap_or(slot.object);
        let first = Some(owner) == passive;
        let key = if first { 0 } else { rank.get(owner.position()).copied().unwrap_or(usize::MAX) };
        try_push(&mut keys, (key, position))?;
    }
    keys.sort_unstable();
    let first = keys.iter().take_while(|(key, _)| *key == 0).count();
    let mut ordered = Vec::new();
    ordered.try_reserve_exact(keys.len()).map_err(|_| OutOfMemory)?;
    for (_, position) in keys {
        if let Some(slot) = deferred.get(position) {
            try_push(&mut ordered, *slot)?;
        }
    }
    Ok((ordered, first))
}

/// Runs resolvers one after another.
pub fn run(resolvers: &Resolvers<'_>, slots: &[Deferred]) -> Result<(), Error> {
    slots.iter().try_for_each(|slot| resolvers.run(slot))
}

/// A resolver is called plainly where no arguments of a pending call must be kept.
pub fn call(_: &World) -> impl Fn(usize) -> usize {
    |resolver: usize| {
        // SAFETY: the resolver was checked to be executable.
        unsafe { crate::call::resolver(resolver) }
    }
}
