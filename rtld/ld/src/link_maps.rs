//! What the C library and debuggers see of objects: link maps, the list of thread-local modules, dynamic sections with
//! addresses in them.

use crate::exports;
use crate::host::{Host, outside};
use core::sync::atomic::{AtomicU32, Ordering};
use rtld_clib::{ObjectFacts, TlsFacts};
use rtld_elf::{Dyn, Hash, PF_W, PF_X, Table, segments, tag};
use rtld_link::error::{Error, Reason};
use rtld_link::fallible::{try_filled, try_push};
use rtld_link::object::{Object, ObjectIndex, Role};
use rtld_link::static_tls::{TlsPlan, TlsTable};
use rtld_runtime::world::{Handle, Host as _, Snapshot};

/// Fills the C library's part of every start-up object's link map.
pub fn adopt_all(snapshot: &Snapshot, tls: &TlsPlan, host: &'static Host) -> Result<(), Error> {
    let mut scope = alloc::vec::Vec::new();
    for (index, object) in snapshot.objects.iter() {
        let offset = tls.module(index).map_or(0, |module| module.offset);
        let adopted = host.adopt(object, snapshot.handle(index), tls.id(index) as usize, offset);
        adopted.ok_or(Reason::CLibraryLayout)?;
        if !matches!(object.role, Role::Vdso | Role::Ourselves) {
            try_push(&mut scope, snapshot.handle(index))?;
        }
    }
    let scope: &'static [_] = scope.leak();
    let program = snapshot.handle(ObjectIndex(0));
    // SAFETY: start-up is alone, and the handle is alive.
    let link_map = unsafe { &mut (*program).link_map };
    let list = scope.as_ptr().expose_provenance();
    link_map.set_search_list(host.glibc.offsets(), list, scope.len() as u32).map_err(outside)
}

impl rtld_runtime::world::Host for Host {
    fn adopt(&self, object: &Object, handle: *mut Handle, module: usize, offset: usize) -> Option<()> {
        let dynamic = published_entries(object)?;
        // SAFETY: the caller holds the writer lock or is alone; nobody else uses this part of a link map.
        let handle = unsafe { &mut *handle };
        // A list of one: the object itself, which is the first word that a pointer to its own address finds.
        handle.own_list = (&raw const *handle).expose_provenance();
        let facts = ObjectFacts {
            map_start: object.mapping.start,
            map_end: object.mapping.end,
            text_end: text_end(object),
            program_headers: object.mapping.headers.as_ptr().expose_provenance(),
            program_header_count: object.mapping.headers.len() as u16,
            entry: object.address(object.mapping.entry),
            dynamic,
            gnu_hash: object.dynamic.as_ref().and_then(|dynamic| match dynamic.hash {
                Hash::Gnu(table) => Some(table),
                _ => None,
            }),
            tls_module: module,
            tls_offset: offset,
            search_list: (&raw const handle.own_list).expose_provenance(),
            search_list_length: 1,
        };
        handle.link_map.fill(self.glibc.offsets(), &facts).ok()
    }

    fn changing(&self, adding: bool) {
        exports::debugger_is_changing(adding);
    }

    fn changed(&self, first: *mut Handle, count: u32) {
        // The number is read by code of glibc's that we have replaced; a debugger must hear of the change anyway.
        let _ = self.glibc.publish_objects(first.expose_provenance(), count);
        exports::debugger_is_consistent();
    }

    fn modules_changed(&self, table: &TlsTable, handles: &[*mut Handle]) -> Option<()> {
        let count = table.slots.len() + 1;
        let list = self.slot_list(count)?;
        for (position, slot) in core::iter::once(None).chain(table.slots.iter().map(Some)).enumerate() {
            let module = slot.and_then(|slot| slot.module);
            let map = module.and_then(|module| handles.get(module.object.position()).copied());
            let pair = list.wrapping_add(2 + 2 * position);
            // SAFETY: slot_list made room for `count` pairs.
            unsafe { pair.write(slot.map_or(0, |slot| slot.generation)) };
            // SAFETY: the second word of the pair.
            unsafe { pair.wrapping_add(1).write(map.map_or(0, |map| map.expose_provenance())) };
        }
        let facts = TlsFacts {
            slotinfo: list.expose_provenance(),
            max_module: table.slots.len(),
            static_count: table.slots.len(),
            generation: table.generation,
            initial_dtv: self.initial_vector.load(Ordering::Relaxed),
        };
        self.glibc.publish_tls(&facts).ok()
    }

