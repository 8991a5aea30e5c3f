//! The two hash tables over the dynamic symbols: DT_GNU_HASH and DT_HASH (gABI).
//!
//! They answer which symbol numbers may carry a name; comparing names is the caller's. Every walk is bounded by the table
//! whatever the file says.

use core::fmt;

use crate::{Image, SymbolTable, Table};

/// The hash of DT_GNU_HASH: h = 33 h + c from 5381 on, modulo 2^32.
#[inline]
pub const fn gnu_hash(name: &[u8]) -> u32 {
    let mut hash = GNU_HASH_START;
    let mut rest = name;
    while let Some((&byte, tail)) = rest.split_first() {
        hash = gnu_hash_step(hash, byte);
        rest = tail;
    }
    hash
}

/// The hash of DT_GNU_HASH for the empty name.
pub(crate) const GNU_HASH_START: u32 = 5381;

/// The hash of a name with one more byte.
#[inline(always)]
pub(crate) const fn gnu_hash_step(hash: u32, byte: u8) -> u32 {
    hash.wrapping_mul(33).wrapping_add(byte as u32)
}

/// Position of the first zero byte in the order of memory, 8 if there is none.
#[inline(always)]
pub(crate) const fn first_zero_byte(word: u64) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    // The lowest bit that is set is right; higher ones may be wrong by a borrow.
    let zeros = word.to_le().wrapping_sub(LOW) & !word.to_le() & (LOW << 7);
    zeros.trailing_zeros() as usize / 8
}

/// 33 to a power, modulo 2^32.
#[inline(always)]
const fn power_of_33(exponent: u32) -> u32 {
    33_u32.wrapping_pow(exponent)
}

/// 33 to the power of 0 to 7.
const POWERS: [u32; 8] =
    [1, 33, power_of_33(2), power_of_33(3), power_of_33(4), power_of_33(5), power_of_33(6), power_of_33(7)];

/// What eight bytes add to a hash that was multiplied by 33^8: eight steps at once. Neighbours are put together in lanes of 16
/// and then 32 bits, which they cannot leave (255 * 33 + 255 < 2^16; that * 1089 + that < 2^32).
#[inline(always)]
const fn gnu_hash_of_word(word: u64) -> u32 {
    const POWER: u32 = power_of_33(4);
    let word = word.to_le();
    let (even, odd) = (word & 0x00ff_00ff_00ff_00ff, word >> 8 & 0x00ff_00ff_00ff_00ff);
    let pairs = even.wrapping_mul(33).wrapping_add(odd);
    let (even, odd) = (pairs & 0x0000_ffff_0000_ffff, pairs >> 16 & 0x0000_ffff_0000_ffff);
    let fours = even.wrapping_mul(33 * 33).wrapping_add(odd);
    (fours as u32).wrapping_mul(POWER).wrapping_add((fours >> 32) as u32)
}

/// The hash of a name with eight more bytes.
#[inline(always)]
pub(crate) const fn gnu_hash_word(hash: u32, word: u64) -> u32 {
    const POWER: u32 = power_of_33(8);
    hash.wrapping_mul(POWER).wrapping_add(gnu_hash_of_word(word))
}

/// The hash of a name with the first `count` bytes of a word after it; less than eight.
#[inline(always)]
pub(crate) fn gnu_hash_part(hash: u32, word: u64, count: usize) -> u32 {
    // Zeros before the bytes that count add nothing. Two shifts, since all bits may go.
    let missing = (8_usize.wrapping_sub(count) as u32).wrapping_mul(8);
    let moved = (word.to_le() << 8).wrapping_shl(missing.wrapping_sub(8));
    let power = POWERS.get(count).copied().unwrap_or(0);
    hash.wrapping_mul(power).wrapping_add(gnu_hash_of_word(moved.to_le()))
}

/// The hash of DT_HASH (gABI 5, "Hash Table"), with 32 bits as all implementations compute it.
#[inline]
pub const fn sysv_hash(name: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    let mut rest = name;
    while let Some((&byte, tail)) = rest.split_first() {
        hash = (hash << 4).wrapping_add(byte as u32);
        hash ^= (hash >> 24) & 0xf0;
        hash &= 0x0fff_ffff;
        rest = tail;
    }
    hash
}

/// Why a hash table cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashError {
    /// A part of the table is outside the object's segments. The value of the tag.
    Outside(u64),
    /// The number of Bloom words of DT_GNU_HASH is not a power of two.
    BloomSize(u32),
}

