//! EDF-WM: jobs cut into slices, each with its processor, window and budget (002 §4.2).
//!
//! Slice k of a job may run on its processor only, from the end of window k − 1 (but not before
//! slice k − 1 is used up), for at most its budget; the last slice takes what is left. On every
//! processor the earliest end of a window runs, fixed tasks with their deadlines among them.

use crate::check::domains::{Domains, Key};
use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, State, nth};
use model::assignment::Slice;
use model::{CpuId, Duration, Instant, TaskId};

/// Where the first pending job of a task is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Which slice it is in.
    part: usize,
    /// What it had executed when that slice began.
    before: Duration,
    /// When that slice may begin to run; `None`: now.
    opens: Option<Instant>,
    /// Since when it could.
    ready: Instant,
    /// Was its window told?
    told: bool,
}

/// The rule of EDF-WM.
pub struct Windows {
    domains: Domains,
    slices: Vec<Vec<Slice>>,
    /// The tasks that have several slices.
    split: Vec<TaskId>,
    at: Vec<Progress>,
    /// Tasks whose next slice opens later.
    closed: Vec<TaskId>,
    tolerance: Duration,
    /// Do decisions take time?
    overheads: bool,
}

impl Windows {
    /// Over these domains of one processor each.
    pub fn new(domains: Domains, slices: Vec<Vec<Slice>>, tolerance: Duration) -> Self {
        Windows {
            domains,
            at: vec![Progress::default(); slices.len()],
            split: (0..slices.len())
                .filter(|task| slices[*task].len() > 1)
                .map(|task| TaskId(task as u32))
                .collect(),
            slices,
            closed: Vec::new(),
            tolerance,
            overheads: false,
        }
    }

    fn slice(&self, task: TaskId) -> Slice {
        let slices = &self.slices[task.index()];
        slices[self.at[task.index()].part.min(slices.len() - 1)]
    }

    /// When the window of the current slice ends; the deadline of the job for the last one.
    fn window(&self, task: TaskId, state: &State) -> Option<(Instant, Instant)> {
        let job = state.tasks[task.index()].head()?;
        let (slices, part) = (&self.slices[task.index()], self.at[task.index()].part);
        let sum = |count: usize| {
            let windows = slices[..count].iter().map(|s| s.window);
            let sum = windows.fold(Duration::ZERO, Duration::saturating_add);
            job.release.checked_add(sum).unwrap_or(job.deadline)
        };
        let end = if slices.len() == 1 {
            job.deadline
        } else {
            sum(part + 1)
        };
        Some((sum(part), end))
    }

    fn key(&self, task: TaskId, state: &State) -> Option<Key> {
        let (begin, end) = self.window(task, state)?;
        Some(Key {
            class: 0,
            deadline: end,
            release: if self.at[task.index()].part == 0 {
                state.tasks[task.index()].head()?.release
            } else {
                begin
            },
            task,
        })
    }

    fn wait(&mut self, task: TaskId, state: &State) {
        if let (Some(domain), Some(key)) = (
            self.domains.domain_of(self.slice(task).cpu),
            self.key(task, state),
        ) {
            self.domains.wait(domain, key);
        }
    }

    /// A new job is at the front.
    fn first(&mut self, task: TaskId, state: &State) {
        self.at[task.index()] = Progress {
            ready: state.now,
            ..Progress::default()
        };
        self.closed.retain(|t| *t != task);
        self.wait(task, state);
    }

    /// What the job has executed in its slice must be within the budget; says whether the budget is
    /// used up.
    fn spent(
        &self,
        task: TaskId,
        executed: Duration,
        exact: bool,
        state: &State,
        found: &mut Found,
    ) -> bool {
        let progress = self.at[task.index()];
        let slices = &self.slices[task.index()];
        if progress.part + 1 >= slices.len() {
            return false;
        }
        let budget = slices[progress.part].budget;
        let spent = executed.saturating_sub(progress.before);
        // The processor may have stood still under the job, which nobody could take off it then.
        let stood = || {
            state.now.since(progress.ready).saturating_sub(state.awake(
                progress.ready,
                state.now,
                None,
            ))
        };
        let slack = match exact {
            true => Duration::ZERO,
            false => self.tolerance.saturating_add(stood()),
        };
        if spent > budget.saturating_add(slack) {
            found.faults.push(Fault {
                rule: "slice",
                text: format!(
                    "task {} executed {spent} in its slice {}, whose budget is {budget}",
                    task.0 + 1,
                    progress.part + 1
                ),
            });
        }
        spent >= budget
    }

