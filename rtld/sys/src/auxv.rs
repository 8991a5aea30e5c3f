//! The auxiliary vector (getauxval(3)): key numbers and a bounded walk over the entries on the stack.

/// Program headers of the program.
pub const AT_PHDR: usize = 3;
/// Size of one program header.
pub const AT_PHENT: usize = 4;
/// Number of program headers.
pub const AT_PHNUM: usize = 5;
/// Page size in bytes.
pub const AT_PAGESZ: usize = 6;
/// Load address of the interpreter.
pub const AT_BASE: usize = 7;
/// Entry point of the program.
pub const AT_ENTRY: usize = 9;
/// Pointer to the platform's name.
pub const AT_PLATFORM: usize = 15;
/// Processor capabilities (CPUID leaf 1 EDX).
pub const AT_HWCAP: usize = 16;
/// Clock ticks a second.
pub const AT_CLKTCK: usize = 17;
/// Non-zero: the process must not trust its environment.
pub const AT_SECURE: usize = 23;
/// Pointer to 16 random bytes.
pub const AT_RANDOM: usize = 25;
/// More processor capabilities.
pub const AT_HWCAP2: usize = 26;
/// Size of the kernel's rseq area that is in use.
pub const AT_RSEQ_FEATURE_SIZE: usize = 27;
/// Alignment of the rseq area.
pub const AT_RSEQ_ALIGN: usize = 28;
/// File name the program was started with.
pub const AT_EXECFN: usize = 31;
/// ELF header of the vDSO.
pub const AT_SYSINFO_EHDR: usize = 33;
/// Least signal stack the kernel needs.
pub const AT_MINSIGSTKSZ: usize = 51;

/// One entry: key and value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// AT_* number, 0 ends the vector.
    pub key: usize,
    /// Value, meaning by key.
    pub value: usize,
}

/// The vector as the kernel put it on the stack.
#[derive(Clone, Copy)]
pub struct AuxVector {
    first: *mut Entry,
    count: usize,
}

impl AuxVector {
    /// The vector that starts at `first` and ends with a key of 0.
    ///
    /// # Safety
    /// `first` must point to such a vector, which stays valid and is changed by nobody else.
    pub unsafe fn new(first: *mut Entry) -> AuxVector {
        let mut count = 0;
        loop {
            // SAFETY: every entry up to the terminator is readable (caller), and we have not passed it yet.
            let entry = unsafe { first.add(count).read() };
            if entry.key == 0 {
                return AuxVector { first, count };
            }
            count += 1;
        }
    }

    /// Address of the first entry.
    pub fn as_ptr(self) -> *mut Entry {
        self.first
    }

    /// Number of entries without the terminator.
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there is no entry at all.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The entry with number `index`.
    pub fn entry(self, index: usize) -> Option<Entry> {
        if index >= self.count {
            return None;
        }
        // SAFETY: index is below the count found by new().
        Some(unsafe { self.first.add(index).read() })
    }

    /// The value of the first entry with `key`.
    pub fn get(self, key: usize) -> Option<usize> {
        (0..self.count).filter_map(|index| self.entry(index)).find(|entry| entry.key == key).map(|entry| entry.value)
    }

    /// Changes the value of each entry with `key`; tells whether there was one.
    pub fn set(self, key: usize, value: usize) -> bool {
        let mut found = false;
        for index in 0..self.count {
            if self.entry(index).is_some_and(|entry| entry.key == key) {
                // SAFETY: index is below the count found by new(); the stack is ours to write.
                unsafe { self.first.add(index).write(Entry { key, value }) };
                found = true;
            }
        }
        found
    }
}
