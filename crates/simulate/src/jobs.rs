//! The jobs of a simulation: when each task releases its next one, where its current job is, and
//! what is counted.
//!
//! The life of the current job is that of room `job`. Its successors are known by number alone:
//! their releases and execution times are computed when they are needed, so that a backlog takes
//! no memory.

use crate::course::Processor;
use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::show::Show;
use crate::summary::{Ending, Miss, Summary, TaskSummary};
use job::{Begin, Life, Limits, Reached};
use model::{CpuId, Duration, Enforcement, Instant, Platform, Result, Resumption, TaskId, TaskSet};
use policy::Job;
use std::hint::select_unpredictable;

/// One task; times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its current job, or its next one.
    pub life: Life<Processor>,
    /// The release of the job of [`Life::number`], if that has arrived.
    release: u64,
    /// How long after its arrival the job of [`Life::number`] is released.
    late: u64,
    /// The release of job number `arrived`; `u64::MAX`: there is none.
    pub next_release: u64,
    /// How many jobs were released.
    arrived: u64,
    /// Of how many the release was serviced.
    released: u64,
    period: u64,
    deadline: u64,
    pub wcet: u64,
    /// Execution time of every job, where it is the same for all.
    demand: u64,
    completed: u64,
    cut: u64,
    response_max: u64,
    response_sum: u128,
    tardiness_max: u64,
    misses: u64,
    preemptions: u64,
}

impl Row {
    #[inline(always)]
    fn arrive(&mut self, task: TaskId, scenario: &Scenario) -> u64 {
        let number = self.arrived;
        if number == self.life.number() && !self.life.is_current() {
            self.release = self.next_release;
        }
        self.arrived += 1;
        self.next_release = scenario.release_after(task, number, self.next_release, self.period);
        number
    }

    /// The job of [`Life::number`], which is released and serviced, becomes the current one.
    #[inline(always)]
    fn begin(
        &mut self,
        task: TaskId,
        scenario: &Scenario,
        constant_demand: bool,
        budgeted: bool,
    ) -> Job {
        let demand = match constant_demand {
            true => self.demand,
            false => scenario.demand(task, self.life.number(), self.wcet),
        };
        self.life.begin(Begin {
            release: Instant::from_nanos(self.release),
            deadline: Instant::from_nanos(self.due()),
            demand: Some(Duration::from_nanos(demand)),
            budget: budgeted.then_some(Duration::from_nanos(self.wcet)),
        });
        self.life.job(task)
    }

    /// When the job of [`Life::number`] is due.
    #[inline(always)]
    fn due(&self) -> u64 {
        (self.release - self.late).saturating_add(self.deadline)
    }
}

/// All tasks.
pub(crate) struct Jobs<'a> {
    pub rows: Vec<Row>,
    scenario: &'a Scenario,
    constant_demand: bool,
    /// Whether jobs have budgets.
    budgeted: bool,
    pub limits: Limits,
    pub first_miss: Option<Miss>,
    /// Migration kinds of the platform.
    kinds: Vec<Resumption>,
    /// By pair of dense processors, the column of the kind; one more column for those that are the
    /// same.
    kind_of: Vec<u16>,
    processors: usize,
    /// By task and column.
    migrations: Vec<u64>,
    columns: usize,
}

impl<'a> Jobs<'a> {
    pub fn new(
        set: &TaskSet,
        scenario: &'a Scenario,
        platform: &Platform,
        cpus: &[CpuId],
        slices: bool,
    ) -> Result<Self> {
        scenario.check(set)?;
        let rows: Vec<Row> = set
            .ids()
            .map(|id| {
                let t = set.timings()[id.index()];
                let phase = set.details(id).map_or(Duration::ZERO, |d| d.phase);
                let wcet = t.wcet.nanos();
                let first = scenario.first_release(id, phase);
                Row {
                    life: Life::new(),
                    release: first,
                    late: scenario.late(id, 0),
                    next_release: first,
                    arrived: 0,
                    released: 0,
                    period: t.period.nanos(),
                    deadline: t.deadline.nanos(),
                    wcet,
                    demand: scenario.demand(id, 0, wcet),
                    completed: 0,
                    cut: 0,
                    response_max: 0,
                    response_sum: 0,
                    tardiness_max: 0,
                    misses: 0,
                    preemptions: 0,
                }
            })
            .collect();
        let (kinds, kind_of) = migration_kinds(platform, cpus);
        let columns = kinds.len() + 1;
        Ok(Jobs {
            migrations: vec![0; rows.len() * columns],
            columns,
            rows,
            scenario,
            constant_demand: scenario.has_constant_demand(),
            budgeted: scenario.enforcement != Enforcement::Off,
            limits: Limits::new(slices, scenario.enforcement, scenario.quantum),
            first_miss: None,
            kinds,
            kind_of,
            processors: cpus.len(),
        })
    }

