//! Allocation that can fail: the only ways in which the loader grows a collection or boxes a value.

use alloc::alloc::alloc;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;

/// There is no memory left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// Appends one value.
pub fn try_push<T>(vector: &mut Vec<T>, value: T) -> Result<(), OutOfMemory> {
    vector.try_reserve(1).map_err(|_| OutOfMemory)?;
    // Cannot allocate any more: the room was reserved above.
    #[allow(clippy::disallowed_methods)]
    vector.push(value);
    Ok(())
}

/// Puts one value before the one at `position`, which is the length at most.
pub fn try_insert<T>(vector: &mut Vec<T>, position: usize, value: T) -> Result<(), OutOfMemory> {
    vector.try_reserve(1).map_err(|_| OutOfMemory)?;
    // Cannot allocate any more: the room was reserved above.
    vector.insert(position, value);
    Ok(())
}

/// Appends a slice.
pub fn try_extend<T: Copy>(vector: &mut Vec<T>, values: &[T]) -> Result<(), OutOfMemory> {
    vector.try_reserve(values.len()).map_err(|_| OutOfMemory)?;
    // Cannot allocate any more: the room was reserved above.
    #[allow(clippy::disallowed_methods)]
    vector.extend_from_slice(values);
    Ok(())
}

/// A vector of `count` copies of `value`.
pub fn try_filled<T: Copy>(value: T, count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
    vector.resize(count, value);
    Ok(vector)
}

/// An empty vector with room for `count` values.
pub fn try_room<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
    Ok(vector)
}

/// Moves a value to the heap.
pub fn try_box<T>(value: T) -> Result<Box<T>, OutOfMemory> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        // A box of nothing allocates nothing.
        #[allow(clippy::disallowed_methods)]
        return Ok(Box::new(value));
    }
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc(layout) }.cast::<T>();
    if memory.is_null() {
        return Err(OutOfMemory);
    }
    // SAFETY: the memory is fresh, large enough and aligned for T.
    unsafe { memory.write(value) };
    // SAFETY: allocated by the global allocator with T's layout and initialised above.
    Ok(unsafe { Box::from_raw(memory) })
}
