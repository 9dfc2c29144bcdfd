//! Names of policies to judge, as on the command line, and which of them a platform suggests.

use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::Guarantee;
use crate::{pd2, tardiness::cache_aware};
use model::{Called, ClusterSpec, CpuSet, Duration, Error, Platform, Result};
use std::fmt;
use std::str::FromStr;

/// How a policy decides within its clusters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// P-EDF, C-EDF, G-EDF.
    Edf,
    /// By fixed priorities, partitioned or global.
    FixedPriority(Priority),
    /// EDF-fm (002 §4.1).
    EdfFm,
    /// EDF-WM (002 §4.2).
    EdfWm,
    /// NPS-F and, in clusters, C-NPS-F (002 §4.3), with δ slots per shortest period.
    NpsF {
        /// δ.
        delta: u32,
    },
    /// PD2 with quanta of a millisecond.
    Pd2,
    /// The cache-aware scheduler (003 §3.1) with quanta of a millisecond.
    CaEdf,
}

impl Family {
    /// How long the quanta are in which it decides; `None` where it does not decide in quanta.
    pub const fn quantum(self) -> Option<Duration> {
        match self {
            Family::Pd2 => Some(pd2::QUANTUM),
            Family::CaEdf => Some(cache_aware::QUANTUM),
            Family::Edf | Family::FixedPriority(_) | Family::EdfFm | Family::EdfWm | Family::NpsF { .. } => {
                None
            }
        }
    }

    /// Does it bound tardiness and promise no more?
    pub const fn is_soft_only(self) -> bool {
        matches!(self, Family::EdfFm | Family::CaEdf)
    }
}

/// A policy to judge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How it decides.
    pub family: Family,
    /// Within which processors a task may move: partitioned, global, by cache level, by size.
    pub clusters: ClusterSpec,
}

const fn policy(family: Family, clusters: ClusterSpec) -> Policy {
    Policy { family, clusters }
}

impl Policy {
    /// Every processor by itself.
    pub const P_EDF: Policy = policy(Family::Edf, ClusterSpec::Partitioned);
    /// All processors together.
    pub const G_EDF: Policy = policy(Family::Edf, ClusterSpec::Global);

    /// P-EDF, C-EDF around every shared cache level that lies in between, and G-EDF, each way of clustering once.
    ///
    /// # Errors
    /// The platform has no usable processor.
    pub fn all_on(platform: &Platform) -> Result<Vec<Policy>> {
        let mut policies = vec![Policy::P_EDF];
        policies.extend(levels(platform)?.map(|c| policy(Family::Edf, c)));
        if platform.usable().len() > 1 {
            policies.push(Policy::G_EDF);
        }
        Ok(policies)
    }

    /// Every policy that can give the guarantee on the platform: [`Policy::all_on`], partitioned fixed priorities and, on
    /// several processors, global ones, the semi-partitioned ones (EDF-fm for soft guarantees alone), PD2 and, for soft guarantees
    /// alone, the cache-aware scheduler.
    ///
    /// # Errors
    /// The platform has no usable processor.
    pub fn all_for(platform: &Platform, guarantee: Guarantee) -> Result<Vec<Policy>> {
        let mut policies = Policy::all_on(platform)?;
        let fixed = |f| policy(Family::FixedPriority(f), ClusterSpec::Partitioned);
        policies.extend([fixed(Priority::RateMonotonic), fixed(Priority::DeadlineMonotonic)]);
        if platform.usable().len() > 1 {
            let global = |family| policy(family, ClusterSpec::Global);
            if guarantee == Guarantee::Soft {
                policies.push(global(Family::EdfFm));
            }
            let nps_f = Family::NpsF { delta: 1 };
            policies.extend([global(Family::EdfWm), global(nps_f)]);
            policies.extend(levels(platform)?.map(|c| policy(nps_f, c)));
            let dm = Family::FixedPriority(Priority::DeadlineMonotonic);
            policies.extend([global(dm), global(Family::Pd2)]);
            if guarantee == Guarantee::Soft {
                policies.push(global(Family::CaEdf));
            }
        }
        Ok(policies)
    }

    /// Is a task cut into parts that live on different processors?
    pub fn is_split(&self) -> bool {
        matches!(self.family, Family::EdfFm | Family::EdfWm | Family::NpsF { .. })
    }

    /// Reads a list such as `p-edf,g-edf,c-edf:l2`, each policy once.
    ///
    /// # Errors
    /// An unknown policy, or none at all.
    pub fn list(text: &str) -> Result<Vec<Policy>> {
        let mut policies = Vec::new();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let policy: Policy = name.parse()?;
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        if policies.is_empty() {
            return Err(Error::new("no policy is named").remedy("give at least one, such as `p-edf`"));
        }
        Ok(policies)
    }
}

