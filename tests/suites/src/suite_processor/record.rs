//! What CPUID and XGETBV answer on one processor, from a file of tests/programs/processor, from this machine, or changed bit by bit.
//! Owns the files' format, which each of them describes.

use anyhow::{Context as _, bail};
use std::arch::x86_64::__cpuid_count;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// EAX, EBX, ECX, EDX.
pub type Answer = [u32; 4];

/// The answers of a processor.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its name.
    pub name: String,
    leaves: BTreeMap<(u32, u32), Answer>,
    /// XCR0.
    pub state: u64,
}

/// Leaves whose answer depends on ECX.
const WITH_SUBLEAVES: [u32; 6] = [4, 7, 0xb, 0xd, 0x14, 0x8000_001d];
/// Models of Intel's family 6 that glibc 2.36 knows, and one that it does not.
const MODELS: [u32; 24] = [
    0x1c, 0x26, 0x57, 0x7a, 0x5c, 0x4c, 0x37, 0x4d, 0x5d, 0x86, 0x9c, 0x1a, 0x2c, 0x55, 0x8e, 0x9e, 0x4e, 0x5e, 0x3f,
    0x3c, 0x45, 0x46, 0x8f, 0xa7,
];

impl Record {
    /// From a file.
    pub fn read(path: &Path) -> anyhow::Result<Record> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let name = path.file_stem().context("a record has a name")?.to_string_lossy().into_owned();
        let mut record = Record { name, leaves: BTreeMap::new(), state: 0 };
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).with_context(|| word.to_owned());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(state) = line.strip_prefix("state ") {
                record.state = hexadecimal(state)?;
                continue;
            }
            let words = line.split(' ').map(hexadecimal).collect::<anyhow::Result<Vec<u64>>>()?;
            let [leaf, subleaf, eax, ebx, ecx, edx] = words[..] else { bail!("{}: {line}", path.display()) };
            record.leaves.insert((leaf as u32, subleaf as u32), [eax as u32, ebx as u32, ecx as u32, edx as u32]);
        }
        Ok(record)
    }

    /// Of the processor that runs this.
    pub fn of_this_machine() -> Record {
        let mut record = Record { name: "this machine".to_owned(), leaves: BTreeMap::new(), state: 0 };
        let mut ask = |leaf: u32| {
            let subleaves = if WITH_SUBLEAVES.contains(&leaf) { 32 } else { 1 };
            for subleaf in 0..subleaves {
                let answer = __cpuid_count(leaf, subleaf);
                record.leaves.insert((leaf, subleaf), [answer.eax, answer.ebx, answer.ecx, answer.edx]);
            }
        };
        (0..=__cpuid_count(0, 0).eax).for_each(&mut ask);
        (0x8000_0000..=__cpuid_count(0x8000_0000, 0).eax).for_each(&mut ask);
        if record.ask(1, 0)[2] & 1 << 27 != 0 {
            let (low, high): (u32, u32);
            // SAFETY: OSXSAVE is set, so the instruction exists and reads XCR0.
            unsafe {
                std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack));
            }
            record.state = u64::from(high) << 32 | u64::from(low);
        }
        record
    }

    /// The answer; zero for a leaf that is not recorded.
    pub fn ask(&self, leaf: u32, subleaf: u32) -> Answer {
        let subleaf = if WITH_SUBLEAVES.contains(&leaf) { subleaf } else { 0 };
        self.leaves.get(&(leaf, subleaf)).copied().unwrap_or_default()
    }

    /// Whether glibc 2.36 takes it for Intel's or AMD's.
    pub fn has_known_vendor(&self) -> bool {
        let [_, ebx, ecx, edx] = self.ask(0, 0);
        let name = [ebx, edx, ecx].map(u32::to_le_bytes).concat();
        [&b"GenuineIntel"[..], b"AuthenticAMD", b"HygonGenuine"].contains(&&*name)
    }

    /// A copy with features, model, topology and saved states changed at random, the same for the same number. What every
    /// x86-64 processor has stays.
    pub fn changed(&self, number: u64) -> Record {
        let mut record = self.clone();
        record.name = format!("{} changed {number}", self.name);
        let mut random = Random(number);
        let is_intel = self.ask(0, 0)[1] == u32::from_le_bytes(*b"Genu");
        for (&(leaf, subleaf), answer) in &mut record.leaves {
            let masks: Answer = match (leaf, subleaf) {
                // Model, stepping; threads; features but those of the baseline; HTT.
                (1, _) => [0x000f_00ff, 0x00ff_0000, !(1 << 26), 1 << 28],
                (7, 0) => [0, u32::MAX, u32::MAX, u32::MAX],
                (7, 1) => [u32::MAX, 0, 0, 0],
                (0x8000_0001, _) => [0, 0, u32::MAX, 1 << 27],
                (0x8000_0008, _) => [0, 1 << 9, 0xf000, 0],
                (0x14 | 0x19, 0) => [0, 0xff, 0, 0],
                // Sharing and inclusion; never the type, which ends the list.
                (4, 0..8) if answer[0] & 0x1f != 0 => [0x03ff_c000, 0x0fc0_0000, 0xff, 2],
                (0xb, _) => [0, 0xf, 0, 0],
                (0x8000_0005 | 0x8000_0006, _) => [0, 0, 0x00ff_f000, 0x00ff_f000],
                (0x8000_001d, 3) => [0x0001_c000, 0, 0, 0],
                _ => continue,
            };
            for (word, mask) in answer.iter_mut().zip(masks) {
                // One of four bits, half of the time.
                if random.next() & 1 == 0 {
                    *word ^= mask & random.next() & random.next();
                }
            }
        }
        if is_intel && let Some(answer) = record.leaves.get_mut(&(1, 0)) {
            let model = MODELS.get(random.next() as usize % MODELS.len()).copied().unwrap_or(0xa7);
            answer[0] = answer[0] & 0xf | 6 << 8 | (model & 0xf) << 4 | (model >> 4) << 16;
        } else if random.next() & 1 == 0
            && let Some(answer) = record.leaves.get_mut(&(1, 0))
        {
            // Excavator.
            answer[0] = 0x0066_0f01;
        }
        // Leaf 7 announces what two leaves describe; without that they are zero.
        let [_, ebx, ecx, _] = record.ask(7, 0);
        let announced = [(0x14, ebx & 1 << 25 != 0), (0x19, ecx & 1 << 23 != 0)];
        record.leaves.retain(|(leaf, _), _| announced.iter().all(|(own, is_there)| leaf != own || *is_there));
        for state in [0b110, 0b1110_0000, 0b11 << 17] {
            if random.next().is_multiple_of(4) {
                record.state &= !state;
            }
        }
        record
    }
}

/// The generator splitmix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 32) as u32
    }
}
