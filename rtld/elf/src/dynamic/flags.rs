//! DT_FLAGS and DT_FLAGS_1 as sets with names.

use bitflags::bitflags;

bitflags! {
    /// DT_FLAGS, with what DT_SYMBOLIC, DT_TEXTREL and DT_BIND_NOW say folded in.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags: u64 {
        /// DF_ORIGIN: uses $ORIGIN.
        const ORIGIN = 0x1;
        /// DF_SYMBOLIC: its own definitions come first for it.
        const SYMBOLIC = 0x2;
        /// DF_TEXTREL: relocations may change segments that cannot be written.
        const TEXTREL = 0x4;
        /// DF_BIND_NOW: no lazy binding.
        const BIND_NOW = 0x8;
        /// DF_STATIC_TLS: uses the initial-exec model.
        const STATIC_TLS = 0x10;
        /// What this crate has no name for.
        const _ = !0;
    }

    /// DT_FLAGS_1.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags1: u64 {
        /// DF_1_NOW: no lazy binding.
        const NOW = 0x1;
        /// DF_1_GLOBAL: joins the global scope.
        const GLOBAL = 0x2;
        /// DF_1_NODELETE: is never unloaded.
        const NODELETE = 0x8;
        /// DF_1_LOADFLTR: its filtees are loaded at once.
        const LOADFLTR = 0x10;
        /// DF_1_INITFIRST: its initialisers run before all others.
        const INITFIRST = 0x20;
        /// DF_1_NOOPEN: cannot be had by dlopen.
        const NOOPEN = 0x40;
        /// DF_1_ORIGIN: uses $ORIGIN.
        const ORIGIN = 0x80;
        /// DF_1_INTERPOSE: comes right behind the program in lookup.
        const INTERPOSE = 0x400;
        /// DF_1_NODEFLIB: its dependencies are not looked for in the default directories.
        const NODEFLIB = 0x800;
        /// DF_1_PIE: a program, not a library.
        const PIE = 0x0800_0000;
        /// What this crate has no name for.
        const _ = !0;
    }
}
