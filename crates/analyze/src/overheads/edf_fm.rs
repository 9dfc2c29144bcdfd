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
use crate::semi::edf_fm::{Fill, Refusal, SLIVER, first_that_holds, tardiness_with, turn};
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
    first_that_holds(tasks, cpus.len(), fill, |usual| {
        assign_up_to(tasks, cpus, fill, usual, system)
    })
}

/// A processor that is being filled.
struct Site<'a> {
    system: &'a System<'a>,
    residents: Vec<(TaskId, Resident)>,
    cap: Ratio,
}

impl Site<'_> {
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
        let pieces = self.pieces();
        pieces.iter().all(|p| p.timing.wcet <= p.timing.period)
            && exact::cmp_sum(pieces.iter().map(Piece::utilization), self.cap).is_le()
    }

    /// Takes as many of these, one after the other, as it holds; how many. Found by doubling and
    /// bisection: whoever comes, the others do not cost less.
    fn take_from(&mut self, tasks: &[Timing], range: std::ops::Range<usize>) -> usize {
        let before = self.residents.len();
        let (mut fits, mut step, mut beyond) = (0, 1, range.len() + 1);
        while fits + 1 < beyond {
            let count = match beyond <= range.len() {
                true => fits + (beyond - fits) / 2,
                false => (fits + step).min(range.len()),
            };
            step *= 2;
            self.fill(before, tasks, range.start..range.start + count);
            if self.is_within_cap() && turns_hold(&self.pieces()) {
                fits = count;
            } else {
                beyond = count;
            }
        }
        self.fill(before, tasks, range.start..range.start + fits);
        fits
    }

    /// Keeps the first few and adds these.
    fn fill(&mut self, keep: usize, tasks: &[Timing], range: std::ops::Range<usize>) {
        self.residents.truncate(keep);
        for index in range {
            let task = TaskId(index as u32);
            self.residents
                .push((task, fixed(task, tasks[index], self.system)));
        }
    }
}

fn assign_up_to(
    tasks: &[Timing],
    cpus: &[CpuId],
    fill: Fill,
    usual: Ratio,
    system: &System<'_>,
) -> Result<Turns, Refusal> {
    let mut turns: Vec<Turn> = Vec::with_capacity(tasks.len());
    let mut current = 0;
    let cap_of = |place: usize| {
        // The last processor takes what roundings and whole tasks have left to it.
        if place + 1 == cpus.len() {
            Ratio::ONE
        } else {
            usual
        }
    };
    let mut site = Site {
        system,
        residents: Vec::new(),
        cap: cap_of(0),
    };
    let heavy = tasks.iter().position(|t| t.wcet > t.period);
    let end = heavy.unwrap_or(tasks.len());
    let mut index = 0;
    while index < tasks.len() {
        let cpu = *cpus.get(current).ok_or(Refusal::Task(index))?;
        let count = site.take_from(tasks, index..end);
        turns.extend(std::iter::repeat_n(Turn::fixed(cpu), count));
        index += count;
        let Some(t) = tasks.get(index) else { break };
        if index == end {
            return Err(Refusal::Task(index));
        }
        let task = TaskId(index as u32);
        let next = cpus.get(current + 1).copied();
        let time = next.map_or(Duration::ZERO, |next| {
            largest_part(&mut site, task, t, (cpu, next))
        });
        current += 1;
        // Spreading evenly is no reason to split off a sliver.
        let is_split =
            !time.is_zero() && (fill != Fill::Spread || time.nanos() >= t.wcet.nanos() / SLIVER);
        let Some(next) = next.filter(|_| is_split) else {
            site.residents.clear();
            site.cap = cap_of(current);
            continue;
        };
        let rest = t.wcet.saturating_sub(time);
        let jobs = |time: Duration| (time.nanos(), t.wcet.nanos());
        let here = migratory(task, *t, (cpu, next), jobs(time), system);
        site.residents.push((task, here));
        if !turns_hold(&site.pieces()) {
            return Err(Refusal::Migratory(current - 1));
        }
        site.residents.clear();
        site.cap = cap_of(current);
        let there = migratory(task, *t, (cpu, next), jobs(rest), system);
        site.residents.push((task, there));
        if !turns_hold(&site.pieces()) {
            return Err(Refusal::Migratory(current));
        }
        turns.push(turn(cpu, next, time, t.wcet));
        index += 1;
    }
    Ok(Turns {
        cpus: cpus.to_vec(),
        tasks: turns,
    })
}

/// The largest execution a period, less than the WCET, whose part of the jobs the processor has
/// room for; zero if there is none.
fn largest_part(
    site: &mut Site<'_>,
    task: TaskId,
    t: &Timing,
    between: (CpuId, CpuId),
) -> Duration {
    let (mut low, mut high) = (0, t.wcet.nanos().saturating_sub(1));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let jobs = (middle, t.wcet.nanos());
        let resident = migratory(task, *t, between, jobs, site.system);
        site.residents.push((task, resident));
        let fits = site.is_within_cap();
        site.residents.pop();
        if fits {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Duration::from_nanos(low)
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
