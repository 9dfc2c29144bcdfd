//! Which task sets run under which policies, for how long, and in which order (002 §5.1.1 and
//! §5.1.2).

use super::sets::{self, Drawn};
use generate::Utilizations;
use measure::journal::Head;
use model::{ClusterSpec, Duration, Error, Platform, Result};
use policy::Spec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use measure::overheads::results::Utilization;

/// What carries the schedule out, and costs what is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Those of the engine in user space.
    #[default]
    User,
    /// Those of the engine in the kernel (sched_ext).
    Kernel,
}

/// What is asked for; what is empty or `None` is chosen.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory of the results.
    pub out: PathBuf,
    /// The engine that runs the sets, whose overheads are measured.
    pub engine: Engine,
    /// At most three minutes: fewer policies, sizes and sets, shorter runs.
    pub quick: bool,
    /// Which policies.
    pub policies: Vec<Spec>,
    /// How many tasks the sets have.
    pub tasks: Vec<u32>,
    /// How many sets of each size.
    pub sets: Option<u32>,
    /// How long each of them runs.
    pub length: Option<Duration>,
    /// Seed of the sets.
    pub seed: u64,
    /// Go on with an interrupted measurement.
    pub resume: bool,
    /// The command line, for the provenance.
    pub command: String,
    /// More for the provenance, by name.
    pub about: BTreeMap<String, String>,
    /// What the machine is emulated by, if it is.
    pub emulated: Option<String>,
}

/// What is measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Directory of the results.
    pub out: PathBuf,
    /// The engine that runs the sets, whose overheads are measured.
    #[serde(default)]
    pub engine: Engine,
    /// The policies, as written.
    pub policies: Vec<String>,
    /// Kinds of sets: utilizations, number of tasks, and whether they are scaled down.
    pub sizes: Vec<Size>,
    /// How many sets of each size.
    pub sets: u32,
    /// How long each of them runs.
    pub length: Duration,
    /// Seed of the sets.
    pub seed: u64,
    /// Go on with an interrupted measurement.
    pub resume: bool,
    /// The command line.
    pub command: String,
    /// More for the provenance.
    pub about: BTreeMap<String, String>,
    /// What the machine is emulated by, if it is.
    #[serde(default)]
    pub emulated: Option<String>,
}

/// A kind of sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Their utilizations.
    pub utilization: Utilization,
    /// How many tasks each has.
    pub tasks: u32,
    /// Are utilizations scaled down, as so many tasks ask for more than there is?
    pub scaled: bool,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its place in the plan.
    pub number: u32,
    /// The place of its policy.
    pub policy: usize,
    /// Its kind of set.
    pub size: Size,
    /// Which set of this kind.
    pub set: u32,
}

/// Sets of more tasks than this are not measured by default (002 §5.1).
const MOST_TASKS: u32 = 350;
/// The engine in the kernel has room for so many.
const MOST_IN_KERNEL: u32 = kernel::intf::MAX_TASKS as u32;
/// So many sets are drawn at most to find one that fits as it was drawn.
const DRAWN: u64 = 1_000;
/// What starting and ending a run takes besides its length, for the plan.
const AROUND: Duration = Duration::from_millis(500);

impl Engine {
    /// # Errors
    /// The policy decides at quanta, and this engine decides those in user space.
    fn knows(self, spec: &Spec) -> Result<()> {
        if self == Engine::User || spec.quantum(Duration::from_millis(1))?.is_none() {
            return Ok(());
        }
        Err(Error::new(format!(
            "`{spec}` decides at quanta, which the engine in the kernel has done in user space: \
             its overheads there are not measured"
        ))
        .at("--policy")
        .remedy("name policies that decide at events, or measure without `--engine kernel`"))
    }

    /// Sets have no more tasks by default.
    const fn most_tasks(self) -> u32 {
        match self {
            Engine::User => MOST_TASKS,
            Engine::Kernel => MOST_IN_KERNEL,
        }
    }
}