    fn free_left_locks(&self) {
        // Looked for only here: it would cost each start a few pages of the C library's code. Where somebody has changed that
        // code meanwhile, the lock is not found.
        let address = rtld_clib::exit_lock::find(&self.libc).unwrap_or(0);
        let lock = core::ptr::with_exposed_provenance_mut::<AtomicU32>(address);
        // SAFETY: null, or a word of the C library's data, which stays mapped.
        if let Some(lock) = unsafe { lock.as_ref() } {
            lock.store(0, Ordering::Release);
        }
    }

    fn waiting_destructors(&self, handle: *mut Handle) -> usize {
        if handle.is_null() {
            return 0;
        }
        // SAFETY: the caller holds the writer lock, so the handle is alive.
        unsafe { &*handle }.link_map.tls_destructor_count(self.glibc.offsets())
    }
}

impl Host {
    /// The list of thread-local modules that debuggers read: its length, no next one, then a pair for each module id
    /// from 0 on. Grows by being made anew; the one before stays, since a debugger may be looking at it.
    fn slot_list(&self, count: usize) -> Option<*mut usize> {
        let current = self.slots.load(Ordering::Relaxed);
        if !current.is_null() {
            // SAFETY: made below; the first word is its length.
            let room = unsafe { current.read() };
            if room >= count {
                return Some(current);
            }
        }
        let room = count.checked_add(16)?;
        let list = try_filled(0_usize, 2 + 2 * room).ok()?.leak();
        *list.first_mut()? = room;
        let list = list.as_mut_ptr();
        self.slots.store(list, Ordering::Relaxed);
        Some(list)
    }
}

fn text_end(object: &Object) -> usize {
    let executable = segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_X != 0);
    executable.map(|load| object.address(load.p_vaddr.wrapping_add(load.p_memsz))).max().unwrap_or(object.mapping.end)
}

fn dynamic_entries(object: &Object) -> Table<'static, Dyn> {
    let range = object.mapping.layout.dynamic;
    range.and_then(|range| object.image().table(range.start, range.size / 16)).unwrap_or(Table::empty())
}

/// Tags whose values glibc turns into addresses in memory; its own code, sanitizers and others rely on finding them so.
const ADDRESS_TAGS: [u64; 9] = [
    tag::DT_PLTGOT,
    tag::DT_HASH,
    tag::DT_STRTAB,
    tag::DT_SYMTAB,
    tag::DT_RELA,
    tag::DT_JMPREL,
    tag::DT_GNU_HASH,
    tag::DT_VERSYM,
    tag::DT_RELR,
];

/// The entries that glibc reads through the link map: those of the dynamic section itself with its addresses made
/// absolute, or a copy where the section cannot be written (ours, which is constant by now, the vDSO's, and those of
/// some libraries). The copy is never freed: ours and the vDSO stay, and the others are too rare for accounts.
fn published_entries(object: &Object) -> Option<Table<'static, Dyn>> {
    let entries = dynamic_entries(object);
    if relocate_dynamic_section(object) {
        return Some(entries);
    }
    let mut copy = alloc::vec::Vec::new();
    for entry in entries.iter() {
        try_push(&mut copy, moved(object, entry)).ok()?;
        if entry.d_tag == 0 {
            break;
        }
    }
    let copy: &'static [Dyn] = copy.leak();
    // SAFETY: the slice is never freed, and is as long as said.
    Some(unsafe { Table::from_raw(copy.as_ptr().cast(), copy.len()) })
}

/// An entry with its address made absolute, if it holds one.
fn moved(object: &Object, entry: Dyn) -> Dyn {
    if ADDRESS_TAGS.contains(&entry.d_tag) { Dyn { d_val: object.address(entry.d_val) as u64, ..entry } } else { entry }
}

/// Adds the load bias to the addresses in an object's dynamic section, if that can be written; whether they are
/// absolute now.
fn relocate_dynamic_section(object: &Object) -> bool {
    if object.mapping.bias == 0 {
        return true;
    }
    let Some(range) = object.mapping.layout.dynamic else { return true };
    if matches!(object.role, Role::Vdso | Role::Ourselves) || !object.image().contains(range.start, range.size, PF_W) {
        return false;
    }
    for (position, entry) in dynamic_entries(object).iter().enumerate() {
        if entry.d_tag == 0 {
            break;
        }
        if ADDRESS_TAGS.contains(&entry.d_tag) {
            let address = object.address(range.start).wrapping_add(position * size_of::<Dyn>());
            let place = core::ptr::with_exposed_provenance_mut::<Dyn>(address);
            // SAFETY: an entry of a dynamic section in a writable segment; all that is needed of it was read before.
            unsafe { place.write_unaligned(moved(object, entry)) };
        }
    }
    true
}
