//! One delay a job, the same bound for all jobs, and nothing else: e′ = e + D (000 §2).
//!
//! WCETs contain the delay before anything is assigned. So budgets and shares of an assignment
//! contain it as well, and nothing is left to add to them.

use super::account::{Accounted, Piece, Place};
use super::kinds::{Kind, Lost, Parts};
use model::assignment::{Slices, Slots, Timetable, Turns};
use model::{Assignment, CpuId, CpuSet, Duration, TaskId, Timing};

/// Puts the tasks with the delay into `inflated`, whose allocation is used again.
pub fn inflate_into(tasks: &[Timing], delay: Duration, inflated: &mut Vec<Timing>) {
    inflated.clear();
    inflated.extend(tasks.iter().map(|t| t.inflated(delay)));
}

/// What an assignment costs that was made for tasks which contain the delay.
pub(super) fn account(tasks: &[Timing], assignment: &Assignment, delay: Duration) -> Accounted {
    let mut inflated = Vec::with_capacity(tasks.len());
    inflate_into(tasks, delay, &mut inflated);
    let (pieces, cpus) = match assignment {
        Assignment::Clustered(c) => {
            let places = inflated.iter().zip(&c.cluster_of).enumerate();
            let pieces = places.map(|(task, (t, place))| piece(task, *place as usize, *t, delay));
            (pieces.collect(), c.clusters.clone())
        }
        Assignment::Turns(turns) => (in_turns(&inflated, turns, delay), alone(&turns.cpus)),
        Assignment::Slices(slices) => (in_slices(&inflated, slices, delay), alone(&slices.cpus)),
        Assignment::Slots(slots) => {
            let cpus = slots
                .timetables
                .iter()
                .map(|t| std::iter::once(t.cpu).collect());
            (in_slots(&inflated, slots, delay), cpus.collect())
        }
        Assignment::Quanta(quanta) => {
            let pieces = inflated
                .iter()
                .enumerate()
                .map(|(task, t)| piece(task, 0, *t, delay));
            (pieces.collect(), vec![quanta.cpus.clone()])
        }
    };
    Accounted {
        parts: vec![paid(delay); tasks.len()],
        places: places(&pieces, cpus),
        inflated,
        pieces,
    }
}

fn paid(delay: Duration) -> Parts {
    let mut parts = Parts::default();
    parts.add(Kind::Cpmd, delay);
    parts
}

/// A task with all of its jobs in one place.
fn piece(task: usize, place: usize, timing: Timing, delay: Duration) -> Piece {
    Piece {
        task: TaskId(task as u32),
        place: place as u32,
        timing,
        parts: paid(delay),
        jobs: (1, 1),
    }
}

fn alone(cpus: &[CpuId]) -> Vec<CpuSet> {
    cpus.iter().map(|c| std::iter::once(*c).collect()).collect()
}

fn place_of(cpus: &[CpuId], cpu: CpuId) -> usize {
    cpus.iter().position(|c| *c == cpu).unwrap_or(0)
}

fn in_turns(inflated: &[Timing], turns: &Turns, delay: Duration) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(inflated.len());
    for (task, (t, turn)) in inflated.iter().zip(&turns.tasks).enumerate() {
        let first = piece(task, place_of(&turns.cpus, turn.first), *t, delay);
        if !turn.is_migratory() {
            pieces.push(first);
            continue;
        }
        let second = piece(task, place_of(&turns.cpus, turn.second), *t, delay);
        let rest = turn.whole.saturating_sub(turn.part);
        for (piece, part) in [(first, turn.part), (second, rest)] {
            pieces.push(Piece {
                jobs: (part, turn.whole),
                ..piece
            });
        }
    }
    pieces
}

/// The delay is spread over the slices as the execution is; the last slice takes the rest.
fn in_slices(inflated: &[Timing], slices: &Slices, delay: Duration) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(inflated.len());
    for (task, (t, parts)) in inflated.iter().zip(&slices.tasks).enumerate() {
        let mut left = delay;
        for (at, slice) in parts.iter().enumerate() {
            let share = u128::from(delay.nanos()) * u128::from(slice.budget.nanos())
                / u128::from(t.wcet.nanos().max(1));
            let share = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX));
            let here = match at + 1 == parts.len() {
                true => left,
                false => share.min(left),
            };
            let here = here.min(slice.budget);
            left = left.saturating_sub(here);
            let timing = Timing {
                wcet: slice.budget,
                deadline: slice.window,
                period: t.period,
            };
            pieces.push(piece(task, place_of(&slices.cpus, slice.cpu), timing, here));
        }
    }
    pieces
}

/// A task is drawn where its server is served; here it has the first of these places.
fn in_slots(inflated: &[Timing], slots: &Slots, delay: Duration) -> Vec<Piece> {
    let tasks = inflated.iter().zip(&slots.server_of).enumerate();
    let place = |server: u32| {
        let serves = |t: &Timetable| t.turns.iter().any(|turn| turn.server == server);
        slots.timetables.iter().position(serves).unwrap_or(0)
    };
    tasks
        .map(|(task, (t, server))| piece(task, place(*server), *t, delay))
        .collect()
}

fn places(pieces: &[Piece], cpus: Vec<CpuSet>) -> Vec<Place> {
    let empty = |processors| Place {
        processors,
        own: 0.0,
        lost: Lost::default(),
    };
    let mut places: Vec<Place> = cpus.into_iter().map(empty).collect();
    for piece in pieces {
        let Some(place) = places.get_mut(piece.place as usize) else {
            continue;
        };
        let part = piece.jobs.0 as f64 / piece.jobs.1.max(1) as f64;
        let own = Timing {
            wcet: piece.timing.wcet.saturating_sub(piece.parts.total()),
            ..piece.timing
        };
        place.own += own.utilization().to_f64() * part;
        place.lost.add(&piece.parts, piece.timing.period, part);
    }
    places
}
