//! Applies the relocations of an object (x86-64 psABI 4.4), except those whose value a resolver must compute:
//! those are put off into [`Deferred`] and run when everything else is in place.

use crate::deferred::{CopiedRange, Deferred};
use crate::error::{Error, Reason};
use crate::fallible::{try_box, try_push};
use crate::lookup::{Definition, Purpose, Reference, Resolver, WantedVersion};
use crate::map::Pages;
use crate::object::{Object, ObjectIndex, Role};
use crate::places::{Place, Places};
use crate::protect::{close_text, open_text};
use crate::static_tls::{Module, TlsPlan};
use crate::text::Text;
use alloc::boxed::Box;
use alloc::vec::Vec;
use rtld_elf::relocation as kind;
use rtld_elf::symbol::{STV_HIDDEN, STV_INTERNAL, SymbolBinding};
use rtld_elf::{Dynamic, Rela, Sym, SymbolView, Table, gnu_hash};

/// Code that takes the place of definitions in the C library.
pub trait Substitutes {
    /// The address to use instead of a definition that was found in an object of the C library.
    fn substitute(&self, definition: &Definition<'_>, name: &[u8], hash: u32) -> Option<usize>;
}

/// Who is told what relocation finds.
pub trait Notes {
    /// A copy whose source is larger: the program and its library disagree about the variable.
    fn copy_size(&self, name: &[u8]);
    /// A reference of an object was bound to a definition.
    fn bound(&self, from: ObjectIndex, definition: &Definition<'_>);
}

/// Entry points in assembly that relocations store.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    /// What an unbound PLT slot leads to (GOT[2]).
    pub bind: usize,
    /// TLS descriptor of a variable in the static block.
    pub tls_static: usize,
    /// TLS descriptor of a variable of a dynamic module.
    pub tls_dynamic: usize,
    /// TLS descriptor of an undefined weak variable.
    pub tls_undefined: usize,
}

/// The size of the only variable that has a substitute: `_r_debug` (struct r_debug of <link.h>).
const SUBSTITUTE_VARIABLE: usize = 40;

/// What a TLS descriptor of a dynamic module points to. The first two words are what `__tls_get_addr` takes.
#[repr(C)]
#[derive(Debug)]
pub struct DynamicDescriptor {
    /// Module id.
    pub module: u64,
    /// Offset in its block.
    pub offset: u64,
    /// A thread whose vector is as new as this knows the module.
    pub generation: u64,
}

/// When the functions an object calls are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// At the first call, unless the object asks for more.
    Lazy,
    /// Now.
    Now,
}

/// What relocation needs to know, the same for all objects.
pub struct Relocator<'s> {
    /// Symbol lookup.
    pub resolver: Resolver<'s>,
    /// Static TLS.
    pub tls: &'s TlsPlan,
    /// Substitutes.
    pub substitutes: &'s dyn Substitutes,
    /// Who is told.
    pub notes: &'s dyn Notes,
    /// Entry points.
    pub entries: Entries,
    /// Binding of all objects.
    pub binding: Binding,
    /// Pages.
    pub pages: Pages,
    /// What GOT[1] of an object holds, for the binder to know it by.
    pub handle: &'s dyn Fn(ObjectIndex) -> usize,
}

/// What must still be done when all objects are relocated.
#[derive(Debug, Default)]
pub struct Later {
    /// Slots whose values resolvers compute.
    pub deferred: Vec<Deferred>,
    /// Data that the program copied.
    pub copies: Vec<CopiedRange>,
}

/// What a symbol reference came to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'s> {
    /// A definition.
    Definition(Definition<'s>),
    /// Our own code instead of it.
    Substitute(usize),
    /// Nothing, which a weak reference may mean.
    Nothing,
}

impl<'s> Relocator<'s> {
    /// Relocates one object.
    pub fn relocate(&self, index: ObjectIndex, later: &mut Later) -> Result<(), Error> {
        let Some(object) = self.resolver.objects.get(index) else {
            return Ok(());
        };
        let Some(dynamic) = &object.dynamic else {
            return Ok(());
        };
        if matches!(object.role, Role::Vdso | Role::Ourselves) {
            return Ok(());
        }
        self.relocate_object(index, object, dynamic, later).map_err(|reason| reason.of(object.path.as_bytes()))
    }

