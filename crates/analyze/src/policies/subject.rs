//! A policy as it is judged: its row of the catalog, read once for the parameters that are given.

use crate::semi::SHORTEST_SLICE;
use crate::verdict::Guarantee;
use crate::{pd2, registry};
use model::{ClusterSpec, CpuSet, Duration, Error, Platform, Result, TaskSet};
use policy::Spec;
use policy::catalog::{self, Info, Needs, Order, Priority, Tests};
use std::fmt;

/// How the tasks of a policy get their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Each task is packed into one of the clusters; jobs move within it.
    Clusters,
    /// Jobs of some tasks take turns on two processors (EDF-fm).
    Turns {
        /// Processors are filled evenly, not one after the other.
        spread: bool,
    },
    /// Jobs of some tasks are cut into slices (EDF-WM).
    Slices {
        /// No slice is shorter.
        shortest: Duration,
    },
    /// Tasks are packed into servers (NPS-F, C-NPS-F).
    Slots {
        /// Slots per shortest period.
        delta: u32,
    },
    /// Time on any processor is reserved in quanta of this length.
    Quanta(Duration),
}

/// A policy to judge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Subject {
    spec: Spec,
    pub order: Order,
    pub way: Way,
    /// Within which processors a task may move: partitioned, global, by cache level, by size.
    pub clusters: ClusterSpec,
    /// What its verdict has to say of its parameters.
    pub note: Option<String>,
}

impl Subject {
    /// # Errors
    /// A parameter without meaning, or one that no test knows.
    pub fn new(spec: &Spec) -> Result<Self> {
        if let Some(key) = spec.unjudged() {
            return Err(spec
                .error(format!("no test takes `{key}` into account"))
                .remedy("leave it out to have the policy judged without it"));
        }
        let note = (spec.info().note)(spec)?;
        let spec = spec.canonical()?;
        let (way, clusters) = match spec.needs()? {
            // The test in quanta is for those of a millisecond.
            Needs::Nothing if spec.info().quantum_driven => {
                (Way::Quanta(pd2::QUANTUM), ClusterSpec::Global)
            }
            Needs::Nothing => (Way::Clusters, ClusterSpec::Global),
            Needs::Clusters(clusters) => (Way::Clusters, clusters),
            Needs::Turns { spread } => (Way::Turns { spread }, ClusterSpec::Global),
            Needs::Slices { shortest } => (
                Way::Slices {
                    shortest: shortest.unwrap_or(SHORTEST_SLICE),
                },
                ClusterSpec::Global,
            ),
            Needs::Slots { delta, clusters } => (
                Way::Slots { delta },
                clusters.unwrap_or(ClusterSpec::Global),
            ),
        };
        Ok(Subject {
            order: spec.order()?,
            way,
            clusters,
            note,
            spec,
        })
    }

    /// What has to be given, besides, before a set can run under it, as a clause.
    pub fn lacks(&self, set: &TaskSet, platform: &Platform) -> Option<String> {
        (self.info().lacks)(&self.spec, set, platform)
    }

