//! gdb on a program with four threads and a plug-in: started by gdb, attached to while it runs, and on a core file.
//! Each session says of the program on our loader what it says of it under ld-linux in the same run: names and order of
//! the libraries with their symbols read, every thread's frames, thread-local variables of every thread, a breakpoint
//! in the C library.

use crate::harness::{Build, Context, Report, always, copy_with_interpreter, environment};
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The thread-local variables of the program, a library and the plug-in, with the unit digit that the program gives
/// their values.
const VARIABLES: [(&str, u32); 3] = [("program_local", 1), ("library_local", 2), ("plugin_local", 3)];

/// Runs the sessions.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let shared = |name: &str| Build::new(format!("debugger/{name}.c")).shared().flags(&["-g", "-O0"]).build(context);
    let plugin = shared("workers_plugin")?;
    let program = Build::new("debugger/workers.c")
        .flags(&["-g", "-O0", "-pthread", "-Wl,-rpath,$ORIGIN"])
        .with(shared("workers_library")?)
        .build(context)?;
    // In the same directory, for $ORIGIN.
    let ours = context.work.join("workers.rtld");
    copy_with_interpreter(&program, &ours, &context.loader)?;
    let place =
        |program: PathBuf| Place { context, core: program.with_extension("core"), program, plugin: plugin.clone() };
    let (reference, ours) = (place(program), place(ours));
    let sessions: [(&str, Session<'_>); 3] =
        [("started by gdb", Place::started), ("attached to", Place::attached), ("core file", Place::core_file)];
    for (name, session) in sessions {
        let want = session(&reference).with_context(|| format!("{name}, under ld-linux"))?;
        let values = VARIABLES.map(|(_, unit)| [10, 20, 30, 40].map(|tens| (tens + unit).to_string()).to_vec());
        ensure!(want.values == values && want.whole(name).is_ok(), "{name}, under ld-linux: {}", want.text);
        let got = session(&ours).with_context(|| name.to_owned())?;
        report.equal(format!("{name}: libraries, their order and their symbols"), &got.libraries, &want.libraries);
        let own = got
            .loaders
            .iter()
            .any(|line| line.starts_with("Yes ") && line.ends_with(&*context.loader.to_string_lossy()));
        report.check(
            format!("{name}: our loader is listed, its symbols are read"),
            if own { Ok(()) } else { Err(format!("{:?}", got.loaders)) },
        );
        report.equal(format!("{name}: thread-local variables in each thread"), &got.values, &values);
        report.check(format!("{name}: every thread's frames have names, up to its first"), got.whole(name));
        if name != "core file" {
            report.check(
                format!("{name}: a breakpoint in the C library is hit in the second thread"),
                if got.hit(name) { Ok(()) } else { Err(got.text) },
            );
        }
    }
    Ok(())
}

type Session<'a> = fn(&Place<'a>) -> anyhow::Result<Told>;

/// A program and what belongs to it.
struct Place<'a> {
    context: &'a Context,
    program: PathBuf,
    plugin: PathBuf,
    core: PathBuf,
}

/// What gdb told in a session.
struct Told {
    text: String,
    /// "Yes PATH" for each library whose symbols were read, in gdb's order, the loaders left out.
    libraries: Vec<String>,
    loaders: Vec<String>,
    /// The values of each variable, sorted.
    values: [Vec<String>; 3],
}

