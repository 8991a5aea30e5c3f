//! `--list` and LD_TRACE_LOADED_OBJECTS: what would be loaded, in the lines that ldd(1) made known. No code of any of the
//! files runs.

use crate::report::Writer;
use core::fmt::Write;
use rtld_link::load::Missing;
use rtld_link::object::{Object, ObjectSet, Role};
use rtld_sys::file;

/// Writes the list.
pub fn print(objects: &ObjectSet, missing: &[Missing]) {
    let mut out = Writer::new(file::STDOUT);
    let loaded = objects.iter().filter(|(_, object)| !matches!(object.role, Role::Program | Role::Ourselves));
    for (_, object) in loaded {
        line(&mut out, object);
    }
    for missing in missing {
        out.bytes(b"\t");
        out.bytes(missing.name);
        out.bytes(b" => not found\n");
    }
    if objects.len() <= 3 && missing.is_empty() && objects.iter().all(|(_, object)| object.role != Role::Library) {
        out.bytes(b"\tstatically linked\n");
    }
}

fn line(out: &mut Writer, object: &Object) {
    out.bytes(b"\t");
    let name = object.aliases.first().map_or(object.path.as_bytes(), |alias| alias.as_bytes());
    if !name.contains(&b'/') && name != object.path.as_bytes() {
        out.bytes(name);
        out.bytes(b" => ");
    }
    out.bytes(object.path.as_bytes());
    let _ = writeln!(out, " ({:#018x})", object.mapping.start);
}
