//! Caches, and the thresholds of string functions that follow from them, as glibc 2.36 works them out with no tunable set. Owns the
//! arithmetic, with glibc's widths: sizes of leaf 4 are 32-bit products, all else 64-bit. -1 is "not known".

use super::active::{AVX512F, Active, ERMS, FSRM, HTT};
use super::answers::{Answer, Answers, Processor};
use super::preferred::{AVX_FAST_UNALIGNED_LOAD, PREFER_NO_AVX512};
use super::{Model, Vendor};

/// Bounds of the threshold of non-temporal stores, bytes.
const LEAST_NON_TEMPORAL: u64 = 0x4040;
const MOST_NON_TEMPORAL: u64 = u64::MAX >> 4;
/// The tunable's default, bytes.
const REP_STOSB: u64 = 2048;
/// More caches, or levels of topology, no processor has.
const MOST_SUBLEAVES: u32 = 16;

/// One cache: bytes, ways, bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cache {
    pub(crate) size: i64,
    pub(crate) ways: i64,
    pub(crate) line: i64,
}

const UNKNOWN: Cache = Cache { size: -1, ways: -1, line: -1 };

/// What `struct cpu_features` says of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caches {
    /// Instructions.
    pub(crate) first_instructions: Cache,
    /// Data.
    pub(crate) first: Cache,
    pub(crate) second: Cache,
    pub(crate) third: Cache,
    /// Bytes.
    pub(crate) fourth: i64,
    /// The last level's, with what it does not include; bytes.
    pub(crate) shared: i64,
    pub(crate) non_temporal: u64,
    pub(crate) rep_movsb: u64,
    pub(crate) rep_movsb_stop: u64,
    pub(crate) rep_stosb: u64,
}

/// The last level's size in bytes, all of it and the share of one thread.
#[derive(Debug, Clone, Copy)]
struct Shared {
    whole: i64,
    share: i64,
}

impl Caches {
    /// `None` where the processor describes its caches in a way without rules here.
    pub(super) fn of(
        processor: &impl Processor,
        model: Model,
        answers: &Answers,
        active: &Active,
        preferred: u32,
    ) -> Option<Caches> {
        let (mut caches, shared) = match model.vendor {
            Vendor::Intel => intel(processor, model, answers)?,
            Vendor::Amd => amd(processor, model, answers)?,
        };
        caches.shared = shared.whole;
        caches.non_temporal = non_temporal(shared, active);
        caches.rep_movsb = rep_movsb(active, preferred);
        caches.rep_movsb_stop = match model.vendor {
            Vendor::Amd => caches.second.size as u64,
            Vendor::Intel => caches.non_temporal,
        };
        Some(caches)
    }

    const fn new(first_instructions: Cache, first: Cache, second: Cache, third: Cache, fourth: i64) -> Caches {
        Caches {
            first_instructions,
            first,
            second,
            third,
            fourth,
            shared: 0,
            non_temporal: 0,
            rep_movsb: 0,
            rep_movsb_stop: 0,
            rep_stosb: REP_STOSB,
        }
    }
}

/// A quarter of the last level, but no less than three quarters of a thread's share; that, without fast `rep movsb`.
fn non_temporal(shared: Shared, active: &Active) -> u64 {
    let share = (shared.share.wrapping_mul(3) / 4) as u64;
    let quarter = (shared.whole / 4) as u64;
    let threshold = if active.seven.ebx & ERMS == 0 { share } else { quarter.max(share) };
    threshold.clamp(LEAST_NON_TEMPORAL, MOST_NON_TEMPORAL)
}

/// By the size of vectors; with fast short `rep movsb` a fixed one.
fn rep_movsb(active: &Active, preferred: u32) -> u64 {
    if active.seven.edx & FSRM != 0 {
        2112
    } else if active.seven.ebx & AVX512F != 0 && preferred & PREFER_NO_AVX512 == 0 {
        16384
    } else if preferred & AVX_FAST_UNALIGNED_LOAD != 0 {
        8192
    } else {
        2048
    }
}

/// The subleaves of leaf 4 up to the end of the list.
struct Leaf4 {
    list: [Answer; MOST_SUBLEAVES as usize],
    count: usize,
}

impl Leaf4 {
    /// `None` without an end.
    fn ask(processor: &impl Processor) -> Option<Leaf4> {
        let mut leaf = Leaf4 { list: [Answer::default(); MOST_SUBLEAVES as usize], count: 0 };
        for (subleaf, place) in (0..).zip(&mut leaf.list) {
            let answer = processor.ask(4, subleaf);
            if answer.eax & 0x1f == 0 {
                return Some(leaf);
            }
            *place = answer;
            leaf.count += 1;
        }
        None
    }

