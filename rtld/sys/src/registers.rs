//! Texts for assembly that keeps the registers of a call still to come. Owns no code: each macro gives a string literal, a part of the
//! template of a `global_asm!`, and has no other effect.

/// Pushes the registers named, in their order, and tells the unwinder where the frame now ends.
#[macro_export]
macro_rules! push_registers {
    ($($register:literal)+) => {
        concat!($("push ", $register, "\n.cfi_adjust_cfa_offset 8\n"),+)
    };
}

/// Pops the registers named, in their order, which is the reverse of that in which they were pushed.
#[macro_export]
macro_rules! pop_registers {
    ($($register:literal)+) => {
        concat!($("pop ", $register, "\n.cfi_adjust_cfa_offset -8\n"),+)
    };
}

/// Stores the lower halves of the sixteen vector registers at the stack pointer, which is a multiple of 16.
#[macro_export]
macro_rules! store_vectors {
    () => {
        $crate::each_vector!("movaps [rsp + 16 * ", "], xmm")
    };
}

/// Loads what [`store_vectors!`] stored.
#[macro_export]
macro_rules! load_vectors {
    () => {
        $crate::each_vector!("movaps xmm", ", [rsp + 16 * ", "]")
    };
}

/// One line for each vector register, with its number in every gap.
#[doc(hidden)]
#[macro_export]
macro_rules! each_vector {
    ($before:literal, $between:literal $(, $after:literal)?) => {
        $crate::each_vector!(@ $before, $between, ($($after)?), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $before:literal, $between:literal, $after:tt, $($number:literal)+) => {
        concat!($($before, $number, $between, $number, $crate::each_vector!(# $after), "\n"),+)
    };
    (# ()) => { "" };
    (# ($after:literal)) => { $after };
}