impl fmt::Display for HashError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashError::Outside(vaddr) => write!(formatter, "hash table at {vaddr:#x} is not inside any loaded segment"),
            HashError::BloomSize(words) => {
                write!(formatter, "DT_GNU_HASH has a Bloom filter of {words} words, expected a power of two")
            }
        }
    }
}

impl core::error::Error for HashError {}

/// The hash table of an object.
#[derive(Debug, Clone, Copy, Default)]
pub enum Hash<'a> {
    /// None, or one without buckets: no symbol can be found by name.
    #[default]
    None,
    /// DT_GNU_HASH, preferred.
    Gnu(GnuHash<'a>),
    /// DT_HASH.
    Sysv(SysvHash<'a>),
}

impl<'a> Hash<'a> {
    /// Checks the tables at these virtual addresses (the values of DT_GNU_HASH and DT_HASH).
    pub fn digest(
        image: &Image<'a>,
        gnu: Option<u64>,
        sysv: Option<u64>,
        symbols: SymbolTable<'a>,
    ) -> Result<Hash<'a>, HashError> {
        if let Some(vaddr) = gnu
            && let Some(table) = GnuHash::digest(image, vaddr, symbols)?
        {
            return Ok(Hash::Gnu(table));
        }
        if let Some(vaddr) = sysv
            && let Some(table) = SysvHash::digest(image, vaddr, symbols)?
        {
            return Ok(Hash::Sysv(table));
        }
        Ok(Hash::None)
    }

    /// Number of symbols that the table knows of, undefined ones included where the table tells. For tools: with
    /// DT_GNU_HASH all chains are read.
    pub fn symbol_count(&self) -> u32 {
        match self {
            Hash::None => 0,
            Hash::Gnu(table) => table.symbol_count(),
            Hash::Sysv(table) => table.symbol_count(),
        }
    }
}

/// DT_GNU_HASH.
#[derive(Debug, Clone, Copy)]
pub struct GnuHash<'a> {
    /// The Bloom filter; its length is a power of two.
    pub bloom: Table<'a, u64>,
    /// `bloom.len() - 1`.
    pub bloom_mask: u32,
    /// How far the hash is shifted for the second bit of the Bloom filter, below 32.
    pub shift: u32,
    /// For each bucket the number of its first symbol, 0 for an empty one. Not empty.
    pub buckets: Table<'a, u32>,
    /// For symbol `symbol_offset + i` its hash; bit 0 says whether its chain ends there.
    pub chains: Table<'a, u32>,
    /// Number of the first symbol that can be found.
    pub symbol_offset: u32,
}

impl<'a> GnuHash<'a> {
    /// `None` for a table without buckets.
    fn digest(image: &Image<'a>, vaddr: u64, symbols: SymbolTable<'a>) -> Result<Option<Self>, HashError> {
        let outside = HashError::Outside(vaddr);
        let words: Table<'a, u8> = image.table_to_end(vaddr).ok_or(outside)?;
        let [bucket_count, symbol_offset, bloom_size, shift]: [u32; 4] = words.read(0).ok_or(outside)?;
        if bucket_count == 0 {
            return Ok(None);
        }
        if !bloom_size.is_power_of_two() {
            return Err(HashError::BloomSize(bloom_size));
        }
        let (bucket_count, bloom_size) = (bucket_count as usize, bloom_size as usize);
        let rest = words.from(16);
        let bloom = rest.records::<u64>().sub(0, bloom_size).ok_or(outside)?;
        let rest = rest.from(bloom_size * 8).records::<u32>();
        let buckets = rest.sub(0, bucket_count).ok_or(outside)?;
        let rest = rest.from(bucket_count);
        let count = symbols.bound().saturating_sub(symbol_offset as usize).min(rest.len());
        Ok(Some(GnuHash {
            bloom,
            bloom_mask: bloom_size as u32 - 1,
            shift: shift & 31,
            buckets,
            chains: rest.sub(0, count).ok_or(outside)?,
            symbol_offset,
        }))
    }

    /// Whether the Bloom filter lets a name with this hash be defined here.
    #[inline(always)]
    pub fn maybe(&self, hash: u32) -> bool {
        let Some(word) = self.bloom.get(((hash / 64) & self.bloom_mask) as usize) else {
            return false;
        };
        (word >> (hash % 64)) & (word >> ((hash >> self.shift) % 64)) & 1 != 0
    }

