//! The scheduler that most policies share: of the ready jobs of a cluster of k processors, the k of
//! highest priority run.
//!
//! Global (one cluster), clustered, and with one processor a cluster partitioned scheduling (002
//! §2.2.2, §2.2.3); what differs is the [`Rank`] of a job. A job that runs stays where it is; a job
//! that is chosen anew goes where it last ran if that processor is free, else to the free one that
//! shares the nearest cache.
//!
//! Assumes that the rank of a job is fixed while it is ready.

use crate::place::{Nearness, Places};
use crate::quantum::Quanta;
use crate::queue::{Queue, is_nobody, task_of};
use crate::tournament::{Tree, select_key};
use crate::{Decisions, Event, Job, KeyedBy, Keys, Place, Policy};
use model::{Duration, Instant, TaskId};
use std::hint::select_unpredictable;
use std::sync::Arc;

/// The priority of a job.
pub trait Rank {
    /// Its key, made by [`key`](crate::queue::key): the smallest runs first.
    ///
    /// Priority and tie alone must tell the jobs of a domain apart: of equal ones it is not known
    /// who is the worst. Where nothing else does, the tie is the index of the task.
    fn key(&self, job: &Job) -> u128;

    /// The same order as data; `None`: it cannot be said so.
    ///
    /// Override it where the key is made of a class, the deadline or release, and a tie.
    fn keys(&self) -> Option<Keys> {
        None
    }
}

/// Earliest deadline first; equal deadlines by earlier release, then by lower task index.
///
/// Of two jobs with one deadline the one with the longer relative deadline was released earlier:
/// the order of ties is the same for all jobs of a task and is found once.
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

    /// For `tasks` tasks, with equal deadlines broken by the lower task index alone, as some
    /// figures have it.
    pub fn with_ties_by_index(tasks: usize) -> Self {
        Edf {
            tie: places_when_sorted(tasks, |_| ()),
        }
    }
}

impl Rank for Edf {
    #[inline]
    fn key(&self, job: &Job) -> u128 {
        crate::queue::key(job.deadline.nanos(), self.tie[job.task.index()], job.task)
    }

    fn keys(&self) -> Option<Keys> {
        Some(Keys {
            tie: self.tie.to_vec(),
            ..Keys::by(KeyedBy::Deadline)
        })
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
        crate::queue::key(0, self.level[job.task.index()], job.task)
    }

