//! `cargo xtask mutants kernel`: deliberate breakages of the patch, each of which a named test must catch. Owns their table and
//! the tree they are built in, `target/kernel/mutants-KEY`, which stays for the next run.

use super::tree::Tree;
use super::{Config, Debian, boot, build, image, source};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::Path;

struct Mutant {
    name: &'static str,
    /// In the kernel's tree.
    file: &'static str,
    /// What is replaced; stands there once.
    from: &'static str,
    to: &'static str,
    /// The test that must fail.
    caught_by: &'static str,
}

const OWN: &str = "kernel/sigfastblock.c";
const SIGNAL: &str = "kernel/signal.c";

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "flag-not-set",
        file: OWN,
        from: "put_user(value | SIGFASTBLOCK_PEND, word)",
        to: "put_user(value, word)",
        caught_by: "section",
    },
    Mutant {
        name: "unblock-keeps-held",
        file: OWN,
        from: "\trelease();\n\treturn 0;\nbad:",
        to: "\treturn 0;\nbad:",
        caught_by: "section",
    },
    Mutant {
        name: "unblock-inside",
        file: OWN,
        from: "value != SIGFASTBLOCK_PEND",
        to: "!(value & SIGFASTBLOCK_PEND)",
        caught_by: "commands",
    },
    Mutant {
        name: "not-offered-to-others",
        file: OWN,
        from: "\tsigfastblock_retarget(&unblocked);\n",
        to: "",
        caught_by: "a_free_thread_takes_it",
    },
    Mutant {
        name: "word-not-looked-at-again",
        file: OWN,
        from: "\tset_notify_resume(t);\n",
        to: "",
        caught_by: "self_healing_without_rseq",
    },
    Mutant {
        name: "fault-waits",
        file: OWN,
        from: "\tsigaddset(&t->sigfb_forced, sig);\n",
        to: "",
        // Only where one from elsewhere waits already: the kernel takes faults before all else, whatever is blocked by the word.
        caught_by: "fault_of_a_held_number",
    },
    Mutant {
        name: "fault-of-a-held-number-wakes-nobody",
        file: OWN,
        from: "\t\tsignal_wake_up(t, 0);\n",
        to: "\t\t;\n",
        caught_by: "fault_of_a_held_number",
    },
    Mutant {
        name: "bad-word-stays-registered",
        file: OWN,
        from: "\tforget();\n\tforce_sig_fault(",
        to: "\tforce_sig_fault(",
        caught_by: "word_unmapped",
    },
    Mutant {
        name: "child-keeps-the-word",
        file: OWN,
        from: "\t\tchild->sigfb_word = NULL;\n",
        to: "\t\t;\n",
        caught_by: "thread_does_not_inherit",
    },
    Mutant {
        name: "exec-keeps-the-word",
        file: OWN,
        from: "\tforget();\n\tsigemptyset(&current->signal->sigfb_pass);\n",
        to: "\tsigemptyset(&current->signal->sigfb_pass);\n",
        caught_by: "exec_forgets",
    },
    Mutant {
        name: "exec-keeps-the-mask",
        file: OWN,
        from: "\tsigemptyset(&current->signal->sigfb_pass);\n",
        to: "",
        caught_by: "mask_over_fork_and_exec",
    },
    Mutant {
        name: "mask-has-no-effect",
        file: OWN,
        from: "\tsigandnsets(&mask, &mask, &t->signal->sigfb_pass);\n",
        to: "",
        caught_by: "only_masked_signals_wait",
    },
    Mutant {
        name: "stop-is-held",
        file: OWN,
        from: "siginitsetinv(&mask, sigmask(SIGKILL) | sigmask(SIGSTOP));",
        to: "siginitsetinv(&mask, sigmask(SIGKILL));",
        caught_by: "stop_and_continue_act",
    },
    Mutant {
        name: "any-alignment",
        file: OWN,
        from: "!word || !IS_ALIGNED((unsigned long)word, sizeof(u32))",
        to: "!word",
        caught_by: "no_word_addresses",
    },
    Mutant {
        name: "deadly-one-kills-at-once",
        file: SIGNAL,
        from: "!(p->ptrace || sigfastblock_may_hold(sig, t))",
        to: "!p->ptrace",
        caught_by: "default_actions_wait",
    },
    Mutant {
        name: "held-one-seen-as-pending",
        file: SIGNAL,
        from: "PENDING(&t->pending, blocked)",
        to: "PENDING(&t->pending, &t->blocked)",
        caught_by: "no_spin",
    },
    Mutant {
        name: "delivered-inside",
        file: SIGNAL,
        from: "\t\t\t\t\t       sigfastblock_blocked(current, &space),\n",
        to: "\t\t\t\t\t       &current->blocked,\n",
        caught_by: "section",
    },
    Mutant {
        name: "fault-passes-for-good",
        file: SIGNAL,
        from: "\t\tsigfastblock_took(signr);\n",
        to: "",
        caught_by: "fault_of_a_held_number",
    },
    Mutant {
        name: "sigtimedwait-not-woken",
        file: SIGNAL,
        from: "held = sigfastblock_wait(&mask);",
        to: "held = tsk->sigfb_held;",
        caught_by: "sigtimedwait_takes_held",
    },
    Mutant {
        name: "sigpending-forgets-held",
        file: SIGNAL,
        from: "sigandsets(set, sigfastblock_blocked(current, &space), set)",
        to: "sigandsets(set, &current->blocked, set)",
        caught_by: "section",
    },
    Mutant {
        name: "background-read-turns-in-circles",
        file: "drivers/tty/tty_jobctrl.c",
        from: "\t\tsigfastblock_held(sig, current) ||\n",
        to: "",
        caught_by: "terminal_read",
    },
];

