//! The scheduler that most policies share: of the ready jobs of a cluster of k processors, the k of highest priority run.
//!
//! Global (one cluster), clustered, and with one processor a cluster partitioned scheduling (002 §2.2.2, §2.2.3); what
//! differs is the [`Rank`] of a job. A job that runs stays where it is; a job that is chosen anew goes where it last ran if
//! that processor is free, else to the free one that shares the nearest cache.
//!
//! Assumes that the rank of a job is fixed while it is ready.

use crate::heap::{Heap, task_of};
use crate::place::{Nearness, Places};
use crate::quantum::Quanta;
use crate::{Decisions, Event, Job, NONE, Policy};
use model::{Duration, Instant, TaskId};
use std::sync::Arc;

/// The priority of a job.
pub trait Rank {
    /// Its key, made by [`key`](crate::heap::key): the smallest runs first. Unique among the jobs of a domain.
    fn key(&self, job: &Job) -> u128;
}

/// Earliest deadline first; equal deadlines by earlier release, then by lower task index.
///
/// Of two jobs with one deadline the one with the longer relative deadline was released earlier: the order of ties is the
/// same for all jobs of a task and is found once.
#[derive(Clone, Debug)]
pub struct Edf {
    tie: Arc<[u32]>,
}

impl Edf {
    /// For tasks with these relative deadlines.
    pub fn new(deadlines: impl Iterator<Item = Duration>) -> Self {
        let deadlines: Vec<Duration> = deadlines.collect();
        Edf {
            tie: places_when_sorted(deadlines.len(), |task| std::cmp::Reverse(deadlines[task])),
        }
    }

    /// For `tasks` tasks, with equal deadlines broken by the lower task index alone, as some figures have it.
    pub fn with_ties_by_index(tasks: usize) -> Self {
        Edf {
            tie: places_when_sorted(tasks, |_| ()),
        }
    }
}

impl Rank for Edf {
    #[inline]
    fn key(&self, job: &Job) -> u128 {
        crate::heap::key(job.deadline.nanos(), self.tie[job.task.index()], job.task)
    }
}

/// One priority a task.
#[derive(Clone, Debug)]
pub struct Fixed {
    level: Arc<[u32]>,
}

impl Fixed {
    /// Priorities in the order of `by` (smallest first), ties by the lower task index.
    pub fn by<K: Ord>(tasks: usize, by: impl Fn(usize) -> K) -> Self {
        Fixed {
            level: places_when_sorted(tasks, by),
        }
    }
}

impl Rank for Fixed {
    #[inline]
    fn key(&self, job: &Job) -> u128 {
        crate::heap::key(0, self.level[job.task.index()], job.task)
    }
}

/// For each of `count` things, its place when they are sorted by `by`, ties in their order.
fn places_when_sorted<K: Ord>(count: usize, by: impl Fn(usize) -> K) -> Arc<[u32]> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|i| by(*i));
    let mut place = vec![0; count];
    for (at, i) in order.into_iter().enumerate() {
        place[i] = at as u32;
    }
    place.into()
}

/// The jobs of highest rank run, one on each processor of a cluster.
///
/// Invariant between decisions: no waiting job ranks above a running one, and none waits while a place is free.
#[derive(Clone, Debug)]
pub struct Cluster<R> {
    rank: R,
    near: Nearness,
    /// Decide only at quantum boundaries; `None`: whenever something happens.
    quanta: Option<Quanta>,
    /// Ready jobs that do not run, best first.
    waiting: Heap,
    /// Ready jobs that run, worst first (keys by [`inverted`]).
    running: Heap,
    free: Places,
    free_count: usize,
    /// By task: where its job runs, or [`NONE`].
    place_of: Vec<u32>,
    /// By task: where a job of it last ran, or [`NONE`].
    last: Vec<u32>,
    /// The jobs that are chosen in one decision; here so that a decision allocates nothing.
    chosen: Vec<u128>,
}