impl Place<'_> {
    /// gdb starts the program, stops in the C library, and leaves a core file.
    fn started(&self) -> anyhow::Result<Told> {
        let core = format!("generate-core-file {}", self.core.display());
        let mut commands = vec!["break main", "run", "break getppid", "continue"];
        commands.extend(QUESTIONS);
        commands.push(&core);
        commands.push("kill");
        self.gdb(&commands, &["--args".as_ref(), &self.program, &self.plugin])
    }

    /// gdb attaches when all variables are set.
    fn attached(&self) -> anyhow::Result<Told> {
        let log = self.program.with_extension("log");
        let mut command = Command::new(&self.program);
        command.arg(&self.plugin).env_clear().envs(environment()).envs(always());
        let mut child = command.stdin(Stdio::null()).stdout(fs::File::create(&log)?).spawn()?;
        let told = wait_for_line(&mut child, &log).and_then(|()| {
            let mut commands = QUESTIONS.to_vec();
            commands.extend(["break getppid", "continue", "backtrace", "kill"]);
            let process = child.id().to_string();
            self.gdb(&commands, &["-p".as_ref(), process.as_ref()])
        });
        // gdb has killed it, unless the session went wrong.
        let _ = child.kill();
        child.wait()?;
        told
    }

    /// gdb on the core file of the first session.
    fn core_file(&self) -> anyhow::Result<Told> {
        ensure!(self.core.exists(), "the first session left no core file");
        self.gdb(&QUESTIONS, &[&self.program, &self.core])
    }

    fn gdb(&self, commands: &[&str], arguments: &[&Path]) -> anyhow::Result<Told> {
        let mut command = Command::new("gdb");
        command.args(["-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off"]);
        for line in commands {
            command.args(["-ex", line]);
        }
        command.args(arguments).current_dir(&self.context.work);
        command.env_clear().envs(environment()).envs(always());
        let output = command.stdin(Stdio::null()).output().context("gdb (Debian package gdb)")?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        Ok(Told::read(text.into_owned()))
    }
}

/// What every session asks; the echoes part the answers.
const QUESTIONS: [&str; 8] = [
    "info sharedlibrary",
    "thread apply all -q backtrace",
    "echo program_local:\\n",
    "thread apply all -s -q print program_local",
    "echo library_local:\\n",
    "thread apply all -s -q print library_local",
    "echo plugin_local:\\n",
    "thread apply all -s -q print plugin_local",
];

impl Told {
    fn read(text: String) -> Self {
        let (mut libraries, mut loaders) = (Vec::new(), Vec::new());
        let mut values = [const { Vec::new() }; 3];
        let mut current = None;
        for line in text.lines() {
            if let Some(index) = VARIABLES.iter().position(|(name, _)| line.strip_suffix(':') == Some(name)) {
                current = values.get_mut(index);
            } else if let (Some(values), Some((name, value))) = (&mut current, line.split_once(" = "))
                && name.starts_with('$')
            {
                values.push(value.to_owned());
            }
            // "FROM TO READ PATH"; READ may be "Yes (*)", which is a library without debug information.
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [from, _, read, .., path] = words.as_slice()
                && from.starts_with("0x")
                && ["Yes", "No"].contains(read)
            {
                let is_loader = path.ends_with("/ld-linux-x86-64.so.2") || path.ends_with("/ld");
                let list = if is_loader { &mut loaders } else { &mut libraries };
                list.push(format!("{read} {path}"));
            }
        }
        for list in &mut values {
            list.sort();
        }
        Self { text, libraries, loaders, values }
    }

    /// Whether the second thread stopped in getppid. It is known by its argument: how gdb numbers the threads of a
    /// process that it attached to differs from release to release.
    fn hit(&self, session: &str) -> bool {
        let Some((before, after)) = self.text.split_once(" hit Breakpoint ") else { return false };
        let thread = before.lines().last().unwrap_or_default();
        let number = session == "attached to" || thread.starts_with("Thread 2 ");
        number && after.lines().next().is_some_and(|line| line.contains("getppid ()")) && after.contains(" <numbers>)")
    }

    /// Whether four threads' frames reach the function each began in, and none is without a name.
    fn whole(&self, session: &str) -> Result<(), String> {
        let frames = || self.text.lines().filter(|line| line.starts_with('#'));
        let among = |name: &str| frames().filter(|line| line.contains(&format!("in {name} ("))).count();
        // The session that was attached shows the second thread once more, at the breakpoint.
        let workers = if session == "attached to" { 4 } else { 3 };
        let whole = among("worker") == workers && among("start_thread") == workers && among("main") == 1;
        let libraries = self.libraries.len() == 3 && self.libraries.iter().all(|line| line.starts_with("Yes "));
        if whole && libraries && !frames().any(|line| line.contains("??")) { Ok(()) } else { Err(self.text.clone()) }
    }
}

/// Waits until the program has said that its threads are ready.
fn wait_for_line(child: &mut Child, log: &Path) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if fs::read_to_string(log)?.contains("all set\n") {
            return Ok(());
        }
        if let Some(status) = child.try_wait()? {
            bail!("the program ended: {status}, {}", fs::read_to_string(log)?);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the program is not ready after a minute")
}
