//! Names of policies to judge, as on the command line, and which of them a platform suggests.

use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::Guarantee;
use model::error::nearest;
use model::{ClusterSpec, CpuSet, Error, Platform, Result};
use std::fmt;
use std::str::FromStr;

/// How a policy decides within its clusters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// P-EDF, C-EDF, G-EDF.
    Edf,
    /// Partitioned, by fixed priorities.
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
    /// several processors, the semi-partitioned ones (EDF-fm for soft guarantees alone) and PD2.
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
            policies.push(global(Family::Pd2));
        }
        Ok(policies)
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
            Family::FixedPriority(Priority::RateMonotonic) => "p-rm".to_owned(),
            Family::FixedPriority(Priority::DeadlineMonotonic) => "p-fp:dm".to_owned(),
            Family::FixedPriority(Priority::Given) => "p-fp".to_owned(),
            Family::EdfFm => "edf-fm".to_owned(),
            Family::EdfWm => "edf-wm".to_owned(),
            Family::NpsF { delta } => match (clusters, delta) {
                (ClusterSpec::Global, 1) => "nps-f".to_owned(),
                (ClusterSpec::Global, _) => format!("nps-f:delta={delta}"),
                (other, _) => format!("c-nps-f:{other}"),
            },
            Family::Pd2 => "pd2".to_owned(),
        })
    }
}

/// The names without parameters.
const NAMES: [&str; 10] = [
    "p-edf", "g-edf", "c-edf", "p-rm", "p-fp", "edf-fm", "edf-wm", "nps-f", "c-nps-f", "pd2",
];

impl FromStr for Policy {
    type Err = Error;
    /// Reads `p-edf`, `g-edf`, `c-edf:l2`, `c-edf:size=4`, `p-rm`, `p-fp:dm`, `nps-f:delta=2`, `c-nps-f:l3` and the like.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim().to_lowercase();
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text.as_str(), None),
        };
        let fixed = |f| policy(Family::FixedPriority(f), ClusterSpec::Partitioned);
        let nps_f = |delta| Family::NpsF { delta };
        Ok(match (name, parameter) {
            ("p-edf", None) => Policy::P_EDF,
            ("g-edf", None) => Policy::G_EDF,
            ("c-edf", Some(p)) => policy(Family::Edf, clusters(name, &text, p)?),
            ("c-edf", None) => {
                return Err(Error::new("c-edf needs to know its clusters")
                    .remedy("write `c-edf:l2` for the level of a shared cache or `c-edf:size=4` for a number of processors"));
            }
            ("p-rm", None) | ("p-fp", Some("rm")) => fixed(Priority::RateMonotonic),
            ("p-fp", None) => fixed(Priority::Given),
            ("p-fp", Some("dm")) => fixed(Priority::DeadlineMonotonic),
            ("p-fp", Some(p)) => {
                return Err(Error::new(format!("p-fp knows no priorities `{p}`")).remedy(
                    "write `p-fp` for the order of the set, `p-fp:dm` for shorter deadlines first or `p-rm`",
                ));
            }
            ("edf-fm", None) => policy(Family::EdfFm, ClusterSpec::Global),
            ("edf-wm", None) => policy(Family::EdfWm, ClusterSpec::Global),
            ("nps-f", None) => policy(nps_f(1), ClusterSpec::Global),
            ("nps-f", Some(p)) => {
                let delta = p.strip_prefix("delta=").and_then(|d| d.parse::<u16>().ok());
                let delta = delta.filter(|d| *d > 0).ok_or_else(|| {
                    Error::new(format!("`{p}` is no number of slots"))
                        .at(format!("policy `{text}`"))
                        .remedy("write `nps-f:delta=1`, or up to 65535 slots per shortest period")
                })?;
                policy(nps_f(u32::from(delta)), ClusterSpec::Global)
            }
            ("c-nps-f", Some(p)) => policy(nps_f(1), clusters(name, &text, p)?),
            ("c-nps-f", None) => policy(nps_f(1), ClusterSpec::Level(3)),
            ("pd2", None) => policy(Family::Pd2, ClusterSpec::Global),
            (name, Some(p)) if NAMES.contains(&name) => {
                return Err(Error::new(format!("{name} takes no parameter, and `{p}` is one"))
                    .remedy(format!("write `{name}`")));
            }
            _ => {
                let remedy = match nearest(name, NAMES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "policies are p-edf, g-edf, c-edf:l2 (any level), c-edf:size=4, p-rm, p-fp, p-fp:dm, edf-fm, edf-wm, \
                             nps-f, nps-f:delta=2, c-nps-f:l3, pd2"
                        .to_owned(),
                };
                return Err(Error::new(format!("unknown policy `{name}`")).remedy(remedy));
            }
        })
    }
}

/// Reads `l2` or `size=4`.
fn clusters(name: &str, text: &str, parameter: &str) -> Result<ClusterSpec> {
    let level = parameter
        .strip_prefix('l')
        .and_then(|l| l.parse().ok())
        .map(ClusterSpec::Level);
    let size = parameter
        .strip_prefix("size=")
        .and_then(|s| s.parse().ok())
        .map(ClusterSpec::Size);
    level.or(size).ok_or_else(|| {
        Error::new(format!("`{parameter}` makes no clusters"))
            .at(format!("policy `{text}`"))
            .remedy(format!(
                "write `{name}:l2` for the level of a shared cache or `{name}:size=4` for a number of processors"
            ))
    })
}