    fn iter(&self) -> impl Iterator<Item = &Answer> {
        self.list.iter().take(self.count)
    }

    /// The first cache of a level and, unless 0, of a type (1 data, 2 instructions).
    fn cache(&self, level: u32, kind: u32) -> Cache {
        let is_it = |answer: &&Answer| answer.eax >> 5 & 7 == level && (kind == 0 || answer.eax & 0x1f == kind);
        let Some(Answer { ebx, ecx, .. }) = self.iter().find(is_it) else { return UNKNOWN };
        let (ways, partitions, line) = ((ebx >> 22) + 1, (ebx >> 12 & 0x3ff) + 1, (ebx & 0xfff) + 1);
        let size = ways.wrapping_mul(partitions).wrapping_mul(line).wrapping_mul(ecx.wrapping_add(1));
        Cache { size: size.into(), ways: ways.into(), line: line.into() }
    }
}

/// Leaf 2's descriptors that say nothing of caches (TLBs, prefetch); 0xff is "see leaf 4".
const fn says_nothing(descriptor: u8) -> bool {
    matches!(
        descriptor,
        0 | 0x01..=0x05
            | 0x0b
            | 0x4f..=0x5e
            | 0x61
            | 0x63..=0x65
            | 0x6a..=0x6d
            | 0x76
            | 0xa0
            | 0xb0..=0xba
            | 0xc0..=0xca
            | 0xf0
            | 0xf1
            | 0xfe
    )
}

/// Whether leaf 2 leaves all to leaf 4.
fn leaves_to_4(answer: Answer) -> bool {
    if answer.eax & 0xff != 1 {
        return true;
    }
    // A register with its highest bit set holds none.
    let words = [answer.eax & !0xff, answer.ebx, answer.ecx, answer.edx].into_iter().filter(|word| word >> 31 == 0);
    let mut sees_4 = false;
    for byte in words.flat_map(u32::to_le_bytes) {
        sees_4 |= byte == 0xff;
        if byte != 0xff && !says_nothing(byte) {
            return false;
        }
    }
    sees_4
}

fn intel(processor: &impl Processor, model: Model, answers: &Answers) -> Option<(Caches, Shared)> {
    if answers.highest < 4 || !leaves_to_4(processor.ask(2, 0)) {
        return None;
    }
    let leaf = Leaf4::ask(processor)?;
    let (second, third) = (leaf.cache(2, 0), leaf.cache(3, 0));
    let caches = Caches::new(leaf.cache(1, 2), leaf.cache(1, 1), second, third, leaf.cache(4, 0).size);
    let mut threads = Threads::default();
    let has_third = third.size > 0;
    let whole = if has_third { third.size } else { second.size };
    let mut shared = Shared { whole, share: whole };
    if answers.basic.edx & HTT != 0 {
        threads = Threads::ask(processor, &leaf, model, answers, has_third)?;
        if shared.share > 0 && threads.sharing > 0 {
            shared.share /= i64::from(threads.sharing);
        }
    }
    if threads.is_exclusive {
        let second_share = if threads.second > 0 { second.size / i64::from(threads.second) } else { second.size };
        shared.share += second_share;
        shared.whole += second.size;
    }
    Some((caches, shared))
}

/// How many threads share caches.
#[derive(Default)]
struct Threads {
    /// The last level.
    sharing: u32,
    /// The second; 0 if that is not known.
    second: u32,
    /// The third level does not hold what the second holds.
    is_exclusive: bool,
}