    /// The column of the kind of a migration.
    #[inline(always)]
    pub fn kind(&self, from: Processor, to: Processor) -> usize {
        usize::from(self.kind_of[from.index() * self.processors + to.index()])
    }

    /// The next job of a task is released now: its number. Sets the clock for the one after it.
    #[inline(always)]
    pub fn arrive(&mut self, task: TaskId) -> u64 {
        let row = &mut self.rows[task.index()];
        row.arrive(task, self.scenario)
    }

    /// The release of the next job is serviced, at `now`. Gives the job if it becomes current.
    #[inline(always)]
    pub fn admit(&mut self, task: TaskId, now: u64) -> Option<Job> {
        let row = &mut self.rows[task.index()];
        row.released += 1;
        if row.life.is_current() {
            self.overdue(task, now);
            return None;
        }
        Some(row.begin(task, self.scenario, self.constant_demand, self.budgeted))
    }

    /// The next job of a task is released and serviced at once: its number, and the job if it
    /// becomes current.
    #[inline(always)]
    pub fn release(&mut self, task: TaskId, now: u64) -> (u64, Option<Job>) {
        let number = self.arrive(task);
        (number, self.admit(task, now))
    }

    /// A miss may be known before the late job completes: at the latest when its successor comes.
    #[inline]
    fn overdue(&mut self, task: TaskId, now: u64) {
        let row = &self.rows[task.index()];
        if self.first_miss.is_none() && now >= row.due() && !row.life.remaining().is_zero() {
            self.note_miss(task, row.life.number());
        }
    }

    /// Job `number` of a task, the first of those that are not complete or the one that has just
    /// been, is late.
    #[cold]
    fn note_miss(&mut self, task: TaskId, number: u64) {
        let row = &self.rows[task.index()];
        self.first_miss = Some(Miss {
            task,
            job: number,
            deadline: Instant::from_nanos(row.due()),
        });
    }

    /// When job `number` of a task is due that is released at `release`.
    #[inline]
    pub fn due(&self, task: TaskId, number: u64, release: u64) -> u64 {
        let arrival = release - self.scenario.late(task, number);
        arrival.saturating_add(self.rows[task.index()].deadline)
    }

    /// The number of the current job of a task, or of its next one.
    #[inline(always)]
    pub fn number(&self, task: TaskId) -> u64 {
        self.rows[task.index()].life.number()
    }

    /// The current job as it is told to policies.
    pub fn job(&self, task: TaskId) -> Job {
        self.rows[task.index()].life.job(task)
    }

    /// What a job that is looked at has come to.
    #[inline(always)]
    pub fn reached(&self, task: TaskId) -> Reached {
        self.rows[task.index()].life.reached(&self.limits)
    }

    /// The current job of a task is complete or cut short. Gives its response time, and its
    /// successor if that is released.
    #[inline(always)]
    pub fn complete(&mut self, task: TaskId, now: u64, cut: bool) -> (u64, Option<Job>) {
        let row = &mut self.rows[task.index()];
        let number = row.life.number();
        if cut {
            row.cut += 1;
            row.life.cut();
        } else {
            row.life.complete();
        }
        let response = now - (row.release - row.late);
        row.completed += 1;
        row.response_max = row.response_max.max(response);
        row.response_sum += u128::from(response);
        if response > row.deadline {
            self.tardy(task, number, response);
        }
        let row = &mut self.rows[task.index()];
        if row.arrived > number + 1 {
            row.release = self
                .scenario
                .release_after(task, number, row.release, row.period);
        }
        row.late = self.scenario.late(task, number + 1);
        let successor = row.life.awaits(row.released);
        let (constant_demand, budgeted) = (self.constant_demand, self.budgeted);
        (
            response,
            successor.then(|| row.begin(task, self.scenario, constant_demand, budgeted)),
        )
    }

    #[inline(never)]
    fn tardy(&mut self, task: TaskId, number: u64, response: u64) {
        let row = &mut self.rows[task.index()];
        row.misses += 1;
        row.tardiness_max = row.tardiness_max.max(response - row.deadline);
        if self.first_miss.is_none() {
            self.note_miss(task, number);
        }
    }

    /// A running job of a task leaves its processor unfinished.
    #[inline(always)]
    pub fn stop(&mut self, task: TaskId, now: u64) {
        let row = &mut self.rows[task.index()];
        row.life.stop(Instant::from_nanos(now));
        row.preemptions += 1;
    }

    /// A running job of a task leaves its processor, its slice used up.
    #[inline(always)]
    pub fn exhaust(&mut self, task: TaskId, now: u64) {
        let row = &mut self.rows[task.index()];
        row.life.exhaust(Instant::from_nanos(now));
        row.preemptions += 1;
    }

