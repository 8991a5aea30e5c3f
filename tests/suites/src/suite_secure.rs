//! Suite `secure`: set-uid programs, and programs that cannot know whether they are. A hostile environment has no effect, is
//! not handed on, and nothing is read, written or said because of it. Needs root and a file system without `nosuid`: without
//! these its checks fail in words. The programs are started by a launcher that drops the privilege and executes with exactly
//! the environment given; each reports the interpreter it runs on, which is asserted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::harness::{Build, Context, Report};

/// The user that starts the set-uid programs.
const NOBODY: u32 = 65534;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let place = Place::build(context)?;
    controls(context, report, &place)?;
    hostile(context, report, &place)?;
    single(context, report, &place)?;
    entries(report, &place)?;
    library_path(context, report, &place)?;
    descriptors(report, &place)?;
    direct(context, report, &place)?;
    without_the_word(context, report, &place)
}

/// The files of the suite.
struct Place {
    loader: PathBuf,
    launch: PathBuf,
    launch_closed: PathBuf,
    without: PathBuf,
    /// The program, not set-uid, set-uid and set-gid, with our interpreter; and set-uid with ld-linux.
    plain: PathBuf,
    user: PathBuf,
    group: PathBuf,
    reference: PathBuf,
    /// A directory that anybody may write to, where the programs run: a relative path must not be found in it.
    box_directory: PathBuf,
    evil: PathBuf,
}

/// What a run left.
struct Seen {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Seen {
    fn told(&self) -> String {
        format!("status {:?}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr)
    }

    fn lines(&self, word: &str) -> Vec<String> {
        let prefix = format!("{word} <");
        let lines = self.stdout.lines().filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix('>'));
        lines.map(str::to_owned).collect()
    }

    fn first(&self) -> &str {
        self.stdout.lines().next().unwrap_or_default()
    }
}

impl Place {
    fn build(context: &Context) -> Result<Place> {
        ensure!(nix::unistd::geteuid().is_root(), "set-uid programs of root can only be made by root");
        let evil = |output: &str, soname: &str| {
            Build::new("secure/evil.c").shared().flag(format!("-Wl,-soname,{soname}")).output(output).build(context)
        };
        let evil_library = evil("box/evil.so", "evil.so")?;
        for place in ["bin/ld", "box/relative", "box"] {
            evil(&format!("{place}/libbeside.so"), "libbeside.so")?;
        }
        let good = Build::inline("beside.c", "int beside(void) { return 1; }\n")
            .shared()
            .flag("-Wl,-soname,libbeside.so")
            .output("good/libbeside.so")
            .build(context)?;
        // Only the last of these directories may be searched in secure mode.
        let runpath = format!(
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN/ld:relative:./relative::{}",
            context.work.join("good").display()
        );
        let victim = |output: &str, flag: &str| {
            Build::new("secure/victim.c").flags(&["-Wl,--no-as-needed", flag]).with(&good).output(output)
        };
        let plain = victim("bin/plain", &runpath).interpreter(&context.loader).build(context)?;
        let user = victim("bin/user", &runpath).interpreter(&context.loader).build(context)?;
        let group = victim("bin/group", &runpath).interpreter(&context.loader).build(context)?;
        let absolute = format!("-Wl,--enable-new-dtags,-rpath,{}", context.work.join("good").display());
        let reference = victim("bin/reference", &absolute).build(context)?;
        for (file, mode) in [(&user, 0o4755), (&group, 0o2755), (&reference, 0o4755)] {
            chown(file, Some(0), Some(0))?;
            fs::set_permissions(file, fs::Permissions::from_mode(mode))?;
        }
        let box_directory = context.work.join("box");
        fs::set_permissions(&box_directory, fs::Permissions::from_mode(0o777))?;
        let launch = Build::new("secure/launch.c").output("bin/launch").build(context)?;
        let launch_closed = Build::new("secure/launch.c").output("bin/launch-closed").build(context)?;
        let without = Build::new("secure/without_at_secure.c").output("bin/without").build(context)?;
        Ok(Place {
            loader: context.loader.clone(),
            launch,
            launch_closed,
            without,
            plain,
            user,
            group,
            reference,
            box_directory,
            evil: evil_library,
        })
    }

