//! Verdicts as the study of 002 §6.3 makes them, at many prices.
//!
//! A set is packed into clusters by one heuristic; after each placement all tasks of the cluster
//! are accounted for anew, and one that is then over-utilized leaves the task to the next (002
//! §6.1). For a soft guarantee that is all: tardiness is bounded. For a hard one a single processor
//! takes a task if EDF meets all deadlines there, and a cluster of several has to pass one of five
//! sufficient tests for G-EDF.
//!
//! What makes it fast, and why no verdict changes:
//!
//! - A packing in which no cluster refuses a task does not depend on the price; it is made once, and
//!   holds where each of its clusters holds ([`Shares::packing_holds`]).
//! - Of the five tests, GFB, BCL, BCLI and BAR are monotone: what passes with longer WCETs passes
//!   with shorter ones. (With S_k = D_k − e_k, less execution makes every W_i smaller and S_k larger;
//!   where the condition holds fewer than m tasks are clipped at S_k, so that the left side grows by
//!   less than m for each unit of S_k, the right side by m. The windows that BAR looks at are fewer.)
//!   So a cluster that they accept at some price is accepted at all lower ones, and points are asked
//!   in the order of a bisection. BAK is not monotone, and is asked at every price.

use super::{Many, Price, Prices};
use crate::global::{bak, bar, bcl, bcli, gfb};
use crate::info::TestInfo;
use crate::overheads::bins::{Clusters, Packing, Shares};
use crate::overheads::{self, CacheCharge, Overheads, Precedence, System};
use crate::partition::{Fit, Order};
use crate::uniprocessor::edf;
use crate::verdict::{Guarantee, NotApplicable};
use model::{Duration, Ratio, Timing, exact};

/// The five major sufficient tests for G-EDF that 002 §6.3 accepts a hard cluster by, cheapest
/// first. Later tests accept more, and response-time analysis takes seconds a cluster at nanosecond
/// resolution.
pub const MAJOR_TESTS: [&str; 5] = ["GFB", "BCL", "BAK", "BCLI", "BAR"];

/// Does a cluster of several processors pass any of [`MAJOR_TESTS`]? `None`: none of them applies.
fn passes(tasks: &[Timing], size: u32) -> Option<bool> {
    let tests = [gfb::INFO, bcl::INFO, bak::INFO, bcli::INFO, bar::INFO];
    let mut applies = false;
    for test in tests {
        match test.decide_inflated(tasks, size) {
            Ok(true) => return Some(true),
            Ok(false) => applies = true,
            Err(_) => {}
        }
    }
    applies.then_some(false)
}

/// Does a cluster take these tasks, as far as its utilization, or on one processor EDF, says?
fn takes(tasks: &[Timing], size: u32, guarantee: Guarantee) -> bool {
    if size == 1 && guarantee == Guarantee::Hard {
        return edf::decide(tasks) == Ok(true);
    }
    tasks.iter().all(|t| t.wcet <= t.period)
        && exact::cmp_sum(
            tasks.iter().map(Timing::utilization),
            Ratio::whole(u64::from(size)),
        )
        .is_le()
}

impl Many {
    /// The verdict at each price; `None`: no test applies.
    pub(super) fn decide_as_studies(
        &self,
        tasks: &[Timing],
        fit: Fit,
        overheads: &Overheads,
        prices: &Prices,
    ) -> Option<Vec<bool>> {
        self.sweep(tasks, Packed::By(fit), prices, |price| {
            self.system(overheads, price)
        })
    }

