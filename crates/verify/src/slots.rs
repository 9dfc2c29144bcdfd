//! Reservations: whole quanta on any processor (PD2), and servers that take turns in every slot
//! (NPS-F, C-NPS-F).

use crate::certificate::{Costs, Number, Proof, Q, Rule, Turn};
use crate::claim::{Task, q, utilization};
use crate::costs::{self, quantum};
use crate::place::Here;
use std::collections::{BTreeMap, BTreeSet};

/// D = p ≥ e, without blocking or jitter.
pub fn is_plain(t: &Task) -> bool {
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

/// A server of a place as a place of its own, and its turns.
fn servers<'a>(here: &Here<'a>) -> Result<Vec<(Here<'a>, Vec<&'a Turn>)>, String> {
    let Some(Proof::NpsF { servers: server_of, turns, .. }) = &here.place.proof else {
        return Err("servers have no turns".to_owned());
    };
    require!(server_of.len() == here.tasks.len(), "not every task has its server");
    let of = |server: usize| {
        let inside: Vec<usize> = (0..server_of.len()).filter(|k| server_of[*k] == server).collect();
        let turns: Vec<&Turn> = turns.iter().filter(|turn| turn.server == server).collect();
        let cpus: BTreeSet<u32> = turns.iter().map(|turn| turn.cpu).collect();
        let alone = Here {
            ids: inside.iter().map(|k| here.ids[*k]).collect(),
            tasks: inside.iter().map(|k| here.tasks[*k].clone()).collect(),
            m: cpus.len(),
            cpus: cpus.into_iter().collect(),
            is_server: true,
            ranks: vec![0; inside.len()],
            ..*here
        };
        (alone, turns)
    };
    let different: BTreeSet<usize> = server_of.iter().copied().collect();
    Ok(different.into_iter().map(of).collect())
}

/// By task of a place the least WCET with overheads: who shares a place are those of a server.
pub fn inflated(here: &Here<'_>, costs: &Costs) -> Result<Vec<Q>, String> {
    let mut needed = BTreeMap::new();
    for (server, _) in servers(here)? {
        needed.extend(server.ids.iter().copied().zip(costs::inflated(&server, costs)?));
    }
    Ok(needed.into_values().collect())
}

/// Do the turns of every server hold what its tasks ask for, by EDF within?
/// Of a time t ≥ δ·S, with δ = ⌊min p / S⌋, turns of x in every slot of S are t·δ·x/((δ + 1)·S − x)
/// at least (Bletsas, Andersson 2011). The tasks ask for U·t at most, and so do the releases that
/// interrupt them, one of each when t begins. Turns lose the switch to the server and the ticks.
pub fn serve(
    here: &Here<'_>, costs: &Costs, Number(slot): &Number, turns: &[Turn],
) -> Result<(), String> {
    for (at, turn) in turns.iter().enumerate() {
        // No processor serves two at once, and no two processors one.
        let is_apart = |other: &Turn| {
            let differs = other.cpu != turn.cpu && other.server != turn.server;
            differs || other.until_ns.0 <= turn.from_ns.0 || turn.until_ns.0 <= other.from_ns.0
        };
        let is_inside = turn.from_ns.0 <= turn.until_ns.0 && turn.until_ns.0 <= *slot;
        let is_alone = here.cpus.contains(&turn.cpu) && turns[..at].iter().all(is_apart);
        require!(is_inside && is_alone, "turn {at} is not within the slot, or not apart");
    }
    let all = servers(here)?;
    for (server, own) in &all {
        let tasks = &server.tasks;
        let length = |turn: &&Turn| &turn.until_ns.0 - &turn.from_ns.0;
        let is_left = own.len() != 1 || length(&own[0]) != *slot;
        let mut x = q(0);
        for length in own.iter().map(length) {
            x += (&length - lost(server, costs, is_left, &length)?).max(q(0));
        }
        let shortest = tasks.iter().map(|t| t.period.clone()).min().unwrap_or_default();
        require!(shortest >= *slot && slot > &q(0), "a period is shorter than the slot");
        // Others that have a turn on one of its processors.
        let is_near = |(other, _): &&(Here<'_>, _)| {
            !std::ptr::eq(other, server) && other.cpus.iter().any(|cpu| server.cpus.contains(cpu))
        };
        let near = all.iter().filter(is_near).flat_map(|(other, _)| &other.tasks);
        let release = &costs.release_ns.0;
        let rate: Q = near.clone().map(|t| release / &t.period).sum();
        let once = release * q(tasks.len() + near.count()) / &shortest;
        let asked = utilization(tasks) + rate + once;
        let slots = (shortest / slot).floor();
        let enough = asked * ((&slots + q(1)) * slot - &x) <= slots * &x;
        require!(enough && tasks.iter().all(is_plain), "a server is not served long enough");
    }
    Ok(())
}

/// What a turn of this length loses: a tick may have begun before it; and, if its processor serves
/// others as well, the switch to the server, with the longest delay of its tasks.
fn lost(server: &Here<'_>, costs: &Costs, is_left: bool, length: &Q) -> Result<Q, String> {
    let counts = match (server.is_charged_hard(), server.m > 1) {
        _ if !is_left => [0, 0, 0],
        (false, false) => [1, 1, 0],
        (false, true) => [1, 1, 1],
        (true, false) => [2, 2, 0],
        (true, true) => [5, 4, 1],
    };
    let mut lost = costs.sections(counts);
    if is_left && server.set.read.rule != Rule::OneDelay {
        let delay = |task: &usize| costs::delay(server, costs, *task, &server.cpus);
        let delays = server.ids.iter().map(delay).collect::<Result<Vec<Q>, _>>()?;
        lost += delays.into_iter().max().unwrap_or_default();
    }
    let tick = &costs.tick_ns.0;
    if *tick > q(0) {
        lost += tick * (((length + tick) / &costs.tick_period_ns.0).ceil() + q(1));
    }
    Ok(lost)
}
