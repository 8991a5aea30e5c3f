//! Graphs of libraries that say when they begin and end. Owns their construction and two judgements: equal to ld-linux's order,
//! and, by itself, dependencies first and everything undone in reverse.

use crate::harness::{Build, Context, Report, Run, Status, WAYS, Way};
use crate::same::label;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Who needs whom, in the order of DT_NEEDED; `main` is the program.
#[derive(Clone, Debug)]
pub struct Graph {
    needs: BTreeMap<String, Vec<String>>,
}

impl Graph {
    /// One node a line: `name: needed needed ...`.
    pub fn parse(text: &str) -> Self {
        let node = |line: &str| {
            let (name, needed) = line.split_once(':')?;
            Some((name.trim().to_owned(), needed.split_whitespace().map(str::to_owned).collect()))
        };
        Self { needs: text.lines().filter_map(node).collect() }
    }

    /// Builds every node as `DIRECTORY/libNAME.so` and the program as `DIRECTORY/main`; those in `first` are marked INITFIRST.
    pub fn build(&self, context: &Context, directory: &str, first: &[&str]) -> anyhow::Result<PathBuf> {
        let path = |name: &str| context.work.join(directory).join(format!("lib{name}.so"));
        let node = |name: &str, needed: &[String]| {
            let mut build = Build::new("init-order/node.c").shared().flags(super::FLAGS).flag(format!("-DNODE={name}"));
            build = build.flag("-Wl,--no-as-needed");
            if first.contains(&name) {
                build = build.flag("-Wl,-z,initfirst");
            }
            build = needed.iter().fold(build, |build, needed| build.with(path(needed)));
            build.output(format!("{directory}/lib{name}.so")).build(context)
        };
        // Whom a cycle needs before it is built stands there without needs first.
        let mut built = BTreeSet::new();
        for (name, needed) in self.needs.iter().rev().filter(|(name, _)| *name != "main") {
            for early in needed.iter().filter(|early| !built.contains(*early)).collect::<Vec<_>>() {
                node(early, &[])?;
                built.insert(early.clone());
            }
            node(name, needed)?;
            built.insert(name.clone());
        }
        // What was built after it stands there complete by now: every node was given its needs in its own turn.
        let mut program = Build::new("init-order/root.c").flags(super::FLAGS).flag("-Wl,--no-as-needed");
        for needed in self.needs.get("main").into_iter().flatten() {
            program = program.with(path(needed));
        }
        // The linker need not follow what the libraries need.
        program.flag("-Wl,--allow-shlib-undefined").output(format!("{directory}/main")).build(context)
    }

    /// Everything that `name` needs, directly or not.
    fn below(&self, name: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            for needed in self.needs.get(&name).into_iter().flatten() {
                if seen.insert(needed.clone()) {
                    open.push(needed.clone());
                }
            }
        }
        seen
    }

    /// Whether a transcript initialises each node once, after all it needs as far as neither is on a cycle, and ends in reverse.
    fn respects(&self, transcript: &str) -> Result<(), String> {
        let begun: Vec<&str> = transcript.lines().filter_map(|line| line.strip_prefix('+')).collect();
        let mut ended: Vec<&str> = transcript.lines().filter_map(|line| line.strip_prefix('-')).collect();
        let mut loaded = self.below("main");
        loaded.insert("main".to_owned());
        if begun.len() != loaded.len() || begun.iter().any(|name| !loaded.contains(*name)) {
            return Err(format!("expected each of {loaded:?} once\ngot      {begun:?}"));
        }
        let place = |wanted: &str| begun.iter().position(|name| *name == wanted);
        // On a cycle there is no right order: there only ld-linux's counts.
        let is_free = |name: &&String| !self.below(name).contains(*name);
        for name in loaded.iter().filter(is_free) {
            for needed in self.below(name).iter().filter(is_free) {
                if place(needed) > place(name) {
                    return Err(format!("{name} began before {needed}, which it needs: {begun:?}"));
                }
            }
        }
        ended.reverse();
        if ended != begun {
            return Err(format!("not undone in reverse: began {begun:?}, ended (reversed) {ended:?}"));
        }
        Ok(())
    }
}

/// The shapes with a name, and ld-linux's order for each.
pub fn named(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for (name, text) in [
        ("chain", "main: a\na: b\nb: c\nc:"),
        ("chain against the alphabet", "main: c\nc: b\nb: a\na:"),
        ("siblings", "main: a b c\na:\nb:\nc:"),
        ("diamond", "main: a b\na: c\nb: c\nc:"),
        ("diamond named at the top", "main: c a b\na: c\nb: c\nc:"),
        ("long and short way", "main: d a\na: b\nb: c\nc: d\nd:"),
        ("cycle of two", "main: a\na: b\nb: a"),
        ("cycle of three", "main: a\na: b\nb: c\nc: a"),
        ("cycle entered twice", "main: b a\na: b\nb: c\nc: a"),
        ("cycle with tail", "main: a\na: b\nb: c d\nc: a\nd: e\ne:"),
        ("two cycles", "main: a c\na: b\nb: a\nc: d\nd: c a"),
    ] {
        judge(context, report, name, &Graph::parse(text))?;
    }
    Ok(())
}

/// Graphs by a fixed pseudo-random sequence: six without cycles, six as they come.
pub fn random(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut state: u64 = 2012;
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    for number in 0..12 {
        let acyclic = number < 6;
        let mut text = String::from("main:");
        // The order in which the program names them, and an order that no edge goes against if there shall be no cycle.
        for _ in 0..3 {
            text.push_str(&format!(" {}", NAMES.get(next(8) as usize).unwrap_or(&"a")));
        }
        for (place, name) in NAMES.iter().enumerate() {
            text.push_str(&format!("\n{name}:"));
            for (other_place, other) in NAMES.iter().enumerate() {
                let rank = |place: usize| (place * 3 + number) % 8;
                if next(4) == 0 && place != other_place && (!acyclic || rank(place) < rank(other_place)) {
                    text.push_str(&format!(" {other}"));
                }
            }
        }
        judge(context, report, &format!("random {number}"), &Graph::parse(&text))?;
    }
    Ok(())
}

fn judge(context: &Context, report: &mut Report, name: &str, graph: &Graph) -> anyhow::Result<()> {
    let program = graph.build(context, &name.replace(' ', "-"), &[])?;
    for (way, bind) in WAYS {
        let compared = compare(context, &program, graph, Run::new(&program).way(way).bind(bind));
        let result = compared.unwrap_or_else(|error| Err(format!("{error:#}")));
        report.check(format!("order, {name} ({})", label(way, bind)), result);
    }
    Ok(())
}

fn compare(context: &Context, program: &Path, graph: &Graph, run: Run) -> anyhow::Result<Result<(), String>> {
    let reference = Run::new(program).way(Way::Reference).output(context)?;
    let outcome = run.output(context)?;
    if outcome.status != Status::Exit(0) {
        return Ok(Err(format!("expected Exit(0)\ngot      {}", outcome.describe())));
    }
    Ok(graph
        .respects(&outcome.text())
        .map_err(|error| format!("{error}\n{}\n{graph:?}", outcome.describe()))
        .and(outcome.same_as(&reference)))
}
