//! The checker: does a trace keep the rules of every schedule, and those of its own policy?
//!
//! It knows a policy by its name and its assignment, and derives the rules from the papers'
//! definitions, not from the code that made the trace: a second opinion. One pass; memory grows
//! with tasks, processors and pending jobs, and holds a second of a real run's events.
//!
//! After lost events nothing can be said for certain: the checker stops there and says how many
//! events it did not check.

mod cache_aware;
mod charges;
mod domains;
mod executed;
mod fair;
pub(crate) mod policies;
pub use policies::has_rule;
mod priority;
mod quanta;
mod servers;
mod transfers;
mod windows;

use crate::check::charges::Charged;
use crate::check::executed::{Executed, Shown};
use crate::distribution::Distribution;
use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::sink::Sink;
use crate::state::{Fault, State, Status};
use model::{Duration, Instant, Result, TaskId};
use serde::Serialize;
use std::collections::VecDeque;

mod verdict;
pub use verdict::{Overdue, Standstills, Verdict, Violation};

/// What a policy promises, looked at event by event.
trait Rule: Send {
    /// The rule takes over; the schedule may be under way already.
    fn begin(&mut self, state: &State);
    /// An event has just changed the state.
    fn event(&mut self, event: &Event, state: &State, found: &mut Found);
    /// Everything holds still from `from` to `to`.
    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found);
}

/// What rules found.
#[derive(Debug, Default)]
struct Found {
    faults: Vec<Fault>,
    /// How long decisions were overdue, each time.
    lengths: Vec<Duration>,
    /// What was not checked, and why.
    notes: Vec<String>,
}

/// What the checker allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How long a decision may be overdue, and a release late. Zero for simulated traces.
    pub tolerance: Duration,
    /// How many violations are kept with all that they came with; the rest is counted.
    pub keep: usize,
}

impl Options {
    /// The tolerance that is used for real runs where none is given.
    pub const REAL: Duration = Duration::from_millis(1);

    /// What suits a trace.
    pub fn for_trace(header: &Header) -> Self {
        Options {
            tolerance: match header.origin {
                crate::header::Origin::Simulated => Duration::ZERO,
                crate::header::Origin::Real => Self::REAL,
            },
            keep: 20,
        }
    }
}

/// A job that was ready when a rule was broken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ready {
    /// Name of the task.
    pub task: String,
    /// Number of the job, from 1.
    pub job: u64,
    /// Its absolute deadline, in nanoseconds.
    pub deadline_ns: u64,
    /// Where it runs; `None`: it waits.
    pub on: Option<u32>,
}

/// Checks a trace while it is recorded or read.
pub struct Checker {
    header: Header,
    options: Options,
    state: State,
    rule: Option<Box<dyn Rule>>,
    charged: Option<Charged>,
    /// Of a real run: what jobs say that they executed.
    executed: Option<Executed>,
    found: Found,
    events: u64,
    unchecked: u64,
    violations: u64,
    first: Vec<Violation>,
    overdue: Distribution,
    /// How late jobs were released in a real run.
    late_releases: Distribution,
    /// By how much jobs of a real run say to have executed for longer than is shown.
    unseen: Distribution,
    standstills: Standstills,
    /// Events of a real run that are not looked at yet.
    ahead: VecDeque<Event>,
    policies: Vec<String>,
    notes: Vec<String>,
}

/// That a processor stood still is known when it runs again: a real run is looked at so long
/// afterwards.
const AHEAD: Duration = Duration::from_secs(1);
/// And no more events are kept for it.
const MOST_AHEAD: usize = 1 << 20;

