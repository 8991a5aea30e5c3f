//! Applies the relocations of an object (x86-64 psABI 4.4) one by one: all types but R_X86_64_RELATIVE, each checked. Most of
//! those that hold an address go through `pass`, many at a time, and never come here.

use crate::deferred::{CopiedRange, Deferred};
use crate::descriptors::DynamicDescriptor;
use crate::error::Reason;
use crate::fallible::try_push;
use crate::lookup::Purpose;
use crate::object::{ObjectIndex, Role};
use crate::pass::Pass;
use crate::places::Place;
use crate::relocate::Target;
use crate::static_tls::Module;
use crate::text::Text;
use rtld_elf::relocation as kind;
use rtld_elf::{Rela, Sym};

/// The size of the only variable that has a substitute: `_r_debug` (struct r_debug of <link.h>).
const SUBSTITUTE_VARIABLE: usize = 40;

impl<'s> Pass<'_, 's> {
    /// Applies one relocation of any type but R_X86_64_RELATIVE.
    #[cold]
    pub fn apply_other(&mut self, relocation: &Rela, kind: u32) -> Result<(), Reason> {
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

    /// Puts a slot off until resolvers run.
    pub fn defer(&mut self, place: Place, resolver: usize, addend: i64, symbol: u32) -> Result<(), Reason> {
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
        let record = self.later.descriptors.add(self.index, record)?;
        place.store(self.relocator.entries.tls_dynamic as u64);
        place.second().store(record as u64);
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
