//! What a schedule adds up to, task by task and job by job.
//!
//! Definitions are those of 002 §2.1: response time is completion − release, tardiness max(0,
//! completion − deadline); a job that leaves its processor unfinished is preempted, unless it goes
//! on elsewhere in the same instant; one that goes on elsewhere migrates, and migrations are told
//! apart by the nearest cache that both processors share (000 §3). Time lost to an overhead (002
//! §2.4) is charged to the task on whose behalf it was, whoever is delayed by it. The simulator
//! counts the same without events: [`Summary`] is one for both.

use crate::distribution::Distribution;
use crate::event::{Event, EventKind, Flags};
use crate::header::{Header, Origin};
use crate::overheads::Undisturbed;
use crate::sink::Sink;
use crate::state::{Doing, Job, Observer, Span, State, Took};
use crate::summary::{
    OverheadSummary, ProcessorSummary, Recorded, Summary, TaskRecord, TaskSummary, by_overhead,
};
use crate::thrashing::Thrashing;
use model::Overhead;
use model::{CpuId, Duration, Instant, Platform, Resumption, TaskId, TaskSet};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRow {
    /// Whose.
    pub task: TaskId,
    /// Its number, from 0.
    pub job: u64,
    /// Nominal release.
    pub release: Instant,
    /// Absolute deadline.
    pub deadline: Instant,
    /// When it first ran.
    pub start: Instant,
    /// When it was done.
    pub completion: Instant,
    /// Where it was done.
    pub cpu: CpuId,
    /// How long it executed, without overheads.
    pub executed: Duration,
    /// How often it was taken off unfinished, but for moves within an instant.
    pub preemptions: u32,
    /// How often it went on elsewhere.
    pub migrations: u32,
    /// Time lost to each overhead on its behalf.
    pub lost: [Duration; 7],
    /// Was it cut short?
    pub cut: bool,
}

impl JobRow {
    /// The names of the columns of [`JobRow::csv`], with a line end.
    pub fn csv_head() -> String {
        let mut text = String::from(
            "task,job,release_ns,deadline_ns,start_ns,completion_ns,response_ns,tardiness_ns,processor,executed_ns,\
             preemptions,migrations,cut",
        );
        for overhead in Overhead::ALL {
            // Writing into a string cannot fail, here and below.
            let _ = write!(text, ",lost_{}_ns", overhead.name().replace('-', "_"));
        }
        text + "\n"
    }

    /// The row with a line end; `name` is the task's, already fit for CSV. Jobs count from 1.
    pub fn csv(&self, name: &str, out: &mut String) {
        let _ = write!(
            out,
            "{name},{},{},{},{},{},{},{},{},{},{},{},{}",
            crate::state::nth(self.job),
            self.release.nanos(),
            self.deadline.nanos(),
            self.start.nanos(),
            self.completion.nanos(),
            self.completion.since(self.release).nanos(),
            self.completion.since(self.deadline).nanos(),
            self.cpu,
            self.executed.nanos(),
            self.preemptions,
            self.migrations,
            u8::from(self.cut),
        );
        for lost in self.lost {
            let _ = write!(out, ",{}", lost.nanos());
        }
        out.push('\n');
    }
}

/// What is known of the job that a task is at.
#[derive(Clone, Copy, Default)]
struct Current {
    start: Instant,
    preemptions: u32,
    migrations: u32,
    /// When it was last taken off.
    stopped: Option<Instant>,
}

#[derive(Clone, Default)]
struct TaskTally {
    released: u64,
    misses: u64,
    cut: u64,
    exhausted: u64,
    response: Distribution,
    tardiness: Distribution,
    preemptions: u64,
    migrations: BTreeMap<Resumption, u64>,
    executed: u128,
    lost: [u128; 7],
    current: Current,
    /// By pending job for which time was lost, so much; the releases of later jobs are handled
    /// before the first is done.
    lost_by: Vec<(u64, [Duration; 7])>,
}

impl TaskTally {
    /// A job runs again: if it left its processor in this very instant, it only moved.
    fn went_on(&mut self, now: Instant) {
        if self.current.stopped.take() == Some(now) {
            self.preemptions -= 1;
            self.current.preemptions -= 1;
        }
    }
}

#[derive(Clone, Copy, Default)]
struct CpuTally {
    executed: u128,
    overheads: u128,
}

/// Adds up a schedule while it is recorded or read.
pub struct Statistics {
    set: TaskSet,
    platform: Platform,
    state: State,
    tally: Tally,
    thrashing: Option<Thrashing>,
    switches: u64,
    senseless: u64,
}

