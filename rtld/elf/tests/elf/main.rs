//! Tests of rtld-elf from outside: real files against the `object` crate and ld-linux, files made by hand, damaged files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod headers;
mod real;
mod segments;
mod support;
