//! Orders of fixed priorities: on one processor the best there is (Audsley 1991), on several
//! together those that the field proposes, or all where there are few tasks.

use crate::question::Asked;
use crate::{Pace, Searched};
use analyze::policies::Places;
use model::{Result, TaskSet, Timing};
use policy::Spec;

/// Tasks in an order of priorities in which a processor holds them, the most urgent first; `None`:
/// there is none.
///
/// The lowest priority goes to a task that meets its deadline there, whatever the order of the
/// others; if none does, none does in any order (Audsley 1991). Response times with jitter and any
/// deadlines allow it: the interference of a task does not depend on its own priority.
pub(crate) fn audsley(places: &Places<'_>, place: usize, tasks: &[u32]) -> Option<Vec<u32>> {
    let mut left = tasks.to_vec();
    let mut order = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let at = (0..left.len()).rev().find(|at| {
            let mut tried = left.clone();
            let lowest = tried.remove(*at);
            tried.push(lowest);
            places.lowest_holds(place, &tried)
        })?;
        order.push(left.remove(at));
    }
    order.reverse();
    Some(order)
}

/// Priorities as task files have them, the larger the more urgent, from the orders of the places.
pub(crate) fn of_orders(count: usize, orders: &[Vec<u32>]) -> Vec<u32> {
    let mut priorities = vec![0; count];
    for order in orders {
        for (at, task) in order.iter().rev().enumerate() {
            priorities[*task as usize] = at as u32 + 1;
        }
    }
    priorities
}

/// The most tasks of which all orders are tried.
const ALL_ORDERS: usize = 6;

/// Priorities under which the tests of global fixed priorities hold a set, with their words.
///
/// # Errors
/// As [`analyze::policies::judge`].
pub(crate) fn global(
    asked: &Asked<'_>,
    spec: &Spec,
    searched: &mut Searched,
    pace: &Pace<'_>,
) -> Result<Option<(Vec<u32>, String)>> {
    let n = asked.set.len();
    let mut try_order = |order: &[u32]| -> Result<Option<Vec<u32>>> {
        searched.orders += 1;
        let priorities = of_orders(n, &[order.to_vec()]);
        let set = asked.set.with_priorities(&priorities)?;
        let holds = asked.with_set(&set).seek(spec)?.is_some();
        Ok(holds.then_some(priorities))
    };
    for (words, order) in proposed(asked.set, asked.platform.usable().len()) {
        if !pace.goes_on() {
            return Ok(None);
        }
        if let Some(found) = try_order(&order)? {
            return Ok(Some((found, words.to_owned())));
        }
    }
    if n > ALL_ORDERS {
        return Ok(None);
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    loop {
        if !pace.goes_on() {
            return Ok(None);
        }
        if let Some(found) = try_order(&order)? {
            return Ok(Some((found, "all orders of priorities".to_owned())));
        }
        if !next_permutation(&mut order) {
            searched.is_exact = true;
            return Ok(None);
        }
    }
}

/// Orders by D − k C (Davis, Burns 2011), T − k C (Andersson, Jonsson 2000), D − C and D.
fn proposed(set: &TaskSet, m: usize) -> Vec<(&'static str, Vec<u32>)> {
    let m = m as f64;
    let k = (m - 1.0 + (5.0 * m * m - 6.0 * m + 1.0).sqrt()) / (2.0 * m);
    let ns = |d: model::Duration| d.nanos() as f64;
    let keys =
        |key: &dyn Fn(&Timing) -> f64| -> Vec<f64> { set.timings().iter().map(key).collect() };
    let by = |keys: Vec<f64>| {
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_by(|a, b| keys[*a as usize].total_cmp(&keys[*b as usize]));
        order
    };
    let dkc = keys(&|t| ns(t.deadline) - k * ns(t.wcet));
    let tkc = keys(&|t| ns(t.period) - k * ns(t.wcet));
    let slack = keys(&|t| ns(t.deadline) - ns(t.wcet));
    vec![
        ("smallest D - k C first (DkC)", by(dkc)),
        ("smallest T - k C first (TkC)", by(tkc)),
        ("smallest D - C first", by(slack)),
    ]
}

/// The next order in lexicographic order; false after the last one.
fn next_permutation(order: &mut [u32]) -> bool {
    let mut ascents = (0..order.len().saturating_sub(1)).rev();
    let Some(at) = ascents.find(|at| order[*at] < order[at + 1]) else {
        return false;
    };
    let with = order.iter().rposition(|x| *x > order[at]).unwrap_or(at);
    order.swap(at, with);
    order[at + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_come_once() {
        let mut order = vec![0, 1, 2, 3];
        let mut count = 1;
        while next_permutation(&mut order) {
            count += 1;
        }
        assert_eq!((count, order), (24, vec![3, 2, 1, 0]));
    }

    #[test]
    fn the_first_of_an_order_gets_the_largest_number() {
        assert_eq!(of_orders(4, &[vec![2, 0], vec![1, 3]]), [1, 2, 2, 1]);
    }
}