struct Tally {
    tasks: Vec<TaskTally>,
    cpus: Vec<CpuTally>,
    rows: Option<Vec<JobRow>>,
    /// Lost on behalf of no task.
    lost: [u128; 7],
    /// Overheads one by one, and how long the undisturbed ones took, by number.
    overheads: Undisturbed,
    took: [Distribution; 7],
    /// Where the event in hand happens, and its flags.
    cpu: CpuId,
    flags: Flags,
}

impl Observer for Tally {
    fn took(&mut self, took: Took) {
        self.overheads.add(took);
        for took in self.overheads.drain_settled() {
            self.took[took.overhead as usize].record(took.length);
        }
    }

    fn span(&mut self, span: Span) {
        let length = span.to.since(span.from);
        match span.doing {
            Doing::Executing => {
                self.cpus[span.cpu.index()].executed += u128::from(length.nanos());
                if let Some((task, _)) = span.job {
                    self.tasks[task.index()].executed += u128::from(length.nanos());
                }
            }
            Doing::Overhead(overhead) => {
                if overhead.occupies_processor() {
                    self.cpus[span.cpu.index()].overheads += u128::from(length.nanos());
                }
                let task = span.serves.and_then(|(task, job)| {
                    let task = self.tasks.get_mut(task.index())?;
                    Some((task, job))
                });
                let Some((task, job)) = task else {
                    self.lost[overhead as usize] += u128::from(length.nanos());
                    return;
                };
                task.lost[overhead as usize] += u128::from(length.nanos());
                if self.rows.is_some() {
                    let at = task.lost_by.iter().position(|(number, _)| *number == job);
                    let at = at.unwrap_or_else(|| {
                        task.lost_by.push((job, [Duration::ZERO; 7]));
                        task.lost_by.len() - 1
                    });
                    let lost = &mut task.lost_by[at].1[overhead as usize];
                    *lost = lost.saturating_add(length);
                }
            }
        }
    }

    fn done(&mut self, task: TaskId, job: &Job, completion: Instant, executed: Duration) {
        let cut = self.flags.has(Flags::CUT);
        let tally = &mut self.tasks[task.index()];
        tally.response.record(completion.since(job.release));
        tally.tardiness.record(completion.since(job.deadline));
        tally.cut += u64::from(cut);
        let current = std::mem::take(&mut tally.current);
        if let Some(rows) = &mut self.rows {
            let of = tally
                .lost_by
                .iter()
                .find(|(number, _)| *number == job.number);
            let lost = of.map(|(_, lost)| *lost).unwrap_or_default();
            tally.lost_by.retain(|(number, _)| *number > job.number);
            rows.push(JobRow {
                task,
                job: job.number,
                release: job.release,
                deadline: job.deadline,
                start: current.start,
                completion,
                cpu: self.cpu,
                executed,
                preemptions: current.preemptions,
                migrations: current.migrations,
                lost,
                cut,
            });
        }
    }
}

impl Statistics {
    /// Of a schedule under this header. With `rows`, every finished job is kept until
    /// [`Statistics::take_rows`].
    pub fn new(header: &Header, rows: bool) -> Self {
        let set = &header.tasks;
        // How late a real machine may be is for the checker to say; here every event counts.
        let tolerance = match header.origin {
            Origin::Simulated => Duration::ZERO,
            Origin::Real => Duration::MAX,
        };
        let mut state = State::new(header, tolerance);
        state.has_slices = header
            .stages
            .iter()
            .any(|stage| crate::check::policies::has_slices(&stage.policy));
        Statistics {
            set: set.clone(),
            platform: header.platform.clone(),
            thrashing: Thrashing::of(
                set,
                &header.platform,
                header.stages.iter().map(|stage| stage.policy.as_str()),
            ),
            tally: Tally {
                tasks: vec![TaskTally::default(); set.len()],
                cpus: vec![CpuTally::default(); state.processors.len()],
                rows: rows.then(Vec::new),
                lost: [0; 7],
                overheads: Undisturbed::default(),
                took: Default::default(),
                cpu: CpuId(0),
                flags: Flags::NONE,
            },
            state,
            switches: 0,
            senseless: 0,
        }
    }

