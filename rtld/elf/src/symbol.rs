//! The symbol table's records, and what one says about itself.

use goblin::elf64::sym::{
    STB_GLOBAL, STB_GNU_UNIQUE, STB_LOCAL, STB_WEAK, STT_COMMON, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT,
    STT_TLS,
};

use crate::{Sym, Table};

pub use goblin::elf64::sym::{STV_DEFAULT, STV_HIDDEN, STV_INTERNAL, STV_PROTECTED};

/// st_shndx of a symbol without definition (gABI).
pub const SHN_UNDEF: u16 = 0;
/// st_shndx of a symbol whose value no relocation changes.
pub const SHN_ABS: u16 = 0xfff1;

/// What kind of thing a symbol names (the low four bits of st_info).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// STT_NOTYPE.
    None,
    /// STT_OBJECT: a variable.
    Object,
    /// STT_FUNC.
    Function,
    /// STT_COMMON: a variable that was not allocated by the compiler.
    Common,
    /// STT_TLS: an offset in the object's thread-local block.
    ThreadLocal,
    /// STT_GNU_IFUNC: a function that returns the address of the function.
    IndirectFunction,
    /// Anything else (sections, files, reserved values): never a definition for others.
    Other(u8),
}

/// How a symbol takes part in lookup (the high four bits of st_info).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolBinding {
    /// STB_LOCAL.
    Local,
    /// STB_GLOBAL.
    Global,
    /// STB_WEAK.
    Weak,
    /// STB_GNU_UNIQUE: one definition in the whole process.
    Unique,
    /// A reserved value.
    Other(u8),
}

/// Questions to a symbol record.
pub trait SymbolView {
    /// What it names.
    fn kind(&self) -> SymbolKind;
    /// How it takes part in lookup.
    fn binding(&self) -> SymbolBinding;
    /// STV_DEFAULT, STV_INTERNAL, STV_HIDDEN or STV_PROTECTED.
    fn visibility(&self) -> u8;
    /// Whether it has no definition here.
    fn is_undefined(&self) -> bool;
    /// Whether its value is an address that no load changes.
    fn is_absolute(&self) -> bool;
}

impl SymbolView for Sym {
    #[inline(always)]
    fn kind(&self) -> SymbolKind {
        match self.st_info & 0xf {
            STT_NOTYPE => SymbolKind::None,
            STT_OBJECT => SymbolKind::Object,
            STT_FUNC => SymbolKind::Function,
            STT_COMMON => SymbolKind::Common,
            STT_TLS => SymbolKind::ThreadLocal,
            STT_GNU_IFUNC => SymbolKind::IndirectFunction,
            other => SymbolKind::Other(other),
        }
    }

    #[inline(always)]
    fn binding(&self) -> SymbolBinding {
        match self.st_info >> 4 {
            STB_LOCAL => SymbolBinding::Local,
            STB_GLOBAL => SymbolBinding::Global,
            STB_WEAK => SymbolBinding::Weak,
            STB_GNU_UNIQUE => SymbolBinding::Unique,
            other => SymbolBinding::Other(other),
        }
    }

    #[inline(always)]
    fn visibility(&self) -> u8 {
        self.st_other & 0x3
    }

    #[inline(always)]
    fn is_undefined(&self) -> bool {
        self.st_shndx == SHN_UNDEF
    }

    #[inline(always)]
    fn is_absolute(&self) -> bool {
        self.st_shndx == SHN_ABS
    }
}

/// DT_SYMTAB. The file does not say where it ends: it is bounded by its PT_LOAD.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolTable<'a> {
    records: Table<'a, Sym>,
}

impl<'a> SymbolTable<'a> {
    /// The table of an object without symbols.
    pub const fn empty() -> Self {
        SymbolTable { records: Table::empty() }
    }

    /// The symbols in these records.
    pub const fn new(records: Table<'a, Sym>) -> Self {
        SymbolTable { records }
    }

    /// Symbol number `index`.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<Sym> {
        self.records.get(index as usize)
    }

    /// Upper bound of the number of symbols: how many records the PT_LOAD holds. `Hash::symbol_count` knows better.
    pub const fn bound(&self) -> usize {
        self.records.len()
    }

    /// Whether the object has no symbol table.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records.
    pub const fn records(&self) -> Table<'a, Sym> {
        self.records
    }
}