    fn keys(&self) -> Option<Keys> {
        Some(Keys {
            tie: self.level.to_vec(),
            ..Keys::by(KeyedBy::Priority)
        })
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
/// Invariant between decisions: no waiting job ranks above a running one, and none waits while a
/// place is free.
#[derive(Clone, Debug)]
pub struct Cluster<R> {
    rank: R,
    near: Nearness,
    /// Decide only at quantum boundaries; `None`: whenever something happens.
    quanta: Option<Quanta>,
    /// Jobs that became ready since the last decision. Most of them run at once, and never wait.
    fresh: Vec<u128>,
    /// Ready jobs that do not run, best first.
    waiting: Queue,
    /// By place, the job that runs there, worst first (keys by [`inverted`]). What a free place has
    /// is left over from its last job and means nothing.
    running: Tree,
    free: Places,
    free_count: usize,
    /// By task.
    seats: Vec<Seat>,
    /// The jobs that are chosen in one decision, some of them from those that wait; here so that a
    /// decision allocates nothing.
    chosen: Vec<u128>,
    /// The jobs that are chosen in the order in which they get places; as long as there are places.
    order: Vec<u128>,
}

/// Where the job of a task runs and where a job of it last ran, or [`Place::NONE`].
#[derive(Clone, Copy, Debug)]
struct Seat {
    place: Place,
    last: Place,
}

impl<R: Rank> Cluster<R> {
    /// A cluster of `places` processors for a set of `tasks` tasks. `quantum`: decide only at its
    /// multiples.
    pub fn new(
        rank: R,
        near: Nearness,
        places: usize,
        tasks: usize,
        quantum: Option<Duration>,
    ) -> Self {
        let nowhere = Seat {
            place: Place::NONE,
            last: Place::NONE,
        };
        Cluster {
            rank,
            near,
            quanta: quantum.map(Quanta::new),
            fresh: Vec::with_capacity(places.max(tasks)),
            waiting: Queue::new(tasks),
            running: Tree::new(places),
            free: Places::all(places),
            free_count: places,
            seats: vec![nowhere; tasks],
            chosen: Vec::with_capacity(places),
            order: vec![0; places],
        }
    }

    /// A job became ready, with this key.
    #[inline(always)]
    pub fn enter(&mut self, key: u128) {
        self.fresh.push(key);
    }

    /// A job is no longer ready.
    #[inline(always)]
    pub fn leave(&mut self, task: TaskId) {
        let seat = &mut self.seats[task.index()];
        if seat.place == Place::NONE {
            self.leave_queue(task);
        } else {
            let place = std::mem::replace(&mut seat.place, Place::NONE);
            self.free.insert(place);
            self.free_count += 1;
        }
    }

    #[cold]
    fn leave_queue(&mut self, task: TaskId) {
        if !self.waiting.remove(task) {
            self.fresh.retain(|key| task_of(*key) != task);
        }
    }

    #[inline(always)]
    fn occupy(&mut self, key: u128, place: Place, out: &mut impl Decisions) {
        let task = task_of(key);
        debug_assert!(
            self.is_told_apart(key),
            "two jobs have one priority and one tie"
        );
        self.free.remove(place);
        self.free_count -= 1;
        self.seats[task.index()] = Seat { place, last: place };
        self.running.set(place.index(), inverted(key));
        out.run(place, task);
    }

    /// Does no job that runs have the priority and the tie of this one?
    fn is_told_apart(&self, key: u128) -> bool {
        let running = self.seats.iter().filter(|seat| seat.place != Place::NONE);
        running
            .map(|seat| inverted(self.running.key_of(seat.place.index())))
            .all(|other| other >> 32 != key >> 32)
    }

    /// Chooses the jobs that are to run and gives them places.
    #[inline(always)]
    pub fn choose(&mut self, out: &mut impl Decisions) {
        if let [only] = self.fresh[..] {
            if self.free_count == 0 {
                self.fresh.clear();
                return self.challenge(only, out);
            }
            if self.waiting.is_empty() {
                self.fresh.clear();
                return self.settle(only, out);
            }
        } else if self.fresh.is_empty() {
            if self.free_count == 0 || self.waiting.is_empty() {
                return;
            }
            if self.free_count == 1 {
                // There is no choice of places either.
                if let (Some(best), Some(place)) = (self.waiting.pop(), self.free.lowest()) {
                    self.occupy(best, place, out);
                }
                return;
            }
        }
        self.choose_many(out);
    }

    /// One more job is ready, and every place is taken.
    #[inline(always)]
    fn challenge(&mut self, key: u128, out: &mut impl Decisions) {
        let worst = inverted(self.running.best());
        if worst < key {
            self.waiting.push(key);
            return;
        }
        let seat = &mut self.seats[task_of(worst).index()];
        let place = std::mem::replace(&mut seat.place, Place::NONE);
        self.free.insert(place);
        self.free_count += 1;
        self.waiting.push(worst);
        self.occupy(key, place, out);
    }

    /// Several jobs became ready, or several places are free: of the fresh jobs those are left that
    /// run now, and waiting ones added.
    #[inline(never)]
    fn choose_many(&mut self, out: &mut impl Decisions) {
        sort(&mut self.fresh);
        if self.free_count == 0 {
            self.displace();
        } else if !self.waiting.is_empty() || self.fresh.len() > self.free_count {
            self.choose_best();
        }
        self.settle_chosen(out);
    }

    /// Every place is taken: the best of the fresh jobs, in order, meets the worst that runs, the
    /// second best the second worst, and so on, until one is beaten.
    #[inline(always)]
    fn displace(&mut self) {
        let mut better = 0;
        while let Some(key) = self.fresh.get(better) {
            let displaced = self.running.best();
            if is_nobody(displaced) || inverted(displaced) < *key {
                break;
            }
            better += 1;
            self.make_way(inverted(displaced));
        }
        for key in &self.fresh[better..] {
            self.waiting.push(*key);
        }
        self.fresh.truncate(better);
    }

    /// A running job leaves its place and waits.
    #[inline(always)]
    fn make_way(&mut self, worst: u128) {
        let seat = &mut self.seats[task_of(worst).index()];
        let place = std::mem::replace(&mut seat.place, Place::NONE);
        self.running.set(place.index(), Tree::NEVER);
        self.free.insert(place);
        self.free_count += 1;
        self.waiting.push(worst);
    }

    /// Some places are free: merges who is fresh, in order, with who waits, and lets the worst
    /// running jobs make way.
    #[inline(always)]
    fn choose_best(&mut self) {
        if self.fresh.len() + self.waiting.len() > self.free_count {
            // What is left over in free places must not be taken for a job.
            for place in self.free.iter() {
                self.running.set(place.index(), Tree::NEVER);
            }
        }
        let mut fresh = 0;
        loop {
            let first = self.fresh.get(fresh).copied().unwrap_or(Tree::NEVER);
            let waits = self.waiting.peek().unwrap_or(Tree::NEVER);
            let best = first.min(waits);
            if is_nobody(best) {
                break;
            }
            let mut displaced = Tree::NEVER;
            if self.free_count == self.chosen.len() {
                // Every free place is spoken for: only the worst running job can make way.
                displaced = self.running.best();
                if is_nobody(displaced) || inverted(displaced) < best {
                    break;
                }
            }
            if waits < first {
                self.waiting.pop();
            } else {
                fresh += 1;
            }
            if !is_nobody(displaced) {
                self.make_way(inverted(displaced));
            }
            self.chosen.push(best);
        }
        for key in self.fresh.drain(..).skip(fresh) {
            self.waiting.push(key);
        }
        self.fresh.append(&mut self.chosen);
    }

    /// Gives a job the nearest free place.
    #[inline(always)]
    fn settle(&mut self, key: u128, out: &mut impl Decisions) {
        let last = self.seats[task_of(key).index()].last;
        if let Some(place) = self.near.nearest(&self.free, last) {
            self.occupy(key, place, out);
        }
    }

    /// First those that can return to where they last ran, then the others, each in the order of
    /// rank.
    ///
    /// Who returns cannot be guessed, so there is no branch on it: those who do are put in order
    /// from the front, the others from the back.
    #[inline(always)]
    fn settle_chosen(&mut self, out: &mut impl Decisions) {
        let count = self.fresh.len();
        let (mut returning, mut others) = (0, 0);
        for key in self.fresh.drain(..) {
            let last = self.seats[task_of(key).index()].last;
            let returns = self.free.take(last);
            self.order[select_unpredictable(returns, returning, count - 1 - others)] = key;
            returning += usize::from(returns);
            others += usize::from(!returns);
        }
        for index in 0..count {
            let returns = index < returning;
            let key =
                self.order[select_unpredictable(returns, index, count - 1 + returning - index)];
            let last = self.seats[task_of(key).index()].last;
            let nearest = self.near.nearest(&self.free, last).unwrap_or(last);
            self.occupy(key, select_unpredictable(returns, last, nearest), out);
        }
    }
}

/// Sorts a few keys; two to four of them without a branch.
#[inline(always)]
fn sort(keys: &mut [u128]) {
    let in_order = |a: u128, b: u128| {
        let swap = b < a;
        (select_key(swap, b, a), select_key(swap, a, b))
    };
    match keys {
        [] | [_] => {}
        [a, b] => (*a, *b) = in_order(*a, *b),
        [a, b, c] => {
            let (low, high) = in_order(*b, *c);
            let (first, low) = in_order(*a, low);
            (*b, *c) = in_order(low, high);
            *a = first;
        }
        [a, b, c, d] => {
            ((*a, *b), (*c, *d)) = (in_order(*a, *b), in_order(*c, *d));
            ((*a, *c), (*b, *d)) = (in_order(*a, *c), in_order(*b, *d));
            (*b, *c) = in_order(*b, *c);
        }
        _ => keys.sort_unstable(),
    }
}

impl<R: Rank> Policy for Cluster<R> {
    #[inline]
    fn is_quantum_driven(&self) -> bool {
        self.quanta.is_some()
    }

    #[inline]
    fn boundary(&self, from: Instant) -> Option<Instant> {
        self.quanta.as_ref().map(|quanta| quanta.boundary(from))
    }

    fn keys(&self) -> Option<Keys> {
        // Between quanta the order says nothing.
        self.rank.keys().filter(|_| self.quanta.is_none())
    }

    #[inline(always)]
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

    #[inline(always)]
    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if let Some(quanta) = &mut self.quanta
            && quanta.begins(now).is_none()
        {
            // Between boundaries only note that the next one is needed.
            if !self.waiting.is_empty() || !self.fresh.is_empty() {
                out.wake(quanta.next(now));
            }
            return;
        }
        self.choose(out);
    }
}

/// The key under which a running job is kept: the worst first, the task still in the lowest bits.
/// Its own inverse.
#[inline]
const fn inverted(key: u128) -> u128 {
    key ^ (u128::MAX << 32)
}
