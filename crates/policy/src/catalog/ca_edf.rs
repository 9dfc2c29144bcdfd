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
//! Phantom tasks ([`phantoms`](crate::phantoms)) stand for the spare utilization, less the part of
//! every processor that `reserve` keeps for overheads and overruns: none by default, as in the paper.
//!
//! A working set that is larger than the cache counts as one of its size (003 §3.2: estimates are
//! capped at it), so that it fits where it is alone. Where an assignment reserves quanta, phantom
//! tasks take what the reservations leave.
//!
//! Working set sizes are given, one for all tasks of a group, or found while jobs run
//! ([`profiler`](crate::profiler), 003 §3.2): then the engine has to count misses. A job keeps its
//! place in the promotion queue by the size that was known when it became ready; what a quantum
//! holds is counted by the sizes that are known at its beginning.
//!
//! Assumes: the tasks of a group have one period, and are at most as many as processors (003 §2).
//! Equal sizes: earlier deadline, then lower task index.

use crate::catalog::{Info, Order, Tests};
use crate::cluster::{Edf, Rank};
use crate::mtts::{groups, misfit};
use crate::phantoms::{FINEST_RESERVE, Phantoms};
use crate::place::{Nearness, Places};
use crate::plan::{Plan, Route, Setup};
use crate::profiler::Profiler;
use crate::quantum::{Quanta, Seats};
use crate::queue::{Queue, task_of};
use crate::spec::Spec;
use crate::{Decisions, DomainId, Event, Job, NONE, Place, Policy};
use model::{Bytes, ClusterSpec, Instant, Platform, Ratio, Result, TaskId, TaskSet};