    fn relocate_object(
        &self,
        index: ObjectIndex,
        object: &'s Object,
        dynamic: &Dynamic<'static>,
        later: &mut Later,
    ) -> Result<(), Reason> {
        let text = dynamic.has_textrel();
        if text {
            open_text(object, self.pages)?;
        }
        let places = Places::new(object, text)?;
        let mut pass = Pass { relocator: self, index, object, dynamic, places, text, last: None, later };
        pass.run()?;
        if text {
            close_text(object, self.pages)?;
        }
        Ok(())
    }

    /// What a reference by symbol number means. `own` is that symbol.
    pub fn target(&self, index: ObjectIndex, number: u32, own: &Sym, purpose: Purpose) -> Result<Target<'s>, Reason> {
        let target = target(&self.resolver, self.substitutes, index, number, own, purpose)?;
        if let Target::Definition(definition) = &target {
            self.notes.bound(index, definition);
        }
        Ok(target)
    }
}

/// What a reference by symbol number from an object means.
pub fn target<'s>(
    resolver: &Resolver<'s>,
    substitutes: &dyn Substitutes,
    index: ObjectIndex,
    number: u32,
    own: &Sym,
    purpose: Purpose,
) -> Result<Target<'s>, Reason> {
    let Some(object) = resolver.objects.get(index) else {
        return Ok(Target::Nothing);
    };
    let Some(dynamic) = &object.dynamic else {
        return Ok(Target::Nothing);
    };
    let local = own.binding() == SymbolBinding::Local || matches!(own.visibility(), STV_HIDDEN | STV_INTERNAL);
    if local {
        return Ok(Target::Definition(Definition { object, index, number, symbol: *own }));
    }
    let name = dynamic.strings.get(u64::from(own.st_name)).unwrap_or_default();
    let version = dynamic.versions.symbol_version(number).and_then(|raw| WantedVersion::of(object.version(raw)));
    let hash = gnu_hash(name);
    let reference = Reference { name, hash, version, purpose, newest: false };
    match resolver.resolve(index, number, own, &reference) {
        Some(definition) => {
            if definition.object.is_system
                && object.role != Role::PassiveLoader
                && let Some(address) = substitutes.substitute(&definition, name, hash)
            {
                return Ok(Target::Substitute(address));
            }
            Ok(Target::Definition(definition))
        }
        None if own.binding() == SymbolBinding::Weak => Ok(Target::Nothing),
        None => {
            let version = reference.version.map_or(&b""[..], |version| version.name);
            Err(Reason::UndefinedSymbol { name: Text::new(name)?, version: Text::new(version)? })
        }
    }
}

/// The relocations of one object.
struct Pass<'a, 's> {
    relocator: &'a Relocator<'s>,
    index: ObjectIndex,
    object: &'s Object,
    dynamic: &'a Dynamic<'static>,
    places: Places,
    /// Segments that are not writable by themselves may be relocated.
    text: bool,
    /// The symbol of the relocation before and what it came to: neighbours often share it.
    last: Option<(u32, Purpose, Target<'s>)>,
    later: &'a mut Later,
}

impl<'s> Pass<'_, 's> {
    fn run(&mut self) -> Result<(), Reason> {
        for vaddr in kind::relr_addresses(self.dynamic.relr) {
            let place = self.place(vaddr, 8, kind::R_X86_64_RELATIVE)?;
            place.store(place.load().wrapping_add(self.object.mapping.bias as u64));
        }
        for relocation in self.dynamic.relocations {
            self.apply(&relocation)?;
        }
        let slots = self.dynamic.plt_relocations;
        let lazy = self.relocator.binding == Binding::Lazy && !self.dynamic.binds_now();
        match self.dynamic.plt_got.filter(|_| lazy && !slots.is_empty()) {
            Some(table) => self.prepare_lazy(table, slots),
            None => slots.iter().try_for_each(|relocation| self.apply(&relocation)),
        }
    }

    fn place(&mut self, vaddr: u64, size: usize, kind: u32) -> Result<Place, Reason> {
        self.places.at(vaddr, size).ok_or(Reason::RelocationTarget { kind, offset: vaddr })
    }

