//! The list of phases: from the initial stack to the program's entry point. Each phase takes what the one before made.

use crate::command::Command;
use crate::constants::{CANNOT_START, FAILURE, NAME};
use crate::environment::{self, Variables};
use crate::options::Mode;
use crate::program::{self, WayIn};
use crate::report::{Writer, error};
use crate::stack::InitialStack;
use crate::{executable_stack, exports, host, list, trampoline};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, Ordering};
use rtld_link::deferred::Resolvers;
use rtld_link::error::{Class, Error, Reason};
use rtld_link::fallible::{try_box, try_push};
use rtld_link::init_order::init_order;
use rtld_link::load::{Loader, Missing};
use rtld_link::lookup::Definition;
use rtld_link::map::Pages;
use rtld_link::object::{Object, ObjectIndex, ObjectSet, Role};
use rtld_link::protect;
use rtld_link::relocate::{Binding, Later, Notes, Relocator};
use rtld_link::search::{Search, Settings, Trust};
use rtld_link::text::{Bytes, Text};
use rtld_link::version_check::{self, FindingKind};
use rtld_runtime::world::{Arguments, Handle, Process, Snapshot, SubstituteTable, World, make_handle};
use rtld_runtime::writer::{self, State};
use rtld_runtime::{bind, initialise, pins, resolve, thread_local};
use rtld_sys::auxv::{AT_PAGESZ, AT_PLATFORM};
use rtld_sys::{file, process};

/// Where to go when everything is done.
pub struct Departure {
    /// The program's entry point.
    pub entry: usize,
    /// What the program registers to be called at its exit; 0 for nothing.
    pub finaliser: usize,
}

static WORLD: AtomicPtr<World> = AtomicPtr::new(core::ptr::null_mut());

/// The running process, once there is one.
pub fn world() -> Option<&'static World> {
    let world = WORLD.load(Ordering::Acquire);
    // SAFETY: start() stores a leaked box, once, and nobody changes it afterwards except through its atomics.
    unsafe { world.as_ref() }
}

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

/// Ends the process with the line that says why a program cannot be started.
pub fn cannot_start(program: &[u8], failure: &Error) -> ! {
    tell(program, failure);
    process::exit(CANNOT_START)
}

fn tell(program: &[u8], failure: &Error) {
    let program = Bytes(program);
    match failure.reason.class() {
        Class::Load => error(format_args!("{program}: error while loading shared libraries: {failure}\n")),
        Class::SymbolLookup => {
            let file = if failure.file.is_empty() { program } else { Bytes(failure.file.as_bytes()) };
            error(format_args!("{program}: symbol lookup error: {file}: {}\n", failure.reason));
        }
    }
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
            Linking { stack, base, trust, pages, variables, request, name }.run(program, ourselves)
        }
    }
}

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
    Linking { stack, base, trust, pages, variables, request, name }.run(command.program, ourselves)
}

/// argv[0], or what stands in for it.
fn program_name(stack: InitialStack) -> &'static CStr {
    stack.argument(0).unwrap_or(c"<program name unknown>")
}

/// What is asked for beyond the environment.
struct Request {
    way: WayIn,
    mode: Mode,
    /// Asked by LD_TRACE_LOADED_OBJECTS, as ldd does: something missing is no failure.
    trace: bool,
    use_cache: bool,
    preload_option: Option<&'static [u8]>,
}

/// What loading gave.
struct Loaded {
    objects: ObjectSet,
    search: Search<'static>,
    missing: Vec<Missing>,
    preloaded: Vec<ObjectIndex>,
}

/// What all phases know.
struct Linking {
    stack: InitialStack,
    base: usize,
    trust: Trust,
    pages: Pages,
    variables: Variables,
    request: Request,
    name: &'static CStr,
}

impl Linking {
    fn run(self, program: Object, ourselves: Object) -> Departure {
        match self.link(program, ourselves) {
            Ok(departure) => departure,
            Err(failure) => self.fail(&failure),
        }
    }

    fn fail(&self, failure: &Error) -> ! {
        cannot_start(self.name.to_bytes(), failure)
    }

