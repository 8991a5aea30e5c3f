//! Calls that must not happen inside a section, because they sleep with a mask of their own, leave the image, or copy the
//! process: made from a callback, they end its section first. And calls that we only look at: jumps, and seccomp filters.
//!
//! Each is a stub that keeps all argument registers and goes on to the C library's own function, which we know how to find.

use crate::fork::{self, PutAway};
use crate::state::{self, IN_VFORK, ThreadState};
use crate::{callback, disposition, jump, mask, section, wait};
use core::arch::global_asm;
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use linux_raw_sys::general as kernel;
use rtld_sys::process;
use rtld_sys::signal::Mask;

/// Finds the C library's own definition of a name.
pub(crate) type Original = fn(&'static [u8]) -> usize;

static ORIGINAL: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

pub(crate) fn set_original(original: Original) {
    ORIGINAL.store(original as *mut (), Ordering::Release);
}

pub(crate) fn original(name: &'static [u8]) -> usize {
    let known = ORIGINAL.load(Ordering::Acquire);
    if known.is_null() {
        return 0;
    }
    // SAFETY: stored by set_original, from a value of this type.
    let known: Original = unsafe { core::mem::transmute::<*mut (), Original>(known) };
    known(name)
}

/// Stores an error number where the C library has it; gives -1.
#[cold]
pub(crate) fn set_error(number: c_int) -> c_int {
    static LOCATION: AtomicUsize = AtomicUsize::new(0);
    let mut location = LOCATION.load(Ordering::Relaxed);
    if location == 0 {
        location = original(b"__errno_location");
        LOCATION.store(location, Ordering::Relaxed);
    }
    if location != 0 {
        let function = core::ptr::with_exposed_provenance::<()>(location);
        // SAFETY: the C library's function of this name gives the address of the calling thread's errno.
        let function = unsafe { core::mem::transmute::<*const (), extern "C" fn() -> *mut c_int>(function) };
        let place = function();
        // SAFETY: as above.
        unsafe { place.write(number) };
    }
    -1
}

/// What a stub does before it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ends the sections of callbacks.
    Outside,
    /// The same, and those of the program: nothing of this image stays.
    Leaves,
    /// Saves the mask, which must be the program's, for a jump that may come later.
    Lends,
    /// The same as Outside; what was put away may be what is waited for.
    Waits,
    /// The same; in the child there is more to do.
    Fork,
    /// longjmp(3) and kin.
    Jump,
    /// setcontext(3): the second function's context is the first argument.
    Context,
    /// swapcontext(3): it is the second.
    Swap,
    /// prctl(2), where it installs a filter.
    Prctl,
    /// syscall(2), where it does.
    SystemCall,
}

/// Every stub, in the order of the assembly.
const STUBS: [(&[u8], Kind); 46] = [
    (b"sigsuspend", Kind::Outside),
    (b"__sigsuspend", Kind::Outside),
    (b"sigpause", Kind::Outside),
    (b"__sigpause", Kind::Outside),
    (b"__xpg_sigpause", Kind::Outside),
    (b"pause", Kind::Outside),
    (b"ppoll", Kind::Outside),
    (b"__ppoll_chk", Kind::Outside),
    (b"pselect", Kind::Outside),
    (b"epoll_pwait", Kind::Outside),
    (b"epoll_pwait2", Kind::Outside),
    (b"sigwait", Kind::Waits),
    (b"sigwaitinfo", Kind::Waits),
    (b"sigtimedwait", Kind::Waits),
    (b"execve", Kind::Leaves),
    (b"execv", Kind::Leaves),
    (b"execvp", Kind::Leaves),
    (b"execvpe", Kind::Leaves),
    (b"execl", Kind::Leaves),
    (b"execle", Kind::Leaves),
    (b"execlp", Kind::Leaves),
    (b"fexecve", Kind::Leaves),
    (b"execveat", Kind::Leaves),
    (b"posix_spawn", Kind::Outside),
    (b"posix_spawnp", Kind::Outside),
    (b"system", Kind::Outside),
    (b"popen", Kind::Outside),
    (b"pthread_create", Kind::Outside),
    (b"thrd_create", Kind::Outside),
    (b"exit", Kind::Leaves),
    (b"quick_exit", Kind::Leaves),
    (b"longjmp", Kind::Jump),
    (b"_longjmp", Kind::Jump),
    (b"siglongjmp", Kind::Jump),
    (b"__longjmp_chk", Kind::Jump),
    (b"setjmp", Kind::Lends),
    (b"__sigsetjmp", Kind::Lends),
    (b"getcontext", Kind::Lends),
    (b"setcontext", Kind::Context),
    (b"swapcontext", Kind::Swap),
    (b"prctl", Kind::Prctl),
    (b"syscall", Kind::SystemCall),
    // Those that come back twice are the last ones.
    (b"fork", Kind::Fork),
    (b"__fork", Kind::Fork),
    (b"__libc_fork", Kind::Fork),
    (b"_Fork", Kind::Fork),
];

/// How many of them go on with a jump.
const JUMPING: usize = 42;
/// Bytes from one stub to the next.
const STRIDE: usize = 16;

static ADDRESSES: [AtomicUsize; STUBS.len()] = [const { AtomicUsize::new(0) }; STUBS.len()];

/// Our stub for a name.
pub(crate) fn stub(name: &[u8]) -> Option<usize> {
    let position = STUBS.iter().position(|&(known, _)| known == name)?;
    Some((sigblock_stubs as *const () as usize).wrapping_add(position * STRIDE))
}

/// Whether a stub only matters where a filter changes how sections end.
pub(crate) fn is_for_filters(name: &[u8]) -> bool {
    STUBS.iter().any(|&(known, kind)| known == name && matches!(kind, Kind::Prctl | Kind::SystemCall))
}

