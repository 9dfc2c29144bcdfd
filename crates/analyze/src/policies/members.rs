//! The tasks of one processor or cluster as its tests take them: with blocking and jitter, fixed
//! priorities by rank.

use super::question::Question;
use crate::carries::{self, Carries};
use crate::global::gfp_rta;
use crate::uniprocessor::fixed_priority::{self, Priority, Response};
use crate::uniprocessor::{Work, delayed, edf_response};
use crate::verdict::Decision;
use crate::{clustered, registry};
use model::{Duration, Extras, Timing};

/// The tasks of one place. Where some task has blocking or jitter, and priorities are fixed, the
/// most urgent comes first.
pub(super) struct Members {
    /// Their indices in the set.
    pub ids: Vec<usize>,
    /// Their timings with overheads.
    pub tasks: Vec<Timing>,
    /// Their blocking and jitter; empty: none has any.
    pub extras: Vec<Extras>,
}

/// Response times with blocking and jitter on each processor decided.
pub(super) const BY_DELAYED_RESPONSE: &str = "response times with blocking and jitter";

impl Question<'_> {
    /// The tasks of one place, from their indices in the set and their timings with overheads.
    pub fn members(&self, inside: impl Iterator<Item = (usize, Timing)>) -> Members {
        let (ids, tasks): (Vec<usize>, Vec<Timing>) = inside.unzip();
        let of_all = self.set.extras();
        let extras: Vec<Extras> = match of_all {
            [] => Vec::new(),
            _ => ids.iter().map(|i| of_all[*i]).collect(),
        };
        let members = Members { ids, tasks, extras };
        if members.extras.iter().all(Extras::is_none) {
            return Members {
                extras: Vec::new(),
                ..members
            };
        }
        match self.policy.priority() {
            Some(priority) => members.in_order(&priority.order(&members.tasks)),
            None => members,
        }
    }
}

impl Members {
    fn in_order(&self, order: &[usize]) -> Self {
        Members {
            ids: order.iter().map(|i| self.ids[*i]).collect(),
            tasks: order.iter().map(|i| self.tasks[*i]).collect(),
            extras: order.iter().map(|i| self.extras[*i]).collect(),
        }
    }

    /// Tests whether no task here has blocking or jitter.
    pub fn are_plain(&self) -> bool {
        self.extras.is_empty()
    }

    /// Tests whether response times are reached by some job: blocking may never come when it hurts.
    pub fn are_exact(&self) -> bool {
        !carries::has_blocking(&self.extras)
    }

    /// What fixed priorities on one processor say.
    pub fn fixed(&self, priority: Priority) -> Decision {
        match self.are_plain() {
            true => fixed_priority::decide(&self.tasks, priority),
            false => delayed::decide_fixed(&self.tasks, &self.extras, &mut Work::new()),
        }
    }

    /// Response times under fixed priorities on one processor.
    pub fn fixed_responses(&self, priority: Priority) -> Vec<Response> {
        match self.are_plain() {
            true => fixed_priority::response_times(&self.tasks, priority),
            false => delayed::fixed_response_times(&self.tasks, &self.extras),
        }
    }

    /// Bounds of response times under global fixed priorities.
    pub fn global_fixed_responses(&self, size: u32, priority: Priority) -> Option<Vec<Duration>> {
        let reduced = carries::reduced(Carries::Sporadic, &self.tasks, &self.extras).ok()??;
        // The members stand in the order of priority where they are not plain.
        let priority = if self.are_plain() {
            priority
        } else {
            Priority::Given
        };
        let times = gfp_rta::response_bounds(&reduced, size, priority).ok()??;
        Some(self.since_arrivals(times))
    }

    /// Exact response times under EDF on one processor, or bounds with blocking.
    pub fn edf_responses(&self, work: &mut Work) -> Option<Vec<Duration>> {
        match self.are_plain() {
            true => edf_response::response_times(&self.tasks, work),
            false => delayed::edf_response_times(&self.tasks, &self.extras, work),
        }
    }

    /// The times from releases as times from arrivals.
    pub fn since_arrivals(&self, times: Vec<Duration>) -> Vec<Duration> {
        let jitters = self.extras.iter().map(|x| x.jitter);
        let all = jitters.chain(std::iter::repeat(Duration::ZERO));
        times
            .into_iter()
            .zip(all)
            .map(|(t, j)| t.saturating_add(j))
            .collect()
    }

    /// What the tests for global fixed priorities of these priorities say.
    pub fn global_fixed(&self, priority: Priority, size: u32) -> Vec<(&'static str, Decision)> {
        // With deadlines equal to periods the two orders are one.
        let implicit = self.tasks.iter().all(Timing::has_implicit_deadline);
        if priority == Priority::DeadlineMonotonic
            || (priority == Priority::RateMonotonic && implicit)
        {
            let all = registry::ALL.iter().filter(|t| t.policy == "g-fp:dm");
            return all
                .map(|t| (t.name, t.decide_with(&self.tasks, &self.extras, size)))
                .collect();
        }
        let says = match self.are_plain() {
            true => gfp_rta::is_schedulable(&self.tasks, size, priority),
            // By rank already.
            false => gfp_rta::GIVEN.decide_with(&self.tasks, &self.extras, size),
        };
        vec![(gfp_rta::GIVEN.name, says)]
    }

    /// What the tests for global EDF say.
    pub fn global_edf(&self, size: u32) -> Vec<(&'static str, Decision)> {
        clustered::global_tests()
            .filter(|t| clustered::is_asked(t, self.tasks.len()))
            .map(|t| (t.name, t.decide_with(&self.tasks, &self.extras, size)))
            .collect()
    }

    /// The tasks with blocking as execution, for soft guarantees. Nothing here has jitter, or it is
    /// alone on its processor's queue.
    pub fn with_blocking(&self) -> Vec<Timing> {
        let blocking = self.extras.iter().map(|x| x.blocking);
        let all = blocking.chain(std::iter::repeat(Duration::ZERO));
        self.tasks
            .iter()
            .zip(all)
            .map(|(t, b)| t.inflated(b))
            .collect()
    }
}