    fn exhaust(&mut self, event: &Event, state: &State, found: &mut Found) {
        let task = event.task;
        let t = &state.tasks[task.index()];
        let part = self.at[task.index()].part;
        let budget = self.slice(task).budget;
        if part + 1 >= self.slices[task.index()].len() || self.at[task.index()].opens.is_some() {
            // Nothing is left to be used up but the budget of the whole job.
            let wcet = state.timing(task).wcet;
            if state.is_simulated() && (event.argument != wcet.nanos() || t.executed < wcet) {
                found.faults.push(Fault {
                    rule: "slice",
                    text: format!("task {} has no slice that could be used up", task.0 + 1),
                });
            }
            return;
        }
        let used_up = self.spent(task, t.executed, state.is_simulated(), state, found);
        let said = Duration::from_nanos(event.argument);
        if state.is_simulated() && (!used_up || (said != budget && said != t.executed)) {
            found.faults.push(Fault {
                rule: "slice",
                text: format!(
                    "slice {} of task {} is called used up ({said}), its budget is {budget}",
                    part + 1,
                    task.0 + 1
                ),
            });
        }
        let progress = &mut self.at[task.index()];
        progress.part += 1;
        progress.before = t.executed;
        progress.told = false;
        let opens = self
            .window(task, state)
            .map_or(event.time, |(begin, _)| begin);
        self.at[task.index()].opens = Some(opens.max(event.time));
        self.closed.push(task);
    }

    /// Of every slice that is ready its window is told at once, on a real machine within the
    /// tolerance. With overheads a slice becomes ready when its release was serviced, which is not
    /// known here: then it is asked for when the slice runs.
    fn told(&mut self, to: Instant, state: &State, found: &mut Found) {
        if self.overheads && state.is_simulated() {
            return;
        }
        for task in &self.split {
            let (progress, t) = (&mut self.at[task.index()], &state.tasks[task.index()]);
            if progress.told || progress.opens.is_some() || !t.is_waiting() || progress.ready >= to
            {
                continue;
            }
            if state.awake(progress.ready, to, None) > self.tolerance {
                progress.told = true;
                found.faults.push(untold(*task, progress.part));
            }
        }
    }

    /// Slices whose window opens at `now` or before begin to wait.
    fn open(&mut self, now: Instant, state: &State) {
        let mut at = 0;
        while at < self.closed.len() {
            let task = self.closed[at];
            if let Some(opens) = self.at[task.index()].opens.filter(|opens| *opens <= now) {
                self.at[task.index()].opens = None;
                self.at[task.index()].ready = opens;
                self.closed.swap_remove(at);
                if state.tasks[task.index()].is_waiting() {
                    self.wait(task, state);
                }
            } else {
                at += 1;
            }
        }
    }

    /// A job of the task runs on this processor from now on.
    fn run(&mut self, task: TaskId, cpu: CpuId, state: &State, found: &mut Found) {
        let mut wrong = |rule: &'static str, text: String| found.faults.push(Fault { rule, text });
        let slice = self.slice(task);
        if cpu != slice.cpu {
            wrong(
                "place",
                format!(
                    "task {} runs on {cpu:?}, its slice is on {:?}",
                    task.0 + 1,
                    slice.cpu
                ),
            );
        }
        let progress = &mut self.at[task.index()];
        if self.slices[task.index()].len() > 1 && !std::mem::replace(&mut progress.told, true) {
            let fault = untold(task, progress.part);
            wrong(fault.rule, fault.text);
        }
        if let Some(opens) = progress.opens {
            wrong(
                "window",
                format!(
                    "task {} runs before its window opens at {opens}",
                    task.0 + 1
                ),
            );
        }
        if let Some(key) = self.key(task, state) {
            self.domains.run(cpu, key);
        }
    }

