//! Brute force (002 §6.3): a set is kept if a simulation of 60 s shows no miss. An upper bound for
//! every hard test.
//!
//! Periodic, synchronous, at WCET; the delay D, or that of the working set, is charged where it
//! occurs, at every preemption and migration. A set that is refused is not schedulable; one that is
//! kept may still miss a deadline later, or when its jobs come otherwise. P-EDF has no need of it:
//! on one processor the test is exact.
//!
//! Where D is all that costs anything, most sets are not simulated at all. Kept without a
//! simulation: a set whose clusters pass an exact or a sufficient hard test by the accounting by
//! piece, which is proven for any releases. Refused without one, at every D: a set that misses a
//! deadline where D is 0 (the order of jobs by deadline is fixed, so that no job ends earlier where
//! some execute for longer: Ha and Liu, ICDCS 1994). What is left is simulated by an engine for
//! this case alone ([`crate::misses`]).

use crate::charged::Charged;
use crate::judge::{Asked, Judge};
use crate::misses::Cluster;
use crate::prepared::Point;
use analyze::Guarantee;
use analyze::assign;
use analyze::clustered::Scratch;
use analyze::partition::Fit;
use analyze::policies::{Accounting, Caches, Manner, Many};
use model::watch::Silent;
use model::{Assignment, CpuSet, Duration, Error, Platform, Result, TaskSet, Timing};
use policy::catalog::{Needs, Order};
use policy::{Setup, Spec};
use simulate::{Costs, Ending, Scenario};
use std::cmp::Reverse;

/// How long is simulated, if no deadline is missed before.
pub const HORIZON: Duration = Duration::from_secs(60);

/// A policy that is simulated.
pub struct BruteForce {
    spec: Spec,
    platform: Platform,
    /// None under global policies.
    clusters: Option<Vec<CpuSet>>,
    guarantee: Guarantee,
    charged: Charged,
    /// The processors of each cluster.
    sizes: Vec<usize>,
    is_edf: bool,
    /// What proves that no simulation can miss a deadline; `None`: nothing does.
    many: Option<Many>,
}

impl BruteForce {
    /// Of `g-edf`, `c-edf:l2` and the like.
    ///
    /// # Errors
    /// No such policy, or one that is told who runs where otherwise than by clusters.
    pub fn new(
        policy: &str,
        platform: &Platform,
        guarantee: Guarantee,
        charged: &Charged,
    ) -> Result<Self> {
        let spec: Spec = policy.parse()?;
        let clusters = match spec.needs()? {
            Needs::Nothing => None,
            Needs::Clusters(clusters) => Some(platform.clusters(clusters)?),
            _ => {
                return Err(Error::new(format!(
                    "brute force does not know how to split tasks for `{policy}`"
                ))
                .remedy("write `brute-force:g-edf` or `brute-force:c-edf:l2`"));
            }
        };
        let sizes = match &clusters {
            None => vec![platform.usable().len()],
            Some(clusters) => clusters.iter().map(CpuSet::len).collect(),
        };
        let is_edf = spec.order()? == Order::Deadlines
            && !spec.info().quantum_driven
            && spec.unjudged().is_none();
        // The tests are for a hard guarantee, which a simulation without a miss stands for.
        let by_piece = analyze::policies::Costs {
            accounting: Some(Accounting::Warmset),
            ..analyze::policies::Costs::NONE
        };
        let many = match is_edf {
            true => Some(Many::new(
                &spec,
                platform,
                Guarantee::Hard,
                &by_piece,
                Manner::default(),
            )?),
            false => None,
        };
        Ok(BruteForce {
            sizes,
            is_edf,
            many,
            spec,
            platform: platform.clone(),
            clusters,
            guarantee,
            charged: charged.clone(),
        })
    }

    /// The delay each time a job goes on, and the overheads of the profile where they are charged.
    fn costs(&self, set: &TaskSet, asked: &Asked<'_>) -> Result<Costs> {
        let statistic = self
            .charged
            .costs(asked.delay)
            .statistic_for(self.guarantee);
        let delay = |kind| match (asked.wss, &self.charged.profile) {
            (Some(wss), Some(profile)) => {
                let reading = profile.worst_cpmd(&[kind], self.charged.load, wss, statistic)?;
                Ok(reading.value.cost().nanos())
            }
            _ => Ok(asked.delay.nanos()),
        };
        let kinds = self.platform.resumptions().into_iter();
        let delays: Vec<u64> = kinds.map(delay).collect::<Result<_>>()?;
        let overheads = match self.charged.overheads() {
            Some(profile) => Costs::from_profile(
                profile,
                self.spec.info().name,
                set,
                &self.platform,
                self.charged.load,
                statistic,
            )?,
            None => Costs::default(),
        };
        Ok(Costs {
            cpmd: vec![delays; set.len()],
            ..overheads
        })
    }

