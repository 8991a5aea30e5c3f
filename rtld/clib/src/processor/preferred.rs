//! What string functions prefer on which processor (`preferred`), and which features are switched off on models that have them
//! broken. Owns the lists of models, glibc's.

use super::Model;
use super::active::{AVX, AVX_VNNI, AVX2, AVX512ER, Active, CMOV, CX8, FMA4, FSRM, HLE, RTM, RTM_ALWAYS_ABORT};
use super::answers::Answers;

// Numbers of bits in 2.36 (cpu-features-preferred_feature_index_1.def).
const FAST_REP_STRING: u32 = 1;
const FAST_COPY_BACKWARD: u32 = 1 << 1;
const SLOW_BSF: u32 = 1 << 2;
const FAST_UNALIGNED_LOAD: u32 = 1 << 3;
const PREFER_PMINUB: u32 = 1 << 4;
const FAST_UNALIGNED_COPY: u32 = 1 << 5;
const I586: u32 = 1 << 6;
const I686: u32 = 1 << 7;
const SLOW_SSE4_2: u32 = 1 << 8;
pub(super) const AVX_FAST_UNALIGNED_LOAD: u32 = 1 << 9;
const PREFER_NO_VZEROUPPER: u32 = 1 << 10;
pub(super) const PREFER_NO_AVX512: u32 = 1 << 12;
const AVOID_SHORT_REP_MOVSB: u32 = 1 << 15;

/// What every processor gets by its features.
pub(super) fn common(answers: &Answers, active: &Active) -> u32 {
    let mut set = 0;
    if active.seven.ebx & AVX2 != 0 {
        set |= AVX_FAST_UNALIGNED_LOAD;
    }
    if answers.basic.edx & CX8 != 0 {
        set |= I586;
    }
    if answers.basic.edx & CMOV != 0 {
        set |= I686;
    }
    set
}

/// What Intel's get besides; broken transactions are switched off.
pub(super) fn intel(model: Model, answers: &Answers, active: &mut Active) -> u32 {
    let mut set = 0;
    if model.family == 6 {
        set |= strings(model.model, answers);
        without_transactions(model, active);
    }
    if answers.seven.ebx & AVX512ER != 0 {
        set |= PREFER_NO_VZEROUPPER;
    } else {
        if answers.seven_1.eax & AVX_VNNI == 0 {
            set |= PREFER_NO_AVX512;
        }
        if active.seven.ebx & RTM != 0 {
            set |= PREFER_NO_VZEROUPPER;
        }
    }
    if answers.seven.edx & FSRM != 0 {
        set |= AVOID_SHORT_REP_MOVSB;
    }
    set
}

fn strings(model: u32, answers: &Answers) -> u32 {
    let unaligned = FAST_UNALIGNED_LOAD | FAST_UNALIGNED_COPY | PREFER_PMINUB;
    match model {
        // Bonnell.
        0x1c | 0x26 => SLOW_BSF,
        // Silvermont, Airmont, Goldmont, Goldmont Plus, Knights Landing.
        0x37 | 0x4a | 0x4c | 0x4d | 0x57 | 0x5a | 0x5c | 0x5d | 0x5f | 0x75 | 0x7a => unaligned | SLOW_SSE4_2,
        // Tremont.
        0x86 | 0x96 | 0x9c => FAST_REP_STRING | unaligned | SLOW_SSE4_2,
        // Nehalem, Westmere.
        0x1a | 0x1e | 0x1f | 0x25 | 0x2c | 0x2e | 0x2f => FAST_REP_STRING | unaligned,
        _ if answers.basic.ecx & AVX != 0 => FAST_REP_STRING | unaligned,
        _ => 0,
    }
}

/// Models whose transactions are broken unless the microcode is new.
fn without_transactions(model: Model, active: &mut Active) {
    let Model { model, stepping, .. } = model;
    match model {
        // Skylake and its kin: transactions abort always.
        0x4e | 0x5e => {}
        0x55 if stepping <= 5 => {}
        0x8e | 0x9e if stepping <= 0xc => {}
        // Haswell, but for the Xeon E7 v3 of stepping 4 and later.
        0x3c | 0x45 | 0x46 => {
            active.seven.ebx &= !RTM;
            return;
        }
        0x3f if stepping < 4 => {
            active.seven.ebx &= !RTM;
            return;
        }
        _ => return,
    }
    active.seven.ebx &= !(HLE | RTM);
    active.seven.edx |= RTM_ALWAYS_ABORT;
}

/// What AMD's prefer, of what they would get by their features; four-operand FMA is theirs.
pub(super) fn amd(model: Model, common: u32, answers: &Answers, active: &mut Active) -> u32 {
    if active.basic.ecx & AVX != 0 {
        active.extended.ecx |= answers.extended.ecx & FMA4;
    }
    // Excavator.
    if model.family == 0x15 && (0x60..=0x7f).contains(&model.model) {
        return (common | FAST_UNALIGNED_LOAD | FAST_COPY_BACKWARD) & !AVX_FAST_UNALIGNED_LOAD;
    }
    common
}
