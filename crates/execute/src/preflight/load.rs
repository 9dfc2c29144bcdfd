//! What the tasks ask for: processor time below what the kernel leaves, and intervals that can be
//! policed.

use super::{Finding, Intent, kernel};
use crate::domain::POLICED;
pub use crate::threads::slack::MOST_PERCENT;
use model::{Assignment, CpuId, Duration, Enforcement, Ratio, TaskId, TaskSet, Workload};
use std::collections::BTreeMap;
use trace::Stage;

/// What the tasks need of the processors that they may run on, where they need most: under each
/// policy.
pub(super) fn utilization(intent: &Intent<'_>) -> Vec<Finding> {
    let most = MOST_PERCENT.min(kernel::left_percent(intent) - 1.0);
    intent
        .stages
        .iter()
        .map(|stage| fullest(intent, stage, most))
        .collect()
}

/// Where the tasks need most of a processor under a policy; `most`: what can be had, in percent.
fn fullest(intent: &Intent<'_>, stage: &Stage, most: f64) -> Finding {
    let name = "utilization";
    let fullest = shares(intent, stage.assignment.as_ref())
        .into_iter()
        .map(|(where_, cpus, used)| (where_, cpus, 100.0 * used / cpus.max(1) as f64))
        .max_by(|a, b| a.2.total_cmp(&b.2));
    let Some((where_, cpus, percent)) = fullest else {
        return Finding::refuse(name, "no processor to run on", "choose some with `--cpus`");
    };
    let seen = format!(
        "jobs take {percent:.1} % of {cpus} processor{}{where_}{}",
        if cpus == 1 { "" } else { "s" },
        intent.under(stage)
    );
    if percent > most {
        Finding::refuse(
            name,
            format!(
                "{seen}; {most:.0} % can be had, the rest is for ordinary programs and dispatchers"
            ),
            format!("stay below {most:.0} %: give fewer tasks, or `--execution` a smaller part"),
        )
    } else {
        Finding::fine(name, seen)
    }
}

/// Processors that are filled together: where, if that is not all of them; how many; the
/// utilization of the tasks there.
fn shares(intent: &Intent<'_>, assignment: Option<&Assignment>) -> Vec<(String, usize, f64)> {
    let part = |task: TaskId| match is_budget(intent.set, task) {
        // A program has all of its budget.
        true => Ratio::ONE.to_f64(),
        false => intent.part.to_f64(),
    };
    let utilization =
        |task: TaskId| intent.set.timings()[task.index()].utilization().to_f64() * part(task);
    let mut single: BTreeMap<CpuId, f64> = BTreeMap::new();
    match assignment {
        None => {
            let all = intent.set.ids().map(utilization).sum();
            return vec![(String::new(), intent.cpus.len(), all)];
        }
        Some(Assignment::Clustered(clustered)) => {
            let of = |index: usize| clustered.tasks_of(index).map(utilization).sum();
            let clusters = clustered.clusters.iter().enumerate();
            return clusters
                .map(|(index, cpus)| (format!(" ({cpus})"), cpus.len(), of(index)))
                .collect();
        }
        Some(Assignment::Quanta(quanta)) => {
            // What is reserved is the processors' where jobs change.
            let reserved = |(task, time): (TaskId, &model::Duration)| {
                let period = intent.set.timings()[task.index()].period;
                time.nanos() as f64 / period.nanos() as f64 * part(task)
            };
            let all = intent.set.ids().zip(&quanta.reserved).map(reserved).sum();
            return vec![(String::new(), intent.cpus.len(), all)];
        }
        Some(Assignment::Turns(turns)) => {
            for (task, turn) in intent.set.ids().zip(&turns.tasks) {
                let first = utilization(task) * turn.part as f64 / turn.whole as f64;
                *single.entry(turn.first).or_default() += first;
                *single.entry(turn.second).or_default() += utilization(task) - first;
            }
        }
        Some(Assignment::Slices(slices)) => {
            for (task, slices) in intent.set.ids().zip(&slices.tasks) {
                let period = intent.set.timings()[task.index()].period;
                for slice in slices {
                    *single.entry(slice.cpu).or_default() +=
                        slice.budget.nanos() as f64 / period.nanos() as f64 * part(task);
                }
            }
        }
        Some(Assignment::Slots(slots)) => {
            let servers = slots.server_of.iter().max().map_or(0, |s| *s as usize + 1);
            let (mut load, mut served) = (vec![0.0; servers], vec![0.0; servers]);
            for (task, server) in intent.set.ids().zip(&slots.server_of) {
                load[*server as usize] += utilization(task);
            }
            let turns = || {
                slots.timetables.iter().flat_map(|t| {
                    let length =
                        |s: &model::assignment::Serve| s.end.saturating_sub(s.start).nanos() as f64;
                    t.turns
                        .iter()
                        .map(move |s| (t.cpu, s.server as usize, length(s)))
                })
            };
            for (_, server, length) in turns().filter(|(_, server, _)| *server < servers) {
                served[server] += length;
            }
            for (cpu, server, length) in turns().filter(|(_, server, _)| *server < servers) {
                *single.entry(cpu).or_default() += load[server] * length / served[server];
            }
        }
    }
    single
        .into_iter()
        .map(|(cpu, used)| (format!(" ({cpu})"), 1, used))
        .collect()
}

