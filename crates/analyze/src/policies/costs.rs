//! What overheads are charged to each task under a policy, and by which rule.
//!
//! 000 §2 (one delay, a bound for any job), 002 §6.1 (all seven overheads), 002 §6.4 (cache delay
//! by working set size, and by what the policy does: preempt, migrate through a shared cache,
//! migrate through memory). A delay measured as negative costs nothing.

use super::subject::Subject;
use crate::overheads::{CacheDelays, Gaps, Overheads};
use crate::verdict::Guarantee;
use model::profile::OverheadKind;
use model::{
    CpuSet, Duration, Error, Load, Platform, Profile, Result, Resumption, Statistic, TaskId,
    TaskSet,
};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How overheads lengthen WCETs. Numbers by one rule do not compare with numbers by the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// e′ = e + D, one cache delay a job, the same bound for all jobs, and nothing else (000 §2).
    OneDelay,
    /// Cache delays alone, each task with its own: what a job can cause and suffer where its
    /// assignment puts it (`docs/overheads.md`, "By piece").
    ByPiece,
    /// All seven overheads, cache delay twice a job among them (002 §6.1); for a hard guarantee
    /// with the sections in which the kernel cannot be interrupted.
    AllOverheads,
    /// All seven overheads as often as 002 §6.1 counts them, whatever the guarantee.
    Paper,
}

/// How overheads are accounted for, by name. In each way preemptions and migrations have their own
/// prices: a task that its assignment never lets migrate pays no migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// e′ = e + D, with D the longest cache delay of any job, and nothing else (000 §2).
    OneDelay,
    /// The counts of 002 §6.1: two decisions, two switches and one interrupt between processors a
    /// job, and the delays D and D*.
    Paper,
    /// The project's own: by piece where only cache delays are known, else all seven overheads, and
    /// for a hard guarantee what the kernel cannot be interrupted in as well.
    Warmset,
}

impl Accounting {
    /// All, in the order of documents.
    pub const ALL: [Accounting; 3] = [Accounting::OneDelay, Accounting::Paper, Accounting::Warmset];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Accounting::OneDelay => "one-delay",
            Accounting::Paper => "paper",
            Accounting::Warmset => "warmset",
        }
    }
}

impl fmt::Display for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Accounting {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Accounting::ALL.into_iter().find(|a| a.name() == text);
        found.ok_or_else(|| {
            Error::new(format!("unknown accounting `{text}`"))
                .remedy("write `one-delay`, `paper` or `warmset`")
        })
    }
}

impl Rule {
    /// Are the releases of other tasks charged, which interrupt a job?
    pub const fn has_interrupts(self) -> bool {
        matches!(self, Rule::AllOverheads | Rule::Paper)
    }

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
            Rule::Paper => {
                "all seven overheads as often as 002 §6.1 counts them: two decisions, two switches, one IPI, D and D*"
            }
        }
    }
}

/// What cache delay is charged.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    /// The same for every task under every policy; with a profile: for tasks whose working set size
    /// is not known.
    pub cpmd: Option<Duration>,
    /// By working set size and kind of resumption.
    pub profile: Option<&'a Profile>,
    /// Which of the profile's curves.
    pub load: Load,
    /// Which number of a curve; `None`: the maximum for a hard guarantee, the average for a soft
    /// one.
    pub statistic: Option<Statistic>,
    /// How it is charged; `None`: [`Accounting::Warmset`] with a profile, [`Accounting::OneDelay`]
    /// without one.
    pub accounting: Option<Accounting>,
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

impl Bill {
    /// Does nothing cost anything?
    pub fn is_free(&self) -> bool {
        self.overheads.are_free() && self.cache.are_free()
    }
}

