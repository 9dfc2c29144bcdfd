//! PD²: proportionate fairness on m processors, quantum by quantum (002 §2.2.2 and reference [7]
//! there).
//!
//! Each job of e quanta in p is cut into e subtasks; subtask i (from 1) may run in the window from
//! ⌊(i − 1) p / e⌋ to ⌈i p / e⌉ after the release. Of the subtasks whose window is open those run
//! that come first by: earlier end of window; overlapping the next window (b-bit); later group
//! deadline (tasks of at least one half); lower task index.
//!
//! Assumes implicit deadlines, and periods and phases that are multiples of the quantum; WCETs are
//! rounded up to quanta. A release in the midst of a quantum counts from the next boundary.
//!
//! Where an assignment reserves quanta, e is what it reserves. A job that is done before leaves its
//! other subtasks out, and the rest of its last quantum idle: PD² is optimal where subtasks are
//! absent, too (generalized intra-sporadic tasks; Srinivasan, Anderson, Journal of Computer and
//! System Sciences 72 (2006)).

use crate::catalog::{Info, Order, Tests};
use crate::place::Nearness;
use crate::plan::{Plan, Route, Setup};
use crate::quantum::{Quanta, Seats};
use crate::queue::{Queue, key, task_of};
use crate::spec::Spec;
use crate::{Decisions, DomainId, Event, Job, NONE, Policy};
use model::{ClusterSpec, Duration, Error, Instant, Result, TaskId};

/// What is known of it.
pub static INFO: Info = Info {
    name: "pd2",
    summary: "proportionate fair, quantum-driven",
    parameters: "`pd2:quantum=1ms`",
    keys: &["quantum"],
    quantum_driven: true,
    unjudged: &["quantum"],
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Named("PD2"),
    soft: Tests::Named("PD2"),
    suggested: &["pd2"],
    tried: &["pd2"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Pd2;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let quantum = spec.duration("quantum")?.unwrap_or(setup.quantum);
    let weights = weights(setup, quantum)?;
    let clusters = setup.platform.clusters(ClusterSpec::Global)?;
    let domains = setup.domains(&clusters, |_, cpus| {
        let near = Nearness::of(setup.platform, cpus);
        Ok(Pd2::new(weights.clone(), quantum, near, cpus.len()))
    })?;
    Ok(Plan {
        domains,
        route: Route::Fixed(vec![DomainId(0); setup.set.len()]),
    })
}

/// Periods must stay below this many quanta, so that windows are computed in 64 bits.
const LONGEST: u64 = 1 << 31;

/// The weights of a set in quanta.
fn weights(setup: &Setup<'_>, quantum: Duration) -> Result<Vec<Weight>> {
    let q = quantum.nanos();
    let timings = setup.in_quanta(INFO.name, quantum)?;
    setup
        .set
        .ids()
        .map(|id| {
            let t = timings[id.index()];
            let phase = setup.set.details(id).map_or(Duration::ZERO, |d| d.phase);
            let refuse = |cause: String| {
                Err(Error::new(cause)
                    .at(format!("policy `pd2`, {}", setup.set.name(id)))
                    .remedy("choose another quantum, policy or task set"))
            };
            if !t.has_implicit_deadline() {
                return refuse(format!(
                    "the deadline {} is not the period {}",
                    t.deadline, t.period
                ));
            }
            for (what, time) in [("period", t.period), ("phase", phase)] {
                if time.nanos() % q != 0 {
                    return refuse(format!(
                        "the {what} {time} is not a multiple of the quantum {quantum}"
                    ));
                }
            }
            if t.period.nanos() / q >= LONGEST {
                return refuse(format!(
                    "the period {} is longer than 2^31 quanta",
                    t.period
                ));
            }
            Ok(Weight {
                e: t.wcet.nanos().div_ceil(q),
                p: t.period.nanos() / q,
            })
        })
        .collect()
}

/// A weight e / p in quanta, 0 < e ≤ p.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    e: u64,
    p: u64,
}

impl Weight {
    /// When the window of subtask `i` (from 1) opens, after the release of its job.
    #[inline]
    fn opens(self, i: u64) -> u64 {
        (i - 1) * self.p / self.e
    }

    /// When it closes.
    #[inline]
    fn closes(self, i: u64) -> u64 {
        (i * self.p).div_ceil(self.e)
    }

    /// Priority of subtask `i` of a job released at slot `base`.
    #[inline]
    fn key(self, i: u64, base: u64, task: TaskId) -> u128 {
        let closes = self.closes(i);
        let overlaps = !(i * self.p).is_multiple_of(self.e);
        // How far this window could push the next ones, at most: the distance to the group
        // deadline. It counts only where windows overlap, and for tasks of at least one half.
        let cascade = if overlaps && 2 * self.e >= self.p {
            let light = self.p - self.e;
            let group = ((closes * light).div_ceil(self.p) * self.p).div_ceil(light);
            u32::MAX - 1 - u32::try_from(group - closes).unwrap_or(u32::MAX - 1)
        } else {
            u32::MAX
        };
        key((base + closes) << 1 | u64::from(!overlaps), cascade, task)
    }
}

