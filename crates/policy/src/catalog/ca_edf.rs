//! The cache-aware scheduler of 003 §3.1: soft real-time EDF that keeps the working sets of a
//! quantum within the shared cache.
//!
//! At every quantum boundary, processor by processor: the earliest deadline if that job is tardy;
//! else the head of the promotion queue, which is ordered by working set size and in front of that
//! holds the jobs that were promoted before and are not finished. If that job would push the
//! working sets of all multithreaded tasks of the quantum beyond the cache, the processor is left
//! idle instead, but only while a phantom task is eligible. A group of tasks is one multithreaded
//! task: its working set counts once.
//!
//! Phantom tasks stand for the spare utilization M − U: as many of utilization 1 as fit, and one of
//! e quanta in p, where p is the period of the set that leaves least over (the shortest of several;
//! the paper's reference [7] has its own choice, any keeps tardiness bounded). What a phantom job
//! does not use in its period is lost.
//!
//! A working set that is larger than the cache counts as one of its size (003 §3.2: estimates are
//! capped at it), so that it fits where it is alone. Where an assignment reserves quanta, phantom
//! tasks take what the reservations leave.
//!
//! Assumes given working set sizes, one for all tasks of a group. Equal sizes: earlier deadline,
//! then lower task index.

use crate::catalog::{Info, Order, Tests};
use crate::cluster::{Edf, Rank};
use crate::place::{Nearness, Places};
use crate::plan::{Plan, Route, Setup};
use crate::quantum::{Quanta, Seats};
use crate::queue::{Queue, task_of};
use crate::spec::Spec;
use crate::{Decisions, DomainId, Event, Job, NONE, Place, Policy};
use model::{
    Bytes, CacheKind, ClusterSpec, Duration, Error, Instant, Ratio, Result, TaskId, TaskSet,
    Timing, exact,
};
use std::collections::BTreeMap;

/// What is known of it.
pub static INFO: Info = Info {
    name: "ca-edf",
    summary: "cache-aware global EDF: keeps the working sets of a quantum within the shared cache",
    parameters: "`ca-edf:cache=8MiB` for another size than the platform's shared cache, `quantum=1ms`",
    keys: &["cache", "quantum"],
    quantum_driven: true,
    unjudged: &["cache", "quantum"],
    order: |_| Ok(Order::Deadlines),
    soft: Tests::Named("WC"),
    suggested: &["ca-edf"],
    tried: &["ca-edf:cache=4MiB"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = CaEdf;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let cache = match spec.parsed::<Bytes>("cache")? {
        Some(cache) => cache,
        None => shared_cache(setup).ok_or_else(|| {
            spec.error(format!(
                "`{}` describes no cache that all processors share",
                setup.platform.name
            ))
            .remedy("write its size: `ca-edf:cache=8MiB`")
        })?,
    };
    let quantum = spec.duration("quantum")?.unwrap_or(setup.quantum);
    let (group_of, wss) = groups(setup.set, cache)?;
    let reserved = setup.in_quanta(INFO.name, quantum)?;
    let clusters = setup.platform.clusters(ClusterSpec::Global)?;
    let domains = setup.domains(&clusters, |_, cpus| {
        let tasks = setup.set.len();
        let mut sizes = wss.clone();
        sizes.sort_unstable();
        sizes.dedup();
        Ok(CaEdf {
            quanta: Quanta::new(quantum),
            cache: cache.get(),
            rank: Edf::new(setup.set.timings().iter().map(|t| t.deadline)),
            size_rank: wss
                .iter()
                .map(|w| sizes.partition_point(|s| s < w) as u32)
                .collect(),
            group_seen: vec![u64::MAX; wss.len()],
            group_of: group_of.clone(),
            wss: wss.clone(),
            deadline: vec![0; tasks],
            by_deadline: Queue::new(tasks),
            by_promotion: Queue::new(tasks),
            promotion: vec![u128::MAX; tasks],
            promotions: 0,
            decisions: 0,
            phantoms: Phantoms::of(&reserved, cpus.len() as u64, quantum),
            seats: Seats::new(Nearness::of(setup.platform, cpus), cpus.len(), tasks),
            chosen: Vec::with_capacity(cpus.len()),
            deliberate: Places::none(cpus.len()),
        })
    })?;
    Ok(Plan {
        domains,
        route: Route::Fixed(vec![DomainId(0); setup.set.len()]),
    })
}

/// The smallest cache that serves all usable processors.
fn shared_cache(setup: &Setup<'_>) -> Option<Bytes> {
    let usable = setup.platform.usable();
    let caches = setup.platform.caches.iter();
    caches
        .filter(|c| c.kind != CacheKind::Instruction && usable.is_subset(&c.shared_by))
        .filter_map(|c| c.size)
        .min()
}

/// By task its multithreaded task, and by multithreaded task its working set size in bytes, at most
/// that of the cache.
fn groups(set: &TaskSet, cache: Bytes) -> Result<(Vec<u32>, Vec<u64>)> {
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut group_of, mut wss) = (Vec::new(), Vec::new());
    for id in set.ids() {
        let refuse = |cause: String, remedy: &str| {
            Error::new(cause)
                .at(format!("policy `ca-edf`, {}", set.name(id)))
                .remedy(remedy)
        };
        let size = set
            .wss(id)
            .ok_or_else(|| {
                refuse(
                    "no working set size is given".into(),
                    "add `wss = \"256KiB\"`",
                )
            })?
            .get();
        let name = set.details(id).and_then(|d| d.group.as_deref());
        let fresh = wss.len() as u32;
        let group = match name {
            Some(name) => *names.entry(name).or_insert(fresh),
            None => fresh,
        };
        if group == fresh {
            wss.push(size);
        } else if wss[group as usize] != size {
            return Err(refuse(
                format!(
                    "the tasks of group `{}` have several working set sizes",
                    name.unwrap_or_default()
                ),
                "give each the working set size of the whole group",
            ));
        }
        group_of.push(group);
    }
    // Only here: the tasks of one group must agree in what they are given.
    for size in &mut wss {
        *size = cache.get().min(*size);
    }
    Ok((group_of, wss))
}

