//! What runs of sets showed beside what was said of them, and sums over many sets.

use super::FIGURE;
use super::observe::Observed;
use super::plan::{Candidate, Cell, Wanted};
use crate::run::Ran;
use crate::simulate;
use analyze::Guarantee;
use model::{Duration, Provenance, Result, Statistic};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A task of a set that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskSeen {
    /// Its WCET.
    pub wcet_ns: u64,
    /// Its period, and its deadline.
    pub period_ns: u64,
    /// By when a job is done after its release, as analysis says; none for a set that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<u64>,
    /// The longest in the simulator, with the same releases and costs.
    pub simulated_ns: u64,
    /// The longest that was seen.
    pub observed_ns: u64,
    /// The longest execution of a job, by the clock of its thread.
    pub executed_ns: u64,
    /// Jobs that were done.
    pub jobs: u64,
    /// Deadlines missed.
    pub misses: u64,
    /// Deadlines missed in the simulator.
    pub simulated_misses: u64,
}

/// A job that took longer than its bound.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Beyond {
    /// The place of its task.
    pub task: usize,
    /// Its number.
    pub job: u64,
    /// When it was released, after the beginning of the run.
    pub released_ns: u64,
    /// How long it took.
    pub response_ns: u64,
    /// How long it should have taken at most.
    pub bound_ns: u64,
    /// How long it executed, by the clock of its thread.
    pub executed_ns: u64,
    /// For how long the machine stood still while it or those before it were waiting.
    pub stood_still_ns: u64,
}

impl Beyond {
    /// Is it later only by what the run recorded as a standstill?
    pub fn is_excused(&self) -> bool {
        self.response_ns - self.bound_ns.min(self.response_ns) <= self.stood_still_ns
    }
}

/// What came of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CellSeen {
    /// Its place in the plan.
    pub number: u32,
    /// The policy.
    pub policy: String,
    /// What was asked of it: `hard` or `soft`.
    pub guarantee: Asked,
    /// What the verdict is.
    pub verdict: Wanted,
    /// Why no set of it was run, if it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// The WCETs in parts of the largest that pass.
    pub part: f64,
    /// Total utilization.
    pub utilization: f64,
    /// Task by task.
    pub tasks: Vec<TaskSeen>,
    /// Jobs that took longer than their bounds, those that are excused too.
    pub beyond: Vec<Beyond>,
    /// How often the machine stood still, and for how long.
    pub standstills: u64,
    /// All of it together.
    pub stood_still_ns: u64,
    /// Did the trace keep all rules of the policy?
    pub clean: bool,
}

/// Hard or soft, as documents say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// No deadline may be missed.
    Hard,
    /// Tardiness must be bounded.
    Soft,
}

impl From<Guarantee> for Asked {
    fn from(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::Hard => Asked::Hard,
            Guarantee::Soft => Asked::Soft,
        }
    }
}

/// Sums over sets of one verdict.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Sums {
    /// Sets that were run.
    pub sets: u64,
    /// Sets that could not be.
    pub not_run: u64,
    /// Jobs that were done.
    pub jobs: u64,
    /// Sets with a job that missed its deadline.
    pub sets_with_misses: u64,
    /// Deadlines missed.
    pub misses: u64,
    /// Sets with a job beyond its bound that nothing excuses.
    pub sets_beyond: u64,
    /// Such jobs.
    pub jobs_beyond: u64,
    /// Jobs beyond their bounds by no more than what stood still.
    pub jobs_excused: u64,
    /// The largest excess that nothing excuses.
    pub largest_excess_ns: u64,
    /// Tasks whose longest response was longer than in the simulator.
    pub tasks_beyond_simulated: u64,
    /// All tasks of these sets.
    pub tasks: u64,
}

/// What was found. JSON: as `warmset validate --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Validated {
    /// Over sets that analysis accepted without a missed deadline: charged are the largest costs.
    pub accepted_hard: Sums,
    /// Over sets of which it says that tardiness is bounded: charged are average costs (002 §6.3),
    /// so that a job of many may take a little longer than its bound.
    pub accepted_soft: Sums,
    /// Over sets that it refused.
    pub refused: Sums,
    /// What hard sets were charged of each cost.
    pub statistic: Statistic,
    /// How long each set ran.
    #[serde(rename = "length_ns", serialize_with = "model::time::ns::serialize")]
    pub length: Duration,
    /// Set by set.
    pub cells: Vec<CellSeen>,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// If the user stopped it: how many sets of how many are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<(u32, u32)>,
    /// The document.
    pub results_path: PathBuf,
    /// The picture, where there is anything to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<PathBuf>,
}

