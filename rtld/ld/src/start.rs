//! From the initial stack to the program's entry point: how we were started, and the one static world.
//!
//! The phases are `Command` (only when started directly), `Linking`, `BringUp`; each takes what the one before made.

use crate::command::Command;
use crate::constants::NAME;
use crate::diagnostics;
use crate::environment::{self, Variables};
use crate::exports;
use crate::failure::cannot_start;
use crate::linking::{Linking, Request};
use crate::options::Mode;
use crate::program::{self, WayIn};
use crate::stack::InitialStack;
use crate::trampoline;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use rtld_link::error::Reason;
use rtld_link::map::Pages;
use rtld_link::object::{Object, Role};
use rtld_link::protect;
use rtld_link::search::Trust;
use rtld_link::text::Text;
use rtld_runtime::world::{Handle, World};
use rtld_runtime::{bind, initialise};
use rtld_sys::auxv::AT_PAGESZ;
use rtld_sys::{file, memory, process};

/// Where to go when everything is done.
pub struct Departure {
    /// The program's entry point.
    pub entry: usize,
    /// What the program registers to be called at its exit; 0 for nothing.
    pub finaliser: usize,
}

/// So deep a start's stack goes below the kernel's part of it: whole pages that are made in one call.
const OWN_STACK: usize = 28 << 10;

static WORLD: AtomicPtr<World> = AtomicPtr::new(core::ptr::null_mut());

/// The running process, once there is one.
pub fn world() -> Option<&'static World> {
    let world = WORLD.load(Ordering::Acquire);
    // SAFETY: start() stores a leaked box, once, and nobody changes it afterwards except through its atomics.
    unsafe { world.as_ref() }
}

/// Makes a world the one that all entry points use. Once, before anything can call them.
pub fn set_world(world: &'static World) {
    WORLD.store(core::ptr::from_ref(world).cast_mut(), Ordering::Release);
}

/// From the kernel's hand-over to the program's entry point.
pub fn start(stack: usize, base: usize) -> Departure {
    // SAFETY: _start passes the stack pointer as the kernel set it.
    let stack = unsafe { InitialStack::at(stack) };
    let trust = environment::trust(stack.auxiliary());
    if trust == Trust::Secure {
        environment::scrub(stack);
        if let Err(failure) = file::open_standard_descriptors() {
            cannot_start(NAME.as_bytes(), &Reason::Open(failure).of(b"/dev/null"));
        }
    }
    let auxiliary = stack.auxiliary();
    let pages = Pages::new(auxiliary.get(AT_PAGESZ).unwrap_or(0));
    let above = pages.down(stack.address());
    memory::prepare_to_write(above.saturating_sub(OWN_STACK), OWN_STACK);
    let ourselves = match program::ourselves(base, pages)
        .and_then(|mapping| Object::new(Role::Ourselves, Text::empty(), mapping))
    {
        Ok(object) => object,
        Err(reason) => cannot_start(NAME.as_bytes(), &reason.of(b"")),
    };
    if let Err(failure) = protect::protect_constant(&ourselves, pages) {
        cannot_start(NAME.as_bytes(), &failure);
    }
    let variables = environment::read(stack);
    let pages = pages.with_huge(variables.huge_from);
    let own_entry = ourselves.address(ourselves.mapping.entry);
    match program::way_in(auxiliary, own_entry) {
        WayIn::Direct => start_directly(stack, base, trust, pages, ourselves, variables),
        WayIn::Interpreter => {
            let name = program_name(stack);
            let program = match program::adopt(auxiliary, pages) {
                Ok(program) => program,
                Err(reason) => cannot_start(name.to_bytes(), &reason.of(name.to_bytes())),
            };
            let mode = if variables.trace { Mode::List } else { Mode::Run };
            let request = Request { way: WayIn::Interpreter, mode, trace: true, use_cache: true, preload_option: None };
            let entry = Linking { stack, base, trust, pages, variables, request, name }.run(program, ourselves);
            Departure { entry, finaliser: finish as *const () as usize }
        }
    }
}

// Not inlined: what only this way needs would lie on the stack of every start.
#[inline(never)]
fn start_directly(
    stack: InitialStack,
    base: usize,
    trust: Trust,
    pages: Pages,
    ourselves: Object,
    mut variables: Variables,
) -> Departure {
    let command = Command::read(stack, &variables, trust, base, pages);
    if command.options.mode == Mode::Verify {
        command.verify();
    }
    let own_path = stack.auxiliary().get(rtld_sys::auxv::AT_EXECFN);
    command.rewrite(stack, base);
    let mode = if variables.trace { Mode::List } else { command.options.mode };
    variables.library_path = command.options.library_path.or(variables.library_path);
    let request = Request {
        way: WayIn::Direct,
        mode,
        trace: variables.trace,
        use_cache: !command.options.inhibit_cache,
        preload_option: command.options.preload,
    };
    let name = program_name(stack);
    if program::is_static(&command.program) && mode == Mode::Run {
        return Departure { entry: command.program.address(command.program.mapping.entry), finaliser: 0 };
    }
    let mut ourselves = ourselves;
    if let Some(path) = own_path {
        // SAFETY: AT_EXECFN is a C string on the stack.
        let path = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(path)) };
        ourselves.path = Text::new(path.to_bytes()).unwrap_or(Text::empty());
    }
    let entry = Linking { stack, base, trust, pages, variables, request, name }.run(command.program, ourselves);
    Departure { entry, finaliser: finish as *const () as usize }
}

/// argv[0], or what stands in for it.
fn program_name(stack: InitialStack) -> &'static CStr {
    stack.argument(0).unwrap_or(c"<program name unknown>")
}

/// What the program calls at its exit.
extern "C" fn finish() {
    if let Some(world) = world() {
        // Finalisers run outside sections, also where a callback ends the process.
        sigblock::callback::suspend(sigblock::current());
        initialise::run_finalisers(world, exports::refuse);
    }
    diagnostics::tell_sections();
}

/// From the trampoline: binds a PLT slot, or ends the process with a line that names the symbol.
pub extern "C" fn bind_slot(handle: *const Handle, slot: usize) -> usize {
    let Some(world) = world() else { process::abort() };
    // SAFETY: the handle comes from the GOT that start-up filled.
    let result = unsafe { bind::bind(world, handle, slot, &trampoline::call_resolver) };
    result.unwrap_or_else(|failure| cannot_start(world.process.program_name.to_bytes(), &failure))
}