/// The phantom tasks: how often a processor may be left idle.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Phantoms {
    /// Phantom tasks of utilization 1.
    whole: u64,
    /// One more of `e` quanta …
    e: u64,
    /// … in `p`.
    p: u64,
    /// The period that it is in, by number, and how many quanta of it are used.
    used: (u64, u64),
    /// The quantum that was decided last, and whether it is one of those.
    last: (u64, bool),
}

impl Phantoms {
    /// For the spare utilization of a set in whole quanta: WCETs rounded up, as the rest of a job's
    /// last quantum is nobody's, and periods rounded down.
    fn of(timings: &[Timing], m: u64, quantum: Duration) -> Self {
        let quantum = quantum.nanos().max(1);
        let in_quanta = |t: &Timing| (t.wcet.nanos().div_ceil(quantum), t.period.nanos() / quantum);
        let fits = |bound: Option<Ratio>| {
            let shares = timings.iter().map(|t| {
                let (e, p) = in_quanta(t);
                // A period below the quantum leaves nothing to spare.
                Ratio::new(e, p).unwrap_or(Ratio::whole(u64::MAX))
            });
            bound.is_some_and(|b| exact::cmp_sum(shares, b).is_le())
        };
        let whole = (1..=m)
            .take_while(|w| fits(Some(Ratio::whole(m - w))))
            .count() as u64;
        let mut periods: Vec<u64> = timings
            .iter()
            .map(|t| in_quanta(t).1.clamp(1, u64::MAX / (m + 1)))
            .collect();
        periods.sort_unstable();
        periods.dedup();
        let mut best = (0, 1);
        for p in periods {
            // U ≤ M − whole − e / p: the largest such e, by bisection.
            let fits_e = |e: u64| (m - whole) * p >= e && fits(Ratio::new((m - whole) * p - e, p));
            let (mut low, mut high) = (0, p);
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                if fits_e(middle) {
                    low = middle
                } else {
                    high = middle
                }
            }
            if u128::from(low) * u128::from(best.1) > u128::from(best.0) * u128::from(p) {
                best = (low, p);
            }
        }
        Phantoms {
            whole,
            e: best.0,
            p: best.1,
            used: (0, 0),
            last: (0, false),
        }
    }

    /// How many are eligible in a quantum. What was used of it in an earlier decision for the same
    /// quantum is given back: a job whose budget is used up may be chosen, and be cut short at
    /// once.
    fn eligible(&mut self, slot: u64) -> u64 {
        if self.last == (slot, true) {
            self.used.1 -= 1;
        }
        self.last = (slot, false);
        if self.used.0 != slot / self.p {
            self.used = (slot / self.p, 0);
        }
        self.whole + u64::from(self.used.1 < self.e)
    }

    /// This many were scheduled in that quantum; those of utilization 1 first.
    fn use_up(&mut self, count: u64) {
        self.last.1 = count > self.whole;
        self.used.1 += u64::from(self.last.1);
    }
}

/// The scheduler on the processors that share the cache.
#[derive(Clone, Debug)]
pub struct CaEdf {
    quanta: Quanta,
    cache: u64,
    rank: Edf,
    /// By group: its place among the working set sizes, its size, and the last decision in which it
    /// was chosen.
    size_rank: Vec<u32>,
    wss: Vec<u64>,
    group_seen: Vec<u64>,
    /// By task.
    group_of: Vec<u32>,
    deadline: Vec<u64>,
    /// Its key in the promotion queue.
    promotion: Vec<u128>,
    /// Eligible jobs in EDF order; between decisions without those that run.
    by_deadline: Queue,
    /// Eligible jobs in the order of promotion; likewise.
    by_promotion: Queue,
    promotions: u64,
    /// Decisions made: by these, as one quantum may take two.
    decisions: u64,
    phantoms: Phantoms,
    seats: Seats,
    chosen: Vec<u32>,
    deliberate: Places,
}