impl Costs<'_> {
    /// Nothing costs anything.
    pub const NONE: Costs<'static> = Costs {
        cpmd: None,
        profile: None,
        load: Load::Load,
        statistic: None,
        accounting: None,
    };

    /// The statistic for a guarantee (002 §6.3).
    pub fn statistic_for(&self, guarantee: Guarantee) -> Statistic {
        self.statistic.unwrap_or(match guarantee {
            Guarantee::Hard => Statistic::Maximum,
            Guarantee::Soft => Statistic::Average,
        })
    }

    /// How it is charged: as chosen, else as the costs suggest.
    pub fn accounting(&self) -> Accounting {
        self.accounting.unwrap_or(match self.profile {
            Some(_) => Accounting::Warmset,
            None => Accounting::OneDelay,
        })
    }

    /// The rule that the accounting comes to: for the project's own by what the profile has.
    pub fn rule(&self) -> Rule {
        match (self.accounting(), self.profile) {
            (Accounting::OneDelay, _) => Rule::OneDelay,
            (Accounting::Paper, _) => Rule::Paper,
            (Accounting::Warmset, Some(p)) if !p.overheads.is_empty() => Rule::AllOverheads,
            (Accounting::Warmset, _) => Rule::ByPiece,
        }
    }

    /// What is charged, in words.
    pub fn describe(&self, guarantee: Guarantee) -> String {
        let (profile, other) = match (self.profile, self.cpmd) {
            (None, None) => {
                return "no cache delay: preemptions and migrations are taken to be free"
                    .to_owned();
            }
            (None, Some(d)) => {
                let each = match self.rule() {
                    Rule::OneDelay => "a job",
                    Rule::ByPiece | Rule::AllOverheads | Rule::Paper => "each time a job goes on",
                };
                return format!("a cache delay of {d} {each}, the same for every task and policy");
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
            Rule::OneDelay => format!(
                "the longest of the {which} cache delays of profile `{name}` ({load}) for every job{rest}, and no other overhead"
            ),
            _ if profile.overheads.is_empty() => format!(
                "the {which} cache delays of profile `{name}` ({load}), by working set size and by what the policy does to a \
                 job{rest}; the profile has no release, scheduling, context-switch, IPI, timer and tick overheads: taken as nothing"
            ),
            Rule::ByPiece | Rule::AllOverheads | Rule::Paper => format!(
                "the {which} overheads of profile `{name}` by number of tasks, and its cache delays ({load}) by working set size \
                 and by what the policy does to a job{rest}"
            ),
        }
    }

    /// What every task is charged under a policy with these clusters.
    ///
    /// # Errors
    /// A task without working set size and nothing to charge instead; a delay that the profile does
    /// not have.
    pub(super) fn bill(
        &self,
        set: &TaskSet,
        platform: &Platform,
        policy: &Subject,
        clusters: &[CpuSet],
        guarantee: Guarantee,
    ) -> Result<Bill> {
        let Some(profile) = self.profile else {
            let delays = vec![self.cpmd.unwrap_or(Duration::ZERO); set.len()];
            return Ok(Bill {
                rule: self.rule(),
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
        if rule == Rule::OneDelay {
            // One bound for any job, whoever preempts whom.
            let longest = delays.iter().copied().max().unwrap_or_default();
            delays.fill(longest);
        }
        let overheads = match rule {
            Rule::OneDelay | Rule::ByPiece => Overheads::NONE,
            Rule::AllOverheads | Rule::Paper => {
                let (overheads, gaps) = overheads_of(profile, policy, set.len(), statistic);
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

/// The overheads of a policy at this number of tasks: from its own curves, or from those of all its
/// parameters together.
pub(super) fn overheads_of(
    profile: &Profile,
    policy: &Subject,
    tasks: usize,
    statistic: Statistic,
) -> (Overheads, Gaps) {
    let named = policy.to_string();
    let base = named.split(':').next().unwrap_or_default();
    let has = |name: &str| profile.overheads.iter().any(|c| c.policy == name);
    let curves = if has(&named) { named.as_str() } else { base };
    let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
    Overheads::read(profile, curves, tasks, statistic)
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

/// Which overheads were read beyond what was measured, and which that the policy has are not in the
/// profile.
fn gaps_in_words(gaps: &Gaps, policy: &Subject, clusters: &[CpuSet], tasks: usize) -> Vec<String> {
    let list = |kinds: &[OverheadKind]| {
        let matters = |kind: &&OverheadKind| match kind {
            OverheadKind::IpiLatency => policy.is_split() || clusters.iter().any(|c| c.len() > 1),
            OverheadKind::TimerTransfer => policy.is_split(),
            _ => true,
        };
        let names: Vec<&str> = kinds
            .iter()
            .filter(matters)
            .map(|kind| kind.words())
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let extrapolated = list(&gaps.extrapolated).map(|names| {
        format!("extrapolated: the profile did not measure the {names} overhead with {tasks} tasks, so that what is charged is a guess")
    });
    let missing = list(&gaps.missing)
        .map(|names| format!("the profile has no {names} overhead: taken as nothing"));
    let own_only = list(&gaps.own_only).map(|names| {
        format!(
            "of the {names} overhead the profile has the engine's part alone: the kernel's is taken \
             as nothing"
        )
    });
    let watch = (!gaps.watch.is_zero()).then(|| {
        format!(
            "of each tick {} are for the engine's own watch for standstills",
            gaps.watch
        )
    });
    let notes = [extrapolated, own_only, missing, watch];
    notes.into_iter().flatten().collect()
}

/// What can happen to a job that stays within its cluster.
pub(super) fn resumptions(platform: &Platform, clusters: &[CpuSet]) -> Vec<Resumption> {
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
