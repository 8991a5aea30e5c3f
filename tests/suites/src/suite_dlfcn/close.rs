//! dlclose: counts, finalisers, what is unmapped and what keeps an object, handles that are none.

use super::{Script, node};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, written};
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    counts(context, report, script)?;
    needed(context, report, script)?;
    bound(context, report, script)?;
    handles(context, report, script);
    ending(context, report)
}

/// Loading while the process ends.
fn ending(context: &Context, report: &mut Report) -> Result<()> {
    let program = Build::new("dlfcn/ending.c").flag("-O1").build(context)?;
    let used = |who: &str| format!("+32\n{who}: opened\n{who}: 32\n-32\n");
    // What was opened is finalised before the program that opened it, in reverse (docs/decisions/0025); ld-linux finalises the
    // program first, and the two in the order in which they were opened.
    let want = format!(
        "+35\n+31\n{}{}atexit 31\n-31\n-35\n{}closed one, mapped 1",
        used("main"),
        used("handler"),
        used("destructor")
    );
    let name = "an atexit handler and a destructor open libraries";
    written(context, report, name, &program, Want::Clean(&want), |run| run);
    Ok(())
}

fn counts(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    node(context, "close", 31, &["-DATEXIT"], &[])?;
    script.same(
        context,
        report,
        "as many dlclose as dlopen",
        &[
            "open a ./close/lib31.so now",
            "open b ./close/lib31.so now",
            "same a b",
            "close a",
            "call b own_31",
            "mapped lib31.so",
            "close b",
            "mapped lib31.so",
            "open c ./close/lib31.so now+noload",
        ],
        &[
            "+31",
            "a opened",
            "b opened",
            "same",
            "a closed",
            "own_31 31",
            "lib31.so mapped",
            "-31",
            "atexit 31",
            "b closed",
            "lib31.so not mapped",
            "c not opened: (none)",
        ],
    );
    script.same(
        context,
        report,
        "opened again it begins anew",
        &[
            "open a ./close/lib31.so now",
            "put a shared_value 5",
            "get a shared_value",
            "close a",
            "open a ./close/lib31.so now",
            "get a shared_value",
        ],
        &[
            "+31",
            "a opened",
            "shared_value 5",
            "-31",
            "atexit 31",
            "a closed",
            "+31",
            "a opened",
            "shared_value 31",
            "end",
            "atexit 31",
            "-31",
        ],
    );
    Ok(())
}

/// 34 needs 33 and 32; 33 needs 32.
fn needed(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let base = node(context, "close", 32, &[], &[])?;
    let middle = node(context, "close", 33, &["-DCALLS=own_32"], &[&base])?;
    node(context, "close", 34, &["-DCALLS=own_33"], &[&middle, &base])?;
    script.same(
        context,
        report,
        "what was needed goes too, finalised in reverse",
        &[
            "open a ./close/lib34.so now",
            "call a call_other",
            "close a",
            "mapped lib32.so",
            "mapped lib33.so",
            "mapped lib34.so",
        ],
        &[
            "+32",
            "+33",
            "+34",
            "a opened",
            "call_other 33",
            "-34",
            "-33",
            "-32",
            "a closed",
            "lib32.so not mapped",
            "lib33.so not mapped",
            "lib34.so not mapped",
        ],
    );
    script.same(
        context,
        report,
        "a needed library that was opened itself stays",
        &[
            "open a ./close/lib34.so now",
            "open b ./close/lib33.so now",
            "close a",
            "mapped lib34.so",
            "call b call_other",
            "close b",
            "mapped lib32.so",
        ],
        &[
            "+32",
            "+33",
            "+34",
            "a opened",
            "b opened",
            "-34",
            "a closed",
            "lib34.so not mapped",
            "call_other 32",
            "-33",
            "-32",
            "b closed",
            "lib32.so not mapped",
        ],
    );
    script.same(
        context,
        report,
        "a library that was opened before its user stays after it",
        &[
            "open b ./close/lib32.so now",
            "open a ./close/lib34.so now",
            "close b",
            "call a own_32",
            "close a",
            "mapped lib32.so",
        ],
        &[
            "+32",
            "b opened",
            "+33",
            "+34",
            "a opened",
            "b closed",
            "own_32 32",
            "-34",
            "-33",
            "-32",
            "a closed",
            "lib32.so not mapped",
        ],
    );
    script.same(
        context,
        report,
        "what is open at exit is finalised at exit, users first",
        &["open b ./close/lib32.so now", "open a ./close/lib34.so now"],
        &["+32", "b opened", "+33", "+34", "a opened", "end", "-34", "-33", "-32"],
    );
    Ok(())
}