    fn link(&self, program: Object, mut ourselves: Object) -> Result<Departure, Error> {
        if ourselves.path.is_empty() {
            ourselves.path = Text::new(program::interpreter(&program).unwrap_or(NAME.as_bytes()))?;
        }
        let entry = program.address(program.mapping.entry);
        let Loaded { objects, search, missing, preloaded } = self.load(program, ourselves)?;
        if self.request.mode == Mode::List {
            list::print(&objects, &missing);
            process::exit(if missing.is_empty() || self.request.trace { 0 } else { FAILURE });
        }
        self.report_missing(&missing);
        self.check_versions(&objects)?;
        let stack_flags = executable_stack::permissions(&objects);
        executable_stack::apply(&objects, self.request.way, self.stack.address(), self.pages)?;

        let library = self.recognise(&objects)?;
        let plan = host::plan_tls(&objects, library, self.stack, self.variables.static_tls_extra)?;
        let order = init_order(&objects, &preloaded)?;
        let mut handles = Vec::new();
        let mut global = Vec::new();
        for (index, object) in objects.iter() {
            let handle = make_handle(index, object)?;
            pins::keep(handle);
            try_push(&mut handles, handle)?;
            if !matches!(object.role, Role::Vdso | Role::Ourselves) {
                try_push(&mut global, index)?;
            }
        }
        let process = Process {
            arguments: Arguments {
                count: self.stack.argument_count(),
                values: self.stack.arguments(),
                environment: self.stack.environment_address(),
            },
            program_name: self.name,
            descriptor_size: host::descriptor_size(library),
            static_tls_size: plan.size,
            static_tls_alignment: plan.alignment,
            own_area: plan.own,
            substitutes: SubstituteTable(exports::substitutes()),
            entries: trampoline::entries(),
            binding: if self.variables.bind_now { Binding::Now } else { Binding::Lazy },
            stack_flags,
            pages: self.pages,
            host: library.map(|host| host as &dyn rtld_runtime::world::Host),
        };
        let extra = plan.extra.unwrap_or(0);
        let state = State::new(objects, handles, plan, search, global);
        let snapshot = state.snapshot()?;
        let world: &'static World = Box::leak(try_box(World::new(process, state, snapshot))?);
        WORLD.store(core::ptr::from_ref(world).cast_mut(), Ordering::Release);
        self.bring_up(world, library, extra, &order)?;
        Ok(Departure { entry, finaliser: finish as *const () as usize })
    }

