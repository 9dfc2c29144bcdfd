//! What runs of sets showed beside what was said of them, and sums over many sets.

use super::Options;
use super::kernel::Kernel;
use super::plan::{Cell, Wanted};
use crate::run::Until;
use analyze::Guarantee;
use measure::kernel::window::Window;
use model::{Duration, Profile, Provenance, Statistic};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A task of a set that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskSeen {
    /// Its name.
    #[serde(default)]
    pub task: String,
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
    pub index: usize,
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
    /// It was not done when the run ended: it took at least so long, and how long it executed is
    /// not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// What the kernel recorded on its processors from its release until it was done, where it
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Window>,
    /// For how much longer it had a processor than the clock of its thread and interrupts say: what
    /// the hypervisor took of it, at least, but for the ways into the kernel and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaccounted_ns: Option<u64>,
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
    /// What the kernel says of the run.
    #[serde(default)]
    pub kernel: Kernel,
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

/// Where sets and assignments come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Random sets, assigned as `check` assigns them.
    #[default]
    Drawn,
    /// Random sets, each under a plan that `advise` found for it.
    Advised,
    /// One set, under a plan in a file.
    Given,
}

/// Sums over sets of one verdict.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
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

impl Sums {
    fn is_empty(&self) -> bool {
        self.sets + self.not_run == 0
    }
}

/// What was found. JSON: as `warmset validate --format json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validated {
    /// Over sets that analysis accepted without a missed deadline: charged are the largest costs.
    pub accepted_hard: Sums,
    /// Over sets of which it says that tardiness is bounded: charged are average costs (002 §6.3),
    /// so that a job of many may take a little longer than its bound.
    pub accepted_soft: Sums,
    /// Over sets that it refused.
    pub refused: Sums,
    /// Which sets these are.
    #[serde(default)]
    pub source: Source,
    /// What hard sets were charged of each cost.
    pub statistic: Statistic,
    /// How long each set ran.
    #[serde(rename = "length_ns", with = "model::time::ns")]
    pub length: Duration,
    /// What no verdict has in it, and can have made jobs late.
    #[serde(default)]
    pub not_modeled: Vec<String>,
    /// Set by set.
    pub cells: Vec<CellSeen>,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// If the user stopped it: how many sets of how many are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<(u32, u32)>,
    /// The document.
    pub results_path: PathBuf,
    /// The picture, where there is anything to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<PathBuf>,
}

impl Validated {
    /// Was no bound of an accepted set exceeded?
    pub fn holds(&self) -> bool {
        self.accepted_hard.sets_beyond == 0 && self.accepted_soft.sets_beyond == 0
    }

    /// What came of it, in sentences: of sets that were accepted, hard and soft, of what the
    /// simulator said, and of sets that were refused.
    pub fn sentences(&self) -> Vec<String> {
        let (hard, soft) = (&self.accepted_hard, &self.accepted_soft);
        let refused = &self.refused;
        let mut all = Vec::new();
        if self.source == Source::Drawn || !hard.is_empty() {
            all.push(accepted(hard, "hard", self.statistic.name(), self.length));
        }
        if self.source == Source::Drawn || !soft.is_empty() {
            all.push(accepted(soft, "soft", "average", self.length));
        }
        all.push(format!(
            "The simulator: {} of {} tasks took longer than it said.",
            hard.tasks_beyond_simulated + soft.tasks_beyond_simulated,
            hard.tasks + soft.tasks
        ));
        if self.source == Source::Drawn {
            all.push(format!(
                "Refused: {} of {} sets that ran missed a deadline; {} ask for more than can be run.",
                refused.sets_with_misses, refused.sets, refused.not_run
            ));
        }
        all
    }

