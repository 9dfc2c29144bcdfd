//! The lists of tasks that have finished, one a domain, without locks.
//!
//! Workers add themselves at any moment, also while their task changes hands; dispatchers take all.
//! A job that is preempted at any moment never keeps a dispatcher waiting.

use super::Team;
use crate::backend::Host;
use crate::ids::{InboxId, PostId};
use model::TaskId;
use policy::{NONE, Place};
use std::sync::atomic::{Ordering, fence};

impl<H: Host> Team<H> {
    /// From now on the task, which is to run at this place, reports there. Called by the domain
    /// that owns it.
    pub fn report_to(&self, task: TaskId, domain: InboxId, place: Place) {
        let report = &self.reports[task.index()];
        let post = self.inboxes[domain.index()].leader.of(place);
        report.domain.store(domain.0, Ordering::Release);
        report.post.store(post.0, Ordering::Relaxed);
    }

    /// From now on the task reports to a domain of the next stage. Called by the one dispatcher
    /// that hands a stage over. Whatever the task finished before is seen by a look after this.
    pub fn move_reports_to(&self, task: TaskId, domain: InboxId) {
        let report = &self.reports[task.index()];
        let leader = self.inboxes[domain.index()].leader;
        report.domain.store(domain.0, Ordering::Relaxed);
        report.post.store(leader.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Tells the domain of a task that the task has done a piece of work. Called by the task's
    /// worker, or in its name.
    pub fn tell_finished(&self, task: TaskId) {
        self.enlist(task);
        let post = self.reports[task.index()].post.load(Ordering::Relaxed);
        self.host.call(PostId(post));
    }

    /// Puts a task on the list that its domain looks at, if it is on none.
    fn enlist(&self, task: TaskId) {
        let report = &self.reports[task.index()];
        let domain = report.domain();
        // Who is on the list already will be looked at after this moment.
        if !report.listed.swap(true, Ordering::AcqRel) {
            let finished = &self.inboxes[domain.index()].finished;
            let mut first = finished.load(Ordering::Relaxed);
            loop {
                report.next.store(first, Ordering::Relaxed);
                match finished.compare_exchange_weak(
                    first,
                    task.0,
                    Ordering::Release,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
        }
        // Another stage may have taken the task over in between, and the one before have looked for
        // the last time. A dispatcher goes after it: a worker could be stopped at any moment, with
        // the list in its hands.
        fence(Ordering::SeqCst);
        let own = InboxId(report.domain.load(Ordering::Relaxed));
        if own != domain {
            self.strays.store(true, Ordering::Release);
            self.call_leader(own);
        }
    }

    fn call_leader(&self, domain: InboxId) {
        self.host.call(self.inboxes[domain.index()].leader);
    }

    /// Takes all tasks off the list of a domain, and puts each on that of the domain that it
    /// reports to now. Called by dispatchers.
    pub(super) fn pass_on(&self, domain: InboxId) {
        self.take_list(domain, |task| {
            self.enlist(task);
            self.call_leader(self.reports[task.index()].domain());
        });
    }

    /// Takes all tasks off the list of a domain; those that finish from now on are on it again.
    /// Called under the domain's lock.
    pub fn take_finished(&self, domain: InboxId, into: &mut Vec<TaskId>) {
        if self.strays.load(Ordering::Relaxed) && self.strays.swap(false, Ordering::AcqRel) {
            for other in (0..self.inboxes.len() as u32).map(InboxId) {
                if other != domain {
                    self.pass_on(other);
                }
            }
        }
        self.take_list(domain, |task| into.push(task));
    }

    fn take_list(&self, domain: InboxId, mut each: impl FnMut(TaskId)) {
        let finished = &self.inboxes[domain.index()].finished;
        // Most steps find nothing, and leave the line to those that read it.
        let mut task = match finished.load(Ordering::Relaxed) {
            NONE => NONE,
            _ => finished.swap(NONE, Ordering::Acquire),
        };
        while task != NONE {
            let report = &self.reports[task as usize];
            let next = report.next.load(Ordering::Relaxed);
            // Either the worker finds itself off the list, or what it has done by now is seen here:
            // an exchange orders both.
            report.listed.swap(false, Ordering::AcqRel);
            each(TaskId(task));
            task = next;
        }
    }
}
