//! The first half of a start: what the program needs is found, loaded and checked, and the world is made of it. Nothing
//! outside this process's own new memory has been changed at its end.

use crate::bring_up::BringUp;
use crate::constants::{CANNOT_START, FAILURE, NAME};
use crate::environment::Variables;
use crate::failure::{cannot_start, tell};
use crate::options::Mode;
use crate::program::{self, WayIn};
use crate::report::error;
use crate::stack::InitialStack;
use crate::{executable_stack, host, list, preload, start, trampoline};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::CStr;
use rtld_link::error::Error;
use rtld_link::fallible::{try_box, try_push};
use rtld_link::init_order::init_order;
use rtld_link::load::{Loader, Missing};
use rtld_link::map::Pages;
use rtld_link::object::{Object, ObjectIndex, ObjectSet, Role};
use rtld_link::relocate::Binding;
use rtld_link::search::{Search, Settings, Trust};
use rtld_link::text::{Bytes, Text};
use rtld_link::version_check::{self, FindingKind};
use rtld_runtime::pins;
use rtld_runtime::world::{Arguments, Process, SubstituteTable, World, make_handle};
use rtld_runtime::writer::State;
use rtld_sys::auxv::AT_PLATFORM;
use rtld_sys::file::File;
use rtld_sys::process;

/// What is asked for beyond the environment.
pub struct Request {
    /// How we were started.
    pub way: WayIn,
    /// What is to be done.
    pub mode: Mode,
    /// Asked by LD_TRACE_LOADED_OBJECTS, as ldd does: something missing is no failure.
    pub trace: bool,
    /// /etc/ld.so.cache is used.
    pub use_cache: bool,
    /// --preload.
    pub preload_option: Option<&'static [u8]>,
}

/// What loading gave.
struct Loaded {
    objects: ObjectSet,
    search: Search<'static>,
    missing: Vec<Missing>,
    preloaded: Vec<ObjectIndex>,
    c_library: Option<(ObjectIndex, File)>,
}

/// What all phases know.
pub struct Linking {
    /// The initial stack.
    pub stack: InitialStack,
    /// Where this image is.
    pub base: usize,
    /// How far the environment is trusted.
    pub trust: Trust,
    /// The system's pages.
    pub pages: Pages,
    /// The environment.
    pub variables: Variables,
    /// What else is asked for.
    pub request: Request,
    /// The program's name for messages.
    pub name: &'static CStr,
}

impl Linking {
    /// Links and brings up; ends the process where that cannot be.
    pub fn run(self, program: Object, ourselves: Object) -> usize {
        match self.link(program, ourselves) {
            Ok(entry) => entry,
            Err(failure) => self.fail(&failure),
        }
    }

    fn fail(&self, failure: &Error) -> ! {
        cannot_start(self.name.to_bytes(), failure)
    }

    fn link(&self, program: Object, mut ourselves: Object) -> Result<usize, Error> {
        if ourselves.path.is_empty() {
            ourselves.path = Text::new(program::interpreter(&program).unwrap_or(NAME.as_bytes()))?;
        }
        let entry = program.address(program.mapping.entry);
        let Loaded { objects, search, missing, preloaded, c_library } = self.load(program, ourselves)?;
        if self.request.mode == Mode::List {
            list::print(&objects, &missing);
            process::exit(if missing.is_empty() || self.request.trace { 0 } else { FAILURE });
        }
        self.report_missing(&missing);
        self.check_versions(&objects)?;
        let stack_flags = executable_stack::permissions(&objects);
        executable_stack::apply(&objects, self.request.way, self.stack.address(), self.pages)?;

        let library = self.recognise(&objects, c_library)?;
        let plan = host::plan_tls(&objects, library, self.stack, self.variables.static_tls_extra)?;
        let mut members = Vec::new();
        objects.iter().try_for_each(|(index, _)| try_push(&mut members, index))?;
        let order = init_order(&objects, &members, &preloaded)?;
        let mut handles = Vec::new();
        let mut global = Vec::new();
        for (index, object) in objects.iter() {
            let handle = make_handle(index, object)?;
            pins::keep(handle);
            try_push(&mut handles, handle)?;
            // We are the last, so what programs find of ours is what nobody else defines.
            if object.role != Role::Vdso {
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
            substitutes: SubstituteTable::new(),
            entries: trampoline::entries(),
            binding: if self.variables.bind_now { Binding::Now } else { Binding::Lazy },
            lookup: self.variables.lookup,
            stack_flags,
            pages: self.pages,
            host: library.map(|host| host as &dyn rtld_runtime::world::Host),
        };
        let extra = plan.extra.unwrap_or(0);
        let state = State::new(objects, handles, plan, search, global)?;
        let snapshot = state.snapshot()?;
        let world: &'static World = Box::leak(try_box(World::new(process, state, snapshot))?);
        start::set_world(world);
        let Self { stack, base, trust, .. } = *self;
        let wish = self.variables.wish(host::original);
        let statistics = self.variables.debug.statistics;
        BringUp { world, library, stack, base, trust, extra, order: &order, wish, statistics }.run()?;
        Ok(entry)
    }

    fn recognise(
        &self,
        objects: &ObjectSet,
        file: Option<(ObjectIndex, File)>,
    ) -> Result<Option<&'static host::Host>, Error> {
        let library = host::recognise(objects, file, self.stack, self.trust).unwrap_or_else(|unsupported| {
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
        let mut loader = Loader {
            objects: &mut objects,
            search: &mut search,
            pages: self.pages.at_start(),
            below: None,
            c_library: None,
        };
        let preloaded = preload::preload(&mut loader, self.variables.preload, self.request.preload_option)?;
        let missing = loader.load_dependencies(ObjectIndex(0))?;
        let c_library = loader.c_library;
        objects.add(ourselves)?;
        search.forget_cache();
        Ok(Loaded { objects, search, missing, preloaded, c_library })
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
}
