//! The main thread's descriptor, made in a child process whose own thread the registrations may take over.
//!
//! Where the words lie is what the table says of the machine's release, which `layout` compares with its debug information.

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use rtld_clib::offsets::{RseqPlace, StackOwner};
use rtld_clib::{Glibc, ProcessFacts, RseqFacts, ThreadFacts};

use crate::mapped::{LIBC, LOADER, Mapped};
use crate::recognise::recognised;

unsafe extern "C" {
    /// Where the running process's threads have their rseq areas, from the thread pointer.
    static __rseq_offset: isize;
    /// How much of them is registered, 0 for none.
    static __rseq_size: u32;
}

/// Words of the descriptor, larger than any release's.
const WORDS: usize = 4096 / 8;
/// How far below the descriptor its rseq area lies, where the release keeps it outside.
const EXTRA_TLS: usize = 64;

#[repr(C, align(64))]
struct Descriptor {
    extra: [u64; EXTRA_TLS / 8],
    words: [u64; WORDS],
}

/// Ends this thread's registration by the running glibc.
fn unregister_rseq() {
    let area: usize;
    // SAFETY: reads the thread pointer, which glibc has set.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) area) };
    // SAFETY: a constant of the running glibc.
    let offset = unsafe { __rseq_offset };
    // SAFETY: RSEQ_FLAG_UNREGISTER with the address, size and signature that glibc registered.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area.wrapping_add_signed(offset), 32, 1, 0x5305_3053u32) };
    assert_eq!(result, 0, "cannot unregister rseq: {}", std::io::Error::last_os_error());
}

/// Runs `act` in a child process; its panic is the test's.
fn in_child(act: impl FnOnce()) {
    // SAFETY: the child only works on its own memory, and leaves by _exit.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // A lock that another thread held at the fork stays locked here, and a panic may want it.
            // SAFETY: asks for a signal, which ends the child.
            unsafe { libc::alarm(60) };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 1 }) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0), "see the child's message");
        }
    }
}

fn published() -> (Mapped, Glibc) {
    let loader = Mapped::new(LOADER);
    let glibc = recognised(&Mapped::new(LIBC), &loader).unwrap();
    let facts = ProcessFacts {
        argv: 0,
        initial_stack: 0,
        auxv: 0,
        page_size: 4096,
        minimum_signal_stack: 0,
        clock_ticks: 100,
        hwcap: 0,
        hwcap2: 0,
        platform: None,
        secure: false,
        stack_flags: 6,
        tls_static_size: 0,
        tls_static_align: 64,
        main_map: 0,
        object_count: 0,
        empty_directory: 0,
    };
    glibc.publish(&facts).unwrap();
    (loader, glibc)
}

fn prepared(glibc: &Glibc, rseq: RseqFacts) -> &'static mut Descriptor {
    assert!(glibc.descriptor_size() <= 8 * WORDS);
    let block = Box::leak(Box::new(Descriptor { extra: [0; EXTRA_TLS / 8], words: [0; WORDS] }));
    let address = (&raw mut *block).expose_provenance() + EXTRA_TLS;
    let random = Some([0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00]);
    let facts = ThreadFacts { dtv: 0xd0, random, initial_stack: 0x7fff_0000, rseq };
    // SAFETY: a zeroed block that is never freed; the memory of `_rtld_global` is the test's own; the child has one thread.
    unsafe { glibc.prepare_main_thread(address, &facts) }.unwrap();
    block
}

/// As the kernel says to this process.
fn rseq() -> RseqFacts {
    // AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN.
    // SAFETY: reads the auxiliary vector, which stays; 0 for what is absent.
    let [feature_size, align] = [27, 28].map(|kind| unsafe { libc::getauxval(kind) } as usize);
    RseqFacts { enabled: true, feature_size, align, extra_tls: EXTRA_TLS }
}

