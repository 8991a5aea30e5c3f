//! What the cases stand on: a thread's state in this program, the replaced functions by name, children with a time limit.

use sigblock::{ThreadState, backend};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_int, c_void};
use std::mem::MaybeUninit;

#[repr(C, align(64))]
struct Place(UnsafeCell<MaybeUninit<ThreadState>>);

thread_local! {
    static STATE: Place = const { Place(UnsafeCell::new(MaybeUninit::zeroed())) };
}

fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the thread control block.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) pointer) };
    pointer
}

fn original(name: &'static [u8]) -> usize {
    let name = CString::new(name).unwrap();
    // SAFETY: a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// Makes the calling thread one that may use sections.
pub fn prepare_thread() {
    STATE.with(|place| {
        let distance = pointer() - place.0.get().addr();
        sigblock::set_area(distance);
    });
}

/// Chooses a back end in a fresh process.
pub fn start(name: &'static str) {
    prepare_thread();
    let wish = backend::Wish { backend: Some(name.as_bytes()), mask: None, count: true, original };
    assert!(backend::start(wish).is_none());
    backend::activate();
    assert_eq!(backend::name(backend::current()), name);
}

/// Our code for a function of the C library.
pub fn replaced<F: Copy>(name: &str) -> F {
    let address = sigblock::replacement(name.as_bytes()).unwrap_or_else(|| panic!("{name} is not replaced"));
    assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: the caller names the function's type.
    unsafe { std::mem::transmute_copy(&address) }
}

/// A handler with SA_SIGINFO.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
/// sigaction(2).
pub type SetAction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// Sets a handler through our sigaction.
pub fn handle(signal: c_int, handler: Handler, flags: c_int) {
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags | libc::SA_SIGINFO;
    let set: SetAction = replaced("sigaction");
    // SAFETY: a whole structure.
    assert_eq!(unsafe { set(signal, &action, std::ptr::null_mut()) }, 0);
}

/// The kernel's mask of the calling thread.
pub fn kernel_mask() -> u64 {
    let mut mask = 0_u64;
    // SAFETY: 8 bytes to fill.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, 0, 0, &raw mut mask, 8) };
    mask
}

/// Sends a signal to the calling thread.
pub fn send(signal: c_int) {
    // SAFETY: numbers only.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// Queues a value to the process.
pub fn queue(signal: c_int, value: usize) {
    let value = libc::sigval { sival_ptr: value as *mut c_void };
    // SAFETY: numbers only.
    assert_eq!(unsafe { libc::sigqueue(libc::getpid(), signal, value) }, 0);
}

/// Queues a signal to the calling thread, where [`queue`] queues it to the process.
pub fn queue_to_thread(signal: c_int, value: usize) {
    // SAFETY: numbers only.
    let thread = unsafe { libc::gettid() };
    // Number, error, code; then, behind the sender's process and user, the value.
    let (mut information, code) = ([0_usize; 16], libc::SI_QUEUE as u32 as usize);
    (information[0], information[1], information[3]) = (signal as usize, code, value);
    let call = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: a siginfo_t has 128 bytes.
    assert_eq!(unsafe { libc::syscall(call, std::process::id(), thread, signal, &raw const information) }, 0);
}

/// The calling thread's word.
pub fn word() -> u32 {
    sigblock::current().word.load(std::sync::atomic::Ordering::Relaxed)
}

/// Enters a section.
pub fn enter() {
    sigblock::section::enter(sigblock::current());
}

/// Leaves a section.
pub fn leave() {
    sigblock::section::leave(sigblock::current());
}

const LIMIT: u32 = 60;

/// Runs a case in a child: it must exit with 0.
pub fn in_child(case: fn()) -> Result<(), String> {
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: numbers only; SIGALRM ends the child.
        unsafe { libc::alarm(LIMIT) };
        // SAFETY: numbers only.
        unsafe { libc::setpgid(0, 0) };
        case();
        std::process::exit(0);
    }
    let status = wait(child);
    // What a case that failed has left behind would hold our output open.
    // SAFETY: numbers only.
    unsafe { libc::kill(-child, libc::SIGKILL) };
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 { Ok(()) } else { Err(format!("status {status:#x}")) }
}

/// Waits for a child.
pub fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: one word to fill.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {}
    status
}
