//! What overheads are charged to each task under a policy, and by which rule.
//!
//! 000 §2 (one delay, a bound for any job), 002 §6.1 (all seven overheads), 002 §6.4 (cache delay by working set size, and by what
//! the policy does: preempt, migrate through a shared cache, migrate through memory). A delay measured as negative costs nothing.

use super::Policy;
use crate::overheads::{CacheDelays, Gaps, Overheads};
use crate::verdict::Guarantee;
use model::profile::OverheadKind;
use model::{
    CpuSet, Duration, Error, Load, Platform, Profile, Result, Resumption, Statistic, TaskId, TaskSet,
};
use serde::Serialize;

/// How overheads lengthen WCETs. Numbers by one rule do not compare with numbers by the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// e′ = e + D, one cache delay a job, the same bound for all jobs, and nothing else (000 §2).
    OneDelay,
    /// Cache delays alone, each task with its own: what a job can cause and suffer where its assignment puts it
    /// (`docs/overheads.md`, "By piece").
    ByPiece,
    /// All seven overheads, cache delay twice a job among them (002 §6.1).
    AllOverheads,
}

impl Rule {
    /// Its name and source, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Rule::OneDelay => "one cache delay a job, the same bound for all, e' = e + D (000 §2)",
            Rule::ByPiece => {
                "cache delays by piece: a job pays for the longest one that it can cause another job, and for its own migrations \
                 and quanta"
            }
            Rule::AllOverheads => {
                "all seven overheads, with the cache delay of the job and of the one it preempts (002 §6.1)"
            }
        }
    }
}

/// What cache delay is charged.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    /// The same for every task under every policy; with a profile: for tasks whose working set size is not known.
    pub cpmd: Option<Duration>,
    /// By working set size and kind of resumption.
    pub profile: Option<&'a Profile>,
    /// Which of the profile's curves.
    pub load: Load,
    /// Which number of a curve; `None`: the maximum for a hard guarantee, the average for a soft one.
    pub statistic: Option<Statistic>,
}

/// What is charged under one policy.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bill {
    /// By which rule.
    pub rule: Rule,
    /// The longest cache delay of every task under the policy, in the order of the set.
    pub delays: Vec<Duration>,
    /// The cache delay of every task by the way in which it resumes.
    pub cache: CacheDelays,
    /// The other six, at the number of tasks of the set.
    pub overheads: Overheads,
    /// Readings beyond what was measured, and what was not measured at all, in words.
    pub notes: Vec<String>,
}

