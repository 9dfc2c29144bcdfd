//! The answer of a search: a recommendation, what else holds, what breaks the others, and what
//! would have to change where nothing holds.

use crate::{Ended, Way};
use analyze::Guarantee;
use analyze::policies::{Accounting, Growth, Margin, PolicyVerdict, Rule};
use model::assignmentfile::JudgedTask;
use model::{Assignment, Colors, Duration, Result, TaskSet};
use serde::Serialize;

/// How much was searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Searched {
    /// Packings and complete placements that were tried.
    pub placements: u64,
    /// Processors or clusters with some tasks that were tested.
    pub tests: u64,
    /// Orders of global priorities that were tried.
    pub orders: u64,
    /// Was nothing left out? Of a policy that holds the set on single processors: no placement
    /// bears a larger growth of WCETs. Of one that fails: no placement (or order of priorities)
    /// passes its tests.
    #[serde(rename = "exact")]
    pub is_exact: bool,
}

/// What came of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// `check` says yes to its plan.
    Holds,
    /// No plan was found.
    Fails,
    /// The policy cannot be asked about this set.
    NotJudged,
    /// The search ended before.
    NotTried,
}

/// A policy with what came of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Considered {
    /// Its name, as on the command line.
    pub policy: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it holds the set, or the one thing that breaks it.
    pub reason: String,
    /// How its plan was found; empty: there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub found_by: String,
    /// How much longer WCETs may be with this plan, as it is; `None`: there is none, or the search
    /// ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// How much cache delay a job of each task may have with this plan, as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_cpmd: Option<Margin>,
    /// What overheads take, in processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// How much was searched.
    pub searched: Searched,
    /// Who runs where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// By task, its priority, the larger the more urgent, where the plan has others than the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Vec<u32>>,
    /// By task, its colors, where WCETs depend on them; `null`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<Vec<Option<Colors>>>,
}

/// How far one task alone may grow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OneTask {
    /// Its name.
    pub task: String,
    /// Its WCET.
    #[serde(rename = "wcet_ns", serialize_with = "model::time::ns::serialize")]
    pub wcet: Duration,
    /// With this WCET, and all others as they are, the plan still holds.
    #[serde(
        rename = "largest_wcet_ns",
        serialize_with = "model::time::ns::serialize"
    )]
    pub largest: Duration,
    /// The same in thousandths of its WCET.
    pub thousandths: u64,
}

/// How much all costs may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Factor {
    /// With costs in this many percent of those charged the plan still holds.
    pub percent: u64,
    /// Does it fail with one percent more? If not, the search ended there.
    pub exact: bool,
}

/// How far a plan can be stretched, as it is: nobody is placed anew.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Stretch {
    /// All WCETs together.
    pub wcets: Option<Growth>,
    /// The cache delay of a job, the same for every task.
    pub largest_cpmd: Option<Margin>,
    /// All cache delays together; `None`: none is charged.
    pub delays: Option<Factor>,
    /// All costs together, cache delays among them; `None`: none is charged.
    pub costs: Option<Factor>,
    /// Each task alone, the one that may grow least first.
    pub tasks: Vec<OneTask>,
}

/// The plan that is recommended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Recommended {
    /// Its policy.
    pub policy: String,
    /// In plain words: why this one.
    pub reason: String,
    /// How it was found.
    pub found_by: String,
    /// By task, its priority, the larger the more urgent, where the plan has others than the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Vec<u32>>,
    /// By task, its colors, where WCETs depend on them; `null`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<Vec<Option<Colors>>>,
    /// What `check` says of it.
    pub verdict: PolicyVerdict,
    /// How far it can be stretched.
    pub stretch: Stretch,
}