/// The argument registers as a stub pushed them, last one first.
#[repr(C)]
struct Arguments {
    sixth: usize,
    fifth: usize,
    fourth: usize,
    third: usize,
    second: usize,
    first: usize,
}

/// Before a call: does what its kind asks for, gives the C library's function.
extern "C" fn before(index: usize, arguments: &mut Arguments) -> usize {
    let Some(&(name, kind)) = STUBS.get(index) else { process::abort() };
    let state = state::current();
    match kind {
        Kind::Outside => {
            callback::suspend(state);
            mask::lend(state);
        }
        Kind::Lends => mask::lend(state),
        Kind::Fork => {
            callback::suspend(state);
            let put_away = fork::before(state);
            (arguments.first, arguments.second) = (put_away.oldest, put_away.waiting as usize);
        }
        Kind::Leaves => {
            fork::do_first();
            callback::suspend(state);
            leave_all(state);
        }
        Kind::Waits => {
            callback::suspend(state);
            if let Some(answer) = wait::has_answer(state, name, arguments.first) {
                return answer;
            }
        }
        Kind::Jump => jump::to_buffer(state, arguments.first),
        Kind::Context => jump::to_context(state, arguments.first),
        Kind::Swap => {
            callback::detach(state);
            mask::lend(state);
            jump::adopt_from_context(state, arguments.second);
        }
        Kind::Prctl => look_for_filter(state, kernel::__NR_prctl as usize, arguments.first),
        Kind::SystemCall => look_for_filter(state, arguments.first, arguments.second),
    }
    let Some(place) = ADDRESSES.get(index) else { process::abort() };
    let mut address = place.load(Ordering::Relaxed);
    if address == 0 {
        address = original(name);
        if address == 0 {
            // It was found when the reference to it was bound.
            process::abort();
        }
        place.store(address, Ordering::Relaxed);
    }
    address
}

/// Ends the program's own sections, however many. Those that a vfork child is in are its parent's.
fn leave_all(state: &ThreadState) {
    if state.state.load(Ordering::Relaxed) & IN_VFORK != 0 {
        return;
    }
    for _ in 0..state.own.swap(0, Ordering::Relaxed) {
        section::leave(state);
    }
}

fn look_for_filter(state: &ThreadState, number: usize, option: usize) {
    let sets = number == kernel::__NR_prctl as usize && option == linux_raw_sys::prctl::PR_SET_SECCOMP as usize;
    if sets || number == kernel::__NR_seccomp as usize {
        disposition::before_filter(state);
    }
}

unsafe extern "C" {
    fn sigblock_stubs();
}

const _: () = assert!(JUMPING == 42 && STUBS.len() == JUMPING + 4);

global_asm!(
    r#"
    .text
    .p2align 4
    .globl sigblock_stubs
    .hidden sigblock_stubs
    .type sigblock_stubs,@function
sigblock_stubs:
    .cfi_startproc
    .set sigblock_index, 0
    .rept {jumping}
    .p2align 4
    mov     r11d, sigblock_index
    jmp     sigblock_outside
    .set sigblock_index, sigblock_index + 1
    .endr
    .rept {rest}
    .p2align 4
    mov     r11d, sigblock_index
    jmp     sigblock_twice
    .set sigblock_index, sigblock_index + 1
    .endr
    .cfi_endproc
    .size sigblock_stubs, . - sigblock_stubs

    .p2align 4
    .type sigblock_outside,@function
    # Keeps the arguments and the number of vector registers in rax; goes on with the stack as it was.
sigblock_outside:
    .cfi_startproc
"#,
    rtld_sys::push_registers!("rax" "rdi" "rsi" "rdx" "rcx" "r8" "r9"),
    r#"
    mov     edi, r11d
    mov     rsi, rsp
    call    {before}
    mov     r11, rax
"#,
    rtld_sys::pop_registers!("r9" "r8" "rcx" "rdx" "rsi" "rdi" "rax"),
    r#"
    jmp     r11
    .cfi_endproc
    .size sigblock_outside, . - sigblock_outside

    .p2align 4
    .type sigblock_twice,@function
    # A function without arguments that gives 0 in the child. Where arguments would be are two numbers for the child.
sigblock_twice:
    .cfi_startproc
    sub     rsp, 56
    .cfi_adjust_cfa_offset 56
    mov     edi, r11d
    mov     rsi, rsp
    call    {before}
    call    rax
    test    eax, eax
    jnz     2f
    mov     rdi, [rsp + 40]
    mov     rsi, [rsp + 32]
    call    {in_child}
    xor     eax, eax
2:  add     rsp, 56
    .cfi_adjust_cfa_offset -56
    ret
    .cfi_endproc
    .size sigblock_twice, . - sigblock_twice
"#,
    jumping = const JUMPING,
    rest = const STUBS.len() - JUMPING,
    before = sym before,
    in_child = sym in_child,
);

extern "C" fn in_child(oldest: usize, waiting: Mask) {
    fork::in_child(state::current(), &PutAway { oldest, waiting });
}

const _: () = assert!(core::mem::offset_of!(Arguments, first) == 40 && core::mem::offset_of!(Arguments, second) == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_that_return_twice_are_the_last() {
        for (index, (name, kind)) in STUBS.iter().enumerate() {
            assert_eq!(*kind == Kind::Fork, index >= JUMPING, "{}", String::from_utf8_lossy(name));
        }
        assert_eq!(stub(b"fork").and_then(|at| Some(at - stub(b"sigsuspend")?)), Some(JUMPING * STRIDE));
        assert_eq!(stub(b"read"), None);
    }
}
