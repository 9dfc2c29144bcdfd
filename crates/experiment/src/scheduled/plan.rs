//! Which sets run under which policies, with which working sets, and in which order (000 §4.1).
//!
//! As in the paper all tasks of a set have the same working set size and write ratio. Utilizations
//! are uniform and scaled so that a set asks for [`ASKED`] of the processors whatever its number of
//! tasks is; periods are moderate. Assumes that a set can be drawn by its seed and number alone.

use generate::{Amount, Deadlines, Recipe};
use machine::prefetchers::State as Prefetchers;
use measure::journal::Head;
use measure::plan::{Block, GRAIN};
use measure::ratio::WriteRatio;
use model::{Bytes, Details, Duration, Error, Load, Platform, Result, TaskSet, Timing};
use policy::Spec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The part of the processors that each set asks for.
pub const ASKED: f64 = 0.75;
/// What starting and ending a run takes besides its length, for the plan.
const AROUND: Duration = Duration::from_millis(600);
/// The largest number of tasks, whose threads and working sets the engine has to hold.
const MOST_TASKS: u32 = 500;

/// What is asked for; what is empty or `None` is chosen.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory of the results.
    pub out: PathBuf,
    /// At most three minutes.
    pub quick: bool,
    /// Which policies.
    pub policies: Vec<Spec>,
    /// How many tasks the sets have.
    pub tasks: Vec<u32>,
    /// How many sets of each kind.
    pub sets: Option<u32>,
    /// How long each of them runs.
    pub length: Option<Duration>,
    /// Working set sizes.
    pub wss: Vec<Bytes>,
    /// Write ratios.
    pub write_ratios: Vec<WriteRatio>,
    /// What else runs; empty: nothing, and polluters, in turn.
    pub loads: Vec<Load>,
    /// Are hardware prefetchers to be turned off meanwhile?
    pub prefetchers_off: bool,
    /// Seed of the sets.
    pub seed: u64,
    /// Go on with an interrupted measurement.
    pub resume: bool,
    /// The command line, for the provenance.
    pub command: String,
    /// More for the provenance, by name.
    pub about: BTreeMap<String, String>,
}

/// What is measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Directory of the results.
    #[serde(skip)]
    pub out: PathBuf,
    /// The command line.
    #[serde(skip)]
    pub command: String,
    /// More for the provenance.
    #[serde(skip)]
    pub about: BTreeMap<String, String>,
    /// Go on with an interrupted measurement.
    #[serde(skip)]
    pub resume: bool,
    /// The policies, as written.
    pub policies: Vec<String>,
    /// Numbers of tasks, ascending.
    pub tasks: Vec<u32>,
    /// How many sets of each kind.
    pub sets: u32,
    /// How long each of them runs.
    pub length: Duration,
    /// Working set sizes, ascending.
    pub wss: Vec<Bytes>,
    /// Write ratios.
    pub write_ratios: Vec<WriteRatio>,
    /// What else runs.
    pub loads: Vec<Load>,
    /// Whether hardware prefetchers are on meanwhile, as whoever turns them off says.
    #[serde(default)]
    pub prefetchers: Prefetchers,
    /// Seed of the sets.
    pub seed: u64,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// Its number, working set size, write ratio, and what else runs.
    pub block: Block,
    /// The place of its policy.
    pub policy: usize,
    /// How many tasks.
    pub tasks: u32,
    /// Which set of this size.
    pub set: u32,
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