/// What would have to change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum What {
    /// All WCETs.
    Wcets {
        /// To so many thousandths of those given.
        thousandths: u64,
    },
    /// The WCET of one task.
    Wcet {
        /// The task.
        task: String,
        /// From this.
        #[serde(rename = "from_ns", serialize_with = "model::time::ns::serialize")]
        from: Duration,
        /// To this, at most.
        #[serde(rename = "to_ns", serialize_with = "model::time::ns::serialize")]
        to: Duration,
        /// The same in thousandths.
        thousandths: u64,
    },
    /// The period of one task, and its deadline where that is the period.
    Period {
        /// The task.
        task: String,
        /// From this.
        #[serde(rename = "from_ns", serialize_with = "model::time::ns::serialize")]
        from: Duration,
        /// To this, at least.
        #[serde(rename = "to_ns", serialize_with = "model::time::ns::serialize")]
        to: Duration,
        /// The same in thousandths.
        thousandths: u64,
    },
    /// More processors of the same kind.
    Processors {
        /// How many there are then.
        processors: usize,
    },
}

/// A change with which the set holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// What changes.
    #[serde(flatten)]
    pub what: What,
    /// The policy that then holds the set.
    pub policy: String,
    /// In words.
    pub words: String,
}

/// A way to give colors, and the plan that bears most of those that were looked at with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WayFound {
    /// Which.
    pub way: Way,
    /// The policy of the plan.
    pub policy: String,
    /// How much longer WCETs may be with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// What came of the colors that there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GivenColors {
    /// How many there are to give.
    pub supply: u16,
    /// How many the plan gives: those from 0 on.
    pub used: u16,
    /// In words.
    pub words: String,
    /// The ways with which a policy holds the set, the best first: isolation and sharing side by
    /// side.
    pub ways: Vec<WayFound>,
    /// Tasks whose WCET in a shared cache is not known: sharing was not tried where there is one.
    pub shared_unknown: Vec<String>,
    /// Tasks whose WCET is the same whatever their colors. They get none, so they use those of all
    /// others, unless they need no cache.
    pub without: Vec<String>,
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Advice {
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// Name of the platform.
    pub platform: String,
    /// How many processors it has for this.
    pub processors: usize,
    /// The tasks: a plan is for these alone.
    pub tasks: Vec<JudgedTask>,
    /// Their total utilization.
    pub utilization: f64,
    /// How overheads lengthen WCETs.
    pub rule: Rule,
    /// The accounting by name.
    pub accounting: Accounting,
    /// What was charged, in words.
    pub costs: String,
    /// In plain words: what to run, or that nothing was found.
    pub answer: String,
    /// The plan, where one was found.
    pub recommendation: Option<Recommended>,
    /// Every policy that was looked at: those that hold first, the best of them first.
    pub policies: Vec<Considered>,
    /// Where nothing holds: the changes with which something does, the smallest first.
    pub changes: Vec<Change>,
    /// Where WCETs depend on colors and some were to be given: what came of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<GivenColors>,
    /// What was not tried, in words.
    pub not_tried: Vec<String>,
    /// How the search ended.
    pub ended: Ended,
}

impl Advice {
    /// The tasks as the recommended plan has them: with its colors, the WCETs that these bring, and
    /// its priorities.
    ///
    /// # Errors
    /// The set is not the one that was asked about.
    pub fn planned_set(&self, set: &TaskSet) -> Result<TaskSet> {
        let Some(found) = &self.recommendation else {
            return Ok(set.clone());
        };
        planned(set, found.colors.as_deref(), found.priorities.as_deref())
    }
}

impl Considered {
    /// As [`Advice::planned_set`], for the plan of this policy.
    ///
    /// # Errors
    /// The set is not the one that was asked about.
    pub fn planned_set(&self, set: &TaskSet) -> Result<TaskSet> {
        planned(set, self.colors.as_deref(), self.priorities.as_deref())
    }
}

fn planned(
    set: &TaskSet,
    colors: Option<&[Option<Colors>]>,
    priorities: Option<&[u32]>,
) -> Result<TaskSet> {
    let set = match colors {
        Some(colors) => set.with_colors(colors)?,
        None => set.clone(),
    };
    match priorities {
        Some(priorities) => set.with_priorities(priorities),
        None => Ok(set),
    }
}
