//! A program run on another processor: every CPUID and XGETBV of the loaders' files is replaced by a breakpoint, at which the tracer
//! puts a record's answer into the registers. Owns the tracing; what is found in memory at the end is `seen`'s.

use super::record::{Answer, Record};
use super::seen::{Seen, base_of};
use crate::harness::{Context, FileIdentity, Run, Way, mapped_files};
use anyhow::{Context as _, bail, ensure};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// An instruction that asks the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Cpuid,
    Xgetbv,
}

impl Question {
    fn length(self) -> u64 {
        match self {
            Question::Cpuid => 2,
            Question::Xgetbv => 3,
        }
    }
}

/// More questions than any start has.
const ENDLESS: usize = 10_000;

/// The questions in both loaders' files, by offset from the first byte.
pub struct Questions {
    ours: BTreeMap<u64, Question>,
    theirs: BTreeMap<u64, Question>,
}

impl Questions {
    /// Disassembles both.
    pub fn find(context: &Context) -> anyhow::Result<Questions> {
        Ok(Questions { ours: questions(&context.loader)?, theirs: questions(&context.reference)? })
    }
}

fn questions(file: &Path) -> anyhow::Result<BTreeMap<u64, Question>> {
    let mut command = Command::new("objdump");
    let output = command.args(["-d", "--no-show-raw-insn"]).arg(file).output().context("objdump (package binutils)")?;
    ensure!(output.status.success(), "objdump {}: {}", file.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().filter_map(|line| {
        let (address, instruction) = line.split_once(":\t")?;
        let question = match instruction.trim() {
            "cpuid" => Question::Cpuid,
            "xgetbv" => Question::Xgetbv,
            _ => return None,
        };
        Some((u64::from_str_radix(address.trim(), 16).ok()?, question))
    });
    let found: BTreeMap<_, _> = found.collect();
    ensure!(!found.is_empty(), "no CPUID in {}", file.display());
    Ok(found)
}

/// What a run asked and left.
pub struct Told {
    /// Each leaf and subleaf, in order.
    pub asked: Vec<(u32, u32)>,
    /// What the C library reads.
    pub seen: Seen,
}

/// Runs the program, which ends in its first initialiser, on the record's processor.
pub fn run(
    context: &Context,
    run: &Run,
    way: Way,
    questions: &Questions,
    record: Option<&Record>,
) -> anyhow::Result<Told> {
    let mut command = run.clone().way(way).command(context)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let prepare = || ptrace::traceme().map_err(Into::into);
    // SAFETY: between fork and exec `prepare` makes one system call.
    unsafe { command.pre_exec(prepare) };
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let told = Traced { context, way, questions, record, process: Pid::from_raw(child.id().try_into()?) }.finish();
    end(&mut child);
    told.with_context(|| format!("{way:?} on {}", record.map_or("this machine", |record| &record.name)))
}

fn end(child: &mut Child) {
    // It is gone already, unless something failed.
    let _ = child.kill();
    let _ = child.wait();
}

struct Traced<'a> {
    context: &'a Context,
    way: Way,
    questions: &'a Questions,
    record: Option<&'a Record>,
    process: Pid,
}

impl Traced<'_> {
    fn finish(&self) -> anyhow::Result<Told> {
        let process = self.process;
        match waitpid(process, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            other => bail!("expected the stop at exec, got {other:?}"),
        }
        let is_ours = self.way != Way::Reference;
        let file = if is_ours { &self.context.loader } else { &self.context.reference };
        ensure!(mapped_files(process.as_raw())?.contains(&FileIdentity::of(file)?), "the interpreter is another");
        ptrace::setoptions(process, ptrace::Options::PTRACE_O_TRACEEXIT | ptrace::Options::PTRACE_O_EXITKILL)?;
        let mut places = BTreeMap::new();
        if self.record.is_some() {
            let questions = if is_ours { &self.questions.ours } else { &self.questions.theirs };
            self.replace(file, questions, &mut places)?;
        }
        let mut asked = Vec::new();
        let mut seen = None;
        loop {
            ptrace::cont(process, None)?;
            match waitpid(process, None)? {
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                    // glibc asks some processors until they give an answer that it likes.
                    ensure!(asked.len() < ENDLESS, "asks without end: {:x?}", asked.last());
                    self.answer(&mut places, &mut asked)?;
                    // The passive file is mapped by the time that our loader asks.
                    if is_ours && places.len() == self.questions.ours.len() {
                        self.replace(&self.context.reference, &self.questions.theirs, &mut places)?;
                    }
                }
                WaitStatus::PtraceEvent(..) => seen = Some(Seen::of(process.as_raw(), &self.context.reference)?),
                WaitStatus::Exited(_, 0) => break,
                WaitStatus::Stopped(_, signal) => {
                    let place = ptrace::getregs(process)?.rip;
                    bail!("{signal} at {place:#x} after asking {asked:x?}");
                }
                other => bail!("ended with {other:?}"),
            }
        }
        Ok(Told { asked, seen: seen.context("no stop at exit")? })
    }

    /// Puts a breakpoint on every question of a mapped file.
    fn replace(
        &self,
        file: &Path,
        questions: &BTreeMap<u64, Question>,
        places: &mut BTreeMap<u64, Question>,
    ) -> anyhow::Result<()> {
        let base = base_of(self.process.as_raw(), file)?;
        for (&offset, &question) in questions {
            let place = base + offset;
            let pointer = place as ptrace::AddressType;
            let word = ptrace::read(self.process, pointer)?;
            ptrace::write(self.process, pointer, word & !0xff | 0xcc)?;
            places.insert(place, question);
        }
        Ok(())
    }

    /// At a breakpoint: the record's answer in the registers, the next instruction.
    fn answer(&self, places: &mut BTreeMap<u64, Question>, asked: &mut Vec<(u32, u32)>) -> anyhow::Result<()> {
        let mut registers = ptrace::getregs(self.process)?;
        let place = registers.rip - 1;
        let question = *places.get(&place).with_context(|| format!("a trap at {place:#x}"))?;
        let record = self.record.context("a trap without a record")?;
        if question == Question::Cpuid {
            let (leaf, subleaf) = (registers.rax as u32, registers.rcx as u32);
            asked.push((leaf, subleaf));
            let [eax, ebx, ecx, edx]: Answer = record.ask(leaf, subleaf);
            (registers.rax, registers.rbx) = (eax.into(), ebx.into());
            (registers.rcx, registers.rdx) = (ecx.into(), edx.into());
        } else {
            (registers.rax, registers.rdx) = (record.state & 0xffff_ffff, record.state >> 32);
        }
        registers.rip = place + question.length();
        Ok(ptrace::setregs(self.process, registers)?)
    }
}
