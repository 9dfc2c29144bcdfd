//! WCETs with overheads: what a job has to be given, from the overheads and from who shares its
//! place (`docs/overheads.md`).
//!
//! One delay: e′ = e + D. By piece: e′ = e + D*, the longest delay of a job that it can preempt. All
//! seven overheads: with c = e + a·scheduling + b·switch + i·IPI + its own delay + D*, interrupts
//! come at most w/T + 1 times in w time units, so that e′ = (c + Σ o)/(1 − Σ o/T) for the tick and
//! all releases of the place.

use crate::certificate::{Costs, Place, Q, Rule, Says};
use crate::claim::{Order, Set, q};
use num_traits::Zero;

/// Checks the form of the costs; their values are taken as given.
pub fn check(set: &Set<'_>, costs: &Costs) -> Result<(), String> {
    let interrupts = [&costs.release_ns, &costs.tick_ns];
    let others = [&costs.scheduling_ns, &costs.context_switch_ns, &costs.ipi_latency_ns];
    let are_free = interrupts.into_iter().chain(others).all(|o| o.0.is_zero());
    let is_table = costs.delays_ns.len() == set.tasks.len()
        && costs.delays_ns.iter().all(|row| row.len() == costs.ways.len());
    let fits = match set.rule {
        Rule::OneDelay => are_free && costs.ways.is_empty() && costs.delays_ns.is_empty(),
        Rule::ByPiece => are_free && is_table && costs.delay_ns.0.is_zero(),
        _ => is_table && costs.delay_ns.0.is_zero() && !costs.tick_period_ns.0.is_zero(),
    };
    fits.then_some(()).ok_or_else(|| "the costs are not those of the rule".to_owned())
}

/// Compares the WCETs of a place with what they have to be.
///
/// Never less than that: a longer WCET allows each job more than it needs. A place that is said to
/// be refused must not be helped to that: its WCETs are at most two nanoseconds more (rounding).
pub fn compare(
    set: &Set<'_>, order: Order, costs: &Costs, place: &Place, says: Says,
) -> Result<(), String> {
    // No time suffices, or none that a document can hold: the largest time stands for it.
    let endless = q(u64::MAX);
    let needed = inflated(set, order, costs, place)?;
    for ((task, stated), needed) in place.tasks.iter().zip(&place.inflated_ns).zip(needed) {
        let needed = needed.map_or_else(|| endless.clone(), |n| n.min(endless.clone()));
        let most = if says == Says::Yes { endless.clone() } else { &needed + q(2) };
        if stated.0 < needed || stated.0 > most {
            let (name, least) = (set.name(*task), needed.ceil());
            return Err(format!("`{name}` is given {} ns, and needs {least}", stated.0));
        }
    }
    Ok(())
}

/// By task of a place the least WCET that holds its overheads; nothing if no time suffices.
fn inflated(
    set: &Set<'_>, order: Order, costs: &Costs, place: &Place,
) -> Result<Vec<Option<Q>>, String> {
    let wcets = || place.tasks.iter().map(|task| &set.tasks[*task].wcet);
    if set.rule == Rule::OneDelay {
        return Ok(wcets().map(|wcet| Some(wcet + &costs.delay_ns.0)).collect());
    }
    let own = own_delays(set, costs, place)?;
    let disturbed = disturbed(set, order, place, &own);
    if set.rule == Rule::ByPiece {
        return Ok(wcets().zip(disturbed).map(|(wcet, other)| Some(wcet + other)).collect());
    }
    let hard = set.is_hard() && set.rule == Rule::AllOverheads;
    // How often a job pays. A hard guarantee has to bear what the kernel is in the midst of, on
    // several processors also that of the processor which is left.
    let (scheduling, switches, calls) = match (hard, place.processors.len() > 1) {
        (false, false) => (2, 2, 0),
        (false, true) => (2, 2, 1),
        (true, false) => (3, 3, 0),
        (true, true) => (6, 5, 2),
    };
    let mut fixed = &costs.scheduling_ns.0 * q(scheduling)
        + &costs.context_switch_ns.0 * q(switches)
        + &costs.ipi_latency_ns.0 * q(calls)
        + &costs.tick_ns.0;
    let mut left = q(1) - &costs.tick_ns.0 / &costs.tick_period_ns.0;
    for task in &place.tasks {
        fixed += &costs.release_ns.0;
        left -= &costs.release_ns.0 / &set.tasks[*task].period;
    }
    let all = wcets().zip(own).zip(disturbed);
    let needed = |((wcet, own), other)| (wcet + own + other + &fixed) / &left;
    Ok(all.map(|parts| (left > Q::zero()).then(|| needed(parts))).collect())
}

/// By task of a place the longest delay with which it can resume there.
fn own_delays(set: &Set<'_>, costs: &Costs, place: &Place) -> Result<Vec<Q>, String> {
    let mut ways = vec!["preemption"];
    for (at, from) in place.processors.iter().enumerate() {
        ways.extend(place.processors[at + 1..].iter().map(|to| set.way(*from, *to)));
    }
    let column = |way: &&str| costs.ways.iter().position(|known| known == way);
    let columns: Option<Vec<usize>> = ways.iter().map(column).collect();
    let columns = columns.ok_or("a way to resume there has no cache delay")?;
    let longest = |task: &usize| {
        let row = &costs.delays_ns[*task];
        columns.iter().map(|c| row[*c].0.clone()).max().unwrap_or_default()
    };
    Ok(place.tasks.iter().map(longest).collect())
}

/// By task of a place the longest delay of another task that goes on where one of its jobs
/// completes: of any other, or by piece of those that it can preempt there.
fn disturbed(set: &Set<'_>, order: Order, place: &Place, delays: &[Q]) -> Vec<Q> {
    let by_piece = set.rule == Rule::ByPiece;
    let several = place.processors.len() > 1;
    // No job waits where there are no more tasks than processors.
    if by_piece && several && place.tasks.len() <= place.processors.len() {
        return vec![Q::zero(); place.tasks.len()];
    }
    let ranks = order.ranks(set, &place.tasks);
    let deadline = |at: usize| &set.tasks[place.tasks[at]].deadline;
    // With jitter or priorities of its own a task with a longer deadline may go first.
    let is_ordered = by_piece && order != Order::Any && !set.is_unordered();
    let can_preempt = |k: usize, other: usize| match (is_ordered, order.is_fixed()) {
        (false, _) => true,
        (true, true) => ranks[k] < ranks[other],
        (true, false) => several || deadline(k) < deadline(other),
    };
    let longest = |k: usize| {
        let others = (0..delays.len()).filter(|other| *other != k && can_preempt(k, *other));
        others.map(|other| delays[other].clone()).max().unwrap_or_default()
    };
    (0..delays.len()).map(longest).collect()
}
