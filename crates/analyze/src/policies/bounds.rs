//! How late every task's jobs can finish: response times and tardiness, exact where a theorem gives
//! them.
//!
//! One processor: exact response times under EDF (Spuri 1996) and fixed priorities (Lehoczky 1990).
//! Several: the response-time analysis of Bertogna and Cirinei 2007 for hard guarantees; for soft
//! ones the smaller of the compliant-vector bound and that of Devi and Anderson. The cache-aware
//! scheduler: WC. EDF-fm: tardiness of 002 §4.1. EDF-WM: the windows of all slices but the last,
//! and the last one's response there. All others meet their deadlines, and that is their bound.
//! Times hold for the WCETs with overheads, in the assignment that is shown.

use super::answers;
use super::charged::{Pieces, Point};
use super::costs::Rule;
use super::members::{BY_DELAYED_RESPONSE, Members};
use super::question::Question;
use super::subject::Way;
use crate::carries;
use crate::global::{gfp_rta, rta};
use crate::overheads::{self, Piece};
use crate::semi::edf_fm;
use crate::tardiness::{cache_aware, compliant_vector, devi_anderson};
use crate::uniprocessor::fixed_priority::Response;
use crate::uniprocessor::{Work, edf_response};
use crate::verdict::Guarantee;
use model::assignment::{Slices, Turns};
use model::{Assignment, Duration, TaskId, Timing};
use policy::catalog::Order;
use serde::Serialize;

/// How late the jobs of a task can finish.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskBound {
    /// Its number in the set, from 0.
    #[serde(rename = "index")]
    pub task: TaskId,
    /// Its name.
    #[serde(rename = "task")]
    pub name: String,
    /// When a job is due after its release.
    #[serde(rename = "deadline_ns", serialize_with = "model::time::ns::serialize")]
    pub deadline: Duration,
    /// When it is done after its release, at most.
    #[serde(rename = "response_ns", serialize_with = "model::time::ns::serialize")]
    pub response: Duration,
    /// How much later than due, at most.
    #[serde(rename = "tardiness_ns", serialize_with = "model::time::ns::serialize")]
    pub tardiness: Duration,
    /// Can a job be as late as that? Else this is an upper bound.
    pub exact: bool,
    /// The analysis that says so.
    pub by: &'static str,
}

/// The work of all response times on one processor.
const RESPONSE_WORK: u64 = 1 << 21;
/// Larger clusters get no bounds of their own: the analyses look at pairs of tasks, many times, or
/// add up many fractions.
const MOST_IN_CLUSTER: usize = 200;

