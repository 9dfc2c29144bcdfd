//! Packing with the test of the policy at each placement: several orders of tasks, and orders that
//! learn from failure.
//!
//! `check` packs by decreasing utilization. Here tasks also come by density, deadline, period and
//! WCET; and a task that found no place is moved to the front of the order and all are packed
//! again, until an order comes twice (the squeaky wheel of Joslin and Clements 1999).

use crate::Searched;
use crate::ground::Ground;
use analyze::partition::Fit;
use model::{TaskSet, Timing};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A placement with how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    /// By task, its place.
    pub place_of: Vec<u32>,
    /// In words.
    pub found_by: String,
}

/// The fits that are tried. Next fit finds nothing that first fit does not, but by chance.
const FITS: [Fit; 3] = [Fit::Best, Fit::First, Fit::Worst];

/// Packs tasks in an order; or the first task that no place takes.
fn pack(
    ground: &dyn Ground,
    kinds: &[usize],
    order: &[u32],
    fit: Fit,
    searched: &mut Searched,
) -> Result<Vec<u32>, u32> {
    searched.placements += 1;
    let sizes = ground.sizes();
    let loads = ground.utilizations();
    let mut inside: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    let mut left: Vec<f64> = sizes.iter().map(|s| f64::from(*s)).collect();
    let mut place_of = vec![0; ground.tasks()];
    let mut places: Vec<usize> = (0..sizes.len()).collect();
    for &task in order {
        places.sort_unstable();
        match fit {
            Fit::Best => places.sort_by(|a, b| left[*a].total_cmp(&left[*b])),
            Fit::Worst => places.sort_by(|a, b| left[*b].total_cmp(&left[*a])),
            Fit::First | Fit::Next => {}
        }
        let mut refused: Vec<usize> = Vec::new();
        let taken = places.iter().copied().find(|&place| {
            let is_known = inside[place].is_empty() && refused.contains(&kinds[place]);
            if is_known || !ground.may(task, place) || left[place] + ROUNDING < loads[task as usize]
            {
                return false;
            }
            let here = with(&inside[place], task);
            searched.tests += 1;
            let takes = ground.holds(place, &here);
            if !takes && here.len() == 1 {
                refused.push(kinds[place]);
            }
            takes
        });
        let place = taken.ok_or(task)?;
        inside[place] = with(&inside[place], task);
        left[place] -= loads[task as usize];
        place_of[task as usize] = place as u32;
    }
    Ok(place_of)
}

/// What sums of utilizations may be off by; tests decide exactly.
pub(crate) const ROUNDING: f64 = 1e-9;

/// The tasks with one more, in ascending order.
pub(crate) fn with(tasks: &[u32], task: u32) -> Vec<u32> {
    let mut all = Vec::with_capacity(tasks.len() + 1);
    let at = tasks.partition_point(|t| *t < task);
    all.extend_from_slice(&tasks[..at]);
    all.push(task);
    all.extend_from_slice(&tasks[at..]);
    all
}

/// An order of tasks with its words.
struct Order {
    words: &'static str,
    tasks: Vec<u32>,
}

/// The orders of a set. Tasks that may go to fewer places come first in each.
fn orders(ground: &dyn Ground, set: &TaskSet) -> Vec<Order> {
    type Key = fn(&Timing, &Timing) -> Ordering;
    let keys: [(&'static str, Key); 5] = [
        ("largest utilization first", |a, b| {
            b.utilization().cmp(&a.utilization())
        }),
        ("largest density first", |a, b| {
            b.density().cmp(&a.density())
        }),
        ("shortest deadline first", |a, b| {
            a.deadline.cmp(&b.deadline)
        }),
        ("shortest period first", |a, b| a.period.cmp(&b.period)),
        ("largest WCET first", |a, b| b.wcet.cmp(&a.wcet)),
    ];
    let places = ground.sizes().len();
    let choices = |task: u32| (0..places).filter(|p| ground.may(task, *p)).count();
    let mut orders: Vec<Order> = Vec::new();
    for (words, key) in keys {
        let timings = set.timings();
        let mut tasks: Vec<u32> = (0..timings.len() as u32).collect();
        tasks.sort_by(|a, b| key(&timings[*a as usize], &timings[*b as usize]));
        tasks.sort_by_key(|task| choices(*task));
        if !orders.iter().any(|o| o.tasks == tasks) {
            orders.push(Order { words, tasks });
        }
    }
    orders
}

/// The tasks in the order in which exact search places them.
pub(crate) fn heaviest_first(ground: &dyn Ground, set: &TaskSet) -> Vec<u32> {
    orders(ground, set).swap_remove(0).tasks
}

/// Different placements that hold, of all orders and fits.
pub(crate) fn all(ground: &dyn Ground, set: &TaskSet, searched: &mut Searched) -> Vec<Placement> {
    let kinds = ground.kinds();
    let mut found: Vec<Placement> = Vec::new();
    for order in orders(ground, set) {
        for fit in FITS {
            let Ok(place_of) = pack(ground, &kinds, &order.tasks, fit, searched) else {
                continue;
            };
            if !found.iter().any(|p| p.place_of == place_of) {
                let found_by = format!("{}, {fit}", order.words);
                found.push(Placement { place_of, found_by });
            }
        }
    }
    found
}

/// A placement by orders that learn from failure, at most `rounds` of them for each fit; `goes_on`
/// is asked before each.
pub(crate) fn learn(
    ground: &dyn Ground,
    set: &TaskSet,
    rounds: u32,
    searched: &mut Searched,
    goes_on: &dyn Fn() -> bool,
) -> Option<Placement> {
    let kinds = ground.kinds();
    for fit in FITS {
        let mut order = heaviest_first(ground, set);
        let mut seen = BTreeSet::new();
        for _ in 0..rounds {
            if !goes_on() || !seen.insert(order.clone()) {
                break;
            }
            match pack(ground, &kinds, &order, fit, searched) {
                Ok(place_of) => {
                    let found_by = format!("{fit}, tasks that found no place first");
                    return Some(Placement { place_of, found_by });
                }
                Err(failed) => {
                    order.retain(|task| *task != failed);
                    order.insert(0, failed);
                }
            }
        }
    }
    None
}