impl Validated {
    /// Was no bound of an accepted set exceeded?
    pub fn holds(&self) -> bool {
        self.accepted_hard.sets_beyond == 0 && self.accepted_soft.sets_beyond == 0
    }
}

pub(super) fn empty(cell: &Cell) -> CellSeen {
    CellSeen {
        number: cell.number,
        policy: cell.policy.to_string(),
        guarantee: cell.guarantee.into(),
        verdict: cell.wanted,
        not_run: None,
        part: 0.0,
        utilization: 0.0,
        tasks: Vec::new(),
        beyond: Vec::new(),
        standstills: 0,
        stood_still_ns: 0,
        clean: true,
    }
}

/// Task by task: bound, simulator and reality.
pub(super) fn compare(
    cell: &Cell,
    candidate: &Candidate,
    simulated: &simulate::Simulated,
    observed: &Observed,
    ran: &Ran,
) -> CellSeen {
    let set = &candidate.set;
    let bounds: Vec<Option<Duration>> = set
        .ids()
        .map(|id| {
            let bounds = candidate.verdict.tasks.iter();
            let of = bounds.clone().find(|bound| bound.task == id);
            let is_accepted = cell.wanted == Wanted::Accepted;
            // Where no response time is known all that is said is that no deadline is missed.
            let deadline = set.timings()[id.index()].deadline;
            is_accepted.then(|| of.map_or(deadline, |bound| bound.response))
        })
        .collect();
    let mut tasks: Vec<TaskSeen> = set
        .timings()
        .iter()
        .zip(&bounds)
        .zip(&simulated.added_up.tasks)
        .zip(&observed.missed)
        .map(|(((timing, bound), simulated), misses)| TaskSeen {
            wcet_ns: timing.wcet.nanos(),
            period_ns: timing.period.nanos(),
            bound_ns: bound.map(Duration::nanos),
            simulated_ns: simulated.response.max_ns,
            observed_ns: 0,
            executed_ns: 0,
            jobs: 0,
            misses: *misses,
            simulated_misses: simulated.misses,
        })
        .collect();
    let mut beyond = Vec::new();
    for job in &observed.jobs {
        let Some(task) = tasks.get_mut(job.task) else {
            continue;
        };
        let response = job.response();
        task.jobs += 1;
        task.observed_ns = task.observed_ns.max(response.nanos());
        task.executed_ns = task.executed_ns.max(job.executed.nanos());
        if let Some(bound) = bounds[job.task].filter(|bound| response > *bound) {
            beyond.push(Beyond {
                task: job.task,
                job: job.number,
                released_ns: job.released.nanos(),
                response_ns: response.nanos(),
                bound_ns: bound.nanos(),
                executed_ns: job.executed.nanos(),
                stood_still_ns: observed.stood_still_before(job).nanos(),
            });
        }
    }
    CellSeen {
        part: candidate.part,
        utilization: set.utilization_f64(),
        tasks,
        beyond,
        standstills: observed.standstills.len() as u64,
        stood_still_ns: observed.standstills.iter().map(|s| s.length.nanos()).sum(),
        clean: ran.clean,
        ..empty(cell)
    }
}

/// Over the cells of a verdict, and of a guarantee where one is given.
pub(super) fn sums(cells: &[CellSeen], verdict: Wanted, asked: Option<Asked>) -> Sums {
    let mut sums = Sums::default();
    let is_of = |cell: &&CellSeen| {
        cell.verdict == verdict && asked.is_none_or(|asked| cell.guarantee == asked)
    };
    for cell in cells.iter().filter(is_of) {
        if cell.not_run.is_some() {
            sums.not_run += 1;
            continue;
        }
        let misses: u64 = cell.tasks.iter().map(|task| task.misses).sum();
        let beyond = || cell.beyond.iter().filter(|beyond| !beyond.is_excused());
        let excess = beyond()
            .map(|b| b.response_ns - b.bound_ns - b.stood_still_ns)
            .max();
        sums.sets += 1;
        sums.jobs += cell.tasks.iter().map(|task| task.jobs).sum::<u64>();
        sums.misses += misses;
        sums.sets_with_misses += u64::from(misses > 0);
        sums.sets_beyond += u64::from(beyond().next().is_some());
        sums.jobs_beyond += beyond().count() as u64;
        sums.jobs_excused += cell.beyond.iter().filter(|b| b.is_excused()).count() as u64;
        sums.largest_excess_ns = sums.largest_excess_ns.max(excess.unwrap_or(0));
        let longer = cell
            .tasks
            .iter()
            .filter(|task| task.observed_ns > task.simulated_ns);
        sums.tasks_beyond_simulated += longer.count() as u64;
        sums.tasks += cell.tasks.len() as u64;
    }
    sums
}

