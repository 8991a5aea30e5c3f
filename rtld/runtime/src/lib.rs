//! The process after its start: what is loaded, and the services that running code asks of its loader.
//!
//! Everything takes the [`World`]; nothing here is exported by name and nothing is global. What is published is not
//! changed any more, so readers take no lock.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod addresses;
pub mod bind;
pub mod call;
pub mod find_object;
pub mod initialise;
pub mod iterate;
pub mod nearest;
pub mod thread_local;
pub mod world;

pub use world::World;
