//! Fast sigblock: a word in user memory that says whether its thread is inside a section.
//!
//! For now the word only counts; the loader's writers look at it to learn when nobody reads what they have replaced.
//! What holds signals back while it is raised comes with the back ends.
#![cfg_attr(not(test), no_std)]

pub mod word;
