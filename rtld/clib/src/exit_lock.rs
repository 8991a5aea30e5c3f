//! Where glibc keeps the lock around its list of functions for exit(3). Owns how it is found.
//!
//! The destructors of every library take it (`__cxa_finalize`), and so does who registers a function. glibc's fork does not
//! know of it: in the child of a fork during another thread's dlclose it is held for ever. No table says where it
//! is, as every build moves it; but `__cxa_finalize` and `on_exit` begin by taking it, so the first address that both compute
//! is its own (seen in 2.31, 2.36, 2.41 and 2.43). Anything else is left alone.

use crate::library::Library;
use rtld_elf::PF_W;

/// How much of a function is looked at.
const WINDOW: usize = 96;
/// How soon after its address is known the lock is taken.
const SOON: usize = 40;

/// The first address that a function computes relative to its own place, if a compare-and-exchange follows soon.
fn first_address(code: &[u8; WINDOW], at: u64) -> Option<u64> {
    // lea r64, [rip + d32]: REX.W or REX.WR, 8d, a ModRM byte with mod 0 and r/m 5 (Intel SDM 2.2.1.6).
    let position = code
        .windows(3)
        .position(|code| matches!(*code, [rex, 0x8d, modrm] if rex & 0xfb == 0x48 && modrm & 0xc7 == 0x05))?;
    let rest = code.get(position.checked_add(3)?..)?;
    let distance = i32::from_le_bytes(*rest.first_chunk()?);
    // cmpxchg r/m32, r32.
    let follows = rest.get(4..)?.windows(2).take(SOON).any(|code| code == [0x0f, 0xb1]);
    let next = at.checked_add(position as u64)?.checked_add(7)?;
    follows.then(|| next.checked_add_signed(i64::from(distance)))?
}

/// The address of the lock, a futex word of glibc's (0 is free), in a libc.so.6 that is mapped and writable.
pub fn find(libc: &Library<'_>) -> Option<usize> {
    let place = |name: &[u8]| {
        let at = libc.symbol(name)?.st_value;
        first_address(&libc.read(at)?, at)
    };
    let lock = place(b"__cxa_finalize").filter(|&lock| place(b"on_exit") == Some(lock))?;
    let is_word = lock.is_multiple_of(4) && libc.image.contains(lock, 4, PF_W);
    is_word.then(|| libc.base.wrapping_add(lock as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of __cxa_finalize in Debian's 2.36, as objdump shows it.
    const NEW: &[u8] = &[
        0x41, 0x57, 0x31, 0xc0, 0xb9, 1, 0, 0, 0, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x55, 0x48, 0x89, 0xfd, 0x53,
        0x48, 0x83, 0xec, 0x18, 0x4c, 0x8d, 0x35, 0x69, 0x73, 0x19, 0x00, 0xf0, 0x41, 0x0f, 0xb1, 0x0e,
    ];

    fn window(code: &[u8]) -> [u8; WINDOW] {
        let mut window = [0x90; WINDOW];
        window[..code.len()].copy_from_slice(code);
        window
    }

    #[test]
    fn the_address_is_the_one_that_is_exchanged() {
        assert_eq!(first_address(&window(NEW), 0x3_df40), Some(0x1d_52c8));
    }

    #[test]
    fn code_that_takes_no_lock_has_none() {
        let without: Vec<u8> = NEW.iter().map(|&byte| if byte == 0xb1 { 0xb0 } else { byte }).collect();
        assert_eq!(first_address(&window(&without), 0x3_df40), None);
        assert_eq!(first_address(&[0x90; WINDOW], 0x3_df40), None);
        let mut late = [0x90; WINDOW];
        late[..7].copy_from_slice(&NEW[24..31]);
        late[90..92].copy_from_slice(&[0x0f, 0xb1]);
        assert_eq!(first_address(&late, 0x3_df40), None);
    }
}
