//! What the processor is asked, each leaf once, and its answers. Owns the order and the conditions of asking.

use super::Vendor;
use rtld_sys::processor;

/// The four registers that CPUID leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// A processor, or the record of one.
pub trait Processor {
    /// Executes CPUID.
    fn ask(&self, leaf: u32, subleaf: u32) -> Answer;

    /// XCR0: the states that the system saves. Called only if leaf 1 says that XGETBV can be used.
    fn enabled_state(&self) -> u64;
}

/// The processor that runs this.
#[derive(Debug, Clone, Copy)]
pub struct This;

impl Processor for This {
    fn ask(&self, leaf: u32, subleaf: u32) -> Answer {
        let [eax, ebx, ecx, edx] = processor::ask(leaf, subleaf);
        Answer { eax, ebx, ecx, edx }
    }

    fn enabled_state(&self) -> u64 {
        // SAFETY: the method is called where leaf 1 announces it.
        unsafe { processor::enabled_state() }
    }
}

/// The leaves that `struct cpu_features` keeps as they are; zero where the processor has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answers {
    /// The highest basic leaf.
    pub(crate) highest: u32,
    /// The highest extended leaf. For Intel's, where nothing depends on a later one, 0x80000008 if there is that.
    pub(crate) highest_extended: u32,
    /// Leaf 1.
    pub(crate) basic: Answer,
    /// Leaf 7, subleaf 0.
    pub(crate) seven: Answer,
    /// Leaf 7, subleaf 1.
    pub(crate) seven_1: Answer,
    /// Leaf 13, subleaf 1: XSAVE.
    pub(crate) save: Answer,
    /// Leaf 20: processor trace.
    pub(crate) trace: Answer,
    /// Leaf 25: key locker.
    pub(crate) locker: Answer,
    /// Leaf 0x80000001.
    pub(crate) extended: Answer,
    /// Leaf 0x80000007.
    pub(crate) power: Answer,
    /// Leaf 0x80000008.
    pub(crate) sizes: Answer,
}

const INTEL: [u32; 3] = vendor(b"GenuineIntel");
const AMD: [u32; 3] = vendor(b"AuthenticAMD");
const HYGON: [u32; 3] = vendor(b"HygonGenuine");

/// EBX, EDX, ECX of leaf 0.
const fn vendor(name: &[u8; 12]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *name;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([i, j, k, l])]
}

/// Whether an answer to leaf 0x80000008 is its own: bits of a physical and of a linear address, and of a guest's physical one, or 0.
/// Every processor of Intel's with 64 bits has this leaf, but not every emulator of one; asked for a leaf beyond the highest one
/// they answer with the highest basic leaf (Intel SDM, CPUID), none of which looks like this.
const fn are_sizes(answer: Answer) -> bool {
    let [physical, linear, guest, rest] = answer.eax.to_le_bytes();
    matches!(physical, 36..=52) && matches!(linear, 48 | 57) && matches!(guest, 0 | 36..=52) && rest == 0
}

impl Answers {
    /// `None` for a vendor without rules.
    pub(crate) fn ask(processor: &impl Processor) -> Option<(Vendor, Answers)> {
        let first = processor.ask(0, 0);
        let vendor = match [first.ebx, first.edx, first.ecx] {
            INTEL => Vendor::Intel,
            AMD | HYGON => Vendor::Amd,
            _ => return None,
        };
        let highest = first.eax;
        let has = |leaf| highest >= leaf;
        let ask = |there: bool, leaf, subleaf| if there { processor.ask(leaf, subleaf) } else { Answer::default() };
        let sizes = if vendor == Vendor::Intel { Some(processor.ask(0x8000_0008, 0)) } else { None };
        let highest_extended = match sizes {
            Some(sizes) if are_sizes(sizes) => 0x8000_0008,
            _ => processor.ask(0x8000_0000, 0).eax,
        };
        let has_extended = |leaf| highest_extended >= leaf;
        let seven = ask(has(7), 7, 0);
        let answers = Answers {
            highest,
            highest_extended,
            basic: processor.ask(1, 0),
            seven,
            // A subleaf above the highest one, which EAX of subleaf 0 gives, is zero.
            seven_1: ask(has(7) && seven.eax >= 1, 7, 1),
            save: ask(has(13), 13, 1),
            // Two leaves are zero unless leaf 7 announces what they describe: processor trace, key locker.
            trace: ask(has(20) && seven.ebx & 1 << 25 != 0, 20, 0),
            locker: ask(has(25) && seven.ecx & 1 << 23 != 0, 25, 0),
            extended: ask(has_extended(0x8000_0001), 0x8000_0001, 0),
            power: ask(has_extended(0x8000_0007), 0x8000_0007, 0),
            sizes: match sizes {
                Some(sizes) if has_extended(0x8000_0008) => sizes,
                Some(_) => Answer::default(),
                None => ask(has_extended(0x8000_0008), 0x8000_0008, 0),
            },
        };
        Some((vendor, answers))
    }
}
