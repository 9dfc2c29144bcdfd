//! Exact search: every schedule that sporadic releases on a grid can lead to, state by state.
//!
//! Written from the definitions, without the code or the formulas of the tests. Time goes in ticks.
//! At every tick an adversary decides for each task whose last release is a period ago whether it
//! releases a job; then the scheduler runs jobs until the next tick. Jobs execute for their WCET:
//! under preemptive fixed priorities of jobs shorter executions finish no job later (Ha and Liu
//! 1994). Equal deadlines are broken in every way.
//!
//! States are compared so that few are looked at. Of two that differ only in how long idle tasks
//! have to wait for their next release, the one with the shorter waits can do all that the other
//! can.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most tasks of one search.
pub const TASKS: usize = 4;
/// The most jobs of one task that are released and not finished.
const PENDING: usize = 3;
/// The most ticks after which the supply repeats: a bit of each task's lane of a key.
const PHASES: usize = 1 << TASKS;
/// No job of this age.
const NONE: u8 = 0xff;
/// Ages that are told apart; beyond, the search ends without an answer.
const OLDEST: u8 = 0x7f;

/// A task in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    pub wcet: u8,
    pub period: u8,
    pub deadline: u8,
}

/// Which of the pending jobs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Those with the earliest deadlines.
    Edf,
    /// Those of the first tasks.
    FixedPriority,
    /// PD2, with quanta of a tick and deadlines equal to periods: Anderson and Srinivasan (2004),
    /// from the definitions.
    Pd2,
}

/// A subtask of a job under PD2: its window, counted from the release of the job, and what ties of
/// deadlines are broken by. Subtask i, from 1, of a task of weight e/p has the window from
/// ⌊(i − 1) p/e⌋ to ⌈i p/e⌉.
struct Subtask {
    from: u8,
    due: u8,
    /// Its window overlaps the next one.
    overlaps: bool,
    /// Of heavy tasks, when a chain of windows of two quanta ends that are forced one by another;
    /// of light ones 0.
    group: u8,
}

impl Subtask {
    fn of(task: &Task, number: u8) -> Self {
        let (e, p) = (u16::from(task.wcet), u16::from(task.period));
        let from = |i: u16| (i - 1) * p / e;
        let due = |i: u16| (i * p).div_ceil(e);
        let overlaps = |i: u16| due(i) > from(i + 1);
        let number = u16::from(number);
        // The first time t from its deadline on that is the deadline of a window that does not
        // overlap the next one, or one before that of a window of three quanta.
        let ends = (number..=e).map(|k| match k > number && due(k) - from(k) == 3 {
            true => due(k) - 1,
            false if !overlaps(k) => due(k),
            false => u16::MAX,
        });
        let group = match 2 * e >= p {
            true => ends.filter(|t| *t >= due(number)).min().unwrap_or(p),
            false => 0,
        };
        Subtask {
            from: from(number) as u8,
            due: due(number) as u8,
            overlaps: overlaps(number),
            group: group as u8,
        }
    }
}

/// What all schedules of a set have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truth {
    /// Does some job miss its deadline?
    pub late: bool,
    /// The longest response of a job of each task, in ticks; incomplete if the search ended with a
    /// miss.
    pub worst: [u8; TASKS],
}

/// What a task is at: `ages` of its pending jobs, the oldest first, and what that one has to
/// execute yet; if there is none, `left` is zero and `ages[0]` says how long until the next release
/// may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    left: u8,
    ages: [u8; PENDING],
}

type Rows = [Row; TASKS];

const FREE: Row = Row {
    left: 0,
    ages: [0, NONE, NONE],
};

