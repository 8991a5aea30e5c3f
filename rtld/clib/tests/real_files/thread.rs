//! The main thread's descriptor, made in a child process whose own thread the registrations may take over.
//!
//! The offsets are those of glibc 2.36, by its debug information.

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use rtld_clib::{Glibc, ProcessFacts, RseqFacts, ThreadFacts};

use crate::mapped::{LIBC, LOADER, Mapped};
use crate::recognise::recognised;

unsafe extern "C" {
    /// Where the running process's threads have their rseq areas, from the thread pointer.
    static __rseq_offset: isize;
    /// How much of them is registered, 0 for none.
    static __rseq_size: u32;
}

#[repr(align(64))]
struct Descriptor([u64; 2368 / 8]);

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
    assert_eq!(glibc.name(), "2.36", "the offsets in this test are those of glibc 2.36");
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
    let block = Box::leak(Box::new(Descriptor([0; 2368 / 8])));
    let address = (&raw mut *block).expose_provenance();
    let random = Some([0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00]);
    let facts = ThreadFacts { dtv: 0xd0, random, initial_stack: 0x7fff_0000, rseq };
    // SAFETY: a zeroed block that is never freed; the memory of `_rtld_global` is the test's own; the child has one thread.
    unsafe { glibc.prepare_main_thread(address, &facts) }.unwrap();
    block
}

const RSEQ: RseqFacts = RseqFacts { enabled: true, feature_size: 0, align: 0, extra_tls: 0 };

#[test]
fn the_descriptor_is_what_glibcs_loader_makes() {
    in_child(|| {
        let (loader, glibc) = published();
        assert_eq!((glibc.descriptor_size(), glibc.extra_tls(&RSEQ)), (2368, None));
        unregister_rseq();
        let block = prepared(&glibc, RSEQ);
        let tp = (&raw const *block).addr() as u64;
        let user_stacks = loader.base as u64 + loader.symbol("_rtld_global").st_value + 4280;
        let expected = [
            (0, tp),
            (8, 0xd0),
            (16, tp),
            (0x28, 0x1122_3344_5566_7700),
            (0x30, 0x99aa_bbcc_ddee_ff00),
            (704, user_stacks),
            (712, user_stacks),
            (720, u64::from(std::process::id())),
            (728, tp + 736),
            (736, tp + 736),
            (744, -32i64 as u64),
            (1296, tp + 784),
            (1552, 1 << 16),
            (1688, 0x7fff_0000),
        ];
        for (index, word) in block.0.iter().enumerate().take(2336 / 8) {
            let offset = 8 * index;
            let expected = expected.iter().find(|(at, _)| *at == offset).map_or(0, |(_, value)| *value);
            assert_eq!(*word, expected, "offset {offset}");
        }
        let global = loader.words("_rtld_global");
        assert_eq!(global[4280 / 8..4296 / 8], [tp + 704, tp + 704]);
        // The kernel says to which processor the area belongs as soon as it is registered.
        let cpu_id = (block.0[2336 / 8] >> 32) as i32;
        assert!(cpu_id >= 0, "cpu_id {cpu_id}");
        // SAFETY: constants of the running glibc.
        let (offset, size) = unsafe { (__rseq_offset, __rseq_size) };
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
        let block = prepared(&glibc, RseqFacts { enabled: false, ..RSEQ });
        assert_eq!((block.0[2336 / 8] >> 32) as i32, -2);
        let found: Option<u32> = loader.image.read(loader.symbol("__rseq_size").st_value);
        assert_eq!(found, Some(0));
    });
}
