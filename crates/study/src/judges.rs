//! The judges of a study.
//!
//! 000 §5 and 002 §6.3, where one delay a job is charged: P-EDF and C-EDF pack by worst-fit
//! decreasing; hard clusters pass any of five major tests for G-EDF; soft ones must not be
//! over-utilized. Under P-EDF soft is hard: bounded tardiness on one processor is none. All else is
//! decided as `check` does.

use crate::charged::{Caches, Charged, Judging};
use crate::judge::{Asked, Judge};
use analyze::clustered::Scratch;
use analyze::partition::{Fit, Order as Placement, Scratch as PackScratch};
use analyze::policies::{self, Limits};
use analyze::registry::{self, TestInfo};
use analyze::uniprocessor::edf;
use analyze::{Decision, Guarantee, NotApplicable};
use model::{Error, Platform, Result, Timing};
use policy::Spec;
use policy::catalog::{self, Info, Needs, Tests};

/// A policy of the catalog, judged as `check` does: every packing and every test of its row, unless
/// the study asks for some.
pub(crate) struct Catalogued {
    pub spec: Spec,
    pub platform: Platform,
    pub guarantee: Guarantee,
    pub charged: Charged,
    /// The only heuristic, where one is named.
    pub fit: Option<Fit>,
}

impl Catalogued {
    fn limits(&self) -> Limits {
        match self.charged.judging() {
            Judging::Check => Limits {
                fit: self.fit,
                tests: None,
            },
            Judging::Paper => Limits {
                fit: Some(self.fit.unwrap_or_default()),
                tests: Some(&MAJOR_TESTS),
            },
        }
    }

    fn is_by_one_delay(&self) -> bool {
        self.charged.accounting() == policies::Accounting::OneDelay
    }
}

impl Judge for Catalogued {
    fn accepts(&self, set: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
        let tasks = set.tasks()?;
        let costs = self.charged.costs(set.delay);
        let (platform, spec, guarantee) = (&self.platform, &self.spec, self.guarantee);
        let limits = self.limits();
        let judged = policies::decide_within(&tasks, platform, spec, guarantee, &costs, limits)?;
        judged.ok_or_else(|| {
            Error::new("no test of the policy applies to the set")
                .remedy("choose other policies, or other deadlines")
        })
    }

    fn tests(&self) -> String {
        let info = self.spec.info();
        let tests = match self.guarantee {
            Guarantee::Hard => info.hard,
            Guarantee::Soft => info.soft,
        };
        match tests {
            Tests::None => String::new(),
            Tests::Named(name) => name.to_owned(),
            Tests::Utilization => "U <= m".to_owned(),
            Tests::Deadlines => "any for EDF".to_owned(),
            Tests::Priorities => "any for fixed priorities".to_owned(),
        }
    }

    fn charges_every_job(&self) -> bool {
        // By working set a job pays what its policy does to it, which may be less than D.
        self.is_by_one_delay() && self.charged.caches == Caches::Delay
    }

    fn uncovered(&self) -> Option<&'static str> {
        // In quanta a job pays in each.
        let once = self.is_by_one_delay() && !self.spec.info().quantum_driven;
        once.then(|| uncovered(self.spec.info())).flatten()
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
        Needs::Slices => Some("tasks may be cut into slices on several processors"),
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

/// The five major sufficient tests for G-EDF that 002 §6.3 accepts a hard cluster by, cheapest
/// first. Later tests accept more, and response-time analysis takes seconds a cluster at nanosecond
/// resolution.
pub const MAJOR_TESTS: [&str; 5] = ["GFB", "BCL", "BAK", "BCLI", "BAR"];

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