impl Row {
    fn is_idle(&self) -> bool {
        self.left == 0
    }
    fn pending(&self) -> usize {
        if self.is_idle() {
            return 0;
        }
        self.ages.iter().take_while(|age| **age != NONE).count()
    }
    fn may_release(&self, task: &Task) -> bool {
        match self.pending() {
            0 => self.ages[0] == 0,
            PENDING => false,
            pending => self.ages[pending - 1] >= task.period,
        }
    }
    fn release(&mut self, task: &Task) {
        let pending = self.pending();
        if pending == 0 {
            self.left = task.wcet;
        }
        self.ages[pending] = 0;
    }
    /// A tick passes; the response of the job that finishes with it.
    fn pass(&mut self, task: &Task, runs: bool) -> Option<u8> {
        if self.is_idle() {
            self.ages[0] = self.ages[0].saturating_sub(1);
            return None;
        }
        for age in self.ages.iter_mut().filter(|age| **age != NONE) {
            *age += 1;
        }
        self.left -= u8::from(runs);
        if self.left > 0 {
            return None;
        }
        let response = self.ages[0];
        if self.pending_when_done() > 1 {
            self.left = task.wcet;
            self.ages = [self.ages[1], self.ages[2], NONE];
        } else {
            self.ages = [task.period.saturating_sub(response), NONE, NONE];
        }
        Some(response)
    }
    fn pending_when_done(&self) -> usize {
        self.ages.iter().take_while(|age| **age != NONE).count()
    }
}

/// A fast hash of a packed state.
#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, n: u64) {
        let wide = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }
}

/// The memory of a search, kept for the next one.
#[derive(Default)]
pub struct Search {
    /// For what is pending: the first of the entries in `waits`, from 1.
    seen: HashMap<u128, u32, BuildHasherDefault<Fold>>,
    /// How long the idle tasks wait, a byte each, and the next entry for the same pending jobs.
    waits: Vec<(u32, u32)>,
    /// States with their tick of the supply.
    stack: Vec<(Rows, usize)>,
    /// How many states all searches have looked at.
    pub states: u64,
}

/// What a tick does to one state.
struct Step<'t> {
    tasks: &'t [Task],
    supply: &'t [u8],
    rule: Rule,
    until_late: bool,
}

impl Search {
    /// All schedules of `tasks` (by `Rule::FixedPriority` in the order of their priorities).
    /// `supply` says how many processors there are at each tick, over and over. With `until_late`
    /// the search ends at the first miss. None if more than `limit` states are looked at, or more
    /// than three jobs of a task are pending.
    pub fn explore(
        &mut self,
        tasks: &[Task],
        supply: &[u8],
        rule: Rule,
        until_late: bool,
        limit: usize,
    ) -> Option<Truth> {
        assert!(!supply.is_empty() && supply.len() <= PHASES);
        assert!(
            tasks.len() <= TASKS
                && tasks
                    .iter()
                    .all(|t| (1..=OLDEST).contains(&t.wcet) && t.period > 0)
        );
        self.seen.clear();
        self.waits.clear();
        self.stack.clear();
        let mut truth = Truth {
            late: false,
            worst: [0; TASKS],
        };
        let step = Step {
            tasks,
            supply,
            rule,
            until_late,
        };
        self.push([FREE; TASKS], tasks.len(), 0);
        while let Some((rows, phase)) = self.stack.pop() {
            self.states += 1;
            if self.waits.len() > limit {
                return None;
            }
            let may: u32 = (0..tasks.len())
                .filter(|i| rows[*i].may_release(&tasks[*i]))
                .map(|i| 1 << i)
                .sum();
            // All subsets; the one with all releases is pushed last and looked at first.
            let mut chosen = 0_u32;
            loop {
                let mut released = rows;
                for (i, task) in tasks.iter().enumerate() {
                    if chosen >> i & 1 == 1 {
                        released[i].release(task);
                    }
                }
                if !self.run(&step, &released, phase, &mut truth)? && until_late {
                    return Some(truth);
                }
                if chosen == may {
                    break;
                }
                chosen = chosen.wrapping_sub(may) & may;
            }
        }
        Some(truth)
    }

    /// Every choice of the scheduler for one tick. False: some job misses its deadline.
    fn run(
        &mut self,
        step: &Step<'_>,
        rows: &Rows,
        phase: usize,
        truth: &mut Truth,
    ) -> Option<bool> {
        let pending: u32 = (0..step.tasks.len())
            .filter(|i| step.may_run(&rows[*i], *i))
            .map(|i| 1 << i)
            .sum();
        let running = u32::from(step.supply[phase]).min(pending.count_ones());
        let next = (phase + 1) % step.supply.len();
        let mut in_time = true;
        for chosen in 0..=pending {
            if chosen & !pending == 0
                && chosen.count_ones() == running
                && step.may_choose(rows, chosen, pending & !chosen)
            {
                in_time &= self.pass(step, rows, chosen, next, truth)?;
            }
        }
        Some(in_time)
    }