    /// Its row.
    pub fn info(&self) -> &'static Info {
        self.spec.info()
    }

    /// The tests that answer for a guarantee. What meets every deadline bounds tardiness as well.
    pub fn tests(&self, guarantee: Guarantee) -> Tests {
        tests(self.info(), guarantee)
    }

    /// The registered test that answers, where there is one alone.
    pub fn named_test(&self, guarantee: Guarantee) -> Option<&'static registry::TestInfo> {
        match self.tests(guarantee) {
            Tests::Named(name) => registry::find(name).ok(),
            _ => None,
        }
    }

    /// Are tasks packed into clusters, within which jobs move?
    pub fn is_packed(&self) -> bool {
        self.way == Way::Clusters
    }

    /// The fixed priorities, where it has some.
    pub fn priority(&self) -> Option<Priority> {
        match self.order {
            Order::Fixed(priority) => Some(priority),
            Order::Deadlines | Order::Releases | Order::Own => None,
        }
    }

    /// Is it earliest deadline first within clusters?
    pub fn is_edf(&self) -> bool {
        self.is_packed() && self.order == Order::Deadlines
    }

    /// How long the quanta are in which it decides; `None` where it does not decide in quanta.
    pub fn quantum(&self) -> Option<Duration> {
        match self.way {
            Way::Quanta(quantum) => Some(quantum),
            _ => None,
        }
    }

    /// Is a task cut into parts that live on different processors?
    pub fn is_split(&self) -> bool {
        matches!(
            self.way,
            Way::Turns { .. } | Way::Slices { .. } | Way::Slots { .. }
        )
    }

    /// Does it bound tardiness and promise no more?
    pub fn is_soft_only(&self) -> bool {
        self.info().hard == Tests::None
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

fn tests(info: &Info, guarantee: Guarantee) -> Tests {
    match guarantee {
        Guarantee::Hard => info.hard,
        Guarantee::Soft => info.soft,
    }
}

/// The policies that are judged where none is named: those that rows suggest and that have tests
/// for the guarantee. Where there is one processor, the partitioned ones alone.
///
/// # Errors
/// The platform has no usable processor.
pub fn suggested(platform: &Platform, guarantee: Guarantee) -> Result<Vec<Spec>> {
    let levels = levels(platform)?;
    let mut suggested = Vec::new();
    for info in catalog::all() {
        if tests(info, guarantee) == Tests::None {
            continue;
        }
        for word in info.suggested {
            let specs: Vec<Spec> = match word.strip_suffix('#') {
                Some(stem) => {
                    let of_level = |level: &u8| format!("{stem}{level}").parse();
                    levels.iter().map(of_level).collect::<Result<_>>()?
                }
                None => vec![word.parse()?],
            };
            for spec in specs {
                let partitioned = spec.needs()? == Needs::Clusters(ClusterSpec::Partitioned);
                if partitioned || platform.usable().len() > 1 {
                    suggested.push(spec);
                }
            }
        }
    }
    Ok(suggested)
}

/// The same for a set: where a task has a priority, fixed priorities are judged as they are given,
/// too.
///
/// # Errors
/// Those of [`suggested`].
pub fn suggested_for(
    set: &TaskSet,
    platform: &Platform,
    guarantee: Guarantee,
) -> Result<Vec<Spec>> {
    let mut all = suggested(platform, guarantee)?;
    let has_priorities = set
        .ids()
        .any(|task| set.details(task).is_some_and(|d| d.priority.is_some()));
    if has_priorities {
        let names: Vec<String> = all.iter().map(Spec::to_string).collect();
        let given = names.iter().filter_map(|name| name.strip_suffix(":dm"));
        let given: Vec<Spec> = given.map(str::parse).collect::<Result<_>>()?;
        all.extend(given);
    }
    Ok(all)
}

/// The cache levels that make clusters between single processors and all, each way of clustering
/// once.
fn levels(platform: &Platform) -> Result<Vec<u8>> {
    let mut made: Vec<Vec<CpuSet>> = vec![
        platform.clusters(ClusterSpec::Partitioned)?,
        platform.clusters(ClusterSpec::Global)?,
    ];
    made.iter_mut().for_each(|c| c.sort());
    let mut levels = Vec::new();
    for level in platform.data_levels() {
        // A level that some processor lacks makes no clusters; the others do.
        let Ok(mut clusters) = platform.clusters(ClusterSpec::Level(level)) else {
            continue;
        };
        clusters.sort();
        if !made.contains(&clusters) {
            made.push(clusters);
            levels.push(level);
        }
    }
    Ok(levels)
}

/// Reads a list such as `p-edf,g-edf,c-edf:l2` of policies to judge: each once, by its canonical
/// name.
///
/// # Errors
/// An unknown policy, a parameter that no test knows, or none at all.
pub fn read_list(text: &str) -> Result<Vec<Spec>> {
    let names: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .collect();
    if names.is_empty() {
        return Err(Error::new("no policy is named").remedy("give at least one, such as `p-edf`"));
    }
    let mut specs: Vec<Spec> = Vec::new();
    for spec in Spec::list(&names.join(","))? {
        let spec = Subject::new(&spec)?.spec;
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    Ok(specs)
}