    /// Makes every slot of the PLT lead to the binder: the slot holds the address, in the file, of the code in the
    /// PLT that pushes its number.
    fn prepare_lazy(&mut self, table: u64, slots: Table<'static, Rela>) -> Result<(), Reason> {
        let handle = self.place(table.wrapping_add(8), 16, kind::R_X86_64_JUMP_SLOT)?;
        handle.store((self.relocator.handle)(self.index) as u64);
        handle.second().store(self.relocator.entries.bind as u64);
        let bias = self.object.mapping.bias as u64;
        let constant = self.object.mapping.layout.relro;
        let is_constant = |vaddr| constant.is_some_and(|range| (range.start..range.end()).contains(&vaddr));
        for relocation in slots {
            match kind::kind(&relocation) {
                // A slot that is to become constant cannot be bound later.
                kind::R_X86_64_JUMP_SLOT if is_constant(relocation.r_offset) => self.apply(&relocation)?,
                kind::R_X86_64_JUMP_SLOT => {
                    let place = self.place(relocation.r_offset, 8, kind::R_X86_64_JUMP_SLOT)?;
                    place.store(place.load().wrapping_add(bias));
                }
                kind::R_X86_64_IRELATIVE | kind::R_X86_64_TLSDESC => self.apply(&relocation)?,
                kind => return Err(Reason::PltRelocationType { kind }),
            }
        }
        Ok(())
    }

    #[inline]
    fn apply(&mut self, relocation: &Rela) -> Result<(), Reason> {
        let kind = kind::kind(relocation);
        if kind == kind::R_X86_64_RELATIVE {
            let place = self.place(relocation.r_offset, 8, kind)?;
            place.store((self.object.mapping.bias as u64).wrapping_add_signed(relocation.r_addend));
            return Ok(());
        }
        self.apply_other(relocation, kind)
    }

    fn apply_other(&mut self, relocation: &Rela, kind: u32) -> Result<(), Reason> {
        let offset = relocation.r_offset;
        let addend = relocation.r_addend;
        match kind {
            kind::R_X86_64_NONE => Ok(()),
            kind::R_X86_64_IRELATIVE => {
                let place = self.place(offset, 8, kind)?;
                let resolver = self.object.mapping.bias.wrapping_add_signed(addend as isize);
                self.defer(place, resolver, 0, 0)
            }
            kind::R_X86_64_64 => self.address(relocation, Purpose::Address, addend),
            kind::R_X86_64_GLOB_DAT => self.address(relocation, Purpose::Address, 0),
            kind::R_X86_64_JUMP_SLOT => self.address(relocation, Purpose::Call, 0),
            kind::R_X86_64_PC64 => {
                let place = self.place(offset, 8, kind)?;
                let value = self.plain_address(relocation)?.wrapping_add_signed(addend);
                place.store(value.wrapping_sub(place.address() as u64));
                Ok(())
            }
            kind::R_X86_64_32 => {
                let place = self.place(offset, 4, kind)?;
                let value = self.plain_address(relocation)?.wrapping_add_signed(addend);
                place.store_32(u32::try_from(value).map_err(|_| self.overflow(relocation))?);
                Ok(())
            }
            kind::R_X86_64_PC32 => {
                let place = self.place(offset, 4, kind)?;
                let value = self.plain_address(relocation)?.wrapping_add_signed(addend);
                let distance = value.wrapping_sub(place.address() as u64) as i64;
                place.store_32(i32::try_from(distance).map_err(|_| self.overflow(relocation))? as u32);
                Ok(())
            }
            kind::R_X86_64_SIZE64 => {
                let place = self.place(offset, 8, kind)?;
                place.store(self.size(relocation)?.wrapping_add_signed(addend));
                Ok(())
            }
            kind::R_X86_64_SIZE32 => {
                let place = self.place(offset, 4, kind)?;
                let value = self.size(relocation)?.wrapping_add_signed(addend);
                place.store_32(u32::try_from(value).map_err(|_| self.overflow(relocation))?);
                Ok(())
            }
            kind::R_X86_64_COPY => self.copy(relocation),
            kind::R_X86_64_DTPMOD64 | kind::R_X86_64_DTPOFF64 | kind::R_X86_64_TPOFF64 | kind::R_X86_64_TLSDESC => {
                self.thread_local(relocation, kind)
            }
            _ => Err(Reason::RelocationType { kind, offset }),
        }
    }