/// Predicted against observed: bounds on the left, the simulator on the right.
pub(super) fn figure(validated: &Validated) -> Result<Option<report::Figure>> {
    let accepted = validated
        .cells
        .iter()
        .filter(|c| c.verdict == Wanted::Accepted);
    let mut groups: Vec<report::agreement::Group> = Vec::new();
    for cell in accepted {
        let place = groups.iter().position(|group| group.name == cell.policy);
        let place = place.unwrap_or_else(|| {
            groups.push(report::agreement::Group {
                name: cell.policy.clone(),
                bounds: Vec::new(),
                simulated: Vec::new(),
            });
            groups.len() - 1
        });
        for task in cell.tasks.iter().filter(|task| task.jobs > 0) {
            let observed = task.observed_ns as f64;
            if let Some(bound) = task.bound_ns {
                groups[place].bounds.push((bound as f64, observed));
            }
            groups[place]
                .simulated
                .push((task.simulated_ns as f64, observed));
        }
    }
    let (hard, soft) = (&validated.accepted_hard, &validated.accepted_soft);
    let caption = format!(
        "Each mark is a task of one of {} accepted sets, its longest response time in {} for real. \
         Above the line reality was worse than predicted. {} of {} jobs took longer than their \
         bound, {} more by no longer than the machine stood still.",
        hard.sets + soft.sets,
        validated.length,
        hard.jobs_beyond + soft.jobs_beyond,
        hard.jobs + soft.jobs,
        hard.jobs_excused + soft.jobs_excused
    );
    report::agreement::figure(FIGURE, &caption, &groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(response_ns: u64, stood_still_ns: u64) -> Beyond {
        Beyond {
            task: 0,
            job: 0,
            released_ns: 0,
            response_ns,
            bound_ns: 100,
            executed_ns: 10,
            stood_still_ns,
        }
    }
    fn cell(verdict: Wanted, beyond: Vec<Beyond>, misses: u64) -> CellSeen {
        CellSeen {
            number: 0,
            policy: "p-edf".to_owned(),
            guarantee: Asked::Hard,
            verdict,
            not_run: None,
            part: 0.98,
            utilization: 1.0,
            tasks: vec![TaskSeen {
                wcet_ns: 10,
                period_ns: 100,
                bound_ns: Some(100),
                simulated_ns: 90,
                observed_ns: 95,
                executed_ns: 10,
                jobs: 50,
                misses,
                simulated_misses: 0,
            }],
            beyond,
            standstills: 0,
            stood_still_ns: 0,
            clean: true,
        }
    }

    #[test]
    fn only_as_much_is_excused_as_stood_still() {
        assert!(beyond(130, 30).is_excused());
        assert!(!beyond(131, 30).is_excused());
    }

    #[test]
    fn sums_tell_accepted_from_refused_sets() {
        let cells = [
            cell(Wanted::Accepted, vec![beyond(130, 30)], 1),
            cell(Wanted::Accepted, vec![beyond(150, 30), beyond(110, 0)], 0),
            cell(Wanted::Refused, Vec::new(), 3),
            CellSeen {
                not_run: Some("it asks for too much".to_owned()),
                ..cell(Wanted::Refused, Vec::new(), 9)
            },
        ];
        let accepted = sums(&cells, Wanted::Accepted, Some(Asked::Hard));
        assert_eq!(sums(&cells, Wanted::Accepted, Some(Asked::Soft)).sets, 0);
        assert_eq!((accepted.sets, accepted.sets_beyond), (2, 1));
        assert_eq!((accepted.jobs_beyond, accepted.jobs_excused), (2, 1));
        assert_eq!(accepted.largest_excess_ns, 20);
        assert_eq!((accepted.misses, accepted.sets_with_misses), (1, 1));
        assert_eq!(accepted.tasks_beyond_simulated, 2);
        let refused = sums(&cells, Wanted::Refused, None);
        assert_eq!((refused.sets, refused.not_run, refused.misses), (1, 1, 3));
    }

    #[test]
    fn what_was_kept_is_read_again() {
        let cell = cell(Wanted::Accepted, vec![beyond(130, 30)], 0);
        let line = serde_json::to_string(&cell).unwrap();
        assert_eq!(serde_json::from_str::<CellSeen>(&line).unwrap(), cell);
    }
}