    /// The job of the task leaves the processor before it completes.
    fn stop(&mut self, task: TaskId, cpu: CpuId, state: &State, found: &mut Found) {
        self.domains.stop(cpu);
        let t = &state.tasks[task.index()];
        if self.at[task.index()].opens.is_none() && !self.closed.contains(&task) {
            let used_up = self.spent(task, t.executed, state.is_simulated(), state, found);
            if used_up && state.is_simulated() {
                found.faults.push(Fault {
                    rule: "slice",
                    text: format!(
                        "task {} has used up its slice, which is not said",
                        task.0 + 1
                    ),
                });
            }
            if t.is_waiting() {
                self.wait(task, state);
            }
        }
    }
}

impl Rule for Windows {
    fn begin(&mut self, state: &State) {
        for (task, t) in state.tasks.iter().enumerate() {
            if t.is_waiting() {
                self.first(TaskId(task as u32), state);
            }
        }
    }

    fn event(&mut self, event: &Event, state: &State, found: &mut Found) {
        self.open(event.time, state);
        let task = event.task;
        let Some(cpu) = event.cpu() else { return };
        let mut wrong = |rule: &'static str, text: String| found.faults.push(Fault { rule, text });
        match event.kind {
            EventKind::Release => {
                let t = &state.tasks[task.index()];
                let home = self.slices[task.index()][0].cpu;
                if state.is_simulated() && cpu != home && !state.is_released_on(task, cpu) {
                    wrong(
                        "place",
                        format!(
                            "task {} is released on {cpu:?}, not on {home:?}",
                            task.0 + 1
                        ),
                    );
                }
                if t.pending.len() == 1 && t.is_waiting() {
                    self.first(task, state);
                }
            }
            EventKind::Window => {
                let window = self.window(task, state);
                let head = state.tasks[task.index()].head().map(|j| j.number);
                let kept = head == Some(event.job)
                    && cpu == self.slice(task).cpu
                    && window
                        .is_some_and(|(begin, end)| end == event.deadline() && begin <= event.time)
                    && self.at[task.index()].opens.is_none()
                    && !std::mem::replace(&mut self.at[task.index()].told, true)
                    && (self.overheads
                        || !state.is_simulated()
                        || event.time == self.at[task.index()].ready);
                if !kept {
                    wrong(
                        "window",
                        format!(
                            "job {} of task {} has no window on {cpu:?} that ends at {}",
                            nth(event.job),
                            task.0 + 1,
                            event.deadline()
                        ),
                    );
                }
            }
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                self.run(task, cpu, state, found);
            }
            EventKind::BudgetExhausted => self.exhaust(event, state, found),
            EventKind::Preemption | EventKind::Suspension => {
                self.stop(task, cpu, state, found);
                self.open(event.time, state);
            }
            EventKind::Completion => {
                self.domains.stop(cpu);
                let executed = Duration::from_nanos(event.argument);
                if state.is_simulated() {
                    self.spent(task, executed, true, state, found);
                }
                self.at[task.index()] = Progress::default();
                self.closed.retain(|t| *t != task);
                if state.tasks[task.index()].is_waiting() {
                    self.first(task, state);
                }
            }
            EventKind::WakeUp => self.wait(task, state),
            EventKind::OverheadBegin | EventKind::OverheadEnd => {
                self.overheads = true;
                self.domains.touch_cpu(cpu);
            }
            _ => {}
        }
    }

    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        self.told(to, state, found);
        let mut from = from;
        loop {
            self.open(from, state);
            let next = self
                .closed
                .iter()
                .filter_map(|t| self.at[t.index()].opens)
                .min();
            let until = next.map_or(to, |next| next.min(to));
            let lengths = &mut found.lengths;
            self.domains
                .hold(from, until, state, &mut found.faults, &mut |d| {
                    lengths.push(d);
                });
            if until >= to {
                return;
            }
            from = until;
        }
    }
}

fn untold(task: TaskId, part: usize) -> Fault {
    Fault {
        rule: "window",
        text: format!(
            "the window of slice {} of task {} is not told",
            part + 1,
            task.0 + 1
        ),
    }
}

/// The domains of the processors of an assignment: one each.
pub fn one_each(cpus: &[CpuId]) -> Vec<Vec<CpuId>> {
    cpus.iter().map(|c| vec![*c]).collect()
}
