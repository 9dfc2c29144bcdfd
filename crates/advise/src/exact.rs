//! All placements of a set, by branch and bound: tasks are placed one after the other, and a branch
//! ends where a place fails its test, or where what is left to place exceeds what is left of the
//! processors.
//!
//! On single processors the tests are exact and sustainable: what fails fails with more tasks, so
//! that no placement is missed. Processors that are alike are tried once while they are empty. The
//! tests of clusters are not known to be sustainable. There, each complete placement is tested, if
//! there are few; else branches end as on processors, and the search is no proof.

use crate::Searched;
use crate::ground::Ground;
use crate::pack::{ROUNDING, with};
use std::collections::HashMap;

/// What a search came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// By task, its place.
    Found(Vec<u32>),
    /// There is none. `proven`: no placement was left out.
    None {
        /// No placement was left out.
        proven: bool,
    },
    /// It ended before all were tried.
    Limit,
}

/// The most complete placements on clusters of which each is tested.
const MOST_COMPLETE: u64 = 2_000;

struct Search<'g> {
    ground: &'g dyn Ground,
    order: &'g [u32],
    kinds: Vec<usize>,
    /// Is a branch ended where a place fails?
    prunes: bool,
    /// By place (the first of its kind) and tasks.
    known: HashMap<(usize, u128), bool>,
    inside: Vec<Vec<u32>>,
    masks: Vec<u128>,
    left: Vec<f64>,
    /// By place in the order, the utilization of that task and those after it.
    rest: Vec<f64>,
    steps: u64,
    limit: u64,
    goes_on: &'g dyn Fn() -> bool,
    searched: &'g mut Searched,
}

/// Looks for a placement, in at most `limit` steps.
pub(crate) fn search(
    ground: &dyn Ground,
    order: &[u32],
    limit: u64,
    searched: &mut Searched,
    goes_on: &dyn Fn() -> bool,
) -> Outcome {
    if order.len() > u128::BITS as usize {
        return Outcome::Limit;
    }
    let sizes = ground.sizes();
    let complete = (sizes.len() as u64).checked_pow(order.len() as u32);
    let is_small = complete.is_some_and(|all| all <= MOST_COMPLETE.min(limit));
    let prunes = ground.is_monotone() || !is_small;
    let loads = ground.utilizations();
    let mut rest = vec![0.0; order.len() + 1];
    for (at, task) in order.iter().enumerate().rev() {
        rest[at] = rest[at + 1] + loads[*task as usize];
    }
    let mut search = Search {
        kinds: ground.kinds(),
        prunes,
        known: HashMap::new(),
        inside: vec![Vec::new(); sizes.len()],
        masks: vec![0; sizes.len()],
        left: sizes.iter().map(|s| f64::from(*s)).collect(),
        rest,
        steps: 0,
        limit,
        ground,
        order,
        goes_on,
        searched,
    };
    match search.place(0) {
        Some(true) => {
            let mut place_of = vec![0; ground.tasks()];
            for (place, tasks) in search.inside.iter().enumerate() {
                for task in tasks {
                    place_of[*task as usize] = place as u32;
                }
            }
            Outcome::Found(place_of)
        }
        Some(false) => Outcome::None {
            proven: ground.is_monotone() || !prunes,
        },
        None => Outcome::Limit,
    }
}

impl Search<'_> {
    /// Places the tasks from `at` on; `None`: it has to end.
    fn place(&mut self, at: usize) -> Option<bool> {
        self.steps += 1;
        if self.steps > self.limit || (self.steps.is_multiple_of(64) && !(self.goes_on)()) {
            return None;
        }
        let Some(&task) = self.order.get(at) else {
            self.searched.placements += 1;
            let all = 0..self.inside.len();
            return Some(self.prunes || all.into_iter().all(|place| self.holds(place)));
        };
        let free: f64 = self.left.iter().map(|left| left.max(0.0)).sum();
        if self.rest[at] > free + ROUNDING {
            return Some(false);
        }
        // Full places first: what holds is found soon.
        let mut places: Vec<usize> = (0..self.inside.len()).collect();
        places.sort_by(|a, b| self.left[*a].total_cmp(&self.left[*b]));
        let load = self.ground.utilizations()[task as usize];
        let mut empty: Vec<usize> = Vec::new();
        for place in places {
            if !self.ground.may(task, place) {
                continue;
            }
            if self.inside[place].is_empty() {
                if empty.contains(&self.kinds[place]) {
                    continue;
                }
                empty.push(self.kinds[place]);
            }
            if self.prunes && self.left[place] + ROUNDING < load {
                continue;
            }
            let before = std::mem::take(&mut self.inside[place]);
            self.inside[place] = with(&before, task);
            self.masks[place] |= 1 << task;
            let before_left = self.left[place];
            self.left[place] -= load;
            if !self.prunes || self.holds(place) {
                match self.place(at + 1) {
                    Some(false) => {}
                    ended => return ended,
                }
            }
            self.left[place] = before_left;
            self.masks[place] &= !(1 << task);
            self.inside[place] = before;
        }
        Some(false)
    }

    /// Does a place hold the tasks that are there now?
    fn holds(&mut self, place: usize) -> bool {
        let key = (self.kinds[place], self.masks[place]);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.searched.tests += 1;
        let holds = self.ground.holds(place, &self.inside[place]);
        self.known.insert(key, holds);
        holds
    }
}
