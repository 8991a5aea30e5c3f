//! The environment variables of the loader, from one table, and what secure mode takes out of the environment.

use crate::debug::Debug;
use crate::report::error;
use crate::stack::InitialStack;
use rtld_link::lookup_mode::LookupMode;
use rtld_link::search::Trust;
use rtld_link::text::Bytes;
use rtld_sys::auxv::{AT_SECURE, AuxVector};
use sigblock::backend::Wish;

/// What the environment asks for.
#[derive(Default, Debug)]
pub struct Variables {
    /// LD_LIBRARY_PATH.
    pub library_path: Option<&'static [u8]>,
    /// LD_PRELOAD.
    pub preload: Option<&'static [u8]>,
    /// LD_BIND_NOW is not empty.
    pub bind_now: bool,
    /// LD_DEBUG: what is to be told.
    pub debug: Debug,
    /// LD_LOOKUP: how names are looked up while objects are relocated.
    pub lookup: LookupMode,
    /// LD_SIGBLOCK: what is to hold signals.
    pub sigblock: Option<&'static [u8]>,
    /// LD_SIGBLOCK_MASK: which signals.
    pub sigblock_mask: Option<&'static [u8]>,
    /// LD_STATIC_TLS_EXTRA: bytes.
    pub static_tls_extra: usize,
    /// LD_THP: bytes from which a writable segment gets huge pages; 0 for none.
    pub huge_from: usize,
    /// LD_TRACE_LOADED_OBJECTS is there: tell what would be loaded.
    pub trace: bool,
}

impl Variables {
    /// What is wished for about sections. `original` tells where the C library has a function.
    pub fn wish(&self, original: fn(&'static [u8]) -> usize) -> Wish<'static> {
        Wish { backend: self.sigblock, mask: self.sigblock_mask, count: self.debug.sigblock, original }
    }
}

/// One variable: its name without `LD_`, what it is good for, and how its value is taken.
pub struct Variable {
    /// Name without `LD_`.
    pub name: &'static str,
    /// For people.
    pub meaning: &'static str,
    take: fn(&mut Variables, &'static [u8]),
}

/// All variables.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "BIND_NOW",
        meaning: "not empty: bind every function at start",
        take: |variables, value| variables.bind_now = !value.is_empty(),
    },
    Variable {
        name: "DEBUG",
        meaning: "what to tell about the process; `help' lists it",
        take: |variables, value| variables.debug = Debug::parse(value),
    },
    Variable { name: "FALLBACK", meaning: "never: status 127 where another loader would help", take: |_, _| {} },
    Variable {
        name: "LIBRARY_PATH",
        meaning: "directories to look for libraries in",
        take: |variables, value| variables.library_path = Some(value).filter(|value| !value.is_empty()),
    },
    Variable {
        name: "LOOKUP",
        meaning: "how names are looked up at start: auto, scope or table",
        take: |variables, value| variables.lookup = lookup_mode(value),
    },
    Variable {
        name: "PRELOAD",
        meaning: "libraries to load first",
        take: |variables, value| variables.preload = Some(value),
    },
    Variable {
        name: "SIGBLOCK",
        meaning: "holds signals: auto, kernel, user, sigprocmask or off",
        take: |variables, value| variables.sigblock = Some(value),
    },
    Variable {
        name: "SIGBLOCK_MASK",
        meaning: "signals to hold: names or numbers, by commas; or all",
        take: |variables, value| variables.sigblock_mask = Some(value),
    },
    Variable {
        name: "STATIC_TLS_EXTRA",
        meaning: "bytes of static TLS kept free for later libraries",
        take: |variables, value| variables.static_tls_extra = decimal(value).unwrap_or(0),
    },
    Variable {
        name: "THP",
        meaning: "bytes from which a writable segment gets huge pages",
        take: |variables, value| variables.huge_from = decimal(value).unwrap_or(0),
    },
    Variable {
        name: "TRACE_LOADED_OBJECTS",
        meaning: "set: list what would be loaded, run nothing",
        take: |variables, _| variables.trace = true,
    },
];

/// Variables that the C library trusts, besides all of `LD_*`; a process in secure mode must not see them (glibc's
/// unsecvars.h).
const UNTRUSTED: &[&[u8]] = &[
    b"GCONV_PATH",
    b"GETCONF_DIR",
    b"GLIBC_TUNABLES",
    b"HOSTALIASES",
    b"LOCALDOMAIN",
    b"LOCPATH",
    b"MALLOC_ARENA_MAX",
    b"MALLOC_ARENA_TEST",
    b"MALLOC_CHECK_",
    b"MALLOC_MMAP_MAX_",
    b"MALLOC_MMAP_THRESHOLD_",
    b"MALLOC_PERTURB_",
    b"MALLOC_TCACHE_COUNT",
    b"MALLOC_TOP_PAD_",
    b"MALLOC_TRACE",
    b"MALLOC_TRIM_THRESHOLD_",
    b"NIS_PATH",
    b"NLSPATH",
    b"RESOLV_HOST_CONF",
    b"RES_OPTIONS",
    b"TMPDIR",
    b"TZDIR",
];

/// Whether the process may trust its environment. Without the kernel's word it may not.
pub fn trust(auxiliary: AuxVector) -> Trust {
    match auxiliary.get(AT_SECURE) {
        Some(0) => Trust::Full,
        _ => Trust::Secure,
    }
}

/// Takes out of the environment what a process in secure mode must not see: every entry, however often it is there and
/// whether or not it has a value.
pub fn scrub(stack: InitialStack) {
    stack.filter_environment(|entry| {
        let name = entry.split(|&byte| byte == b'=').next().unwrap_or(entry);
        !entry.starts_with(b"LD_") && !UNTRUSTED.contains(&name)
    });
}

/// Reads the variables. The first of several entries with one name counts, as in getenv(3).
pub fn read(stack: InitialStack) -> Variables {
    let mut variables = Variables::default();
    let mut seen = 0_u64;
    for entry in stack.environment() {
        let Some(entry) = entry.to_bytes().strip_prefix(b"LD_") else {
            continue;
        };
        let Some(equals) = entry.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        let (name, value) = entry.split_at(equals);
        let known = VARIABLES.iter().enumerate().find(|(_, variable)| variable.name.as_bytes() == name);
        let Some((index, variable)) = known else {
            continue;
        };
        if seen & 1 << index == 0 {
            seen |= 1 << index;
            (variable.take)(&mut variables, value.get(1..).unwrap_or_default());
        }
    }
    variables
}

/// The value of LD_LOOKUP; another is told and passed over.
fn lookup_mode(value: &[u8]) -> LookupMode {
    LookupMode::from_name(value).unwrap_or_else(|| {
        error(format_args!("warning: LD_LOOKUP=`{}' unknown; expected auto, scope or table\n", Bytes(value)));
        LookupMode::default()
    })
}

/// A whole decimal number.
fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_usize, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| usize::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
