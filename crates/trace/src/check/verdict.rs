//! What the checker says in the end: violations, standstills, and the verdict.

use super::Ready;
use crate::distribution::Distribution;
use model::Duration;
use serde::Serialize;
use std::fmt;

/// A rule that was broken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// When, in nanoseconds.
    pub time_ns: u64,
    /// The name of the rule.
    pub rule: &'static str,
    /// What happened, as a clause.
    pub text: String,
    /// The event that broke it, with its place in the trace, from 0; `None`: what broke it was that
    /// nothing happened.
    pub event: Option<(u64, String)>,
    /// What was ready then, by deadline; at most [`Violation::MAX_QUEUE`].
    pub queue: Vec<Ready>,
}

impl Violation {
    /// The most ready jobs that are shown.
    pub const MAX_QUEUE: usize = 24;
}

/// How long something that was due had to wait: the tolerance that would have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Overdue {
    /// How often.
    pub count: u64,
    /// Half of them were shorter, in nanoseconds.
    pub median_ns: u64,
    /// All but one in a thousand were shorter.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All together.
    #[serde(skip)]
    pub total_ns: u64,
}

impl Overdue {
    pub(super) fn of(times: &Distribution) -> Self {
        let [median, p999] = times.quantiles([0.5, 0.999]);
        Overdue {
            count: times.count(),
            median_ns: median.nanos(),
            p999_ns: p999.nanos(),
            max_ns: times.max().nanos(),
            total_ns: times.total().nanos(),
        }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// How often a processor of a real machine ran nothing for a while: [`EventKind::Standstill`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Standstills {
    /// How often.
    pub count: u64,
    /// For how long in all, in nanoseconds.
    pub total_ns: u64,
    /// For how long at most.
    pub max_ns: u64,
}

impl fmt::Display for Standstills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the machine stood still {} times, for {} in all, {} at most: that is not counted as overdue",
            self.count,
            Duration::from_nanos(self.total_ns).rounded(),
            Duration::from_nanos(self.max_ns).rounded()
        )
    }
}

impl Standstills {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What the checker says of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Events checked.
    pub events: u64,
    /// Events after the first loss: not checked.
    pub unchecked: u64,
    /// Events that were lost.
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// The policies whose own rules were checked.
    pub policies: Vec<String>,
    /// What was not checked, and why.
    pub notes: Vec<String>,
    /// What a decision was allowed to be overdue, in nanoseconds.
    pub tolerance_ns: u64,
    /// What decisions were overdue, without the time in which processors stood still.
    pub overdue: Overdue,
    /// When processors stood still, which is not counted as overdue.
    #[serde(skip_serializing_if = "Standstills::is_empty")]
    pub standstills: Standstills,
    /// How late jobs were released; real runs only. That includes the time in which processors
    /// stood still.
    #[serde(skip_serializing_if = "Overdue::is_empty")]
    pub late_releases: Overdue,
    /// By how much completed jobs say to have executed for longer than the trace shows; real runs
    /// only.
    #[serde(skip_serializing_if = "Overdue::is_empty")]
    pub unseen: Overdue,
    /// How many violations there are.
    pub violations: u64,
    /// The first of them.
    pub first: Vec<Violation>,
}

impl Verdict {
    /// No rule was broken, and everything was checked.
    pub fn is_clean(&self) -> bool {
        self.violations == 0
    }
}
