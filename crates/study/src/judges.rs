//! The judges of a study.
//!
//! 000 §5 and 002 §6.3, where one delay a job is charged: P-EDF and C-EDF pack by worst-fit
//! decreasing; hard clusters pass any of five major tests for G-EDF; soft ones must not be
//! over-utilized. Under P-EDF soft is hard: bounded tardiness on one processor is none. By the
//! accounting `paper` it is the same where a study asks for it (`judging = "paper"`), with overheads
//! accounted for at each placement ([`Manner::Study`]). All else is decided as `check` does.

use crate::charged::Charged;
use crate::judge::{Asked, Judge};
use crate::prepared::Point;
use analyze::clustered::Scratch;
use analyze::partition::{Fit, Order as Placement, Scratch as PackScratch};
use analyze::policies::{self, Caches, Manner, Many, Prices};
use analyze::registry::{self, TestInfo};
use analyze::uniprocessor::edf;
use analyze::{Decision, Guarantee, NotApplicable};
use model::{ClusterSpec, Duration, Error, Platform, Result, Timing};
use policy::Spec;
use policy::catalog::{self, Info, Needs, Tests};
use std::sync::OnceLock;

/// A policy of the catalog, judged as `check` does or in the manner of 002 §6.3.
pub(crate) struct Catalogued {
    many: Many,
    info: &'static Info,
    guarantee: Guarantee,
    manner: Manner,
    /// Is every cluster a processor?
    is_partitioned: bool,
    /// Is every job charged D once, whatever the policy does?
    is_by_one_delay: bool,
    /// What points of an axis cost, of the axis that was asked about first: all sets are asked
    /// about the same.
    prices: OnceLock<(Vec<Caches>, Prices)>,
}

impl Catalogued {
    /// # Errors
    /// As [`Many::new`].
    pub(crate) fn new(
        spec: &Spec,
        platform: &Platform,
        guarantee: Guarantee,
        charged: &Charged,
        manner: Manner,
    ) -> Result<Self> {
        let costs = charged.costs(Duration::ZERO);
        Ok(Catalogued {
            many: Many::new(spec, platform, guarantee, &costs, manner)?,
            info: spec.info(),
            guarantee,
            manner,
            is_partitioned: spec.needs()? == Needs::Clusters(ClusterSpec::Partitioned),
            is_by_one_delay: charged.accounting() == policies::Accounting::OneDelay
                // By working set a job pays what its policy does to it, which may be less than D.
                && charged.caches == crate::charged::Caches::Delay,
            prices: OnceLock::new(),
        })
    }
}

impl Judge for Catalogued {
    fn accepts(&self, set: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
        let point = Point {
            delay: set.delay,
            wss: set.wss,
        };
        let says = self.accepts_each(set.drawn, &[point])?;
        Ok(says.is_some_and(|says| says == [true]))
    }

    fn accepts_each(&self, drawn: &[Timing], points: &[Point]) -> Result<Option<Vec<bool>>> {
        let caches = |point: &Point| match point.wss {
            Some(wss) => Caches::WorkingSet(wss),
            None => Caches::Delay(point.delay),
        };
        let asked: Vec<Caches> = points.iter().map(caches).collect();
        if let Some((known, prices)) = self.prices.get()
            && *known == asked
        {
            return self.decide(drawn, prices);
        }
        let prices = self.many.prices(&asked)?;
        let says = self.decide(drawn, &prices);
        // Kept for the next set, unless those of another axis are.
        let _ = self.prices.set((asked, prices));
        says
    }

    fn tests(&self) -> String {
        let tests = match self.guarantee {
            Guarantee::Hard => self.info.hard,
            Guarantee::Soft => self.info.soft,
        };
        match tests {
            Tests::Deadlines if matches!(self.manner, Manner::Study(_)) => {
                match self.is_partitioned {
                    true => "exact for EDF".to_owned(),
                    false => MAJOR_TESTS.join(" or "),
                }
            }
            Tests::None => String::new(),
            Tests::Named(name) => name.to_owned(),
            Tests::Utilization => "U <= m".to_owned(),
            Tests::Deadlines => "any for EDF".to_owned(),
            Tests::Priorities => "any for fixed priorities".to_owned(),
        }
    }

    fn charges_every_job(&self) -> bool {
        self.is_by_one_delay
    }

    fn uncovered(&self) -> Option<&'static str> {
        // In quanta a job pays in each.
        let once = self.is_by_one_delay && !self.info.quantum_driven;
        once.then(|| uncovered(self.info)).flatten()
    }
}

impl Catalogued {
    fn decide(&self, drawn: &[Timing], prices: &Prices) -> Result<Option<Vec<bool>>> {
        if let Some(says) = self.many.decide_each(drawn, prices)? {
            return Ok(Some(says));
        }
        let why = self.many.why_not(drawn)?;
        Err(Error::new(format!(
            "no test of the policy applies to a set of {} tasks: {}",
            drawn.len(),
            why.as_deref().unwrap_or("none has its preconditions")
        ))
        .remedy("choose other policies, other deadlines, or fewer tasks"))
    }
}