    /// Starts `launcher ARGUMENTS... -- VARIABLES...` in the box.
    fn start(&self, launcher: &Path, arguments: &[&str], variables: &[String]) -> Result<Seen> {
        let mut command = Command::new(launcher);
        command
            .args(arguments)
            .arg("--")
            .args(variables)
            .env_clear()
            .current_dir(&self.box_directory)
            .stdin(Stdio::null());
        let output = command.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Seen { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }

    /// Starts one of the programs as nobody.
    fn launch(&self, program: &Path, variables: &[String]) -> Result<Seen> {
        self.start(&self.launch, &[&NOBODY.to_string(), &program.to_string_lossy()], variables)
    }

    /// Names of all files where one could have been written.
    fn files(&self) -> Result<BTreeSet<PathBuf>> {
        let mut names = BTreeSet::new();
        for directory in [self.box_directory.as_path(), Path::new("/var/tmp"), Path::new("/var/profile")] {
            if let Ok(entries) = fs::read_dir(directory) {
                names.extend(entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|entry| entry.path()));
            }
        }
        Ok(names)
    }

    /// The environment of the attack: every variable that some loader or libc has ever listened to, twice where that has ever
    /// mattered; between them the two entries that must survive.
    fn attack(&self) -> Vec<String> {
        let at = self.box_directory.display();
        let evil = self.evil.display();
        let list = format!(
            "LD_PRELOAD={evil}\nLD_PRELOAD=evil.so\nLD_PRELOAD=libbeside.so:{evil}\nLD_LIBRARY_PATH={at}\nLD_AUDIT={evil}\nLD_DEBUG=all\n\
             LD_DEBUG_OUTPUT={at}/debug\nLD_SHOW_AUXV=1\nLD_BIND_NOW=1\nLD_BIND_NOT=1\nLD_USE_LOAD_BIAS=0\nLD_WARN=1\nLD_VERBOSE=1\n\
             LD_TRACE_LOADED_OBJECTS=1\nLD_TRACE_PRELINKING=1\nLD_PROFILE=libc.so.6\nLD_PROFILE_OUTPUT={at}\nLD_DYNAMIC_WEAK=1\n\
             GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.mxfast=glibc.malloc.mxfast=A\nLD_ORIGIN_PATH={at}\nNOEQUALS\n\
             LD_LIBRARY_PATH=.\nLD_LIBRARY_PATH=\nTMPDIR={at}\nMALLOC_CHECK_=3\nMALLOC_TRACE={at}/trace\nLD_PREFER_MAP_32BIT_EXEC=1\n\
             LD_HWCAP_MASK=1\nLD_ASSUME_KERNEL=2.4\nLD_FALLBACK=/x\nLD_STATIC_TLS_EXTRA=999999\nLD_FOO=1\nLD_=1\nLD_NOVALUE\nGCONV_PATH={at}\n\
             GETCONF_DIR={at}\nHOSTALIASES={at}/h\nLOCALDOMAIN=x\nLOCPATH={at}\nNIS_PATH={at}\nNLSPATH={at}\nRESOLV_HOST_CONF={at}/r\n\
             RES_OPTIONS=x\nTZDIR={at}\nGLIBC_TUNABLES=glibc.malloc.perturb=255\nKEEP=1"
        );
        list.lines().map(str::to_owned).collect()
    }
}

/// What must be so for the rest to show anything: the attack works on a program that is not set-uid, and set-uid is honoured.
fn controls(context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    let preload = [format!("LD_PRELOAD={}", place.evil.display())];
    let seen = place.launch(&place.plain, &preload)?;
    let works = seen.stderr.contains("EVIL") && seen.first().contains("secure 0 uid 65534 65534 evil 666");
    report.check(
        "control: LD_PRELOAD works on a program that is not set-uid",
        if works { Ok(()) } else { Err(seen.told()) },
    );
    let seen = place.launch(&place.plain, &[])?;
    report.check(
        "control: $ORIGIN works on a program that is not set-uid",
        if seen.first().contains("beside 667") { Ok(()) } else { Err(seen.told()) },
    );
    let interpreter = format!("interpreter {}", context.loader.display());
    for (program, identity) in [(&place.user, "uid 65534 0"), (&place.group, "uid 65534 65534")] {
        let seen = place.launch(program, &[])?;
        let right = seen.first().contains(&format!("secure 1 {identity}")) && seen.stdout.contains(&interpreter);
        let hint = "is the file system mounted nosuid, or the process under no_new_privs?";
        report.check(
            format!("control: {} is in secure mode, on our loader", program.display()),
            if right { Ok(()) } else { Err(format!("{hint}\n{}", seen.told())) },
        );
    }
    Ok(())
}

/// The whole attack at once.
fn hostile(context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    for (program, what, identity) in
        [(&place.user, "set-uid", "uid 65534 0"), (&place.group, "set-gid", "uid 65534 65534")]
    {
        let before = place.files()?;
        let seen = place.launch(program, &place.attack())?;
        let told = || Err(seen.told());
        report.check(
            format!("{what}: the program runs, in secure mode"),
            if seen.status == Some(0) { Ok(()) } else { told() },
        );
        report.equal(
            format!("{what}: no evil library, and the only directory searched is the absolute one"),
            seen.first(),
            format!("secure 1 {identity} evil 0 beside 1"),
        );
        report.equal(format!("{what}: environment handed on"), seen.lines("environment"), vec!["NOEQUALS", "KEEP=1"]);
        report.equal(format!("{what}: standard error"), seen.stderr.as_str(), "");
        report.equal(format!("{what}: nothing was written"), place.files()?, before);
        let good = context.work.join("good").display().to_string();
        let objects = seen.lines("object");
        let strange =
            objects.iter().find(|name| name.starts_with(&*context.work.to_string_lossy()) && !name.starts_with(&good));
        report.check(
            format!("{what}: no object but its own"),
            if strange.is_none() && objects.len() >= 4 { Ok(()) } else { told() },
        );
        let others = seen.stdout.lines().filter(|line| {
            !["secure ", "argc ", "environment ", "object ", "interpreter "].iter().any(|word| line.starts_with(word))
        });
        report.equal(format!("{what}: nothing else was printed"), others.collect::<Vec<_>>(), Vec::<&str>::new());
    }
    Ok(())
}

/// Each variable alone: no effect, not handed on; and everything that ld-linux takes away, ours does too.
fn single(_context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    let plain = place.launch(&place.user, &[])?;
    for entry in place.attack() {
        let seen = place.launch(&place.user, &["FIRST=1".to_owned(), entry.clone(), "LAST=1".to_owned()])?;
        let survives = entry == "NOEQUALS" || entry == "KEEP=1";
        let want: Vec<&str> = if survives { vec!["FIRST=1", &entry, "LAST=1"] } else { vec!["FIRST=1", "LAST=1"] };
        let same = seen.first() == plain.first()
            && seen.stderr.is_empty()
            && seen.status == Some(0)
            && seen.lines("environment") == want;
        let result = if same {
            Ok(())
        } else {
            Err(format!("expected the environment {want:?} and {}\ngot      {}", plain.first(), seen.told()))
        };
        report.check(format!("alone: {entry}"), result);
        let reference = place.launch(&place.reference, std::slice::from_ref(&entry))?;
        let kept = seen.lines("environment");
        let extra = kept.contains(&entry) && !reference.lines("environment").contains(&entry);
        report.check(
            format!("not handed on where ld-linux does not: {entry}"),
            if extra { Err(seen.told()) } else { Ok(()) },
        );
    }
    Ok(())
}

/// Odd shapes of environments: what is no variable of the loader stays, in order.
fn entries(report: &mut Report, place: &Place) -> Result<()> {
    let many: Vec<String> = (0..2000).map(|number| format!("LD_PRELOAD={number}")).collect();
    let around = |inner: &[String]| [&["A=1".to_owned()][..], inner, &["B=2".to_owned()][..]].concat();
    let cases: Vec<(&str, Vec<String>, Vec<&str>)> = vec![
        ("2000 times LD_PRELOAD", around(&many), vec!["A=1", "B=2"]),
        ("only variables of the loader", many.clone(), vec![]),
        (
            "names that only begin alike",
            ["LDX=1", "TMPDIRX=1", "ld_preload=1", "XLD_PRELOAD=1", "TZ=UTC"].map(str::to_owned).to_vec(),
            vec!["LDX=1", "TMPDIRX=1", "ld_preload=1", "XLD_PRELOAD=1", "TZ=UTC"],
        ),
        (
            "an entry without a name",
            ["=LD_PRELOAD=x", "LD_PRELOAD=x", "=", "C=3"].map(str::to_owned).to_vec(),
            vec!["=LD_PRELOAD=x", "=", "C=3"],
        ),
        ("an empty entry", ["D=1", "", "LD_DEBUG=all", "E=2"].map(str::to_owned).to_vec(), vec!["D=1", "", "E=2"]),
        (
            "names without a value",
            ["LD_PRELOAD", "TMPDIR", "GLIBC_TUNABLES", "F=1"].map(str::to_owned).to_vec(),
            vec!["F=1"],
        ),
        ("a very long value", around(&[format!("LD_LIBRARY_PATH={}", ":".repeat(100_000))]), vec!["A=1", "B=2"]),
    ];
    for (what, variables, want) in cases {
        let seen = place.launch(&place.user, &variables)?;
        let got = seen.lines("environment");
        let right = got == want && seen.stderr.is_empty() && seen.status == Some(0);
        report.check(what, if right { Ok(()) } else { Err(format!("expected {want:?}\ngot      {}", seen.told())) });
    }
    Ok(())
}

/// A library that only LD_LIBRARY_PATH could find is not found, and the message tells nothing of the environment.
fn library_path(context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    let program = Build::new("secure/victim.c")
        .flag("-Wl,--no-as-needed")
        .interpreter(&context.loader)
        .with(context.work.join("good/libbeside.so"))
        .output("bin/bare")
        .build(context)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    let good = context.work.join("good").display().to_string();
    let seen =
        place.launch(&program, &[format!("LD_LIBRARY_PATH={good}"), "LD_PRELOAD=/some/attack/text".to_owned()])?;
    let want = format!(
        "{}: error while loading shared libraries: libbeside.so: cannot open shared object file: No such file or directory\n",
        program.display()
    );
    report.equal("a library in LD_LIBRARY_PATH only", (seen.status, seen.stderr), (Some(127), want));
    Ok(())
}

/// The standard descriptors are open in a set-uid program, whatever it was started with: a file that it opens for itself must
/// not become its standard error.
fn descriptors(report: &mut Report, place: &Place) -> Result<()> {
    for (program, what) in [(&place.reference, "ld-linux"), (&place.user, "our loader")] {
        let arguments = [&NOBODY.to_string(), &*program.to_string_lossy(), "descriptors"].map(str::to_owned);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let seen = place.start(&place.launch_closed, &arguments, &[])?;
        report.equal(format!("closed standard descriptors are opened in secure mode ({what})"), seen.status, Some(43));
    }
    Ok(())
}

/// A set-uid file given to the loader: no privilege, and no secure mode.
fn direct(context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    let (user, loader) = (NOBODY.to_string(), context.loader.to_string_lossy().into_owned());
    let seen = place.start(
        &place.launch,
        &[&user, &loader, &place.user.to_string_lossy()],
        &["KEEP=1".to_owned(), "LD_FALLBACK=never".to_owned()],
    )?;
    let right = seen.first().starts_with("secure 0 uid 65534 65534 ") && seen.status == Some(0);
    report.check("a set-uid file given to the loader has no privilege", if right { Ok(()) } else { Err(seen.told()) });
    Ok(())
}

/// A kernel, or whoever else built the stack, that does not say whether the process is privileged: it is taken to be.
fn without_the_word(context: &Context, report: &mut Report, place: &Place) -> Result<()> {
    let program = place.plain.to_string_lossy().into_owned();
    let loader = place.loader.to_string_lossy().into_owned();
    for (what, arguments) in
        [("by the kernel", vec![program.as_str()]), ("directly", vec![loader.as_str(), program.as_str()])]
    {
        let seen = place.start(&place.without, &arguments, &place.attack())?;
        let (first, environment) = (seen.first().to_owned(), seen.lines("environment"));
        report.equal(
            format!("AT_SECURE absent, started {what}: nothing evil"),
            (seen.status, first.as_str()),
            (Some(0), "secure 0 uid 0 0 evil 0 beside 1"),
        );
        report.equal(
            format!("AT_SECURE absent, started {what}: environment handed on"),
            environment,
            vec!["NOEQUALS", "KEEP=1"],
        );
        report.equal(format!("AT_SECURE absent, started {what}: standard error"), seen.stderr.as_str(), "");
        let interpreter = format!("interpreter {}", context.loader.display());
        report.check(
            format!("AT_SECURE absent, started {what}: on our loader"),
            if seen.stdout.contains(&interpreter) { Ok(()) } else { Err(seen.told()) },
        );
    }
    Ok(())
}
