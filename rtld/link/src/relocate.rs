//! Relocation of objects: what it is given, what it gives, and what a symbol reference comes to. The passes over an object's
//! tables lie in `pass`, the types of relocations that are rare in `rare_relocations`.

use crate::deferred::{CopiedRange, Deferred};
use crate::descriptors::Descriptors;
use crate::error::{Error, Reason};
use crate::lookup::{Definition, Purpose, Reference, Resolver, WantedVersion};
use crate::map::Pages;
use crate::object::{Object, ObjectIndex, Role};
use crate::pass::Pass;
use crate::places::Places;
use crate::protect::{Preparation, close_text, open_text};
use crate::static_tls::TlsPlan;
use crate::text::Text;
use alloc::vec::Vec;
use rtld_elf::symbol::{STV_HIDDEN, STV_INTERNAL, SymbolBinding};
use rtld_elf::{Dynamic, Sym, SymbolView, gnu_hash};

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
    /// What TLS descriptors point to.
    pub descriptors: Descriptors,
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
        // A word of DT_RELR stands for up to 63 relocations, and seldom for fewer than half of that.
        let packed = dynamic.relr.len().saturating_mul(32);
        let preparation = Preparation::new(object, dynamic.relocations.len().saturating_add(packed), self.pages);
        let places = Places::new(object, text)?;
        Pass { relocator: self, index, object, dynamic, places, preparation, text, last: None, later }.run()?;
        if text {
            close_text(object, self.pages)?;
        }
        Ok(())
    }

    /// What a reference by symbol number means. `own` is that symbol.
    pub fn target(&self, index: ObjectIndex, number: u32, own: &Sym, purpose: Purpose) -> Result<Target<'s>, Reason> {
        self.noted(index, target(&self.resolver, self.substitutes, index, number, own, purpose)?)
    }

    /// Tells that a reference of an object was bound to a target.
    #[inline]
    pub(crate) fn noted(&self, index: ObjectIndex, target: Target<'s>) -> Result<Target<'s>, Reason> {
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
    if is_own(own) {
        return Ok(Target::Definition(Definition { object, index, number, symbol: *own }));
    }
    let (name, hash) = dynamic.strings.get_hashed(own.st_name).unwrap_or((b"", gnu_hash(b"")));
    named_target(resolver, substitutes, (index, number, own), (name, hash), purpose)
}

/// Whether the symbol of a reference means itself: nothing is looked up.
#[inline]
pub(crate) fn is_own(own: &Sym) -> bool {
    own.binding() == SymbolBinding::Local || matches!(own.visibility(), STV_HIDDEN | STV_INTERNAL)
}

/// What a reference means: by symbol `number` of the object `index`, which is `own`; its name and the name's GNU hash.
#[inline]
pub(crate) fn named_target<'s>(
    resolver: &Resolver<'s>,
    substitutes: &dyn Substitutes,
    (index, number, own): (ObjectIndex, u32, &Sym),
    (name, hash): (&[u8], u32),
    purpose: Purpose,
) -> Result<Target<'s>, Reason> {
    let Some(object) = resolver.objects.get(index) else {
        return Ok(Target::Nothing);
    };
    let Some(dynamic) = &object.dynamic else {
        return Ok(Target::Nothing);
    };
    let version = dynamic.versions.symbol_version(number).and_then(|raw| WantedVersion::of(object.version(raw)));
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
        None => Err(undefined(&reference)),
    }
}

#[cold]
fn undefined(reference: &Reference<'_>) -> Reason {
    let version = reference.version.map_or(&b""[..], |version| version.name);
    match (Text::new(reference.name), Text::new(version)) {
        (Ok(name), Ok(version)) => Reason::UndefinedSymbol { name, version },
        _ => Reason::OutOfMemory,
    }
}
