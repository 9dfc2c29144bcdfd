//! The least that the tasks of a set ask for under a policy, wherever they are put: a set that asks
//! for more than the platform has is refused without a search.
//!
//! 002 §6.1. Whatever the assignment, a job of any task that stays whole, takes turns or is cut
//! into slices pays at least two decisions, two switches and the shortest delay with which it can
//! resume, and the tick takes its part; where the job is not alone on its processor, it also pays
//! the shortest delay of another one. At most one task a processor is alone. In servers (NPS-F) a
//! job pays the same within its server, and a reserve of x of every slot S supplies at most x / S.
//! No test of a policy accepts a place that asks for more than its size.

use super::Many;
use crate::overheads::bins::{self, Shares};
use crate::overheads::{CacheCharge, System};
use crate::policies::subject::Way;
use model::{Ratio, Timing, exact};
use policy::catalog::Tests;

/// What of a set the least that it asks for follows from, at any price.
pub(super) struct Least<'t> {
    tasks: &'t [Timing],
    shares: Option<Shares<'t>>,
    /// Σ 1 / p of as many tasks as can be alone, p in nanoseconds.
    alone: f64,
    processors: u32,
}

impl<'t> Least<'t> {
    pub fn of(many: &Many, tasks: &'t [Timing]) -> Self {
        let m = many.site.cpus.len();
        let alone = match many.policy.way {
            Way::Clusters => Some(many.site.clusters.len()),
            Way::Turns { .. } | Way::Slices { .. } => Some(m),
            // Any two servers together hold more than a processor, or they would be one.
            Way::Slots { .. } if many.site.clusters.len() == 1 => Some(2 * m + 1),
            Way::Slots { .. } => Some(tasks.len()),
            Way::Quanta(_) => None,
        };
        let alone = alone.filter(|_| many.policy.tests(many.guarantee) != Tests::None);
        let shares = alone.map(|_| Shares::new(tasks));
        Least {
            tasks,
            alone: match (&shares, alone) {
                (Some(shares), Some(count)) => shares.fastest(count),
                _ => 0.0,
            },
            shares,
            processors: m as u32,
        }
    }

    /// Do the tasks ask for more than the platform has, whatever the policy does with them?
    pub fn is_beyond(&self, system: &System<'_>) -> bool {
        let Some(shares) = &self.shares else {
            return false;
        };
        match system.charge {
            CacheCharge::OneDelay(delay) => {
                let inflated = self.tasks.iter().map(|t| t.inflated(delay).utilization());
                exact::cmp_sum(inflated, Ratio::whole(u64::from(self.processors))).is_gt()
            }
            _ if bins::is_covered(system) => shares.are_beyond(self.processors, self.alone, system),
            _ => false,
        }
    }
}
