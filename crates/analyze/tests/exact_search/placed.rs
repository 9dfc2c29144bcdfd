//! Partitions, clusters, slices and servers: each place is searched on its own.

use super::*;

/// The tasks of each place.
fn places<'t>(
    tasks: &'t [Task],
    place_of: &'t [u32],
    count: u32,
) -> impl Iterator<Item = Vec<Task>> + 't {
    (0..count).map(move |place| {
        let here = tasks
            .iter()
            .zip(place_of)
            .filter(move |(_, p)| **p == place);
        here.map(|(t, _)| *t).collect()
    })
}

/// Is some job late at some place, each place on its own?
fn late_at_some_place(
    tally: &mut Tally,
    places: impl Iterator<Item = (Vec<Task>, u32)>,
    rule: Rule,
) -> Option<Truth> {
    let mut late = false;
    for (tasks, processors) in places {
        late |= !tasks.is_empty() && tally.truth(&tasks, processors, rule)?.late;
    }
    Some(Truth {
        late,
        worst: [0; search::TASKS],
    })
}

/// Partitions and clusters, as they are packed.
pub(super) fn partitioned(tally: &mut Tally, set: &Set) {
    let (tasks, m) = (set.timings(1_000), set.processors);
    for (name, fit) in [
        ("PEDF-WFD", Fit::Worst),
        ("PEDF-FFD", Fit::First),
        ("PEDF-BFD", Fit::Best),
        ("PEDF-NFD", Fit::Next),
    ] {
        let sizes = vec![1; m as usize];
        let mut scratch = partition::Scratch::new();
        let packed = scratch.pack(&tasks, &sizes, Order::DecreasingUtilization, fit);
        let says = (registry::find(name).unwrap().run)(&tasks, m);
        let Ok(place_of) = packed else {
            assert_eq!(says, Ok(false), "{name} {set:?}");
            continue;
        };
        let each = places(&set.tasks, place_of, m).map(|tasks| (tasks, 1));
        if let Some(truth) = late_at_some_place(tally, each, Rule::Edf) {
            tally.note(name, says == Ok(true), &truth, true, set);
            // Exact per processor.
            assert!(says == Ok(true) || truth.late, "{name} refuses {set:?}");
        }
    }
    for (name, priority) in [
        ("PRM-FFD", Priority::RateMonotonic),
        ("PDM-FFD", Priority::DeadlineMonotonic),
    ] {
        let acceptance = Acceptance::FixedPriority(priority);
        let order = Order::DecreasingUtilization;
        let Ok(place_of) = partition::partition(&tasks, m, order, Fit::First, acceptance) else {
            continue;
        };
        let each = places(&set.tasks, &place_of, m).map(|tasks| (by_priority(&tasks, priority), 1));
        if let Some(truth) = late_at_some_place(tally, each, Rule::FixedPriority) {
            tally.note(name, true, &truth, false, set);
        }
    }
    if m == 3 {
        let order = Order::DecreasingUtilization;
        let says = clustered::clustered_edf(&tasks, &[2, 1], order, Fit::Worst, Guarantee::Hard);
        if let (true, Some(cluster_of)) = (says.schedulable, &says.cluster_of) {
            let each = places(&set.tasks, cluster_of, 2).zip([2, 1]);
            if let Some(truth) = late_at_some_place(tally, each, Rule::Edf) {
                tally.note("C-EDF on 2 + 1", true, &truth, false, set);
            }
        }
    }
}

/// EDF-WM: the slices of each processor are tasks of their own, each with its window as deadline.
pub(super) fn windows(tally: &mut Tally, set: &Set) {
    let cpus: Vec<CpuId> = semi::processors(set.processors);
    let Some(slices) = sets::slices(set) else {
        return;
    };
    let mut is_cut = false;
    for (task, parts) in set.tasks.iter().zip(&slices.tasks) {
        let budget: u64 = parts.iter().map(|s| s.budget.nanos()).sum();
        let window: u64 = parts.iter().map(|s| s.window.nanos()).sum();
        assert!(
            budget >= task.wcet.into() && window <= task.deadline.into(),
            "{set:?}"
        );
        let mut on: Vec<CpuId> = parts.iter().map(|s| s.cpu).collect();
        on.sort();
        on.dedup();
        assert_eq!(on.len(), parts.len(), "{set:?}");
        is_cut |= parts.len() > 1;
    }
    let place = |cpu: CpuId| -> Vec<Task> {
        let all = set.tasks.iter().zip(&slices.tasks);
        let here = all.filter_map(|(t, parts)| Some((t, parts.iter().find(|s| s.cpu == cpu)?)));
        here.map(|(task, slice)| Task {
            wcet: slice.budget.nanos() as u8,
            deadline: slice.window.nanos() as u8,
            ..*task
        })
        .collect()
    };
    let each: Vec<(Vec<Task>, u32)> = cpus.iter().map(|cpu| (place(*cpu), 1)).collect();
    if let Some(truth) = late_at_some_place(tally, each.into_iter(), Rule::Edf) {
        tally.note("EDF-WM", true, &truth, false, set);
        if is_cut {
            tally.note("EDF-WM with slices", true, &truth, false, set);
        }
    }
}

/// NPS-F on all processors, and C-NPS-F in clusters of two and one.
pub(super) fn slots(tally: &mut Tally, set: &Set) {
    let all = semi::processors(set.processors);
    if let [first, second, third] = all[..] {
        served(
            tally,
            set,
            "C-NPS-F on 2 + 1",
            &[vec![first, second], vec![third]],
        );
    }
    served(tally, set, "NPS-F", &[all]);
}

/// The tasks of each server by EDF, in the parts of every slot in which some processor serves it.
fn served(tally: &mut Tally, set: &Set, name: &str, clusters: &[Vec<CpuId>]) {
    let Some(slots) = sets::slots(set, clusters) else {
        return;
    };
    let mut late = false;
    for server in 0..=slots.server_of.iter().copied().max().unwrap_or(0) {
        let mut supply = vec![0; 2 * slots.slot.nanos() as usize];
        for turn in slots
            .timetables
            .iter()
            .flat_map(|t| &t.turns)
            .filter(|t| t.server == server)
        {
            for tick in 2 * turn.start.nanos()..2 * turn.end.nanos() {
                supply[tick as usize] += 1;
            }
        }
        // A server is one processor at most.
        assert!(
            supply.iter().all(|serving| *serving <= 1),
            "{slots:?} {set:?}"
        );
        let here = set
            .tasks
            .iter()
            .zip(&slots.server_of)
            .filter(|(_, s)| **s == server);
        let tasks: Vec<Task> = here.map(|(t, _)| *t).collect();
        let tasks = in_ticks(&tasks, 2);
        let Some(truth) = tally
            .search
            .explore(&tasks, &supply, Rule::Edf, true, LIMIT)
        else {
            tally.left_out += 1;
            return;
        };
        late |= truth.late;
    }
    let worst = [0; search::TASKS];
    tally.note(name, true, &Truth { late, worst }, false, set);
}

/// PD2: subtasks of a quantum, which is a unit, released at the beginning of quanta. The test is
/// exact then.
pub(super) fn quanta(tally: &mut Tally, set: &Set) {
    let says = sets::quanta(set);
    if let Some(truth) = tally.truth_in(&set.tasks, set.processors, Rule::Pd2, 1) {
        assert_eq!(says, !truth.late, "PD2, {set:?}");
        tally.note("PD2", says, &truth, true, set);
    }
}
