//! A task set judged under policies on a platform, with what the platform costs: verdicts,
//! assignments, what is left to spare.
//!
//! Three rules of inflation (`docs/overheads.md`). 000 §2: with D a bound of the cache delay of any
//! job, a set is schedulable if it passes a test with e′ = e + D. 002 §6.1: all seven overheads, by
//! assignment. Between the two, where a profile has cache delays only and each task has its own:
//! what a job can cause and suffer in its assignment, by piece. Which D depends on what the policy
//! can do to a job: P-EDF only preempts it, C-EDF also migrates it within the cluster, G-EDF
//! everywhere. Hard guarantees take the maximum, soft ones the average (002 §6.3).
//!
//! Packing is heuristic: all ways are tried in a fixed order (`place`) and the first that holds is
//! shown.

mod answers;
mod bounds;
mod certify;
mod charged;
mod costs;
mod find;
mod given;
mod hold;
mod limits;
mod many;
mod margin;
mod members;
mod picture;
mod place;
mod precondition;
mod question;
mod rank;
mod refute;
mod search;
mod split;
mod subject;
pub mod table;
mod urgency;

pub use answers::{Answer, TestAnswer};
pub use bounds::TaskBound;
pub use certify::{Found as SearchFound, Searched, certify, format::Certificate, search};
pub use costs::{Accounting, Costs, Rule};
pub use limits::Limits;
pub use many::{Caches, MAJOR_TESTS, Manner, Many, Prices};
pub use margin::{Growth, Margin};
pub use picture::{Cluster, Loss, Placed};
pub use search::{Places, Sought, holds_assigned, seek};
pub use subject::{read_list, suggested, suggested_for};

use crate::overheads;
use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::Guarantee;
use charged::{Case, Pieces, Point};
use find::Found;
use model::assignmentfile::JudgedTask;
use model::watch::Watch;
use model::{Assignment, Duration, Error, Platform, Result, TaskSet, Timing};
use policy::Spec;
use policy::catalog::{Order, Tests};
use question::Question;
use serde::Serialize;
use subject::{Subject, Way};

/// What stands for the test of a policy that was not judged: a precondition fails or a limit is
/// exceeded.
pub const NOT_JUDGED: &str = "not judged";

/// What a policy does for the set.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyVerdict {
    /// Its name, as on the command line.
    pub policy: String,
    /// Is the guarantee shown?
    pub schedulable: bool,
    /// Is it proven that the guarantee cannot be given? Where neither is true, nothing was shown
    /// either way.
    pub refuted: bool,
    /// What a search for a schedule that misses came to, where tests say neither yes nor no and
    /// [`search`] was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched: Option<Searched>,
    /// The test that decided.
    pub decided_by: &'static str,
    /// The packing heuristic that is shown; `None` where there is one cluster only.
    pub heuristic: Option<String>,
    /// In a plain sentence: why, or why not.
    pub reason: String,
    /// What every test and every packing of the policy says.
    pub tests: Vec<TestAnswer>,
    /// Total utilization with the WCETs as given.
    pub utilization: f64,
    /// Total utilization with overheads; `None` where they depend on an assignment and there is
    /// none.
    pub inflated_utilization: Option<f64>,
    /// What of the platform is lost to each overhead, in the assignment that is shown.
    pub lost: Vec<Loss>,
    /// The longest cache delay with which a job can resume: by piece in the assignment that is
    /// shown, else wherever the policy may put it.
    #[serde(rename = "charged_ns", serialize_with = "model::time::ns::serialize")]
    pub charged: Duration,
    /// How much cache delay a job of every task may have for the set still to pass; `None`: it
    /// fails without any.
    pub largest_cpmd: Option<Margin>,
    /// How much longer WCETs may be for the set still to pass, or how much shorter they must be;
    /// `None`: no cut helps.
    pub growth: Option<Growth>,
    /// Is all charged that the policy does to caches? Not by the rule of one delay where jobs are
    /// cut into slices or slots.
    pub cpmd_covered: bool,
    /// Is that so for all assignments that the largest CPMD and the growth rest on, too?
    pub margins_covered: bool,
    /// What one must know to trust this verdict: readings beyond what was measured, overheads that
    /// are not in the profile.
    pub notes: Vec<String>,
    /// How late the jobs of each task can finish, if the set passes.
    pub tasks: Vec<TaskBound>,
    /// Who runs where, if every task found a place.
    pub clusters: Vec<Cluster>,
    /// The same for engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
}

