//! Whether processors and clusters hold the tasks that live there, by the tests of the policy.

use super::charged::Case;
use super::members::Members;
use super::question::Question;
use crate::clustered;
use crate::overheads::Piece;
use crate::uniprocessor::{Work, delayed, edf};
use model::{Assignment, Ratio, Timing, exact};
use policy::catalog::Tests;

/// The most evaluations of one task's demand for one placement.
const PLACEMENT_WORK: u64 = 1 << 22;

impl Question<'_> {
    /// Does every processor or cluster hold its tasks?
    pub fn places_hold(&self, case: &Case, assignment: &Assignment) -> bool {
        let pieces = self.pieces(case, assignment);
        pieces
            .by_place()
            .iter()
            .zip(&pieces.places)
            .all(|(here, cpus)| {
                let members = self.members_of(here);
                self.place_holds(&members, cpus.len() as u32)
            })
    }

    /// The tasks of one place from their pieces.
    pub fn members_of(&self, here: &[&Piece]) -> Members {
        self.members(here.iter().map(|p| (p.task.index(), p.timing)))
    }

    /// Does one processor or cluster hold these tasks, which have their overheads?
    pub fn place_holds(&self, members: &Members, size: u32) -> bool {
        match (self.tests(), self.policy.priority()) {
            (Tests::Priorities, Some(priority)) if size > 1 => members
                .global_fixed(priority, size)
                .iter()
                .any(|(_, says)| *says == Ok(true)),
            (Tests::Priorities, Some(priority)) => members.fixed(priority) == Ok(true),
            (Tests::Utilization, _) => self.is_bounded(members, size),
            (Tests::Deadlines, _) => {
                let (tasks, extras) = (&members.tasks, &members.extras);
                let decided = clustered::decide_cluster_by(tasks, extras, size, self.limits);
                matches!(decided, Ok(Some(_)))
            }
            (Tests::Named(_), _) => self.policy.named_test(self.guarantee).is_some_and(|test| {
                test.decide_with(&members.tasks, &members.extras, size) == Ok(true)
            }),
            (Tests::None | Tests::Priorities, _) => false,
        }
    }

    /// Is tardiness bounded? On one processor blocking and jitter put it off by a bounded time:
    /// sections are part of their own tasks' WCETs, and one at most begins before an interval of
    /// jobs with earlier deadlines and lasts into it.
    fn is_bounded(&self, members: &Members, size: u32) -> bool {
        let blocked;
        let tasks = match size > 1 && !members.are_plain() {
            true => {
                blocked = members.with_blocking();
                &blocked
            }
            false => &members.tasks,
        };
        tasks.iter().all(|t| t.wcet <= t.period)
            && exact::cmp_sum(
                tasks.iter().map(Timing::utilization),
                Ratio::whole(u64::from(size)),
            )
            .is_le()
    }

    /// The exact test by which a processor takes a task, with counted work. `ids` are the places in
    /// the set.
    pub fn accepts(&self, ids: &[u32], tasks: &[Timing], size: u32, work: &mut Work) -> bool {
        let all = ids.iter().map(|i| *i as usize).zip(tasks.iter().copied());
        let members = self.members(all);
        match (self.tests(), self.policy.priority()) {
            (Tests::Priorities, Some(priority)) if size == 1 => members.fixed(priority) == Ok(true),
            (Tests::Deadlines, _) if size == 1 => {
                work.lend(PLACEMENT_WORK, |w| match members.are_plain() {
                    true => edf::decide_within(tasks, w),
                    false => delayed::decide_edf(&members.tasks, &members.extras, w),
                }) == Ok(true)
            }
            _ => {
                // The tests of clusters count their own work; what is counted here is that they are
                // asked.
                let size_squared = (tasks.len() * tasks.len()) as u64;
                work.spend(size_squared) && self.place_holds(&members, size)
            }
        }
    }
}