    /// A tick in which the tasks in `chosen` run; `phase` is that of the tick behind it.
    fn pass(
        &mut self,
        step: &Step<'_>,
        rows: &Rows,
        chosen: u32,
        phase: usize,
        truth: &mut Truth,
    ) -> Option<bool> {
        let mut next = *rows;
        let (mut in_time, mut beyond) = (true, false);
        for (i, task) in step.tasks.iter().enumerate() {
            let row = &mut next[i];
            if let Some(response) = row.pass(task, chosen >> i & 1 == 1) {
                truth.worst[i] = truth.worst[i].max(response);
                in_time &= response <= task.deadline;
            }
            // What cannot be done any more is a miss already.
            in_time &= row.is_idle()
                || u16::from(row.ages[0]) + u16::from(row.left) <= task.deadline.into();
            let pending = row.pending();
            let is_old = pending > 0 && row.ages[0] > OLDEST;
            beyond |= is_old || pending == PENDING && row.ages[PENDING - 1] >= task.period;
        }
        truth.late |= !in_time;
        if !in_time && step.until_late {
            return Some(false);
        }
        if beyond {
            return None;
        }
        self.push(next, step.tasks.len(), phase);
        Some(in_time)
    }

    /// Remembers a state, unless one is known that can do as much.
    fn push(&mut self, rows: Rows, count: usize, phase: usize) {
        let (mut key, mut waits) = (0_u128, 0_u32);
        for (i, row) in rows.iter().enumerate().take(count) {
            if row.is_idle() {
                waits |= u32::from(row.ages[0]) << (8 * i);
            } else {
                let lane = u32::from_le_bytes([row.left, row.ages[0], row.ages[1], row.ages[2]]);
                key |= u128::from(lane) << (32 * i);
            }
        }
        for lane in (0..TASKS).filter(|lane| phase >> lane & 1 == 1) {
            // What is left is below 2^7.
            key |= 0x80 << (32 * lane);
        }
        let first = self.seen.entry(key).or_insert(0);
        let mut at = *first;
        while at != 0 {
            let (known, next) = self.waits[at as usize - 1];
            // Byte by byte: is the known wait at most this one?
            const TOP: u32 = 0x8080_8080;
            if ((waits | TOP) - known) & TOP == TOP {
                return;
            }
            at = next;
        }
        self.waits.push((waits, *first));
        *first = self.waits.len() as u32;
        self.stack.push((rows, phase));
    }
}

impl Step<'_> {
    /// Has a task something that may run?
    fn may_run(&self, row: &Row, task: usize) -> bool {
        !row.is_idle() && (self.rule != Rule::Pd2 || self.subtask(row, task).from <= row.ages[0])
    }

    /// The next subtask of the pending job.
    fn subtask(&self, row: &Row, task: usize) -> Subtask {
        let task = &self.tasks[task];
        Subtask::of(task, task.wcet - row.left + 1)
    }

    /// May these run while those wait?
    fn may_choose(&self, rows: &Rows, chosen: u32, waiting: u32) -> bool {
        if waiting == 0 {
            return true;
        }
        let each = |set: u32| (0..self.tasks.len()).filter(move |i| set >> i & 1 == 1);
        match self.rule {
            Rule::FixedPriority => each(chosen).max() < each(waiting).min(),
            Rule::Edf => {
                let due = |i: usize| i16::from(self.tasks[i].deadline) - i16::from(rows[i].ages[0]);
                each(chosen).map(due).max() <= each(waiting).map(due).min()
            }
            Rule::Pd2 => {
                // The earlier deadline; of equal ones the window that overlaps the next one; of two
                // such the later end of the chain.
                let rank = |i: usize| {
                    let (subtask, age) = (self.subtask(&rows[i], i), i16::from(rows[i].ages[0]));
                    let group = match subtask.overlaps && subtask.group > 0 {
                        true => age - i16::from(subtask.group),
                        false => 0,
                    };
                    (i16::from(subtask.due) - age, !subtask.overlaps, group)
                };
                each(chosen).map(rank).max() <= each(waiting).map(rank).min()
            }
        }
    }
}