    fn assignment(&self, tasks: &[Timing]) -> Option<Option<Assignment>> {
        let Some(clusters) = &self.clusters else {
            return Some(None);
        };
        let packed = assign::into_clusters(tasks, clusters, Fit::default(), None);
        packed.ok().map(Some)
    }
}

impl BruteForce {
    /// Simulates the set at one point with the engine that knows every cost.
    fn simulate(&self, asked: &Asked<'_>) -> Result<bool> {
        let Some(assignment) = self.assignment(asked.drawn) else {
            return Ok(false);
        };
        let set = TaskSet::from_timings(asked.drawn.to_vec())?;
        let scenario = Scenario {
            horizon: HORIZON,
            stop_at_miss: true,
            ..Scenario::default()
        };
        let plan = self.spec.plan(&Setup {
            set: &set,
            platform: &self.platform,
            assignment: assignment.as_ref(),
            quantum: scenario.quantum,
        })?;
        let costs = self.costs(&set, asked)?;
        let run = simulate::Run {
            set: &set,
            platform: &self.platform,
            scenario: &scenario,
            costs: Some(&costs),
            watch: &Silent,
        };
        let summary = run.counted(plan)?;
        Ok(summary.ending != Ending::Miss && summary.misses() == 0)
    }

    /// Do all jobs pay the same where they go on, and nothing else, by earliest deadline first?
    fn has_one_cost(&self, points: &[Point]) -> bool {
        self.is_edf && self.charged.overheads().is_none() && points.iter().all(|p| p.wss.is_none())
    }

    /// The tasks of each cluster with the places of their jobs among those of one deadline, as the
    /// policy has them; `None`: not all deadlines are within periods.
    fn clusters_of(&self, drawn: &[Timing], cluster_of: &[u32]) -> Option<Vec<Cluster>> {
        // The earlier release, which is the longer deadline, then the lower task.
        let mut order: Vec<usize> = (0..drawn.len()).collect();
        order.sort_by_key(|index| Reverse(drawn[*index].deadline));
        let mut tie = vec![0; drawn.len()];
        for (place, index) in order.into_iter().enumerate() {
            tie[index] = place as u32;
        }
        let inside = |cluster: usize| {
            let all = drawn.iter().zip(&tie).zip(cluster_of);
            let mine = all.filter(move |(_, at)| **at as usize == cluster);
            mine.map(|((timing, tie), _)| (*timing, *tie))
        };
        self.sizes
            .iter()
            .enumerate()
            .map(|(cluster, size)| Cluster::new(inside(cluster), *size, HORIZON))
            .collect()
    }
}

impl Judge for BruteForce {
    fn tests(&self) -> String {
        format!("simulation of {HORIZON}")
    }

    /// A job pays where it is preempted or migrates.
    fn charges_every_job(&self) -> bool {
        false
    }

    fn accepts(&self, asked: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
        let point = Point {
            delay: asked.delay,
            wss: asked.wss,
        };
        if self.has_one_cost(&[point])
            && let Some(says) = self.accepts_each(asked.drawn, &[point])?
        {
            return Ok(says == [true]);
        }
        self.simulate(asked)
    }

    fn accepts_each(&self, drawn: &[Timing], points: &[Point]) -> Result<Option<Vec<bool>>> {
        let Some(many) = self.many.as_ref().filter(|_| self.has_one_cost(points)) else {
            return Ok(None);
        };
        let cluster_of = match self.assignment(drawn) {
            None => return Ok(Some(vec![false; points.len()])),
            Some(Some(Assignment::Clustered(c))) => c.cluster_of,
            Some(_) => vec![0; drawn.len()],
        };
        let Some(mut clusters) = self.clusters_of(drawn, &cluster_of) else {
            return Ok(None);
        };
        let caches: Vec<Caches> = points.iter().map(|p| Caches::Delay(p.delay)).collect();
        let proven = many.prove_each(drawn, &cluster_of, &many.prices(&caches)?);
        // What misses a deadline where going on costs nothing misses one at any delay: by an order
        // of jobs that does not change, none ends earlier where some execute for longer.
        let mut is_hopeless = None;
        let mut misses = |delay| clusters.iter_mut().any(|cluster| cluster.misses(delay));
        let mut says = Vec::with_capacity(points.len());
        for (point, proven) in points.iter().zip(proven) {
            says.push(
                proven
                    || !*is_hopeless.get_or_insert_with(|| misses(Duration::ZERO))
                        && (point.delay.is_zero() || !misses(point.delay)),
            );
        }
        Ok(Some(says))
    }
}
