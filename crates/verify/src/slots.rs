//! Reservations: whole quanta on any processor (PD2), and servers that take turns in every slot
//! (NPS-F, C-NPS-F).

use crate::certificate::{Number, Q, Turn};
use crate::claim::{Task, q, utilization};
use crate::costs::quantum;
use crate::place::Here;

/// D = p ≥ e, without blocking or jitter.
fn is_plain(t: &Task) -> bool {
    t.deadline == t.period && t.wcet <= t.period && !t.is_delayed()
}

/// PD2 misses no deadline if jobs have whole quanta, no more than their periods, are released at
/// the start of quanta, and U ≤ m (Anderson, Srinivasan 2004).
pub fn fit(here: &Here<'_>, quanta: &[Number], total: &Number) -> Result<(), String> {
    require!(quanta.len() == here.tasks.len(), "not every task has its quanta");
    for (k, (task, Number(count))) in here.tasks.iter().zip(quanta).enumerate() {
        let phase = &here.set.read.tasks[here.ids[k]].phase_ns.0;
        let is_whole = |time: &Q| (time / quantum()).is_integer();
        let are_whole = [phase, &task.period, &task.wcet].into_iter().all(is_whole);
        let fits = count * quantum() == task.wcet && are_whole && is_plain(task);
        require!(fits, "`{}` does not have whole quanta", here.name(k));
    }
    let sum = utilization(&here.tasks);
    require!(sum == total.0 && sum <= q(here.m), "U is {sum}, of {}", here.m);
    Ok(())
}

/// Do the turns of every server hold what its tasks ask for, by EDF within?
/// Of a time t ≥ δ·S, with δ = ⌊min p/S⌋, turns of x in every slot of S are t·δ·x/((δ + 1)·S − x)
/// at least, and the tasks ask for U·t at most (Bletsas, Andersson 2011).
pub fn serve(
    here: &Here<'_>, Number(slot): &Number, server_of: &[usize], turns: &[Turn],
) -> Result<(), String> {
    for (at, turn) in turns.iter().enumerate() {
        // No processor serves two at once, and no two processors one.
        let is_apart = |other: &Turn| {
            let differs = other.processor != turn.processor && other.server != turn.server;
            differs || other.until_ns.0 <= turn.from_ns.0 || turn.until_ns.0 <= other.from_ns.0
        };
        let is_inside = turn.from_ns.0 <= turn.until_ns.0 && turn.until_ns.0 <= *slot;
        let is_alone = here.cpus.contains(&turn.processor) && turns[..at].iter().all(is_apart);
        require!(is_inside && is_alone, "turn {at} is not within the slot, or not apart");
    }
    require!(server_of.len() == here.tasks.len(), "not every task has its server");
    for server in server_of {
        let inside = here.tasks.iter().zip(server_of).filter(|(_, other)| *other == server);
        let tasks: Vec<Task> = inside.map(|(task, _)| task.clone()).collect();
        let served = turns.iter().filter(|turn| turn.server == *server);
        let x: Q = served.map(|turn| &turn.until_ns.0 - &turn.from_ns.0).sum();
        let shortest = tasks.iter().map(|t| t.period.clone()).min().unwrap_or_default();
        require!(shortest >= *slot && slot > &q(0), "a period is shorter than the slot");
        let slots = (shortest / slot).floor();
        let enough = utilization(&tasks) * ((&slots + q(1)) * slot - &x) <= slots * &x;
        require!(enough && tasks.iter().all(is_plain), "server {server} is not served long enough");
    }
    Ok(())
}