impl Checker {
    /// A checker for traces of this header.
    ///
    /// # Errors
    /// An assignment that does not fit its policy, its platform or its tasks.
    pub fn new(header: Header, options: Options) -> Result<Self> {
        let state = State::new(&header, options.tolerance);
        // On a real machine overheads take the time that they take.
        let slices = header
            .stages
            .iter()
            .any(|s| policies::has_slices(&s.policy));
        let charges = header.charges.clone().filter(|_| state.is_simulated());
        let charged = charges.map(|c| Charged::new(c, &header, slices, state.processors.len()));
        let executed = (!state.is_simulated()).then(|| {
            Executed::new(
                header.tasks.len(),
                state.processors.len(),
                options.tolerance,
            )
        });
        let mut checker = Checker {
            state,
            rule: None,
            charged,
            executed,
            found: Found::default(),
            events: 0,
            unchecked: 0,
            violations: 0,
            first: Vec::new(),
            overdue: Distribution::default(),
            late_releases: Distribution::default(),
            unseen: Distribution::default(),
            standstills: Standstills::default(),
            ahead: VecDeque::new(),
            policies: Vec::new(),
            notes: Vec::new(),
            header,
            options,
        };
        // Every stage is looked at now, so that a bad assignment is an error and not a violation
        // later.
        for stage in (0..checker.header.stages.len()).rev() {
            checker.rule_by(stage)?;
        }
        Ok(checker)
    }