impl<R: Rank> Cluster<R> {
    /// A cluster of `places` processors for a set of `tasks` tasks. `quantum`: decide only at its multiples.
    pub fn new(rank: R, near: Nearness, places: usize, tasks: usize, quantum: Option<Duration>) -> Self {
        Cluster {
            rank,
            near,
            quanta: quantum.map(Quanta::new),
            waiting: Heap::new(tasks),
            running: Heap::new(tasks),
            free: Places::all(places),
            free_count: places,
            place_of: vec![NONE; tasks],
            last: vec![NONE; tasks],
            chosen: Vec::with_capacity(places),
        }
    }

    /// A job became ready, with this key.
    #[inline]
    pub fn enter(&mut self, key: u128) {
        self.waiting.push(key);
    }

    /// A job is no longer ready.
    #[inline]
    pub fn leave(&mut self, task: TaskId) {
        let place = self.place_of[task.index()];
        if place == NONE {
            self.waiting.remove(task);
        } else {
            self.running.remove(task);
            self.vacate(task, place);
        }
    }

    #[inline]
    fn vacate(&mut self, task: TaskId, place: u32) {
        self.place_of[task.index()] = NONE;
        self.free.insert(place);
        self.free_count += 1;
    }

    #[inline]
    fn occupy(&mut self, key: u128, place: u32, out: &mut impl Decisions) {
        let task = task_of(key);
        self.free.remove(place);
        self.free_count -= 1;
        self.place_of[task.index()] = place;
        self.last[task.index()] = place;
        self.running.push(inverted(key));
        out.run(place, task);
    }

    /// Chooses the jobs that are to run and gives them places.
    #[inline]
    pub fn choose(&mut self, out: &mut impl Decisions) {
        while let Some(best) = self.waiting.peek() {
            if self.free_count == self.chosen.len() {
                // Every free place is spoken for: only the worst running job can make way.
                match self.running.peek() {
                    Some(worst) if best < inverted(worst) => {
                        let victim = task_of(worst);
                        self.running.pop();
                        self.vacate(victim, self.place_of[victim.index()]);
                        self.waiting.pop();
                        self.waiting.push(inverted(worst));
                    }
                    _ => break,
                }
            } else {
                self.waiting.pop();
            }
            self.chosen.push(best);
        }
        if let [only] = self.chosen[..] {
            self.chosen.clear();
            self.settle(only, out);
        } else if !self.chosen.is_empty() {
            self.settle_all(out);
        }
    }

    /// Gives a job the nearest free place.
    #[inline]
    fn settle(&mut self, key: u128, out: &mut impl Decisions) {
        let last = self.last[task_of(key).index()];
        if let Some(place) = self.near.nearest(&self.free, last) {
            self.occupy(key, place, out);
        }
    }

    /// First those that can return to where they last ran, then the others, each in the order of rank.
    fn settle_all(&mut self, out: &mut impl Decisions) {
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.retain(|key| {
            let last = self.last[task_of(*key).index()];
            let returns = last != NONE && self.free.contains(last);
            if returns {
                self.occupy(*key, last, out);
            }
            !returns
        });
        for key in chosen.drain(..) {
            self.settle(key, out);
        }
        self.chosen = chosen;
    }
}

impl<R: Rank> Policy for Cluster<R> {
    #[inline]
    fn is_quantum_driven(&self) -> bool {
        self.quanta.is_some()
    }

    #[inline]
    fn happen(&mut self, event: Event, _now: Instant) {
        if let Some(quanta) = &mut self.quanta {
            quanta.happen(event);
        }
        match event {
            Event::Ready(job) => self.enter(self.rank.key(&job)),
            Event::Done(task) | Event::Exhausted(task) => self.leave(task),
            Event::Timer => {}
        }
    }

    #[inline]
    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if let Some(quanta) = &mut self.quanta
            && quanta.begins(now).is_none()
        {
            // Between boundaries only note that the next one is needed.
            if !self.waiting.is_empty() {
                out.wake(quanta.next(now));
            }
            return;
        }
        self.choose(out);
    }
}

/// The key under which a running job is kept: the worst first, the task still in the lowest bits. Its own inverse.
#[inline]
const fn inverted(key: u128) -> u128 {
    key ^ (u128::MAX << 32)
}