impl Plan {
    /// The plan for a platform.
    ///
    /// # Errors
    /// A policy that is named twice or cannot be; a working set that is zero or no multiple of
    /// [`GRAIN`]; more tasks than can be run.
    pub fn of(options: &Options, platform: &Platform) -> Result<Plan> {
        let processors = platform.usable().len() as u32;
        let given = match options.policies.is_empty() {
            true => vec!["p-edf".parse()?, "g-edf".parse()?],
            false => options.policies.clone(),
        };
        let mut policies: Vec<String> = Vec::new();
        for spec in &given {
            let policy = spec.canonical()?.to_string();
            if policies.contains(&policy) {
                return Err(Error::new(format!("`{policy}` is named twice"))
                    .at("--policy")
                    .remedy("name each policy once"));
            }
            policies.push(policy);
        }
        let (kib, tasks, sets, length): (&[u64], &[u32], u32, u64) = match options.quick {
            true => (&[64, 256], &[3, 6, 12], 2, 2_000),
            false => (&[4, 16, 64, 256, 1024, 2048], &[3, 6, 12, 24], 5, 10_000),
        };
        let or = |given: &[u32], chosen: Vec<u32>| match given {
            [] => chosen,
            some => some.to_vec(),
        };
        let tasks = or(
            &options.tasks,
            tasks.iter().map(|n| n * processors).collect(),
        );
        if let Some(many) = tasks.iter().find(|n| **n == 0 || **n > MOST_TASKS) {
            return Err(Error::new(format!("sets of {many} tasks are not run"))
                .at("--tasks")
                .remedy(format!("give 1 to {MOST_TASKS}")));
        }
        let wss = match options.wss.is_empty() {
            true => kib.iter().copied().map(Bytes::from_kib).collect(),
            false => options.wss.clone(),
        };
        for size in &wss {
            if size.get() == 0 || !size.get().is_multiple_of(GRAIN.get()) {
                return Err(
                    Error::new(format!("a working set of {size} is not measured"))
                        .at("--wss")
                        .remedy(format!("give multiples of {GRAIN}")),
                );
            }
        }
        let mut write_ratios = options.write_ratios.clone();
        if write_ratios.is_empty() {
            let periods: &[u32] = if options.quick { &[4] } else { &[0, 4, 2] };
            write_ratios = periods
                .iter()
                .filter_map(|p| WriteRatio::one_in(*p))
                .collect();
        }
        write_ratios.dedup();
        let mut loads = sorted(options.loads.clone());
        if loads.is_empty() {
            loads = vec![Load::Idle, Load::Load];
        }
        Ok(Plan {
            out: options.out.clone(),
            command: options.command.clone(),
            about: options.about.clone(),
            resume: options.resume,
            policies,
            tasks: sorted(tasks),
            sets: options.sets.unwrap_or(sets),
            length: options.length.unwrap_or(Duration::from_millis(length)),
            wss: sorted(wss),
            write_ratios,
            loads,
            prefetchers: Prefetchers::Unknown,
            seed: options.seed,
        })
    }

    /// All runs. Loads and policies take turns with the same set, and all kinds before the next
    /// set, so that a machine that changes meanwhile changes for all alike.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for set in 0..self.sets {
            for tasks in &self.tasks {
                for wss in &self.wss {
                    for write_ratio in &self.write_ratios {
                        for load in &self.loads {
                            for policy in 0..self.policies.len() {
                                runs.push(Run {
                                    block: Block {
                                        number: runs.len() as u32,
                                        wss: *wss,
                                        write_ratio: *write_ratio,
                                        load: *load,
                                    },
                                    policy,
                                    tasks: *tasks,
                                    set,
                                });
                            }
                        }
                    }
                }
            }
        }
        runs
    }

    /// How long so many runs take, about.
    pub fn expected(&self, runs: usize) -> Duration {
        Duration::from_nanos((self.length.nanos() + AROUND.nanos()).saturating_mul(runs as u64))
    }

    /// The set of a run.
    ///
    /// # Errors
    /// No tasks.
    pub fn draw(&self, run: &Run, processors: u32) -> Result<TaskSet> {
        let recipe = Recipe {
            amount: Amount::Tasks {
                utilizations: "uniform-medium".parse()?,
                tasks: run.tasks,
            },
            periods: "moderate".parse()?,
            deadlines: Deadlines::Implicit,
        };
        // A set for each size and number; the same for all loads, sizes of working sets, policies.
        let drawn = recipe.prepare()?.draw(self.seed, u64::from(run.set))?;
        let asked: f64 = drawn
            .timings()
            .iter()
            .map(|t| t.utilization().to_f64())
            .sum();
        let factor = ASKED * f64::from(processors) / asked;
        let task = |(index, timing): (usize, &Timing)| {
            let wcet = (timing.wcet.nanos() as f64 * factor) as u64;
            // One task may not ask for more than a processor has.
            let most = timing.period.nanos() / 10 * 9;
            let timing = Timing {
                wcet: Duration::from_nanos(wcet.clamp(1, most)),
                ..*timing
            };
            let details = Details {
                wss: Some(run.block.wss),
                ..Details::named(format!("t{index}"))
            };
            (timing, details)
        };
        TaskSet::new(drawn.timings().iter().enumerate().map(task).collect())
            .map_err(|e| Error::new(format!("a set of {} tasks cannot be made: {e}", run.tasks)))
    }
}

