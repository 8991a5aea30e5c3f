//! What glibc's loader finds out about the processor (`struct cpu_features`), worked out with each CPUID leaf executed once.
//!
//! Owns the rules of glibc 2.36 (sysdeps/x86/cpu-features.c, dl-cacheinfo.h) as functions of what the processor answers: which
//! leaves are asked (`answers`), what of them is usable (`active`), what string functions prefer (`preferred`), caches and
//! thresholds (`caches`). Executes no instruction itself and stores nothing; `store` writes the result where libc.so.6 reads it.
//!
//! CPUID traps to the hypervisor on a virtual machine, 4 to 70 us each, and glibc executes most leaves several times. The passive
//! loader's own resolver does the work as before where this module has no rule: another vendor's processor, one that describes its
//! caches without leaf 4, or one of the user's tunables for the processor.

mod active;
mod answers;
mod caches;
mod preferred;
mod store;
#[cfg(test)]
mod tests;

pub use answers::{Answer, Processor, This};
pub(crate) use store::{SIZE, store};

use active::Active;
use answers::Answers;
use caches::Caches;

/// The processors that the rules are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Intel,
    /// AMD, and Hygon, which glibc takes for it.
    Amd,
}

/// Family, model and stepping as glibc counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) vendor: Vendor,
    pub(crate) family: u32,
    pub(crate) model: u32,
    pub(crate) stepping: u32,
}

/// Everything that `struct cpu_features` holds, but the sizes of XSAVE's area, which nothing of libc.so.6 reads: they are for
/// the binding of the loader that never runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    pub(crate) model: Model,
    pub(crate) answers: Answers,
    pub(crate) active: Active,
    /// `preferred`: what string functions shall do.
    pub(crate) preferred: u32,
    /// `isa_1`: a bit for each micro-architecture level, the baseline first.
    pub(crate) levels: u32,
    pub(crate) caches: Caches,
    /// `_dl_hwcap`, what getauxval(AT_HWCAP) gives.
    pub(crate) hwcap: u64,
    /// What `_dl_platform` becomes, if the processor has a name of its own.
    pub(crate) platform: Option<&'static core::ffi::CStr>,
}

impl Features {
    /// Asks the processor. `None` if there are no rules for it.
    pub fn of(processor: &impl Processor) -> Option<Features> {
        let (vendor, answers) = Answers::ask(processor)?;
        let model = Model::of(vendor, &answers);
        let state = if active::has_state(&answers) { processor.enabled_state() } else { 0 };
        let mut active = Active::of(&answers, state);
        let levels = active.levels(&answers);
        let mut preferred = preferred::common(&answers, &active);
        match vendor {
            Vendor::Intel => preferred |= preferred::intel(model, &answers, &mut active),
            Vendor::Amd => preferred = preferred::amd(model, preferred, &answers, &mut active),
        }
        let caches = Caches::of(processor, model, &answers, &active, preferred)?;
        let (hwcap, platform) = active.names(vendor);
        Some(Features { model, answers, active, preferred, levels, caches, hwcap, platform })
    }
}

impl Model {
    /// From leaf 1's EAX (Intel's and AMD's manuals, CPUID leaf 1). The extended model counts for family 15 and for Intel's 6.
    fn of(vendor: Vendor, answers: &Answers) -> Model {
        let signature = answers.basic.eax;
        let (mut family, mut model) = (signature >> 8 & 0xf, signature >> 4 & 0xf);
        let extended = signature >> 12 & 0xf0;
        if family == 0xf {
            family += signature >> 20 & 0xff;
            model += extended;
        } else if vendor == Vendor::Intel && family == 6 {
            model += extended;
        }
        Model { vendor, family, model, stepping: signature & 0xf }
    }
}
