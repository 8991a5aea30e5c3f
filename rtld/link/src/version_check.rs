//! Are the versions that objects were linked against defined by the objects that are there? Asked once, before
//! anything is relocated, so that a program with an old library ends with words and not in the middle of its work.

use crate::fallible::{OutOfMemory, try_push};
use crate::object::{ObjectIndex, ObjectSet, Role};
use alloc::vec::Vec;

/// One thing to tell about a version.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The object that should define the version.
    pub provider: ObjectIndex,
    /// The version.
    pub version: &'static [u8],
    /// The object that needs it.
    pub requester: ObjectIndex,
}

/// What is wrong with a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingKind {
    /// The provider does not define it: an error.
    NotFound,
    /// The provider does not define it, and the need is weak: a warning.
    WeakNotFound,
    /// The provider has no versions at all: a warning.
    NoInformation,
}

/// A mark that linkers add when they pack relocations (DT_RELR), for old loaders to stop at. It is no property of
/// libc: we can do it whatever libc says.
const RELR_MARK: &[u8] = b"GLIBC_ABI_DT_RELR";

/// Checks the needs of all objects from `first` on.
pub fn check(objects: &ObjectSet, first: ObjectIndex) -> Result<Vec<Finding>, OutOfMemory> {
    let mut findings = Vec::new();
    for (requester, object) in objects.iter().skip(first.position()) {
        let Some(dynamic) = object.dynamic.as_ref().filter(|_| object.role != Role::Vdso) else {
            continue;
        };
        for need in dynamic.versions.needs() {
            let Some(provider) = objects.called(need.file) else {
                continue;
            };
            let Some(defined) = objects.get(provider).and_then(|object| object.dynamic.as_ref()) else {
                continue;
            };
            for wanted in need.versions() {
                let finding = |kind| Finding { kind, provider, version: wanted.name, requester };
                if !defined.versions.has_definitions() {
                    try_push(&mut findings, finding(FindingKind::NoInformation))?;
                    break;
                }
                if !defined.versions.defines(&wanted) && wanted.name != RELR_MARK {
                    let kind = if wanted.is_weak() { FindingKind::WeakNotFound } else { FindingKind::NotFound };
                    try_push(&mut findings, finding(kind))?;
                }
            }
        }
    }
    Ok(findings)
}