/// The word of the rseq area that holds its cpu_id, as the kernel or nobody has set it.
fn rseq_cpu(glibc: &Glibc, block: &Descriptor) -> i32 {
    let word = match glibc.offsets().thread.rseq {
        RseqPlace::Descriptor(offset) => block.words[offset / 8],
        RseqPlace::ExtraTls => block.extra[0],
        RseqPlace::None => panic!("{} knows no rseq", glibc.name()),
    };
    (word >> 32) as i32
}

/// A number of one, two or four bytes as its word holds it: the word's offset and its value.
fn part(offset: usize, number: u64) -> (usize, u64) {
    (offset & !7, number << (8 * (offset & 7)))
}

#[test]
fn the_descriptor_is_what_glibcs_loader_makes() {
    in_child(|| {
        let (loader, glibc) = published();
        let places = &glibc.offsets().thread;
        assert_eq!(glibc.descriptor_size(), places.size);
        let extra = glibc.extra_tls(&rseq());
        assert_eq!(extra.is_some(), places.rseq == RseqPlace::ExtraTls);
        assert!(extra.is_none_or(|(size, align)| (32..=EXTRA_TLS).contains(&size) && align >= 32));
        unregister_rseq();
        let block = prepared(&glibc, rseq());
        let tp = (&raw const block.words).addr() as u64;
        let stack_user = glibc.offsets().global.stack_user.unwrap();
        let user_stacks = loader.base as u64 + loader.symbol("_rtld_global").st_value + stack_user as u64;
        let expected = [
            (0, tp),
            (8, 0xd0),
            (16, tp),
            (0x28, 0x1122_3344_5566_7700),
            (0x30, 0x99aa_bbcc_ddee_ff00),
            (places.list, user_stacks),
            (places.list + 8, user_stacks),
            part(places.tid, u64::from(std::process::id())),
            (places.robust_previous, tp + places.robust_head as u64),
            (places.robust_head, tp + places.robust_head as u64),
            (places.robust_head + 8, -32i64 as u64),
            (places.specific, tp + places.specific_first_block as u64),
            match places.stack_owner {
                StackOwner::Flag(offset) => part(offset, 1),
                StackOwner::Mode(offset) => part(offset, 2),
            },
            (places.stack_block_size, 0x7fff_0000),
        ];
        let end = match places.rseq {
            RseqPlace::Descriptor(offset) => offset,
            RseqPlace::None | RseqPlace::ExtraTls => 8 * WORDS,
        };
        for (index, word) in block.words.iter().enumerate().take(end / 8) {
            let offset = 8 * index;
            let expected = expected.iter().find(|(at, _)| *at == offset).map_or(0, |(_, value)| *value);
            assert_eq!(*word, expected, "offset {offset}");
        }
        let global = loader.words("_rtld_global");
        let element = tp + places.list as u64;
        assert_eq!(global[stack_user / 8..stack_user / 8 + 2], [element, element]);
        // The kernel says to which processor the area belongs as soon as it is registered.
        let cpu_id = rseq_cpu(&glibc, block);
        assert!(cpu_id >= 0, "cpu_id {cpu_id}");
        // SAFETY: constants of the running glibc.
        let (offset, size) = unsafe { (__rseq_offset, __rseq_size) };
        let offset = if extra.is_some() { -(EXTRA_TLS as isize) } else { offset };
        assert_eq!(loader.words("__rseq_offset"), [offset as u64]);
        let found: Option<u32> = loader.image.read(loader.symbol("__rseq_size").st_value);
        assert_eq!(found, Some(size));
    });
}

#[test]
fn rseq_is_left_alone_when_the_user_wants_it_so() {
    in_child(|| {
        let (loader, glibc) = published();
        unregister_rseq();
        let block = prepared(&glibc, RseqFacts { enabled: false, ..rseq() });
        assert_eq!(rseq_cpu(&glibc, block), -2);
        let found: Option<u32> = loader.image.read(loader.symbol("__rseq_size").st_value);
        assert_eq!(found, Some(0));
    });
}
