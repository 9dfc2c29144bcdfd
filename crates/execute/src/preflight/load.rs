//! What the tasks ask for: processor time below what the kernel leaves, and intervals that can be
//! policed.

use super::shares::{self, Share};
use super::{Finding, Intent, Lost, Takes, kernel};
use crate::domain::POLICED;
pub use crate::threads::slack::MOST_PERCENT;
use model::{Assignment, Duration, Enforcement, TaskId, TaskSet, Workload};
use trace::Stage;

/// What dispatchers take of each processor, in percent, where nothing says what they take here.
const FOR_DISPATCHERS: f64 = 1.0;

/// What the tasks need of the processors that they may run on, where least is left: under each
/// policy.
pub(super) fn utilization(intent: &Intent<'_>) -> Vec<Finding> {
    let left = kernel::left_percent(intent);
    let stages = intent.stages.iter().enumerate();
    stages
        .map(|(place, stage)| fullest(intent, stage, intent.takes.get(place), left))
        .collect()
}

/// Where the tasks leave least of what a processor has for them under a policy. `left`: what
/// real-time threads can have of each processor, in percent; `takes`: what the engine takes of
/// that, where it is known.
fn fullest(intent: &Intent<'_>, stage: &Stage, takes: Option<&Takes>, left: f64) -> Finding {
    let name = "utilization";
    let places = shares::of_jobs(intent, stage.assignment.as_ref());
    let engine = takes.map(|takes| shares::of_engine(intent, stage, takes));
    let each = places.iter().enumerate().map(|(place, jobs)| {
        let percent = |share: &Share| 100.0 * share.used / share.cpus.max(1) as f64;
        // Without a profile a percent is for dispatchers.
        let taken = engine.as_ref().map(|all| percent(&all[place]));
        let most = MOST_PERCENT.min(left - taken.unwrap_or(FOR_DISPATCHERS));
        (jobs, percent(jobs), taken, most)
    });
    let fullest = each.max_by(|a, b| (a.1 - a.3).total_cmp(&(b.1 - b.3)));
    let Some((jobs, percent, taken, most)) = fullest else {
        return Finding::refuse(name, "no processor to run on", "choose some with `--cpus`");
    };
    let seen = format!(
        "jobs take {percent:.1} % of {} processor{}{}{}{}",
        jobs.cpus,
        if jobs.cpus == 1 { "" } else { "s" },
        jobs.place,
        intent.under(stage),
        // In reserved quanta its part is within the jobs'.
        taken
            .filter(|taken| *taken > 0.0)
            .map_or(String::new(), |taken| format!(", the engine {taken:.1} %"))
    );
    if percent <= most {
        return Finding::fine(name, seen);
    }
    let digits = usize::from(taken.is_some());
    let had = most.max(0.0);
    Finding::refuse(
        name,
        format!(
            "{seen}; {had:.digits$} % can be had, the rest is for ordinary programs and dispatchers"
        ),
        format!("stay below {had:.digits$} %: give fewer tasks, or `--execution` a smaller part"),
    )
}

/// What the tasks need of the processors that they may run on, where the kernel's scheduler leaves
/// them all time that ordinary programs leave: more than there is makes jobs tardy, and no more.
pub(super) fn beyond(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "utilization";
    let of_stage = |stage: &Stage| {
        let percent = |share: &Share| 100.0 * share.used / share.cpus.max(1) as f64;
        let places = shares::of_jobs(intent, stage.assignment.as_ref());
        let fullest = places
            .into_iter()
            .max_by(|a, b| percent(a).total_cmp(&percent(b)))?;
        let had = percent(&fullest);
        let seen = format!(
            "jobs take {had:.1} % of {} processor{}{}",
            fullest.cpus,
            if fullest.cpus == 1 { "" } else { "s" },
            fullest.place
        );
        Some(match had <= 100.0 {
            true => Finding::fine(name, seen),
            false => Finding::warn(
                name,
                format!(
                    "{seen}: deadlines are missed, and a task that waits for 30 s ends the run"
                ),
                "give fewer tasks, or `--execution` a smaller part",
            ),
        })
    };
    intent.stages.iter().filter_map(of_stage).collect()
}

/// Is the WCET of a task the budget of a program that knows nothing of jobs?
pub(super) fn is_budget(set: &TaskSet, task: TaskId) -> bool {
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

    /// Is it long enough to be policed, where a change of jobs costs as much as is `lost`, if that
    /// is known? `under`: which policy it is of.
    ///
    /// More than half of it has to be left: of what usually is not, nothing can be expected. Where
    /// only the dearest changes take more, as on a machine that another one takes its processors
    /// from now and then, the run is late at times.
    fn finding(
        self,
        name: &'static str,
        under: &str,
        lost: Option<Lost>,
        remedy: &str,
    ) -> Option<Finding> {
        let (time, what) = self.0?;
        let twice = |cost: Duration| cost.saturating_add(cost);
        let usually = lost.map_or(POLICED, |lost| POLICED.max(twice(lost.usual)));
        let most = lost.map_or(Duration::ZERO, |lost| twice(lost.most));
        Some(if time < usually {
            Finding::refuse(
                name,
                format!(
                    "{what} lasts {time}{under}; less than {} cannot be policed from user space",
                    usually.rounded()
                ),
                remedy,
            )
        } else if time < most {
            Finding::warn(
                name,
                format!(
                    "{what} lasts {time}{under}; the dearest changes of jobs take more than half of \
                     it here: jobs may be late"
                ),
                format!("{remedy}; less than {} is at risk", most.rounded()),
            )
        } else {
            Finding::fine(name, format!("{what}, {time}{under}"))
        })
    }
}

/// Slots, slices, quanta and budgets that are too short to be policed.
pub(super) fn shortest(intent: &Intent<'_>) -> Vec<Finding> {
    let remedy = "give longer ones, or another assignment";
    let of_stage = |stage: &Stage| {
        let shortest = intervals(intent, stage);
        let under = intent.under(stage);
        shortest.finding("shortest interval", &under, intent.boundary, remedy)
    };
    let mut found: Vec<Finding> = intent.stages.iter().filter_map(of_stage).collect();
    let remedy = "give longer WCETs or quanta, or leave `--enforcement` out";
    found.extend(budgets(intent).finding("budgets", "", intent.boundary, remedy));
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
