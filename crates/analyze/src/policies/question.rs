//! One set under one policy at one price: finding an assignment that holds, and asking whether one
//! still does.
//!
//! Everything that is searched (the largest cache delay, the growth of WCETs) asks here, so that it
//! means what the verdict means.

use super::charged::Case;
use super::costs::{Bill, Rule};
use super::members::Members;
use super::place::{self, Found};
use super::subject::{Subject, Way};
use super::{Costs, split};
use crate::assign::Site;
use crate::clustered;
use crate::overheads::{self, Piece};
use crate::partition::affinity::{self, Allowed};
use crate::uniprocessor::{Work, delayed, edf};
use crate::verdict::Guarantee;
use model::{Assignment, Platform, Ratio, Result, TaskSet, Timing, exact};
use policy::catalog::Tests;

/// A set, a policy, and what the platform charges for it.
pub(super) struct Question<'a> {
    pub set: &'a TaskSet,
    pub platform: &'a Platform,
    pub policy: Subject,
    pub guarantee: Guarantee,
    pub site: Site,
    pub bill: Bill,
    /// Where tasks may be; `None`: everywhere.
    pub allowed: Option<Allowed>,
    /// Why tasks cannot be where they are kept to, as a clause.
    pub(super) kept_apart: Option<String>,
    /// The assignment to judge, instead of those that heuristics find.
    pub given: Option<&'a Assignment>,
}

impl<'a> Question<'a> {
    /// # Errors
    /// A policy that the platform has no clusters for; a delay that the profile lacks; a task's
    /// missing working set size.
    pub fn new(
        set: &'a TaskSet,
        platform: &'a Platform,
        policy: Subject,
        guarantee: Guarantee,
        costs: &Costs<'_>,
        given: Option<&'a Assignment>,
    ) -> Result<Self> {
        let mut clusters = platform
            .clusters(policy.clusters)
            .map_err(|e| e.at(format!("policy `{policy}`")))?;
        if let Some(Assignment::Clustered(c)) = given {
            clusters.clone_from(&c.clusters);
        }
        let mut kept_apart = None;
        let allowed = match policy.way {
            // A given assignment has been held against the tasks' processors.
            _ if given.is_some() => None,
            Way::Clusters => affinity::allowed(set, platform, &clusters)?.unwrap_or_else(|why| {
                kept_apart = Some(why);
                None
            }),
            _ => {
                kept_apart = affinity::refusal(set, platform)?;
                None
            }
        };
        let bill = costs.bill(set, platform, &policy, &clusters, guarantee)?;
        Ok(Question {
            set,
            platform,
            policy,
            guarantee,
            site: Site::of(platform, clusters),
            bill,
            allowed,
            kept_apart,
            given,
        })
    }

    /// The tests that answer.
    pub fn tests(&self) -> Tests {
        self.policy.tests(self.guarantee)
    }

    /// Fixed priorities on several processors together?
    pub fn is_global_fixed(&self) -> bool {
        self.policy.priority().is_some() && self.site.clusters.iter().any(|c| c.len() > 1)
    }

    /// How many assignments and tests of assignments may be tried in one search: fewer for more
    /// tasks.
    pub fn probes(&self) -> u64 {
        (20_000 / self.set.len().max(1) as u64).clamp(8, 400)
    }

    /// The first assignment that holds.
    pub fn find(&self, case: &Case) -> Option<Found> {
        match self.given {
            Some(given) => self.given_holds(case, given).then(|| Found {
                assignment: given.clone(),
                packing: None,
                uncovered: split::uncovered(self, given),
            }),
            None => place::find(self, case),
        }
    }

    /// Does the given assignment hold, as it is?
    fn given_holds(&self, case: &Case, given: &Assignment) -> bool {
        if matches!(given, Assignment::Clustered(_)) {
            return self.places_hold(case, given);
        }
        if let Assignment::Quanta(quanta) = given {
            return split::quanta_hold(self, case, quanta);
        }
        overheads::holds(&case.tasks, given, &self.system(case))
    }

    /// Does this assignment still hold? Monotone: never with longer WCETs or delays if not with
    /// shorter ones.
    pub fn holds(&self, case: &Case, assignment: &Assignment) -> bool {
        match (assignment, self.bill.rule) {
            _ if self.given.is_some() => return self.given_holds(case, assignment),
            _ if self.policy.quantum().is_some() => return self.find(case).is_some(),
            (Assignment::Clustered(_), _) => {}
            // What becomes longer is assigned anew: budgets and reserves are part of the
            // assignment, and leave no room.
            (_, Rule::OneDelay | Rule::ByPiece) => return self.find(case).is_some(),
            (Assignment::Slices(_), Rule::AllOverheads | Rule::Paper) => {
                return self.find(case).is_some();
            }
            (_, Rule::AllOverheads | Rule::Paper) => {
                return overheads::holds(&case.tasks, assignment, &self.system(case));
            }
        }
        self.places_hold(case, assignment)
    }

    /// Does every processor or cluster hold its tasks?
    fn places_hold(&self, case: &Case, assignment: &Assignment) -> bool {
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
                let decided = clustered::decide_cluster_with(&members.tasks, &members.extras, size);
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
                work.lend(place::PLACEMENT_WORK, |w| match members.are_plain() {
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
