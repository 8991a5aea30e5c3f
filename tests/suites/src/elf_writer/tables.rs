//! The tables a hand-made library needs: symbols, names, the two hashes.
//!
//! Owns: their byte layouts (gABI "Symbol Table", "Hash Table"; the GNU hash as binutils writes it). May not know addresses of tables.

/// `st_info` binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the gABI's own names")]
pub enum Binding {
    Local = 0,
    Global = 1,
    Weak = 2,
}

/// `st_info` type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the gABI's own names")]
pub enum SymbolType {
    None = 0,
    Object = 1,
    Function = 2,
    Tls = 6,
    Ifunc = 10,
}

/// What a symbol's value is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `SHN_UNDEF`.
    Undefined,
    /// Some section: the value is moved with the library.
    Library,
    /// `SHN_ABS`: the value is what it is.
    Absolute,
}

/// One dynamic symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// `st_name`.
    pub name: String,
    /// `st_info`, high half.
    pub binding: Binding,
    /// `st_info`, low half.
    pub kind: SymbolType,
    /// `st_shndx`.
    pub place: Place,
    /// `st_value`.
    pub value: u64,
    /// `st_size`, bytes.
    pub size: u64,
}

impl Symbol {
    /// A global data object of the library.
    #[must_use]
    pub fn object(name: &str, value: u64, size: u64) -> Self {
        Self {
            name: name.into(),
            binding: Binding::Global,
            kind: SymbolType::Object,
            place: Place::Library,
            value,
            size,
        }
    }

    /// A global function of the library.
    #[must_use]
    pub fn function(name: &str, value: u64) -> Self {
        Self { kind: SymbolType::Function, ..Self::object(name, value, 16) }
    }

    /// A reference to a symbol elsewhere.
    #[must_use]
    pub fn undefined(name: &str, binding: Binding) -> Self {
        Self { binding, kind: SymbolType::None, place: Place::Undefined, ..Self::object(name, 0, 0) }
    }

    /// A symbol whose value does not move with the library.
    #[must_use]
    pub fn absolute(name: &str, value: u64) -> Self {
        Self { kind: SymbolType::None, place: Place::Absolute, ..Self::object(name, value, 0) }
    }

    fn bytes(&self, name_offset: u32) -> Vec<u8> {
        let mut bytes = name_offset.to_le_bytes().to_vec();
        bytes.push(((self.binding as u8) << 4) | self.kind as u8);
        bytes.push(0);
        let section: u16 = match self.place {
            Place::Undefined => 0,
            // No section headers exist: any index that is not reserved says "defined".
            Place::Library => 1,
            Place::Absolute => 0xfff1,
        };
        bytes.extend(section.to_le_bytes());
        bytes.extend(self.value.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes
    }
}

/// A string table in the making; offset 0 is the empty string.
pub struct Names {
    /// The table as it stands in the file.
    pub bytes: Vec<u8>,
}

impl Names {
    /// A table that holds the empty string.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: vec![0] }
    }

    /// Add `name`; returns its offset.
    pub fn add(&mut self, name: &str) -> u32 {
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        offset
    }
}

/// The dynamic symbol table, the null symbol included.
pub fn symbol_table(symbols: &[Symbol], names: &mut Names) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    for symbol in symbols {
        let name = names.add(&symbol.name);
        bytes.extend(symbol.bytes(name));
    }
    bytes
}

/// DT_HASH with a single bucket: the chain is the table of symbols backwards.
pub fn sysv_hash(symbols: &[Symbol]) -> Vec<u8> {
    let count = symbols.len() as u32 + 1;
    let mut words = vec![1, count, count - 1];
    words.extend((0..count).map(|index| index.saturating_sub(1)));
    words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
}

/// DT_GNU_HASH with a single bucket. Defined symbols must be the last ones of the table, as the format wants.
pub fn gnu_hash(symbols: &[Symbol]) -> Vec<u8> {
    const SHIFT: u32 = 6;
    let first = symbols
        .iter()
        .rposition(|symbol| symbol.place == Place::Undefined || symbol.binding == Binding::Local)
        .map_or(0, |last| last + 1);
    let hashes: Vec<u32> = symbols.iter().skip(first).map(|symbol| gnu_hash_value(&symbol.name)).collect();
    let bloom = hashes.iter().fold(0u64, |bloom, hash| bloom | 1 << (hash % 64) | 1 << ((hash >> SHIFT) % 64));
    let first = first as u32 + 1;
    let mut bytes: Vec<u8> = [1, first, 1, SHIFT].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    bytes.extend(bloom.to_le_bytes());
    bytes.extend(if hashes.is_empty() { 0 } else { first }.to_le_bytes());
    for (index, hash) in hashes.iter().enumerate() {
        // The lowest bit ends the chain.
        let end = u32::from(index + 1 == hashes.len());
        bytes.extend(((hash & !1) | end).to_le_bytes());
    }
    bytes
}

fn gnu_hash_value(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}
