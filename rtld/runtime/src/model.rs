//! Model tests: the protocols between threads, on loom's memory, in every order of their steps that the memory model allows. The
//! code is the loader's own, parameterised over `atomics::Memory`; only the section's word is modelled, since the loader's is one
//! instruction of assembly. Owns the models' threads and what must hold.
//!
//! The order of a reader's section against the writer's membarrier is that of two sequentially consistent fences: the kernel
//! executes one in each running thread at some moment of the writer's call, and a thread that does not run has executed one.

mod initialising;
mod iterating;
mod memory;
mod pinned;
mod reading;
