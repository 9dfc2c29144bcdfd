//! WCETs with overheads: what a job has to be given, from the overheads and from who shares its
//! place (`docs/overheads.md`).
//! One delay: e′ = e + D. By piece: e′ = e + D*, the longest delay of a job that it can preempt. All
//! seven overheads: with c = e + a·scheduling + b·switch + i·IPI + its own delay + D*, interrupts
//! come at most w/T + 1 times in w time units, so that e′ = (c + Σ o)/(1 − Σ o/T) for the tick and
//! all releases of the place.

use crate::certificate::{Costs, Q, Rule, Says, With};
use crate::claim::{Order, Set, q};
use crate::place::Here;
use num_traits::Zero;

/// Checks the form of the costs; their values are taken as given, but for a cache delay that the
/// claim names: each has to be that.
pub fn check(set: &Set<'_>, costs: &Costs, with: &With) -> Result<(), String> {
    let code = [&costs.scheduling_ns, &costs.context_switch_ns, &costs.ipi_latency_ns];
    let are_free = [&costs.release_ns, &costs.tick_ns].iter().chain(&code).all(|o| o.0.is_zero());
    let is_table = costs.delays_ns.len() == set.tasks.len()
        && costs.delays_ns.iter().all(|row| row.len() == costs.ways.len());
    let is_one = set.read.rule == Rule::OneDelay;
    let fits = match set.read.rule {
        Rule::OneDelay => are_free && costs.ways.is_empty() && costs.delays_ns.is_empty(),
        Rule::ByPiece => are_free && is_table && costs.delay_ns.0.is_zero(),
        _ => is_table && costs.delay_ns.0.is_zero() && !costs.tick_period_ns.0.is_zero(),
    };
    let mut delays = costs.delays_ns.iter().flatten().chain(is_one.then_some(&costs.delay_ns));
    let are_named = with.cpmd_ns.as_ref().is_none_or(|n| delays.all(|delay| delay.0 == n.0));
    require!(fits && are_named, "the costs are not those of the rule, or of the margin");
    Ok(())
}

/// Compares the WCETs of a place with what they have to be: never less. A place that is said to be
/// refused must not be helped to that: there they are at most two nanoseconds more (rounding), and
/// the largest time of a document stands for all that are longer.
pub fn compare(here: &Here<'_>, costs: &Costs, says: Says) -> Result<(), String> {
    for (k, needed) in inflated(here, costs)?.into_iter().enumerate() {
        let (known, stated) = (needed.clone().min(q(u64::MAX)), &here.tasks[k].wcet);
        let holds = match says {
            Says::Yes => needed <= *stated,
            _ => known <= *stated && *stated <= q(u64::MAX).min(&known + q(2)),
        };
        require!(holds, "`{}` has {stated} ns and needs {}", here.name(k), needed.ceil());
    }
    Ok(())
}

/// The quantum of `pd2`, a millisecond.
pub fn quantum() -> Q {
    q(1_000_000)
}

/// By task of a place the least WCET that holds its overheads.
fn inflated(here: &Here<'_>, costs: &Costs) -> Result<Vec<Q>, String> {
    let given = here.ids.iter().map(|task| &here.set.tasks[*task]);
    let wcets = given.clone().map(|t| &t.wcet);
    let (rule, endless) = (here.set.read.rule, q(u64::MAX) + q(1));
    if rule == Rule::OneDelay {
        let usable = quantum() - &costs.delay_ns.0;
        let needs = |wcet: &Q| match here.order {
            // The budgets of all slices together hold it, and each quantum pays it.
            Order::Slices => q(0),
            Order::Quanta if usable <= q(0) => endless.clone(),
            Order::Quanta => (wcet / &usable).ceil() * quantum(),
            _ => wcet + &costs.delay_ns.0,
        };
        return Ok(wcets.map(needs).collect());
    }
    let own = own_delays(here, costs)?;
    let disturbed = disturbed(here, &own);
    if rule == Rule::ByPiece {
        return Ok(wcets.zip(disturbed).map(|(wcet, other)| wcet + other).collect());
    }
    // How often a job pays. A hard guarantee has to bear what the kernel is in the midst of, on
    // several processors also that of the processor which is left.
    let hard = here.set.is_hard() && rule == Rule::AllOverheads;
    let (scheduling, switches, calls) = match (hard, here.m > 1) {
        (false, false) => (2, 2, 0),
        (false, true) => (2, 2, 1),
        (true, false) => (3, 3, 0),
        (true, true) => (6, 5, 2),
    };
    let fixed = &costs.scheduling_ns.0 * q(scheduling)
        + &costs.context_switch_ns.0 * q(switches)
        + &costs.ipi_latency_ns.0 * q(calls)
        + &costs.tick_ns.0
        + &costs.release_ns.0 * q(here.ids.len());
    let stolen = given.map(|t| &costs.release_ns.0 / &t.period).sum::<Q>();
    let left = q(1) - &costs.tick_ns.0 / &costs.tick_period_ns.0 - stolen;
    if left <= Q::zero() {
        return Ok(vec![endless; here.ids.len()]);
    }
    let all = wcets.zip(own).zip(disturbed);
    Ok(all.map(|((wcet, own), other)| (wcet + own + other + &fixed) / &left).collect())
}

/// By task of a place the longest delay with which it can resume there.
fn own_delays(here: &Here<'_>, costs: &Costs) -> Result<Vec<Q>, String> {
    let mut ways = vec!["preemption"];
    for (at, from) in here.cpus.iter().enumerate() {
        ways.extend(here.cpus[at + 1..].iter().map(|to| here.set.way(*from, *to)));
    }
    let column = |way: &&str| costs.ways.iter().position(|known| known == way);
    let columns = ways.iter().map(column).collect::<Option<Vec<usize>>>();
    let columns = columns.ok_or("a way to resume there has no cache delay")?;
    let delays = |task: usize| columns.iter().map(move |c| costs.delays_ns[task][*c].0.clone());
    Ok(here.ids.iter().map(|task| delays(*task).max().unwrap_or_default()).collect())
}

/// By task of a place the longest delay of another task that goes on where one of its jobs
/// completes: of any other, or by piece of those that it can preempt there.
fn disturbed(here: &Here<'_>, delays: &[Q]) -> Vec<Q> {
    let by_piece = here.set.read.rule == Rule::ByPiece;
    // No job waits on several processors where there are no more tasks than these.
    let waits = !by_piece || here.m == 1 || delays.len() > here.m;
    // With jitter or priorities of its own a task with a longer deadline may go first.
    let is_ordered = by_piece && here.order != Order::Any && !here.set.is_unordered();
    let can_preempt = |k: usize, other: usize| match (is_ordered, here.order.is_fixed()) {
        (false, _) => true,
        (true, true) => here.ranks[k] < here.ranks[other],
        (true, false) => here.m > 1 || here.tasks[k].deadline < here.tasks[other].deadline,
    };
    let longest = |k: usize| {
        let others = (0..delays.len()).filter(|i| *i != k && waits && can_preempt(k, *i));
        others.map(|other| delays[other].clone()).max().unwrap_or_default()
    };
    (0..delays.len()).map(longest).collect()
}
