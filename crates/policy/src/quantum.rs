//! What quantum-driven policies share: knowing a boundary when it comes, and who sits where from
//! one quantum to the next.

use crate::place::{Nearness, Places};
use crate::{Decisions, Event, NONE, Place};
use model::{Duration, Instant, TaskId};

/// Quantum boundaries. In real time a timer fires late: what counts is that it fired, not what the
/// clock says.
#[derive(Clone, Debug)]
pub struct Quanta {
    length: u64,
    fired: bool,
}

impl Quanta {
    /// Quanta of this length; not zero.
    pub fn new(length: Duration) -> Self {
        Quanta {
            length: length.nanos().max(1),
            fired: false,
        }
    }

    /// Notes the timer.
    #[inline]
    pub fn happen(&mut self, event: Event) {
        self.fired |= event == Event::Timer;
    }

    /// The number of the quantum that begins now, if one does.
    #[inline]
    pub fn begins(&mut self, now: Instant) -> Option<u64> {
        let fired = std::mem::take(&mut self.fired);
        let slot = now.nanos() / self.length;
        (fired || slot * self.length == now.nanos()).then_some(slot)
    }

    /// When the first quantum begins at or after an instant.
    #[inline]
    pub fn boundary(&self, from: Instant) -> Instant {
        self.at(self.from(from))
    }

    /// When the quantum after this instant begins.
    #[inline]
    pub fn next(&self, now: Instant) -> Instant {
        self.at(now.nanos() / self.length + 1)
    }

    /// When a quantum begins.
    #[inline]
    pub fn at(&self, slot: u64) -> Instant {
        Instant::from_nanos(slot.saturating_mul(self.length))
    }

    /// The first quantum that begins at or after an instant.
    #[inline]
    pub fn from(&self, instant: Instant) -> u64 {
        instant.nanos().div_ceil(self.length)
    }
}

/// Who runs at which place. A job that is chosen again keeps its place; others go where they last
/// ran if that is free, else to the nearest free place.
#[derive(Clone, Debug)]
pub struct Seats {
    near: Nearness,
    /// By place: the task, or [`NONE`].
    pub occupant: Vec<u32>,
    /// By task: where it last ran, or [`Place::NONE`].
    last: Vec<Place>,
    free: Places,
    newcomers: Vec<u32>,
    none: Places,
}

impl Seats {
    /// For this many places and tasks.
    pub fn new(near: Nearness, places: usize, tasks: usize) -> Self {
        Seats {
            near,
            occupant: vec![NONE; places],
            last: vec![Place::NONE; tasks],
            free: Places::all(places),
            newcomers: Vec::with_capacity(places),
            none: Places::none(places),
        }
    }

    /// A job is no longer there.
    #[inline]
    pub fn leave(&mut self, task: TaskId) {
        let last = self.last[task.index()];
        if last != Place::NONE && self.occupant[last.index()] == task.0 {
            self.occupant[last.index()] = NONE;
        }
    }

    /// Lets the chosen tasks run, at most as many as there are places and each once, and no others.
    pub fn seat(&mut self, chosen: &[u32], out: &mut impl Decisions) {
        self.free.clone_from(&self.none);
        for place in Place::all(self.occupant.len()) {
            self.free.insert(place);
        }
        self.newcomers.clear();
        for task in chosen {
            let last = self.last[*task as usize];
            if last != Place::NONE && self.occupant[last.index()] == *task {
                self.free.remove(last);
            } else {
                self.newcomers.push(*task);
            }
        }
        let mut newcomers = std::mem::take(&mut self.newcomers);
        newcomers.retain(|task| {
            let last = self.last[*task as usize];
            let returns = last != Place::NONE && self.free.contains(last);
            if returns {
                self.sit(*task, last, out);
            }
            !returns
        });
        for task in newcomers.drain(..) {
            if let Some(place) = self.near.nearest(&self.free, self.last[task as usize]) {
                self.sit(task, place, out);
            }
        }
        self.newcomers = newcomers;
        for place in Place::all(self.occupant.len()) {
            if self.free.contains(place) && self.occupant[place.index()] != NONE {
                self.occupant[place.index()] = NONE;
                out.idle(place);
            }
        }
    }

    #[inline]
    fn sit(&mut self, task: u32, place: Place, out: &mut impl Decisions) {
        self.free.remove(place);
        self.occupant[place.index()] = task;
        self.last[task as usize] = place;
        out.run(place, TaskId(task));
    }
}
