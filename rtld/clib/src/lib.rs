//! The private contract with the C library: what glibc's libc.so.6 expects of the loader that started it.
//!
//! The distribution's ld-linux-x86-64.so.2 is mapped as an ordinary library and never entered. This crate recognises the pair
//! of files, stores into the passive one what libc.so.6 reads there, and says which functions are ours instead. It keeps no
//! state, allocates nothing, maps nothing and looks nothing up across objects; all memory that it touches comes in as an
//! argument. Facts: glibc's debug information and `docs/design.md`.
#![cfg_attr(not(test), no_std)]

pub mod dtv;
pub mod exit_lock;
pub mod host;
pub mod library;
pub mod link_map;
pub mod offsets;
pub mod processor;
pub mod recognise;
pub mod region;
pub mod substitutes;
pub mod table;
pub mod thread;
pub mod tunables;
pub mod unsupported;

pub use dtv::Dtv;
pub use host::{Callbacks, Glibc, ProcessFacts, TlsFacts};
pub use library::Library;
pub use link_map::{LinkMap, ObjectFacts};
pub use offsets::Offsets;
pub use recognise::{ReadFile, recognise};
pub use region::{OutsideRegion, Region};
pub use substitutes::{Substitute, is_system_library};
pub use thread::{RseqFacts, ThreadFacts};
pub use tunables::{Mistake, Tunables};
pub use unsupported::{Found, Reason, Unsupported};
