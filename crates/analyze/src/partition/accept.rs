//! Packing with a test per bin: a bin takes a task if its tasks with that one pass the test.
//!
//! With constrained deadlines, utilization packs what no processor can hold and spreads what one
//! could; an exact test per placement (002 §2.2.2: "uniprocessor scheduling algorithms … on each
//! processor") does neither. The test may be anything: packing that accounts for overheads (002
//! §6.1) inflates all of a bin's tasks and refuses without a trace, which is the paper's rolling
//! back to the last assignment.

use super::loads::{Loads, scaled};
use super::pack::NOWHERE;
use super::{Fit, Order};
use crate::uniprocessor::fixed_priority::Priority;
use crate::uniprocessor::{LIMIT, Work, edf, fixed_priority};
use crate::verdict::Decision;
use model::Timing;

/// The exact test of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acceptance {
    /// EDF: [`edf::decide`].
    Edf,
    /// Fixed priorities: [`fixed_priority::decide`].
    FixedPriority(Priority),
}

impl Acceptance {
    /// Do these tasks meet their deadlines on one processor?
    pub fn decide(self, tasks: &[Timing]) -> Decision {
        self.decide_within(tasks, &mut Work::new())
    }

    /// [`Acceptance::decide`] with a limit of work of one's own.
    pub fn decide_within(self, tasks: &[Timing], work: &mut Work) -> Decision {
        match self {
            Acceptance::Edf => edf::decide_within(tasks, work),
            Acceptance::FixedPriority(priority) => {
                fixed_priority::decide_within(tasks, priority, work)
            }
        }
    }
}

/// The processor of every task, each processor passing `acceptance`; or the task that no processor
/// takes.
///
/// A processor on which the test hits its limit of work refuses.
///
/// # Errors
/// The index of the first task, in the order of placement, that fits nowhere.
pub fn partition(
    tasks: &[Timing],
    processors: u32,
    order: Order,
    fit: Fit,
    acceptance: Acceptance,
) -> Result<Vec<u32>, u32> {
    let decide = |members: &[Timing]| acceptance.decide(members) == Ok(true);
    partition_by(tasks, processors, order, fit, decide)
}

/// [`partition`], or no, or that the work of all placements together is beyond the limit of one
/// test.
pub fn decide_partition(
    tasks: &[Timing],
    processors: u32,
    order: Order,
    fit: Fit,
    acceptance: Acceptance,
) -> Decision {
    let mut work = Work::new();
    let decide = |members: &[Timing]| acceptance.decide_within(members, &mut work) == Ok(true);
    match partition_by(tasks, processors, order, fit, decide) {
        Ok(_) => Ok(true),
        Err(_) if work.left() == 0 => Err(LIMIT),
        Err(_) => Ok(false),
    }
}

fn partition_by(
    tasks: &[Timing],
    processors: u32,
    order: Order,
    fit: Fit,
    mut decide: impl FnMut(&[Timing]) -> bool,
) -> Result<Vec<u32>, u32> {
    let mut members: Vec<Timing> = Vec::new();
    partition_with(
        tasks,
        &vec![1; processors as usize],
        order,
        fit,
        |_, ids| {
            members.clear();
            // In the order of the set, so that ties of priority are broken as everywhere.
            members.extend(ids.iter().map(|i| tasks[*i as usize]));
            decide(&members)
        },
    )
}

/// The bin of every task, where a bin takes a task if `accepts(bin, its tasks with that one)`.
///
/// The tasks are given by index, ascending. Bins are tried in the order of the heuristic by what
/// utilization leaves of their `sizes` (processors); a bin that would be over-utilized is not
/// asked.
///
/// # Errors
/// The index of the first task, in the order of placement, that no bin takes.
pub fn partition_with(
    tasks: &[Timing],
    sizes: &[u32],
    order: Order,
    fit: Fit,
    mut accepts: impl FnMut(usize, &[u32]) -> bool,
) -> Result<Vec<u32>, u32> {
    let mut placement = Vec::new();
    order.sort(tasks, &mut placement);
    partition_placed(tasks, sizes, placement, fit, |bin, ids, _| {
        accepts(bin, ids)
    })
}

