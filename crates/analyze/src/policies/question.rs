//! One set under one policy at one price.

use super::Costs;
use super::costs::Bill;
use super::limits::Limits;
use super::subject::{Subject, Way};
use crate::assign::Site;
use crate::partition::affinity::{self, Allowed};
use crate::verdict::Guarantee;
use model::{Assignment, Platform, Result, TaskSet};
use policy::catalog::Tests;
use std::borrow::Cow;

/// A set, a policy, and what the platform charges for it.
pub(super) struct Question<'a> {
    pub set: &'a TaskSet,
    pub platform: &'a Platform,
    pub policy: Cow<'a, Subject>,
    pub guarantee: Guarantee,
    pub site: Cow<'a, Site>,
    pub bill: Bill,
    /// Where tasks may be; `None`: everywhere.
    pub allowed: Option<Allowed>,
    /// Why tasks cannot be where they are kept to, as a clause.
    pub(super) kept_apart: Option<String>,
    /// The assignment to judge, instead of those that heuristics find.
    pub given: Option<&'a Assignment>,
    /// Which heuristics and tests are asked.
    pub limits: Limits,
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
            policy: Cow::Owned(policy),
            guarantee,
            site: Cow::Owned(Site::of(platform, clusters)),
            bill,
            allowed,
            kept_apart,
            given,
            limits: Limits::default(),
        })
    }

    /// The same with only some of the heuristics and tests.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Question { limits, ..self }
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
}
