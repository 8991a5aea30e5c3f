//! Which functions of glibc are replaced by ours, wherever a reference resolved to glibc's own definition.
//!
//! Owns the list of names and the fast "no". It holds no address: the caller has one for each [`Substitute`]. A replacement is
//! by definition, never by name alone: a definition of the same name in any other object stays the user's.

use rtld_elf::gnu_hash;

macro_rules! substitutes {
    ($($(#[$documentation:meta])* $variant:ident = $name:literal,)*) => {
        /// A function (or variable) of glibc that has a replacement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Substitute {
            $($(#[$documentation])* $variant,)*
        }

        /// All of them with their names, in the order of the enumeration.
        const NAMES: &[(Substitute, &[u8])] = &[$((Substitute::$variant, $name),)*];
    };
}

substitutes! {
    /// `dlopen`
    Open = b"dlopen",
    /// `dlmopen`
    OpenInNamespace = b"dlmopen",
    /// `dlsym`
    Symbol = b"dlsym",
    /// `dlvsym`
    VersionedSymbol = b"dlvsym",
    /// `dlclose`
    Close = b"dlclose",
    /// `dlerror`
    Error = b"dlerror",
    /// `dladdr`
    Address = b"dladdr",
    /// `dladdr1`
    AddressExtended = b"dladdr1",
    /// `dlinfo`
    Information = b"dlinfo",
    /// `dl_iterate_phdr`
    Iterate = b"dl_iterate_phdr",
    /// `_dl_find_object`
    FindObject = b"_dl_find_object",
    /// `__tls_get_addr`
    TlsGetAddress = b"__tls_get_addr",
    /// `_dl_allocate_tls`
    AllocateTls = b"_dl_allocate_tls",
    /// `_dl_allocate_tls_init`
    AllocateTlsInit = b"_dl_allocate_tls_init",
    /// `_dl_deallocate_tls`
    DeallocateTls = b"_dl_deallocate_tls",
    /// `_dl_get_tls_static_info`
    TlsStaticInformation = b"_dl_get_tls_static_info",
    /// `_dl_find_dso_for_object`
    FindDsoForObject = b"_dl_find_dso_for_object",
    /// `_dl_exception_create`
    ExceptionCreate = b"_dl_exception_create",
    /// `_dl_exception_create_format`
    ExceptionCreateFormat = b"_dl_exception_create_format",
    /// `_dl_exception_free`
    ExceptionFree = b"_dl_exception_free",
    /// `_dl_signal_error`
    SignalError = b"_dl_signal_error",
    /// `_dl_signal_exception`
    SignalException = b"_dl_signal_exception",
    /// `_dl_catch_exception`
    CatchException = b"_dl_catch_exception",
    /// `_dl_catch_error`
    CatchError = b"_dl_catch_error",
    /// `__libc_dlopen_mode` (2.33 and earlier)
    LibcOpen = b"__libc_dlopen_mode",
    /// `__libc_dlsym` (2.33 and earlier)
    LibcSymbol = b"__libc_dlsym",
    /// `__libc_dlclose` (2.33 and earlier)
    LibcClose = b"__libc_dlclose",
    /// `_dl_rtld_di_serinfo`: RTLD_DI_SERINFO of `dlinfo`
    SearchInformation = b"_dl_rtld_di_serinfo",
    /// `_r_debug`, a variable
    RendezvousStructure = b"_r_debug",
    // What sets, masks, waits for or steps over signals, and what leaves a stack or a program: the crate sigblock has them.
    /// `sigaction`
    SignalAction = b"sigaction",
    /// `__sigaction`
    SignalActionInternal = b"__sigaction",
    /// `signal`
    Signal = b"signal",
    /// `ssignal`
    SignalSoftware = b"ssignal",
    /// `bsd_signal`
    SignalBsd = b"bsd_signal",
    /// `sysv_signal`
    SignalSystemV = b"sysv_signal",
    /// `__sysv_signal`
    SignalSystemVInternal = b"__sysv_signal",
    /// `sigset`
    SignalSet = b"sigset",
    /// `sigignore`
    SignalIgnore = b"sigignore",
    /// `siginterrupt`
    SignalInterrupt = b"siginterrupt",
    /// `sigvec`
    SignalVector = b"sigvec",
    /// `sigprocmask`
    SignalProcessMask = b"sigprocmask",
    /// `pthread_sigmask`
    ThreadSignalMask = b"pthread_sigmask",
    /// `sighold`
    SignalHold = b"sighold",
    /// `sigrelse`
    SignalRelease = b"sigrelse",
    /// `sigblock`
    SignalBlock = b"sigblock",
    /// `sigsetmask`
    SignalSetMask = b"sigsetmask",
    /// `siggetmask`
    SignalGetMask = b"siggetmask",
    /// `sigsuspend`
    SignalSuspend = b"sigsuspend",
    /// `__sigsuspend`
    SignalSuspendInternal = b"__sigsuspend",
    /// `sigpause`
    SignalPause = b"sigpause",
    /// `__sigpause`
    SignalPauseInternal = b"__sigpause",
    /// `__xpg_sigpause`
    SignalPauseXpg = b"__xpg_sigpause",
    /// `ppoll`
    Poll = b"ppoll",
    /// `__ppoll_chk`
    PollChecked = b"__ppoll_chk",
    /// `pselect`
    Select = b"pselect",
    /// `epoll_pwait`
    EventPoll = b"epoll_pwait",
    /// `epoll_pwait2`
    EventPoll2 = b"epoll_pwait2",
    /// `pause`
    Pause = b"pause",
    /// `vfork`
    Vfork = b"vfork",
    /// `__vfork`
    VforkInternal = b"__vfork",
    /// `fork`
    Fork = b"fork",
    /// `__fork`
    ForkInternal = b"__fork",
    /// `__libc_fork`
    ForkOfLibrary = b"__libc_fork",
    /// `_Fork`
    ForkBare = b"_Fork",
    /// `execve`
    Execve = b"execve",
    /// `execv`
    Execv = b"execv",
    /// `execvp`
    Execvp = b"execvp",
    /// `execvpe`
    Execvpe = b"execvpe",
    /// `execl`
    Execl = b"execl",
    /// `execle`
    Execle = b"execle",
    /// `execlp`
    Execlp = b"execlp",
    /// `fexecve`
    Fexecve = b"fexecve",
    /// `execveat`
    Execveat = b"execveat",
    /// `posix_spawn`
    Spawn = b"posix_spawn",
    /// `posix_spawnp`
    SpawnByPath = b"posix_spawnp",
    /// `system`
    System = b"system",
    /// `popen`
    PipeOpen = b"popen",
    /// `pthread_create`
    CreateThread = b"pthread_create",
    /// `thrd_create`
    CreateThreadOfC11 = b"thrd_create",
    /// `exit`
    Exit = b"exit",
    /// `quick_exit`
    QuickExit = b"quick_exit",
    /// `longjmp`
    LongJump = b"longjmp",
    /// `_longjmp`
    LongJumpBsd = b"_longjmp",
    /// `siglongjmp`
    LongJumpSignal = b"siglongjmp",
    /// `__longjmp_chk`
    LongJumpChecked = b"__longjmp_chk",
    /// `setjmp`
    SetJump = b"setjmp",
    /// `__sigsetjmp`
    SetSignalJump = b"__sigsetjmp",
    /// `getcontext`
    GetContext = b"getcontext",
    /// `setcontext`
    SetContext = b"setcontext",
    /// `swapcontext`
    SwapContext = b"swapcontext",
    /// `prctl`
    ProcessControl = b"prctl",
    /// `syscall`
    SystemCall = b"syscall",
    /// `sigwait`
    SignalWait = b"sigwait",
    /// `sigwaitinfo`
    SignalWaitInformation = b"sigwaitinfo",
    /// `sigtimedwait`
    SignalTimedWait = b"sigtimedwait",
    /// `sigpending`
    SignalPending = b"sigpending",
}

/// Number of substitutes.
pub const COUNT: usize = NAMES.len();

/// Words of the filter, a power of two.
const FILTER_WORDS: usize = 32;

/// A set of the low 11 bits of the names' hashes: says no to nineteen names of twenty.
const FILTER: [u64; FILTER_WORDS] = filter();

const fn filter() -> [u64; FILTER_WORDS] {
    let mut words = [0u64; FILTER_WORDS];
    let mut rest = NAMES;
    while let Some(((_, name), others)) = rest.split_first() {
        let (word, bit) = place_in_filter(gnu_hash(name));
        let mut index = 0;
        let mut left: &mut [u64] = &mut words;
        while let Some((first, others)) = left.split_first_mut() {
            if index == word {
                *first |= bit;
            }
            index += 1;
            left = others;
        }
        rest = others;
    }
    words
}

const fn place_in_filter(hash: u32) -> (usize, u64) {
    (hash as usize >> 6 & (FILTER_WORDS - 1), 1 << (hash & 63))
}

const _: () = assert!(COUNT <= 128);

impl Substitute {
    /// The substitute for a name, whose GNU hash the caller has already.
    #[inline]
    pub fn from_name(name: &[u8], gnu_hash: u32) -> Option<Substitute> {
        let (word, bit) = place_in_filter(gnu_hash);
        // The word is below FILTER_WORDS, so the whole check is a load and a test.
        if FILTER.get(word).is_none_or(|bits| bits & bit == 0) {
            return None;
        }
        Self::find(name, gnu_hash)
    }

    #[cold]
    fn find(name: &[u8], hash: u32) -> Option<Substitute> {
        const HASHES: [u32; COUNT] = hashes();
        let index = HASHES.iter().position(|&candidate| candidate == hash)?;
        let &(substitute, candidate) = NAMES.get(index)?;
        (candidate == name).then_some(substitute)
    }

    /// Its name in glibc.
    pub fn name(self) -> &'static [u8] {
        NAMES.get(self as usize).map_or(b"", |&(_, name)| name)
    }

    /// All substitutes.
    pub fn all() -> impl Iterator<Item = Substitute> {
        NAMES.iter().map(|&(substitute, _)| substitute)
    }
}

const fn hashes() -> [u32; COUNT] {
    let mut hashes = [0; COUNT];
    let mut left: &mut [u32] = &mut hashes;
    let mut rest = NAMES;
    while let (Some(((_, name), names)), Some((first, others))) = (rest.split_first(), left.split_first_mut()) {
        *first = gnu_hash(name);
        rest = names;
        left = others;
    }
    hashes
}

/// Whether definitions in the object with this soname are glibc's own, and may be substituted.
pub fn is_system_library(soname: &[u8]) -> bool {
    matches!(soname, b"libc.so.6" | b"ld-linux-x86-64.so.2" | b"libdl.so.2" | b"libpthread.so.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_two_share_a_hash() {
        for substitute in Substitute::all() {
            let name = substitute.name();
            assert_eq!(Substitute::from_name(name, gnu_hash(name)), Some(substitute));
        }
        assert_eq!(Substitute::Open.name(), b"dlopen");
        assert_eq!(Substitute::RendezvousStructure.name(), b"_r_debug");
        assert_eq!(Substitute::all().count(), COUNT);
    }

    #[test]
    fn others_are_not_found() {
        for name in [&b"malloc"[..], b"dlopen2", b"", b"printf", b"_dl_mcount"] {
            assert_eq!(Substitute::from_name(name, gnu_hash(name)), None);
        }
        let passed = (0..10_000_u16).filter(|number| {
            let [high, low] = number.to_be_bytes();
            let (word, bit) = place_in_filter(gnu_hash(&[b'f', high, low, b'n']));
            FILTER[word] & bit != 0
        });
        assert!(passed.count() < 1_000, "the filter lets more than one of ten through");
        // The right hash alone is not enough.
        assert_eq!(Substitute::from_name(b"other", gnu_hash(b"dlopen")), None);
    }

    #[test]
    fn only_glibcs_own_objects_are_system_libraries() {
        assert!(is_system_library(b"libc.so.6"));
        assert!(!is_system_library(b"libm.so.6"));
        assert!(!is_system_library(b"libc.so.7"));
    }
}