/// A task set judged under several policies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgment {
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// Name of the platform.
    pub platform: String,
    /// How many processors it has for this.
    pub processors: usize,
    /// How many tasks the set has.
    pub task_count: usize,
    /// The tasks that were judged: an assignment is for these alone.
    #[serde(rename = "tasks")]
    pub set: Vec<JudgedTask>,
    /// Their total utilization.
    pub utilization: f64,
    /// How overheads lengthen WCETs.
    pub rule: Rule,
    /// The accounting by name.
    pub accounting: Accounting,
    /// What was charged, in words.
    pub costs: String,
    /// In a plain sentence: which policy comes first, and why.
    pub advice: String,
    /// One verdict a policy, the best first.
    pub policies: Vec<PolicyVerdict>,
}

impl Judgment {
    /// Is the guarantee shown under at least one of the policies?
    pub fn is_schedulable(&self) -> bool {
        self.policies.iter().any(|p| p.schedulable)
    }
}

/// Judges a set under policies on the usable processors of a platform.
///
/// # Errors
/// A policy that the platform has no clusters for; a delay that the profile does not have or a
/// task's missing working set size; a task that may run on no processor that can be used; names
/// what would help. `watch` wants it to end.
pub fn judge(
    set: &TaskSet,
    platform: &Platform,
    policies: &[Spec],
    guarantee: Guarantee,
    costs: &Costs<'_>,
    watch: &dyn Watch,
) -> Result<Judgment> {
    judge_all(set, platform, policies, None, guarantee, costs, watch)
}

/// Judges a given assignment of a set, as it is: whatever assignment the heuristics would find.
///
/// # Errors
/// As [`judge`]; an assignment that does not fit the set, the policy or the platform.
pub fn judge_assigned(
    set: &TaskSet,
    platform: &Platform,
    policy: &Spec,
    assignment: &Assignment,
    guarantee: Guarantee,
    costs: &Costs<'_>,
    watch: &dyn Watch,
) -> Result<Judgment> {
    given::check(assignment, set, platform, &Subject::new(policy)?)?;
    judge_all(
        set,
        platform,
        std::slice::from_ref(policy),
        Some(assignment),
        guarantee,
        costs,
        watch,
    )
}

fn judge_all(
    set: &TaskSet,
    platform: &Platform,
    policies: &[Spec],
    given: Option<&Assignment>,
    guarantee: Guarantee,
    costs: &Costs<'_>,
    watch: &dyn Watch,
) -> Result<Judgment> {
    watch.begin("Judging policies", STAGES * policies.len() as u64);
    let mut verdicts = Vec::with_capacity(policies.len());
    for policy in policies {
        let policy = Subject::new(policy)?;
        let ordered = urgency::Ordered::of(set, &policy, given)?;
        let (asked, given) = match &ordered {
            Some(ordered) => (&ordered.set, ordered.given.as_ref()),
            None => (set, given),
        };
        let question = Question::new(asked, platform, policy, guarantee, costs, given)?;
        let mut verdict = judge_one(&question, watch)?;
        if let Some(ordered) = &ordered {
            ordered.restore(&mut verdict);
        }
        verdicts.push(verdict);
    }
    rank::sort(&mut verdicts);
    Ok(Judgment {
        guarantee,
        platform: platform.name.clone(),
        processors: platform.usable().len(),
        task_count: set.len(),
        set: JudgedTask::all(set),
        utilization: set.utilization_f64(),
        rule: costs.rule(),
        accounting: costs.accounting(),
        costs: costs.describe(guarantee),
        advice: rank::advise(&verdicts),
        policies: verdicts,
    })
}

