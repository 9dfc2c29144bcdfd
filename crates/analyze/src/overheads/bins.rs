//! Packing with overheads at many prices, where all tasks have the same cache delays: what
//! [`super::pack_where`] finds with a test of utilization, in a few operations for a placement.
//!
//! 002 §6.1. A job that executes for e pays the same c as any other of its cluster: its overheads,
//! D, D* where it is not alone, and one of each interrupt. With A = Σ e/p, B = Σ 1/p and ρ the part
//! of the processor that interrupts take, the tasks of a cluster ask for (A + c·B) / (1 − ρ). The
//! three sums grow by a term with each placement. They are kept in floating point: what is clear by
//! far more than their rounding is decided by them, all else by the accounting itself, in integers.

use super::accounting::{Resident, inflate, sections};
use super::{CacheCharge, System};
use crate::partition::{self, Fit, Order};
use model::{CpuSet, Duration, Resumption, TaskId, Timing};

/// A set that is packed at many prices: what does not depend on them.
pub struct Shares<'t> {
    tasks: &'t [Timing],
    /// In decreasing utilization.
    placement: Vec<u32>,
    /// e / p of each.
    own: Vec<f64>,
    /// 1 / p of each, p in nanoseconds.
    rate: Vec<f64>,
    all: Sums,
}

/// The clusters that a set is packed into.
pub struct Clusters<'c> {
    cpus: &'c [CpuSet],
    sizes: Vec<u32>,
    /// How a job may resume in each.
    ways: Vec<Vec<Resumption>>,
}

impl<'c> Clusters<'c> {
    /// Those of a platform, by a system on it.
    pub fn new(cpus: &'c [CpuSet], system: &System<'_>) -> Self {
        Clusters {
            cpus,
            sizes: cpus.iter().map(|c| c.len() as u32).collect(),
            ways: cpus.iter().map(|c| system.ways(c.iter())).collect(),
        }
    }

    /// The processors of each.
    pub fn cpus(&self) -> &'c [CpuSet] {
        self.cpus
    }

    /// How many processors each has.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The delay of any task in each cluster, where all tasks have the same.
    pub fn delays(&self, system: &System<'_>) -> Vec<Duration> {
        let longest = |ways: &Vec<Resumption>| system.delays.longest(TaskId(0), ways);
        self.ways.iter().map(longest).collect()
    }
}

/// The sums over some tasks that their utilization with overheads is made of.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: usize,
    own: f64,
    rate: f64,
    most_own: f64,
    most_rate: f64,
}

impl Sums {
    fn with(self, own: f64, rate: f64) -> Self {
        Sums {
            count: self.count + 1,
            own: self.own + own,
            rate: self.rate + rate,
            most_own: self.most_own.max(own),
            most_rate: self.most_rate.max(rate),
        }
    }
}

/// What a job of any task pays in a cluster, in nanoseconds.
#[derive(Clone, Copy)]
struct Price {
    width: f64,
    /// Alone in the cluster, without interrupts.
    alone: f64,
    /// More where it is not.
    shared: f64,
    release: f64,
    tick: f64,
    ticks: f64,
}

/// Far above the rounding of any sum, and of what is rounded up to nanoseconds nothing: that is
/// counted.
const MARGIN: f64 = 1e-9;
/// With more interrupts than this the division would take the margin.
const INTERRUPTED: f64 = 0.99;

impl Price {
    fn of(system: &System<'_>, delay: Duration, width: u32) -> Self {
        let o = system.overheads;
        let (scheduling, switches, calls) = sections(width as usize, system.counts());
        let times = |each: Duration, count: u64| each.nanos() as f64 * count as f64;
        let delay = delay.nanos() as f64;
        Price {
            width: f64::from(width),
            alone: times(o.scheduling, scheduling)
                + times(o.context_switch, switches)
                + times(o.ipi_latency, calls)
                + delay,
            shared: delay,
            release: o.release.nanos() as f64,
            tick: o.tick.nanos() as f64,
            ticks: o.tick.nanos() as f64 / o.tick_period.nanos().max(1) as f64,
        }
    }

    /// What a job pays, and the part of a processor that is left to jobs.
    fn charged(&self, sums: &Sums) -> Option<(f64, f64)> {
        let shared = if sums.count > 1 { self.shared } else { 0.0 };
        let each = self.alone + shared + self.tick + self.release * sums.count as f64;
        let taken = self.ticks + self.release * sums.rate;
        (taken < INTERRUPTED).then_some((each, 1.0 - taken))
    }