    /// The numbers of the symbols with this hash, in the order of their chain. The Bloom filter is not asked.
    #[inline]
    pub fn candidates(&self, hash: u32) -> GnuCandidates<'a> {
        // There is at least one bucket: digest() saw to it.
        let bucket = hash.checked_rem(self.buckets.len() as u32).and_then(|index| self.buckets.get(index as usize));
        // Bucket 0 (empty) and a bucket below symbol_offset (damaged) both wrap to a place behind the table.
        let place = bucket.filter(|&first| first != 0).unwrap_or(0).wrapping_sub(self.symbol_offset);
        let chains = if bucket.is_some_and(|first| first != 0) { self.chains } else { Table::empty() };
        GnuCandidates { chains, place, hash, symbol_offset: self.symbol_offset }
    }

    /// The entries of all chains, for the symbols from `symbol_offset` on. Bit 0 of each is not the hash's.
    pub fn entries(&self) -> Table<'a, u32> {
        let count = self.symbol_count().saturating_sub(self.symbol_offset);
        self.chains.sub(0, count as usize).unwrap_or_default()
    }

    /// One more than the highest symbol number on any chain.
    pub fn symbol_count(&self) -> u32 {
        let highest = self.buckets.iter().max().unwrap_or(0);
        let Some(mut place) = highest.checked_sub(self.symbol_offset) else {
            return self.symbol_offset;
        };
        while let Some(entry) = self.chains.get(place as usize) {
            place += 1;
            if entry & 1 != 0 {
                break;
            }
        }
        self.symbol_offset.saturating_add(place)
    }
}

/// See [`GnuHash::candidates`].
#[derive(Debug, Clone)]
pub struct GnuCandidates<'a> {
    chains: Table<'a, u32>,
    place: u32,
    hash: u32,
    symbol_offset: u32,
}

impl Iterator for GnuCandidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while let Some(entry) = self.chains.get(self.place as usize) {
            let symbol = self.symbol_offset.wrapping_add(self.place);
            if entry & 1 != 0 {
                self.chains = Table::empty();
            }
            // The table has fewer than 2^32 entries up to here, and a place behind its end is none.
            self.place = self.place.wrapping_add(1);
            if (entry ^ self.hash) >> 1 == 0 {
                return Some(symbol);
            }
        }
        None
    }
}

/// DT_HASH.
#[derive(Debug, Clone, Copy)]
pub struct SysvHash<'a> {
    /// For each bucket the number of its first symbol, 0 for none. Not empty.
    pub buckets: Table<'a, u32>,
    /// For each symbol the number of the next one in its bucket, 0 at the end.
    pub chains: Table<'a, u32>,
}

impl<'a> SysvHash<'a> {
    /// `None` for a table without buckets.
    fn digest(image: &Image<'a>, vaddr: u64, symbols: SymbolTable<'a>) -> Result<Option<Self>, HashError> {
        let outside = HashError::Outside(vaddr);
        let words: Table<'a, u32> = image.table_to_end(vaddr).ok_or(outside)?;
        let (bucket_count, chain_count) = (words.get(0).ok_or(outside)?, words.get(1).ok_or(outside)?);
        if bucket_count == 0 {
            return Ok(None);
        }
        let buckets = words.sub(2, bucket_count as usize).ok_or(outside)?;
        let chains = words.from(2).from(bucket_count as usize).sub(0, chain_count as usize).ok_or(outside)?;
        let chains = chains.sub(0, chains.len().min(symbols.bound())).ok_or(outside)?;
        Ok(Some(SysvHash { buckets, chains }))
    }

    /// The numbers of the symbols in the bucket of this hash. The names behind them may have other hashes.
    #[inline]
    pub fn candidates(&self, hash: u32) -> SysvCandidates<'a> {
        let bucket = hash.checked_rem(self.buckets.len() as u32).and_then(|index| self.buckets.get(index as usize));
        SysvCandidates { chains: self.chains, symbol: bucket.unwrap_or(0), left: self.chains.len() }
    }

    /// Number of symbols in the symbol table.
    pub fn symbol_count(&self) -> u32 {
        self.chains.len() as u32
    }
}

/// See [`SysvHash::candidates`].
#[derive(Debug, Clone)]
pub struct SysvCandidates<'a> {
    chains: Table<'a, u32>,
    symbol: u32,
    /// A chain visits each symbol once at most; a longer one is a circle.
    left: usize,
}

impl Iterator for SysvCandidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let symbol = self.symbol;
        self.left = self.left.checked_sub(1)?;
        if symbol == 0 {
            return None;
        }
        self.symbol = self.chains.get(symbol as usize)?;
        Some(symbol)
    }
}
