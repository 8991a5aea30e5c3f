//! What programs may use of the processor: a feature is *active* if the processor has it and the system saves its registers.
//! Owns the sets of bits; each constant is named after the register of the leaf that it masks, with the features in the order of
//! their bits (Intel's manual, volume 2, CPUID).

use super::Vendor;
use super::answers::{Answer, Answers};
use core::ffi::CStr;

/// SSE3, PCLMULQDQ, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, AES, OSXSAVE, RDRAND.
const BASIC_ECX: u32 = bits(&[0, 1, 9, 13, 19, 20, 22, 23, 25, 27, 30]);
/// TSC, CX8, CMOV, CLFSH, MMX, FXSR, SSE, SSE2, HTT.
const BASIC_EDX: u32 = bits(&[4, 8, 15, 19, 23, 24, 25, 26, 28]);
/// BMI1, HLE, BMI2, ERMS, RDSEED, ADX, CLFLUSHOPT, CLWB, SHA.
const SEVEN_EBX: u32 = bits(&[3, 4, 8, 9, 18, 19, 23, 24, 29]);
/// PREFETCHWT1, OSPKE, WAITPKG, GFNI, RDPID, CLDEMOTE, MOVDIRI, MOVDIR64B.
const SEVEN_ECX: u32 = bits(&[0, 4, 5, 8, 22, 25, 27, 28]);
/// FSRM, RTM_ALWAYS_ABORT, SERIALIZE, TSXLDTRK.
const SEVEN_EDX: u32 = bits(&[4, 11, 14, 16]);
/// FZLRM, FSRS, FSRCS.
const SEVEN_1_EAX: u32 = bits(&[10, 11, 12]);
/// PTWRITE.
const TRACE_EBX: u32 = bit(4);
/// LAHF, LZCNT, SSE4A, PREFETCHW, TBM.
const EXTENDED_ECX: u32 = bits(&[0, 5, 6, 8, 21]);
/// RDTSCP.
const EXTENDED_EDX: u32 = bit(27);
/// WBNOINVD.
const SIZES_EBX: u32 = bit(9);

/// FMA, AVX, F16C: with the state of YMM.
const AVX_BASIC_ECX: u32 = bits(&[12, 28, 29]);
/// VAES, VPCLMULQDQ.
const AVX_SEVEN_ECX: u32 = bits(&[9, 10]);
/// AVX_VNNI.
const AVX_SEVEN_1_EAX: u32 = bit(4);
/// XOP.
const AVX_EXTENDED_ECX: u32 = bit(11);

/// F, DQ, IFMA, PF, ER, CD, BW, VL of AVX-512: with the state of ZMM.
const AVX512_SEVEN_EBX: u32 = bits(&[16, 17, 21, 26, 27, 28, 30, 31]);
/// VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ.
const AVX512_SEVEN_ECX: u32 = bits(&[1, 6, 11, 12, 14]);
/// 4VNNIW, 4FMAPS, VP2INTERSECT, FP16.
const AVX512_SEVEN_EDX: u32 = bits(&[2, 3, 8, 23]);
/// BF16.
const AVX512_SEVEN_1_EAX: u32 = bit(5);

/// BF16, TILE, INT8 of AMX: with the state of tiles.
const AMX_SEVEN_EDX: u32 = bits(&[22, 24, 25]);
/// XSAVEOPT, XSAVEC, XGETBV with ECX = 1, XFD.
const SAVE_EAX: u32 = bits(&[0, 1, 2, 4]);

pub(super) const CX8: u32 = bit(8);
pub(super) const CMOV: u32 = bit(15);
pub(super) const HTT: u32 = bit(28);
pub(super) const AVX: u32 = bit(28);
pub(super) const AVX2: u32 = bit(5);
pub(super) const HLE: u32 = bit(4);
pub(super) const ERMS: u32 = bit(9);
pub(super) const RTM: u32 = bit(11);
pub(super) const AVX512F: u32 = bit(16);
pub(super) const AVX512ER: u32 = bit(27);
pub(super) const FSRM: u32 = bit(4);
pub(super) const RTM_ALWAYS_ABORT: u32 = bit(11);
pub(super) const AVX_VNNI: u32 = bit(4);
pub(super) const FMA4: u32 = bit(16);
const XSAVE: u32 = bit(26);
const OSXSAVE: u32 = bit(27);
const OSPKE: u32 = bit(4);
const PKU: u32 = bit(3);
const KEY_LOCKER: u32 = bit(23);
const AESKLE: u32 = bit(0);
const WIDE_KEY_LOCKER: u32 = bit(2);

/// XCR0: XMM and YMM.
const STATE_AVX: u64 = 0b110;
/// Masks, upper halves of ZMM0 to 15, ZMM16 to 31.
const STATE_AVX512: u64 = 0b1110_0000;
/// Tile configuration and tiles.
const STATE_AMX: u64 = 0b11 << 17;

/// `_dl_hwcap` of an x86-64 processor, and of one with AVX-512 CD, BW, DQ and VL (dl-hwcap.h).
const HWCAP_X86_64: u64 = 1 << 1;
const HWCAP_AVX512: u64 = 1 << 2;

const fn bit(number: u32) -> u32 {
    1 << number
}

const fn bits(mut numbers: &[u32]) -> u32 {
    let mut set = 0;
    while let [first, rest @ ..] = numbers {
        set |= 1 << *first;
        numbers = rest;
    }
    set
}

