//! Quantum-driven policies, judged quantum by quantum: PD² (002 §2.2.2) and the cache-aware
//! scheduler (003 §3.1).
//!
//! Who is to run in a quantum follows from what is ready when it is decided: in a simulation at the
//! boundary itself, after everything of that instant; on a real machine where the trace says so
//! ([`EventKind::Quantum`]), at most the tolerance later. From then on to the next decision:
//!
//! - a processor that is not being settled (no overhead but cache delay is open, no interrupt under
//!   way to it) runs nobody who was not chosen;
//! - a chosen job waits only while some processor is being settled: the decision is being carried
//!   out;
//! - as many processors say that they idle on purpose as the choice leaves idle.
//!
//! On a real machine one dispatcher carries its decision out on all processors, one after another,
//! within a section of its own processor: until it is through, but no longer than the tolerance,
//! others still have who they had.
//!
//! Without overheads nothing is ever being settled, and nobody is put on between boundaries.

use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, Job, State, Status, TaskState, nth};
use model::{Duration, Instant, TaskId};

/// More quanta without an event than any schedule has.
const MOST_QUANTA: u64 = 10_000_000;

/// A quantum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its number, from 0.
    pub number: u64,
    /// When it was decided who runs in it.
    pub decided: Instant,
}

/// Who is to run in a quantum.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The tasks, in the order in which they were chosen, no more than there are processors.
    pub tasks: Vec<usize>,
    /// How many processors are left idle on purpose.
    pub idle: u64,
}

/// The definition of a policy.
pub trait Law: Send {
    /// Who is to run in a quantum, of all that is ready; later choices know of it.
    fn choose(&mut self, slot: Slot, state: &State) -> Choice;
    /// The job of a task is over.
    fn done(&mut self, task: TaskId);
    /// Why a task that runs must not, where there is more to say than that it was not chosen.
    fn objection(&self, _slot: Slot, _task: usize, _state: &State) -> Option<Fault> {
        None
    }
    /// Is a chosen task late, although none need be where decisions take no time?
    fn lateness(&self, _slot: Slot, _task: usize, _state: &State) -> Option<Fault> {
        None
    }
}

/// The rule of a quantum-driven policy.
pub struct Quanta<L> {
    law: L,
    quantum: u64,
    tolerance: Duration,
    /// The quantum that is under way.
    slot: Option<Slot>,
    choice: Choice,
    /// Per task, the job that was chosen.
    chosen: Vec<Option<u64>>,
    /// A fault of this quantum has been reported; one is enough.
    reported: bool,
    overheads: bool,
    /// Does the trace tell when decisions are made, where they are late?
    told: bool,
    noted: bool,
}

impl<L: Law> Quanta<L> {
    /// With quanta of this length.
    pub fn new(law: L, quantum: Duration, tolerance: Duration, tasks: usize) -> Self {
        Quanta {
            law,
            quantum: quantum.nanos().max(1),
            tolerance,
            slot: None,
            choice: Choice::default(),
            chosen: vec![None; tasks],
            reported: false,
            overheads: false,
            told: false,
            noted: false,
        }
    }

    fn decide(&mut self, slot: Slot, state: &State, found: &mut Found) {
        for task in &self.choice.tasks {
            self.chosen[*task] = None;
        }
        self.choice = self.law.choose(slot, state);
        self.slot = Some(slot);
        self.reported = false;
        for task in &self.choice.tasks {
            self.chosen[*task] = state.tasks[*task].head().map(|job| job.number);
            if state.is_simulated()
                && !self.overheads
                && let Some(fault) = self.law.lateness(slot, *task, state)
            {
                found.faults.push(fault);
            }
        }
    }

    /// Is the job of a task the one that was chosen?
    fn has_chosen_job(&self, task: usize, state: &State) -> bool {
        let job = state.tasks[task].head().map(|job| job.number);
        job.is_some() && self.chosen[task] == job
    }

    /// Up to this instant of a real run: is the decision still on its way to the processors?
    fn is_being_carried_out(&self, to: Instant, state: &State) -> bool {
        let recent = |slot: Slot| state.awake(slot.decided, to, None) <= self.tolerance;
        self.slot.is_some_and(recent) && state.processors.iter().any(|p| p.is_settling())
    }

    /// From this instant of a real run on: is the quantum over, and the next one due? Whoever is
    /// relieved of the processors then takes its jobs off them and decides no more; one who stays
    /// and does not decide in time breaks the rule of [`overdue`](Self::overdue).
    fn is_over(&self, from: Instant) -> bool {
        let end = |slot: Slot| (slot.number + 1).saturating_mul(self.quantum);
        self.slot.is_some_and(|slot| from.nanos() >= end(slot))
    }