impl Plan {
    /// The plan for a platform.
    ///
    /// # Errors
    /// A policy that this platform cannot run; no processors.
    pub fn of(options: &Options, platform: &Platform) -> Result<Plan> {
        let processors = platform.usable().len() as u32;
        let policies = match options.policies.is_empty() {
            true => default_policies(options.quick, platform)?,
            false => options.policies.clone(),
        };
        for spec in &policies {
            options.engine.knows(spec)?;
        }
        let policies: Vec<String> = policies
            .iter()
            .map(|spec| Ok(spec.canonical()?.to_string()))
            .collect::<Result<_>>()?;
        for (place, policy) in policies.iter().enumerate() {
            if policies[..place].contains(policy) {
                return Err(Error::new(format!("`{policy}` is named twice"))
                    .at("--policy")
                    .remedy("name each policy once"));
            }
        }
        let mut sizes = match options.tasks.is_empty() {
            true => default_sizes(options.quick, processors, options.engine.most_tasks()),
            false => chosen_sizes(&options.tasks, processors),
        };
        sizes.dedup();
        let most = options.engine.most_tasks();
        if let Some(size) =
            (sizes.iter()).find(|s| options.engine == Engine::Kernel && s.tasks > most)
        {
            return Err(Error::new(format!(
                "the engine in the kernel has room for {most} tasks, and these are {}",
                size.tasks
            ))
            .at("--tasks")
            .remedy("name fewer"));
        }
        let (sets, length) = match options.quick {
            true => (3, Duration::from_millis(1_500)),
            false => (10, Duration::from_secs(4)),
        };
        Ok(Plan {
            out: options.out.clone(),
            engine: options.engine,
            policies,
            sizes,
            sets: options.sets.unwrap_or(sets),
            length: options.length.unwrap_or(length),
            seed: options.seed,
            resume: options.resume,
            command: options.command.clone(),
            about: options.about.clone(),
            emulated: options.emulated.clone(),
        })
    }