/// The cache levels that make clusters between single processors and all, each way of clustering once.
fn levels(platform: &Platform) -> Result<impl Iterator<Item = ClusterSpec>> {
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
            levels.push(ClusterSpec::Level(level));
        }
    }
    Ok(levels.into_iter())
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clusters = self.clusters;
        f.pad(&match self.family {
            Family::Edf => match clusters {
                ClusterSpec::Partitioned => "p-edf".to_owned(),
                ClusterSpec::Global => "g-edf".to_owned(),
                other => format!("c-edf:{other}"),
            },
            Family::FixedPriority(priority) => match (clusters, priority) {
                (ClusterSpec::Global, Priority::RateMonotonic) => "g-fp:rm",
                (ClusterSpec::Global, Priority::DeadlineMonotonic) => "g-fp:dm",
                (ClusterSpec::Global, Priority::Given) => "g-fp",
                (_, Priority::RateMonotonic) => "p-rm",
                (_, Priority::DeadlineMonotonic) => "p-fp:dm",
                (_, Priority::Given) => "p-fp",
            }
            .to_owned(),
            Family::EdfFm => "edf-fm".to_owned(),
            Family::EdfWm => "edf-wm".to_owned(),
            Family::NpsF { delta } => match (clusters, delta) {
                (ClusterSpec::Global, 1) => "nps-f".to_owned(),
                (ClusterSpec::Global, _) => format!("nps-f:delta={delta}"),
                (other, 1) => format!("c-nps-f:{other}"),
                (other, _) => format!("c-nps-f:{other},delta={delta}"),
            },
            Family::Pd2 => "pd2".to_owned(),
            Family::CaEdf => "ca-edf".to_owned(),
        })
    }
}

/// The names without parameters, in the order of documents.
const NAMES: [&str; 12] = [
    "p-edf", "g-edf", "c-edf", "p-rm", "p-fp", "g-fp", "edf-fm", "edf-wm", "nps-f", "c-nps-f", "pd2",
    "ca-edf",
];

impl FromStr for Policy {
    type Err = Error;
    /// Reads `p-edf`, `g-edf`, `c-edf:l2`, `c-edf:size=4`, `p-rm`, `p-fp:dm`, `g-fp:rm`, `nps-f:delta=2`, `c-nps-f:l3` and the like.
    fn from_str(text: &str) -> Result<Self> {
        let called: Called = text.parse()?;
        let none = || called.only(&[], &[], "");
        Ok(match called.name() {
            "p-edf" => none().map(|()| Policy::P_EDF)?,
            "g-edf" => none().map(|()| Policy::G_EDF)?,
            "c-edf" => {
                called.only(&["l#"], &["size"], "`c-edf:l2`, `c-edf:l3` or `c-edf:size=4`")?;
                policy(Family::Edf, called.needed_clusters()?)
            }
            "p-rm" => {
                none()?;
                policy(
                    Family::FixedPriority(Priority::RateMonotonic),
                    ClusterSpec::Partitioned,
                )
            }
            "p-fp" => policy(
                Family::FixedPriority(priorities(&called)?),
                ClusterSpec::Partitioned,
            ),
            "g-fp" => policy(Family::FixedPriority(priorities(&called)?), ClusterSpec::Global),
            "edf-fm" => none().map(|()| policy(Family::EdfFm, ClusterSpec::Global))?,
            "edf-wm" => none().map(|()| policy(Family::EdfWm, ClusterSpec::Global))?,
            "nps-f" => {
                let known = "`nps-f:delta=1`, up to 65535 slots per shortest period";
                called.only(&[], &["delta"], known)?;
                policy(nps_f(&called, known)?, ClusterSpec::Global)
            }
            "c-nps-f" => {
                let known = "`c-nps-f:l2`, `c-nps-f:l3` (the default) or `c-nps-f:size=4`, and `delta=1` behind a comma";
                called.only(&["l#"], &["size", "delta"], known)?;
                let clusters = called.clusters()?.unwrap_or(ClusterSpec::Level(3));
                policy(nps_f(&called, known)?, clusters)
            }
            "pd2" => none().map(|()| policy(Family::Pd2, ClusterSpec::Global))?,
            "ca-edf" => none().map(|()| policy(Family::CaEdf, ClusterSpec::Global))?,
            _ => return Err(called.unknown(NAMES.into_iter())),
        })
    }
}

/// Those that `dm` and `rm` name; the order of the set if neither is there.
fn priorities(called: &Called) -> Result<Priority> {
    let name = called.name();
    let known = format!(
        "`{name}` for the order of the set, `{name}:dm` for shorter deadlines first or `{name}:rm` for shorter periods"
    );
    called.only(&["dm", "rm"], &[], &known)?;
    match (called.has("dm"), called.has("rm")) {
        (false, false) => Ok(Priority::Given),
        (true, false) => Ok(Priority::DeadlineMonotonic),
        (false, true) => Ok(Priority::RateMonotonic),
        (true, true) => Err(called
            .error("`dm` and `rm` are two orders")
            .remedy("write one of them")),
    }
}

/// NPS-F with its number of slots.
fn nps_f(called: &Called, known: &str) -> Result<Family> {
    match called.parsed::<u16>("delta", known)? {
        Some(0) => Err(called.error("`delta` is zero").remedy("write `delta=1`")),
        delta => Ok(Family::NpsF {
            delta: u32::from(delta.unwrap_or(1)),
        }),
    }
}
