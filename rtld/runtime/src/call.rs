//! Calls of code that is not ours, by address. One function for each shape.

/// Calls an initialiser.
///
/// # Safety
/// `function` must be the address of a function that may be called with (argc, argv, envp).
pub unsafe fn initialiser(function: usize, count: usize, values: usize, environment: usize) {
    let pointer = core::ptr::with_exposed_provenance::<()>(function);
    // SAFETY: the caller vouches for the address; the psABI's calling convention is C's.
    let function = unsafe { core::mem::transmute::<*const (), extern "C" fn(usize, usize, usize)>(pointer) };
    function(count, values, environment);
}

/// Calls a finaliser.
///
/// # Safety
/// `function` must be the address of a function without arguments.
pub unsafe fn finaliser(function: usize) {
    let pointer = core::ptr::with_exposed_provenance::<()>(function);
    // SAFETY: the caller vouches for the address.
    let function = unsafe { core::mem::transmute::<*const (), extern "C" fn()>(pointer) };
    function();
}

/// Calls a resolver of an indirect function.
///
/// # Safety
/// `function` must be the address of a resolver.
pub unsafe fn resolver(function: usize) -> usize {
    let pointer = core::ptr::with_exposed_provenance::<()>(function);
    // SAFETY: the caller vouches for the address.
    let function = unsafe { core::mem::transmute::<*const (), extern "C" fn() -> usize>(pointer) };
    function()
}
