//! How much of which processors jobs take under an assignment, and the engine beside them.

use super::load::is_budget;
use super::{Intent, Takes};
use model::assignment::{Serve, Slots};
use model::{Assignment, CpuId, Ratio, TaskId};
use std::collections::BTreeMap;
use trace::Stage;

/// Processors that are filled together.
pub(super) struct Share {
    /// Which, as they follow a number of processors; empty: all.
    pub place: String,
    /// How many.
    pub cpus: usize,
    /// How much of them is taken, in processors.
    pub used: f64,
}

/// What jobs take, place by place.
pub(super) fn of_jobs(intent: &Intent<'_>, assignment: Option<&Assignment>) -> Vec<Share> {
    let part = |task: TaskId| match is_budget(intent.set, task) {
        // A program has all of its budget.
        true => Ratio::ONE.to_f64(),
        false => intent.part.to_f64(),
    };
    let timing = |task: TaskId| intent.set.timings()[task.index()];
    match assignment {
        Some(Assignment::Slices(slices)) => {
            let mut single = BTreeMap::new();
            for (task, slices) in intent.set.ids().zip(&slices.tasks) {
                let period = timing(task).period.nanos() as f64;
                for slice in slices {
                    *single.entry(slice.cpu).or_default() +=
                        slice.budget.nanos() as f64 / period * part(task);
                }
            }
            by_processor(single)
        }
        Some(Assignment::Quanta(quanta)) => {
            // What is reserved is the processors' where jobs change.
            let all = intent.set.ids().zip(&quanta.reserved).map(|(task, time)| {
                time.nanos() as f64 / timing(task).period.nanos() as f64 * part(task)
            });
            vec![together(intent, all.sum())]
        }
        _ => by_task(intent, assignment, |task| {
            timing(task).utilization().to_f64() * part(task)
        }),
    }
}

/// What the engine takes at the places of [`of_jobs`], in their order.
pub(super) fn of_engine(intent: &Intent<'_>, stage: &Stage, takes: &Takes) -> Vec<Share> {
    let job = |task: TaskId| takes.of_jobs(intent.set.timings()[task.index()].period);
    let assignment = stage.assignment.as_ref();
    let mut shares = match assignment {
        Some(Assignment::Slices(slices)) => {
            let mut single = BTreeMap::new();
            for (task, slices) in intent.set.ids().zip(&slices.tasks) {
                for slice in slices {
                    *single.entry(slice.cpu).or_default() += job(task);
                }
            }
            by_processor(single)
        }
        Some(Assignment::Slots(slots)) => {
            let mut single = by_server(intent, slots, job);
            for timetable in &slots.timetables {
                if let Some(used) = single.get_mut(&timetable.cpu) {
                    *used += timetable.turns.len() as f64 * takes.of_changes(slots.slot);
                }
            }
            by_processor(single)
        }
        // Reserved quanta have room for it.
        Some(Assignment::Quanta(_)) => return vec![together(intent, 0.0)],
        _ => by_task(intent, assignment, job),
    };
    for share in &mut shares {
        share.used += takes.always * share.cpus as f64;
    }
    shares
}

fn together(intent: &Intent<'_>, used: f64) -> Share {
    Share {
        place: String::new(),
        cpus: intent.cpus.len(),
        used,
    }
}

fn by_processor(single: BTreeMap<CpuId, f64>) -> Vec<Share> {
    let share = |(cpu, used)| Share {
        place: format!(" ({cpu})"),
        cpus: 1,
        used,
    };
    single.into_iter().map(share).collect()
}

/// What tasks take that an assignment does not divide by time: `of` says how much each takes.
fn by_task(
    intent: &Intent<'_>,
    assignment: Option<&Assignment>,
    of: impl Fn(TaskId) -> f64,
) -> Vec<Share> {
    match assignment {
        Some(Assignment::Clustered(clustered)) => {
            let used = |index: usize| clustered.tasks_of(index).map(&of).sum();
            let clusters = clustered.clusters.iter().enumerate();
            clusters
                .map(|(index, cpus)| Share {
                    place: format!(" ({cpus})"),
                    cpus: cpus.len(),
                    used: used(index),
                })
                .collect()
        }
        Some(Assignment::Turns(turns)) => {
            let mut single = BTreeMap::new();
            for (task, turn) in intent.set.ids().zip(&turns.tasks) {
                let first = of(task) * turn.part as f64 / turn.whole as f64;
                *single.entry(turn.first).or_default() += first;
                *single.entry(turn.second).or_default() += of(task) - first;
            }
            by_processor(single)
        }
        Some(Assignment::Slots(slots)) => by_processor(by_server(intent, slots, of)),
        Some(Assignment::Slices(_) | Assignment::Quanta(_)) | None => {
            vec![together(intent, intent.set.ids().map(of).sum())]
        }
    }
}

/// Servers take what their tasks do, divided by the lengths of their turns.
fn by_server(
    intent: &Intent<'_>,
    slots: &Slots,
    of: impl Fn(TaskId) -> f64,
) -> BTreeMap<CpuId, f64> {
    let servers = slots.server_of.iter().max().map_or(0, |s| *s as usize + 1);
    let (mut load, mut served) = (vec![0.0; servers], vec![0.0; servers]);
    for (task, server) in intent.set.ids().zip(&slots.server_of) {
        load[*server as usize] += of(task);
    }
    let turns = || {
        let length = |s: &Serve| s.end.saturating_sub(s.start).nanos() as f64;
        let tables = slots.timetables.iter();
        let all = tables.flat_map(move |t| {
            let turns = t.turns.iter();
            turns.map(move |s| (t.cpu, s.server as usize, length(s)))
        });
        all.filter(move |(_, server, _)| *server < servers)
    };
    for (_, server, length) in turns() {
        served[server] += length;
    }
    let mut single = BTreeMap::new();
    for (cpu, server, length) in turns() {
        *single.entry(cpu).or_default() += load[server] * length / served[server];
    }
    single
}
