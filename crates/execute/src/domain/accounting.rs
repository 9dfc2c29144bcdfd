//! The account of work: what jobs have executed, which pieces of work are done, when to look again.

use super::books::Books;
use crate::backend::Backend;
use model::{Duration, TaskId};
use policy::Place;

impl<B: Backend> Books<B> {
    /// Takes note of a piece of work that the task, one of this domain, has done. If its current
    /// job is complete with that: the processor time of the job.
    pub(super) fn take_work_done(&mut self, task: TaskId) -> Option<Duration> {
        let done = self.backend.take_done(task, self.now);
        let state = &mut self.tasks[task.index()];
        let left_over = state.life.behind() > 0;
        let is_complete = state.life.work_done();
        if left_over {
            // That was left over from a job that was cut short: on with the next one's.
            if let Some(place) = state.place {
                self.backend.begin_work(task, place);
            }
            return None;
        }
        if let (true, Some(began)) = (std::mem::take(&mut state.prompt), done.began) {
            self.latencies
                .record(began.since(state.life.release()).nanos());
        }
        if let (Some(called), Some(began)) = (done.called, done.began) {
            self.calls.record(began.since(called).nanos());
        }
        if done.used.is_none() {
            self.account(task);
        }
        let retired = self.backend.retire(task);
        self.check(retired);
        let executed = self.tasks[task.index()].life.executed();
        is_complete.then_some(done.used.unwrap_or(executed))
    }

    /// If the job of a task, released in this step, was put on a processor in it too, its latency
    /// will count.
    pub(super) fn note_prompt(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.prompt = state.place.is_some() && state.life.behind() == 0;
    }

    /// The job of a place, which was just preempted there, is over although its work is not done.
    /// The domain ends its life.
    pub(super) fn cut(&mut self, task: TaskId, place: Place) {
        if self.parameters[task.index()].budgeted {
            // What it does goes on, and knows nothing of jobs.
            let retired = self.backend.retire(task);
            self.check(retired);
        }
        self.show_cut(task, place);
    }

    /// Adds up what a task has executed.
    pub(super) fn account(&mut self, task: TaskId) {
        let now = self.backend.executed(task);
        let state = &mut self.tasks[task.index()];
        let time = now.saturating_sub(std::mem::replace(&mut state.accounted, now));
        state.life.execute(Duration::from_nanos(time));
    }

    /// Sets when to look next at what the job of a place has executed.
    pub(super) fn set_limit(&mut self, place: Place, task: TaskId) {
        let at = self.tasks[task.index()]
            .life
            .look_at(self.now, &self.limits);
        self.looks.set(place.index(), at.nanos());
    }
}