    /// The current job of a task begins to run on a processor. Says on which it ran before, if it
    /// ran before.
    #[inline(always)]
    pub fn start(&mut self, task: TaskId, cpu: Processor, now: u64) -> Option<Processor> {
        let row = &mut self.rows[task.index()];
        let last = row.life.last().unwrap_or(cpu);
        let start = row.life.start(cpu, Instant::from_nanos(now));
        // A move within one instant is no preemption.
        row.preemptions -= u64::from(start.moves);
        // A job that starts counts as one that stays where it is: so there is no branch here.
        let from = select_unpredictable(start.before.is_some(), last, cpu);
        let column = self.kind(from, cpu);
        self.migrations[task.index() * self.columns + column] += 1;
        start.before
    }

    /// When the current job has to be looked at if it executes from `now`: complete, or a limit
    /// reached.
    #[inline(always)]
    pub fn until(&self, task: TaskId, now: u64) -> u64 {
        let life = &self.rows[task.index()].life;
        life.look_at(Instant::from_nanos(now), &self.limits).nanos()
    }

    /// The current job has executed for this long.
    #[inline(always)]
    pub fn execute(&mut self, task: TaskId, time: u64) {
        let life = &mut self.rows[task.index()].life;
        life.execute(Duration::from_nanos(time));
    }

    /// The misses of jobs that are incomplete at the end, their deadline reached: for observers of
    /// events.
    pub fn show_unfinished(&self, end: u64, show: &mut Show<impl Observer>) {
        for (task, row) in (0..).map(TaskId).zip(&self.rows) {
            let (mut number, mut release) = (row.life.number(), row.release);
            while number < row.arrived && self.due(task, number, release) <= end {
                show.unfinished(task, number, self.due(task, number, release));
                release = self
                    .scenario
                    .release_after(task, number, release, row.period);
                number += 1;
            }
        }
    }

    /// How many jobs of a task are incomplete at the end with their deadline reached. Deadlines
    /// ascend with the number.
    fn unfinished_misses(&self, task: TaskId, end: u64) -> u64 {
        let row = &self.rows[task.index()];
        let (first, last) = (row.life.number(), row.arrived);
        let (mut number, mut release) = (first, row.release);
        while number < last && self.due(task, number, release) <= end {
            if self.scenario.is_strictly_periodic() {
                // All at once: an overloaded task may leave a billion jobs behind.
                let more = ((end - release - row.deadline) / row.period).min(last - number - 1);
                return number - first + 1 + more;
            }
            release = self
                .scenario
                .release_after(task, number, release, row.period);
            number += 1;
        }
        number - first
    }

    /// Counts what is late at the end and sums up.
    pub fn summary(mut self, ending: Ending, end: u64, decisions: u64) -> Summary {
        for task in (0..self.rows.len() as u32).map(TaskId) {
            let late = self.unfinished_misses(task, end);
            if late > 0 && self.first_miss.is_none() {
                self.note_miss(task, self.rows[task.index()].life.number());
            }
            self.rows[task.index()].misses += late;
        }
        let tasks = self
            .rows
            .iter()
            .enumerate()
            .map(|(task, row)| TaskSummary {
                released: row.arrived,
                completed: row.completed,
                cut: row.cut,
                response_max: Duration::from_nanos(row.response_max),
                response_sum: row.response_sum,
                tardiness_max: Duration::from_nanos(row.tardiness_max),
                misses: row.misses,
                preemptions: row.preemptions,
                migrations: self.migrations[task * self.columns..][..self.kinds.len()].to_vec(),
                lost: Default::default(),
            })
            .collect();
        Summary {
            ending,
            end: Instant::from_nanos(end),
            first_miss: self.first_miss,
            kinds: self.kinds,
            tasks,
            lost: Default::default(),
            decisions,
            profiled: Vec::new(),
        }
    }
}

/// The kinds of migration among processors, and the column of each pair: behind the kinds for two
/// that are the same.
fn migration_kinds(platform: &Platform, cpus: &[CpuId]) -> (Vec<Resumption>, Vec<u16>) {
    let mut kinds = platform.resumptions();
    kinds.retain(|kind| *kind != Resumption::Preemption);
    let pairs = cpus
        .iter()
        .flat_map(|from| cpus.iter().map(move |to| (*from, *to)));
    let of_pair = pairs.map(|(from, to)| platform.resumption(from, to));
    // A level is a u8, so there are at most 257 kinds.
    let column = |kind: Resumption| kinds.binary_search(&kind).unwrap_or(kinds.len()) as u16;
    let kind_of = of_pair.map(column).collect();
    (kinds, kind_of)
}
