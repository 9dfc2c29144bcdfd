//! EDF-fm with overheads: processors are filled with what tasks take there, all overheads included.
//!
//! 002 §4.1 and §6.1. Sequential next fit as in [`crate::semi::edf_fm`]; after each placement all
//! tasks of the processor are accounted for anew, and a task that does not fit becomes migratory
//! with the largest part of its jobs that does. On its second processor it costs what it costs
//! there.
//!
//! A bound on tardiness comes from the same formula, with executions that hold the overheads of the
//! processor.

use super::account::{Accounted, fixed, migratory};
use super::accounting::{Resident, inflate};
use super::holds::turns_hold;
use super::{Piece, System, account};
use crate::semi::edf_fm::{
    Fill, Refusal, cap_of, first_that_holds, is_sliver, tardiness_with, turn,
};
use crate::semi::next_fit::Filling;
use model::assignment::{Turn, Turns};
use model::{Assignment, CpuId, Duration, Ratio, TaskId, Timing, exact};

/// The processors of every task, and which part of the jobs of a migratory one runs on which, with
/// overheads.
///
/// # Errors
/// The task or the processor that breaks what EDF-fm needs. Deadlines are not looked at.
pub fn assign(
    tasks: &[Timing],
    cpus: &[CpuId],
    fill: Fill,
    system: &System<'_>,
) -> Result<Turns, Refusal> {
    first_that_holds(tasks, cpus, fill, |order, usual| {
        let mut site = Site {
            tasks,
            cpus,
            fill,
            usual,
            system,
            turns: vec![Turn::fixed(CpuId(0)); tasks.len()],
            current: 0,
            residents: Vec::new(),
        };
        order.place(tasks, &mut site)?;
        Ok(site.turns)
    })
}

/// Processors that are filled with what tasks take there.
struct Site<'a> {
    tasks: &'a [Timing],
    cpus: &'a [CpuId],
    fill: Fill,
    usual: Ratio,
    system: &'a System<'a>,
    turns: Vec<Turn>,
    current: usize,
    /// On the current processor.
    residents: Vec<(TaskId, Resident)>,
}

impl Site<'_> {
    fn cpu(&self, task: usize) -> Result<CpuId, Refusal> {
        let cpu = self.cpus.get(self.current);
        cpu.copied().ok_or(Refusal::Task(task))
    }

    fn pieces(&self) -> Vec<Piece> {
        let residents: Vec<Resident> = self.residents.iter().map(|(_, r)| *r).collect();
        let inflated = inflate(&residents, 1, self.system);
        let with = self.residents.iter().zip(inflated);
        with.map(|((task, resident), (timing, parts))| Piece {
            task: *task,
            place: 0,
            timing,
            parts,
            jobs: resident.jobs,
        })
        .collect()
    }

    fn is_within_cap(&self) -> bool {
        let cap = cap_of(self.current, self.cpus.len(), self.usual);
        let pieces = self.pieces();
        pieces.iter().all(|p| p.timing.wcet <= p.timing.period)
            && exact::cmp_sum(pieces.iter().map(Piece::utilization), cap).is_le()
    }

    /// Keeps the first few and adds these, whole; do they fit?
    fn holds_with(&mut self, keep: usize, tasks: &[usize]) -> bool {
        self.residents.truncate(keep);
        let whole = |&task: &usize| {
            let id = TaskId(task as u32);
            (id, fixed(id, self.tasks[task], self.system))
        };
        self.residents.extend(tasks.iter().map(whole));
        self.is_within_cap() && turns_hold(&self.pieces())
    }

    /// Some jobs of a migratory task here: what this part of its execution a period is.
    fn part(&self, task: usize, between: (CpuId, CpuId), time: Duration) -> (TaskId, Resident) {
        let (id, t) = (TaskId(task as u32), self.tasks[task]);
        let jobs = (time.nanos(), t.wcet.nanos());
        (id, migratory(id, t, between, jobs, self.system))
    }

    /// The largest execution a period, less than the WCET, whose part of the jobs the processor has
    /// room for; zero if there is none.
    fn largest_part(&mut self, task: usize, between: (CpuId, CpuId)) -> Duration {
        let wcet = self.tasks[task].wcet.nanos();
        let (mut low, mut high) = (0, wcet.saturating_sub(1));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let part = self.part(task, between, Duration::from_nanos(middle));
            self.residents.push(part);
            let fits = self.is_within_cap();
            self.residents.pop();
            if fits {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Duration::from_nanos(low)
    }
}

impl Filling for Site<'_> {
    type End = Refusal;

    /// Found by doubling and bisection: whoever comes, the others do not cost less.
    fn take(&mut self, tasks: &[usize]) -> Result<usize, Refusal> {
        let Some(&next) = tasks.first() else {
            return Ok(0);
        };
        let cpu = self.cpu(next)?;
        let before = self.residents.len();
        let (mut fits, mut step, mut beyond) = (0, 1, tasks.len() + 1);
        while fits + 1 < beyond {
            let count = match beyond <= tasks.len() {
                true => fits + (beyond - fits) / 2,
                false => (fits + step).min(tasks.len()),
            };
            step *= 2;
            if self.holds_with(before, &tasks[..count]) {
                fits = count;
            } else {
                beyond = count;
            }
        }
        self.holds_with(before, &tasks[..fits]);
        for &task in &tasks[..fits] {
            self.turns[task] = Turn::fixed(cpu);
        }
        Ok(fits)
    }

    fn fits(&mut self, task: usize) -> Result<bool, Refusal> {
        let before = self.residents.len();
        let fits = self.holds_with(before, &[task]);
        self.residents.truncate(before);
        Ok(fits)
    }

    fn split(&mut self, task: usize) -> Result<bool, Refusal> {
        let t = self.tasks[task];
        let cpu = self.cpu(task)?;
        let next = self.cpus.get(self.current + 1).copied();
        let time = next.map_or(Duration::ZERO, |next| self.largest_part(task, (cpu, next)));
        let Some(next) = next.filter(|_| !time.is_zero() && !is_sliver(time, &t, self.fill)) else {
            self.residents.clear();
            self.current += 1;
            return Ok(false);
        };
        let here = self.part(task, (cpu, next), time);
        self.residents.push(here);
        if !turns_hold(&self.pieces()) {
            return Err(Refusal::Migratory(self.current));
        }
        let there = self.part(task, (cpu, next), t.wcet.saturating_sub(time));
        self.residents = vec![there];
        self.current += 1;
        if !turns_hold(&self.pieces()) {
            return Err(Refusal::Migratory(self.current));
        }
        self.turns[task] = turn(cpu, next, time, t.wcet);
        Ok(true)
    }
}

/// A bound on the tardiness of every task with overheads, in the order of the set, rounded up; zero
/// for migratory tasks.
pub fn tardiness_bounds(tasks: &[Timing], turns: &Turns, system: &System<'_>) -> Vec<Duration> {
    let accounted: Accounted = account(tasks, &Assignment::Turns(turns.clone()), system);
    let mut by_task: Vec<Vec<Piece>> = vec![Vec::new(); tasks.len()];
    for piece in &accounted.pieces {
        by_task[piece.task.index()].push(*piece);
    }
    tardiness_with(tasks, turns, |task, cpu| {
        let here = by_task[task]
            .iter()
            .find(|p| accounted.places[p.place as usize].processors.contains(cpu));
        here.map_or(tasks[task].wcet, |p| p.timing.wcet)
    })
}
