//! What a search over policies and placements asks: the verdict of [`judge`](super::judge) alone,
//! with the assignment or the reason, and single places of a placement that is not yet complete.
//!
//! All of it is decided by the code that decides for `judge`: a placement whose places hold here is
//! one that [`judge_assigned`](super::judge_assigned) says yes to.

use super::charged::{Case, Point};
use super::given;
use super::question::Question;
use super::subject::{Subject, Way};
use super::urgency::Ordered;
use super::{Costs, Limits};
use crate::overheads::inflated_in;
use crate::uniprocessor::delayed;
use crate::uniprocessor::fixed_priority::{Response, response_time};
use crate::verdict::Guarantee;
use model::assignment::Clustered;
use model::{Assignment, CpuSet, Platform, Result, Resumption, TaskSet, Timing};
use policy::Spec;
use policy::catalog::{Priority, Tests};

/// What the heuristics of a policy came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Sought {
    /// The policy cannot be asked: why, as a clause.
    NotJudged(String),
    /// No assignment was found: why, as a clause.
    Refused(String),
    /// This assignment keeps the guarantee.
    Holds(Assignment),
}

/// The assignment by which [`judge`](super::judge) says yes, or why it does not.
///
/// # Errors
/// As [`judge`](super::judge).
pub fn seek(
    set: &TaskSet,
    platform: &Platform,
    policy: &Spec,
    guarantee: Guarantee,
    costs: &Costs<'_>,
    limits: Limits,
) -> Result<Sought> {
    let policy = Subject::new(policy)?;
    let ordered = Ordered::of(set, &policy, None)?;
    let asked = ordered.as_ref().map_or(set, |ordered| &ordered.set);
    let question = Question::new(asked, platform, policy, guarantee, costs, None)?.within(limits);
    if let Some(why) = question.precondition() {
        return Ok(Sought::NotJudged(why));
    }
    let case = question.case(Point::GIVEN);
    Ok(match question.find(&case) {
        Some(found) => Sought::Holds(match &ordered {
            Some(ordered) => ordered.restored(found.assignment),
            None => found.assignment,
        }),
        None => Sought::Refused(question.refusal(&case)),
    })
}

/// Does this assignment keep the guarantee, as it is? The verdict of
/// [`judge_assigned`](super::judge_assigned) alone.
///
/// # Errors
/// As [`judge_assigned`](super::judge_assigned).
pub fn holds_assigned(
    set: &TaskSet,
    platform: &Platform,
    policy: &Spec,
    assignment: &Assignment,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<bool> {
    let policy = Subject::new(policy)?;
    given::check(assignment, set, platform, &policy)?;
    let ordered = Ordered::of(set, &policy, Some(assignment))?;
    let (asked, given) = match &ordered {
        Some(ordered) => (&ordered.set, ordered.given.as_ref()),
        None => (set, Some(assignment)),
    };
    let question = Question::new(asked, platform, policy, guarantee, costs, given)?;
    if question.precondition().is_some() {
        return Ok(false);
    }
    Ok(question.find(&question.case(Point::GIVEN)).is_some())
}

/// The processors or clusters of a policy that packs tasks, each of which can be asked alone.
///
/// Tasks are named by their places in the set.
pub struct Places<'a> {
    question: Question<'a>,
    case: Case,
    ways: Vec<Vec<Resumption>>,
}

impl<'a> Places<'a> {
    /// The places of a policy for a set; `None`: the policy packs no tasks, or cannot be asked.
    ///
    /// Given priorities are those of the order of the set, whatever priorities its tasks have.
    ///
    /// # Errors
    /// As [`judge`](super::judge).
    pub fn of(
        set: &'a TaskSet,
        platform: &'a Platform,
        policy: &Spec,
        guarantee: Guarantee,
        costs: &Costs<'_>,
    ) -> Result<Option<Self>> {
        let policy = Subject::new(policy)?;
        if policy.way != Way::Clusters {
            return Ok(None);
        }
        let question = Question::new(set, platform, policy, guarantee, costs, None)?;
        if question.precondition().is_some() {
            return Ok(None);
        }
        let case = question.case(Point::GIVEN);
        let system = question.system(&case);
        let clusters = question.site.clusters.iter();
        let ways = clusters.map(|c| system.ways(c.iter())).collect();
        Ok(Some(Places {
            case,
            question,
            ways,
        }))
    }

    /// Asks from now on about WCETs in these thousandths of those given.
    pub fn grow(&mut self, thousandths: u64) {
        self.case = self.question.case(Point {
            thousandths,
            ..Point::GIVEN
        });
    }

    /// The processors of each place.
    pub fn clusters(&self) -> &[CpuSet] {
        &self.question.site.clusters
    }

    /// May this task be in this place?
    pub fn may(&self, task: u32, place: usize) -> bool {
        let allowed = self.question.allowed.as_ref();
        allowed.is_none_or(|allowed| allowed.may(task, place))
    }

    /// Is each place one processor, and its test exact? What holds there holds without any of its
    /// tasks.
    pub fn are_single(&self) -> bool {
        self.question.site.clusters.iter().all(|c| c.len() == 1)
            && !matches!(self.question.tests(), Tests::Named(_))
    }

    /// What each task needs at least, wherever it is.
    pub fn least(&self) -> Vec<Timing> {
        self.question.inflated(&self.case)
    }

    /// Does this place hold these tasks, which are in ascending order, with their overheads, if no
    /// others live there?
    pub fn holds(&self, place: usize, tasks: &[u32]) -> bool {
        if tasks.is_empty() {
            return true;
        }
        let inside = self.inside(place, tasks);
        let size = self.question.site.clusters[place].len() as u32;
        let members = self
            .question
            .members(tasks.iter().map(|t| *t as usize).zip(inside));
        self.question.place_holds(&members, size)
    }

    /// Does the last of these tasks meet its deadline on this processor below all the others, in
    /// whatever order they are? Asked of fixed priorities with one processor a place.
    pub fn lowest_holds(&self, place: usize, tasks: &[u32]) -> bool {
        let inside = self.inside(place, tasks);
        let Some((lowest, higher)) = inside.split_last() else {
            return true;
        };
        let of_all = self.question.set.extras();
        let response = match of_all {
            [] => response_time(lowest, higher),
            _ => {
                let extras: Vec<_> = tasks.iter().map(|t| of_all[*t as usize]).collect();
                let times = delayed::fixed_response_times(&inside, &extras);
                times.last().copied().unwrap_or(Response::Limit)
            }
        };
        matches!(response, Response::Within(_))
    }

    /// The assignment that puts each task into this place.
    pub fn assignment(&self, place_of: Vec<u32>) -> Assignment {
        Assignment::Clustered(Clustered {
            clusters: self.clusters().to_vec(),
            cluster_of: place_of,
        })
    }

    fn inside(&self, place: usize, tasks: &[u32]) -> Vec<Timing> {
        let (all, system) = self.question.books(&self.case);
        let size = self.question.site.clusters[place].len() as u32;
        inflated_in(&all, tasks, &self.ways[place], size, &system)
    }

    /// The fixed priorities of the policy.
    pub fn priority(&self) -> Option<Priority> {
        self.question.policy.priority()
    }
}