impl CaEdf {
    /// A job becomes eligible, or is so again.
    fn enter(&mut self, task: u32) {
        let deadline = Instant::from_nanos(self.deadline[task as usize]);
        let job = Job {
            task: TaskId(task),
            number: 0,
            release: Instant::ZERO,
            deadline,
            part: 0,
        };
        self.by_deadline.push(self.rank.key(&job));
        self.by_promotion.push(self.promotion[task as usize]);
    }

    fn quantum(&mut self, slot: u64, now: Instant, out: &mut impl Decisions) {
        for place in 0..self.seats.occupant.len() {
            let task = self.seats.occupant[place];
            if task != NONE {
                self.enter(task);
            }
        }
        self.chosen.clear();
        self.decisions += 1;
        let (mut utilized, mut idled) = (0u64, 0u64);
        let phantoms = self.phantoms.eligible(slot);
        for _ in 0..self.seats.occupant.len() {
            let tardy = self
                .by_deadline
                .peek()
                .filter(|k| (k >> 64) as u64 <= now.nanos());
            let Some(head) = tardy.or(self.by_promotion.peek()) else {
                break;
            };
            let task = task_of(head);
            let group = self.group_of[task.index()] as usize;
            let more = if self.group_seen[group] == self.decisions {
                0
            } else {
                self.wss[group]
            };
            if tardy.is_none() {
                if utilized.saturating_add(more) > self.cache && idled < phantoms {
                    idled += 1;
                    continue;
                }
                if self.promotion[task.index()] >> 127 != 0 {
                    // Promoted until finished: in front of all sizes, behind those promoted before.
                    self.promotions += 1;
                    self.promotion[task.index()] =
                        u128::from(self.promotions) << 32 | u128::from(task.0);
                }
            }
            utilized = utilized.saturating_add(more);
            self.group_seen[group] = self.decisions;
            self.by_deadline.remove(task);
            self.by_promotion.remove(task);
            self.chosen.push(task.0);
        }
        self.phantoms.use_up(idled);
        self.seats.seat(&self.chosen, out);
        for place in Place::all(self.seats.occupant.len()) {
            self.deliberate.remove(place);
            if self.seats.occupant[place.index()] == NONE && idled > 0 {
                idled -= 1;
                self.deliberate.insert(place);
            }
            if self.seats.occupant[place.index()] == NONE {
                out.idle(place);
            }
        }
    }
}

impl Policy for CaEdf {
    #[inline]
    fn is_quantum_driven(&self) -> bool {
        true
    }

    #[inline]
    fn boundary(&self, from: Instant) -> Option<Instant> {
        Some(self.quanta.boundary(from))
    }

    fn happen(&mut self, event: Event, _now: Instant) {
        self.quanta.happen(event);
        match event {
            Event::Ready(job) => {
                let task = job.task.index();
                let size = self.size_rank[self.group_of[task] as usize];
                self.deadline[task] = job.deadline.nanos();
                self.promotion[task] = 1 << 127
                    | u128::from(size & (u32::MAX >> 1)) << 96
                    | u128::from(job.deadline.nanos()) << 32
                    | u128::from(job.task.0);
                self.enter(job.task.0);
            }
            Event::Done(task) | Event::Exhausted(task) => {
                self.by_deadline.remove(task);
                self.by_promotion.remove(task);
                self.seats.leave(task);
            }
            Event::Timer => {}
        }
    }

    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if let Some(slot) = self.quanta.begins(now) {
            self.quantum(slot, now, out);
        }
        if !self.by_deadline.is_empty() || self.seats.occupant.iter().any(|task| *task != NONE) {
            out.wake(self.quanta.next(now));
        }
    }

    fn is_deliberately_idle(&self, place: Place) -> bool {
        self.deliberate.contains(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phantom_tasks_take_the_spare_utilization() {
        let ms = Duration::from_millis;
        // 003, Fig. 2: utilization 1.5 of 2; one phantom quantum in two.
        let timings =
            [(1, 2), (1, 4), (1, 4), (2, 8), (2, 8)].map(|(e, p)| Timing::implicit(ms(e), ms(p)));
        let phantoms = Phantoms::of(&timings, 2, ms(1));
        assert_eq!((phantoms.whole, phantoms.e, phantoms.p), (0, 1, 2));
        assert_eq!(Phantoms::of(&timings, 4, ms(1)).whole, 2);
        let full = [Timing::implicit(ms(2), ms(2)); 2];
        assert_eq!(Phantoms::of(&full, 2, ms(1)).eligible(0), 0);
        assert_eq!(Phantoms::of(&full, 1, ms(1)).eligible(0), 0, "overutilized");
        // What a job leaves of its last quantum is not spare: this set fills two processors.
        let us = Duration::from_micros;
        let rounded = [Timing::implicit(us(1_100), us(2_900)); 2];
        assert_eq!(Phantoms::of(&rounded, 2, ms(1)).eligible(0), 0);
    }
}