/// What a journal begins with: runs fit together only if all of this is the same.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    version: u32,
    plan: Plan,
    platform: String,
    kernel: String,
}

impl Header {
    /// Of a plan on a platform.
    pub fn of(plan: &Plan, platform: &Platform, kernel: &str) -> Self {
        Header {
            version: 1,
            // Where the results go and how they were asked for may differ.
            plan: Plan {
                out: PathBuf::new(),
                command: String::new(),
                about: BTreeMap::new(),
                resume: false,
                ..plan.clone()
            },
            platform: format!("{}: {}", platform.name, platform.description),
            kernel: kernel.to_owned(),
        }
    }
}

impl Head for Header {
    fn difference(&self, interrupted: &Self) -> &'static str {
        let (a, b) = (&interrupted.plan, &self.plan);
        let different = [
            (interrupted.version != self.version, "format of its journal"),
            (interrupted.platform != self.platform, "machine"),
            (interrupted.kernel != self.kernel, "kernel"),
            (a.policies != b.policies, "list of policies (--policy)"),
            (a.tasks != b.tasks, "list of numbers of tasks (--tasks)"),
            (a.sets != b.sets, "number of sets (--sets)"),
            (a.length != b.length, "length of runs (--for)"),
            (a.wss != b.wss, "list of working sets (--wss)"),
            (
                a.write_ratios != b.write_ratios,
                "list of write ratios (--write-ratio)",
            ),
            (a.loads != b.loads, "load (--load)"),
            (
                a.prefetchers != b.prefetchers,
                "state of the prefetchers (--prefetchers)",
            ),
            (a.seed != b.seed, "seed (--seed)"),
        ];
        let first = different.iter().find(|(is_different, _)| *is_different);
        first.map_or("plan", |(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(options: &Options) -> Result<Plan> {
        Plan::of(options, &Platform::symmetric(2))
    }

    #[test]
    fn the_quick_plan_takes_three_minutes_at_most() {
        let quick = Options {
            quick: true,
            ..Options::default()
        };
        let plan = plan(&quick).unwrap();
        assert_eq!(plan.runs().len(), 2 * 3 * 2 * 2 * 2);
        assert!(plan.expected(plan.runs().len()) <= Duration::from_secs(180));
    }

    #[test]
    fn sets_ask_for_the_same_whatever_their_number_of_tasks() {
        let plan = plan(&Options::default()).unwrap();
        let runs = plan.runs();
        for run in runs.iter().step_by(37) {
            let set = plan.draw(run, 2).unwrap();
            let asked: f64 = set.timings().iter().map(|t| t.utilization().to_f64()).sum();
            assert_eq!(set.len() as u32, run.tasks);
            assert!((asked - 2.0 * ASKED).abs() < 0.1, "{asked}");
        }
        // The same set for both policies and both loads.
        let of = |run: &Run| plan.draw(run, 2).unwrap().timings().to_vec();
        assert_eq!(of(&runs[0]), of(&runs[3]));
        assert_eq!((runs[0].policy, runs[1].policy), (0, 1));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (options, said) in [
            (
                Options {
                    policies: Spec::list("p-edf,p-edf").unwrap(),
                    ..Options::default()
                },
                "named twice",
            ),
            (
                Options {
                    wss: vec![Bytes::new(100)],
                    ..Options::default()
                },
                "multiples of 4KiB",
            ),
            (
                Options {
                    tasks: vec![501],
                    ..Options::default()
                },
                "sets of 501 tasks",
            ),
        ] {
            let error = plan(&options).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn an_interrupted_measurement_of_another_plan_is_told_apart() {
        let one = plan(&Options::default()).unwrap();
        let other = Plan {
            sets: 3,
            ..one.clone()
        };
        let head = |plan: &Plan| Header::of(plan, &Platform::symmetric(2), "6.1");
        assert!(head(&one).difference(&head(&other)).contains("--sets"));
    }
}