    fn sweep<'a>(
        &'a self,
        tasks: &[Timing],
        packed: Packed<'_>,
        prices: &'a Prices,
        system: impl Fn(&'a Price) -> System<'a>,
    ) -> Option<Vec<bool>> {
        let first = system(prices.0.first()?);
        let clusters = Clusters::new(&self.site.clusters, &first);
        let shares = Shares::new(tasks);
        let mut sweep = Sweep {
            guarantee: self.guarantee,
            fit: match packed {
                Packed::By(fit) => Some(fit),
                Packed::So(_) => None,
            },
            alone: shares.fastest(clusters.sizes().len()),
            free: match packed {
                Packed::By(fit) => shares.pack_freely(&clusters, fit),
                Packed::So(cluster_of) => Some(shares.packing(cluster_of, &clusters)),
            },
            bounds: vec![Bounds::default(); clusters.sizes().len()],
            by_utilization: self.guarantee == Guarantee::Soft
                || tasks.iter().all(|t| t.deadline >= t.period)
                || !clusters.sizes().contains(&1),
            tasks,
            clusters,
            shares,
        };
        let delays: Vec<Vec<Duration>> = prices
            .0
            .iter()
            .map(|price| sweep.clusters.delays(&system(price)))
            .collect();
        let mut ranked: Vec<usize> = (0..delays.len()).collect();
        ranked.sort_by(|a, b| delays[*a].cmp(&delays[*b]));
        let dearer = |pair: &[usize]| {
            let mut both = delays[pair[0]].iter().zip(&delays[pair[1]]);
            both.all(|(a, b)| a <= b)
        };
        let are_ranked = ranked.windows(2).all(dearer);
        let mut says = vec![false; delays.len()];
        for rank in bisecting(ranked.len()) {
            if !are_ranked {
                sweep.bounds.fill(Bounds::default());
            }
            let at = ranked[rank];
            says[at] = sweep.accepts(rank, &system(&prices.0[at]))?;
        }
        Some(says)
    }

    /// Does, at each price, every cluster of a given packing pass an exact test or one of
    /// [`MAJOR_TESTS`] with what cache delays really cost there, each job paying for the longest
    /// one that it causes (`docs/overheads.md`, "By piece")? Then no deadline is missed however its
    /// jobs are released. For a hard guarantee, and caches alone.
    pub fn prove_each(&self, tasks: &[Timing], cluster_of: &[u32], prices: &Prices) -> Vec<bool> {
        let overheads = Overheads::NONE;
        let says = self.sweep(tasks, Packed::So(cluster_of), prices, |price| System {
            charge: CacheCharge::ByPiece(Precedence::Edf),
            ..self.system(&overheads, price)
        });
        says.unwrap_or_else(|| vec![false; prices.0.len()])
    }

    fn system<'a>(&'a self, overheads: &'a Overheads, price: &'a Price) -> System<'a> {
        System {
            platform: &self.platform,
            overheads,
            delays: &price.cache,
            guarantee: self.guarantee,
            charge: CacheCharge::Paper,
        }
    }
}

/// 0..`len` in the order of a bisection: the middle, then the middles of both halves.
fn bisecting(len: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(len);
    let mut next = std::collections::VecDeque::from([(0, len)]);
    while let Some((from, to)) = next.pop_front() {
        if from < to {
            let middle = from + (to - from) / 2;
            order.push(middle);
            next.extend([(from, middle), (middle + 1, to)]);
        }
    }
    order
}

/// How a set is put into clusters.
enum Packed<'c> {
    /// By a heuristic, with overheads.
    By(Fit),
    /// The cluster of every task.
    So(&'c [u32]),
}

/// Up to which price, by rank, the monotone tests accept a cluster, and from which they refuse it.
#[derive(Clone, Copy, Default)]
struct Bounds {
    accepted: Option<usize>,
    refused: Option<usize>,
}

/// A set at many prices.
struct Sweep<'a> {
    guarantee: Guarantee,
    /// `None`: the packing is given.
    fit: Option<Fit>,
    tasks: &'a [Timing],
    shares: Shares<'a>,
    clusters: Clusters<'a>,
    /// Σ 1 / p of as many tasks as there are clusters.
    alone: f64,
    /// What utilization alone makes.
    free: Option<Packing>,
    /// Of each cluster of that.
    bounds: Vec<Bounds>,
    /// Does utilization decide every placement?
    by_utilization: bool,
}

