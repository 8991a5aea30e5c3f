//! The block of memory that glibc takes for its `struct link_map`: one for each object, by whose address handles go.
//!
//! Owns the public head (which debuggers read too) and filling in what libc.so.6 reads behind it. It allocates nothing, finds
//! nothing out, and touches no memory but the block itself.

use core::ptr::null_mut;

use rtld_elf::tag::DT_GNU_HASH;
use rtld_elf::{Dyn, GnuHash, Table};

use crate::offsets::{LinkMapOffsets, Offsets};
use crate::region::OutsideRegion;
use crate::table::TABLE;

/// Size of the public head in bytes.
const HEAD: usize = 40;
/// Where we keep the object's `struct libname_list` (name, next, "do not free"), behind every version's structure.
const LIBRARY_NAME: usize = 1208;
/// Size of the whole block. With what is kept of each object behind it (`Handle` of rtld-runtime) it fills a block of the heap.
const SIZE: usize = 1232;
const PRIVATE_WORDS: usize = (SIZE - HEAD) / 8;

const _: () = {
    let mut rest = TABLE;
    while let Some((row, others)) = rest.split_first() {
        assert!(row.link_map.size <= LIBRARY_NAME);
        rest = others;
    }
    assert!(LIBRARY_NAME + 24 <= SIZE);
    assert!(size_of::<LinkMap>() == SIZE);
};

/// An object as debuggers (`link_map` of <link.h>) and glibc see it. Must not move once it was filled in.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct LinkMap {
    /// `l_addr`: what was added to the file's addresses.
    pub address: usize,
    /// `l_name`: a C string; empty for the program.
    pub name: *const u8,
    /// `l_ld`: the dynamic section.
    pub dynamic: *const u8,
    /// `l_next`.
    pub next: *mut LinkMap,
    /// `l_prev`.
    pub previous: *mut LinkMap,
    private: [u64; PRIVATE_WORDS],
}

/// What glibc's part of a [`LinkMap`] is filled from. Addresses are addresses in memory.
#[derive(Debug, Clone, Copy)]
pub struct ObjectFacts<'a> {
    /// First byte that is mapped for the object.
    pub map_start: usize,
    /// End of what is mapped.
    pub map_end: usize,
    /// End of its executable segments.
    pub text_end: usize,
    /// The program headers.
    pub program_headers: usize,
    /// How many there are.
    pub program_header_count: u16,
    /// Entry point, or 0.
    pub entry: usize,
    /// The entries of the dynamic section in memory.
    pub dynamic: Table<'a, Dyn>,
    /// Its DT_GNU_HASH, if that is the table it is looked up by.
    pub gnu_hash: Option<GnuHash<'a>>,
    /// TLS module id, 0 for none.
    pub tls_module: usize,
    /// Distance of its TLS block below the thread pointer, 0 for none.
    pub tls_offset: usize,
    /// An array of pointers to the objects in which its symbols are looked for, itself first, breadth-first.
    pub search_list: usize,
    /// Length of the array.
    pub search_list_length: u32,
}

impl LinkMap {
    /// A block that says nothing.
    pub const fn new() -> LinkMap {
        LinkMap {
            address: 0,
            name: core::ptr::null(),
            dynamic: core::ptr::null(),
            next: null_mut(),
            previous: null_mut(),
            private: [0; PRIVATE_WORDS],
        }
    }

    /// The word of the private part at `offset` from the start of the block.
    fn word(&mut self, offset: usize) -> Result<&mut u64, OutsideRegion> {
        let index = offset.checked_sub(HEAD).map(|inside| inside / 8);
        index
            .filter(|_| offset.is_multiple_of(8))
            .and_then(|index| self.private.get_mut(index))
            .ok_or(OutsideRegion { offset, size: SIZE })
    }

    fn set(&mut self, offset: usize, value: usize) -> Result<(), OutsideRegion> {
        *self.word(offset)? = value as u64;
        Ok(())
    }

    /// Fills in glibc's part. `name` must be set already. May be called again when facts have changed.
    pub fn fill(&mut self, offsets: &Offsets, facts: &ObjectFacts<'_>) -> Result<(), OutsideRegion> {
        let map = &offsets.link_map;
        let here = (&raw const *self).expose_provenance();
        let name = self.name.expose_provenance();
        self.set(map.real, here)?;
        self.set(LIBRARY_NAME, name)?;
        self.set(LIBRARY_NAME + 8, 0)?;
        // glibc frees the other records of this list when it frees all its memory for a leak checker.
        self.set(LIBRARY_NAME + 16, 1)?;
        self.set(map.library_name, here.wrapping_add(LIBRARY_NAME))?;
        self.fill_dynamic(map, facts.dynamic)?;
        self.set(map.program_headers, facts.program_headers)?;
        self.set(map.program_headers + 8, facts.entry)?;
        self.set(map.program_headers + 16, usize::from(facts.program_header_count))?;
        self.set(map.map_start, facts.map_start)?;
        self.set(map.map_start + 8, facts.map_end)?;
        self.fill_gnu_hash(map, facts)?;
        if let Some(text_end) = map.text_end {
            self.set(text_end, facts.text_end)?;
        }
        self.set_search_list(offsets, facts.search_list, facts.search_list_length)?;
        self.set_tls(offsets, facts.tls_module, facts.tls_offset)
    }

