//! The cache and the default directories, in a mount namespace where /etc and the library directories are ours: what they
//! find, what comes before what, DF_1_NODEFLIB, and a damaged cache, which must be as good as none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::hwcaps::supported_levels;
use super::rules::MISSING;
use super::{Store, WRONG_CLASS};
use crate::harness::{Bind, Build, Context, Report, Run, Way};
use crate::namespace::{Namespace, in_namespace, place};
use crate::same::{Want, label, same, written};

const CACHE: &str = "/etc/ld.so.cache";
/// In the order in which glibc searches them, as Debian builds it.
const DEFAULT_DIRECTORIES: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib"];

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    in_namespace(context, |namespace| cached(context, report, store, namespace))?;
    in_namespace(context, |namespace| defaults(context, report, store, namespace))?;
    in_namespace(context, |namespace| damaged(context, report, store, namespace))
}

/// Makes the cache anew from these directories and the system's own.
fn make_cache(context: &Context, directories: &[PathBuf]) -> Result<()> {
    let list = context.work.join("cache.conf");
    let mut text = String::from("include /etc/ld.so.conf.d/*.conf\n");
    for directory in directories {
        text.push_str(&format!("{}\n", directory.display()));
    }
    fs::write(&list, text)?;
    let output = Command::new("/sbin/ldconfig").arg("-f").arg(&list).arg("-C").arg(CACHE).output()?;
    if !output.status.success() {
        bail!("ldconfig: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn cached(context: &Context, report: &mut Report, store: &Store, namespace: &Namespace) -> Result<()> {
    namespace.overlay("/etc")?;
    namespace.overlay("/usr/lib/x86_64-linux-gnu")?;
    let base = context.work.join("cached");
    let in_cache = base.join("cached");
    store.place(3, &in_cache)?;
    store.place(1, &base.join("d1"))?;
    store.place(2, &base.join("d2"))?;
    store.place(WRONG_CLASS, &base.join("wrong"))?;
    let plain = store.printer(context, "cached/plain", &[])?;
    let with_runpath = store.printer(
        context,
        "cached/runpath",
        &[&format!("-Wl,--enable-new-dtags,-rpath,{}", base.join("d1").display())],
    )?;
    same(context, report, "not found without a cache entry", &plain, MISSING, |run| run);
    make_cache(context, std::slice::from_ref(&in_cache))?;
    same(context, report, "the cache finds a library", &plain, Want::Prints("3"), |run| run);
    same(context, report, "RUNPATH comes before the cache", &with_runpath, Want::Prints("1"), |run| run);
    same(context, report, "LD_LIBRARY_PATH comes before the cache", &plain, Want::Prints("2"), |run| {
        run.env("LD_LIBRARY_PATH", base.join("d2"))
    });
    same(
        context,
        report,
        "after a wrong class in LD_LIBRARY_PATH the cache is asked",
        &plain,
        Want::Prints("3"),
        |run| run.env("LD_LIBRARY_PATH", base.join("wrong")),
    );
    inhibited(context, report, &plain, &MISSING);
    store.place(4, Path::new("/usr/lib/x86_64-linux-gnu"))?;
    same(context, report, "the cache comes before the default directories", &plain, Want::Prints("3"), |run| run);
    inhibited(context, report, &plain, &Want::Prints("4"));
    fs::remove_file("/usr/lib/x86_64-linux-gnu/libw.so")?;

    no_default_directories(context, report, store)?;

    let supported = supported_levels(context)?;
    let mut want = 3;
    for level in 2..=4u32 {
        let name = format!("x86-64-v{level}");
        store.place(level + 3, &in_cache.join("glibc-hwcaps").join(&name))?;
        if supported.contains(&name) {
            want = level + 3;
        }
        make_cache(context, std::slice::from_ref(&in_cache))?;
        let name = format!("the cache with glibc-hwcaps up to {name}");
        same(context, report, &name, &plain, Want::Prints(&want.to_string()), |run| run);
    }
    fs::remove_dir_all(in_cache.join("glibc-hwcaps"))?;

    fs::remove_file(in_cache.join("libw.so"))?;
    same(context, report, "a cache entry whose file is gone", &plain, MISSING, |run| run);
    store.place(4, Path::new("/usr/lib/x86_64-linux-gnu"))?;
    same(
        context,
        report,
        "after a stale cache entry the default directories are searched",
        &plain,
        Want::Prints("4"),
        |run| run,
    );
    Ok(())
}

/// `--inhibit-cache`, an option that ld-linux has as well.
fn inhibited(context: &Context, report: &mut Report, program: &Path, want: &Want) {
    for bind in [Bind::Lazy, Bind::Now] {
        let run = Run::new(program).way(Way::Direct).bind(bind).loader_options(["--inhibit-cache"]);
        let result =
            run.output(context).map_err(|error| format!("{error:#}")).and_then(|outcome| want.accepts(&outcome));
        report.check(format!("--inhibit-cache: {want:?} ({})", label(Way::Direct, bind)), result);
    }
}

/// DF_1_NODEFLIB: a library marked so finds nothing in the default directories, through the cache or not.
fn no_default_directories(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    let directory = context.work.join("nodeflib");
    fs::create_dir_all(&directory)?;
    for (mark, flags) in [("marked", "-Wl,-z,nodefaultlib"), ("plain", "-Wl,-z,lazy")] {
        let relay = Build::new("search/relay.c")
            .shared()
            .flags(&["-DNAME=relay", "-DNEXT=which", "-Wl,-soname,librelay.so", "-nostdlib", flags])
            .with(store.library(1))
            .output(format!("nodeflib/{mark}/librelay.so"))
            .build(context)?;
        let runpath = format!("-Wl,--enable-new-dtags,-rpath,{}", directory.join(mark).display());
        let program = Build::new("search/print_relay.c")
            .flags(&[&runpath, "-Wl,--unresolved-symbols=ignore-in-shared-libs"])
            .with(relay)
            .output(format!("nodeflib/{mark}/program"))
            .build(context)?;
        // Through the cache, from a directory that is no default one: the mark does not matter.
        same(
            context,
            report,
            &format!("{mark}: cache entry outside the default directories"),
            &program,
            Want::Prints("3"),
            |run| run,
        );
        // Through the default directories, without a cache entry, then with one.
        let hidden = context.work.join("cached/cached/libw.so");
        let aside = hidden.with_file_name("aside");
        fs::rename(&hidden, &aside)?;
        make_cache(context, &[])?;
        store.place(4, Path::new("/usr/lib/x86_64-linux-gnu"))?;
        for entry in ["no cache entry", "cache entry"] {
            let name = format!("{mark}: default directory, {entry}");
            if mark == "marked" {
                // ld-linux leaves out the reason here: it tried no file, so there was no error number.
                let want = Want::Fails(127, "libw.so: cannot open shared object file");
                written(context, report, &name, &program, want, |run| run);
            } else {
                same(context, report, &name, &program, Want::Prints("4"), |run| run);
            }
            make_cache(context, &[])?;
        }
        fs::remove_file("/usr/lib/x86_64-linux-gnu/libw.so")?;
        fs::rename(&aside, &hidden)?;
        make_cache(context, &[context.work.join("cached/cached")])?;
    }
    Ok(())
}

fn defaults(context: &Context, report: &mut Report, store: &Store, namespace: &Namespace) -> Result<()> {
    namespace.overlay("/etc")?;
    namespace.overlay("/usr/lib")?;
    let program = store.printer(context, "defaults/program", &[])?;
    for (number, directory) in (1..).zip(DEFAULT_DIRECTORIES).collect::<Vec<_>>().into_iter().rev() {
        store.place(number, Path::new(directory))?;
        let want = number.to_string();
        same(context, report, &format!("default directory {directory}"), &program, Want::Prints(&want), |run| run);
    }
    let supported = supported_levels(context)?;
    let mut want = 1;
    for level in 2..=4u32 {
        let name = format!("x86-64-v{level}");
        store.place(level, &Path::new(DEFAULT_DIRECTORIES[0]).join("glibc-hwcaps").join(&name))?;
        if supported.contains(&name) {
            want = level;
        }
        let text = want.to_string();
        same(
            context,
            report,
            &format!("default directory with glibc-hwcaps up to {name}"),
            &program,
            Want::Prints(&text),
            |run| run,
        );
    }
    Ok(())
}

/// A cache cut or changed in 64 places, absent, empty, a directory: the program starts through the default directories.
fn damaged(context: &Context, report: &mut Report, store: &Store, namespace: &Namespace) -> Result<()> {
    namespace.overlay("/etc")?;
    let base = context.work.join("damaged");
    store.place(1, &base.join("d1"))?;
    let program = store.printer(
        context,
        "damaged/program",
        &[&format!("-Wl,--enable-new-dtags,-rpath,{}", base.join("d1").display())],
    )?;
    let mut starts = |name: String| {
        for way in [Way::Direct, Way::Interpreter] {
            let run = Run::new(&program).way(way).limit(20);
            let result = run
                .output(context)
                .map_err(|error| format!("{error:#}"))
                .and_then(|outcome| Want::Prints("1").accepts(&outcome));
            report.check(format!("{name} ({})", label(way, Bind::Lazy)), result);
        }
    };
    let whole = fs::read(CACHE)?;
    for step in 0..32 {
        let length = whole.len() * step / 32;
        fs::write(CACHE, whole.get(..length).unwrap_or_default())?;
        starts(format!("ld.so.cache cut to {length} of {} bytes", whole.len()));
    }
    // The header's and the first entries' numbers, then places all over the file; a run of eight bytes each.
    for step in 0..32 {
        let place = if step < 24 { step * 4 } else { whole.len() / 8 * (step - 24) };
        for value in [0xff, 0x7f] {
            let mut bytes = whole.clone();
            for byte in bytes.iter_mut().skip(place).take(8) {
                *byte = value;
            }
            fs::write(CACHE, &bytes)?;
            starts(format!("ld.so.cache with eight bytes {value:#x} at {place:#x}"));
        }
    }
    let noise: Vec<u8> = (0..4096u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(CACHE, noise)?;
    starts("ld.so.cache of noise".to_owned());
    fs::remove_file(CACHE)?;
    starts("no ld.so.cache".to_owned());
    fs::create_dir(CACHE)?;
    starts("ld.so.cache is a directory".to_owned());
    fs::remove_dir(CACHE)?;
    place(&store.library(1), Path::new(CACHE))?;
    starts("ld.so.cache is an ELF file".to_owned());
    Ok(())
}
