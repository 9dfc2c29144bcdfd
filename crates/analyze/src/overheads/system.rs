//! What a platform costs a set under one policy: overheads, and the cache delay of every task by
//! the way in which it resumes.

use super::{Overheads, one_delay};
use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::Guarantee;
use model::{CpuId, Duration, Platform, Result, Resumption, TaskId, Timing};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// All that accounting has to know besides tasks and assignment.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Who shares which cache.
    pub platform: &'a Platform,
    /// The six overheads that do not depend on the task, at the number of tasks of the whole set.
    pub overheads: &'a Overheads,
    /// The seventh.
    pub delays: &'a CacheDelays,
    /// Hard: also the longest that the kernel can be in the midst of something else. Soft: as often
    /// as 002 §6.1 counts.
    pub guarantee: Guarantee,
    /// By which rule jobs pay for cache delay.
    pub charge: CacheCharge,
}

/// By which rule a job pays for cache delay (`docs/overheads.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheCharge {
    /// This delay, a bound for any job, and no other overhead (000 §2): in the WCETs before
    /// anything is assigned. In quanta each task's own delay in each quantum.
    OneDelay(Duration),
    /// Its own delay, and the longest one of any other job of its place (002 §6.1).
    Twice,
    /// The same, and the other overheads as often as 002 §6.1 counts them, also for a hard
    /// guarantee: two decisions, two switches, and one interrupt between processors. What the
    /// kernel is in the midst of when a job arrives is not counted.
    Paper,
    /// The longest delay of the jobs that can go on where it completes, and its own where it
    /// changes processors while it is under way. Proven where the other six overheads are zero.
    ByPiece(Precedence),
}

/// Which jobs go before which on a processor or cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precedence {
    /// Earliest deadline first; under EDF-fm migratory tasks before fixed ones.
    #[default]
    Edf,
    /// Fixed priorities.
    Fixed(Priority),
    /// First in, first out: no job preempts another.
    Releases,
    /// Not known: any job may preempt any other. So it is with release jitter, which lets a job
    /// with a longer relative deadline preempt.
    Any,
}

/// No delays, for sets of any size.
static NO_DELAYS: LazyLock<CacheDelays> = LazyLock::new(|| CacheDelays::none(0));

impl<'a> System<'a> {
    /// Nothing costs anything on this platform.
    pub fn free(platform: &'a Platform) -> Self {
        System {
            platform,
            overheads: &Overheads::NONE,
            delays: &NO_DELAYS,
            guarantee: Guarantee::Soft,
            charge: CacheCharge::Twice,
        }
    }

    /// The tasks for which an assignment is made, and what it adds to them. By the rule of one
    /// delay the tasks contain it, and nothing is left to add.
    pub fn books<'t>(&self, tasks: &'t [Timing]) -> (Cow<'t, [Timing]>, System<'a>) {
        match self.charge {
            CacheCharge::OneDelay(delay) => {
                let mut inflated = Vec::with_capacity(tasks.len());
                one_delay::inflate_into(tasks, delay, &mut inflated);
                (Cow::Owned(inflated), System::free(self.platform))
            }
            CacheCharge::Twice | CacheCharge::Paper | CacheCharge::ByPiece(_) => {
                (Cow::Borrowed(tasks), *self)
            }
        }
    }

    /// Does nothing cost anything?
    pub fn is_free(&self) -> bool {
        self.overheads.are_free() && self.delays.are_free()
    }

    /// The guarantee by which kernel sections are counted: for a soft one as in 002 §6.1, for a
    /// hard one more.
    pub(super) fn counts(&self) -> Guarantee {
        match self.charge {
            CacheCharge::Paper => Guarantee::Soft,
            CacheCharge::OneDelay(_) | CacheCharge::Twice | CacheCharge::ByPiece(_) => {
                self.guarantee
            }
        }
    }

    /// The delay with which a job begins that has not run before. 002 §6.1 charges one for the lack
    /// of affinity. By piece nothing is charged: a WCET already contains the first loading of the
    /// working set.
    pub(super) fn beginning(&self, delay: Duration) -> Duration {
        match self.charge {
            CacheCharge::OneDelay(_) | CacheCharge::Twice | CacheCharge::Paper => delay,
            CacheCharge::ByPiece(_) => Duration::ZERO,
        }
    }

    /// How a job goes on that was on one processor and comes to another.
    pub fn resumption(&self, from: CpuId, to: CpuId) -> Resumption {
        let known = self.delays.map.resumption(from, to);
        known.unwrap_or_else(|| self.platform.resumption(from, to))
    }

    /// The ways in which a job can resume that stays among these processors, in order.
    pub fn ways(&self, cpus: impl Iterator<Item = CpuId>) -> Vec<Resumption> {
        let all = self.delays.map.kinds.len().max(1);
        let cpus: Vec<CpuId> = cpus.collect();
        let mut ways = vec![Resumption::Preemption];
        for (at, from) in cpus.iter().enumerate() {
            for to in &cpus[at + 1..] {
                let way = self.resumption(*from, *to);
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
            if ways.len() == all {
                break;
            }
        }
        ways.sort_unstable();
        ways
    }
}

