//! glibc's exceptions: how its loader and its own users of that tell each other of errors (GLIBC_PRIVATE, elf/dl-exception.h and
//! dl-error-skeleton.c). A catch is a frame of the assembly thunk below; the innermost one of a thread is kept beside the
//! thread's last error. Where the C library has functions of its own for it, it uses those, and we signal to them (`dlfcn`).

use crate::constants::CANNOT_START;
use crate::exports::here;
use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int};
use rtld_link::text::Bytes;
use rtld_runtime::last_error;
use rtld_sys::process;

/// `struct dl_exception` of glibc.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The object that it is about; never null in one that was made.
    pub object: *const c_char,
    /// What is wrong; null for nothing.
    pub message: *const c_char,
    /// What `_dl_exception_free` frees; null for nothing.
    pub buffer: *mut c_char,
}

const NOTHING: Exception =
    Exception { object: core::ptr::null(), message: core::ptr::null(), buffer: core::ptr::null_mut() };

/// A catch, in the thunk's frame.
#[repr(C)]
struct Catch {
    previous: usize,
    exception: *mut Exception,
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl rtld_catch_exception
    .hidden rtld_catch_exception
    .type rtld_catch_exception,@function
    # int _dl_catch_exception(struct dl_exception *, void (*operate)(void *), void *)
rtld_catch_exception:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    rbx
    .cfi_offset rbx, -24
    push    r12
    .cfi_offset r12, -32
    push    r13
    .cfi_offset r13, -40
    push    r14
    .cfi_offset r14, -48
    push    r15
    .cfi_offset r15, -56
    sub     rsp, 24
    mov     rbx, rsi
    mov     r12, rdx
    mov     rsi, rdi
    mov     rdi, rsp
    call    {begin}
    mov     rdi, r12
    call    rbx
    mov     rdi, rsp
    call    {end}
    xor     eax, eax
2:  lea     rsp, [rbp - 40]
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
    pop     rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size rtld_catch_exception, . - rtld_catch_exception

    .globl rtld_resume_catch
    .hidden rtld_resume_catch
    .type rtld_resume_catch,@function
    # rdi: the record of a catch, esi: what it gives back.
rtld_resume_catch:
    .cfi_startproc
    mov     eax, esi
    lea     rbp, [rdi + 64]
    jmp     2b
    .cfi_endproc
    .size rtld_resume_catch, . - rtld_resume_catch
"#,
    begin = sym begin,
    end = sym end,
);

unsafe extern "C" {
    fn rtld_catch_exception();
    fn rtld_resume_catch(catch: *mut Catch, code: c_int) -> !;
}

/// `_dl_catch_exception`.
pub fn catch_entry() -> usize {
    rtld_catch_exception as *const () as usize
}

extern "C" fn begin(catch: *mut Catch, exception: *mut Exception) {
    let record = Catch { previous: last_error::catch(), exception };
    // SAFETY: the thunk's frame has room for the record.
    unsafe { catch.write(record) };
    // Without an exception nothing is caught: errors inside end the process.
    last_error::set_catch(if exception.is_null() { 0 } else { catch.expose_provenance() });
}

extern "C" fn end(catch: *mut Catch) {
    // SAFETY: begin() filled it.
    let Catch { previous, exception } = unsafe { catch.read() };
    last_error::set_catch(previous);
    if !exception.is_null() {
        // SAFETY: the caller's structure.
        unsafe { exception.write(NOTHING) };
    }
}

/// `_dl_catch_error`: as `_dl_catch_exception`, with the texts in the thread's last error: nothing is to be freed.
pub extern "C" fn catch_error(
    object: *mut *const c_char,
    message: *mut *const c_char,
    allocated: *mut bool,
    operate: usize,
    argument: usize,
) -> c_int {
    let mut exception = NOTHING;
    let function = core::ptr::with_exposed_provenance::<()>(catch_entry());
    // SAFETY: the thunk has this type.
    let function =
        unsafe { core::mem::transmute::<*const (), extern "C" fn(*mut Exception, usize, usize) -> c_int>(function) };
    let code = function(&raw mut exception, operate, argument);
    let failed = !exception.message.is_null();
    if failed {
        let text = Bytes(bytes(exception.message));
        last_error::set(format_args!("{text}"));
    }
    free(&raw mut exception);
    // SAFETY: the caller passes three places to fill.
    unsafe { message.write(if failed { last_error::peek().as_ptr() } else { core::ptr::null() }) };
    // SAFETY: as above.
    unsafe { object.write(c"".as_ptr()) };
    // SAFETY: as above.
    unsafe { allocated.write(false) };
    code
}

