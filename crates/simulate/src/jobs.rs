//! The jobs of a simulation: what each task has released, what its current job still needs, and what is counted of it.
//!
//! At most one job of a task is current. Its successors are known by number alone: their releases and execution times are
//! computed when they are needed, so that a backlog takes no memory.

use crate::observe::Observer;
use crate::scenario::{Enforcement, LONGEST, Scenario};
use crate::summary::{Ending, Miss, Summary, TaskSummary};
use model::{CpuId, Duration, Instant, Platform, Result, Resumption, TaskId, TaskSet};
use policy::{Job, NONE};
use std::hint::select_unpredictable;
use trace::Event as Record;

/// One task and its current job; times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What the current job still has to execute.
    pub remaining: u64,
    /// What it may still execute before its slice is used up; `u64::MAX`: it has none.
    pub slice_left: u64,
    /// What it may still execute before its budget is used up; `u64::MAX`: none is enforced.
    pub budget_left: u64,
    /// Its release; where no job is current, that of the next job if it has arrived.
    pub release: u64,
    /// Its number, or that of the next job if none is current.
    pub number: u64,
    /// How long after its arrival the job of this number is released.
    pub late: u64,
    /// Has the task a current job?
    pub current: bool,
    /// Has the current job run already?
    pub started: bool,
    /// The processor (dense) on which the current job last ran.
    pub last: u32,
    /// When it last left a processor unfinished.
    pub stopped: u64,
    /// What it has executed.
    pub executed: u64,
    /// The release of job number `arrived`; `u64::MAX`: there is none.
    pub next_release: u64,
    /// How many jobs were released.
    pub arrived: u64,
    /// Of how many the release was serviced.
    pub released: u64,
    pub period: u64,
    pub deadline: u64,
    pub wcet: u64,
    /// Execution time of every job, where it is the same for all.
    demand: u64,
    /// What a job that was cut short leaves to its successor.
    carried: u64,
    completed: u64,
    cut: u64,
    response_max: u64,
    response_sum: u128,
    tardiness_max: u64,
    misses: u64,
    pub preemptions: u64,
}

impl Row {
    #[inline(always)]
    fn arrive(&mut self, task: u32, scenario: &Scenario) -> u64 {
        let number = self.arrived;
        if !self.current && number == self.number {
            self.release = self.next_release;
        }
        self.arrived += 1;
        self.next_release = scenario.release_after(task, number, self.next_release, self.period);
        number
    }

    /// Makes the job of `number` and `release` current.
    #[inline(always)]
    fn begin(&mut self, task: u32, scenario: &Scenario, constant_demand: bool, limited: bool) -> Job {
        self.remaining = if constant_demand {
            self.demand
        } else {
            scenario.demand(task, self.number, self.wcet)
        };
        if limited {
            self.remaining = self.remaining.saturating_add(self.carried).min(LONGEST);
            self.carried = 0;
            self.slice_left = u64::MAX;
            self.budget_left = match scenario.enforcement {
                Enforcement::Off => u64::MAX,
                _ => self.wcet,
            };
        }
        self.current = true;
        self.started = false;
        self.executed = 0;
        self.job(task, 0)
    }

    #[inline(always)]
    fn job(&self, task: u32, part: u32) -> Job {
        Job {
            task: TaskId(task),
            number: self.number,
            release: Instant::from_nanos(self.release),
            deadline: Instant::from_nanos(self.due()),
            part,
        }
    }

    /// When the job of this number is due.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        (self.release - self.late).saturating_add(self.deadline)
    }
}