    /// The symbol of a relocation; None for number 0.
    fn symbol(&self, relocation: &Rela) -> Result<Option<(u32, Sym)>, Reason> {
        let number = kind::symbol(relocation);
        if number == 0 {
            return Ok(None);
        }
        let missing = Reason::SymbolIndex { symbol: number, offset: relocation.r_offset };
        Ok(Some((number, self.dynamic.symbols.get(number).ok_or(missing)?)))
    }

    fn target(&mut self, number: u32, own: &Sym, purpose: Purpose) -> Result<Target<'s>, Reason> {
        if let Some((known, for_purpose, target)) = self.last
            && known == number
            && for_purpose == purpose
        {
            return Ok(target);
        }
        let target = self.relocator.target(self.index, number, own, purpose)?;
        self.last = Some((number, purpose, target));
        Ok(target)
    }

    /// A word that holds a symbol's address.
    fn address(&mut self, relocation: &Rela, purpose: Purpose, addend: i64) -> Result<(), Reason> {
        let kind = kind::kind(relocation);
        let place = self.place(relocation.r_offset, 8, kind)?;
        let Some((number, own)) = self.symbol(relocation)? else {
            place.store(addend as u64);
            return Ok(());
        };
        let value = match self.target(number, &own, purpose)? {
            Target::Definition(definition) if definition.is_indirect() => {
                return self.defer(place, definition.address(), addend, number);
            }
            Target::Definition(definition) => definition.address(),
            Target::Substitute(address) => address,
            Target::Nothing => 0,
        };
        place.store((value as u64).wrapping_add_signed(addend));
        Ok(())
    }

    fn defer(&mut self, place: Place, resolver: usize, addend: i64, symbol: u32) -> Result<(), Reason> {
        let deferred = Deferred { object: self.index, place, resolver, addend, symbol, in_text: self.text };
        Ok(try_push(&mut self.later.deferred, deferred)?)
    }

    /// An address that goes into a calculation and so cannot wait for a resolver.
    fn plain_address(&mut self, relocation: &Rela) -> Result<u64, Reason> {
        let Some((number, own)) = self.symbol(relocation)? else {
            return Ok(0);
        };
        Ok(match self.target(number, &own, Purpose::Address)? {
            Target::Definition(definition) => definition.address() as u64,
            Target::Substitute(address) => address as u64,
            Target::Nothing => 0,
        })
    }

    fn size(&mut self, relocation: &Rela) -> Result<u64, Reason> {
        let Some((number, own)) = self.symbol(relocation)? else {
            return Ok(0);
        };
        Ok(match self.target(number, &own, Purpose::Address)? {
            Target::Definition(definition) => definition.symbol.st_size,
            _ => own.st_size,
        })
    }

    /// The program's own copy of a variable that a library defines.
    fn copy(&mut self, relocation: &Rela) -> Result<(), Reason> {
        let Some((number, own)) = self.symbol(relocation)? else {
            return Ok(());
        };
        let name = self.name(&own);
        if self.object.role != Role::Program {
            return Err(Reason::CopyOutsideProgram { name: Text::new(name)? });
        }
        let source = match self.target(number, &own, Purpose::Copy)? {
            Target::Definition(source) => source,
            Target::Substitute(address) => return self.copy_substitute(relocation, &own, address),
            Target::Nothing => return Ok(()),
        };
        if source.symbol.st_size > own.st_size {
            self.relocator.notes.copy_size(name);
        }
        let size = source.symbol.st_size.min(own.st_size);
        let place = self.place(relocation.r_offset, size as usize, kind::R_X86_64_COPY)?;
        let from = source.object.image().bytes(source.symbol.st_value, size);
        let missing = Reason::SymbolIndex { symbol: number, offset: relocation.r_offset };
        let from = from.ok_or(missing)?;
        let copied = CopiedRange { from: source.address(), to: place.address(), size: size as usize };
        let to = core::ptr::with_exposed_provenance_mut::<u8>(copied.to);
        // SAFETY: both ranges were checked to lie in segments of their objects; one of them is in the program and the
        // other in a library, so they do not overlap.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), copied.size) };
        Ok(try_push(&mut self.later.copies, copied)?)
    }

    /// The program's own copy of a variable that is ours instead of the C library's: of the same layout.
    fn copy_substitute(&mut self, relocation: &Rela, own: &Sym, address: usize) -> Result<(), Reason> {
        let place = self.place(relocation.r_offset, own.st_size as usize, kind::R_X86_64_COPY)?;
        let to = core::ptr::with_exposed_provenance_mut::<u8>(place.address());
        let from = core::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the place was checked; the variable has the size that the C library's header gives it, which is the
        // program's.
        unsafe { to.copy_from_nonoverlapping(from, (own.st_size as usize).min(SUBSTITUTE_VARIABLE)) };
        Ok(())
    }

    fn thread_local(&mut self, relocation: &Rela, kind: u32) -> Result<(), Reason> {
        let size = if kind == kind::R_X86_64_TLSDESC { 16 } else { 8 };
        let place = self.place(relocation.r_offset, size, kind)?;
        let addend = relocation.r_addend;
        let (module, value) = match self.symbol(relocation)? {
            None => (self.index, 0),
            Some((number, own)) => match self.target(number, &own, Purpose::Call)? {
                Target::Definition(definition) if !definition.is_thread_local() => {
                    return Err(Reason::NotThreadLocal { name: Text::new(self.name(&own))? });
                }
                Target::Definition(definition) => (definition.index, definition.symbol.st_value),
                Target::Substitute(_) | Target::Nothing => {
                    self.undefined_thread_local(place, kind, addend);
                    return Ok(());
                }
            },
        };
        let offset = value.wrapping_add_signed(addend);
        match kind {
            kind::R_X86_64_DTPMOD64 => match (self.relocator.tls.id(module), self.symbol(relocation)?) {
                // The symbol says thread-local, its object has no PT_TLS.
                (0, Some((_, own))) => return Err(Reason::NotThreadLocal { name: Text::new(self.name(&own))? }),
                (id, _) => place.store(u64::from(id)),
            },
            kind::R_X86_64_DTPOFF64 => place.store(offset),
            kind::R_X86_64_TLSDESC => self.tls_descriptor(place, module, offset)?,
            _ => {
                let module = self.relocator.tls.make_static(module).map_err(Reason::StaticTls)?;
                place.store(offset.wrapping_sub(module.offset as u64));
            }
        }
        Ok(())
    }

    /// A descriptor of a variable: by its distance if the module is static, else by a record for the general case.
    fn tls_descriptor(&mut self, place: Place, module: ObjectIndex, offset: u64) -> Result<(), Reason> {
        let tls = self.relocator.tls;
        if let Some(module) = tls.module(module).filter(Module::is_static) {
            place.store(self.relocator.entries.tls_static as u64);
            place.second().store(offset.wrapping_sub(module.offset as u64));
            return Ok(());
        }
        let record =
            DynamicDescriptor { module: u64::from(tls.id(module)), offset, generation: tls.generation() as u64 };
        // Lives as long as the object, whose code may use it until it is unmapped.
        let record: &'static DynamicDescriptor = Box::leak(try_box(record)?);
        place.store(self.relocator.entries.tls_dynamic as u64);
        place.second().store(core::ptr::from_ref(record).expose_provenance() as u64);
        Ok(())
    }

    /// A weak thread-local symbol that nobody defines.
    fn undefined_thread_local(&self, place: Place, kind: u32, addend: i64) {
        if kind == kind::R_X86_64_TLSDESC {
            place.store(self.relocator.entries.tls_undefined as u64);
            place.second().store(addend as u64);
        } else if kind == kind::R_X86_64_DTPOFF64 {
            place.store(addend as u64);
        } else {
            place.store(0);
        }
    }

    fn name(&self, symbol: &Sym) -> &'static [u8] {
        self.dynamic.strings.get(u64::from(symbol.st_name)).unwrap_or_default()
    }

    fn overflow(&self, relocation: &Rela) -> Reason {
        let symbol = self.symbol(relocation).ok().flatten();
        let name = symbol.map_or(&b""[..], |(_, symbol)| self.name(&symbol));
        Reason::Overflow { kind: kind::kind(relocation), name: Text::new(name).unwrap_or(Text::empty()) }
    }
}
