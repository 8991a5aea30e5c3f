//! The libraries and programs of this machine: each is accepted, and read as the `object` crate reads it.

use std::fs;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf;
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _, ProgramHeader as _, Sym as _};

use rtld_elf::symbol::SymbolKind;
use rtld_elf::{Dynamic, Hash, SymbolView as _, gnu_hash, header, sysv_hash};

use crate::support::{LaidOut, Refusal, elf_files};

/// Libraries and programs of Debian; few machines have fewer.
const AT_LEAST: usize = 300;

/// The number of a symbol with this name, by the object's own hash table.
fn find(dynamic: &Dynamic<'_>, name: &[u8], wanted: impl Fn(u32) -> bool) -> Option<u32> {
    let matches = |&index: &u32| {
        dynamic.symbols.get(index).is_some_and(|symbol| dynamic.strings.equals(symbol.st_name, name)) && wanted(index)
    };
    match &dynamic.hash {
        Hash::None => None,
        Hash::Gnu(table) => {
            let hash = gnu_hash(name);
            if !table.maybe(hash) {
                return None;
            }
            table.candidates(hash).find(matches)
        }
        Hash::Sysv(table) => table.candidates(sysv_hash(name)).find(matches),
    }
}

/// Compares one file; the number of definitions looked up.
fn compare(bytes: &[u8]) -> Result<usize, String> {
    let laid_out = match LaidOut::new(bytes, 1 << 31) {
        Ok(laid_out) => laid_out.ok_or("too large")?,
        // What glibc refuses too.
        Err(Refusal::Header(
            header::HeaderError::Machine(_) | header::HeaderError::Class | header::HeaderError::Kind,
        )) => {
            return Ok(0);
        }
        Err(refusal) => return Err(refusal.to_string()),
    };
    let Some(dynamic) = laid_out.dynamic().map_err(|refusal| refusal.to_string())? else {
        return Ok(0);
    };
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(|error| error.to_string())?;
    let endian = LittleEndian;

    let theirs = file.elf_header().program_headers(endian, bytes).map_err(|error| error.to_string())?;
    let entries = theirs
        .iter()
        .find_map(|header| header.dynamic(endian, bytes).transpose())
        .ok_or("object finds no dynamic section")?
        .map_err(|error| error.to_string())?;
    let value = |tag: u32| {
        entries.iter().filter(|entry| entry.d_tag(endian) == tag.into()).map(|entry| entry.d_val(endian)).next_back()
    };
    let expect = |what: &str, ours: u64, theirs: u64| {
        if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours:#x}, object says {theirs:#x}")) }
    };
    let relocations = (dynamic.relocations.len() + dynamic.plt_relocations.len()) as u64 * 24;
    let both = value(elf::DT_RELASZ).unwrap_or(0) + value(elf::DT_PLTRELSZ).unwrap_or(0);
    expect("relocations", relocations, both)?;
    expect("DT_RELACOUNT", dynamic.relative_count as u64, value(elf::DT_RELACOUNT).unwrap_or(0))?;
    expect("DT_INIT", dynamic.init.unwrap_or(0), value(elf::DT_INIT).unwrap_or(0))?;
    expect(
        "DT_INIT_ARRAY",
        dynamic.init_array.map_or(0, |range| range.size),
        value(elf::DT_INIT_ARRAYSZ).unwrap_or(0),
    )?;
    expect("DT_FLAGS_1", dynamic.flags_1.bits(), value(elf::DT_FLAGS_1).unwrap_or(0))?;

    // Sections are what the loader never reads: here they are the second opinion.
    let Ok(sections) = file.elf_header().sections(endian, bytes) else {
        return Ok(0);
    };
    let symbols = sections.symbols(endian, bytes, elf::SHT_DYNSYM).map_err(|error| error.to_string())?;
    let names: Vec<&[u8]> = entries
        .iter()
        .filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED.into())
        .map(|entry| symbols.strings().get(entry.d_val(endian) as u32).unwrap_or(b"?"))
        .collect();
    if !symbols.is_empty() && dynamic.needed().collect::<Vec<_>>() != names {
        return Err(format!("DT_NEEDED: object says {names:?}"));
    }
    let versions = sections.versions(endian, bytes).map_err(|error| error.to_string())?;
    let mut count = 0;
    for (index, symbol) in symbols.enumerate() {
        let name = symbol.name(endian, symbols.strings()).map_err(|error| error.to_string())?;
        let index = index.0 as u32;
        let ours = dynamic.symbols.get(index).ok_or("symbol table too short")?;
        let same = dynamic.strings.get(ours.st_name.into()) == Some(name)
            && ours.st_value == symbol.st_value(endian)
            && ours.is_undefined() == symbol.is_undefined(endian)
            && (ours.kind() == SymbolKind::Function) == (symbol.st_type() == elf::STT_FUNC);
        if !same {
            return Err(format!("symbol {index} differs"));
        }
        if let Some(versions) = &versions {
            let theirs = versions.version_index(endian, object::SymbolIndex(index as usize));
            let name = versions.version(theirs).ok().flatten().map(|version| version.name());
            let ours = dynamic.versions.symbol_version(index).ok_or("no versym")?;
            // The object's own name is no version for us.
            let base = dynamic.versions.definitions().find(|definition| definition.is_base());
            let is_base = base.is_some_and(|base| base.index == ours & 0x7fff);
            if !is_base && dynamic.versions.name_of(ours).map(|version| version.name) != name {
                return Err(format!("version of symbol {index} differs"));
            }
        }
        if symbol.is_undefined(endian) || symbol.st_bind() == elf::STB_LOCAL || symbol.st_name(endian) == 0 {
            continue;
        }
        if find(&dynamic, name, |found| found == index) != Some(index) {
            return Err(format!("{} is not found by the hash table", String::from_utf8_lossy(name)));
        }
        count += 1;
    }
    Ok(count)
}

#[test]
fn every_file_of_this_machine_is_read_as_object_reads_it() {
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in ["/usr/lib/x86_64-linux-gnu", "/usr/bin", "/usr/sbin"] {
        elf_files(Path::new(directory), &mut files);
    }
    assert!(files.len() >= AT_LEAST, "only {} ELF files: is this a Debian machine?", files.len());
    let (mut failures, mut definitions) = (Vec::new(), 0);
    for path in &files {
        let bytes = fs::read(path).unwrap();
        match compare(&bytes) {
            Ok(count) => definitions += count,
            Err(reason) => failures.push(format!("{}: {reason}", path.display())),
        }
    }
    println!("{} files, {definitions} definitions found", files.len());
    assert!(failures.is_empty(), "{} files:\n{}", failures.len(), failures.join("\n"));
    assert!(definitions > 10_000, "only {definitions} definitions");
}
