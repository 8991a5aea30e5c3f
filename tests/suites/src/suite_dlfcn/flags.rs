//! The modes of dlopen, one case each: LAZY, NOW, GLOBAL, LOCAL, NOLOAD, NODELETE, DEEPBIND, no file, no mode.

use super::{Script, node};
use crate::harness::{Context, Report};
use anyhow::Result;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let plain = node(context, "flags", 11, &[], &[])?;
    node(context, "flags", 12, &["-DCALLS=nowhere"], &[])?;
    node(context, "flags", 13, &["-DCALLS=own_11"], &[])?;
    node(context, "flags", 14, &["-Wl,-z,nodelete"], &[])?;
    node(context, "flags", 15, &["-DCALLS=own_11"], &[&plain])?;
    node(context, "flags", 16, &["-Wl,-z,now", "-DCALLS=nowhere"], &[])?;
    node(context, "flags", 17, &["-DQUIET"], &[])?;
    node(context, "flags", 18, &["-DQUIET"], &[])?;
    binding(context, report, script);
    scopes(context, report, script);
    staying(context, report, script);
    script.same(
        context,
        report,
        "RTLD_DEEPBIND: a library's own definitions come first",
        &[
            "open a ./flags/lib17.so now+deepbind",
            "call a ask_which",
            "open b ./flags/lib18.so now",
            "call b ask_which",
        ],
        &["a opened", "ask_which 17", "b opened", "ask_which 1"],
    );
    Ok(())
}

fn binding(context: &Context, report: &mut Report, script: &Script) {
    let undefined = "not opened: ./flags/lib12.so: undefined symbol: nowhere";
    script.by_bind(
        context,
        report,
        "RTLD_LAZY: an undefined function that is not called does no harm",
        &["open a ./flags/lib12.so lazy", "sym default own_12"],
        &["+12", "a opened", "./script: undefined symbol: own_12", "end", "-12"],
        &[&format!("a {undefined}"), "./script: undefined symbol: own_12"],
    );
    script.same(
        context,
        report,
        "RTLD_NOW: an undefined function is an error, and nothing stays",
        &["open a ./flags/lib12.so now", "mapped lib12.so", "error"],
        &[&format!("a {undefined}"), "lib12.so not mapped", "error (none)"],
    );
    script.same(
        context,
        report,
        "RTLD_LAZY of a library linked with -z now",
        &["open a ./flags/lib16.so lazy", "mapped lib16.so"],
        &["a not opened: ./flags/lib16.so: undefined symbol: nowhere", "lib16.so not mapped"],
    );
    script.same(
        context,
        report,
        "no mode",
        &["open a ./flags/lib11.so none", "open a ./flags/lib11.so global"],
        &[
            "a not opened: ./flags/lib11.so: invalid mode for dlopen(): Invalid argument",
            "a not opened: ./flags/lib11.so: invalid mode for dlopen(): Invalid argument",
        ],
    );
}

