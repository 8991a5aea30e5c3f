//! The rules on recorded processors. That they are glibc's shows suite `processor`, which compares with ld-linux on the same records.
#![expect(clippy::disallowed_methods, reason = "tests may allocate as they like")]

use super::{Answer, Features, Processor, Vendor};
use core::cell::RefCell;
use std::collections::BTreeMap;

const RYZEN: &str = include_str!("../../../../tests/programs/processor/ryzen-5-5600x3d.txt");
const SKYLAKE: &str = include_str!("../../../../tests/programs/processor/core-i7-7800x.txt");
const CORE_2: &str = include_str!("../../../../tests/programs/processor/core-2-duo.txt");
const OTHER: &str = include_str!("../../../../tests/programs/processor/other-vendor.txt");

#[derive(Default)]
struct Recorded {
    leaves: BTreeMap<(u32, u32), Answer>,
    state: u64,
    asked: RefCell<Vec<(u32, u32)>>,
}

impl Recorded {
    fn new(text: &str) -> Recorded {
        let mut recorded = Recorded::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<u64> = line.split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
            match words[..] {
                [state] => recorded.state = state,
                [leaf, subleaf, eax, ebx, ecx, edx] => {
                    let answer = Answer { eax: eax as u32, ebx: ebx as u32, ecx: ecx as u32, edx: edx as u32 };
                    recorded.leaves.insert((leaf as u32, subleaf as u32), answer);
                }
                _ => panic!("{line}"),
            }
        }
        recorded
    }
}

impl Processor for Recorded {
    fn ask(&self, leaf: u32, subleaf: u32) -> Answer {
        self.asked.borrow_mut().push((leaf, subleaf));
        self.leaves.get(&(leaf, subleaf)).copied().unwrap_or_default()
    }

    fn enabled_state(&self) -> u64 {
        self.state
    }
}

#[test]
fn amd() {
    let processor = Recorded::new(RYZEN);
    let features = Features::of(&processor).unwrap();
    let model = features.model;
    assert_eq!((model.vendor, model.family, model.model, model.stepping), (Vendor::Amd, 0x19, 0x21, 2));
    assert_eq!((features.levels, features.hwcap, features.platform), (0b111, 2, None));
    let caches = features.caches;
    assert_eq!((caches.first.size, caches.second.size, caches.third.size), (32 << 10, 512 << 10, 96 << 20));
    // 12 threads in the processor, 12 in the complex.
    assert_eq!((caches.shared, caches.non_temporal), (96 << 20, 72 << 20));
    assert_eq!((caches.rep_movsb, caches.rep_movsb_stop), (2112, 512 << 10));
}

#[test]
fn intel() {
    let features = Features::of(&Recorded::new(SKYLAKE)).unwrap();
    let model = features.model;
    assert_eq!((model.vendor, model.family, model.model, model.stepping), (Vendor::Intel, 6, 0x55, 4));
    assert_eq!((features.levels, features.hwcap), (0b1111, 0b110));
    assert_eq!(features.platform, Some(c"haswell"));
    let caches = features.caches;
    assert_eq!((caches.second.size, caches.third.size, caches.third.ways), (1 << 20, 8448 << 10, 11));
    // Exclusive: the second level comes on top.
    assert_eq!(caches.shared, (8448 + 1024) << 10);
}

#[test]
fn no_leaf_is_asked_twice() {
    for text in [RYZEN, SKYLAKE] {
        let processor = Recorded::new(text);
        Features::of(&processor).unwrap();
        let mut asked = processor.asked.take();
        let count = asked.len();
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked.len(), count);
    }
}

#[test]
fn processors_without_rules_are_left_alone() {
    assert_eq!(Features::of(&Recorded::new(CORE_2)), None);
    assert_eq!(Features::of(&Recorded::new(OTHER)), None);
    assert_eq!(Features::of(&Recorded::default()), None);
}