/// What a policy does to caches that one delay a job does not cover, in a clause.
fn uncovered(info: &Info) -> Option<&'static str> {
    let needs = info
        .name
        .parse::<Spec>()
        .and_then(|spec| spec.needs())
        .ok()?;
    match needs {
        Needs::Slices { .. } => Some("tasks may be cut into slices on several processors"),
        Needs::Slots { .. } => Some("servers take turns in every slot"),
        _ if info.quantum_driven => Some("a job may be preempted at the end of every quantum"),
        _ => None,
    }
}

/// Soft EDF in clusters, and hard P-EDF: P-EDF with clusters of one, G-EDF with one cluster.
pub(crate) struct Clustered {
    sizes: Vec<u32>,
    fit: Fit,
    guarantee: Guarantee,
}

impl Clustered {
    pub(crate) fn new(sizes: Vec<u32>, fit: Fit, guarantee: Guarantee) -> Self {
        Clustered {
            sizes,
            fit,
            guarantee,
        }
    }
}

impl Judge for Clustered {
    fn accepts(&self, set: &Asked<'_>, scratch: &mut Scratch) -> Result<bool> {
        Ok(scratch.is_schedulable(
            set.inflated,
            &self.sizes,
            Placement::DecreasingUtilization,
            self.fit,
            self.guarantee,
        ))
    }
    fn tests(&self) -> String {
        match self.guarantee {
            Guarantee::Hard => "exact for EDF".to_owned(),
            Guarantee::Soft => "U <= m".to_owned(),
        }
    }
    /// One cluster, soft: every u ≤ 1 and U ≤ m, both of which only grow with execution times.
    fn is_monotone(&self) -> bool {
        self.sizes.len() == 1 && self.guarantee == Guarantee::Soft
    }
}

pub use analyze::policies::MAJOR_TESTS;

/// Hard C-EDF and G-EDF in clusters of several processors: packed, then any major test for each
/// cluster.
pub(crate) struct HardClusters {
    sizes: Vec<u32>,
    fit: Fit,
    tests: Vec<&'static TestInfo>,
}

impl HardClusters {
    pub(crate) fn new(sizes: Vec<u32>, fit: Fit) -> Result<Self> {
        let tests = MAJOR_TESTS
            .map(registry::find)
            .into_iter()
            .collect::<Result<_>>()?;
        Ok(HardClusters { sizes, fit, tests })
    }

    fn accepts_cluster(&self, tasks: &[Timing], size: u32) -> Decision {
        if tasks.is_empty() {
            return Ok(true);
        }
        if size == 1 {
            return edf::decide(tasks);
        }
        // A test that does not apply accepts nothing; if none applies, that is the answer.
        let mut refusal = None;
        let mut applied = false;
        for test in &self.tests {
            match test.decide_inflated(tasks, size) {
                Ok(true) => return Ok(true),
                Ok(false) => applied = true,
                Err(why) => refusal = Some(why),
            }
        }
        match refusal {
            Some(why) if !applied => Err(why),
            _ => Ok(false),
        }
    }
}

impl Judge for HardClusters {
    fn tests(&self) -> String {
        MAJOR_TESTS.join(" or ")
    }

    fn accepts(&self, set: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
        let tasks = set.inflated;
        let mut packing = PackScratch::new();
        let Ok(cluster_of) = packing.pack(
            tasks,
            &self.sizes,
            Placement::DecreasingUtilization,
            self.fit,
        ) else {
            return Ok(false);
        };
        let mut cluster = Vec::with_capacity(tasks.len());
        for (at, size) in self.sizes.iter().enumerate() {
            cluster.clear();
            let mine = cluster_of
                .iter()
                .zip(tasks)
                .filter(|(c, _)| **c as usize == at);
            cluster.extend(mine.map(|(_, t)| *t));
            if !self
                .accepts_cluster(&cluster, *size)
                .map_err(|why| refused(&why))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// One test on all processors.
pub(crate) struct Registered {
    test: &'static TestInfo,
    m: u32,
}

impl Registered {
    pub(crate) fn new(test: &'static TestInfo, m: u32) -> Self {
        Registered { test, m }
    }
}

impl Judge for Registered {
    fn tests(&self) -> String {
        self.test.name.to_owned()
    }

    fn accepts(&self, set: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
        let decided = self.test.decide_inflated(set.inflated, self.m);
        decided.map_err(|why| refused(&why))
    }

    fn uncovered(&self) -> Option<&'static str> {
        uncovered(catalog::find(self.test.policy)?)
    }
}

/// A test that does not apply to a set of the study.
fn refused(why: &NotApplicable) -> Error {
    Error::new(why.to_string()).remedy("choose other policies, or other deadlines")
}