    fn recognise(&self, objects: &ObjectSet) -> Result<Option<&'static host::Host>, Error> {
        let library = host::recognise(objects, self.stack, self.trust).unwrap_or_else(|unsupported| {
            error(format_args!("{}: {unsupported}\n", Bytes(self.name.to_bytes())));
            process::exit(CANNOT_START)
        });
        Ok(match library {
            Some(host) => Some(Box::leak(try_box(host)?)),
            None => None,
        })
    }

    /// Loads the program's closure, in glibc's order: program, vDSO, preloads, dependencies breadth first; we are last.
    fn load(&self, program: Object, ourselves: Object) -> Result<Loaded, Error> {
        let auxiliary = self.stack.auxiliary();
        let mut objects = ObjectSet::new();
        objects.add(program)?;
        if let Some(vdso) = program::vdso(auxiliary, self.pages).map_err(|reason| reason.of(b"linux-vdso.so.1"))? {
            objects.add(vdso)?;
        }
        let platform = auxiliary.get(AT_PLATFORM).map(|address| {
            // SAFETY: AT_PLATFORM is a C string that the kernel made.
            unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(address)) }.to_bytes()
        });
        let mut search = Search::new(Settings {
            library_path: self.variables.library_path,
            platform,
            use_cache: self.request.use_cache,
            trust: self.trust,
            own_header: program::own_header(self.base),
        });
        let mut loader = Loader { objects: &mut objects, search: &mut search, pages: self.pages };
        let preloaded = self.preload(&mut loader)?;
        let missing = loader.load_dependencies(ObjectIndex(0))?;
        objects.add(ourselves)?;
        search.forget_cache();
        Ok(Loaded { objects, search, missing, preloaded })
    }

    fn preload(&self, loader: &mut Loader<'_, '_>) -> Result<Vec<ObjectIndex>, Error> {
        let mut preloaded = Vec::new();
        for name in split_preload(self.variables.preload.unwrap_or_default()) {
            self.preload_one(loader, &mut preloaded, name, "LD_PRELOAD")?;
        }
        for name in split_preload(self.request.preload_option.unwrap_or_default()) {
            self.preload_one(loader, &mut preloaded, name, "--preload")?;
        }
        if file::is_readable(SYSTEM_PRELOAD) {
            let text = read_whole(SYSTEM_PRELOAD)?;
            for line in text.split(|&byte| byte == b'\n') {
                let names = line.split(|&byte| byte == b'#').next().unwrap_or_default();
                for name in split_preload(names) {
                    self.preload_one(loader, &mut preloaded, name, "/etc/ld.so.preload")?;
                }
            }
        }
        Ok(preloaded)
    }

    fn preload_one(
        &self,
        loader: &mut Loader<'_, '_>,
        preloaded: &mut Vec<ObjectIndex>,
        name: &[u8],
        origin: &str,
    ) -> Result<(), Error> {
        match loader.load(ObjectIndex(0), Some(ObjectIndex(0)), name) {
            Ok(index) => try_push(preloaded, index)?,
            Err(failure) => {
                let name = Bytes(name);
                let mut out = Writer::new(file::STDERR);
                let _ = write!(out, "ERROR: ld.so: object '{name}' from {origin} cannot be preloaded (");
                let _ = match &failure.reason {
                    Reason::Open(_) => out.write_str("cannot open shared object file"),
                    Reason::Read(_) => out.write_str("cannot read file data"),
                    reason => write!(out, "{reason}"),
                };
                let _ = out.write_str("): ignored.\n");
            }
        }
        Ok(())
    }

    /// One line for each library that is missing; then the end.
    fn report_missing(&self, missing: &[Missing]) {
        for missing in missing {
            tell(self.name.to_bytes(), &missing.error);
        }
        if !missing.is_empty() {
            process::exit(CANNOT_START);
        }
    }

    fn check_versions(&self, objects: &ObjectSet) -> Result<(), Error> {
        let findings = version_check::check(objects, ObjectIndex(0))?;
        let name_of = |index| match objects.get(index) {
            Some(object) if !object.path.is_empty() => Bytes(object.path.as_bytes()),
            _ => Bytes(self.name.to_bytes()),
        };
        let mut failed = false;
        for finding in &findings {
            let (program, version) = (Bytes(self.name.to_bytes()), Bytes(finding.version));
            let (provider, requester) = (name_of(finding.provider), name_of(finding.requester));
            match finding.kind {
                FindingKind::NotFound => {
                    failed = true;
                    error(format_args!(
                        "{program}: {provider}: version `{version}' not found (required by {requester})\n"
                    ));
                }
                FindingKind::WeakNotFound => error(format_args!(
                    "{program}: {provider}: weak version `{version}' not found (required by {requester})\n"
                )),
                FindingKind::NoInformation => error(format_args!(
                    "{program}: {provider}: no version information available (required by {requester})\n"
                )),
            }
        }
        if failed {
            process::exit(FAILURE);
        }
        Ok(())
    }

    /// Everything from here on changes the process: the main thread, relocation, resolvers, constants, initialisers.
    fn bring_up(
        &self,
        world: &'static World,
        library: Option<&'static host::Host>,
        extra: usize,
        order: &[ObjectIndex],
    ) -> Result<(), Error> {
        // SAFETY: the only thread; the snapshot is replaced by dlopen at the earliest, which no code can call yet. What
        // comes after resolvers have run looks again.
        let snapshot = unsafe { world.snapshot() };
        let control = host::make_main_thread(world, snapshot, library, self.stack, self.trust, extra)?;
        exports::publish_debugger(snapshot, self.base);
        let (later, modules) = writer::write(world, |state| -> Result<_, Error> {
            state.relink_quietly();
            if let Some(host) = library {
                host::adopt_all(snapshot, &state.tls, host)?;
            }
            let later = self.relocate(world, snapshot, state)?;
            let mut modules = Vec::new();
            state.tls.modules().try_for_each(|module| try_push(&mut modules, module))?;
            Ok((later, modules))
        })?;
        // SAFETY: the control block was made for this layout, its vector is attached, and no other thread exists.
        unsafe { thread_local::initialise(world, snapshot, control) }.ok_or(Reason::OutOfMemory)?;
        let call = resolve::call(world);
        let resolvers = Resolvers {
            objects: &snapshot.objects,
            copies: &later.copies,
            modules: &modules,
            thread_pointer: control,
            pages: self.pages,
            call: &call,
        };
        let (slots, first) = resolve::order(snapshot, order, &later.deferred)?;
        let (first, rest) = slots.split_at(first.min(slots.len()));
        resolve::run(&resolvers, first)?;
        host::publish_functions(library)?;
        resolve::run(&resolvers, rest)?;
        for (_, object) in snapshot.objects.iter() {
            if !matches!(object.role, Role::Vdso | Role::Ourselves) {
                protect::protect_constant(object, self.pages)?;
            }
        }
        if let Some(host) = world.process.host {
            host.modules_changed(&snapshot.tls, &snapshot.handles).ok_or(Reason::CLibraryLayout)?;
        }
        host::finish(library);
        exports::debugger_is_consistent();
        // SAFETY: all objects are relocated and the main thread is complete.
        unsafe { initialise::run_at_start(world, order, exports::refuse) };
        Ok(())
    }

    fn relocate(&self, world: &'static World, snapshot: &Snapshot, state: &State) -> Result<Later, Error> {
        let notes = StartNotes { program: self.name };
        let handle = |index: ObjectIndex| snapshot.handle(index).expose_provenance();
        let relocator = Relocator {
            resolver: snapshot.resolver(),
            tls: &state.tls,
            substitutes: &world.process.substitutes,
            notes: &notes,
            entries: world.process.entries,
            binding: world.process.binding,
            pages: self.pages,
            handle: &handle,
        };
        let mut later = Later::default();
        // From the last to the first, so that the program copies data that is relocated.
        for (index, _) in snapshot.objects.iter().rev() {
            relocator.relocate(index, &mut later)?;
        }
        Ok(later)
    }
}