    /// The hash table, for glibc to find the names of addresses.
    fn fill_gnu_hash(&mut self, map: &LinkMapOffsets, facts: &ObjectFacts<'_>) -> Result<(), OutsideRegion> {
        let (Some(places), Some(table)) = (&map.gnu_hash, &facts.gnu_hash) else { return Ok(()) };
        let entry = facts.dynamic.iter().position(|entry| entry.d_tag == DT_GNU_HASH);
        let Some(entry) = entry else { return Ok(()) };
        let address = facts.dynamic.as_ptr().expose_provenance().wrapping_add(entry * size_of::<Dyn>());
        self.set(places.info, address)?;
        self.set(places.buckets, table.buckets.as_ptr().expose_provenance())?;
        let before = (table.symbol_offset as usize).wrapping_mul(4);
        self.set(places.chain_zero, table.chains.as_ptr().expose_provenance().wrapping_sub(before))?;
        // The upper half of its word; the lower half belongs to another field.
        let word = self.word(places.bucket_count & !7)?;
        *word = *word & 0xffff_ffff | (table.buckets.len() as u64) << 32;
        Ok(())
    }

    /// `l_info`: the last entry of each tag that glibc indexes by the tag itself. The tags of versions have
    /// places behind these; they stay empty.
    fn fill_dynamic(&mut self, map: &LinkMapOffsets, entries: Table<'_, Dyn>) -> Result<(), OutsideRegion> {
        let start = entries.as_ptr().expose_provenance();
        for (index, entry) in entries.iter().enumerate() {
            let Ok(tag) = usize::try_from(entry.d_tag) else {
                continue;
            };
            if entry.d_tag == 0 {
                break;
            }
            if tag < map.info_count {
                self.set(map.info + 8 * tag, start.wrapping_add(index * size_of::<Dyn>()))?;
            }
        }
        Ok(())
    }

    /// Replaces the list of objects in which this one's symbols are looked for.
    pub fn set_search_list(&mut self, offsets: &Offsets, list: usize, length: u32) -> Result<(), OutsideRegion> {
        let map = &offsets.link_map;
        let here = (&raw const *self).expose_provenance();
        self.set(map.search_list, list)?;
        self.set(map.search_list + 8, length as usize)?;
        // l_scope points to an array of one scope, which is this list.
        self.set(map.local_scope, here.wrapping_add(map.search_list))?;
        self.set(map.scope, here.wrapping_add(map.local_scope))
    }

    /// Says which TLS module the object is, and how far below the thread pointer its static block lies (0: nowhere).
    pub fn set_tls(&mut self, offsets: &Offsets, module: usize, offset: usize) -> Result<(), OutsideRegion> {
        self.set(offsets.link_map.tls_module, module)?;
        self.set(offsets.link_map.tls_offset, offset)
    }

    /// How many thread-local destructors of the object still wait, as libc counts them: while any does, it must stay.
    pub fn tls_destructor_count(&self, offsets: &Offsets) -> usize {
        let index = offsets.link_map.tls_destructor_count.saturating_sub(HEAD) / 8;
        // libc changes the word behind the compiler's back.
        self.private.get(index).map_or(0, |word| {
            let word: *const u64 = word;
            // SAFETY: the word is inside the block that self borrows.
            unsafe { word.read_volatile() as usize }
        })
    }
}

impl Default for LinkMap {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_2_36_finds_what_it_reads() {
        let offsets = TABLE.iter().find(|row| row.name == "2.36").unwrap();
        let entries: [u64; 10] = [12, 0x1111, 36, 0x2222, 0x6fff_fef5, 3, 0, 0, 25, 4];
        let mut bytes = [0u8; 80];
        for (place, entry) in bytes.chunks_exact_mut(8).zip(entries) {
            place.copy_from_slice(&entry.to_le_bytes());
        }
        let dynamic = Table::<Dyn>::from_bytes(&bytes);
        let facts = ObjectFacts {
            map_start: 0x1000,
            map_end: 0x9000,
            text_end: 0x5000,
            program_headers: 0x1040,
            program_header_count: 9,
            entry: 0x2000,
            dynamic,
            gnu_hash: None,
            tls_module: 3,
            tls_offset: 64,
            search_list: 0x7777,
            search_list_length: 5,
        };
        let mut map = LinkMap::new();
        map.name = c"name".as_ptr().cast();
        map.fill(offsets, &facts).unwrap();
        let here = (&raw const map).addr();
        let start = dynamic.as_ptr().addr();
        let mut read = |offset: usize| *map.word(offset).unwrap() as usize;
        // glibc 2.36, struct link_map by its debug information.
        for (offset, value) in [
            (40, here),                // l_real
            (56, here + LIBRARY_NAME), // l_libname
            (64 + 8 * 12, start),      // l_info[DT_INIT]
            (64 + 8 * 36, start + 16), // l_info[DT_RELR]
            (64 + 8 * 25, 0),          // behind DT_NULL
            (704, 0x1040),             // l_phdr
            (712, 0x2000),             // l_entry
            (720, 9),                  // l_phnum
            (728, 0x7777),             // l_searchlist.r_list
            (736, 5),                  // l_searchlist.r_nlist
            (880, 0x1000),             // l_map_start
            (888, 0x9000),             // l_map_end
            (896, 0x5000),             // l_text_end
            (944, here + 952),         // l_scope
            (952, here + 728),         // l_local_scope[0]
            (1144, 64),                // l_tls_offset
            (1152, 3),                 // l_tls_modid
        ] {
            assert_eq!(read(offset), value, "offset {offset}");
        }
        assert_eq!(read(LIBRARY_NAME + 16), 1);
        *map.word(1160).unwrap() = 2;
        assert_eq!(map.tls_destructor_count(offsets), 2);
    }

    #[test]
    fn only_the_private_part_can_be_reached() {
        let mut map = LinkMap::new();
        assert!(map.set(32, 1).is_err());
        assert!(map.set(44, 1).is_err());
        assert!(map.set(SIZE, 1).is_err());
        assert!(map.set(SIZE - 8, 1).is_ok());
    }
}
