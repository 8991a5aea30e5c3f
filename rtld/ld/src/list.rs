//! `--list` and LD_TRACE_LOADED_OBJECTS: what would be loaded, in the lines that ldd(1) made known. No code of any of the
//! files runs.

use crate::report::Writer;
use core::fmt::Write;
use rtld_link::load::Missing;
use rtld_link::object::{Object, ObjectSet, Role};
use rtld_link::text::Text;
use rtld_sys::file;

/// Writes the list.
pub fn print(objects: &ObjectSet, missing: &[Missing]) {
    let mut out = Writer::new(file::STDOUT);
    if missing.is_empty()
        && !objects.iter().any(|(_, object)| matches!(object.role, Role::Library | Role::PassiveLoader))
    {
        out.bytes(b"\tstatically linked\n");
        return;
    }
    let mut missing = missing.iter().peekable();
    for (index, object) in objects.iter() {
        while let Some(absent) = missing.next_if(|absent| absent.place <= index.position()) {
            not_found(&mut out, absent);
        }
        if object.role != Role::Program {
            let asked = objects.entry(index).and_then(|entry| entry.first_alias()).map(Text::as_bytes);
            line(&mut out, object, asked);
        }
    }
    for absent in missing {
        not_found(&mut out, absent);
    }
}

fn not_found(out: &mut Writer, absent: &Missing) {
    out.bytes(b"\t");
    out.bytes(absent.name);
    out.bytes(b" => not found\n");
}

fn line(out: &mut Writer, object: &Object, asked: Option<&[u8]>) {
    out.bytes(b"\t");
    let name = asked.unwrap_or(object.path.as_bytes());
    if !name.contains(&b'/') && name != object.path.as_bytes() {
        out.bytes(name);
        out.bytes(b" => ");
    }
    out.bytes(object.path.as_bytes());
    let _ = writeln!(out, " ({:#018x})", object.mapping.start);
}