/// [`partition_with`] in a given order of placement, where `accepts(bin, its tasks with the new
/// one, the new one)`.
///
/// # Errors
/// As [`partition_with`].
pub(crate) fn partition_placed(
    tasks: &[Timing],
    sizes: &[u32],
    placement: Vec<u32>,
    fit: Fit,
    mut accepts: impl FnMut(usize, &[u32], u32) -> bool,
) -> Result<Vec<u32>, u32> {
    if let Some(heavy) = tasks.iter().position(|t| t.wcet > t.period) {
        return Err(heavy as u32);
    }
    let mut loads = Loads::default();
    loads.reset(sizes);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    let mut bin_of = vec![NOWHERE; tasks.len()];
    let mut ranked = rank(&loads, fit, sizes.len());
    let mut start = 0;
    for index in placement {
        let task = &tasks[index as usize];
        let size = scaled(task);
        let taken = ranked[start..].iter().copied().find(|bin| {
            let inside = &mut members[*bin];
            if !loads.fits(*bin, task, size, || {
                inside.iter().map(|i| tasks[*i as usize].utilization())
            }) {
                return false;
            }
            let at = inside.partition_point(|i| *i < index);
            inside.insert(at, index);
            let accepted = accepts(*bin, inside, index);
            if !accepted {
                inside.remove(at);
            }
            accepted
        });
        let Some(bin) = taken else { return Err(index) };
        loads.add(bin, size);
        bin_of[index as usize] = bin as u32;
        if fit == Fit::Next {
            start = bin;
        } else {
            rerank(&mut ranked, bin, &loads, fit);
        }
    }
    Ok(bin_of)
}

/// The bins in the order in which the heuristic tries them; equal ones by number.
fn rank(loads: &Loads, fit: Fit, bins: usize) -> Vec<usize> {
    let mut ranked = Vec::with_capacity(bins);
    for bin in 0..bins {
        insert(&mut ranked, bin, loads, fit);
    }
    ranked
}

/// Moves the one bin whose load has changed to its place.
fn rerank(ranked: &mut Vec<usize>, bin: usize, loads: &Loads, fit: Fit) {
    if matches!(fit, Fit::Worst | Fit::Best) {
        ranked.retain(|b| *b != bin);
        insert(ranked, bin, loads, fit);
    }
}

fn insert(ranked: &mut Vec<usize>, bin: usize, loads: &Loads, fit: Fit) {
    let before = |a: usize, b: usize| match fit {
        Fit::First | Fit::Next => false,
        Fit::Worst => loads.has_more_left(a, b),
        Fit::Best => loads.has_more_left(b, a),
    };
    let at = ranked
        .iter()
        .position(|other| before(bin, *other) || (!before(*other, bin) && bin < *other));
    ranked.insert(at.unwrap_or(ranked.len()), bin);
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::sets::task_ns as task;

    #[test]
    fn exact_acceptance_separates_what_utilization_packs_together() {
        // Together they need 4 by time 3, though they use a fifth of a processor.
        let set = [task(2, 20, 3), task(2, 20, 3)];
        let exact = |m| {
            partition(
                &set,
                m,
                Order::DecreasingUtilization,
                Fit::First,
                Acceptance::Edf,
            )
        };
        assert_eq!(exact(2), Ok(vec![0, 1]));
        assert_eq!(exact(1), Err(1));
    }

    #[test]
    fn a_processor_that_refuses_leaves_the_task_to_the_next() {
        let set = [
            task(2, 10, 2),
            task(1, 10, 1),
            task(4, 10, 10),
            task(6, 12, 12),
        ];
        for fit in Fit::ALL {
            let bins = partition(&set, 2, Order::Given, fit, Acceptance::Edf).unwrap();
            assert_ne!(bins[0], bins[1], "{fit}: deadlines of 2 and 1 cannot share");
        }
    }

    /// 002 Fig. 2.2: one processor holds the set under EDF, not under RM.
    #[test]
    fn fixed_priorities_need_a_second_processor_for_fig_2_2() {
        let set = [task(1, 3, 3), task(2, 5, 5), task(2, 8, 8)];
        let rm = Acceptance::FixedPriority(Priority::RateMonotonic);
        let with = |m, how| partition(&set, m, Order::Given, Fit::First, how);
        assert_eq!(with(1, Acceptance::Edf), Ok(vec![0, 0, 0]));
        assert_eq!(with(1, rm), Err(2));
        assert_eq!(with(2, rm), Ok(vec![0, 0, 1]));
    }
}