/// A reference that was bound to a library keeps it, also to a weak definition (dlang/dmd#17307 shows what happens otherwise).
fn bound(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    node(context, "close", 35, &[], &[])?;
    node(context, "close", 36, &["-DCALLS=own_35"], &[])?;
    node(context, "close", 37, &["-DWEAK=weak_hook"], &[])?;
    node(context, "close", 38, &["-DCALLS=weak_hook"], &[])?;
    for (name, definer, user) in [("a function", 35, 36), ("a weak function", 37, 38)] {
        let open = format!("open a ./close/lib{definer}.so now+global");
        let now = format!("open b ./close/lib{user}.so now");
        let file = format!("mapped lib{definer}.so");
        let stays = format!("lib{definer}.so mapped");
        let gone = format!("lib{definer}.so not mapped");
        let answer = format!("call_other {definer}");
        script.same(
            context,
            report,
            &format!("bound at once to {name}: the definer stays as long as its user"),
            &[&open, &now, "close a", &file, "call b call_other", "close b", &file],
            &[
                &format!("+{definer}"),
                "a opened",
                &format!("+{user}"),
                "b opened",
                "a closed",
                &stays,
                &answer,
                &format!("-{user}"),
                &format!("-{definer}"),
                "b closed",
                &gone,
            ],
        );
        script.same(
            context,
            report,
            &format!("bound by a call to {name}: the definer stays as long as its user"),
            &[
                &open,
                &format!("open b ./close/lib{user}.so lazy"),
                "call b call_other",
                "close a",
                &file,
                "call b call_other",
                "close b",
                &file,
            ],
            &[
                &format!("+{definer}"),
                "a opened",
                &format!("+{user}"),
                "b opened",
                &answer,
                "a closed",
                &stays,
                &answer,
                &format!("-{user}"),
                &format!("-{definer}"),
                "b closed",
                &gone,
            ],
        );
    }
    script.by_bind(
        context,
        report,
        "not bound yet: nothing keeps the definer",
        &[
            "open a ./close/lib35.so now+global",
            "open b ./close/lib36.so lazy",
            "close a",
            "mapped lib35.so",
            "close b",
        ],
        &["+35", "a opened", "+36", "b opened", "-35", "a closed", "lib35.so not mapped", "-36", "b closed"],
        &["+35", "a opened", "+36", "b opened", "a closed", "lib35.so mapped", "-36", "-35", "b closed"],
    );
    Build::new("dlfcn/rebind.c").shared().flags(&["-O1", "-Wl,-z,lazy"]).output("close/librebind.so").build(context)?;
    script.same(
        context,
        report,
        "a name that RTLD_DEFAULT found from a library keeps the definer",
        &[
            "open a ./close/lib35.so now+global",
            "open b ./close/librebind.so now",
            "call b find",
            "close a",
            "call b again",
            "close b",
            "mapped lib35.so",
        ],
        &["+35", "a opened", "b opened", "find 35", "a closed", "again 35", "-35", "b closed", "lib35.so not mapped"],
    );
    Ok(())
}

fn handles(context: &Context, report: &mut Report, script: &Script) {
    script.same(
        context,
        report,
        "dlclose of what dlopen did not give",
        &["close stack", "close map:libc.so.6", "error"],
        &[
            "stack not closed: shared object not open",
            "map:libc.so.6 not closed: /lib/x86_64-linux-gnu/libc.so.6: shared object not open",
            "error (none)",
        ],
    );
    // glibc reads what lies behind such a handle, and dies of it or not.
    script.written(
        context,
        report,
        "dlclose of a handle that is closed already, and of none",
        &["open a ./close/lib31.so now", "close a", "close a", "close null", "error"],
        &[
            "+31",
            "a opened",
            "-31",
            "atexit 31",
            "a closed",
            "a not closed: shared object not open",
            "null not closed: shared object not open",
            "error (none)",
        ],
    );
}