/// The active bits of each leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Active {
    pub(crate) basic: Answer,
    pub(crate) seven: Answer,
    pub(crate) seven_1: Answer,
    pub(crate) save: Answer,
    pub(crate) trace: Answer,
    pub(crate) locker: Answer,
    pub(crate) extended: Answer,
    pub(crate) sizes: Answer,
}

/// Whether XCR0 can be read.
pub(super) fn has_state(answers: &Answers) -> bool {
    answers.basic.ecx & OSXSAVE != 0
}

impl Active {
    /// Of what the processor has, and the states that the system saves.
    pub(super) fn of(answers: &Answers, state: u64) -> Active {
        let Answers { basic, seven, seven_1, save, trace, locker, extended, sizes, .. } = answers;
        let mut active = Active::default();
        active.basic.ecx = basic.ecx & BASIC_ECX;
        active.basic.edx = basic.edx & BASIC_EDX;
        active.seven.ebx = seven.ebx & SEVEN_EBX;
        active.seven.ecx = seven.ecx & SEVEN_ECX;
        active.seven.edx = seven.edx & SEVEN_EDX;
        active.seven_1.eax = seven_1.eax & SEVEN_1_EAX;
        active.trace.ebx = trace.ebx & TRACE_EBX;
        active.extended.ecx = extended.ecx & EXTENDED_ECX;
        active.extended.edx = extended.edx & EXTENDED_EDX;
        active.sizes.ebx = sizes.ebx & SIZES_EBX;
        if seven.edx & RTM_ALWAYS_ABORT == 0 {
            active.seven.ebx |= seven.ebx & RTM;
        }
        if has_state(answers) {
            active.with_state(answers, state);
            active.basic.ecx |= XSAVE;
            active.save.eax = save.eax & SAVE_EAX;
        }
        if seven.ecx & OSPKE != 0 {
            active.seven.ecx |= PKU;
        }
        if locker.ebx & AESKLE != 0 {
            active.locker.ebx = locker.ebx & (AESKLE | WIDE_KEY_LOCKER);
            active.seven.ecx |= seven.ecx & KEY_LOCKER;
        }
        active
    }

    fn with_state(&mut self, answers: &Answers, state: u64) {
        let Answers { basic, seven, seven_1, extended, .. } = answers;
        if state & STATE_AVX == STATE_AVX {
            if basic.ecx & AVX != 0 {
                self.basic.ecx |= basic.ecx & AVX_BASIC_ECX;
                self.seven.ebx |= seven.ebx & AVX2;
                self.seven.ecx |= seven.ecx & AVX_SEVEN_ECX;
                self.seven_1.eax |= seven_1.eax & AVX_SEVEN_1_EAX;
                self.extended.ecx |= extended.ecx & AVX_EXTENDED_ECX;
            }
            if state & STATE_AVX512 == STATE_AVX512 && seven.ebx & AVX512F != 0 {
                self.seven.ebx |= seven.ebx & AVX512_SEVEN_EBX;
                self.seven.ecx |= seven.ecx & AVX512_SEVEN_ECX;
                self.seven.edx |= seven.edx & AVX512_SEVEN_EDX;
                self.seven_1.eax |= seven_1.eax & AVX512_SEVEN_1_EAX;
            }
        }
        if state & STATE_AMX == STATE_AMX {
            self.seven.edx |= seven.edx & AMX_SEVEN_EDX;
        }
    }

    /// Micro-architecture levels as GNU_PROPERTY_X86_ISA_1 numbers them: baseline 1, v2 2, v3 4, v4 8.
    pub(super) fn levels(&self, answers: &Answers) -> u32 {
        let all = |word: u32, set: u32| word & set == set;
        // CX8, CMOV, MMX, FXSR, SSE, SSE2; the x87 unit has no active bit.
        if !all(self.basic.edx, bits(&[8, 15, 23, 24, 25, 26])) || answers.basic.edx & 1 == 0 {
            return 0;
        }
        // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
        if !all(self.basic.ecx, bits(&[0, 9, 13, 19, 20, 23])) || !all(self.extended.ecx, bit(0)) {
            return 0b1;
        }
        // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT.
        let third = all(self.basic.ecx, bits(&[12, 22, 28, 29])) && all(self.seven.ebx, bits(&[3, 5, 8]));
        if !third || !all(self.extended.ecx, bit(5)) {
            return 0b11;
        }
        if all(self.seven.ebx, bits(&[16, 17, 28, 30, 31])) { 0b1111 } else { 0b111 }
    }

    /// `_dl_hwcap` and the platform's name.
    pub(super) fn names(&self, vendor: Vendor) -> (u64, Option<&'static CStr>) {
        if vendor != Vendor::Intel {
            return (HWCAP_X86_64, None);
        }
        let (cd, er, pf) = (bit(28), bit(27), bit(26));
        let seven = self.seven.ebx;
        let mut hwcap = HWCAP_X86_64;
        if seven & cd != 0 {
            if seven & er != 0 {
                if seven & pf != 0 {
                    return (hwcap, Some(c"xeon_phi"));
                }
            } else if seven & bits(&[17, 30, 31]) == bits(&[17, 30, 31]) {
                hwcap |= HWCAP_AVX512;
            }
        }
        // FMA, MOVBE, POPCNT; BMI1, AVX2, BMI2; LZCNT.
        let all = |word: u32, set: u32| word & set == set;
        let is_haswell =
            all(self.basic.ecx, bits(&[12, 22, 23])) && all(seven, bits(&[3, 5, 8])) && all(self.extended.ecx, bit(5));
        (hwcap, is_haswell.then_some(c"haswell"))
    }
}