/// Is the WCET of a task the budget of a program that knows nothing of jobs?
fn is_budget(set: &TaskSet, task: TaskId) -> bool {
    let workload = set.details(task).and_then(|d| d.workload.as_ref());
    matches!(workload, Some(Workload::Exec { .. }))
}

/// The shortest of some times, with what it is.
#[derive(Default)]
struct Shortest(Option<(Duration, String)>);

impl Shortest {
    fn consider(&mut self, time: Duration, what: impl FnOnce() -> String) {
        if self.0.as_ref().is_none_or(|(shortest, _)| time < *shortest) {
            self.0 = Some((time, what()));
        }
    }

    /// Is it long enough to be policed? `under`: which policy it is of.
    fn finding(
        self,
        name: &'static str,
        under: &str,
        policed: Duration,
        remedy: &str,
    ) -> Option<Finding> {
        let (time, what) = self.0?;
        Some(match time < policed {
            true => Finding::refuse(
                name,
                format!(
                    "{what} lasts {time}{under}; less than {} cannot be policed from user space",
                    policed.rounded()
                ),
                remedy,
            ),
            false => Finding::fine(name, format!("{what}, {time}{under}")),
        })
    }
}

/// Slots, slices, quanta and budgets that are too short to be policed.
pub(super) fn shortest(intent: &Intent<'_>) -> Vec<Finding> {
    // More than half of it has to be left.
    let lost = intent.boundary.map_or(0, |b| b.p99.nanos());
    let policed = POLICED.max(Duration::from_nanos(2 * lost));
    let remedy = "give longer ones, or another assignment";
    let of_stage = |stage: &Stage| {
        let shortest = intervals(intent, stage);
        shortest.finding("shortest interval", &intent.under(stage), policed, remedy)
    };
    let mut found: Vec<Finding> = intent.stages.iter().filter_map(of_stage).collect();
    let remedy = "give longer WCETs or quanta, or leave `--enforcement` out";
    found.extend(budgets(intent).finding("budgets", "", policed, remedy));
    found
}

/// What a policy ends at a moment that is given.
fn intervals(intent: &Intent<'_>, stage: &Stage) -> Shortest {
    let mut shortest = Shortest::default();
    match &stage.assignment {
        Some(Assignment::Slices(slices)) => {
            for (task, slices) in slices.tasks.iter().enumerate().filter(|(_, s)| s.len() > 1) {
                for slice in slices {
                    shortest.consider(slice.budget, || {
                        format!("a slice of {}", intent.set.name(TaskId(task as u32)))
                    });
                }
            }
        }
        Some(Assignment::Slots(slots)) => {
            for turn in slots.timetables.iter().flat_map(|t| &t.turns) {
                let length = turn.end.saturating_sub(turn.start);
                shortest.consider(length, || format!("a turn of server N{}", turn.server + 1));
            }
        }
        _ => {}
    }
    if let Some(quantum) = stage.quantum {
        shortest.consider(quantum, || "a quantum".to_owned());
    }
    shortest
}

/// What is enforced under every policy.
fn budgets(intent: &Intent<'_>) -> Shortest {
    let mut shortest = Shortest::default();
    for task in intent.set.ids() {
        if intent.enforcement != Enforcement::Off || is_budget(intent.set, task) {
            let wcet = intent.set.timings()[task.index()].wcet;
            shortest.consider(wcet, || format!("the budget of {}", intent.set.name(task)));
        }
    }
    if intent.enforcement == Enforcement::PerQuantum {
        shortest.consider(intent.quantum, || "the quantum of enforcement".to_owned());
    }
    shortest
}
