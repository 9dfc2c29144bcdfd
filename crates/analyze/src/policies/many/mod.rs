//! A policy that judges many sets at many prices: the verdicts of [`decide`](super::decide) without
//! building anything twice, and those of the papers' studies.
//!
//! All tasks of a set have the same cache delays: one delay (002 §6.3), or those of one working set
//! size (002 §6.4). What depends on the policy alone is made once; what depends on the price alone,
//! once for all sets ([`Prices`]); what depends on the set alone, once for all prices.
//!
//! A set is refused without a search where all of its tasks together ask for more than the
//! platform has whatever is done with them ([`least`]).

mod least;
mod study;

pub use study::MAJOR_TESTS;

use super::charged::Point;
use super::costs::{Bill, Costs, Rule, resumptions};
use super::limits::Limits;
use super::question::Question;
use super::subject::{Subject, Way};
use crate::assign::Site;
use crate::overheads::{self, CacheDelays, Overheads, System};
use crate::semi::nps_f;
use crate::verdict::Guarantee;
use model::{
    Bytes, CpuId, Duration, Error, Load, Platform, Profile, Result, Resumption, Statistic, TaskSet,
    Timing,
};
use policy::Spec;
use std::borrow::Cow;

/// What preemptions and migrations cost every task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caches {
    /// This, whatever the policy does to a job.
    Delay(Duration),
    /// What the profile says for this working set, by what the policy does to a job.
    WorkingSet(Bytes),
}

/// How a set is packed and tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// As `check` does: every way of packing and every test of the policy, but for what is left out.
    Check(Limits),
    /// As 002 §6.3 does, for earliest deadline first in clusters: packed by one heuristic so that
    /// no cluster is over-utilized with its overheads; for a hard guarantee a cluster of several
    /// processors then has to pass one of [`MAJOR_TESTS`].
    Study(crate::partition::Fit),
}

impl Default for Manner {
    fn default() -> Self {
        Manner::Check(Limits::default())
    }
}

/// A policy on a platform that judges many sets.
pub struct Many {
    policy: Subject,
    platform: Platform,
    guarantee: Guarantee,
    profile: Option<Profile>,
    load: Load,
    statistic: Option<Statistic>,
    accounting: super::Accounting,
    manner: Manner,
    site: Site,
    /// The processors of each cluster, in cache order.
    in_order: Vec<Vec<CpuId>>,
    /// What the policy can do to a job.
    kinds: Vec<Resumption>,
    /// On the platform, without delays.
    free: CacheDelays,
}

/// What caches cost at points of an axis, under one policy.
pub struct Prices(Vec<Price>);

struct Price {
    /// The longest delay under the policy.
    longest: Duration,
    cache: CacheDelays,
}

impl Many {
    /// A policy by these costs, of which `cpmd` is not read.
    ///
    /// # Errors
    /// A parameter without meaning or that no test knows; clusters that the platform does not have;
    /// a manner that is not for the policy.
    pub fn new(
        spec: &Spec,
        platform: &Platform,
        guarantee: Guarantee,
        costs: &Costs<'_>,
        manner: Manner,
    ) -> Result<Self> {
        let policy = Subject::new(spec)?;
        let clusters = platform
            .clusters(policy.clusters)
            .map_err(|e| e.at(format!("policy `{policy}`")))?;
        let kinds = resumptions(platform, &clusters);
        let site = Site::of(platform, clusters);
        let many = Many {
            guarantee,
            profile: costs.profile.cloned(),
            load: costs.load,
            statistic: costs.statistic,
            accounting: costs.accounting(),
            manner,
            in_order: site.in_order(),
            site,
            kinds,
            free: CacheDelays::any_way(platform, &[]),
            platform: platform.clone(),
            policy,
        };
        let is_study = matches!(manner, Manner::Study(_));
        if is_study && !(many.policy.is_edf() && many.costs().rule() == Rule::Paper) {
            return Err(spec
                .error("one heuristic is named, which is for earliest deadline first in clusters")
                .remedy("leave it out, or choose the accounting `paper`"));
        }
        Ok(many)
    }

