//! Boots a kernel in QEMU and reads what its tests say. Owns the machine: always TCG, so that results do not depend on the host's
//! virtualisation, and one instruction a translation block, because TCG takes interrupts only between blocks: larger ones
//! would hide every race inside a block.

use super::source::output;
use super::{Config, Counts};
use anyhow::{Context as _, bail};
use std::arch::x86_64::_rdtsc;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a boot came to.
pub struct Report {
    /// Each test, and the kernel's log as one more.
    pub counts: Counts,
    /// The names of the tests that failed; `kernel_log` is the log.
    pub failed: Vec<String>,
}

/// The status that isa-debug-exit gives QEMU for our 0: twice that and one.
const ALL_WELL: i32 = 1;
/// What `timeout` exits with.
const TIMED_OUT: i32 = 124;

/// Boots, runs a program (its path and arguments) and hands each line of its output to `show`.
pub fn run(
    kernel: &Path,
    image: &Path,
    program: &[&str],
    config: Config,
    show: &mut dyn FnMut(&str),
) -> anyhow::Result<Report> {
    // Guards against a guest that hangs; nothing is measured by it.
    let limit = match (program.get(1), config) {
        (Some(&"--full"), _) => "14400",
        (_, Config::Default) => "1800",
        _ => "7200",
    };
    let mut command = machine(config, limit)?;
    let program = program.join(",");
    // Without a time-stamp counter that the guest may trust, its clock is the 4 ms tick and short sleeps lie.
    // On a busy machine the guest's early check finds that its timer does not tick, and takes a worse one; and a processor that
    // the machine does not let run for 20 s is no stall of the guest's.
    let parameters = format!(
        "console=ttyS0 panic=-1 quiet no_timer_check rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=60 \
         tsc=reliable tsc_early_khz={} lab.run={program}",
        time_stamp_khz()
    );
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(image).args(["-append", &parameters]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().context("timeout")?;
    let console = child.stdout.take().context("no pipe to QEMU's console")?;
    let mut reading = Reading::default();
    for line in BufReader::new(console).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).trim_end().to_owned();
        reading.line(&line);
        show(&line);
    }
    let status = child.wait()?;
    if status.code() == Some(TIMED_OUT) {
        reading.fail("hangs: the guest was stopped after its time limit");
    }
    reading.report(status.code() == Some(ALL_WELL))
}

fn machine(config: Config, limit: &str) -> anyhow::Result<Command> {
    let memory = match config {
        Config::Default | Config::Lockdep => "512",
        Config::Kasan => "1024",
    };
    let version = output(Command::new("qemu-system-x86_64").arg("--version"))?;
    let number =
        version.split_whitespace().nth(3).and_then(|word| word.split('.').next()).unwrap_or_default().to_owned();
    let major: u32 = number.parse().with_context(|| format!("qemu-system-x86_64 --version: {version}"))?;
    let mut command = Command::new("timeout");
    command.args(["--foreground", limit, "qemu-system-x86_64"]);
    match major {
        0..9 => command.args(["-accel", "tcg,thread=multi", "-singlestep"]),
        _ => command.args(["-accel", "tcg,thread=multi,one-insn-per-tb=on"]),
    };
    // The timer and interrupt controller of old stay on: without a paravirtual clock the guest hangs without them.
    command.args(["-M", "microvm,x-option-roms=off,rtc=on", "-cpu", "max", "-smp", "2", "-m", memory]);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
    Ok(command)
}

/// How fast the time-stamp counter runs, which TCG passes through to the guest.
fn time_stamp_khz() -> u64 {
    let counter = || {
        // SAFETY: the instruction reads a counter that every x86-64 processor has, and touches no memory.
        unsafe { _rdtsc() }
    };
    let (start, before) = (Instant::now(), counter());
    while start.elapsed() < Duration::from_millis(50) {
        std::hint::spin_loop();
    }
    let (passed, after) = (start.elapsed(), counter());
    after.wrapping_sub(before).saturating_mul(1_000_000) / u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The lines of the lab's programs, counted.
#[derive(Default)]
struct Reading {
    passed: usize,
    failed: Vec<String>,
    complaints: bool,
    summary: Option<(usize, usize)>,
    log_was_read: bool,
}

impl Reading {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("ok" | "pass") => self.passed += 1,
            Some("FAILED") => self.fail(words.next().unwrap_or_default()),
            Some("FAIL") => self.fail(line.trim_start_matches("FAIL ")),
            Some("tests") => {
                let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
                if let [ran, passed] = numbers.as_slice() {
                    self.summary = Some((*ran, *passed));
                }
            }
            Some("log") => {
                self.log_was_read = true;
                self.complaints |= line != "log complaints 0";
            }
            _ => {}
        }
    }

    fn fail(&mut self, test: &str) {
        self.failed.push(test.to_owned());
    }

    /// The counts; an error if the guest did not come to its end or its lines contradict one another.
    fn report(mut self, all_well: bool) -> anyhow::Result<Report> {
        let complete = self.log_was_read && self.summary == Some((self.passed + self.failed.len(), self.passed));
        match (complete, self.complaints || !self.log_was_read) {
            (true, false) => self.passed += 1,
            (_, true) if self.log_was_read => self.fail("kernel_log"),
            _ => self.fail("guest"),
        }
        if all_well != self.failed.is_empty() {
            if all_well {
                bail!("the guest ended well, its tests did not");
            }
            self.fail("guest");
        }
        Ok(Report { counts: Counts { passed: self.passed, failed: self.failed.len() }, failed: self.failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str, all_well: bool) -> anyhow::Result<Report> {
        let mut reading = Reading::default();
        lines.lines().for_each(|line| reading.line(line));
        reading.report(all_well)
    }

    #[test]
    fn counts() {
        let good = read("ok a 0.1 s\nok b 0.2 s\ntests 2 passed 2\nlog complaints 0\n", true).unwrap();
        assert_eq!((good.counts.passed, good.counts.failed), (3, 0));
        let bad = read("ok a 0.1 s\nFAILED b fails\ntests 2 passed 1\nlog complaints 0\n", false).unwrap();
        assert_eq!((bad.counts.passed, bad.failed), (2, vec!["b".to_owned()]));
    }

    #[test]
    fn what_is_no_success() {
        // the kernel's log complains
        assert!(
            !read("ok a 1 s\ntests 1 passed 1\nlog WARNING: x\nlog complaints 1\n", false).unwrap().counts.passed()
        );
        // the guest ended before its tests did
        assert!(!read("ok a 1 s\n", false).unwrap().counts.passed());
        assert!(!read("", false).unwrap().counts.passed());
        // a line is missing
        assert!(!read("ok a 1 s\ntests 2 passed 2\nlog complaints 0\n", false).unwrap().counts.passed());
        assert!(read("ok a 1 s\ntests 2 passed 2\nlog complaints 0\n", true).is_err());
        // nobody looked at the log
        assert!(!read("ok a 1 s\ntests 1 passed 1\n", false).unwrap().counts.passed());
        // QEMU says otherwise
        assert!(!read("ok a 1 s\ntests 1 passed 1\nlog complaints 0\n", false).unwrap().counts.passed());
    }
}
