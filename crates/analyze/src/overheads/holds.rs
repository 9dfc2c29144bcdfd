//! Does an assignment hold with its overheads? Monotone: what costs more never makes one hold that
//! did not.
//!
//! The tests are those of each algorithm without overheads (002 chapter 4 and §6.3), on what
//! [`account`] has made of the tasks. An assignment that a heuristic finds is another matter: with
//! other costs it finds another one.

use super::packing::holds as cluster_holds;
use super::{Accounted, Piece, System, account, slots};
use crate::pd2;
use crate::uniprocessor::edf;
use model::assignment::{Quanta, Slices, Turns};
use model::{Assignment, Duration, Ratio, Timing, exact};
use std::borrow::Cow;

/// Does EDF, in the form that the assignment is for, keep the guarantee of `system` with the
/// overheads of `system`?
///
/// Clusters: every deadline is met (hard), or none is over-utilized (soft). Turns: tardiness is
/// bounded and no migratory task is tardy. Slices and slots: every deadline is met. Quanta: every
/// task has as many as it needs. Turns, slots and quanta are for implicit deadlines.
pub fn holds(tasks: &[Timing], assignment: &Assignment, system: &System<'_>) -> bool {
    let (tasks, system) = match assignment {
        // In quanta nothing is in the WCETs before.
        Assignment::Quanta(_) => (Cow::Borrowed(tasks), *system),
        _ => {
            let (tasks, books) = system.books(tasks);
            let guarantee = system.guarantee;
            (tasks, System { guarantee, ..books })
        }
    };
    let (tasks, system) = (&*tasks, &system);
    match assignment {
        Assignment::Slots(slots) => {
            tasks.iter().all(Timing::has_implicit_deadline) && slots::hold(tasks, slots, system)
        }
        _ => accounted_holds(
            tasks,
            assignment,
            &account(tasks, assignment, system),
            system,
        ),
    }
}

fn accounted_holds(
    tasks: &[Timing],
    assignment: &Assignment,
    accounted: &Accounted,
    system: &System<'_>,
) -> bool {
    let mut inside: Vec<Vec<Piece>> = vec![Vec::new(); accounted.places.len()];
    for piece in &accounted.pieces {
        inside[piece.place as usize].push(*piece);
    }
    let timings = |pieces: &[Piece]| pieces.iter().map(|p| p.timing).collect::<Vec<_>>();
    match assignment {
        Assignment::Clustered(_) => inside.iter().zip(&accounted.places).all(|(pieces, place)| {
            cluster_holds(
                &timings(pieces),
                place.processors.len() as u32,
                system.guarantee,
            )
        }),
        Assignment::Turns(turns) => {
            tasks.iter().all(Timing::has_implicit_deadline)
                && are_complete(turns, tasks)
                && inside.iter().all(|pieces| turns_hold(pieces))
        }
        Assignment::Slices(slices) => {
            are_whole(slices, tasks)
                && inside
                    .iter()
                    .all(|pieces| edf::decide(&timings(pieces)) == Ok(true))
        }
        Assignment::Slots(slots) => slots::hold(tasks, slots, system),
        Assignment::Quanta(quanta) => {
            tasks.iter().all(Timing::has_implicit_deadline)
                && inside
                    .iter()
                    .all(|pieces| reservations_hold(quanta, &timings(pieces)))
        }
    }
}

/// Each reservation holds its task with what the quanta lose, and all of them fit on the processors
/// (PD²; ca-edf in the same way, with bounded tardiness).
fn reservations_hold(quanta: &Quanta, inflated: &[Timing]) -> bool {
    let reserved = |(t, reserved): (&Timing, &Duration)| Timing {
        wcet: *reserved,
        ..*t
    };
    let all: Vec<Timing> = inflated
        .iter()
        .zip(&quanta.reserved)
        .map(reserved)
        .collect();
    quanta.reserved.len() == inflated.len()
        && inflated.iter().zip(&all).all(|(t, r)| t.wcet <= r.wcet)
        && pd2::is_schedulable_with(&all, quanta.cpus.len() as u32, quanta.quantum) == Ok(true)
}

fn are_complete(turns: &Turns, tasks: &[Timing]) -> bool {
    turns.tasks.len() == tasks.len()
}

/// EDF-fm on one processor (002 §4.1): not over-utilized, and migratory tasks alone never miss,
/// whatever they run of their jobs here.
pub(super) fn turns_hold(pieces: &[Piece]) -> bool {
    let migratory = pieces.iter().filter(|p| p.jobs.0 < p.jobs.1);
    pieces.iter().all(|p| p.timing.wcet <= p.timing.period)
        && exact::cmp_sum(pieces.iter().map(Piece::utilization), Ratio::ONE).is_le()
        && exact::cmp_sum(migratory.map(|p| p.timing.utilization()), Ratio::ONE).is_le()
}

/// The slices of each task hold its execution, and end by its deadline; those of a split task also
/// by the next release, or the first slice of its next job would come late
/// ([`crate::semi::edf_wm`]).
fn are_whole(slices: &Slices, tasks: &[Timing]) -> bool {
    let sum = |times: &mut dyn Iterator<Item = Duration>| {
        times.map(|d| u128::from(d.nanos())).sum::<u128>()
    };
    slices.tasks.len() == tasks.len()
        && tasks.iter().zip(&slices.tasks).all(|(t, slices)| {
            let end = match slices.len() {
                0 | 1 => t.deadline,
                _ => t.deadline.min(t.period),
            };
            sum(&mut slices.iter().map(|s| s.budget)) >= u128::from(t.wcet.nanos())
                && sum(&mut slices.iter().map(|s| s.window)) <= u128::from(end.nanos())
        })
}
