//! The plan that `advise` writes and other verbs take: an answer of `check` for one policy, with
//! priorities where the plan has others than the set.

use crate::answer::Advice;
use analyze::Guarantee;
use analyze::policies::{Accounting, Rule};
use model::assignmentfile::JudgedTask;
use model::{Assignment, Colors};
use serde::Serialize;

/// A plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// `warmset plan`.
    pub document: &'static str,
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// Name of the platform.
    pub platform: String,
    /// How many processors it has for this.
    pub processors: usize,
    /// How overheads were charged.
    pub rule: Rule,
    /// The accounting by name.
    pub accounting: Accounting,
    /// What was charged, in words.
    pub costs: String,
    /// The tasks that it is for.
    pub tasks: Vec<JudgedTask>,
    /// The policy, alone.
    pub policies: Vec<Planned>,
}

/// The policy of a plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Planned {
    /// Its name, as on the command line.
    pub policy: String,
    /// `check` said yes to it.
    pub schedulable: bool,
    /// Why it was recommended.
    pub reason: String,
    /// By task, its priority, the larger the more urgent, where the plan has others than the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Vec<u32>>,
    /// By task, its colors, where WCETs depend on them; `null`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<Vec<Option<Colors>>>,
    /// Who runs where.
    pub assignment: Option<Assignment>,
}

impl Advice {
    /// The plan that is recommended.
    pub fn plan(&self) -> Option<Plan> {
        let found = self.recommendation.as_ref()?;
        Some(Plan {
            document: "warmset plan",
            guarantee: self.guarantee,
            platform: self.platform.clone(),
            processors: self.processors,
            rule: self.rule,
            accounting: self.accounting,
            costs: self.costs.clone(),
            tasks: self.tasks.clone(),
            policies: vec![Planned {
                policy: found.policy.clone(),
                schedulable: found.verdict.schedulable,
                reason: found.reason.clone(),
                priorities: found.priorities.clone(),
                colors: found.colors.clone(),
                assignment: found.verdict.assignment.clone(),
            }],
        })
    }
}