    fn costs(&self) -> Costs<'_> {
        Costs {
            cpmd: None,
            profile: self.profile.as_ref(),
            load: self.load,
            statistic: self.statistic,
            accounting: Some(self.accounting),
        }
    }

    /// What caches cost at these points.
    ///
    /// # Errors
    /// The profile lacks the delay of something that the policy can do to a job.
    pub fn prices(&self, points: &[Caches]) -> Result<Prices> {
        let prices = points.iter().map(|caches| self.price(*caches));
        prices.collect::<Result<_>>().map(Prices)
    }

    fn price(&self, caches: Caches) -> Result<Price> {
        let wss = match (caches, &self.profile) {
            (Caches::Delay(delay), None) => {
                let row = vec![delay; self.free.kinds().len()];
                return Ok(Price {
                    longest: delay,
                    cache: self.free.all(row),
                });
            }
            (Caches::WorkingSet(_), None) => {
                return Err(Error::new(
                    "the cost of a working set stands in a profile, and there is none",
                )
                .remedy("give `--profile`, or delays in the place of working sets"));
            }
            (Caches::Delay(delay), Some(_)) => {
                let row = self.row(|_| Ok(delay))?;
                return Ok(Price {
                    longest: delay,
                    cache: self.free.all(row),
                });
            }
            (Caches::WorkingSet(wss), Some(profile)) => (wss, profile),
        };
        let (wss, profile) = wss;
        let statistic = self.costs().statistic_for(self.guarantee);
        let cost = |kinds: &[Resumption]| -> Result<Duration> {
            let reading = profile.worst_cpmd(kinds, self.load, wss, statistic)?;
            Ok(reading.value.cost())
        };
        Ok(Price {
            longest: cost(&self.kinds)?,
            cache: self.free.all(self.row(|kind| cost(&[kind]))?),
        })
    }

    /// A delay for each way to resume of the platform; what the policy never does costs nothing.
    fn row(&self, delay: impl Fn(Resumption) -> Result<Duration>) -> Result<Vec<Duration>> {
        let kinds = self.free.kinds().iter();
        let one = |kind: &Resumption| match self.kinds.contains(kind) {
            true => delay(*kind),
            false => Ok(Duration::ZERO),
        };
        kinds.map(one).collect()
    }

    /// Is the guarantee shown for these tasks, at each of the prices? `Ok(None)`: the policy is not
    /// asked about such a set.
    ///
    /// # Errors
    /// A task without a period or execution.
    pub fn decide_each(&self, tasks: &[Timing], prices: &Prices) -> Result<Option<Vec<bool>>> {
        let set = TaskSet::to_judge(tasks.to_vec())?;
        let overheads = self.overheads(set.len());
        let Some(first) = prices.0.first() else {
            return Ok(Some(Vec::new()));
        };
        if let Manner::Study(fit) = self.manner {
            return Ok(self.decide_as_studies(tasks, fit, &overheads, prices));
        }
        if self
            .question(&set, &overheads, first)
            .precondition()
            .is_some()
        {
            return Ok(None);
        }
        let least = least::Least::of(self, tasks);
        let one = |price: &Price| {
            let question = self.question(&set, &overheads, price);
            let case = question.case(Point::GIVEN);
            let system = question.system(&case);
            if least.is_beyond(&system) {
                return false;
            }
            let clear = self.clearly(tasks, &system);
            clear.unwrap_or_else(|| question.find(&case).is_some())
        };
        Ok(Some(prices.0.iter().map(one).collect()))
    }

    /// Why the policy is not asked about these tasks, as a clause; `None`: it is.
    ///
    /// # Errors
    /// A task without a period or execution.
    pub fn why_not(&self, tasks: &[Timing]) -> Result<Option<String>> {
        let set = TaskSet::to_judge(tasks.to_vec())?;
        let free = self.price(Caches::Delay(Duration::ZERO))?;
        let question = self.question(&set, &self.overheads(set.len()), &free);
        Ok(question.precondition())
    }

    /// What a quick computation says that tells clear cases; `None`: this is none.
    fn clearly(&self, tasks: &[Timing], system: &System<'_>) -> Option<bool> {
        match self.policy.way {
            Way::Turns { spread: false } => {
                overheads::clear_turns::accepts(tasks, &self.site.cpus, system)
            }
            Way::Slots { delta } => {
                let settings = nps_f::Settings {
                    delta,
                    ..nps_f::Settings::default()
                };
                overheads::clear_servers::accepts(tasks, &self.in_order, &settings, system)
            }
            Way::Clusters | Way::Turns { spread: true } | Way::Slices { .. } | Way::Quanta(_) => {
                None
            }
        }
    }

    /// The six overheads that do not depend on the task.
    fn overheads(&self, tasks: usize) -> Overheads {
        match (self.costs().rule(), &self.profile) {
            (Rule::AllOverheads | Rule::Paper, Some(profile)) => {
                let statistic = self.costs().statistic_for(self.guarantee);
                super::costs::overheads_of(profile, &self.policy, tasks, statistic).0
            }
            _ => Overheads::NONE,
        }
    }

    /// The question of [`decide`](super::decide).
    fn question<'a>(
        &'a self,
        set: &'a TaskSet,
        overheads: &Overheads,
        price: &Price,
    ) -> Question<'a> {
        Question {
            set,
            platform: &self.platform,
            policy: Cow::Borrowed(&self.policy),
            guarantee: self.guarantee,
            site: Cow::Borrowed(&self.site),
            bill: Bill {
                rule: self.costs().rule(),
                delays: vec![price.longest; set.len()],
                cache: price.cache.clone(),
                overheads: *overheads,
                notes: Vec::new(),
            },
            allowed: None,
            kept_apart: None,
            given: None,
            limits: match self.manner {
                Manner::Check(limits) => limits,
                Manner::Study(_) => Limits::default(),
            },
        }
    }
}