/// Prints the mutants.
pub fn list() {
    for mutant in MUTANTS {
        println!("{:38} {}", mutant.name, mutant.caught_by);
    }
}

/// Builds and runs the mutants named, or all; true if each was caught.
pub fn run(names: &[String]) -> anyhow::Result<bool> {
    if let Some(unknown) = names.iter().find(|name| !MUTANTS.iter().any(|mutant| mutant.name == **name)) {
        bail!("mutants kernel: no mutant {unknown}");
    }
    let source = source::find(Debian::Bookworm)?;
    let place = super::directory()?.join(format!("mutants-{}", build::key(&source, Config::Default)?));
    let tree = tree(&source, &place)?;
    let image = image::kernel_tests()?;
    let vmlinux = place.join("vmlinux");
    let (mut caught, mut survived) = (0, 0);
    for mutant in MUTANTS.iter().filter(|mutant| names.is_empty() || names.iter().any(|name| name == mutant.name)) {
        let path = tree.source.join(mutant.file);
        let good = super::read(&path)?;
        fs::write(&path, broken(mutant, &good)?)?;
        let built = tree.compile(&["vmlinux"]).and_then(|()| tree.strip(&vmlinux));
        fs::write(&path, good)?;
        built.with_context(|| format!("mutant {}", mutant.name))?;
        let report = boot::run(&vmlinux, &image, &[super::TESTS, mutant.caught_by], Config::Default, &mut |_| ())?;
        if report.failed.iter().any(|test| test == mutant.caught_by) {
            caught += 1;
            println!("ok mutant {}: caught by {}", mutant.name, mutant.caught_by);
        } else {
            survived += 1;
            println!("FAILED mutant {}: not caught by {} ({})", mutant.name, mutant.caught_by, report.failed.join(" "));
        }
    }
    fs::remove_file(&image)?;
    println!("mutants kernel: {caught} caught, {survived} survived");
    Ok(survived == 0 && caught > 0)
}

/// The built tree; made anew if its making did not come to the end.
fn tree(source: &source::Source, place: &Path) -> anyhow::Result<Tree> {
    let stamp = place.join("built");
    if !stamp.exists() {
        if place.exists() {
            fs::remove_dir_all(place)?;
        }
        eprintln!("mutants kernel: building the kernel that is broken afterwards, some minutes");
        let tree = Tree::unpack(source, place)?;
        tree.apply(&build::whole_patch(source.debian)?)?;
        tree.configure(&build::fragments(Config::Default)?)?;
        tree.compile(&["vmlinux"])?;
        fs::write(&stamp, "")?;
    }
    Ok(Tree::at(source, place))
}

fn broken(mutant: &Mutant, good: &str) -> anyhow::Result<String> {
    match good.matches(mutant.from).count() {
        1 => Ok(good.replacen(mutant.from, mutant.to, 1)),
        count => bail!("mutant {}: its text stands {count} times in {}, once expected", mutant.name, mutant.file),
    }
}
