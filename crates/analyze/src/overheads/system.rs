//! What a platform costs a set under one policy: overheads, and the cache delay of every task by the way in which it resumes.

use super::Overheads;
use crate::verdict::Guarantee;
use model::{CpuId, Duration, Platform, Result, Resumption, TaskId};

/// All that accounting has to know besides tasks and assignment.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Who shares which cache.
    pub platform: &'a Platform,
    /// The six overheads that do not depend on the task, at the number of tasks of the whole set.
    pub overheads: &'a Overheads,
    /// The seventh.
    pub delays: &'a CacheDelays,
    /// Hard: also the longest that the kernel can be in the midst of something else. Soft: as often as 002 §6.1 counts.
    pub guarantee: Guarantee,
}

impl System<'_> {
    /// Does nothing cost anything?
    pub fn is_free(&self) -> bool {
        self.overheads.are_free() && self.delays.are_free()
    }
}

/// The cache delay of every task by the kind of resumption: a preemption, or a migration through some cache or memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheDelays {
    kinds: Vec<Resumption>,
    /// By task, then by kind.
    rows: Vec<Vec<Duration>>,
}

impl CacheDelays {
    /// Resuming costs nothing, however it happens.
    pub fn none(tasks: usize) -> Self {
        CacheDelays {
            kinds: Vec::new(),
            rows: vec![Vec::new(); tasks],
        }
    }

    /// Every task with its own delay, the same however it resumes.
    pub fn any_way(platform: &Platform, delays: &[Duration]) -> Self {
        let kinds = kinds(platform);
        CacheDelays {
            rows: delays.iter().map(|d| vec![*d; kinds.len()]).collect(),
            kinds,
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
        let kinds = kinds(platform);
        let mut row = |task: u32| kinds.iter().map(|kind| delay(TaskId(task), *kind)).collect();
        let rows = (0..tasks as u32).map(&mut row).collect::<Result<_>>()?;
        Ok(CacheDelays { kinds, rows })
    }

    /// Is every delay zero?
    pub fn are_free(&self) -> bool {
        self.rows.iter().flatten().all(|d| d.is_zero())
    }

    /// The delay of a task that resumes in this way. Zero for a way that the platform does not have.
    pub fn delay(&self, task: TaskId, kind: Resumption) -> Duration {
        let at = self.kinds.iter().position(|k| *k == kind);
        at.and_then(|at| self.rows.get(task.index())?.get(at))
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

fn kinds(platform: &Platform) -> Vec<Resumption> {
    let mut kinds = platform.resumptions();
    if !kinds.contains(&Resumption::Preemption) {
        kinds.insert(0, Resumption::Preemption);
    }
    kinds
}

/// The ways in which a job can resume that stays among these processors, in order.
pub fn ways(platform: &Platform, cpus: impl Iterator<Item = CpuId>) -> Vec<Resumption> {
    let cpus: Vec<CpuId> = cpus.collect();
    // Of many processors most pairs say nothing new: stop when all ways are known.
    let all = match cpus.len() {
        0..=8 => usize::MAX,
        _ => platform.resumptions().len(),
    };
    let mut ways = vec![Resumption::Preemption];
    for (at, from) in cpus.iter().enumerate() {
        for to in &cpus[at + 1..] {
            if ways.len() >= all {
                break;
            }
            let way = platform.resumption(*from, *to);
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
    }
    ways.sort_unstable();
    ways
}
