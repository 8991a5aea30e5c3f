//! The test suites of the loader: each one runs real programs on it and ends in a count. Owns the list of suites; how they
//! compile, run and report lies in `harness`. A suite may not start a program other than through `harness::Run`, which asserts
//! that the loader under test is the interpreter.

mod clauses;
mod elf_edit;
mod elf_writer;
mod figures;
pub mod guest;
pub mod harness;
mod namespace;
mod process_tree;
mod same;
mod suite_artifact;
mod suite_brackets;
mod suite_cpython;
mod suite_cxx;
mod suite_debugger;
mod suite_direct;
mod suite_dlfcn;
mod suite_documentation;
mod suite_errors;
mod suite_fork;
mod suite_handlers;
mod suite_ifunc;
mod suite_init_order;
mod suite_instructions;
mod suite_lazy;
mod suite_library;
mod suite_lookup;
mod suite_mapping;
mod suite_memory;
mod suite_nss;
mod suite_plugin;
mod suite_processor;
mod suite_programs;
mod suite_relocations;
mod suite_runner;
mod suite_runtime;
mod suite_runtime_dlfcn;
mod suite_runtime_fork;
mod suite_runtime_threads;
mod suite_runtime_unload;
mod suite_sanitizers;
mod suite_search;
mod suite_secure;
mod suite_semantics;
mod suite_signals;
mod suite_symbols;
mod suite_system;
mod suite_system_calls;
mod suite_threads;
mod suite_tls;
mod suite_tls_static;
mod suite_tools;
mod suite_tunables;
pub mod synthetic;
mod whole_system;

use clauses::Case;
use harness::{Context, Report};

/// One named suite of `cargo xtask test`.
pub struct Suite {
    /// The name on the command line and in the closing line.
    pub name: &'static str,
    /// What it shows, in one line.
    pub summary: &'static str,
    /// Runs every check; an error ends the suite and counts as one failed check.
    pub run: fn(&Context, &mut Report) -> anyhow::Result<()>,
}

