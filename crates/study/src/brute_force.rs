//! Brute force (002 §6.3): a set is kept if a simulation of 60 s shows no miss. An upper bound for every hard test.
//!
//! Periodic, synchronous, at WCET; the delay D is charged where it occurs, at every preemption and migration. A set that is
//! refused is not schedulable; one that is kept may still miss a deadline later, or when its jobs come otherwise. P-EDF has no
//! need of it: on one processor the test is exact.

use crate::judge::Judge;
use analyze::NotApplicable;
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
}

impl BruteForce {
    /// Of `g-edf`, `c-edf:l2` and the like.
    ///
    /// # Errors
    /// No such policy, or one that is told who runs where otherwise than by clusters.
    pub fn new(policy: &str, platform: &Platform) -> Result<Self> {
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
    fn accepts(&self, tasks: &[Timing], _: &mut Scratch) -> Result<bool, NotApplicable> {
        self.survives(tasks, Duration::ZERO)
            .map_err(|_| NotApplicable::Precondition("the set can be simulated"))
    }

    fn charges_delays(&self) -> bool {
        true
    }

    fn survives(&self, tasks: &[Timing], delay: Duration) -> Result<bool> {
        let Some(assignment) = self.assignment(tasks) else {
            return Ok(false);
        };
        let set = TaskSet::from_timings(tasks.to_vec())?;
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
        let costs = Costs {
            cpmd: vec![vec![delay.nanos(); self.platform.resumptions().len()]; set.len()],
            ..Costs::default()
        };
        let (summary, ()) =
            simulate::simulate(plan, &set, &self.platform, &scenario, Some(&costs), &Silent, ())?;
        Ok(summary.ending != Ending::Miss && summary.misses() == 0)
    }
}