fn scopes(context: &Context, report: &mut Report, script: &Script) {
    let missing = "not opened: ./flags/lib13.so: undefined symbol: own_11";
    script.same(
        context,
        report,
        "RTLD_LOCAL: others do not see it",
        &["open a ./flags/lib11.so now+local", "open b ./flags/lib13.so now", "sym default own_11", "call a own_11"],
        &["+11", "a opened", &format!("b {missing}"), "./script: undefined symbol: own_11", "own_11 11", "end", "-11"],
    );
    script.same(
        context,
        report,
        "RTLD_GLOBAL: others see it",
        &[
            "open a ./flags/lib11.so now+global",
            "open b ./flags/lib13.so now",
            "call b call_other",
            "call default own_11",
        ],
        &["+11", "a opened", "+13", "b opened", "call_other 11", "own_11 11", "end", "-13", "-11"],
    );
    script.same(
        context,
        report,
        "RTLD_GLOBAL promotes a library opened RTLD_LOCAL",
        &[
            "open a ./flags/lib11.so now+local",
            "open b ./flags/lib13.so now",
            "open c ./flags/lib11.so now+global",
            "same a c",
            "open b ./flags/lib13.so now",
            "call b call_other",
        ],
        &[
            "+11",
            "a opened",
            &format!("b {missing}"),
            "c opened",
            "same",
            "+13",
            "b opened",
            "call_other 11",
            "end",
            "-13",
            "-11",
        ],
    );
    script.same(
        context,
        report,
        "RTLD_GLOBAL takes the libraries needed with it",
        &["open a ./flags/lib15.so now+global", "call default own_11", "call default own_15"],
        &["+11", "+15", "a opened", "own_11 11", "own_15 15", "end", "-15", "-11"],
    );
    script.same(
        context,
        report,
        "RTLD_GLOBAL is not undone by RTLD_LOCAL",
        &["open a ./flags/lib11.so now+global", "open b ./flags/lib11.so now+local", "call default own_11"],
        &["+11", "a opened", "b opened", "own_11 11", "end", "-11"],
    );
    script.same(
        context,
        report,
        "a library that is no longer there is no longer in the global scope",
        &["open a ./flags/lib11.so now+global", "close a", "sym default own_11", "open b ./flags/lib13.so now"],
        &["+11", "a opened", "-11", "a closed", "./script: undefined symbol: own_11", &format!("b {missing}")],
    );
    script.same(
        context,
        report,
        "NULL is the program with everything global",
        &[
            "open p - now",
            "call p which",
            "sym p own_11",
            "open a ./flags/lib11.so now+global",
            "call p own_11",
            "call p which",
            "close p",
            "close p",
            "call p which",
        ],
        &[
            "p opened",
            "which 1",
            "./script: undefined symbol: own_11",
            "+11",
            "a opened",
            "own_11 11",
            "which 1",
            "p closed",
            "p closed",
            "which 1",
            "end",
            "-11",
        ],
    );
}

fn staying(context: &Context, report: &mut Report, script: &Script) {
    script.same(
        context,
        report,
        "RTLD_NOLOAD: only what is there, counted",
        &[
            "open a ./flags/lib11.so now+noload",
            "mapped lib11.so",
            "open a ./flags/lib11.so now",
            "open b ./flags/lib11.so now+noload",
            "same a b",
            "close a",
            "mapped lib11.so",
            "close b",
            "mapped lib11.so",
        ],
        &[
            "a not opened: (none)",
            "lib11.so not mapped",
            "+11",
            "a opened",
            "b opened",
            "same",
            "a closed",
            "lib11.so mapped",
            "-11",
            "b closed",
            "lib11.so not mapped",
        ],
    );
    script.same(
        context,
        report,
        "RTLD_NOLOAD with RTLD_GLOBAL promotes",
        &[
            "open a ./flags/lib11.so now",
            "sym default own_11",
            "open b ./flags/lib11.so now+noload+global",
            "call default own_11",
        ],
        &["+11", "a opened", "./script: undefined symbol: own_11", "b opened", "own_11 11", "end", "-11"],
    );
    script.same(
        context,
        report,
        "RTLD_NODELETE: dlclose leaves it, finalisers run at exit",
        &[
            "open a ./flags/lib11.so now+nodelete",
            "close a",
            "mapped lib11.so",
            "open a ./flags/lib11.so now",
            "call a own_11",
        ],
        &["+11", "a opened", "a closed", "lib11.so mapped", "a opened", "own_11 11", "end", "-11"],
    );
    script.same(
        context,
        report,
        "RTLD_NODELETE with RTLD_NOLOAD makes a library stay",
        &[
            "open a ./flags/lib11.so now",
            "open b ./flags/lib11.so now+noload+nodelete",
            "close b",
            "close a",
            "mapped lib11.so",
        ],
        &["+11", "a opened", "b opened", "b closed", "a closed", "lib11.so mapped", "end", "-11"],
    );
    script.same(
        context,
        report,
        "a library linked with -z nodelete stays",
        &["open a ./flags/lib14.so now", "close a", "mapped lib14.so"],
        &["+14", "a opened", "a closed", "lib14.so mapped", "end", "-14"],
    );
}