/// PD² on the processors of one domain.
#[derive(Clone, Debug)]
pub struct Pd2 {
    quanta: Quanta,
    weights: Vec<Weight>,
    /// By task: the quantum from which its job counts.
    base: Vec<u64>,
    /// By task: its next subtask, from 1.
    subtask: Vec<u64>,
    /// Subtasks whose window is open, by priority.
    open: Queue,
    /// Subtasks whose window opens later, by when.
    later: Queue,
    seats: Seats,
    chosen: Vec<u32>,
}

impl Pd2 {
    fn new(weights: Vec<Weight>, quantum: Duration, near: Nearness, places: usize) -> Self {
        let tasks = weights.len();
        Pd2 {
            quanta: Quanta::new(quantum),
            base: vec![0; tasks],
            subtask: vec![1; tasks],
            open: Queue::new(tasks),
            later: Queue::new(tasks),
            seats: Seats::new(near, places, tasks),
            chosen: Vec::with_capacity(places),
            weights,
        }
    }

    /// The next subtask of a task waits for its window, or for its turn.
    #[inline]
    fn enter(&mut self, task: TaskId, slot: u64) {
        let (weight, i) = (self.weights[task.index()], self.subtask[task.index()]);
        let base = self.base[task.index()];
        let opens = base + weight.opens(i);
        if opens <= slot {
            self.open.push(weight.key(i, base, task));
        } else {
            self.later.push(key(opens, 0, task));
        }
    }

    fn quantum(&mut self, slot: u64, out: &mut impl Decisions) {
        for place in 0..self.seats.occupant.len() {
            let task = self.seats.occupant[place];
            if task != NONE {
                self.subtask[task as usize] += 1;
                self.enter(TaskId(task), slot);
            }
        }
        while let Some(first) = self.later.peek().filter(|k| (k >> 64) as u64 <= slot) {
            self.later.pop();
            let task = task_of(first);
            let (weight, i) = (self.weights[task.index()], self.subtask[task.index()]);
            self.open.push(weight.key(i, self.base[task.index()], task));
        }
        self.chosen.clear();
        while self.chosen.len() < self.seats.occupant.len() {
            let Some(best) = self.open.pop() else { break };
            self.chosen.push(task_of(best).0);
        }
        self.seats.seat(&self.chosen, out);
    }
}

impl Policy for Pd2 {
    #[inline]
    fn is_quantum_driven(&self) -> bool {
        true
    }

    #[inline]
    fn boundary(&self, from: Instant) -> Option<Instant> {
        Some(self.quanta.boundary(from))
    }

    #[inline]
    fn happen(&mut self, event: Event, _now: Instant) {
        self.quanta.happen(event);
        match event {
            Event::Ready(Job { task, release, .. }) => {
                self.base[task.index()] = self.quanta.from(release);
                self.subtask[task.index()] = 1;
                // Taken in at the next boundary, which is this one where the clock comes late to
                // it.
                self.later.push(key(self.base[task.index()], 0, task));
            }
            Event::Done(task) | Event::Exhausted(task) => {
                self.open.remove(task);
                self.later.remove(task);
                self.seats.leave(task);
            }
            Event::Timer => {}
        }
    }

    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if let Some(slot) = self.quanta.begins(now) {
            self.quantum(slot, out);
        }
        // While anybody runs or waits for its turn every boundary counts; else the next one at
        // which a window opens.
        if !self.open.is_empty() || self.seats.occupant.iter().any(|task| *task != NONE) {
            out.wake(self.quanta.next(now));
        } else if let Some(first) = self.later.peek() {
            out.wake(
                self.quanta
                    .at((first >> 64) as u64)
                    .max(self.quanta.next(now)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_group_deadlines_are_those_of_the_literature() {
        // The standard example of weight 8/11: windows overlap but at the end of the period; group
        // deadlines 4, 8, 11.
        let w = Weight { e: 8, p: 11 };
        let windows: Vec<(u64, u64)> = (1..=8).map(|i| (w.opens(i), w.closes(i))).collect();
        assert_eq!(
            windows,
            [
                (0, 2),
                (1, 3),
                (2, 5),
                (4, 6),
                (5, 7),
                (6, 9),
                (8, 10),
                (9, 11)
            ]
        );
        let group = |i: u64| {
            let tie = (w.key(i, 0, TaskId(0)) >> 32) as u32;
            w.closes(i) + u64::from(u32::MAX - 1 - tie)
        };
        // The last window of a job overlaps none, so that its group deadline plays no part.
        assert_eq!(
            (1..=7).map(group).collect::<Vec<_>>(),
            [4, 4, 8, 8, 8, 11, 11]
        );
    }

    #[test]
    fn overlap_goes_before_none_and_a_longer_cascade_before_a_shorter() {
        let (heavy, light, whole) = (
            Weight { e: 8, p: 11 },
            Weight { e: 2, p: 5 },
            Weight { e: 1, p: 2 },
        );
        // All close at 2, 3 and 2 after their release; only the second overlaps and is light.
        assert!(
            heavy.key(1, 0, TaskId(9)) < whole.key(1, 0, TaskId(0)),
            "b-bit"
        );
        assert!(
            heavy.key(2, 0, TaskId(9)) < light.key(1, 0, TaskId(0)),
            "group deadline"
        );
    }
}
