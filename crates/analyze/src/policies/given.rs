//! An assignment that is given: does it fit the set, the policy and the platform?

use super::subject::{Subject, Way};
use model::assignment::{Clustered, Slices, Slots, Turns};
use model::{Assignment, CpuId, CpuSet, Error, Platform, Result, TaskId, TaskSet};

/// Checks that an assignment is one of this set under this policy on this platform.
///
/// # Errors
/// It is not; says where.
pub(super) fn check(
    assignment: &Assignment,
    set: &TaskSet,
    platform: &Platform,
    policy: &Subject,
) -> Result<()> {
    let usable = platform.usable();
    let homes: Vec<CpuSet> = match (policy.way, assignment) {
        (Way::Clusters, Assignment::Clustered(c)) => {
            of_clusters(c, set, &usable, policy, platform)?
        }
        (Way::Turns { .. }, Assignment::Turns(turns)) => of_turns(turns, set, &usable)?,
        (Way::Slices { .. }, Assignment::Slices(slices)) => of_slices(slices, set, &usable)?,
        (Way::Slots { .. }, Assignment::Slots(slots)) => of_slots(slots, set, &usable)?,
        (Way::Quanta(quantum), Assignment::Quanta(quanta)) if quantum == quanta.quantum => {
            quanta.timings(set)?;
            processors(quanta.cpus.iter(), &usable)?;
            vec![quanta.cpus.clone(); set.len()]
        }
        _ => {
            return Err(
                unfit(format!("it is no assignment for `{policy}`")).remedy(format!(
                    "give one that `warmset check --policy {policy} --format json` has made"
                )),
            );
        }
    };
    for (id, home) in set.ids().zip(homes) {
        if let Some(cpus) = set.cpus(id).filter(|cpus| !home.is_subset(cpus)) {
            return Err(unfit(format!(
                "it lets `{}` run on processors {home}, and the task is kept to {cpus}",
                set.name(id)
            ))
            .remedy("change `cpus` of the task, or the assignment"));
        }
    }
    Ok(())
}

fn unfit(cause: String) -> Error {
    Error::new(format!("the assignment does not fit: {cause}"))
        .remedy("make it for this set and platform")
}

fn count(given: usize, set: &TaskSet) -> Result<()> {
    match given == set.len() {
        true => Ok(()),
        false => Err(unfit(format!(
            "it places {given} tasks, and the set has {}",
            set.len()
        ))),
    }
}

/// Each processor once, and all of them usable.
fn processors(cpus: impl Iterator<Item = CpuId>, usable: &CpuSet) -> Result<CpuSet> {
    let mut seen = CpuSet::new();
    for cpu in cpus {
        if !usable.contains(cpu) {
            return Err(unfit(format!(
                "it uses processor {cpu}, and those that can be used are {usable}"
            )));
        }
        if !seen.insert(cpu) {
            return Err(unfit(format!("it has processor {cpu} twice")));
        }
    }
    Ok(seen)
}

fn of_clusters(
    given: &Clustered,
    set: &TaskSet,
    usable: &CpuSet,
    policy: &Subject,
    platform: &Platform,
) -> Result<Vec<CpuSet>> {
    count(given.cluster_of.len(), set)?;
    processors(given.clusters.iter().flat_map(CpuSet::iter), usable)?;
    let known = platform.clusters(policy.clusters)?;
    if let Some(other) = given.clusters.iter().find(|c| !known.contains(c)) {
        return Err(unfit(format!(
            "processors {other} are no cluster of `{policy}`"
        )));
    }
    let home = |(index, c): (usize, &u32)| {
        given.clusters.get(*c as usize).cloned().ok_or_else(|| {
            unfit(format!(
                "it puts `{}` into cluster {c}, and it has {}",
                set.name(TaskId(index as u32)),
                given.clusters.len()
            ))
        })
    };
    given.cluster_of.iter().enumerate().map(home).collect()
}

fn of_turns(given: &Turns, set: &TaskSet, usable: &CpuSet) -> Result<Vec<CpuSet>> {
    count(given.tasks.len(), set)?;
    let known = processors(given.cpus.iter().copied(), usable)?;
    let mut homes = Vec::with_capacity(set.len());
    for (id, turn) in set.ids().zip(&given.tasks) {
        let home: CpuSet = [turn.first, turn.second].into_iter().collect();
        if !home.is_subset(&known) {
            return Err(unfit(format!(
                "`{}` takes turns on processors {home}, and the assignment has {known}",
                set.name(id)
            )));
        }
        // One that takes turns has jobs on both of its processors.
        let turns = turn.is_migratory() && (turn.part == 0 || turn.part == turn.whole);
        if turn.whole == 0 || turn.part > turn.whole || turns {
            return Err(unfit(format!(
                "`{}` has {} of {} jobs on its first processor",
                set.name(id),
                turn.part,
                turn.whole
            )));
        }
        homes.push(home);
    }
    Ok(homes)
}

fn of_slices(given: &Slices, set: &TaskSet, usable: &CpuSet) -> Result<Vec<CpuSet>> {
    count(given.tasks.len(), set)?;
    let known = processors(given.cpus.iter().copied(), usable)?;
    let mut homes = Vec::with_capacity(set.len());
    for (id, slices) in set.ids().zip(&given.tasks) {
        let home: CpuSet = slices.iter().map(|s| s.cpu).collect();
        if slices.is_empty() || !home.is_subset(&known) {
            return Err(unfit(format!(
                "`{}` has slices on processors `{home}`, and the assignment has {known}",
                set.name(id)
            )));
        }
        if slices
            .iter()
            .any(|s| s.budget.is_zero() || s.budget > s.window)
        {
            return Err(unfit(format!(
                "a slice of `{}` has no budget, or one longer than its window",
                set.name(id)
            )));
        }
        homes.push(home);
    }
    Ok(homes)
}

fn of_slots(given: &Slots, set: &TaskSet, usable: &CpuSet) -> Result<Vec<CpuSet>> {
    count(given.server_of.len(), set)?;
    processors(given.timetables.iter().map(|t| t.cpu), usable)?;
    let mut turns = Vec::new();
    for table in &given.timetables {
        let mut end = model::Duration::ZERO;
        for turn in &table.turns {
            if turn.start < end || turn.end <= turn.start || turn.end > given.slot {
                return Err(unfit(format!(
                    "the turns of processor {} overlap, do not ascend or leave the slot",
                    table.cpu
                )));
            }
            end = turn.end;
            turns.push((turn.server, turn.start, turn.end, table.cpu));
        }
    }
    turns.sort();
    for pair in turns.windows(2) {
        let ((server, _, end, _), (next, start, _, _)) = (pair[0], pair[1]);
        if server == next && start < end {
            return Err(unfit(format!(
                "server {server} is served by two processors at once"
            )));
        }
    }
    let home = |(id, server): (TaskId, &u32)| {
        let home: CpuSet = turns
            .iter()
            .filter(|t| t.0 == *server)
            .map(|t| t.3)
            .collect();
        match home.is_empty() {
            true => Err(unfit(format!(
                "no processor serves server {server}, which has `{}`",
                set.name(id)
            ))),
            false => Ok(home),
        }
    };
    set.ids().zip(&given.server_of).map(home).collect()
}
