//! What a preemption or migration is charged to each task under a policy.
//!
//! 000 §2 (one delay a job), 002 §6.4 (by working set size, and by what the policy does: preempt, migrate through a
//! shared cache, migrate through memory). A delay measured as negative costs nothing.

use crate::verdict::Guarantee;
use model::{CpuSet, Duration, Error, Load, Platform, Profile, Result, Resumption, Statistic, TaskSet};

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

/// The delays charged under one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Charge {
    /// For every task, in the order of the set.
    pub delays: Vec<Duration>,
    /// Readings beyond what was measured, in words.
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

    /// What is charged, in words.
    pub fn describe(&self, guarantee: Guarantee) -> String {
        match (self.profile, self.cpmd) {
            (None, None) => "no cache delay: preemptions and migrations are taken to be free".to_owned(),
            (None, Some(d)) => format!("a cache delay of {d} a job, the same for every task and policy"),
            (Some(p), other) => {
                let rest = match other {
                    Some(d) => format!("; {d} for tasks whose working set size is not known"),
                    None => String::new(),
                };
                format!(
                    "the {} cache delays of profile `{}` ({}), by working set size and by what the policy does to a job{rest}",
                    self.statistic_for(guarantee),
                    p.platform,
                    self.load
                )
            }
        }
    }

    /// The delay of one preemption or migration of each task under a policy with these clusters.
    ///
    /// # Errors
    /// A task without working set size and nothing to charge instead; a delay that the profile does not have.
    pub fn charge(
        &self,
        set: &TaskSet,
        platform: &Platform,
        clusters: &[CpuSet],
        guarantee: Guarantee,
    ) -> Result<Charge> {
        let mut charge = Charge {
            delays: Vec::with_capacity(set.len()),
            notes: Vec::new(),
        };
        let Some(profile) = self.profile else {
            charge
                .delays
                .resize(set.len(), self.cpmd.unwrap_or(Duration::ZERO));
            return Ok(charge);
        };
        let kinds = resumptions(platform, clusters);
        let statistic = self.statistic_for(guarantee);
        let mut extrapolated = 0usize;
        let mut first = String::new();
        for task in set.ids() {
            let delay = match (set.wss(task), self.cpmd) {
                (Some(wss), _) => {
                    let reading = profile.worst_cpmd(&kinds, self.load, wss, statistic)?;
                    if reading.extrapolated {
                        extrapolated += 1;
                        if first.is_empty() {
                            first = format!("`{}` ({wss})", set.name(task));
                        }
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
            };
            charge.delays.push(delay);
        }
        if extrapolated > 0 {
            let others = match extrapolated - 1 {
                0 => String::new(),
                1 => " and of one other task".to_owned(),
                n => format!(" and of {n} other tasks"),
            };
            charge.notes.push(format!(
                "extrapolated: the working set of {first}{others} is outside of what the profile measured, so that the delay is a guess"
            ));
        }
        Ok(charge)
    }
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