    /// Do these tasks with overheads ask for no more than the cluster has, each for no more than a
    /// processor? `None`: too close for floating point. `members` are those of `shares`.
    fn holds(&self, sums: &Sums, shares: &Shares<'_>, members: &[u32]) -> Option<bool> {
        let (each, left) = self.charged(sums)?;
        let low = (sums.own + each * sums.rate) / left;
        if low * (1.0 - MARGIN) > self.width {
            return Some(false);
        }
        // Each is rounded up to a nanosecond.
        if (low + sums.rate) * (1.0 + MARGIN) > self.width {
            return None;
        }
        if self.width < 1.5 {
            return Some(true);
        }
        let most = |own: f64, rate: f64| (own + each * rate) / left;
        let fits = |most: f64| (most + sums.most_rate) * (1.0 + MARGIN) <= 1.0;
        if fits(most(sums.most_own, sums.most_rate)) {
            return Some(true);
        }
        let one = |i: &u32| most(shares.own[*i as usize], shares.rate[*i as usize]);
        let most = members.iter().map(one).fold(0.0, f64::max);
        if fits(most) {
            return Some(true);
        }
        (most * (1.0 - MARGIN) > 1.0).then_some(false)
    }
}

/// A set in clusters, as it is packed where no cluster refuses a task that utilization alone admits:
/// then it does not depend on the price.
pub struct Packing {
    members: Vec<Vec<u32>>,
    sums: Vec<Sums>,
}

impl Packing {
    /// The tasks of a cluster.
    pub fn members(&self, cluster: usize) -> &[u32] {
        &self.members[cluster]
    }
}

impl<'t> Shares<'t> {
    /// Of a set.
    pub fn new(tasks: &'t [Timing]) -> Self {
        let mut placement = Vec::new();
        Order::DecreasingUtilization.sort(tasks, &mut placement);
        let rate: Vec<f64> = tasks
            .iter()
            .map(|t| 1.0 / t.period.nanos().max(1) as f64)
            .collect();
        let own: Vec<f64> = tasks
            .iter()
            .map(|t| t.wcet.nanos() as f64 / t.period.nanos().max(1) as f64)
            .collect();
        let both = own.iter().zip(&rate);
        let all = both.fold(Sums::default(), |sums, (own, rate)| sums.with(*own, *rate));
        Shares {
            tasks,
            placement,
            own,
            rate,
            all,
        }
    }

    /// Do the tasks ask for more than `processors`, though each pays for a preemption only and
    /// those that are alone, of which `alone` is Σ 1 / p, for no other job's?
    pub fn are_beyond(&self, processors: u32, alone: f64, system: &System<'_>) -> bool {
        let price = Price::of(system, system.delays.preemption(TaskId(0)), 1);
        let rest = (self.all.rate - alone).max(0.0);
        let asked = self.all.own + price.alone * self.all.rate + price.shared * rest;
        let left = 1.0 - price.ticks;
        left > 0.0 && asked / left * (1.0 - MARGIN) > f64::from(processors)
    }

    /// Σ 1 / p of so many tasks with the shortest periods, p in nanoseconds.
    pub fn fastest(&self, count: usize) -> f64 {
        let mut rates = self.rate.clone();
        if count < rates.len() {
            rates.select_nth_unstable_by(count, |a, b| b.total_cmp(a));
            rates.truncate(count);
        }
        rates.iter().sum()
    }

    /// The packing that utilization alone makes; `None` where it makes none.
    pub fn pack_freely(&self, clusters: &Clusters<'_>, fit: Fit) -> Option<Packing> {
        let cluster_of = match clusters.sizes[..] {
            [_] => vec![0; self.tasks.len()],
            _ => self.place(clusters, fit, |_, _, _| true).ok()?,
        };
        Some(self.packing(&cluster_of, clusters))
    }

    /// The packing that puts every task there.
    pub fn packing(&self, cluster_of: &[u32], clusters: &Clusters<'_>) -> Packing {
        let mut members = vec![Vec::new(); clusters.sizes.len()];
        let mut sums = vec![Sums::default(); clusters.sizes.len()];
        for (index, cluster) in cluster_of.iter().enumerate() {
            let cluster = *cluster as usize;
            members[cluster].push(index as u32);
            sums[cluster] = sums[cluster].with(self.own[index], self.rate[index]);
        }
        Packing { members, sums }
    }