    /// The jobs that were finished since this was last asked, in the order of their completions.
    pub fn take_rows(&mut self) -> Vec<JobRow> {
        self.tally
            .rows
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// What it adds up to.
    pub fn summary(&self) -> Summary {
        let mut kinds = self.platform.resumptions();
        kinds.retain(|kind| *kind != Resumption::Preemption);
        let tasks = self
            .tally
            .tasks
            .iter()
            .zip(self.set.ids())
            .zip(&self.state.tasks)
            .map(|((t, id), state)| TaskSummary {
                task: self.set.name(id),
                soft: self.set.details(id).is_some_and(|d| d.soft),
                released: t.released,
                jobs: t.response.count(),
                unfinished: state.pending.len() as u64,
                misses: t.misses,
                cut: t.cut,
                response: t.response.spread(),
                tardiness: t.tardiness.spread(),
                preemptions: t.preemptions,
                migrations: kinds
                    .iter()
                    .map(|k| (k.to_string(), t.migrations.get(k).copied().unwrap_or(0)))
                    .collect(),
                lost_ns: by_overhead(t.lost.map(clamp)),
                recorded: Some(TaskRecord {
                    executed_ns: clamp(t.executed),
                    budget_exhausted: t.exhausted,
                }),
            })
            .collect::<Vec<_>>();
        let processors = self
            .tally
            .cpus
            .iter()
            .enumerate()
            .filter(|(cpu, _)| self.state.processors[*cpu].may_run())
            .map(|(cpu, c)| ProcessorSummary {
                cpu: cpu as u32,
                executed_ns: clamp(c.executed),
                overheads_ns: clamp(c.overheads),
            })
            .collect();
        Summary {
            horizon_ns: self.state.now.nanos(),
            jobs: tasks.iter().map(|t| t.jobs).sum(),
            misses: tasks.iter().map(|t| t.misses).sum(),
            preemptions: tasks.iter().map(|t| t.preemptions).sum(),
            migrations: tasks
                .iter()
                .map(|t| t.migrations.values().sum::<u64>())
                .sum(),
            lost_to_no_task_ns: by_overhead(self.tally.lost.map(clamp)),
            thrashed: self.thrashing.as_ref().map(Thrashing::told),
            tasks,
            recorded: Some(Recorded {
                policy_switches: self.switches,
                lost_events: self.state.lost,
                senseless_events: self.senseless,
                processors,
                overheads: self.tally.overheads(),
            }),
        }
    }
}

impl Tally {
    /// The overheads that were seen.
    fn overheads(&self) -> Vec<OverheadSummary> {
        let mut took = self.took.clone();
        for late in self.overheads.unsettled() {
            took[late.overhead as usize].record(late.length);
        }
        let all = Overhead::ALL.into_iter().zip(&took);
        all.map(|(overhead, took)| OverheadSummary {
            overhead: overhead.name(),
            samples: took.count(),
            stood_still: self.overheads.disturbed(overhead),
            took: took.spread(),
        })
        .filter(|o| o.samples + o.stood_still > 0)
        .collect()
    }
}

fn clamp(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Sink for Statistics {
    fn record(&mut self, event: Event) {
        self.thrashing.record(event);
        self.tally.cpu = event.cpu().unwrap_or_default();
        self.tally.flags = event.flags;
        if self.state.apply(&event, &mut self.tally).is_err() {
            self.senseless += 1;
            if event.kind.has_job() && event.task.index() >= self.tally.tasks.len() {
                return;
            }
        }
        let tasks = &mut self.tally.tasks;
        match event.kind {
            EventKind::Standstill => {
                let (cpu, length) = (self.tally.cpu, event.length());
                self.tally.overheads.stood_still(cpu, event.time, length);
            }
            EventKind::PolicySwitch => self.switches += 1,
            kind if !kind.has_job() || event.task.index() >= tasks.len() => {}
            EventKind::Release => tasks[event.task.index()].released += 1,
            EventKind::Start => tasks[event.task.index()].current.start = event.time,
            EventKind::Preemption => {
                let t = &mut tasks[event.task.index()];
                t.preemptions += 1;
                t.current.preemptions += 1;
                t.current.stopped = Some(event.time);
            }
            EventKind::Resumption => tasks[event.task.index()].went_on(event.time),
            EventKind::Migration => {
                let from = CpuId(u32::try_from(event.argument).unwrap_or(u32::MAX));
                let kind = self
                    .platform
                    .resumption(from, event.cpu().unwrap_or_default());
                let t = &mut tasks[event.task.index()];
                t.went_on(event.time);
                *t.migrations.entry(kind).or_default() += 1;
                t.current.migrations += 1;
            }
            EventKind::DeadlineMiss => tasks[event.task.index()].misses += 1,
            EventKind::BudgetExhausted => tasks[event.task.index()].exhausted += 1,
            _ => {}
        }
    }
}