/// A response, whether it is exact, and who says so.
type Said = (Duration, bool, &'static str);

/// The bounds of all tasks for which there is one, in the order of the set; `accepted_by` has the
/// test of each place.
pub(super) fn all(
    question: &Question<'_>,
    assignment: &Assignment,
    pieces: &Pieces,
    accepted_by: &[Option<&'static str>],
) -> Vec<TaskBound> {
    let count = question.set.len();
    // In quanta a test for hard guarantees answers for soft ones, too.
    let meets_deadlines = !question.policy.is_soft_only();
    let said: Vec<Option<Said>> = match assignment {
        Assignment::Turns(turns) => of_turns(question, turns),
        Assignment::Slices(slices) => of_slices(slices, pieces, count),
        Assignment::Slots(_) => vec![None; count],
        Assignment::Quanta(_) if meets_deadlines => vec![None; count],
        Assignment::Clustered(_) | Assignment::Quanta(_) => of_places(question, pieces, count),
    };
    // A deadline that is met is the word of the test that accepted the task's own place.
    let mut decided_by = vec![answers::by_policy(question); count];
    for piece in &pieces.pieces {
        if let Some(Some(test)) = accepted_by.get(piece.place as usize) {
            decided_by[piece.task.index()] = test;
        }
    }
    // What a job is charged by piece it may cause, and need not.
    let is_charged = question.bill.rule == Rule::ByPiece
        && pieces
            .pieces
            .iter()
            .any(|piece| !piece.parts.total().is_zero());
    let bound = |(task, said): (TaskId, Option<Said>)| {
        let deadline = question.set.timings()[task.index()].deadline;
        let decided = decided_by[task.index()];
        let (response, exact, by) = match (said, question.guarantee, assignment) {
            (Some(said), _, _) => said,
            // What meets every deadline is done by then.
            (None, Guarantee::Hard, _) | (None, _, Assignment::Slots(_)) => {
                (deadline, false, decided)
            }
            (None, Guarantee::Soft, Assignment::Quanta(_)) if meets_deadlines => {
                (deadline, false, decided)
            }
            (None, Guarantee::Soft, _) => return None,
        };
        Some(TaskBound {
            task,
            name: question.set.name(task),
            deadline,
            response,
            tardiness: response.saturating_sub(deadline),
            exact: exact && !is_charged,
            by,
        })
    };
    question.set.ids().zip(said).filter_map(bound).collect()
}

/// The bounds of tasks whose jobs take turns on two processors.
fn of_turns(question: &Question<'_>, turns: &Turns) -> Vec<Option<Said>> {
    let case = question.case(Point::GIVEN);
    let (tasks, system) = question.books(&case);
    let late = overheads::edf_fm::tardiness_bounds(&tasks, turns, &system);
    tasks
        .iter()
        .zip(late)
        .map(|(t, late)| Some((t.deadline.saturating_add(late), false, edf_fm::INFO.name)))
        .collect()
}

/// The bounds of tasks cut into slices: the windows of all slices but the last, and the response of
/// that one on its processor, or its window where the analysis gives up.
fn of_slices(slices: &Slices, pieces: &Pieces, count: usize) -> Vec<Option<Said>> {
    let mut said = vec![None; count];
    let mut responses = Vec::new();
    for here in pieces.by_place() {
        let tasks: Vec<Timing> = here.iter().map(|p| p.timing).collect();
        let times = edf_response::response_times(&tasks, &mut Work::of(RESPONSE_WORK));
        for (at, piece) in here.iter().enumerate() {
            responses.push((*piece, times.as_ref().map(|t| t[at])));
        }
    }
    for (index, parts) in slices.tasks.iter().enumerate() {
        let Some((last, before)) = parts.split_last() else {
            continue;
        };
        let waited: Duration = before.iter().map(|s| s.window).sum();
        let is_last = |piece: &Piece| {
            piece.task.index() == index && pieces.places[piece.place as usize].contains(last.cpu)
        };
        let own = responses
            .iter()
            .find(|(piece, _)| is_last(piece))
            .and_then(|(_, r)| *r);
        let exact = before.is_empty() && own.is_some();
        let response = waited.saturating_add(own.unwrap_or(last.window));
        said[index] = Some((response, exact, "EDF response times"));
    }
    said
}

/// The bounds of tasks that each stay on one processor or cluster.
fn of_places(question: &Question<'_>, pieces: &Pieces, count: usize) -> Vec<Option<Said>> {
    let mut said = vec![None; count];
    for (here, cpus) in pieces.by_place().iter().zip(&pieces.places) {
        let members = question.members_of(here);
        let bounds = of_place(question, &members, cpus.len() as u32);
        for (id, bound) in members.ids.iter().zip(bounds) {
            said[*id] = bound;
        }
    }
    said
}

/// The responses on one processor or cluster, in order.
fn of_place(question: &Question<'_>, members: &Members, size: u32) -> Vec<Option<Said>> {
    let tasks = &members.tasks[..];
    let none = || vec![None; tasks.len()];
    let each = |times: Vec<Duration>, exact: bool, by: &'static str| {
        times.into_iter().map(|t| Some((t, exact, by))).collect()
    };
    match (question.policy.priority(), question.guarantee) {
        _ if matches!(question.policy.way, Way::Quanta(_)) => {
            let late = cache_aware::tardiness_bounds(tasks, size, cache_aware::QUANTUM);
            let Ok(Some(late)) = late else {
                return none();
            };
            let done = tasks
                .iter()
                .zip(late)
                .map(|(t, late)| t.deadline.saturating_add(late));
            each(done.collect(), false, cache_aware::INFO.name)
        }
        (Some(priority), _) if size == 1 => {
            let times = members.fixed_responses(priority);
            let by = match members.are_plain() {
                true => answers::BY_RESPONSE,
                false => BY_DELAYED_RESPONSE,
            };
            let said = |r| match r {
                Response::Within(time) => Some((time, members.are_exact(), by)),
                _ => None,
            };
            times.into_iter().map(said).collect()
        }
        (Some(priority), _) if tasks.len() <= MOST_IN_CLUSTER => {
            match members.global_fixed_responses(size, priority) {
                Some(times) => each(times, false, gfp_rta::GIVEN.name),
                None => none(),
            }
        }
        // Of another order nothing is known but that tardiness is bounded.
        _ if matches!(question.policy.order, Order::Releases | Order::Own) => none(),
        (_, _) if size == 1 => match members.edf_responses(&mut Work::of(RESPONSE_WORK)) {
            Some(times) => each(times, members.are_exact(), "EDF response times"),
            None => none(),
        },
        (_, _) if tasks.len() > MOST_IN_CLUSTER => none(),
        (_, Guarantee::Hard) => {
            let Ok(Some(reduced)) = carries::reduced(rta::INFO.carries, tasks, &members.extras)
            else {
                return none();
            };
            match rta::response_bounds(&reduced, size) {
                Ok(Some(times)) => each(members.since_arrivals(times), false, rta::INFO.name),
                _ => none(),
            }
        }
        (_, Guarantee::Soft) => {
            let blocked = members.with_blocking();
            let tasks = &blocked[..];
            let vector = compliant_vector::response_bounds(tasks, size)
                .ok()
                .flatten();
            let late = devi_anderson::tardiness_bounds(tasks, size).ok().flatten();
            let by_vector = |at: usize| {
                let time = vector.as_ref()?.get(at)?;
                Some((*time, false, "compliant vector"))
            };
            let by_lateness = |at: usize, t: &Timing| {
                let late = late.as_ref()?.get(at)?;
                Some((
                    t.deadline.saturating_add(*late),
                    false,
                    devi_anderson::INFO.name,
                ))
            };
            let smaller = |(at, t): (usize, &Timing)| {
                let both = [by_vector(at), by_lateness(at, t)];
                both.into_iter().flatten().min_by_key(|(time, _, _)| *time)
            };
            tasks.iter().enumerate().map(smaller).collect()
        }
    }
}
