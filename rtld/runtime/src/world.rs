//! The one record of a running process: its objects, the order they are searched in, and what start-up decided.

use crate::addresses::AddressMap;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;
use rtld_clib::LinkMap;
use rtld_clib::substitutes::{self, Substitute};
use rtld_link::fallible::{OutOfMemory, try_box, try_push};
use rtld_link::lookup::{Definition, Resolver, Scope};
use rtld_link::map::Pages;
use rtld_link::object::{ObjectIndex, ObjectSet};
use rtld_link::relocate::Substitutes;
use rtld_link::static_tls::TlsPlan;

/// What an object is known by outside: the address of its link map is also its handle and what its GOT holds.
#[repr(C)]
#[derive(Debug)]
pub struct Handle {
    /// What the C library and debuggers see; must come first.
    pub link_map: LinkMap,
    /// Which object it is.
    pub index: ObjectIndex,
}

/// What every initialiser is called with.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// argc.
    pub count: usize,
    /// argv.
    pub values: usize,
    /// envp.
    pub environment: usize,
}

/// Our code for each of the C library's functions that we replace, by [`Substitute`]; 0 where glibc's own is kept.
#[derive(Debug)]
pub struct SubstituteTable(pub [usize; substitutes::COUNT]);

impl Substitutes for SubstituteTable {
    fn substitute(&self, _: &Definition<'_>, name: &[u8], hash: u32) -> Option<usize> {
        let substitute = Substitute::from_name(name, hash)?;
        self.0.get(substitute as usize).copied().filter(|&address| address != 0)
    }
}

/// The process.
#[derive(Debug)]
pub struct World {
    /// All objects.
    pub objects: ObjectSet,
    /// Where symbols are looked for.
    pub global: Scope,
    /// Static TLS.
    pub tls: TlsPlan,
    /// By object: its handle. The memory is never freed, since the C library and debuggers keep addresses in it.
    pub handles: Vec<*mut Handle>,
    /// By address: the object.
    pub addresses: AddressMap,
    /// The order of initialisers; the program is in it too.
    pub init_order: Vec<ObjectIndex>,
    /// How many objects of `init_order` have been (or are being) initialised and not yet finalised.
    pub initialised: AtomicUsize,
    /// For initialisers.
    pub arguments: Arguments,
    /// The program's name for messages: its argv[0].
    pub program_name: &'static CStr,
    /// Size of the thread descriptor above the thread pointer.
    pub descriptor_size: usize,
    /// Our code in place of the C library's.
    pub substitutes: SubstituteTable,
    /// The system's pages.
    pub pages: Pages,
}

impl World {
    /// Symbol lookup as the start-up objects do it.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver { objects: &self.objects, global: &self.global }
    }

    /// The handle of an object; null for one that is not there.
    pub fn handle(&self, index: ObjectIndex) -> *mut Handle {
        self.handles.get(index.position()).copied().unwrap_or(core::ptr::null_mut())
    }

    /// The object with a code or data address.
    pub fn object_at(&self, address: usize) -> Option<ObjectIndex> {
        self.addresses.find(address)
    }
}

/// Makes the handles of all objects and links their link maps in load order.
pub fn make_handles(objects: &ObjectSet) -> Result<Vec<*mut Handle>, OutOfMemory> {
    let mut handles: Vec<*mut Handle> = Vec::new();
    for (index, object) in objects.iter() {
        let mut handle = try_box(Handle { link_map: LinkMap::new(), index })?;
        handle.link_map.address = object.mapping.bias;
        handle.link_map.name = object.path.as_c_str().as_ptr().cast();
        let dynamic = object.mapping.layout.dynamic.map_or(0, |range| object.address(range.start));
        handle.link_map.dynamic = core::ptr::with_exposed_provenance(dynamic);
        let previous = handles.last().copied().unwrap_or(core::ptr::null_mut());
        handle.link_map.previous = previous.cast();
        let handle = Box::into_raw(handle);
        if !previous.is_null() {
            // SAFETY: made by the round before and not yet known to anybody else.
            unsafe { (*previous).link_map.next = handle.cast() };
        }
        try_push(&mut handles, handle)?;
    }
    Ok(handles)
}