/// Libraries that the administrator wants in every process (ld.so(8), FILES).
const SYSTEM_PRELOAD: &CStr = c"/etc/ld.so.preload";

/// The names in a list of libraries to preload.
fn split_preload(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b':' | b'\t')).filter(|name| !name.is_empty())
}

fn read_whole(path: &CStr) -> Result<Vec<u8>, Error> {
    let fail = |reason: Reason| reason.of(path.to_bytes());
    let file = file::File::open(path).map_err(|error| fail(Reason::Open(error)))?;
    let status = file.status().map_err(|error| fail(Reason::Read(error)))?;
    let mut text = rtld_link::fallible::try_filled(0_u8, usize::try_from(status.size).unwrap_or(0))?;
    let length = file.read_at(&mut text, 0).map_err(|error| fail(Reason::Read(error)))?;
    text.truncate(length);
    Ok(text)
}

/// What the program calls at its exit.
extern "C" fn finish() {
    if let Some(world) = world() {
        initialise::run_finalisers(world, exports::refuse);
    }
}

/// From the trampoline: binds a PLT slot, or ends the process with a line that names the symbol.
pub extern "C" fn bind_slot(handle: *const Handle, slot: usize) -> usize {
    let Some(world) = world() else { process::abort() };
    // SAFETY: the handle comes from the GOT that start-up filled.
    let result = unsafe { bind::bind(world, handle, slot, &trampoline::call_resolver) };
    result.unwrap_or_else(|failure| cannot_start(world.process.program_name.to_bytes(), &failure))
}