/// Who is how far from whom: asking the platform takes a search through all caches.
#[derive(PartialEq, Eq, Debug)]
struct Map {
    /// The ways to resume that the platform has, a preemption first.
    kinds: Vec<Resumption>,
    /// Rows and columns of `ways` by processor number.
    places: Vec<Option<usize>>,
    count: usize,
    ways: Vec<Resumption>,
}

impl Map {
    fn of(platform: &Platform) -> Self {
        let cpus: Vec<CpuId> = platform.usable().iter().collect();
        let mut places = vec![None; cpus.last().map_or(0, |c| c.index() + 1)];
        let mut ways = Vec::with_capacity(cpus.len() * cpus.len());
        for (at, from) in cpus.iter().enumerate() {
            places[from.index()] = Some(at);
            ways.extend(cpus.iter().map(|to| platform.resumption(*from, *to)));
        }
        let mut kinds = ways.clone();
        kinds.push(Resumption::Preemption);
        kinds.sort_unstable();
        kinds.dedup();
        Map {
            kinds,
            places,
            count: cpus.len(),
            ways,
        }
    }

    fn resumption(&self, from: CpuId, to: CpuId) -> Option<Resumption> {
        let place = |cpu: CpuId| self.places.get(cpu.index()).copied().flatten();
        self.ways
            .get(place(from)? * self.count + place(to)?)
            .copied()
    }
}

/// The cache delay of every task by the kind of resumption: a preemption, or a migration through
/// some cache or memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheDelays {
    map: Arc<Map>,
    rows: Rows,
}

/// Delays by kind of resumption, in the order of the map; a row without kinds costs nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Rows {
    /// A row for every task.
    Each(Vec<Vec<Duration>>),
    /// One row for all tasks.
    All(Vec<Duration>),
}

impl CacheDelays {
    /// Resuming costs nothing, however it happens.
    pub fn none(tasks: usize) -> Self {
        CacheDelays {
            map: Arc::new(Map::of(&Platform::symmetric(0))),
            rows: Rows::Each(vec![Vec::new(); tasks]),
        }
    }

    /// Every task with its own delay, the same however it resumes.
    pub fn any_way(platform: &Platform, delays: &[Duration]) -> Self {
        Self::on(Arc::new(Map::of(platform)), delays)
    }

    /// On the same platform every task with a delay of its own, the same however it resumes.
    #[must_use]
    pub fn instead(&self, delays: &[Duration]) -> Self {
        Self::on(Arc::clone(&self.map), delays)
    }

    fn on(map: Arc<Map>, delays: &[Duration]) -> Self {
        let rows = delays.iter().map(|d| vec![*d; map.kinds.len()]).collect();
        let rows = Rows::Each(rows);
        CacheDelays { map, rows }
    }

    /// The ways to resume that the platform has, in the order of rows.
    pub fn kinds(&self) -> &[Resumption] {
        &self.map.kinds
    }

    /// On the same platform all tasks, however many, with the same delays: one for each of
    /// [`CacheDelays::kinds`].
    #[must_use]
    pub fn all(&self, row: Vec<Duration>) -> Self {
        CacheDelays {
            map: Arc::clone(&self.map),
            rows: Rows::All(row),
        }
    }

    /// Asks `delay` for every task and every way to resume that the platform has.
    ///
    /// # Errors
    /// Those of `delay`.
    pub fn of(
        platform: &Platform,
        tasks: usize,
        mut delay: impl FnMut(TaskId, Resumption) -> Result<Duration>,
    ) -> Result<Self> {
        let map = Map::of(platform);
        let mut row = |task: u32| {
            map.kinds
                .iter()
                .map(|kind| delay(TaskId(task), *kind))
                .collect()
        };
        let rows = (0..tasks as u32).map(&mut row).collect::<Result<_>>()?;
        Ok(CacheDelays {
            map: Arc::new(map),
            rows: Rows::Each(rows),
        })
    }

    /// Is every delay zero?
    pub fn are_free(&self) -> bool {
        match &self.rows {
            Rows::Each(rows) => rows.iter().flatten().all(|d| d.is_zero()),
            Rows::All(row) => row.iter().all(|d| d.is_zero()),
        }
    }

    /// Were the delays given for all tasks together?
    pub(super) fn are_same(&self) -> bool {
        matches!(self.rows, Rows::All(_))
    }

    fn row(&self, task: TaskId) -> Option<&[Duration]> {
        match &self.rows {
            Rows::Each(rows) => rows.get(task.index()).map(Vec::as_slice),
            Rows::All(row) => Some(row),
        }
    }

    /// The delay of a task that resumes in this way. Zero for a way that the platform does not
    /// have.
    pub fn delay(&self, task: TaskId, kind: Resumption) -> Duration {
        let at = self.map.kinds.iter().position(|k| *k == kind);
        at.and_then(|at| self.row(task)?.get(at))
            .copied()
            .unwrap_or_default()
    }

    /// The delay of a task that goes on where it was.
    pub fn preemption(&self, task: TaskId) -> Duration {
        self.delay(task, Resumption::Preemption)
    }

    /// The longest delay of a task in any of these ways.
    pub fn longest(&self, task: TaskId, kinds: &[Resumption]) -> Duration {
        kinds
            .iter()
            .map(|k| self.delay(task, *k))
            .max()
            .unwrap_or_default()
    }
}
