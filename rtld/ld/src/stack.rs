//! The initial process stack (psABI 3.4.1): argument count, argument pointers, environment pointers, auxiliary vector.
//! It is changed in two ways only, both by moving pointers down: taking out leading arguments and taking out
//! environment entries. What follows moves along, so that whoever walks from argc finds the auxiliary vector behind the
//! environment as the kernel leaves it.

use core::ffi::CStr;
use rtld_sys::auxv::{AuxVector, Entry};

/// The stack of the main thread at the process's start.
#[derive(Clone, Copy)]
pub struct InitialStack {
    words: *mut usize,
}

impl InitialStack {
    /// The stack whose argument count is at this address.
    ///
    /// # Safety
    /// It must be what the kernel passed to this process, and used by nobody else.
    pub unsafe fn at(address: usize) -> InitialStack {
        InitialStack { words: core::ptr::with_exposed_provenance_mut(address) }
    }

    /// Its address: the stack pointer at entry.
    pub fn address(self) -> usize {
        self.words.expose_provenance()
    }

    fn word(self, index: usize) -> usize {
        // SAFETY: callers stay between argc and the end of the auxiliary vector, which the kernel wrote.
        unsafe { self.words.wrapping_add(index).read() }
    }

    fn set_word(self, index: usize, value: usize) {
        // SAFETY: as word(); the memory is ours.
        unsafe { self.words.wrapping_add(index).write(value) };
    }

    /// argc.
    pub fn argument_count(self) -> usize {
        self.word(0)
    }

    /// Address of argv[0].
    pub fn arguments(self) -> usize {
        self.words.wrapping_add(1).expose_provenance()
    }

    /// One argument.
    pub fn argument(self, index: usize) -> Option<&'static CStr> {
        (index < self.argument_count()).then(|| c_string(self.word(1 + index)))
    }

    /// Replaces one argument, which must exist.
    pub fn set_argument(self, index: usize, value: &'static CStr) {
        if index < self.argument_count() {
            self.set_word(1 + index, value.as_ptr().expose_provenance());
        }
    }

    fn environment_index(self) -> usize {
        self.argument_count() + 2
    }

    /// Address of the first environment pointer.
    pub fn environment_address(self) -> usize {
        self.words.wrapping_add(self.environment_index()).expose_provenance()
    }

    /// The environment's entries, whatever they look like.
    pub fn environment(self) -> impl Iterator<Item = &'static CStr> {
        let first = self.environment_index();
        (0..).map(move |offset| self.word(first + offset)).take_while(|&word| word != 0).map(c_string)
    }

    fn auxiliary_index(self) -> usize {
        self.environment_index() + self.environment().count() + 1
    }

    /// The auxiliary vector.
    pub fn auxiliary(self) -> AuxVector {
        let first = self.words.wrapping_add(self.auxiliary_index()).cast::<Entry>();
        // SAFETY: the vector follows the environment and ends with AT_NULL; it is ours.
        unsafe { AuxVector::new(first) }
    }

    /// Number of words from argc to the end of the auxiliary vector.
    fn length(self) -> usize {
        self.auxiliary_index() + 2 * (self.auxiliary().len() + 1)
    }

    /// Takes out the first `count` arguments.
    pub fn drop_arguments(self, count: usize) {
        let count = count.min(self.argument_count());
        let length = self.length();
        self.set_word(0, self.argument_count() - count);
        self.move_down(1, 1 + count, length);
    }

    /// Takes out every environment entry for which `keep` says no.
    pub fn filter_environment(self, keep: impl Fn(&[u8]) -> bool) {
        let first = self.environment_index();
        let auxiliary = self.auxiliary_index();
        let length = self.length();
        let mut kept = first;
        for index in first..auxiliary - 1 {
            let word = self.word(index);
            if keep(c_string(word).to_bytes()) {
                self.set_word(kept, word);
                kept += 1;
            }
        }
        self.move_down(kept, auxiliary - 1, length);
    }

    fn move_down(self, to: usize, from: usize, length: usize) {
        if to == from {
            return;
        }
        for index in from..length {
            self.set_word(to + index - from, self.word(index));
        }
    }
}

fn c_string(address: usize) -> &'static CStr {
    let pointer = core::ptr::with_exposed_provenance(address);
    // SAFETY: the kernel's argument and environment pointers point to C strings that stay for the process's life.
    unsafe { CStr::from_ptr(pointer) }
}
