//! Tests of rtld-elf from outside: real files against the `object` crate and ld-linux, files made by hand, damaged files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "tests run under std, where memory is not short"
)]

mod cache;
mod crafted;
mod dynamic;
mod hash;
mod headers;
mod mutate;
mod pod;
mod real;
mod relocation;
mod segments;
mod support;
mod versions;