impl Sweep<'_> {
    fn accepts(&mut self, rank: usize, system: &System<'_>) -> Option<bool> {
        let Some(fit) = self.fit else {
            return self.free_passes(rank, system);
        };
        let processors = self.clusters.sizes().iter().sum();
        if self.shares.are_beyond(processors, self.alone, system) {
            return Some(false);
        }
        let free = self.free.as_ref().filter(|_| self.by_utilization);
        if free.is_some_and(|free| self.shares.packing_holds(free, &self.clusters, system)) {
            return self.free_passes(rank, system);
        }
        let packed = match self.by_utilization {
            true => self.shares.pack(&self.clusters, fit, system),
            false => self.pack_plainly(fit, system),
        };
        match packed {
            Ok(cluster_of) => self.passes(&cluster_of, system),
            Err(_) => Some(false),
        }
    }

    /// The packing with the exact test of every placement on one processor.
    fn pack_plainly(&self, fit: Fit, system: &System<'_>) -> Result<Vec<u32>, u32> {
        let way = overheads::Way {
            order: Order::DecreasingUtilization,
            fit,
            allowed: None,
        };
        let guarantee = self.guarantee;
        let packed = overheads::pack_where(
            self.tasks,
            self.clusters.cpus(),
            system,
            way,
            |_, inside, size| takes(inside, size, guarantee),
        );
        packed.map(|packed| packed.assignment.cluster_of)
    }

    /// Do the clusters of a packing pass?
    fn passes(&self, cluster_of: &[u32], system: &System<'_>) -> Option<bool> {
        if self.guarantee == Guarantee::Soft {
            return Some(true);
        }
        let mut members = vec![Vec::new(); self.clusters.sizes().len()];
        for (index, cluster) in cluster_of.iter().enumerate() {
            members[*cluster as usize].push(index as u32);
        }
        for (cluster, members) in members.iter().enumerate() {
            let size = self.clusters.sizes()[cluster];
            if size > 1 && !members.is_empty() {
                let inside = self
                    .shares
                    .inflated(members, &self.clusters, cluster, system);
                if !passes(&inside, size)? {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Do the clusters of the packing by utilization alone pass, which hold at this price?
    fn free_passes(&mut self, rank: usize, system: &System<'_>) -> Option<bool> {
        if self.guarantee == Guarantee::Soft {
            return Some(true);
        }
        for cluster in 0..self.clusters.sizes().len() {
            if !self.cluster_passes(cluster, rank, system)? {
                return Some(false);
            }
        }
        Some(true)
    }

    fn cluster_passes(&mut self, cluster: usize, rank: usize, system: &System<'_>) -> Option<bool> {
        let members = self.free.as_ref()?.members(cluster);
        let (bounds, size) = (&mut self.bounds[cluster], self.clusters.sizes()[cluster]);
        if members.is_empty() || bounds.accepted.is_some_and(|at| rank <= at) {
            return Some(true);
        }
        if size == 1 && self.fit.is_some() {
            // Its placements were decided so.
            return Some(true);
        }
        let inside = self
            .shares
            .inflated(members, &self.clusters, cluster, system);
        if size == 1 {
            return Some(edf::decide(&inside) == Ok(true));
        }
        let mut applies = false;
        let mut is_exhausted = false;
        let mut says = |test: TestInfo| match test.decide_inflated(&inside, size) {
            Ok(yes) => {
                applies = true;
                yes
            }
            Err(why) => {
                is_exhausted |= matches!(why, NotApplicable::Limit(_));
                false
            }
        };
        if says(gfb::INFO) || says(bcl::INFO) {
            bounds.accepted = Some(rank);
            return Some(true);
        }
        if says(bak::INFO) {
            return Some(true);
        }
        if bounds.refused.is_some_and(|at| rank >= at) {
            return Some(false);
        }
        if says(bcli::INFO) || says(bar::INFO) {
            bounds.accepted = Some(rank);
            return Some(true);
        }
        if !is_exhausted {
            bounds.refused = Some(rank);
        }
        applies.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_bisected_once() {
        for len in 0..40 {
            let mut order = bisecting(len);
            assert_eq!(order.first().copied(), (len > 0).then_some(len / 2));
            order.sort_unstable();
            assert_eq!(order, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_tests_are_those_that_are_named() {
        let tests = [gfb::INFO, bcl::INFO, bak::INFO, bcli::INFO, bar::INFO];
        assert_eq!(tests.map(|t| t.name), MAJOR_TESTS);
    }
}