/// All tasks.
pub(crate) struct Jobs<'a> {
    pub rows: Vec<Row>,
    scenario: &'a Scenario,
    constant_demand: bool,
    /// Are there budgets or slices to keep?
    pub limited: bool,
    pub first_miss: Option<Miss>,
    /// Migration kinds of the platform.
    kinds: Vec<Resumption>,
    /// By pair of dense processors, the column of the kind; one more column for those that are the same.
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
                let first = scenario.first_release(id.0, phase);
                Row {
                    remaining: 0,
                    slice_left: u64::MAX,
                    budget_left: u64::MAX,
                    release: first,
                    number: 0,
                    late: scenario.late(id.0, 0),
                    current: false,
                    started: false,
                    last: NONE,
                    stopped: 0,
                    executed: 0,
                    next_release: first,
                    arrived: 0,
                    released: 0,
                    period: t.period.nanos(),
                    deadline: t.deadline.nanos(),
                    wcet,
                    demand: scenario.demand(id.0, 0, wcet),
                    carried: 0,
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
            limited: slices || scenario.enforcement != Enforcement::Off,
            first_miss: None,
            kinds,
            kind_of,
            processors: cpus.len(),
        })
    }

    /// The column of the kind of a migration.
    #[inline(always)]
    pub fn kind(&self, from: u32, to: u32) -> usize {
        usize::from(self.kind_of[from as usize * self.processors + to as usize])
    }

    /// The next job of a task is released now: its number. Sets the clock for the one after it.
    #[inline(always)]
    pub fn arrive(&mut self, task: u32) -> u64 {
        let row = &mut self.rows[task as usize];
        row.arrive(task, self.scenario)
    }

    /// The release of the next job is serviced, at `now`. Gives the job if it becomes current.
    #[inline(always)]
    pub fn admit(&mut self, task: u32, now: u64) -> Option<Job> {
        let row = &mut self.rows[task as usize];
        row.released += 1;
        if row.current {
            self.overdue(task, now);
            return None;
        }
        Some(row.begin(task, self.scenario, self.constant_demand, self.limited))
    }

    /// The next job of a task is released and serviced at once: its number, and the job if it becomes current.
    #[inline(always)]
    pub fn release(&mut self, task: u32, now: u64) -> (u64, Option<Job>) {
        let number = self.arrive(task);
        (number, self.admit(task, now))
    }

    /// A miss may be known before the late job completes: at the latest when its successor comes.
    #[inline]
    fn overdue(&mut self, task: u32, now: u64) {
        let row = &self.rows[task as usize];
        if self.first_miss.is_none() && now >= row.due() && row.remaining > 0 {
            self.note_miss(task);
        }
    }

    #[cold]
    fn note_miss(&mut self, task: u32) {
        let row = &self.rows[task as usize];
        self.first_miss = Some(Miss {
            task: TaskId(task),
            job: row.number,
            deadline: Instant::from_nanos(row.due()),
        });
    }

    /// When job `number` of a task is due that is released at `release`.
    #[inline]
    pub fn due(&self, task: u32, number: u64, release: u64) -> u64 {
        let arrival = release - self.scenario.late(task, number);
        arrival.saturating_add(self.rows[task as usize].deadline)
    }

    /// The current job as it is told to policies.
    pub fn job(&self, task: u32, part: u32) -> Job {
        self.rows[task as usize].job(task, part)
    }

    /// Is a running job that has come to be looked at to go on elsewhere: not complete, and with budget left?
    #[inline]
    pub fn has_slice_only(&self, task: u32) -> bool {
        let row = &self.rows[task as usize];
        row.remaining > 0 && row.budget_left > 0
    }

    /// The current job of a task is complete or cut short. Gives its response time, and its successor if that is released.
    #[inline(always)]
    pub fn complete(&mut self, task: u32, now: u64, cut: bool) -> (u64, Option<Job>) {
        let row = &mut self.rows[task as usize];
        if cut {
            row.cut += 1;
            row.carried = row.remaining;
        }
        let response = now - (row.release - row.late);
        row.completed += 1;
        row.response_max = row.response_max.max(response);
        row.response_sum += u128::from(response);
        if response > row.deadline {
            self.late(task, response);
        }
        let row = &mut self.rows[task as usize];
        row.current = false;
        if row.arrived > row.number + 1 {
            row.release = self
                .scenario
                .release_after(task, row.number, row.release, row.period);
        }
        row.number += 1;
        row.late = self.scenario.late(task, row.number);
        let successor = row.released > row.number;
        let (demand, limited) = (self.constant_demand, self.limited);
        (
            response,
            successor.then(|| row.begin(task, self.scenario, demand, limited)),
        )
    }

    #[inline(never)]
    fn late(&mut self, task: u32, response: u64) {
        let row = &mut self.rows[task as usize];
        row.misses += 1;
        row.tardiness_max = row.tardiness_max.max(response - row.deadline);
        if self.first_miss.is_none() {
            self.note_miss(task);
        }
    }

    /// A running job of a task leaves its processor unfinished.
    #[inline(always)]
    pub fn stop(&mut self, task: u32, now: u64) {
        let row = &mut self.rows[task as usize];
        row.stopped = now;
        row.preemptions += 1;
    }

    /// The current job of a task begins to run on a processor. Says on which it ran before, if it ran before.
    #[inline(always)]
    pub fn start(&mut self, task: u32, cpu: u32, now: u64) -> Option<u32> {
        let row = &mut self.rows[task as usize];
        let last = std::mem::replace(&mut row.last, cpu);
        let started = std::mem::replace(&mut row.started, true);
        // A move within one instant is no preemption.
        row.preemptions -= u64::from(started & (row.stopped == now));
        // A job that starts counts as one that stays where it is: so there is no branch here.
        let from = select_unpredictable(started, last, cpu);
        let column = self.kind(from, cpu);
        self.migrations[task as usize * self.columns + column] += 1;
        started.then_some(last)
    }

    /// When the current job has to be looked at if it executes from `now`: complete, or a limit reached.
    #[inline(always)]
    pub fn until(&self, task: u32, now: u64) -> u64 {
        let row = &self.rows[task as usize];
        let whole = now + row.remaining;
        if !self.limited {
            return whole;
        }
        let budget = now.saturating_add(row.budget_left);
        let budget = match self.scenario.enforcement {
            Enforcement::PerQuantum => {
                let quantum = self.scenario.quantum.nanos();
                budget.div_ceil(quantum).saturating_mul(quantum)
            }
            _ => budget,
        };
        whole.min(budget).min(now.saturating_add(row.slice_left))
    }

    /// The current job has executed for this long.
    #[inline(always)]
    pub fn execute(&mut self, task: u32, time: u64) {
        let row = &mut self.rows[task as usize];
        row.remaining -= time;
        row.executed += time;
        if self.limited {
            row.slice_left = spent(row.slice_left, time);
            row.budget_left = spent(row.budget_left, time);
        }
    }

    /// The misses of jobs that are incomplete at the end, their deadline reached: for observers of events.
    pub fn misses_at(&self, end: u64, observer: &mut impl Observer) {
        for (task, row) in self.rows.iter().enumerate() {
            let (mut number, mut release) = (row.number, row.release);
            let due = |number: u64, release: u64| {
                (release - self.scenario.late(task as u32, number)).saturating_add(row.deadline)
            };
            while number < row.arrived && due(number, release) <= end {
                let deadline = Instant::from_nanos(due(number, release));
                let (now, id) = (Instant::from_nanos(end), TaskId(task as u32));
                observer.event(Record::deadline_miss(now, None, id, number, deadline));
                release = self
                    .scenario
                    .release_after(task as u32, number, release, row.period);
                number += 1;
            }
        }
    }

    /// Counts what is late at the end and sums up.
    pub fn summary(mut self, ending: Ending, end: u64, decisions: u64) -> Summary {
        for task in 0..self.rows.len() as u32 {
            // Of the unfinished jobs, those whose deadline has come are misses; deadlines ascend with the number.
            let row = &self.rows[task as usize];
            let (mut number, mut release) = (row.number, row.release);
            let mut late = 0;
            if row.arrived == row.number {
                continue;
            }
            let last = row.arrived;
            let due = |number: u64, release: u64| {
                (release - self.scenario.late(task, number)).saturating_add(row.deadline)
            };
            while number < last && due(number, release) <= end {
                late += 1;
                if self.scenario.is_strictly_periodic() {
                    // All at once: an overloaded task may leave a billion jobs behind.
                    let more = ((end - release - row.deadline) / row.period).min(last - number - 1);
                    late += more;
                    break;
                }
                release = self.scenario.release_after(task, number, release, row.period);
                number += 1;
            }
            if late > 0 && self.first_miss.is_none() {
                self.note_miss(task);
            }
            self.rows[task as usize].misses += late;
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
        }
    }
}

/// What is left of a limit; `u64::MAX` is none and stays so.
#[inline]
const fn spent(left: u64, time: u64) -> u64 {
    if left == u64::MAX {
        left
    } else {
        left.saturating_sub(time)
    }
}

/// The kinds of migration among processors, and the column of each pair: behind the kinds for two that are the same.
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
