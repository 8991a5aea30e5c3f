//! What a process has in `_rtld_global_ro` about the processor, read from outside. Owns the layout of the releases that tests run on,
//! as their debug information gives it.

use anyhow::Context as _;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSymbol as _};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Offsets in `struct rtld_global_ro`, equal in all releases here.
const PLATFORM: u64 = 8;
const HWCAP: u64 = 96;
const FEATURES: u64 = 112;

/// `struct cpu_features` of one release.
struct Layout {
    release: &'static str,
    size: usize,
    /// `xsave_state_size` and `xsave_state_full_size`: the binding of a loader that does not run.
    exempt: std::ops::Range<usize>,
}

const LAYOUTS: [Layout; 2] =
    [Layout { release: "2.36", size: 480, exempt: 320..332 }, Layout { release: "2.41", size: 528, exempt: 352..364 }];

/// What is compared.
#[derive(PartialEq, Eq, Clone)]
pub struct Seen {
    /// `struct cpu_features`, words of 4 bytes, exempt ones zero.
    pub words: Vec<u32>,
    hwcap: u64,
    platform: String,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "platform {:?}, hwcap {:#x}, words by offset:", self.platform, self.hwcap)?;
        let words = self.words.iter().enumerate().filter(|(_, word)| **word != 0);
        words.into_iter().try_for_each(|(index, word)| write!(f, " {}:{word:x}", 4 * index))
    }
}

impl Seen {
    /// Of a stopped process that has ld-linux's file mapped.
    pub fn of(process: i32, reference: &Path) -> anyhow::Result<Seen> {
        let bytes = fs::read(reference)?;
        let layout = layout_of(&bytes)?;
        let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("_rtld_global_ro"));
        let start = base_of(process, reference)? + symbol.context("no _rtld_global_ro")?.address();
        let memory = File::open(format!("/proc/{process}/mem"))?;
        let mut features = vec![0; layout.size];
        memory.read_exact_at(&mut features, start + FEATURES)?;
        if let Some(exempt) = features.get_mut(layout.exempt.clone()) {
            exempt.fill(0);
        }
        let word = |offset| -> anyhow::Result<u64> {
            let mut word = [0; 8];
            memory.read_exact_at(&mut word, start + offset)?;
            Ok(u64::from_le_bytes(word))
        };
        let mut platform = [0; 16];
        memory.read_exact_at(&mut platform, word(PLATFORM)?)?;
        let platform = platform.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Seen {
            words: features
                .chunks_exact(4)
                .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
                .collect(),
            hwcap: word(HWCAP)?,
            platform: String::from_utf8_lossy(platform).into_owned(),
        })
    }

    /// Without the identifier of the processor that a run happened to be on: the highest byte of leaf 1's EBX.
    pub fn without_identifier(mut self) -> Seen {
        if let Some(word) = self.words.get_mut(6) {
            *word &= 0x00ff_ffff;
        }
        self
    }
}

fn layout_of(bytes: &[u8]) -> anyhow::Result<&'static Layout> {
    let layout = LAYOUTS.iter().find(|layout| is_release(bytes, layout.release));
    layout.context("ld-linux is of a release whose struct cpu_features is not written down here")
}

/// The release of ld-linux, if its layout is written down.
pub fn release(reference: &Path) -> anyhow::Result<&'static str> {
    Ok(layout_of(&fs::read(reference)?)?.release)
}

/// ld-linux says its release in what it prints for --version.
fn is_release(bytes: &[u8], release: &str) -> bool {
    let words = format!("version {release}.");
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

/// The lowest address at which a process has the file mapped.
pub fn base_of(process: i32, file: &Path) -> anyhow::Result<u64> {
    let path = file.canonicalize()?;
    let path = path.to_string_lossy();
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with(&*path)).with_context(|| format!("{path} is not mapped"))?;
    let (start, _) = line.split_once('-').context("a line of maps")?;
    u64::from_str_radix(start, 16).with_context(|| line.to_owned())
}
