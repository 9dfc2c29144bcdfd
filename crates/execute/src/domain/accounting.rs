//! The account of work: what jobs have executed, which pieces of work are done, when to look again.

use super::books::Books;
use super::enforcement::SHORTEST;
use crate::backend::Backend;
use crate::ids::Place;
use model::{Duration, Enforcement, TaskId};

impl<B: Backend> Books<B> {
    /// Takes note of a piece of work that the task, one of this domain, has done. If its current
    /// job is complete with that: the processor time of the job.
    pub(super) fn take_work_done(&mut self, task: TaskId) -> Option<Duration> {
        let done = self.backend.take_done(task);
        let state = &mut self.tasks[task.index()];
        if state.behind > 0 {
            // That was left over from a job that was cut short: on with the next one's.
            state.behind -= 1;
            if let Some(place) = state.place {
                self.backend.begin_work(task, place);
            }
            return None;
        }
        if let (true, Some(began)) = (std::mem::take(&mut state.prompt), done.began) {
            self.latencies.record(began.since(state.release).nanos());
        }
        if let (Some(called), Some(began)) = (done.called, done.began) {
            self.calls.record(began.since(called).nanos());
        }
        if done.used.is_none() {
            self.account(task);
        }
        let retired = self.backend.retire(task);
        self.check(retired);
        let state = &self.tasks[task.index()];
        let executed = done.used.unwrap_or(Duration::from_nanos(state.executed));
        state.current.then_some(executed)
    }

    /// If the job of a task, released in this step, was put on a processor in it too, its latency
    /// will count.
    pub(super) fn note_prompt(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.prompt = state.place.is_some() && state.behind == 0;
    }

    /// The job of a place, which was just preempted there, is over although its work is not done.
    pub(super) fn cut(&mut self, task: TaskId, place: Place) {
        if self.parameters[task.index()].budgeted {
            // What it does goes on, and knows nothing of jobs.
            let retired = self.backend.retire(task);
            self.check(retired);
        } else {
            self.tasks[task.index()].behind += 1;
        }
        self.show_cut(task, place);
    }

    /// Adds up what a task has executed.
    pub(super) fn account(&mut self, task: TaskId) {
        let now = self.backend.executed(task);
        let state = &mut self.tasks[task.index()];
        let time = now.saturating_sub(std::mem::replace(&mut state.accounted, now));
        state.executed += time;
        if state.slice_left != u64::MAX {
            state.slice_left = state.slice_left.saturating_sub(time);
        }
        if state.budget_left != u64::MAX {
            state.budget_left = state.budget_left.saturating_sub(time);
        }
    }

    /// Sets when to look next at what the job of a place has executed.
    pub(super) fn set_limit(&mut self, place: Place, task: TaskId) {
        let state = &self.tasks[task.index()];
        let now = self.now.nanos();
        let at = |left: u64| match left {
            u64::MAX => u64::MAX,
            left => now.saturating_add(left.max(SHORTEST)),
        };
        let mut budget = at(state.budget_left);
        if self.enforcement == Enforcement::PerQuantum && budget != u64::MAX {
            let quantum = self.quantum.nanos().max(1);
            budget = budget.div_ceil(quantum).saturating_mul(quantum);
        }
        self.limits
            .set(place.index(), at(state.slice_left).min(budget));
    }
}
