//! Which x86-64 micro-architecture level the processor and the system reach (x86-64 psABI, "Micro-architecture
//! levels"). CPUID traps to the hypervisor on a virtual machine (4 to 5 us each), so this is asked only where
//! a file is really offered in several variants.

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// A level above the baseline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// SSE3 to SSE4.2, POPCNT, CMPXCHG16B.
    V2,
    /// AVX2, BMI, FMA, F16C, MOVBE.
    V3,
    /// AVX-512 F, BW, CD, DQ, VL.
    V4,
}

impl Level {
    /// The name of its directory below `glibc-hwcaps`.
    pub fn name(self) -> &'static str {
        match self {
            Level::V2 => "x86-64-v2",
            Level::V3 => "x86-64-v3",
            Level::V4 => "x86-64-v4",
        }
    }
}

/// All levels, best first.
pub const LEVELS: [Level; 3] = [Level::V4, Level::V3, Level::V2];

const LEAF_1_ECX_V2: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23;
const LEAF_1_ECX_V3: u32 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29;
const LEAF_7_EBX_V3: u32 = 1 << 3 | 1 << 5 | 1 << 8;
const LEAF_7_EBX_V4: u32 = 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | 1 << 31;
const EXTENDED_ECX_V2: u32 = 1;
const EXTENDED_ECX_V3: u32 = 1 << 5;
const STATE_AVX: u64 = 0b110;
const STATE_AVX512: u64 = 0b1110_0110;

/// The levels that the processor and the system support, best first.
pub fn levels() -> &'static [Level] {
    let reached = match highest() {
        None => return &[],
        Some(level) => level,
    };
    let from = LEVELS.iter().position(|&level| level == reached).unwrap_or(LEVELS.len());
    LEVELS.get(from..).unwrap_or_default()
}

/// The name that glibc gives the processor in `$PLATFORM` in place of the kernel's AT_PLATFORM: Intel's only
/// (sysdeps/x86/cpu-features.c).
pub fn platform() -> Option<&'static str> {
    let vendor = __cpuid(0);
    if (vendor.ebx, vendor.edx, vendor.ecx) != INTEL || highest()? < Level::V3 {
        return None;
    }
    let leaf_7 = __cpuid_count(7, 0).ebx;
    let is_phi = leaf_7 & LEAF_7_EBX_PHI == LEAF_7_EBX_PHI && {
        // SAFETY: level 3 has OSXSAVE.
        let state = unsafe { enabled_state() };
        state & STATE_AVX512 == STATE_AVX512
    };
    Some(if is_phi { "xeon_phi" } else { "haswell" })
}

/// "GenuineIntel" in EBX, EDX, ECX of leaf 0.
const INTEL: (u32, u32, u32) = (0x756e_6547, 0x4965_6e69, 0x6c65_746e);
/// AVX512PF, AVX512ER, AVX512CD.
const LEAF_7_EBX_PHI: u32 = 1 << 26 | 1 << 27 | 1 << 28;

fn highest() -> Option<Level> {
    let leaf_1 = __cpuid(1).ecx;
    let extended = __cpuid(0x8000_0001).ecx;
    if leaf_1 & LEAF_1_ECX_V2 != LEAF_1_ECX_V2 || extended & EXTENDED_ECX_V2 != EXTENDED_ECX_V2 {
        return None;
    }
    if leaf_1 & LEAF_1_ECX_V3 != LEAF_1_ECX_V3 || extended & EXTENDED_ECX_V3 != EXTENDED_ECX_V3 {
        return Some(Level::V2);
    }
    // OSXSAVE (leaf 1 ECX bit 27) is set, so XGETBV exists.
    // SAFETY: as said.
    let state = unsafe { enabled_state() };
    let leaf_7 = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    if leaf_7 & LEAF_7_EBX_V3 != LEAF_7_EBX_V3 || state & STATE_AVX != STATE_AVX {
        return Some(Level::V2);
    }
    if leaf_7 & LEAF_7_EBX_V4 != LEAF_7_EBX_V4 || state & STATE_AVX512 != STATE_AVX512 {
        return Some(Level::V3);
    }
    Some(Level::V4)
}

/// The registers EAX, EBX, ECX, EDX that CPUID leaves behind.
pub fn ask(leaf: u32, subleaf: u32) -> [u32; 4] {
    let answer = __cpuid_count(leaf, subleaf);
    [answer.eax, answer.ebx, answer.ecx, answer.edx]
}

/// XCR0: the states that the system saves at a change of threads.
///
/// # Safety
/// CPUID leaf 1 has OSXSAVE, ECX bit 27.
pub unsafe fn enabled_state() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: XCR0 exists where XSAVE does.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: the caller saw OSXSAVE.
    unsafe { read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        let v3 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("bmi2");
        let v4 = std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vl");
        assert_eq!(levels().contains(&Level::V3), v3);
        assert_eq!(levels().contains(&Level::V4), v4);
        assert!(!v3 || levels().contains(&Level::V2));
    }
}
