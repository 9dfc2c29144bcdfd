//! Brute force (002 §6.3): a set is kept if a simulation of 60 s shows no miss. An upper bound for
//! every hard test.
//!
//! Periodic, synchronous, at WCET; the delay D, or that of the working set, is charged where it
//! occurs, at every preemption and migration. A set that is refused is not schedulable; one that is
//! kept may still miss a deadline later, or when its jobs come otherwise. P-EDF has no need of it:
//! on one processor the test is exact.

use crate::charged::Charged;
use crate::judge::{Asked, Judge};
use analyze::Guarantee;
use analyze::assign;
use analyze::clustered::Scratch;
use analyze::partition::Fit;
use model::watch::Silent;
use model::{Assignment, CpuSet, Duration, Error, Platform, Result, TaskSet, Timing};
use policy::catalog::Needs;
use policy::{Setup, Spec};
use simulate::{Costs, Ending, Scenario};

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
        Ok(BruteForce {
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

impl Judge for BruteForce {
    fn tests(&self) -> String {
        format!("simulation of {HORIZON}")
    }

    /// A job pays where it is preempted or migrates.
    fn charges_every_job(&self) -> bool {
        false
    }

    fn accepts(&self, asked: &Asked<'_>, _: &mut Scratch) -> Result<bool> {
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
        let (summary, ()) = simulate::simulate(
            plan,
            &set,
            &self.platform,
            &scenario,
            Some(&costs),
            &Silent,
            (),
        )?;
        Ok(summary.ending != Ending::Miss && summary.misses() == 0)
    }
}