impl Costs<'_> {
    /// Nothing costs anything.
    pub const NONE: Costs<'static> = Costs {
        cpmd: None,
        profile: None,
        load: Load::Load,
        statistic: None,
    };

    /// The statistic for a guarantee (002 §6.3).
    pub fn statistic_for(&self, guarantee: Guarantee) -> Statistic {
        self.statistic.unwrap_or(match guarantee {
            Guarantee::Hard => Statistic::Maximum,
            Guarantee::Soft => Statistic::Average,
        })
    }

    /// The rule: 002's where the profile has overheads; by piece where it has cache delays only; 000's without a profile.
    pub fn rule(&self) -> Rule {
        match self.profile {
            Some(p) if !p.overheads.is_empty() => Rule::AllOverheads,
            Some(_) => Rule::ByPiece,
            None => Rule::OneDelay,
        }
    }

    /// What is charged, in words.
    pub fn describe(&self, guarantee: Guarantee) -> String {
        let (profile, other) = match (self.profile, self.cpmd) {
            (None, None) => {
                return "no cache delay: preemptions and migrations are taken to be free".to_owned();
            }
            (None, Some(d)) => {
                return format!("a cache delay of {d} a job, the same for every task and policy");
            }
            (Some(p), other) => (p, other),
        };
        let rest = match other {
            Some(d) => format!("; {d} for tasks whose working set size is not known"),
            None => String::new(),
        };
        let which = self.statistic_for(guarantee);
        let (name, load) = (&profile.platform, self.load);
        match self.rule() {
            Rule::OneDelay | Rule::ByPiece => format!(
                "the {which} cache delays of profile `{name}` ({load}), by working set size and by what the policy does to a \
                 job{rest}; the profile has no release, scheduling, context-switch, IPI, timer and tick overheads: taken as nothing"
            ),
            Rule::AllOverheads => format!(
                "the {which} overheads of profile `{name}` by number of tasks, and its cache delays ({load}) by working set size \
                 and by what the policy does to a job{rest}"
            ),
        }
    }

    /// What every task is charged under a policy with these clusters.
    ///
    /// # Errors
    /// A task without working set size and nothing to charge instead; a delay that the profile does not have.
    pub(super) fn bill(
        &self,
        set: &TaskSet,
        platform: &Platform,
        policy: Policy,
        clusters: &[CpuSet],
        guarantee: Guarantee,
    ) -> Result<Bill> {
        let Some(profile) = self.profile else {
            let delays = vec![self.cpmd.unwrap_or(Duration::ZERO); set.len()];
            return Ok(Bill {
                rule: Rule::OneDelay,
                cache: CacheDelays::any_way(platform, &delays),
                delays,
                overheads: Overheads::NONE,
                notes: Vec::new(),
            });
        };
        let kinds = resumptions(platform, clusters);
        let statistic = self.statistic_for(guarantee);
        let mut delays = Vec::with_capacity(set.len());
        let mut extrapolated = Vec::new();
        for task in set.ids() {
            delays.push(match (set.wss(task), self.cpmd) {
                (Some(wss), _) => {
                    let reading = profile.worst_cpmd(&kinds, self.load, wss, statistic)?;
                    if reading.extrapolated {
                        extrapolated.push(task);
                    }
                    reading.value.cost()
                }
                (None, Some(fixed)) => fixed,
                (None, None) => {
                    return Err(Error::new(format!(
                        "the working set size of `{}` is not known, so its cache delay cannot be read from the profile",
                        set.name(task)
                    ))
                    .remedy("add `wss = \"256KiB\"` to the task, or give `--cpmd` for tasks without one"));
                }
            });
        }
        let mut notes: Vec<String> = beyond(set, &extrapolated).into_iter().collect();
        let rule = self.rule();
        let cache = CacheDelays::of(platform, set.len(), |task, way| match set.wss(task) {
            // What the policy never does need not have been measured.
            _ if !kinds.contains(&way) => Ok(Duration::ZERO),
            Some(wss) => {
                let reading = profile.worst_cpmd(&[way], self.load, wss, statistic)?;
                Ok(reading.value.cost())
            }
            None => Ok(self.cpmd.unwrap_or_default()),
        })?;
        let overheads = match rule {
            Rule::OneDelay | Rule::ByPiece => Overheads::NONE,
            Rule::AllOverheads => {
                let named = policy.to_string();
                let base = named.split(':').next().unwrap_or_default();
                let has = |name: &str| profile.overheads.iter().any(|c| c.policy == name);
                let curves = if has(&named) { named.as_str() } else { base };
                let tasks = u32::try_from(set.len()).unwrap_or(u32::MAX);
                let (overheads, gaps) = Overheads::read(profile, curves, tasks, statistic);
                notes.extend(gaps_in_words(&gaps, policy, clusters, set.len()));
                overheads
            }
        };
        Ok(Bill {
            rule,
            delays,
            cache,
            overheads,
            notes,
        })
    }
}

/// Which working sets are outside of what was measured.
fn beyond(set: &TaskSet, extrapolated: &[TaskId]) -> Option<String> {
    let first = extrapolated.first()?;
    let others = match extrapolated.len() - 1 {
        0 => String::new(),
        1 => " and of one other task".to_owned(),
        n => format!(" and of {n} other tasks"),
    };
    let size = set
        .wss(*first)
        .map_or_else(String::new, |wss| format!(" ({wss})"));
    Some(format!(
        "extrapolated: the working set of `{}`{size}{others} is outside of what the profile measured, so that the delay is a guess",
        set.name(*first)
    ))
}

const fn words(kind: OverheadKind) -> &'static str {
    match kind {
        OverheadKind::Release => "release",
        OverheadKind::Scheduling => "scheduling",
        OverheadKind::ContextSwitch => "context-switch",
        OverheadKind::IpiLatency => "IPI latency",
        OverheadKind::TimerTransfer => "timer transfer",
        OverheadKind::Tick => "tick",
    }
}

/// Which overheads were read beyond what was measured, and which that the policy has are not in the profile.
fn gaps_in_words(gaps: &Gaps, policy: Policy, clusters: &[CpuSet], tasks: usize) -> Vec<String> {
    let list = |kinds: &[OverheadKind]| {
        let matters = |kind: &&OverheadKind| match kind {
            OverheadKind::IpiLatency => policy.is_split() || clusters.iter().any(|c| c.len() > 1),
            OverheadKind::TimerTransfer => policy.is_split(),
            _ => true,
        };
        let names: Vec<&str> = kinds.iter().filter(matters).map(|kind| words(*kind)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let extrapolated = list(&gaps.extrapolated).map(|names| {
        format!("extrapolated: the profile did not measure the {names} overhead with {tasks} tasks, so that what is charged is a guess")
    });
    let missing =
        list(&gaps.missing).map(|names| format!("the profile has no {names} overhead: taken as nothing"));
    extrapolated.into_iter().chain(missing).collect()
}

/// What can happen to a job that stays within its cluster.
fn resumptions(platform: &Platform, clusters: &[CpuSet]) -> Vec<Resumption> {
    let mut kinds = vec![Resumption::Preemption];
    for cluster in clusters {
        for a in cluster.iter() {
            for b in cluster.iter().filter(|b| *b > a) {
                let kind = platform.resumption(a, b);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
    }
    kinds.sort_unstable();
    kinds
}
