//! Single-field mutations of one small library, drawn with a fixed seed: whatever the field, the program runs or the loader
//! says one line; no signal before the library's own code runs, and no code of the library under `--list`.

use std::path::Path;

use anyhow::Result;

use super::damage::listed;
use super::traced::{acceptable, trace};
use super::{library, program};
use crate::elf_edit::{Image, RELA_SIZE, SYMBOL_SIZE, tag};
use crate::harness::{Context, Report, Run, Way};

/// How many mutants are made.
const MUTANTS: usize = 300;
/// The seed: the same mutants in every run. `RTLD_SEED=N` draws others.
const SEED: u64 = 0x5eed_0f0e_1f00_0001;

/// Array of finalisation functions, and its size in bytes (gABI).
const DT_FINI_ARRAY: u64 = 26;
const DT_FINI_ARRAYSZ: u64 = 28;

/// Runs the mutants.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let target =
        library(context, "target.c", "mutants", "libtarget.so", &["-Wl,--hash-style=both", "-Wl,-z,lazy", "-O1"], &[])?;
    let program = program(context, "main.c", "mutants", &[], &[&target])?;
    let good = Image::read(&target)?;
    let fields = fields(&good)?;
    let seed = std::env::var("RTLD_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    report.note(format!("{MUTANTS} mutants of {} fields, seed {seed}", fields.len()));
    let mut random = Random(seed | 1);
    for number in 0..MUTANTS {
        // Every kind of field gets its share, however many fields it has.
        let kinds: Vec<&str> = KINDS.to_vec();
        let kind = kinds.get(number % kinds.len()).copied().unwrap_or("header");
        let of_kind: Vec<&Field> = fields.iter().filter(|field| field.kind == kind).collect();
        let Some(field) = of_kind.get(random.below(of_kind.len())) else { anyhow::bail!("no field of kind {kind}") };
        let value = random.value(good.number(field.offset, field.width)?, field.width);
        let mut bad = good.clone();
        bad.set(field.offset, field.width, value)?;
        bad.write(&target)?;
        let name = format!("mutant {number}: {kind} field at {:#x}, {} bytes, {value:#x}", field.offset, field.width);
        report.check(name, survives(context, &program).map_err(|error| format!("{error:#}")));
    }
    good.write(&target)
}

/// Both the run and the list.
fn survives(context: &Context, program: &Path) -> Result<()> {
    let run = trace(context, &Run::new(program).way(Way::Direct))?;
    acceptable(&run).map_err(anyhow::Error::msg)?;
    listed(context, program)
}

/// A field of the file.
struct Field {
    kind: &'static str,
    offset: usize,
    width: usize,
}

/// The kinds of fields, each drawn equally often.
const KINDS: [&str; 8] = ["header", "program header", "dynamic", "relocation", "symbol", "hash", "version", "string"];

/// All fields that a loader reads.
fn fields(image: &Image) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    let mut add = |kind, base: usize, layout: &[(usize, usize)]| {
        fields.extend(layout.iter().map(|&(at, width)| Field { kind, offset: base + at, width }));
    };
    let header =
        [(0, 4), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (9, 1), (16, 2), (18, 2), (20, 4), (24, 8), (32, 8), (40, 8)];
    add("header", 0, &header);
    add("header", 0, &[(48, 4), (52, 2), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2)]);
    for base in image.program_headers()? {
        add("program header", base, &[(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8)]);
    }
    for entry in image.dynamic_entries()? {
        add("dynamic", entry.offset, &[(0, 8), (8, 8), (8, 8)]);
        if entry.tag == tag::NULL {
            break;
        }
    }
    let mut initialisers = Vec::new();
    for (array, size) in [(tag::INIT_ARRAY, tag::INIT_ARRAYSZ), (DT_FINI_ARRAY, DT_FINI_ARRAYSZ)] {
        let start = image.dynamic(array)?.value;
        initialisers.push(start..start + image.dynamic(size)?.value);
    }
    for (table, size) in [(tag::RELA, tag::RELASZ), (tag::JMPREL, 2)] {
        let (base, size) = (image.table(table)?, image.dynamic(size)?.value as usize);
        for at in (0..size).step_by(RELA_SIZE) {
            add("relocation", base + at, &[(0, 8), (8, 4), (12, 4)]);
            // An initialiser that starts between two instructions is the library's own code, and may spoil the registers that
            // our code must find again: where it starts is not varied here (`damage` has addresses outside the code).
            if !initialisers.iter().any(|array| array.contains(&image.number(base + at, 8).unwrap_or(0))) {
                add("relocation", base + at, &[(16, 8)]);
            }
        }
    }
    let symbols = image.table(tag::SYMTAB)?;
    for index in 0..image.symbol_count()? {
        add("symbol", symbols + SYMBOL_SIZE * index, &[(0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8)]);
    }
    let words = |count: usize| -> Vec<(usize, usize)> { (0..count).map(|word| (word * 4, 4)).collect() };
    let table = image.table(tag::HASH)?;
    let count = image.number(table, 4)? + image.number(table + 4, 4)?;
    add("hash", table, &words(2 + count as usize));
    let table = image.table(tag::GNU_HASH)?;
    let (buckets, first, filter) = (image.number(table, 4)?, image.number(table + 4, 4)?, image.number(table + 8, 4)?);
    let chains = image.symbol_count()? - first as usize;
    add("hash", table, &words(4 + 2 * filter as usize + buckets as usize + chains));
    let table = image.table(tag::VERNEED)?;
    add("version", table, &[(0, 2), (2, 2), (4, 4), (8, 4), (12, 4), (16, 4), (20, 2), (22, 2), (24, 4), (28, 4)]);
    let table = image.table(tag::VERSYM)?;
    for index in 0..image.symbol_count()? {
        add("version", table + 2 * index, &[(0, 2)]);
    }
    let (table, size) = (image.table(tag::STRTAB)?, image.dynamic(tag::STRSZ)?.value as usize);
    for at in 0..size {
        add("string", table + at, &[(0, 1)]);
    }
    Ok(fields)
}

/// xorshift64*: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`; 0 if that is 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16).checked_rem(limit as u64).unwrap_or(0) as usize
    }

    /// A value that is not `old` in `width` bytes: an edge, a neighbour, a flipped bit or noise.
    fn value(&mut self, old: u64, width: usize) -> u64 {
        let mask = u64::MAX >> (64 - 8 * width);
        let value = match self.below(12) {
            0 => 0,
            1 => mask,
            2 => mask >> 1,
            3 => old.wrapping_add(1),
            4 => old.wrapping_sub(1),
            5 => old.wrapping_add(8),
            6 => old.wrapping_add(0x1000),
            7 => old.wrapping_sub(0x1000),
            8 => old ^ (1 << self.below(8 * width)),
            9 => old.wrapping_add(0x1000_0000),
            10 => self.next() >> self.below(64),
            _ => self.next(),
        } & mask;
        if value == old { value ^ 1 } else { value }
    }
}
