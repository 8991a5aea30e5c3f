//! Suite `tunables`: settings of the C library, by GLIBC_TUNABLES and by the allocator's older variables, have the effect they
//! have under ld-linux, although none of ld-linux's own start-up runs. Owns the list of settings. Every setting that is said
//! to act must change the program's output under ld-linux, so that two loaders that ignore it do not pass.

use crate::harness::{Build, Context, Outcome, Report, Run, Status, WAYS, Way};
use crate::same::label;

/// A setting: environment variables, and whether ld-linux makes anything of them.
struct Setting {
    variables: &'static [(&'static str, &'static str)],
    acts: bool,
}

const fn acts(variables: &'static [(&'static str, &'static str)]) -> Setting {
    Setting { variables, acts: true }
}

const fn idle(variables: &'static [(&'static str, &'static str)]) -> Setting {
    Setting { variables, acts: false }
}

const TUNABLES: &str = "GLIBC_TUNABLES";

/// What changes the allocator (heap.c).
const HEAP: &[Setting] = &[
    idle(&[]),
    acts(&[("MALLOC_PERTURB_", "165")]),
    acts(&[(TUNABLES, "glibc.malloc.perturb=165")]),
    acts(&[(TUNABLES, "glibc.malloc.perturb=0x11")]),
    acts(&[(TUNABLES, "glibc.malloc.perturb=9"), ("MALLOC_PERTURB_", "10")]),
    acts(&[("MALLOC_ARENA_MAX", "1")]),
    acts(&[(TUNABLES, "glibc.malloc.arena_max=1")]),
    acts(&[("MALLOC_MMAP_THRESHOLD_", "400000")]),
    acts(&[("MALLOC_TOP_PAD_", "1000000")]),
    acts(&[("MALLOC_MMAP_MAX_", "0")]),
    acts(&[(TUNABLES, "glibc.malloc.tcache_count=0")]),
    acts(&[(TUNABLES, "glibc.malloc.tcache_max=60")]),
    acts(&[(TUNABLES, "glibc.malloc.mxfast=0")]),
    acts(&[(TUNABLES, "nonsense=1:glibc.malloc.perturb=9")]),
    acts(&[(TUNABLES, "glibc.malloc.mxfast=0:glibc.malloc.perturb=9:glibc.malloc.arena_max=1")]),
    // Out of range, malformed, empty: no effect.
    idle(&[(TUNABLES, "glibc.malloc.perturb=0xfff")]),
    idle(&[(TUNABLES, "glibc.malloc.perturb=-1")]),
    idle(&[(TUNABLES, "glibc.malloc.perturb=")]),
    idle(&[(TUNABLES, "")]),
    idle(&[(TUNABLES, ":::")]),
    idle(&[("MALLOC_PERTURB_", "")]),
    idle(&[("MALLOC_ARENA_MAX", "0")]),
];

/// What changes the choice of functions and the registration of restartable sequences (choice.c).
const CHOICE: &[Setting] = &[
    idle(&[]),
    acts(&[(TUNABLES, "glibc.cpu.hwcaps=-AVX2,-AVX512F")]),
    acts(&[(TUNABLES, "glibc.cpu.hwcaps=-ERMS,-AVX512VL,Prefer_No_AVX512_Probing")]),
    acts(&[(TUNABLES, "glibc.pthread.rseq=0")]),
    acts(&[(TUNABLES, "glibc.pthread.rseq=0:glibc.cpu.hwcaps=-AVX2")]),
];

/// What changes only speed (copies.c): all sizes must still be copied right.
const COPIES: &[Setting] = &[
    idle(&[]),
    idle(&[(TUNABLES, "glibc.cpu.x86_non_temporal_threshold=0x4040")]),
    idle(&[(TUNABLES, "glibc.cpu.x86_rep_movsb_threshold=0x200:glibc.cpu.x86_rep_stosb_threshold=1")]),
    idle(&[(TUNABLES, "glibc.cpu.x86_data_cache_size=1:glibc.cpu.x86_shared_cache_size=1")]),
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for (source, settings) in [("heap", HEAP), ("choice", CHOICE), ("copies", COPIES)] {
        let program =
            Build::new(format!("tunables/{source}.c")).flags(&["-O1", "-fno-builtin", "-pthread"]).build(context)?;
        let default = Run::new(&program).way(Way::Reference).output(context)?;
        for setting in settings {
            let words: Vec<String> = setting.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let name = format!("{source} {}", if words.is_empty() { "by default".to_owned() } else { words.join(" ") });
            for (way, bind) in WAYS {
                let with = |run: Run| setting.variables.iter().fold(run, |run, (name, value)| run.env(name, value));
                let result = compare(
                    context,
                    &with(Run::new(&program).way(way).bind(bind)),
                    &with(Run::new(&program).way(Way::Reference).bind(bind)),
                    setting,
                    &default,
                );
                report.check(format!("{name} ({})", label(way, bind)), result);
            }
        }
    }
    Ok(())
}

fn compare(context: &Context, ours: &Run, theirs: &Run, setting: &Setting, default: &Outcome) -> Result<(), String> {
    let theirs = theirs.output(context).map_err(|error| format!("ld-linux: {error:#}"))?;
    if theirs.status != Status::Exit(0) || without_variable(&theirs) == without_variable(default) && setting.acts {
        return Err(format!("ld-linux does not do what this case is about\n{}", theirs.describe()));
    }
    ours.output(context).map_err(|error| format!("{error:#}"))?.same_as(&theirs)
}

/// The output less the line that shows the variable itself.
fn without_variable(outcome: &Outcome) -> String {
    outcome.text().lines().filter(|line| !line.starts_with(TUNABLES)).collect::<Vec<_>>().join("\n")
}
