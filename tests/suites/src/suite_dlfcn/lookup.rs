//! dlsym and dlvsym: which definition a name gets from a handle, from RTLD_DEFAULT and RTLD_NEXT as seen by the caller.

use super::{BESIDE, Script, compare, node};
use crate::harness::{Build, Context, Report, Run, WAYS};
use crate::same::Want;
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    handles(context, report, script)?;
    callers(context, report, script)?;
    kinds(context, report, script)?;
    versions(context, report, script)?;
    from_preload(context, report, script);
    Ok(())
}

/// 20 needs 21 and 22, 21 needs 23; 22 and 23 define `common`.
fn handles(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let quiet = "-DQUIET";
    let deep = node(context, "lookup", 23, &[quiet, "-DALSO=common"], &[])?;
    let left = node(context, "lookup", 21, &[quiet], &[&deep])?;
    let right = node(context, "lookup", 22, &[quiet, "-DALSO=common"], &[])?;
    node(context, "lookup", 20, &[quiet], &[&left, &right])?;
    script.same(
        context,
        report,
        "the handle of a library: breadth first over what it needs",
        &[
            "open a ./lookup/lib20.so now",
            "sym a which",
            "sym a common",
            "sym a own_23",
            "sym a strlen",
            "sym a only_program",
            "sym a nosuch",
        ],
        &[
            "a opened",
            "which in lib20.so",
            "common in lib22.so",
            "own_23 in lib23.so",
            "strlen in libc.so.6",
            "./lookup/lib20.so: undefined symbol: only_program",
            "./lookup/lib20.so: undefined symbol: nosuch",
        ],
    );
    // Its name is the path that `$ORIGIN` gave.
    let missing = format!("{}/./lookup/lib21.so: undefined symbol: own_22", context.work.display());
    script.same(
        context,
        report,
        "the handle of a needed library is its own",
        &[
            "open a ./lookup/lib20.so now",
            "open b ./lookup/lib21.so now",
            "sym b which",
            "sym b common",
            "sym b own_22",
        ],
        &["a opened", "b opened", "which in lib21.so", "common in lib23.so", &missing],
    );
    script.same(
        context,
        report,
        "the handle of the program: program, then what it needs, then what is global",
        &[
            "open p - now",
            "sym p which",
            "sym p getpid",
            "open a ./lookup/lib20.so now+global",
            "sym p common",
            "sym p which",
        ],
        &["p opened", "which in script", "getpid in libc.so.6", "a opened", "common in lib22.so", "which in script"],
    );
    Ok(())
}

fn callers(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let after = node(context, "lookup", 24, &["-DQUIET"], &[])?;
    Build::new("dlfcn/caller.c")
        .shared()
        .flags(&["-O0", "-Wl,--no-as-needed", BESIDE, "-Wl,-soname,libcaller.so"])
        .with(&after)
        .output("lookup/libcaller.so")
        .build(context)?;
    script.same(
        context,
        report,
        "RTLD_DEFAULT of the program",
        &[
            "sym default which",
            "sym default getpid",
            "sym default nosuch",
            "open a ./lookup/lib24.so now",
            "sym default own_24",
        ],
        &[
            "which in script",
            "getpid in libc.so.6",
            "./script: undefined symbol: nosuch",
            "a opened",
            "./script: undefined symbol: own_24",
        ],
    );
    script.same(
        context,
        report,
        "RTLD_DEFAULT of a library opened RTLD_LOCAL: the global scope, then its own",
        &[
            "open c ./lookup/libcaller.so now",
            "ask c ask_default which",
            "ask c ask_default own_24",
            "ask c ask_default ask_next",
            "ask c ask_default nosuch",
        ],
        &["c opened", "script", "lib24.so", "libcaller.so", "./lookup/libcaller.so: undefined symbol: nosuch"],
    );
    script.same(
        context,
        report,
        "RTLD_NEXT of the program",
        &["sym next getpid", "sym next which"],
        &["getpid in libc.so.6", "./script: undefined symbol: which"],
    );
    script.same(
        context,
        report,
        "RTLD_NEXT of a library: after it, in the order it was loaded in",
        &[
            "open c ./lookup/libcaller.so now",
            "ask c ask_next which",
            "ask c ask_next getpid",
            "ask c ask_next ask_next",
        ],
        &["c opened", "lib24.so", "libc.so.6", "./lookup/libcaller.so: undefined symbol: ask_next"],
    );
    Ok(())
}