    /// Does no cluster of a packing ask for more than it has, at this price?
    ///
    /// Then the packing is the one that [`Shares::pack`] finds at it: with fewer tasks a cluster
    /// asks for less, so that none of its placements was refused.
    pub fn packing_holds(
        &self,
        packing: &Packing,
        clusters: &Clusters<'_>,
        system: &System<'_>,
    ) -> bool {
        let prices = clusters.prices(system);
        (0..prices.len()).all(|cluster| {
            let members = &packing.members[cluster];
            members.is_empty()
                || prices[cluster]
                    .holds(&packing.sums[cluster], self, members)
                    .unwrap_or_else(|| self.holds_exactly(members, clusters, cluster, system))
        })
    }

    /// Packs the set so that no cluster asks for more than it has, with the overheads of the tasks
    /// in it (002 §6.1): the cluster of every task.
    ///
    /// # Errors
    /// The index of the first task, in the order of placement, that no cluster takes.
    pub fn pack(
        &self,
        clusters: &Clusters<'_>,
        fit: Fit,
        system: &System<'_>,
    ) -> Result<Vec<u32>, u32> {
        let prices = clusters.prices(system);
        if let [price] = prices[..] {
            let all: Vec<u32> = (0..self.tasks.len() as u32).collect();
            let holds = all.is_empty()
                || price
                    .holds(&self.all, self, &all)
                    .unwrap_or_else(|| self.holds_exactly(&all, clusters, 0, system));
            return match (holds, self.placement.last()) {
                (false, Some(last)) => Err(*last),
                _ => Ok(vec![0; self.tasks.len()]),
            };
        }
        let mut sums = vec![Sums::default(); prices.len()];
        self.place(clusters, fit, |cluster, ids, new| {
            let with = sums[cluster].with(self.own[new as usize], self.rate[new as usize]);
            let holds = prices[cluster]
                .holds(&with, self, ids)
                .unwrap_or_else(|| self.holds_exactly(ids, clusters, cluster, system));
            if holds {
                sums[cluster] = with;
            }
            holds
        })
    }

    fn place(
        &self,
        clusters: &Clusters<'_>,
        fit: Fit,
        takes: impl FnMut(usize, &[u32], u32) -> bool,
    ) -> Result<Vec<u32>, u32> {
        let placement = self.placement.clone();
        partition::accept::partition_placed(self.tasks, &clusters.sizes, placement, fit, takes)
    }

    fn holds_exactly(
        &self,
        members: &[u32],
        clusters: &Clusters<'_>,
        cluster: usize,
        system: &System<'_>,
    ) -> bool {
        let inside = self.inflated(members, clusters, cluster, system);
        super::packing::holds(&inside, clusters.sizes[cluster], crate::Guarantee::Soft)
    }

    /// Tasks with their overheads in a cluster, in their order.
    pub fn inflated(
        &self,
        members: &[u32],
        clusters: &Clusters<'_>,
        cluster: usize,
        system: &System<'_>,
    ) -> Vec<Timing> {
        let ways = &clusters.ways[cluster];
        let resident = |id: &u32| {
            let delay = system.delays.longest(TaskId(*id), ways);
            let beginning = system.beginning(delay);
            Resident::whole(self.tasks[*id as usize], beginning, delay)
        };
        let residents: Vec<Resident> = members.iter().map(resident).collect();
        let inflated = inflate(&residents, clusters.cpus[cluster].len(), system);
        inflated.into_iter().map(|(timing, _)| timing).collect()
    }
}

impl Clusters<'_> {
    fn prices(&self, system: &System<'_>) -> Vec<Price> {
        let delays = self.delays(system).into_iter();
        let both = delays.zip(&self.sizes);
        both.map(|(delay, size)| Price::of(system, delay, *size))
            .collect()
    }
}

/// Does every job pay the same by the rule of `system`, whoever it shares with?
pub fn is_covered(system: &System<'_>) -> bool {
    matches!(system.charge, CacheCharge::Paper | CacheCharge::Twice) && system.delays.are_same()
}