    /// The figure by which verdicts stand or fall, in a sentence.
    pub fn headline(&self) -> String {
        let (hard, soft) = (&self.accepted_hard, &self.accepted_soft);
        let share = |beyond: u64, all: u64| format!("{beyond} of {all}");
        let done = match self.interrupted {
            Some((done, all)) => format!(" Stopped after {done} of {all} sets."),
            None => String::new(),
        };
        format!(
            "a bound was exceeded in {} accepted hard sets ({} jobs) and in {} soft ones ({} jobs), \
             each run for {}, standstills of the machine aside.{done}",
            share(hard.sets_beyond, hard.sets),
            share(hard.jobs_beyond, hard.jobs),
            share(soft.sets_beyond, soft.sets),
            share(soft.jobs_beyond, soft.jobs),
            self.length
        )
    }
}

/// What came of the sets that analysis accepted.
fn accepted(sums: &Sums, asked: &str, charged: &str, length: Duration) -> String {
    let excess = match sums.largest_excess_ns {
        0 => String::new(),
        ns => format!(", by {} at most", Duration::from_nanos(ns).rounded()),
    };
    let excused = match sums.jobs_excused {
        0 => String::new(),
        n => format!("; {n} more were later by no longer than the machine stood still"),
    };
    format!(
        "Accepted, {asked} (with {charged} costs): {} of {} sets exceeded a bound within {length}, in {} \
         of {} jobs{excess}{excused}; {} sets could not be run.",
        sums.sets_beyond, sums.sets, sums.jobs_beyond, sums.jobs, sums.not_run
    )
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
        kernel: Kernel::default(),
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

/// What can make jobs late and is in no verdict.
pub(super) fn not_modeled(options: &Options, profile: &Profile, cells: &[CellSeen]) -> Vec<String> {
    let mut all = vec![
        "interrupts of devices, softirqs, and threads of the system that are above all jobs"
            .to_owned(),
        "standstills that begin and end between two looks of the watch, and what the hypervisor \
         takes in shorter pieces"
            .to_owned(),
    ];
    if profile.watch_period.is_none() {
        all.push(
            "the engine's watch for standstills, of which the profile has nothing (measured by an \
             earlier version, or without tracefs)"
                .to_owned(),
        );
    }
    if options.until == Until::Work {
        all.push(
            "what jobs on other processors take of shared caches and memory: with `--jobs-end \
             work` a job may execute for longer than its WCET"
                .to_owned(),
        );
    }
    let missing = cells.iter().find_map(|cell| cell.kernel.missing.as_ref());
    if let Some(why) = missing {
        all.push(format!(
            "what the kernel did while jobs were late is not known: {why}"
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(response_ns: u64, stood_still_ns: u64) -> Beyond {
        Beyond {
            index: 0,
            job: 0,
            released_ns: 0,
            response_ns,
            bound_ns: 100,
            executed_ns: 10,
            stood_still_ns,
            unfinished: false,
            kernel: None,
            unaccounted_ns: None,
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
                task: "camera".to_owned(),
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
            kernel: Kernel::default(),
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
    fn what_is_not_modeled_is_named() {
        let profile = Profile::builtin("xeon-l7455").unwrap();
        let named = |until, missing: Option<&str>| {
            let options = Options {
                until,
                ..Options::default()
            };
            let mut cell = cell(Wanted::Accepted, Vec::new(), 0);
            cell.kernel.missing = missing.map(str::to_owned);
            not_modeled(&options, &profile, &[cell]).join("; ")
        };
        let named_all = named(Until::Work, Some("no tracefs"));
        for part in ["devices", "hypervisor", "watch", "caches", "no tracefs"] {
            assert!(named_all.contains(part), "{part}: {named_all}");
        }
        let few = named(Until::Clock, None);
        assert!(
            !few.contains("caches") && !few.contains("not known"),
            "{few}"
        );
    }

    #[test]
    fn what_was_kept_is_read_again() {
        let cell = cell(Wanted::Accepted, vec![beyond(130, 30)], 0);
        let line = serde_json::to_string(&cell).unwrap();
        assert_eq!(serde_json::from_str::<CellSeen>(&line).unwrap(), cell);
    }
}