/// `_dl_signal_exception`.
pub extern "C" fn signal_exception(code: c_int, exception: *mut Exception, occasion: *const c_char) -> ! {
    // SAFETY: the caller passes one that was made.
    let given = unsafe { exception.read() };
    if last_error::catch() == 0 {
        fatal(occasion, bytes(given.object), bytes(given.message));
    }
    deliver(code, given)
}

/// `_dl_signal_error`.
pub extern "C" fn signal_error(
    code: c_int,
    object: *const c_char,
    occasion: *const c_char,
    message: *const c_char,
) -> ! {
    let message = if message.is_null() { c"DYNAMIC LINKER BUG!!!".as_ptr() } else { message };
    if last_error::catch() == 0 {
        fatal(occasion, bytes(object), bytes(message));
    }
    let mut exception = NOTHING;
    create(&raw mut exception, object, message);
    deliver(code, exception)
}

fn deliver(code: c_int, exception: Exception) -> ! {
    let catch = core::ptr::with_exposed_provenance_mut::<Catch>(last_error::catch());
    // SAFETY: the innermost catch of this thread, whose frame is alive.
    let Catch { previous, exception: place } = unsafe { catch.read() };
    last_error::set_catch(previous);
    // SAFETY: a catch that is kept has a structure to fill.
    unsafe { place.write(exception) };
    // SAFETY: as above; no frame of ours on the way holds anything.
    unsafe { rtld_resume_catch(catch, code) }
}

/// What is said, and how the process ends, where nobody catches: as in glibc.
fn fatal(occasion: *const c_char, object: &[u8], message: &[u8]) -> ! {
    let program = Bytes(here().process.program_name.to_bytes());
    let occasion: &[u8] = if occasion.is_null() { b"error while loading shared libraries" } else { bytes(occasion) };
    let colon = if object.is_empty() { "" } else { ": " };
    let (occasion, object, message) = (Bytes(occasion), Bytes(object), Bytes(message));
    crate::report::error(format_args!("{program}: {occasion}: {object}{colon}{message}\n"));
    process::exit(CANNOT_START)
}

fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: C strings, by the interface.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// In front of a buffer: its size.
const HEAD: usize = 16;

/// `_dl_exception_create`: copies of both texts, in the loader's own memory.
pub extern "C" fn create(exception: *mut Exception, object: *const c_char, message: *const c_char) {
    let (object, message) = (bytes(object), bytes(message));
    let size = HEAD + message.len() + object.len() + 2;
    let no_memory = Exception { object: c"".as_ptr(), message: c"out of memory".as_ptr(), ..NOTHING };
    let made = Layout::from_size_align(size, HEAD).ok().map(|layout| {
        // SAFETY: the layout is not empty.
        unsafe { alloc(layout) }
    });
    let made = match made {
        Some(memory) if !memory.is_null() => {
            // SAFETY: the buffer begins with room for its size.
            unsafe { memory.cast::<usize>().write(size) };
            let text = memory.wrapping_add(HEAD);
            let behind = text.wrapping_add(message.len() + 1);
            copy(message, text);
            copy(object, behind);
            // Not the message's own address: by that glibc tells that the message is to be freed by free(3).
            Exception { object: behind.cast(), message: text.cast(), buffer: memory.cast() }
        }
        _ => no_memory,
    };
    // SAFETY: the caller passes a structure to fill.
    unsafe { exception.write(made) };
}

fn copy(text: &[u8], place: *mut u8) {
    // SAFETY: create() made room for both texts.
    unsafe { place.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    // SAFETY: and for their ends.
    unsafe { place.wrapping_add(text.len()).write(0) };
}

/// `_dl_exception_free`.
pub extern "C" fn free(exception: *mut Exception) {
    // SAFETY: the caller passes one that was made.
    let Exception { buffer, .. } = unsafe { exception.read() };
    if !buffer.is_null() {
        let memory = buffer.cast::<u8>();
        // SAFETY: create() put the size there.
        let size = unsafe { memory.cast::<usize>().read() };
        if let Ok(layout) = Layout::from_size_align(size, HEAD) {
            // SAFETY: allocated with this layout, and no longer used.
            unsafe { dealloc(memory, layout) };
        }
    }
    // SAFETY: as above.
    unsafe { exception.write(NOTHING) };
}
