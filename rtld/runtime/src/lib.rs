//! The process after its start: what is loaded, and the services that running code asks of its loader.
//!
//! Everything takes the [`World`]; nothing here is exported by name and nothing is global. Readers take immutable
//! snapshots without a lock; writers hold the one writer lock. Both work inside sections (`sigblock`), and no lock is held
//! while foreign code runs, but for the iterate lock around callbacks.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod addresses;
pub mod arena;
pub mod atomics;
pub mod bind;
mod bond_notes;
pub mod call;
pub mod chunks;
pub mod close;
pub mod find_object;
pub mod fork;
mod fresh;
pub mod information;
pub mod initialise;
pub mod iterate;
mod iterate_lock;
pub mod last_error;
pub mod lock;
#[cfg(test)]
mod model;
pub mod nearest;
pub mod open;
pub mod pins;
mod published;
mod reclaim;
pub mod resolve;
pub mod symbol;
mod thread_block;
pub mod thread_local;
pub mod threads;
mod waiters;
pub mod world;
pub mod writer;

pub use world::World;
