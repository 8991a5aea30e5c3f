//! The second half of a start: everything from here on changes the process. The main thread, relocation, resolvers,
//! constants, initialisers.

use crate::report::error;
use crate::stack::InitialStack;
use crate::{diagnostics, exports, heap, host, link_maps, main_thread};
use alloc::vec::Vec;
use core::ffi::CStr;
use rtld_link::deferred::Resolvers;
use rtld_link::error::{Error, Reason};
use rtld_link::fallible::try_push;
use rtld_link::lookup::Definition;
use rtld_link::lookup_mode::Lookup;
use rtld_link::object::{ObjectIndex, Role};
use rtld_link::protect;
use rtld_link::relocate::{Later, Notes, Relocator};
use rtld_link::search::Trust;
use rtld_link::text::Bytes;
use rtld_runtime::world::{Snapshot, World};
use rtld_runtime::writer::{self, State};
use rtld_runtime::{initialise, resolve, thread_local};
use sigblock::backend::Wish;

/// Tells what start-up relocation finds. Start-up objects stay, so nothing is noted about who is bound to whom.
struct StartNotes<'a> {
    program: &'a CStr,
}

impl Notes for StartNotes<'_> {
    fn copy_size(&self, name: &[u8]) {
        let (program, name) = (Bytes(self.program.to_bytes()), Bytes(name));
        error(format_args!("{program}: Symbol `{name}' has different size in shared object, consider re-linking\n"));
    }

    fn bound(&self, _: ObjectIndex, _: &Definition<'_>) {}
}

/// What bringing up needs to know.
pub struct BringUp<'a> {
    /// The process.
    pub world: &'static World,
    /// The C library, if there is one.
    pub library: Option<&'static host::Host>,
    /// The initial stack.
    pub stack: InitialStack,
    /// Where this image is.
    pub base: usize,
    /// How far the environment is trusted.
    pub trust: Trust,
    /// Where the C library's own area in static TLS lies.
    pub extra: usize,
    /// The order of initialisers.
    pub order: &'a [ObjectIndex],
    /// What is wished for about sections.
    pub wish: Wish<'static>,
    /// It is told how names are looked up.
    pub statistics: bool,
}

impl BringUp<'_> {
    /// Does all of it.
    pub fn run(self) -> Result<(), Error> {
        let Self { world, library, stack, base, trust, extra, order, wish, statistics } = self;
        // SAFETY: the only thread; the snapshot is replaced by dlopen at the earliest, which no code can call yet. What
        // comes after resolvers have run looks again.
        let snapshot = unsafe { world.snapshot() };
        let control = main_thread::make(world, snapshot, library, stack, trust, extra)?;
        diagnostics::choose_backend(world.process.program_name.to_bytes(), wish);
        exports::fill_substitutes(&world.process.substitutes);
        exports::publish_debugger(snapshot, base);
        let (later, modules) = writer::write(world, |state| -> Result<_, Error> {
            state.relink_quietly();
            if let Some(host) = library {
                link_maps::adopt_all(snapshot, &state.tls, host)?;
            }
            let later = relocate(world, snapshot, state, statistics)?;
            let mut modules = Vec::new();
            state.tls.modules().try_for_each(|module| try_push(&mut modules, module))?;
            Ok((later, modules))
        })?;
        // SAFETY: the control block was made for this layout, its vector is attached, and no other thread exists.
        unsafe { thread_local::initialise(snapshot, control) }.ok_or(Reason::OutOfMemory)?;
        let call = resolve::call(world);
        let resolvers = Resolvers {
            objects: &snapshot.objects,
            copies: &later.copies,
            modules: &modules,
            thread_pointer: control,
            pages: world.process.pages,
            call: &call,
        };
        let (slots, first) = resolve::order(snapshot, order, &later.deferred)?;
        let (first, rest) = slots.split_at(first.min(slots.len()));
        resolve::run(&resolvers, first)?;
        host::publish_functions(library)?;
        resolve::run(&resolvers, rest)?;
        for (_, object) in snapshot.objects.iter() {
            if !matches!(object.role, Role::Vdso | Role::Ourselves) {
                protect::protect_constant(object, world.process.pages)?;
            }
        }
        if let Some(host) = world.process.host {
            host.modules_changed(&snapshot.tls, &snapshot.handles).ok_or(Reason::CLibraryLayout)?;
        }
        host::finish(library);
        exports::debugger_is_consistent();
        heap::stop_making();
        sigblock::backend::activate();
        sigblock::fork::set_first(exports::in_child);
        // SAFETY: all objects are relocated and the main thread is complete.
        unsafe { initialise::run_at_start(world, order, exports::refuse) };
        Ok(())
    }
}

fn relocate(world: &World, snapshot: &Snapshot, state: &State, statistics: bool) -> Result<Later, Error> {
    let notes = StartNotes { program: world.process.program_name };
    let handle = |index: ObjectIndex| snapshot.handle(index).expose_provenance();
    let process = &world.process;
    let all = snapshot.objects.iter().map(|(index, _)| index);
    let pages = process.pages.at_start();
    let lookup = Lookup::choose(process.lookup, &snapshot.objects, &snapshot.scopes, process.binding, pages, all);
    if statistics {
        diagnostics::tell_lookup(process.program_name.to_bytes(), &lookup);
    }
    let relocator = Relocator {
        resolver: snapshot.resolver_by(&lookup),
        tls: &state.tls,
        substitutes: &world.process.substitutes,
        notes: &notes,
        entries: world.process.entries,
        binding: world.process.binding,
        pages,
        handle: &handle,
    };
    let mut later = Later::default();
    // From the last to the first, so that the program copies data that is relocated.
    for (index, _) in snapshot.objects.iter().rev() {
        relocator.relocate(index, &mut later)?;
    }
    // Nothing of it is ever unloaded.
    core::mem::take(&mut later.descriptors).hand_out(|_| None);
    Ok(later)
}