impl Threads {
    /// From leaf 4, and how many of the identifiers it counts exist from leaf 11.
    fn ask(
        processor: &impl Processor,
        leaf: &Leaf4,
        model: Model,
        answers: &Answers,
        has_third: bool,
    ) -> Option<Threads> {
        let level = |level: u32| leaf.iter().find(|answer| answer.eax >> 5 & 7 == level);
        let count = |answer: &Answer| answer.eax >> 14 & 0x3ff;
        let mut second = level(2).map(count);
        let mut third = if has_third { level(3).map(count) } else { None };
        let is_exclusive = has_third && level(3).is_some_and(|answer| answer.edx & 2 == 0);
        if second.is_none() || has_third && third.is_none() {
            // The list ends before both levels were seen: all threads of the package.
            let sharing = answers.basic.ebx >> 16 & 0xff;
            return Some(Threads { sharing, second: second.unwrap_or(0), is_exclusive });
        }
        if answers.highest >= 11 {
            let last = if has_third { &mut third } else { &mut second };
            let mut wants_cores = last.is_some_and(|count| count > 0);
            let mut wants_threads = has_third && second.is_some_and(|count| count > 0);
            let mut subleaf = 0;
            while wants_cores || wants_threads {
                if subleaf == MOST_SUBLEAVES {
                    return None;
                }
                let answer = processor.ask(11, subleaf);
                subleaf += 1;
                let (shipped, kind) = (answer.ebx & 0xff, answer.ecx >> 8 & 0xff);
                if shipped == 0 || kind == 0 {
                    break;
                }
                if kind == 1 && wants_threads {
                    second = second.map(|count| narrowed(count, shipped));
                    wants_threads = false;
                } else if kind == 2 && wants_cores {
                    let last = if has_third { &mut third } else { &mut second };
                    *last = last.map(|count| narrowed(count, shipped));
                    wants_cores = false;
                }
            }
        }
        let whole = |count: Option<u32>| count.filter(|&count| count > 0).map_or(0, |count| count + 1);
        let (second, third) = (whole(second), whole(third));
        let mut sharing = if has_third { third } else { second };
        // Silvermont: two cores share the second level.
        if !has_third && sharing > 2 && model.family == 6 && matches!(model.model, 0x37 | 0x4a | 0x4d | 0x5a | 0x5d) {
            sharing = 2;
        }
        Some(Threads { sharing, second, is_exclusive })
    }
}

/// The shipped processors less one, under a mask as wide as the count of identifiers.
const fn narrowed(count: u32, shipped: u32) -> u32 {
    let width = u32::BITS - count.leading_zeros();
    (shipped - 1) & ((1 << width) - 1)
}

fn amd(processor: &impl Processor, model: Model, answers: &Answers) -> Option<(Caches, Shared)> {
    let ask = |leaf| if answers.highest_extended >= leaf { Some(processor.ask(leaf, 0)) } else { None };
    let (mut instructions, mut first, mut second, mut third) = Default::default();
    if let Some(answer) = ask(0x8000_0005) {
        (instructions, first) = (amd_first(answer.edx), amd_first(answer.ecx));
    }
    if let Some(answer) = ask(0x8000_0006) {
        second = amd_later(answer.ecx, i64::from(answer.ecx >> 6 & 0x03ff_fc00))?;
        third = amd_later(answer.edx, i64::from(answer.edx & 0x3ffc_0000) << 1)?;
    }
    // glibc looks for no fourth level.
    let caches = Caches::new(instructions, first, second, third, -1);
    if third.size <= 0 {
        return Some((caches, Shared { whole: second.size, share: second.size }));
    }
    let mut shared = Shared { whole: third.size, share: third.size };
    let is_zen = model.family >= 0x17;
    let mut threads = 0;
    if answers.highest_extended >= 0x8000_0008 {
        threads = 1 << (answers.sizes.ecx >> 12 & 0xf);
    }
    if (threads == 0 || is_zen) && answers.basic.edx & HTT != 0 {
        threads = answers.basic.ebx >> 16 & 0xff;
    }
    if threads > 0 {
        shared.share /= i64::from(threads);
    }
    if is_zen {
        let complex = (processor.ask(0x8000_001d, 3).eax >> 14 & 0xfff) + 1;
        shared.share *= i64::from(complex);
    } else {
        shared.whole += second.size;
        shared.share += second.size;
    }
    Some((caches, shared))
}

/// A first-level cache in a register of leaf 0x80000005.
fn amd_first(word: u32) -> Cache {
    let ways = word >> 16 & 0xff;
    // Fully associative: as many ways as glibc makes of it.
    let ways = if ways == 0xff { (word >> 16) << 2 & 0x3fc00 } else { ways };
    Cache { size: (word >> 14 & 0x3fc00).into(), ways: ways.into(), line: (word & 0xff).into() }
}

/// A later cache in a register of leaf 0x80000006, of this many bytes if it is there; `None` if its lines have no size.
fn amd_later(word: u32, size: i64) -> Option<Cache> {
    let ways = match word >> 12 & 0xf {
        few @ (0 | 1 | 2 | 4) => few.into(),
        6 => 8,
        8 => 16,
        10 => 32,
        11 => 48,
        12 => 64,
        13 => 96,
        14 => 128,
        15 => size.checked_div((word & 0xff).into())?,
        _ => 0,
    };
    let is_there = word & 0xf000 != 0;
    let or_none = |value: i64| if is_there { value } else { 0 };
    Some(Cache { size: or_none(size), ways, line: or_none((word & 0xff).into()) })
}
