//! The mechanism of linking: find files, map them, look symbols up, relocate, lay out static TLS, order
//! initialisers.
//!
//! Keeps no globals and exports nothing; everything it knows is passed in, so it runs under std in unit
//! tests. Each step takes the type that the step before it made: `Mapping` -> `Object` -> `ObjectSet` ->
//! `Scope` + `TlsPlan` -> `Relocated` -> `InitOrder`.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod deferred;
pub mod descriptors;
pub mod directories;
pub mod error;
pub mod fallible;
mod huge;
pub mod init_order;
pub mod load;
pub mod lookup;
pub mod lookup_mode;
pub mod map;
mod name_index;
pub mod name_table;
pub mod object;
pub mod open;
mod pass;
pub mod places;
pub mod protect;
mod rare_relocations;
pub mod relocate;
pub mod search;
pub mod static_tls;
pub mod text;
pub mod tokens;
pub mod version_check;
