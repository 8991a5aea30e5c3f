//! dladdr, dladdr1, dlinfo, dl_iterate_phdr and `_dl_find_object` about objects that come and go.

use super::{BESIDE, Script, node};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, same, written};
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let needed = node(context, "information", 51, &["-DQUIET"], &[])?;
    let library = node(context, "information", 52, &["-DQUIET"], &[&needed])?;
    let threaded = Build::new("dlfcn/thread_value.c")
        .shared()
        .flags(&["-O1", BESIDE])
        .output("information/libthread.so")
        .build(context)?;
    let program =
        Build::new("dlfcn/information.c").flags(&["-O0", "-rdynamic"]).output("information-program").build(context)?;
    let serial = |place: &str| {
        // The search path of a library with a RUNPATH: that, then the directories of the system.
        format!(
            "SERINFOSIZE 0
SERINFOSIZE again 0
SERINFO 0, 5 paths
path {place}
path /lib/x86_64-linux-gnu
path /usr/lib/x86_64-linux-gnu
path /lib
path /usr/lib"
        )
    };
    let place = context.work.join("information").display().to_string();
    for (name, file, argument, module, last) in [
        ("a library", &library, None, "TLS_MODID 0 none\nTLS_DATA 0 none", ""),
        (
            "a library with TLS",
            &threaded,
            Some("thread_value"),
            "TLS_MODID 0 a module\nTLS_DATA 0 none",
            "\nTLS_MODID set, the variable lies in TLS_DATA 1",
        ),
    ] {
        let base = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let want = format!(
            "function: {base} which+0
function: base is an ELF header 1
inside a function: {base} which+1
inside a function: base is an ELF header 1
data: {base} shared_value+0
data: base is an ELF header 1
program's function: information-program marker+0
program's function: base is an ELF header 1
program's data, inside: information-program marker_data+5
program's data, inside: base is an ELF header 1
static data: information-program (none)+0
static data: base is an ELF header 1
libc: libc.so.6 abort+0
libc: base is an ELF header 1
nowhere: not found
stack: not found
dladdr1 symbol 1
symbol of which: type 2 binding 1 size>0 1, value fits 1
dladdr1 symbol of static data 1
symbol none
dladdr1 map 1
map is the handle 1, name {base}
LINKMAP 0 1
l_addr is where it lies 1, l_ld in it 1
in the debugger's list 1
LMID 0 0
ORIGIN 0 information
{}
{module}
PHDR some, in the library 1{last}
CONFIGADDR -1 unsupported dlinfo request
unknown -1 unsupported dlinfo request",
            serial(&place)
        );
        same(context, report, &format!("dladdr, dladdr1, dlinfo: {name}"), &program, Want::Clean(&want), |run| {
            run.args([file.as_os_str()]).args(argument)
        });
    }
    // ld-linux 2.36 dies of this question.
    let want = format!("p opened\norigin {}\nend", context.work.display());
    written(context, report, "dlinfo: the origin of the program", &script.program, Want::Clean(&want), |run| {
        run.args(["open p - now", "origin p"])
    });
    let program = Build::new("dlfcn/callbacks.cpp").flags(&["-O1", "-pthread"]).build(context)?;
    let caught = "caught 7, another thread 1\n";
    let want = format!("{caught}{caught}{caught}opening callback 0 visited all 1, mapped 0");
    let name = "dl_iterate_phdr: callbacks that throw, and that open and close";
    same(context, report, name, &program, Want::Clean(&want), |run| run);
    iterate(context, report, &library, &threaded)
}

fn iterate(
    context: &Context,
    report: &mut Report,
    library: &std::path::Path,
    threaded: &std::path::Path,
) -> Result<()> {
    let program = Build::new("dlfcn/iterate.c").flags(&["-O1", "-rdynamic"]).output("iterate").build(context)?;
    for (name, file, added, module) in [
        ("a library and one it needs", library, 2, "TLS module no, data no"),
        (
            "a library with TLS",
            threaded,
            1,
            "TLS module yes, data no\nafter access: the variable is at the block's begin 1",
        ),
    ] {
        let found = "map 1, around the address 1, eh_frame 1, in the object 1";
        let want = format!(
            "object \nobject libc.so.6
size 64, adds at least the objects 1
opened: objects +{added}, adds +{added}, subs +0, listed 1
name {}
headers some, in the library 1
{module}
library: {found}
program: {found}
libc: {found}
stack: no object
null: no object
opened again: objects +0, adds +0, subs +0
closed: objects -{added}, adds +0, subs +{added}, listed 0
closed library: no object
stopped with 7 after 2
nested 1 found 1",
            file.display()
        );
        same(
            context,
            report,
            &format!("dl_iterate_phdr, _dl_find_object: {name}"),
            &program,
            Want::Clean(&want),
            |run| run.args([file]),
        );
    }
    Ok(())
}