    /// All runs. Policies take turns with the same set, and sizes before sets, so that a machine
    /// that changes meanwhile changes for all alike.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for set in 0..self.sets {
            for size in &self.sizes {
                for policy in 0..self.policies.len() {
                    runs.push(Run {
                        number: runs.len() as u32,
                        policy,
                        size: *size,
                        set,
                    });
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
    /// No set of this size fits as it is drawn.
    pub fn draw(&self, run: &Run, processors: u32) -> Result<Drawn> {
        let utilizations: Utilizations = match run.size.utilization {
            Utilization::Light => "uniform-light",
            Utilization::Medium => "uniform-medium",
        }
        .parse()?;
        // Each set has numbers of its own, of which it takes the first that fits.
        let first = u64::from(run.set) * DRAWN;
        let drawn = (first..first + DRAWN).map(|number| {
            let seed = self.seed;
            sets::draw(run.size.tasks, utilizations, processors, seed, number)
        });
        for drawn in drawn {
            let drawn = drawn?;
            if drawn.scaled == run.size.scaled {
                return Ok(drawn);
            }
        }
        Err(Error::new(format!(
            "{DRAWN} random sets of {} tasks all ask for {} than {} % of {processors} processors",
            run.size.tasks,
            if run.size.scaled { "less" } else { "more" },
            sets::MOST * 100.0,
        ))
        .at("--tasks")
        .remedy("choose another number of tasks"))
    }
}

/// What a journal begins with: runs fit together only if all of this is the same.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    version: u32,
    plan: Plan,
    platform: String,
    kernel: String,
    /// Why nothing is seen of the kernel, if it is so.
    blind: Option<String>,
}

impl Header {
    /// Of a plan on a platform.
    pub fn of(plan: &Plan, platform: &Platform, kernel: &str, blind: Option<String>) -> Self {
        Header {
            version: 2,
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
            blind,
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
            (interrupted.blind != self.blind, "view of the kernel"),
            (a.policies != b.policies, "list of policies (--policy)"),
            (a.sizes != b.sizes, "list of numbers of tasks (--tasks)"),
            (a.sets != b.sets, "number of sets (--sets)"),
            (a.length != b.length, "length of runs (--for)"),
            (a.seed != b.seed, "seed (--seed)"),
            (a.engine != b.engine, "engine (--engine)"),
        ];
        let first = different.iter().find(|(is_different, _)| *is_different);
        first.map_or("plan", |(_, what)| what)
    }
}

/// The level of the largest cache that neither all processors share nor each has for itself: by it
/// clusters differ from global and from partitioned scheduling.
pub fn cluster_level(platform: &Platform) -> Option<u8> {
    let all = platform.usable().len();
    let mut levels = platform.data_levels().into_iter().rev();
    levels.find(|level| {
        let clusters = platform.clusters(ClusterSpec::Level(*level));
        clusters.is_ok_and(|clusters| clusters.iter().any(|c| c.len() > 1 && c.len() < all))
    })
}

/// Those of 002 chapter 5, with P-RM; quick: one of each kind. Clusters are those of the largest
/// cache that neither all processors share nor each has for itself.
fn default_policies(quick: bool, platform: &Platform) -> Result<Vec<Spec>> {
    let cluster = cluster_level(platform).map(|level| format!("c-edf:l{level}"));
    let names: &[&str] = match quick {
        true => &["p-edf", "g-edf", "edf-wm", "nps-f"],
        false => &["p-edf", "g-edf", "p-rm", "edf-fm", "edf-wm", "nps-f"],
    };
    let mut specs: Vec<Spec> = names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_>>()?;
    if let Some(cluster) = cluster {
        specs.insert(2, cluster.parse()?);
    }
    Ok(specs)
}

/// Does a set of so many tasks as a rule fit as it is drawn? Light utilizations have a
/// mean of 0.0505, and sums of many hardly stray from their mean.
fn fits(tasks: u32, processors: u32) -> bool {
    f64::from(tasks) * 0.0505 <= 0.85 * f64::from(processors)
}

/// Where one engine has room for fewer tasks than are measured by default, that many are the most.
fn default_sizes(quick: bool, processors: u32, room: u32) -> Vec<Size> {
    let (light, scaled): (&[u32], &[u32]) = match quick {
        true => (&[2, 6, 10, 15], &[100, MOST_TASKS]),
        false => (
            &[2, 4, 6, 8, 10, 12, 15],
            &[50, 100, 150, 200, 250, 300, MOST_TASKS],
        ),
    };
    let size = |utilization, tasks, scaled| Size {
        utilization,
        tasks,
        scaled,
    };
    let most = light.iter().map(|n| n * processors).max().unwrap_or(0);
    let mut sizes: Vec<Size> = light
        .iter()
        .map(|n| n * processors)
        .filter(|tasks| *tasks <= room)
        .map(|tasks| size(Utilization::Light, tasks, false))
        .collect();
    let beyond = scaled.iter().filter(|tasks| **tasks > most);
    sizes.extend(beyond.map(|tasks| size(Utilization::Light, room.min(*tasks), true)));
    if !quick {
        let medium = [1, 2, 3].map(|n| size(Utilization::Medium, n * processors, false));
        sizes.extend(medium);
    }
    sizes
}

fn chosen_sizes(tasks: &[u32], processors: u32) -> Vec<Size> {
    let mut tasks = tasks.to_vec();
    tasks.sort_unstable();
    tasks
        .into_iter()
        .map(|tasks| Size {
            utilization: Utilization::Light,
            tasks,
            scaled: !fits(tasks, processors),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(options: &Options) -> Plan {
        Plan::of(options, &Platform::symmetric(2)).unwrap()
    }

    #[test]
    fn the_quick_plan_takes_three_minutes_at_most() {
        let quick = plan(&Options {
            quick: true,
            ..Options::default()
        });
        assert_eq!(quick.runs().len(), 4 * 6 * 3);
        assert!(quick.expected(quick.runs().len()) <= Duration::from_secs(180));
        assert_eq!(quick.policies, ["p-edf", "g-edf", "edf-wm", "nps-f"]);
    }

    #[test]
    fn sizes_that_fit_are_told_from_those_that_are_scaled() {
        let full = plan(&Options::default());
        assert_eq!(full.sets, 10);
        for size in &full.sizes {
            if size.utilization == Utilization::Light {
                assert_eq!(fits(size.tasks, 2), !size.scaled, "{size:?}");
            }
        }
        assert!(full.sizes.iter().any(|s| s.scaled && s.tasks == MOST_TASKS));
        assert!(
            full.sizes
                .iter()
                .any(|s| s.utilization == Utilization::Medium)
        );
        for run in full.runs().iter().take(200) {
            assert_eq!(
                full.draw(run, 2).unwrap().scaled,
                run.size.scaled,
                "{run:?}"
            );
        }
    }

    #[test]
    fn policies_take_turns_with_the_same_set() {
        let quick = plan(&Options {
            quick: true,
            ..Options::default()
        });
        let runs = quick.runs();
        assert_eq!(runs[0].size, runs[3].size);
        assert_eq!((runs[0].policy, runs[3].policy, runs[4].policy), (0, 3, 0));
        let of = |run: &Run| quick.draw(run, 2).unwrap().set.timings().to_vec();
        assert_eq!(of(&runs[0]), of(&runs[3]));
        assert_ne!(of(&runs[0]), of(&runs[24]));
    }

    #[test]
    fn the_engine_in_the_kernel_has_its_limits() {
        let kernel = |change: fn(&mut Options)| {
            let mut options = Options {
                engine: Engine::Kernel,
                ..Options::default()
            };
            change(&mut options);
            Plan::of(&options, &Platform::symmetric(2))
        };
        let full = kernel(|_| {}).unwrap();
        let light = |s: &&Size| s.utilization == Utilization::Light;
        let tasks: Vec<u32> = full.sizes.iter().filter(light).map(|s| s.tasks).collect();
        assert_eq!(tasks[tasks.len() - 3..], [200, 250, 256]);
        let error = |change| kernel(change).unwrap_err().to_string();
        let many = error(|o| o.tasks = vec![10, 257]);
        assert!(many.contains("room for 256 tasks"), "{many}");
        let quanta = error(|o| o.policies = Spec::list("g-edf,pd2").unwrap());
        assert!(quanta.contains("`pd2` decides at quanta"), "{quanta}");
        let other = plan(&Options::default());
        let head = |plan: &Plan| Header::of(plan, &Platform::symmetric(2), "6.1", None);
        let same = Plan {
            sizes: full.sizes.clone(),
            ..other
        };
        assert_eq!(head(&full).difference(&head(&same)), "engine (--engine)");
    }

    #[test]
    fn who_names_a_policy_twice_is_told() {
        let twice = Options {
            policies: Spec::list("p-edf,p-edf").unwrap(),
            ..Options::default()
        };
        let error = Plan::of(&twice, &Platform::symmetric(2))
            .unwrap_err()
            .to_string();
        assert!(error.contains("named twice"), "{error}");
    }

    #[test]
    fn an_interrupted_measurement_of_another_plan_is_told_apart() {
        let one = plan(&Options::default());
        let other = Plan {
            sets: 3,
            ..one.clone()
        };
        let head = |plan: &Plan| Header::of(plan, &Platform::symmetric(2), "6.1", None);
        assert!(head(&one).difference(&head(&other)).contains("--sets"));
        let elsewhere = Plan {
            out: "elsewhere".into(),
            resume: true,
            ..one.clone()
        };
        assert_eq!(head(&one), head(&elsewhere));
    }
}