fn kinds(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    Build::new("dlfcn/symbols.c")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy"])
        .output("lookup/libsymbols.so")
        .build(context)?;
    script.same(
        context,
        report,
        "kinds of symbols",
        &[
            "open a ./lookup/libsymbols.so lazy",
            "call a indirect",
            "call a use",
            "text a relocated",
            "sym a absolute",
            "call a weak_function",
            "call a protected_function",
            "sym a hidden_function",
            "sym a static_function",
            "sym a undefined_function",
        ],
        &[
            "a opened",
            "indirect 5",
            "use 22",
            "relocated relocated",
            "absolute in (no object)",
            "weak_function 6",
            "protected_function 7",
            "./lookup/libsymbols.so: undefined symbol: hidden_function",
            "./lookup/libsymbols.so: undefined symbol: static_function",
            "./lookup/libsymbols.so: undefined symbol: undefined_function",
        ],
    );
    Ok(())
}

fn versions(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let map = format!("-Wl,--version-script={}", context.programs.join("dlfcn/versions.map").display());
    Build::new("dlfcn/versions.c").shared().flag(map).output("lookup/libversions.so").build(context)?;
    script.same(
        context,
        report,
        "dlvsym: default, hidden and missing versions",
        &[
            "open a ./lookup/libversions.so now",
            "version a f V1",
            "version a f V2",
            "version a f V3",
            "version a f V9",
            "version a nosuch V1",
            "call a f",
            "version a g V1",
            "sym a g",
            "call a plain",
            "version a plain V1",
            "version a plain V2",
        ],
        &[
            "a opened",
            "f@V1 1",
            "f@V2 2",
            "f@V3 3",
            "./lookup/libversions.so: undefined symbol: f, version V9",
            "./lookup/libversions.so: undefined symbol: nosuch, version V1",
            "f 2",
            "g@V1 4",
            "./lookup/libversions.so: undefined symbol: g",
            "plain 5",
            "plain@V1 5",
            "./lookup/libversions.so: undefined symbol: plain, version V2",
        ],
    );
    script.same(
        context,
        report,
        "dlvsym with RTLD_DEFAULT and RTLD_NEXT",
        &[
            "open a ./lookup/libversions.so now+global",
            "version default f V1",
            "version default f V3",
            "version default f V9",
            "version next f V3",
            "version default which V1",
        ],
        &[
            "a opened",
            "f@V1 1",
            "f@V3 3",
            "./script: undefined symbol: f, version V9",
            "f@V3 3",
            "./script: undefined symbol: which, version V1",
        ],
    );
    Ok(())
}

/// What a preloaded library sees as next, and the program.
fn from_preload(context: &Context, report: &mut Report, script: &Script) {
    let lines = [
        "ask default ask_next which",
        "ask default ask_next own_24",
        "ask default ask_next getpid",
        "sym next which",
        "sym next ask_next",
    ];
    let want = ["lib24.so", "lib24.so", "libc.so.6", "which in lib24.so", "ask_next in libcaller.so"];
    for (way, bind) in WAYS {
        let want = script.transcript(&want);
        compare(context, report, "RTLD_NEXT of a preloaded library", way, bind, Want::Clean(&want), || {
            Run::new(&script.program).args(lines).env("LD_PRELOAD", "./lookup/libcaller.so ./lookup/lib24.so")
        });
    }
}
