//! Where dlopen looks, seen from its caller, and what libc itself opens.

use super::{Script, node};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, same};
use anyhow::Result;
use std::fs;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    places(context, report, script)?;
    identity(context, report, script)?;
    let program = Build::new("dlfcn/internal.c").flags(&["-O1", "-rdynamic", "-pthread"]).build(context)?;
    let converted = "iconv UTF-7: 0 2b 42 42 59 20 7a 2b 41 50
iconv UTF-16: 0 ff fe 16 04 20 00 7a 00 fc 00
iconv UTF-32LE: 0 16 04 00 00 20 00 00 00 7a 00 00 00 fc 00 00 00
iconv ISO-8859-5: -1 b6 20 7a
iconv KOI8-R: -1 f6 20 7a
iconv CP1251: -1 c6 20 7a
iconv EUC-JP: 0 a7 a8 20 7a 8f ab e4
iconv SHIFT_JIS: -1 84 47 20 7a
iconv GB18030: 0 a7 a8 20 7a a8 b9
iconv IBM866: -1 86 20 7a
iconv NOSUCH: none";
    let want = format!(
        "{converted}\n{converted}
root 0, nobody 1
group root
localhost 0 127.0.0.1
tcp 6
locale C.UTF-8
backtrace 1, main named 1
cancelled 1, libgcc_s 1"
    );
    same(context, report, "iconv, NSS, getaddrinfo, backtrace, cancellation", &program, Want::Clean(&want), |run| run);
    Ok(())
}

/// `places/a/libfound.so` to `places/d/libfound.so` are 81 to 84.
fn places(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    for (number, place) in [(81, "a"), (82, "b"), (83, "c"), (84, "d")] {
        let library = node(context, "places", number, &["-DQUIET", "-Wl,-soname,"], &[])?;
        let directory = context.work.join("places").join(place);
        fs::create_dir_all(&directory)?;
        fs::rename(library, directory.join("libfound.so"))?;
    }
    let caller = |name: &str, flag: &str| {
        Build::new("dlfcn/caller.c").shared().flags(&["-O0", flag]).output(format!("places/{name}")).build(context)
    };
    caller("librunpath.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/a")?;
    caller("librpath.so", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/b")?;
    caller("libplain.so", "-O1")?;
    let program = |name: &str, flag: &str| {
        Build::new("dlfcn/script.c").flags(&["-O1", "-rdynamic", flag]).output(format!("places/{name}")).build(context)
    };
    let plain = program("plain", "-O1")?;
    let runpath = program("runpath", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/c")?;
    let rpath = program("rpath", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/c")?;
    let missing = "libfound.so: cannot open shared object file: No such file or directory";
    let from = |library: &str| {
        vec![
            format!("open l ./places/{library} now"),
            "ask l ask_opened libfound.so".to_owned(),
            "call found own_83".to_owned(),
        ]
        .into_iter()
        .take(2)
        .collect::<Vec<_>>()
    };
    let by_name = vec!["open f libfound.so now".to_owned(), "sym f own_83".to_owned(), "sym f own_84".to_owned()];
    let (eighty_three, eighty_four) = (
        "f opened\nown_83 in libfound.so\n@: undefined symbol: own_84",
        "f opened\n@: undefined symbol: own_83\nown_84 in libfound.so",
    );
    for (name, program, lines, library_path, want) in [
        ("the RUNPATH of the calling library", &plain, from("librunpath.so"), None, "l opened\nlibfound.so".to_owned()),
        ("the RPATH of the calling library", &plain, from("librpath.so"), None, "l opened\nlibfound.so".to_owned()),
        ("no path", &plain, from("libplain.so"), None, format!("l opened\n{missing}")),
        (
            "the RUNPATH of the program is not for a library's dlopen",
            &runpath,
            from("libplain.so"),
            None,
            format!("l opened\n{missing}"),
        ),
        ("the RPATH of the program is", &rpath, from("libplain.so"), None, "l opened\nlibfound.so".to_owned()),
        (
            "the RPATH of the program is not for a library with RUNPATH",
            &rpath,
            vec!["open l ./places/librunpath.so now".to_owned(), "ask l ask_opened libnowhere.so".to_owned()],
            None,
            format!("l opened\n{}", missing.replace("libfound", "libnowhere")),
        ),
        (
            "the program's RUNPATH for its own dlopen",
            &runpath,
            by_name.clone(),
            None,
            eighty_three.replace('@', &found(context, "c")),
        ),
        (
            "the program's RPATH for its own dlopen",
            &rpath,
            by_name.clone(),
            None,
            eighty_three.replace('@', &found(context, "c")),
        ),
        (
            "LD_LIBRARY_PATH comes before RUNPATH",
            &runpath,
            by_name.clone(),
            Some("places/d"),
            eighty_four.replace('@', "places/d/libfound.so"),
        ),
        (
            "RPATH comes before LD_LIBRARY_PATH",
            &rpath,
            by_name.clone(),
            Some("places/d"),
            eighty_three.replace('@', &found(context, "c")),
        ),
    ] {
        let want = format!("{want}\nend");
        same(context, report, &format!("places: {name}"), program, Want::Clean(&want), |run| {
            let run = run.args(&lines);
            match library_path {
                Some(path) => run.env("LD_LIBRARY_PATH", path),
                None => run,
            }
        });
    }
    script.same(
        context,
        report,
        "places: $ORIGIN and ${ORIGIN} in the name given to dlopen",
        &[
            "open f $ORIGIN/places/a/libfound.so now",
            "call f own_81",
            "open g ${ORIGIN}/places/b/libfound.so now",
            "call g own_82",
        ],
        &["f opened", "own_81 81", "g opened", "own_82 82"],
    );
    script.same(
        context,
        report,
        "places: the cache and the default directories",
        &["open f libz.so.1 now", "sym f zlibVersion", "open g libm.so.6 now", "sym g cos"],
        &["f opened", "zlibVersion in libz.so.1", "g opened", "cos in libm.so.6"],
    );
    Ok(())
}

/// The path by which `$ORIGIN/PLACE` of a program in `places` finds the library.
fn found(context: &Context, place: &str) -> String {
    context.work.join("places").join(place).join("libfound.so").display().to_string()
}

fn identity(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let library = node(context, "identity", 85, &[], &[])?;
    let place = context.work.join("identity");
    std::os::unix::fs::symlink(&library, place.join("link.so"))?;
    fs::copy(&library, place.join("copy.so"))?;
    script.same(
        context,
        report,
        "one file by several names is one object, by soname too; a copy is another",
        &[
            "open a ./identity/lib85.so now",
            "open b identity/../identity/link.so now",
            "same a b",
            "open c lib85.so now",
            "same a c",
            "open d ./identity/copy.so now",
            "same a d",
        ],
        &[
            "+85",
            "a opened",
            "b opened",
            "same",
            "c opened",
            "same",
            "+85",
            "d opened",
            "different",
            "end",
            "-85",
            "-85",
        ],
    );
    Ok(())
}
