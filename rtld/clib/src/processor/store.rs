//! Where glibc 2.36 keeps what `Features` holds: `struct cpu_features` inside `_rtld_global_ro`. Owns the order of the fields.

use super::active::Active;
use super::answers::Answer;
use super::caches::{Cache, Caches};
use super::{Features, Vendor};
use crate::offsets::ReadOnlyOffsets;
use crate::region::{OutsideRegion, Region};

/// `basic.kind`.
const KIND_INTEL: u32 = 1;
const KIND_AMD: u32 = 2;

/// Size of the structure, in bytes; `_dl_x86_hwcap_flags` follows it.
pub(crate) const SIZE: usize = 480;
/// Offsets in the structure.
const FAMILY: usize = 8;
const LEAVES: usize = 20;
/// A leaf: four words as the processor gave them, then four of active bits.
const LEAF: usize = 32;
const PREFERRED: usize = 308;
const LEVELS: usize = 312;
const CACHES: usize = 336;

/// Stores the features; the passive loader's resolver, which finds them there, then leaves them as they are.
pub(crate) fn store(
    features: &Features,
    start: usize,
    offsets: &ReadOnlyOffsets,
    read_only: Region,
) -> Result<(), OutsideRegion> {
    let Features { model, answers, active, preferred, levels, caches, hwcap, platform } = features;
    let word = |offset: usize, value: u32| read_only.write_u32(start + offset, value);
    for (number, value) in [answers.highest, model.family, model.model, model.stepping].into_iter().enumerate() {
        word(FAMILY - 4 + 4 * number, value)?;
    }
    for (number, (answer, active)) in leaves(features, active).into_iter().enumerate() {
        let words = [answer, active].into_iter().flat_map(|Answer { eax, ebx, ecx, edx }| [eax, ebx, ecx, edx]);
        for (index, value) in words.enumerate() {
            word(LEAVES + LEAF * number + 4 * index, value)?;
        }
    }
    word(PREFERRED, *preferred)?;
    word(LEVELS, *levels)?;
    for (number, value) in cache_words(caches).into_iter().enumerate() {
        read_only.write_u64(start + CACHES + 8 * number, value)?;
    }
    read_only.write_u64(offsets.hwcap, *hwcap)?;
    if let Some(platform) = platform {
        read_only.write_usize(offsets.platform, platform.as_ptr().expose_provenance())?;
        read_only.write_usize(offsets.platform + 8, platform.count_bytes())?;
    }
    word(0, if model.vendor == Vendor::Intel { KIND_INTEL } else { KIND_AMD })
}

/// The leaves in the order of `CPUID_INDEX_*`.
fn leaves(features: &Features, active: &Active) -> [(Answer, Answer); 9] {
    let answers = &features.answers;
    [
        (answers.basic, active.basic),
        (answers.seven, active.seven),
        (answers.extended, active.extended),
        (answers.save, active.save),
        (answers.power, Answer::default()),
        (answers.sizes, active.sizes),
        (answers.seven_1, active.seven_1),
        (answers.locker, active.locker),
        (answers.trace, active.trace),
    ]
}

/// `data_cache_size` to `level4_cache_size`.
fn cache_words(caches: &Caches) -> [u64; 18] {
    let Caches { first_instructions, first, second, third, fourth, .. } = caches;
    let whole = |Cache { size, ways, line }: &Cache| [*size as u64, *ways as u64, *line as u64];
    let ([a, b, c], [d, e, f], [g, h, i]) = (whole(first), whole(second), whole(third));
    [
        first.size as u64,
        caches.shared as u64,
        caches.non_temporal,
        caches.rep_movsb,
        caches.rep_movsb_stop,
        caches.rep_stosb,
        first_instructions.size as u64,
        first_instructions.line as u64,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        *fourth as u64,
    ]
}