    /// Between two events: do those run that were chosen, and does nobody wait who was (unless the
    /// quantum is `over`)?
    fn compare(&mut self, over: bool, state: &State, found: &mut Found) {
        let Some(slot) = self.slot.filter(|_| !self.reported) else {
            return;
        };
        let in_slot = slot.number;
        let is_chosen = |task: usize| self.has_chosen_job(task, state);
        let runs = |task: usize| matches!(state.tasks[task].status, Status::Running(_));
        let mut waiting = self
            .choice
            .tasks
            .iter()
            .filter(|t| is_chosen(**t) && !runs(**t));
        let waits = waiting.next();
        let (mut idle, mut settling) = (0, false);
        let mut fault = None;
        for (cpu, processor) in state.processors.iter().enumerate() {
            if processor.is_settling() {
                settling = true;
                continue;
            }
            let Some(task) = processor.running.map(TaskId::index) else {
                idle += u64::from(
                    processor
                        .idle
                        .is_some_and(|f| f.has(crate::Flags::DELIBERATE)),
                );
                continue;
            };
            if !is_chosen(task) {
                fault = self.law.objection(slot, task, state).or_else(|| {
                    let why = match waits {
                        Some(waits) => format!("task {} was chosen for it, and waits", waits + 1),
                        None if self.choice.idle > 0 => "a processor is to be left idle".to_owned(),
                        None => "it was not chosen for it".to_owned(),
                    };
                    let rule = if self.choice.idle > 0 {
                        "cache"
                    } else {
                        "priority"
                    };
                    Some(Fault {
                        rule,
                        text: format!("task {} runs on P{cpu} in slot {in_slot}: {why}", task + 1),
                    })
                });
                break;
            }
        }
        if let (None, Some(waits), false) = (&fault, waits, settling || over) {
            fault = Some(Fault {
                rule: if idle > self.choice.idle {
                    "phantom"
                } else {
                    "work-conserving"
                },
                text: format!(
                    "task {} was chosen for slot {in_slot} and waits, and nothing is under way that would put it on",
                    waits + 1
                ),
            });
        }
        if fault.is_none() && !settling && !over && idle != self.choice.idle {
            fault = Some(Fault {
                rule: "idle",
                text: format!(
                    "{idle} processors say in slot {in_slot} that they idle on purpose, {} are to",
                    self.choice.idle
                ),
            });
        }
        if let Some(fault) = fault {
            self.reported = true;
            found.faults.push(fault);
        }
    }

    /// A real machine comes late to its boundaries; how late is measured here.
    fn overdue(&mut self, to: Instant, state: &State, found: &mut Found) {
        let Some(slot) = self.slot.filter(|_| !self.reported) else {
            return;
        };
        // While somebody has the quantum, somebody may have the next; else whoever comes has that
        // at its release, or the next one.
        let goes_on = self
            .choice
            .tasks
            .iter()
            .any(|t| self.has_chosen_job(*t, state));
        let end = (slot.number + 1).saturating_mul(self.quantum);
        let due = match goes_on {
            true => end,
            false => {
                let fresh = state.tasks.iter().filter(|t| t.status == Status::Fresh);
                let first = |job: &Job| {
                    job.release
                        .nanos()
                        .div_ceil(self.quantum)
                        .saturating_mul(self.quantum)
                };
                match fresh.filter_map(TaskState::head).map(first).min() {
                    Some(first) => first.max(end),
                    None => return,
                }
            }
        };
        let late = state.awake(Instant::from_nanos(due), to, None);
        if late > self.tolerance {
            self.reported = true;
            found.faults.push(Fault {
                rule: "quantum",
                text: format!(
                    "who runs in slot {} is not decided until {to}, {late} late",
                    due / self.quantum
                ),
            });
        }
    }
}

impl<L: Law> Rule for Quanta<L> {
    fn begin(&mut self, _: &State) {}

    fn event(&mut self, event: &Event, state: &State, found: &mut Found) {
        self.overheads |= event.kind == EventKind::OverheadBegin;
        match event.kind {
            EventKind::Completion => self.law.done(event.task),
            EventKind::Quantum if !state.is_simulated() => {
                self.told = true;
                self.overdue(event.time, state, found);
                let number = event.time.nanos() / self.quantum;
                let due = Instant::from_nanos(number.saturating_mul(self.quantum));
                if event.time > due {
                    found
                        .lengths
                        .push(state.awake(due, event.time, event.cpu()));
                }
                let decided = event.time;
                self.decide(Slot { number, decided }, state, found);
            }
            kind if kind.puts_on() && !state.is_simulated() && !self.told && !self.noted => {
                self.noted = true;
                found.notes.push(
                    "the trace does not tell when quanta were decided: who was chosen was not checked"
                        .to_owned(),
                );
            }
            kind if kind.puts_on()
                && state.is_simulated()
                && !self.overheads
                && !event.time.nanos().is_multiple_of(self.quantum) =>
            {
                found.faults.push(Fault {
                    rule: "quantum",
                    text: format!(
                        "job {} of task {} is put on within a quantum",
                        nth(event.job),
                        event.task.0 + 1
                    ),
                });
            }
            _ => {}
        }
    }

    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        if !state.is_simulated() {
            if self.told {
                if !self.is_being_carried_out(to, state) {
                    self.compare(self.is_over(from), state, found);
                }
                self.overdue(to, state, found);
            }
            return;
        }
        let mut slot = from.nanos().div_ceil(self.quantum);
        if slot.saturating_mul(self.quantum) > from.nanos() {
            self.compare(false, state, found);
        }
        // Between two events of a schedule that goes on lie no more quanta than a period has; a
        // damaged time must not take years.
        if (to.nanos() / self.quantum).saturating_sub(slot) > MOST_QUANTA
            && state.tasks.iter().any(|t| t.status != Status::Nothing)
        {
            found.faults.push(Fault {
                rule: "quantum",
                text: format!("nothing happens from {from} to {to} although jobs are pending"),
            });
            return;
        }
        while let Some(at) = slot.checked_mul(self.quantum).filter(|at| *at < to.nanos()) {
            let decided = Instant::from_nanos(at);
            self.decide(
                Slot {
                    number: slot,
                    decided,
                },
                state,
                found,
            );
            self.compare(false, state, found);
            slot += 1;
            if state.tasks.iter().all(|t| t.status == Status::Nothing) {
                // Nor is anybody in the quanta until something happens.
                return;
            }
        }
    }
}