/// What is known of it.
pub static INFO: Info = Info {
    name: "ca-edf",
    summary: "cache-aware global EDF: keeps the working sets of a quantum within the shared cache",
    parameters: "`ca-edf:cache=8MiB` for another size than the platform's shared cache, \
                 `wss=profiled` to find working sets while jobs run, `reserve=0.05` to idle less, \
                 `quantum=1ms`",
    keys: &["cache", "wss", "reserve", "quantum"],
    quantum_driven: true,
    unjudged: &["quantum"],
    free: &["cache", "wss", "reserve"],
    unfit: |set, processors| misfit(set, processors).map(|(_, cause)| cause),
    lacks,
    note,
    order: |_| Ok(Order::Deadlines),
    soft: Tests::Named("WC"),
    suggested: &["ca-edf"],
    tried: &["ca-edf:cache=4MiB"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = CaEdf;

/// Bits of a rank in a key of the promotion queue.
const RANK_BITS: u32 = 31;

/// Bytes of a line where the platform names none.
const USUAL_LINE: Bytes = Bytes::new(64);

/// The bound holds for all sizes and reserves; what is reserved is told.
fn note(spec: &Spec) -> Result<Option<String>> {
    let reserve = Parameters::of(spec)?.reserve;
    Ok(Some(match reserve.num() {
        0 => {
            "phantom tasks may take all the capacity that the set leaves: nothing is reserved for \
              overheads and overruns; `ca-edf:reserve=0.05` keeps a twentieth of each processor"
                .to_owned()
        }
        _ => format!(
            "phantom tasks leave {} % of each processor to overheads and overruns",
            100.0 * reserve.to_f64()
        ),
    }))
}

/// The bound holds for any working sets and any cache; to run, they have to be known.
fn lacks(spec: &Spec, set: &TaskSet, platform: &Platform) -> Option<String> {
    let parameters = Parameters::of(spec).ok()?;
    let unknown = match parameters.profiled {
        true => None,
        false => set.ids().find(|id| set.wss(*id).is_none()),
    };
    let task = unknown.map(|id| {
        let name = set.name(id);
        format!("a working set of each task (`wss`; `{name}` has none), or `wss=profiled`")
    });
    let has_cache = parameters.cache.is_some() || platform.shared_cache().is_some();
    let cache = (!has_cache).then(|| "the size of the shared cache, as in `cache=8MiB`".to_owned());
    let both: Vec<String> = task.into_iter().chain(cache).collect();
    (!both.is_empty()).then(|| both.join(", and "))
}

/// What is written behind the name, but for the quantum.
struct Parameters {
    cache: Option<Bytes>,
    profiled: bool,
    reserve: Ratio,
}

impl Parameters {
    fn of(spec: &Spec) -> Result<Self> {
        let profiled = match spec.value("wss") {
            None => false,
            Some("profiled") => true,
            Some(other) => {
                return Err(spec
                    .error(format!("`wss={other}` is no way to know working sets"))
                    .remedy("write `wss=profiled`, or leave it out and give `wss` in the tasks"));
            }
        };
        let reserve = spec.parsed::<Ratio>("reserve")?.unwrap_or(Ratio::ZERO);
        if reserve > Ratio::ONE || reserve.den() > FINEST_RESERVE {
            return Err(spec
                .error(format!("a reserve of {reserve} is no part of a processor"))
                .remedy("write a part from 0 to 1 such as `reserve=0.05`"));
        }
        Ok(Parameters {
            cache: spec.parsed("cache")?,
            profiled,
            reserve,
        })
    }
}

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let parameters = Parameters::of(spec)?;
    let shared = setup.platform.shared_cache();
    let cache = match parameters.cache.or(shared.and_then(|c| c.size)) {
        Some(cache) => cache,
        None => {
            return Err(spec
                .error(format!(
                    "`{}` describes no cache that all processors share",
                    setup.platform.name
                ))
                .remedy("write its size: `ca-edf:cache=8MiB`"));
        }
    };
    let line = shared.and_then(|c| c.line);
    let line = line.map_or(USUAL_LINE, |line| Bytes::new(u64::from(line)));
    let quantum = spec.duration("quantum")?.unwrap_or(setup.quantum);
    let (group_of, wss) = groups(setup, cache, parameters.profiled)?;
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
            learner: parameters
                .profiled
                .then(|| Learner::new(Profiler::new(&group_of, cache, line), tasks, cpus.len())),
            rank: Edf::new(setup.set.timings().iter().map(|t| t.deadline)),
            size_rank: wss
                .iter()
                .map(|w| sizes.partition_point(|s| s < w) as u32)
                .collect(),
            coarse: (u64::BITS - cache.get().leading_zeros()).saturating_sub(RANK_BITS),
            group_seen: vec![u64::MAX; wss.len()],
            group_of: group_of.clone(),
            wss: wss.clone(),
            deadline: vec![0; tasks],
            by_deadline: Queue::new(tasks),
            by_promotion: Queue::new(tasks),
            promotion: vec![u128::MAX; tasks],
            promotions: 0,
            decisions: 0,
            phantoms: Phantoms::of(&reserved, cpus.len() as u64, quantum, parameters.reserve),
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

/// What is learned of working sets, and of whose jobs.
#[derive(Clone, Debug)]
struct Learner {
    profiler: Profiler,
    /// By task: the number of its job, and how often that missed the cache, once it is complete.
    number: Vec<u64>,
    misses: Vec<Option<u64>>,
    /// The tasks that ran in the last quantum and are not done.
    before: Vec<u32>,
}

impl Learner {
    fn new(profiler: Profiler, tasks: usize, processors: usize) -> Self {
        Learner {
            profiler,
            number: vec![0; tasks],
            misses: vec![None; tasks],
            before: Vec::with_capacity(processors),
        }
    }

    /// A quantum begins: the jobs that lost their processor, and all if the cache thrashes, tell
    /// nothing.
    fn quantum(&mut self, chosen: &[u32], thrashes: bool) {
        let lost = self.before.iter().filter(|task| !chosen.contains(task));
        let thrashed = chosen.iter().filter(|_| thrashes);
        for task in lost.chain(thrashed) {
            let number = self.number[*task as usize];
            self.profiler.spoil(TaskId(*task), number);
        }
    }

    /// A job is done. Its multithreaded task and the new size, if that has changed.
    fn done(&mut self, task: TaskId) -> Option<(usize, u64)> {
        let misses = self.misses[task.index()].take();
        let number = self.number[task.index()];
        let group = self.profiler.complete(task, number, misses)?;
        Some((group as usize, self.profiler.wss(group)))
    }
}

/// The scheduler on the processors that share the cache.
#[derive(Clone, Debug)]
pub struct CaEdf {
    quanta: Quanta,
    cache: u64,
    /// Where working sets are found while jobs run.
    learner: Option<Learner>,
    rank: Edf,
    /// By group: its place among the working set sizes, its size, and the last decision in which it
    /// was chosen.
    size_rank: Vec<u32>,
    /// Sizes that are found have their ranks without so many bits.
    coarse: u32,
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

    /// A job is done: its multithreaded task may have another size from now on.
    fn learn(&mut self, task: TaskId) {
        if let Some((group, size)) = self.learner.as_mut().and_then(|l| l.done(task)) {
            self.wss[group] = size;
            // Rank and size are the same up to the precision of ranks.
            self.size_rank[group] = (size >> self.coarse) as u32;
        }
    }

    fn quantum(&mut self, slot: u64, now: Instant, out: &mut impl Decisions) {
        if let Some(learner) = &mut self.learner {
            learner.before.clear();
            let ran = self.seats.occupant.iter().filter(|task| **task != NONE);
            learner.before.extend(ran);
        }
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
        if let Some(learner) = &mut self.learner {
            learner.quantum(&self.chosen, utilized > self.cache);
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
                if let Some(learner) = &mut self.learner {
                    learner.number[task] = job.number;
                }
                let size = self.size_rank[self.group_of[task] as usize];
                self.deadline[task] = job.deadline.nanos();
                self.promotion[task] = 1 << 127
                    | u128::from(size & (u32::MAX >> 1)) << 96
                    | u128::from(job.deadline.nanos()) << 32
                    | u128::from(job.task.0);
                self.enter(job.task.0);
            }
            Event::Done(task) | Event::Exhausted(task) => {
                self.learn(task);
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

    fn profiler(&self) -> Option<&Profiler> {
        self.learner.as_ref().map(|learner| &learner.profiler)
    }

    fn counted(&mut self, task: TaskId, misses: u64) {
        if let Some(learner) = &mut self.learner {
            learner.misses[task.index()] = Some(misses);
        }
    }
}