/// Every suite, in the order in which they run: one line each.
pub const SUITES: &[Suite] = &[
    Suite { name: "artifact", summary: "facts of the loader's own file", run: suite_artifact::run },
    Suite {
        name: "documentation",
        summary: "what documents say about options, paths, releases and suites",
        run: suite_documentation::run,
    },
    Suite { name: "runner", summary: "the harness notices what it must", run: suite_runner::run },
    Suite { name: "programs", summary: "programs of the distribution, four ways each", run: suite_programs::run },
    Suite { name: "system-calls", summary: "system calls of a start", run: suite_system_calls::run },
    Suite {
        name: "instructions",
        summary: "instructions of a start with many relocations, against a recorded figure",
        run: suite_instructions::run,
    },
    Suite {
        name: "processor",
        summary: "what the C library knows of this and other processors, and how often CPUID is executed",
        run: suite_processor::run,
    },
    Suite { name: "memory", summary: "resident memory at exit", run: suite_memory::run },
    Suite {
        name: "direct",
        summary: "what a program given to the loader sees, and the loader's options",
        run: suite_direct::run,
    },
    Suite { name: "search", summary: "where needed libraries are found, in glibc's order", run: suite_search::run },
    Suite {
        name: "symbols",
        summary: "which definition a reference gets: hashes, versions, visibility, interposition, copies",
        run: suite_symbols::run,
    },
    Suite { name: "secure", summary: "set-uid programs in a hostile environment", run: suite_secure::run },
    Suite {
        name: "errors",
        summary: "what is said about files that cannot start, and that no damage ends in a signal",
        run: suite_errors::run,
    },
    Suite {
        name: "cxx",
        summary: "exceptions, thread-local and static objects of C++ across libraries",
        run: suite_cxx::run,
    },
    Suite {
        name: "lookup",
        summary: "the walk over the scope and the table of names give every slot the same value",
        run: suite_lookup::run,
    },
    Suite { name: "lazy", summary: "when functions are bound, and what binding them keeps", run: suite_lazy::run },
    Suite { name: "ifunc", summary: "indirect functions: after everything else, in every copy", run: suite_ifunc::run },
    Suite {
        name: "mapping",
        summary: "every legal shape of segments, RELRO, stack permissions, text relocations",
        run: suite_mapping::run,
    },
    Suite {
        name: "relocations",
        summary: "every relocation type, RELA and RELR, and what is refused",
        run: suite_relocations::run,
    },
    Suite {
        name: "tls-static",
        summary: "where static TLS blocks lie, what they hold, what small stacks keep",
        run: suite_tls_static::run,
    },
    Suite {
        name: "tunables",
        summary: "settings of the C library have the effect they have under ld-linux",
        run: suite_tunables::run,
    },
    Suite {
        name: "init-order",
        summary: "constructors and destructors: order, arguments, stack",
        run: suite_init_order::run,
    },
    Suite {
        name: "debugger",
        summary: "what a debugger reads: r_debug, the list of objects, gdb itself",
        run: suite_debugger::run,
    },
    Suite {
        name: "dlfcn",
        summary: "dlopen, dlsym, dlclose, dlerror and what tells about objects",
        run: suite_dlfcn::run,
    },
    Suite { name: "tls", summary: "thread-local storage of libraries needed and opened", run: suite_tls::run },
    Suite {
        name: "system",
        summary: "a whole system on our loader: compilers, cargo, java, perl, git",
        run: suite_system::run,
    },
    Suite { name: "cpython", summary: "CPython's own tests, each as under ld-linux", run: suite_cpython::run },
    Suite { name: "nss", summary: "NSS makes keys and certificates and shakes hands", run: suite_nss::run },
    Suite { name: "tools", summary: "valgrind, backtrace, strace and perf", run: suite_tools::run },
    Suite {
        name: "sanitizers",
        summary: "address, thread and undefined-behaviour sanitizers report as under ld-linux",
        run: suite_sanitizers::run,
    },
    Suite { name: "threads", summary: "threads, and libraries that come and go under them", run: suite_threads::run },
    Suite { name: "fork", summary: "processes made by single-threaded and threaded programs", run: suite_fork::run },
    Suite {
        name: "plugin",
        summary: "a plug-in opened, used and closed a thousand times leaves nothing",
        run: suite_plugin::run,
    },
    Suite {
        name: "runtime-unload",
        summary: "what dlclose takes away, what it must keep, what tells about it, and that nothing is left",
        run: suite_runtime_unload::run,
    },
    Suite {
        name: "runtime-fork",
        summary: "children of every fork, made while other threads are inside the loader, use it",
        run: suite_runtime_fork::run,
    },
    Suite {
        name: "runtime-threads",
        summary: "loading and unloading beside binding, exceptions, iterations, constructors, callbacks of other threads",
        run: suite_runtime_threads::run,
    },
    Suite {
        name: "runtime-dlfcn",
        summary: "dlinfo's requests, FreeBSD's functions, glibc's exceptions, callers that left their frame",
        run: suite_runtime_dlfcn::run,
    },
    Suite {
        name: "runtime",
        summary: "half a minute of everything at once: eight threads, a 10 kHz timer, 300 forks; nothing is left",
        run: suite_runtime::run,
    },
    Suite {
        name: "signals",
        summary: "a storm of signals on eight threads in sections: none lost, inside or out of order",
        run: suite_signals::run,
    },
    Suite {
        name: "handlers",
        summary: "timers whose handlers bind, iterate, throw and catch as the code they interrupt does",
        run: suite_handlers::run,
    },
    Suite {
        name: "brackets",
        summary: "every entry into the loader is a section; what it costs, and which back end makes it",
        run: suite_brackets::run,
    },
    Suite { name: "semantics", summary: "what a section does to signals, in each back end", run: suite_semantics::run },
    Suite {
        name: "library",
        summary: "libsigblock under ld-linux: as a preload, linked, opened; and under our loader, where it steps aside",
        run: suite_library::run,
    },
];

/// The suites whose cases are listed one by one, by the clause that each shows.
pub const CASES: &[(&str, &[Case])] = &[
    ("runtime-unload", suite_runtime_unload::CASES),
    ("runtime-threads", suite_runtime_threads::CASES),
    ("runtime-fork", suite_runtime_fork::CASES),
    ("runtime-dlfcn", suite_runtime_dlfcn::CASES),
];

/// Suites of many minutes, for `cargo xtask soak`.
pub const SOAKS: &[Suite] = &[
    Suite {
        name: "runtime",
        summary: "suite runtime for a minute or --seconds, 300 forks and 100,000 handler runs",
        run: suite_runtime::run_long,
    },
    Suite {
        name: "cpython",
        summary: "CPython's tests of multiprocessing by spawn and by a fork server",
        run: suite_cpython::run_long,
    },
    Suite {
        name: "signals",
        summary: "suite signals for a minute and more, 10^8 sections and 10^5 signals",
        run: suite_signals::run_long,
    },
    Suite {
        name: "handlers",
        summary: "suite handlers for a minute and more, 50,000 handler runs and 10,000 plug-ins",
        run: suite_handlers::run_long,
    },
    Suite {
        name: "library",
        summary: "the timers and the storm of suite library for a minute each",
        run: suite_library::run_long,
    },
];
