//! Placeholder until the crate is written.
#![cfg_attr(not(test), no_std)]
