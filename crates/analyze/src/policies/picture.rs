//! What of each processor goes to whom, and how much of it to overhead.

use super::answers;
use super::charged::{Case, Pieces};
use super::question::Question;
use crate::overheads::Piece;
use crate::pd2;
use model::assignment::Slots;
use model::{Assignment, CpuId, CpuSet, Duration, TaskId};
use serde::Serialize;
use std::collections::BTreeMap;

/// A task in its cluster.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Placed {
    /// Its number in the set, from 0.
    #[serde(rename = "index")]
    pub task: TaskId,
    /// Its name.
    #[serde(rename = "task")]
    pub name: String,
    /// Its own utilization of this place.
    pub utilization: f64,
    /// What overheads add to it, and what is reserved for it beyond.
    pub overhead: f64,
    /// What a job executes here at most, overheads included, where that is known.
    #[serde(
        rename = "inflated_ns",
        serialize_with = "model::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub inflated: Option<Duration>,
    /// What of that is for which overhead, in nanoseconds; those that cost nothing are left out.
    pub charged_ns: BTreeMap<&'static str, u64>,
}

/// A processor or cluster and its tasks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Its processors.
    pub processors: CpuSet,
    /// The test that accepts it, if one does.
    pub accepted_by: Option<&'static str>,
    /// Its tasks, in the order of the set.
    pub tasks: Vec<Placed>,
}

/// Where a part of the platform is lost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Loss {
    /// One of the seven overheads (`release`, `cpmd`, …), or `reserve`: what servers or whole
    /// quanta take beyond what is needed.
    pub to: &'static str,
    /// In processors.
    pub utilization: f64,
}

/// Every place of an assignment.
pub(super) fn clusters(
    question: &Question<'_>,
    case: &Case,
    assignment: &Assignment,
    pieces: &Pieces,
    accepted_by: &[Option<&'static str>],
) -> Vec<Cluster> {
    let mut drawn: Vec<Cluster> = pieces
        .places
        .iter()
        .zip(accepted_by.iter().copied().chain(std::iter::repeat(None)))
        .map(|(processors, accepted_by)| Cluster {
            processors: processors.clone(),
            accepted_by,
            tasks: Vec::new(),
        })
        .collect();
    let placed = |task: TaskId, own: f64, taken: f64, piece: Option<&Piece>| Placed {
        task,
        name: question.set.name(task),
        utilization: own,
        overhead: (taken - own).max(0.0),
        inflated: piece.map(|piece| piece.timing.wcet),
        charged_ns: piece.map(charged).unwrap_or_default(),
    };
    if let Assignment::Slots(slots) = assignment {
        for share in shares_of_slots(question, slots) {
            let place = drawn.iter_mut().find(|c| c.processors.contains(share.cpu));
            if let Some(place) = place {
                let own = case.tasks[share.task.index()].utilization().to_f64() * share.part;
                let piece = pieces.pieces.iter().find(|piece| piece.task == share.task);
                place
                    .tasks
                    .push(placed(share.task, own, share.taken, piece));
            }
        }
        return drawn;
    }
    for piece in &pieces.pieces {
        let part = piece.jobs.0 as f64 / piece.jobs.1.max(1) as f64;
        let period = piece.timing.period.nanos().max(1) as f64;
        let overhead = piece.parts.total().nanos() as f64 / period * part;
        let mut taken = piece.timing.utilization().to_f64() * part;
        let own = taken - overhead;
        if let Some(quantum) = question.policy.quantum() {
            taken = pd2::weight(&piece.timing, quantum).map_or(taken, |w| w.to_f64());
        }
        drawn[piece.place as usize]
            .tasks
            .push(placed(piece.task, own, taken, Some(piece)));
    }
    drawn
}

/// What a job of a piece pays for each overhead that costs it anything.
fn charged(piece: &Piece) -> BTreeMap<&'static str, u64> {
    let all = piece
        .parts
        .iter()
        .map(|(kind, time)| (kind.name(), time.nanos()));
    all.filter(|(_, ns)| *ns > 0).collect()
}

/// What is lost to each overhead, and to reserves.
pub(super) fn losses(
    pieces: &Pieces,
    assignment: &Assignment,
    in_quanta: bool,
    drawn: &[Cluster],
) -> Vec<Loss> {
    let lost = pieces.lost();
    let mut losses: Vec<Loss> = lost
        .iter()
        .map(|(kind, utilization)| Loss {
            to: kind.name(),
            utilization,
        })
        .collect();
    if answers::has_reserve(assignment) || in_quanta {
        let all: f64 = drawn
            .iter()
            .flat_map(|c| &c.tasks)
            .map(|t| t.overhead)
            .sum();
        losses.push(Loss {
            to: "reserve",
            utilization: (all - lost.total()).max(0.0),
        });
    }
    losses
}

/// A part of a task on a processor.
struct Share {
    task: TaskId,
    cpu: CpuId,
    /// Which part of the task's execution, at most 1.
    part: f64,
    /// How much of the processor is kept for it.
    taken: f64,
}

/// What a server has reserved counts for its tasks in proportion to their utilization.
fn shares_of_slots(question: &Question<'_>, slots: &Slots) -> Vec<Share> {
    let servers = slots.server_of.iter().max().map_or(0, |s| *s as usize + 1);
    let mut members: Vec<Vec<(TaskId, f64)>> = vec![Vec::new(); servers];
    for (task, server) in question.set.ids().zip(&slots.server_of) {
        let u = question.set.timings()[task.index()].utilization().to_f64();
        members[*server as usize].push((task, u));
    }
    let turns = || {
        let of_table = |table: &'_ model::assignment::Timetable| {
            let cpu = table.cpu;
            let turn = move |turn: model::assignment::Serve| {
                let length = turn.end.saturating_sub(turn.start).nanos() as f64;
                (cpu, turn.server as usize, length)
            };
            table.turns.clone().into_iter().map(turn)
        };
        slots.timetables.iter().flat_map(of_table)
    };
    let mut reserved = vec![0.0; servers];
    for (_, server, length) in turns() {
        reserved[server] += length;
    }
    let mut shares = Vec::new();
    for (cpu, server, length) in turns() {
        let all: f64 = members[server].iter().map(|(_, u)| u).sum();
        for (task, u) in &members[server] {
            shares.push(Share {
                task: *task,
                cpu,
                part: length / reserved[server],
                taken: length / slots.slot.nanos().max(1) as f64 * u / all,
            });
        }
    }
    shares
}
