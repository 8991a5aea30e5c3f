//! The order of initialisers: an object's dependencies first, as glibc orders them (its depth-first sort).
//!
//! The objects are visited from the last loaded to the first; each visit goes through the object's dependencies in
//! the order of DT_NEEDED, then appends the object. Preloaded objects are visited before all others, in their order:
//! what they interpose must be ready for the libraries that are interposed (glibc initialises them last or in between). In a cycle the object that was reached first waits for the rest.
//! Objects marked DF_1_INITFIRST are moved to the front. Finalisers run in the reverse of this order.

use crate::fallible::{OutOfMemory, try_filled, try_push};
use crate::object::{ObjectIndex, ObjectSet};
use alloc::vec::Vec;
use rtld_elf::dynamic::Flags1;

/// The members of a closure in the order in which they are initialised. The first member is the root, the program at
/// start-up: it comes last, whoever names it as a dependency. What members need that is no member is left out.
pub fn init_order(
    objects: &ObjectSet,
    members: &[ObjectIndex],
    preloaded: &[ObjectIndex],
) -> Result<Vec<ObjectIndex>, OutOfMemory> {
    let root = members.first().copied();
    let mut order = Vec::new();
    order.try_reserve_exact(members.len()).map_err(|_| OutOfMemory)?;
    // What is no member counts as visited.
    let mut visited = try_filled(true, objects.bound())?;
    for member in members {
        if let Some(seen) = visited.get_mut(member.position()) {
            *seen = false;
        }
    }
    // Own stack: the depth of a dependency chain is the files' choice.
    let mut path: Vec<(ObjectIndex, usize)> = Vec::new();
    for start in preloaded.iter().copied().chain(members.iter().rev().copied()) {
        visit(&mut visited, &mut path, start)?;
        while let Some((index, next)) = path.last_mut() {
            let dependency = objects.entry(*index).and_then(|entry| entry.needed.get(*next)).copied();
            *next += 1;
            match dependency {
                dependency if dependency.is_some() && dependency == root => {}
                Some(dependency) => visit(&mut visited, &mut path, dependency)?,
                None => {
                    try_push(&mut order, *index)?;
                    path.pop();
                }
            }
        }
    }
    let mut sorted = Vec::new();
    sorted.try_reserve_exact(order.len()).map_err(|_| OutOfMemory)?;
    for first in [true, false] {
        for &index in order.iter().filter(|&&index| is_first(objects, index) == first) {
            try_push(&mut sorted, index)?;
        }
    }
    Ok(sorted)
}

fn visit(visited: &mut [bool], path: &mut Vec<(ObjectIndex, usize)>, index: ObjectIndex) -> Result<(), OutOfMemory> {
    match visited.get_mut(index.position()) {
        Some(seen) if !*seen => {
            *seen = true;
            try_push(path, (index, 0))
        }
        _ => Ok(()),
    }
}

/// Whether an object asks to be initialised before all others.
pub fn is_first(objects: &ObjectSet, index: ObjectIndex) -> bool {
    let dynamic = objects.get(index).and_then(|object| object.dynamic.as_ref());
    dynamic.is_some_and(|dynamic| dynamic.flags_1.contains(Flags1::INITFIRST)) && index.position() != 0
}