    /// From now on the policy of this stage rules.
    fn rule_by(&mut self, stage: usize) -> Result<()> {
        let policy = self.header.stages[stage].policy.clone();
        self.rule = policies::rule(&self.header, stage, &self.state, self.options.tolerance)?;
        self.state.has_slices = policies::has_slices(&policy);
        self.state.has_servers = policies::has_servers(&policy);
        self.state.has_windows = policies::has_windows(&policy);
        self.state.alone = policies::alone(&self.header.stages[stage]);
        match &mut self.rule {
            Some(rule) => {
                rule.begin(&self.state);
                if !self.policies.contains(&policy) {
                    self.policies.push(policy);
                }
            }
            None => {
                let note = format!(
                    "no rules are known for `{policy}`: only those of every schedule were checked"
                );
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn report(&mut self, fault: Fault, time: Instant, event: Option<&Event>) {
        self.violations += 1;
        if self.first.len() < self.options.keep {
            let violation = Violation {
                time_ns: time.nanos(),
                rule: fault.rule,
                text: fault.text,
                event: event.map(|e| (self.events, e.to_string())),
                queue: self.queue(),
            };
            self.first.push(violation);
        }
    }

    fn queue(&self) -> Vec<Ready> {
        let mut ready: Vec<(Instant, Ready)> = Vec::new();
        for (index, task) in self.state.tasks.iter().enumerate() {
            if let Some(job) = task.head() {
                let on = match task.status {
                    Status::Running(cpu) => Some(cpu.0),
                    _ => None,
                };
                ready.push((
                    job.deadline,
                    Ready {
                        task: self.header.tasks.name(TaskId(index as u32)),
                        job: job.number.saturating_add(1),
                        deadline_ns: job.deadline.nanos(),
                        on,
                    },
                ));
            }
        }
        ready.sort_by_key(|(deadline, _)| *deadline);
        ready
            .into_iter()
            .map(|(_, r)| r)
            .take(Violation::MAX_QUEUE)
            .collect()
    }

    /// Time goes on from the latest event to `to`.
    fn hold(&mut self, to: Instant) {
        let from = self.state.now;
        if let Err(fault) = self.state.settle() {
            self.report(fault, from, None);
        }
        if let Some(charged) = &mut self.charged {
            charged.hold(from, to, &self.state, &mut self.found.faults);
        }
        if let Some(executed) = &mut self.executed {
            executed.hold(from, to, &self.state);
        }
        if let Some(rule) = &mut self.rule {
            rule.hold(from, to, &self.state, &mut self.found);
        }
        self.take_found(from, None);
    }

    fn take_found(&mut self, time: Instant, event: Option<&Event>) {
        if !self.found.notes.is_empty() {
            self.notes.append(&mut self.found.notes);
        }
        for length in self.found.lengths.drain(..) {
            self.overdue.record(length);
        }
        if !self.found.faults.is_empty() {
            for fault in std::mem::take(&mut self.found.faults) {
                self.report(fault, time, event);
            }
        }
    }

    /// What there is to say, once the trace is over.
    pub fn finish(mut self) -> Verdict {
        while let Some(event) = self.ahead.pop_front() {
            self.look(event);
        }
        if self.state.lost == 0 && !self.state.ended {
            self.notes.push(
                "the trace has no end: jobs that were pending at its end were not checked"
                    .to_owned(),
            );
        }
        Verdict {
            events: self.events - self.unchecked,
            unchecked: self.unchecked,
            lost: self.state.lost,
            policies: self.policies,
            notes: self.notes,
            tolerance_ns: self.options.tolerance.nanos(),
            overdue: Overdue::of(&self.overdue),
            standstills: self.standstills,
            late_releases: Overdue::of(&self.late_releases),
            unseen: Overdue::of(&self.unseen),
            violations: self.violations,
            first: self.first,
        }
    }
}

impl Sink for Checker {
    fn record(&mut self, event: Event) {
        if self.state.is_simulated() {
            return self.look(event);
        }
        if let (EventKind::Standstill, Some(cpu)) = (event.kind, event.cpu()) {
            self.state.stood.add(cpu, event.time, event.length());
        }
        self.ahead.push_back(event);
        let due = |first: &Event| event.time.since(first.time) >= AHEAD;
        while (self.ahead.front().is_some_and(due) || self.ahead.len() > MOST_AHEAD)
            && let Some(first) = self.ahead.pop_front()
        {
            self.look(first);
        }
    }
}

impl Checker {
    /// Looks at an event, knowing what stood still around it.
    fn look(&mut self, event: Event) {
        if self.state.lost > 0 {
            self.events += 1;
            self.unchecked += 1;
            if event.kind == EventKind::Lost {
                self.state.lost = self.state.lost.saturating_add(event.argument);
            }
            return;
        }
        if let Err(fault) = self.state.check_form(&event) {
            // Nothing can be made of it: the schedule goes on as if it were not there.
            self.report(fault, event.time, Some(&event));
            self.events += 1;
            return;
        }
        if event.time > self.state.now {
            self.hold(event.time);
        }
        if let Some(charged) = &mut self.charged {
            charged.event(&event, &self.state, &mut self.found.faults);
        }
        if let Some(executed) = &mut self.executed {
            executed.event(&event, &self.state);
        }
        let mut shown = Shown::default();
        if let Err(fault) = self.state.take(&event, &mut shown) {
            self.report(fault, event.time, Some(&event));
        }
        if let (Some(executed), Some(shown)) = (&mut self.executed, shown.0) {
            match executed.complete(&event, shown) {
                Ok(more) => self.unseen.record(more),
                Err(fault) => self.report(fault, event.time, Some(&event)),
            }
        }
        match event.kind {
            EventKind::Lost => {
                let text = format!(
                    "{} events were lost; what follows is not checked",
                    event.argument
                );
                let rule = "complete";
                self.report(Fault { rule, text }, event.time, Some(&event));
            }
            EventKind::Release if !self.state.is_simulated() => {
                let relative = self.state.timing(event.task).deadline;
                let nominal = Instant::ZERO + event.deadline().since(Instant::ZERO + relative);
                self.late_releases.record(event.time.since(nominal));
            }
            EventKind::Standstill => {
                let length = event.length().nanos();
                self.standstills.count += 1;
                self.standstills.total_ns = self.standstills.total_ns.saturating_add(length);
                self.standstills.max_ns = self.standstills.max_ns.max(length);
            }
            EventKind::PolicySwitch => {
                if let Err(e) = self.rule_by(event.argument as usize) {
                    self.notes.push(e.to_string());
                }
            }
            _ => {}
        }
        if let Some(rule) = &mut self.rule {
            rule.event(&event, &self.state, &mut self.found);
        }
        self.take_found(event.time, Some(&event));
        self.events += 1;
    }
}