/// Does the policy keep the guarantee, with an assignment that is found for it? The verdict of
/// [`judge`] alone, without what it explains: for many sets. `None`: it is not judged.
///
/// # Errors
/// As [`judge`].
pub fn decide(
    set: &TaskSet,
    platform: &Platform,
    policy: &Spec,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<Option<bool>> {
    decide_within(set, platform, policy, guarantee, costs, Limits::default())
}

/// [`decide`] by some of the heuristics and tests only.
///
/// # Errors
/// As [`judge`].
pub fn decide_within(
    set: &TaskSet,
    platform: &Platform,
    policy: &Spec,
    guarantee: Guarantee,
    costs: &Costs<'_>,
    limits: Limits,
) -> Result<Option<bool>> {
    let policy = Subject::new(policy)?;
    let ordered = urgency::Ordered::of(set, &policy, None)?;
    let asked = ordered.as_ref().map_or(set, |ordered| &ordered.set);
    let question = Question::new(asked, platform, policy, guarantee, costs, None)?.within(limits);
    if question.precondition().is_some() {
        return Ok(None);
    }
    Ok(Some(question.find(&question.case(Point::GIVEN)).is_some()))
}

/// Verdict, tests, largest delay, growth.
const STAGES: u64 = 4;

/// One stage is done; may the next begin?
fn go_on(watch: &dyn Watch) -> Result<()> {
    watch.advance(1);
    if watch.stopped() {
        return Err(Error::new("stopped before every policy was judged")
            .remedy("let it run, or ask for fewer policies with `--policy`"));
    }
    Ok(())
}

fn judge_one(question: &Question<'_>, watch: &dyn Watch) -> Result<PolicyVerdict> {
    let case = question.case(Point::GIVEN);
    let mut verdict = PolicyVerdict {
        policy: question.policy.to_string(),
        schedulable: false,
        refuted: false,
        searched: None,
        decided_by: NOT_JUDGED,
        heuristic: None,
        reason: String::new(),
        tests: Vec::new(),
        utilization: question.set.utilization_f64(),
        inflated_utilization: None,
        lost: Vec::new(),
        charged: question
            .bill
            .delays
            .iter()
            .copied()
            .max()
            .unwrap_or_default(),
        largest_cpmd: None,
        growth: None,
        cpmd_covered: true,
        margins_covered: true,
        notes: question.bill.notes.clone(),
        tasks: Vec::new(),
        clusters: Vec::new(),
        assignment: None,
    };
    verdict.notes.extend(question.policy.note.clone());
    if question.bill.rule == Rule::OneDelay {
        // What quanta lose is known with the reservations.
        if question.policy.quantum().is_none() {
            verdict.inflated_utilization = Some(utilization(&question.inflated(&case)));
        }
        verdict.margins_covered =
            !matches!(question.policy.way, Way::Slices { .. } | Way::Slots { .. });
        verdict.cpmd_covered = verdict.margins_covered;
    }
    if let Some(why) = question.precondition() {
        verdict.reason = format!("{NOT_JUDGED}: {why}");
        for _ in 0..STAGES {
            go_on(watch)?;
        }
        return Ok(verdict);
    }
    let found = question.find(&case);
    let pieces = found
        .as_ref()
        .map(|f| question.pieces(&case, &f.assignment));
    go_on(watch)?;
    match (&found, &pieces) {
        (Some(found), Some(pieces)) => show(&mut verdict, question, &case, found, pieces),
        _ => {
            verdict.refuted = refute::is_refuted(question);
            verdict.decided_by = answers::refusing(question, &case);
            verdict.reason = question.refusal(&case);
        }
    }
    verdict.tests = answers::all(question, &case, pieces.as_ref());
    go_on(watch)?;
    verdict.largest_cpmd = margin::largest_cpmd(question);
    go_on(watch)?;
    verdict.growth = margin::growth(question, verdict.schedulable);
    go_on(watch)?;
    Ok(verdict)
}

/// Fills in what an assignment that holds has to show.
fn show(
    verdict: &mut PolicyVerdict,
    question: &Question<'_>,
    case: &Case,
    found: &Found,
    pieces: &Pieces,
) {
    let accepted_by = answers::accepting(question, pieces);
    verdict.schedulable = true;
    if question.bill.rule == Rule::ByPiece {
        verdict.charged =
            overheads::longest_delay(&case.tasks, &found.assignment, &question.system(case));
    }
    verdict.decided_by = answers::deciding(question, &accepted_by);
    verdict.heuristic = found.packing.map(|p| p.to_string());
    verdict.cpmd_covered = found.uncovered.is_none();
    verdict.clusters = picture::clusters(question, case, &found.assignment, pieces, &accepted_by);
    verdict.lost = picture::losses(
        pieces,
        &found.assignment,
        question.policy.quantum().is_some(),
        &verdict.clusters,
    );
    let lost: f64 = verdict.lost.iter().map(|l| l.utilization).sum();
    verdict.inflated_utilization = Some(verdict.utilization + lost);
    verdict.tasks = bounds::all(question, &found.assignment, pieces, &accepted_by);
    verdict.reason = praise(verdict, question, found);
    let lacks = question.policy.lacks(question.set, question.platform);
    let lacks = lacks.map(|what| format!("to simulate or run it, give {what}"));
    verdict.notes.extend(lacks);
    verdict.assignment = Some(found.assignment.clone());
}

fn utilization(tasks: &[Timing]) -> f64 {
    tasks.iter().map(|t| t.utilization().to_f64()).sum()
}

/// Why the guarantee is shown.
fn praise(verdict: &PolicyVerdict, question: &Question<'_>, found: &Found) -> String {
    let late = verdict
        .tasks
        .iter()
        .map(|t| t.tardiness)
        .max()
        .unwrap_or_default();
    let bounded_for_all = verdict.tasks.len() == question.set.len();
    let is_delayed = !question.set.extras().is_empty();
    let mut text = match (question.tests(), question.policy.order, &found.assignment) {
        (Tests::Priorities, Order::Fixed(priority), _) => format!(
            "every deadline is met: {}, with {}",
            if question.is_global_fixed() {
                format!("shown by {}", verdict.decided_by)
            } else if is_delayed {
                "response times with blocking and jitter stay within the deadlines".to_owned()
            } else {
                "response times on each processor are exact".to_owned()
            },
            match priority {
                Priority::RateMonotonic => "shorter periods first",
                Priority::DeadlineMonotonic => "shorter deadlines first",
                // Tasks that have priorities are asked about in their order.
                Priority::Given if question.set.has_priorities() => "the given priorities",
                Priority::Given => "priorities in the order of the set",
            }
        ),
        (_, _, Assignment::Turns(turns)) => {
            let migratory = turns.tasks.iter().filter(|t| t.is_migratory()).count();
            format!(
                "tardiness is at most {}; {} spread over two processors each, job by job",
                late.rounded(),
                split::tasks_are(migratory)
            )
        }
        (Tests::Utilization, _, _) if bounded_for_all => {
            format!(
                "tardiness is bounded, by {}: nobody is asked for more than there is",
                late.rounded()
            )
        }
        (Tests::Utilization, _, _) => {
            "tardiness is bounded: no processor or cluster is asked for more than it has".to_owned()
        }
        (Tests::Deadlines, _, _)
            if is_delayed && question.site.clusters.iter().all(|c| c.len() == 1) =>
        {
            "every deadline is met: the demand with blocking and jitter fits on each processor"
                .to_owned()
        }
        (Tests::Deadlines, _, _) if question.site.clusters.iter().all(|c| c.len() == 1) => {
            "every deadline is met: EDF on each processor is decided exactly".to_owned()
        }
        (Tests::Named(_), _, Assignment::Quanta(_)) if question.policy.is_soft_only() => format!(
            "tardiness is bounded, by {}: in whole quanta of {} nobody is asked for more than there is",
            late.rounded(),
            crate::tardiness::cache_aware::QUANTUM
        ),
        (Tests::Named(_), _, Assignment::Quanta(_)) => format!(
            "every deadline is met if releases wait for the start of a quantum of {}",
            crate::pd2::QUANTUM
        ),
        _ => format!("every deadline is met: shown by {}", verdict.decided_by),
    };
    if let Some(uncovered) = &found.uncovered {
        text += &format!("; one delay a job is charged, and more may occur: {uncovered}");
    }
    text
}
