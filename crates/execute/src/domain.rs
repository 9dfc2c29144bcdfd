//! A scheduling domain: tells its policy what happened, keeps the books, and has its backend carry
//! out what is decided.
//!
//! One dispatcher at a time is in here, under the domain's lock; domains share nothing but mail.
//! Nothing here makes a system call or reads a clock but by way of the [`Backend`], which
//! [`crate::backend`] describes.
//!
//! **The order of a step.** What has happened is noted first: mail, completions, triggers, budgets,
//! arrivals, timer, releases. Then the policy decides, all decisions are collected, and then they
//! are carried out: first everybody leaves who has to, then others come. A job that finishes while
//! it is being preempted has finished: its domain finds out right after the preemption, and decides
//! again.
//!
//! **Never on two processors** (002 §4.4.2). A thread cannot be; what has to be right is the order:
//! a job leaves its place before another comes there, and goes to another place only after that.
//!
//! **Who owns a task.** Of all domains, the one in which its current or next job becomes ready;
//! ownership moves with [`Mail::Task`], at a job boundary (002 §4.1) or when a slice is used up
//! (002 §4.2). The duty to release its next job moves on its own, from release to release.

mod accounting;
mod actions;
pub(crate) mod books;
mod carrying;
mod enforcement;
mod handover;
mod jobs;
pub(crate) mod samples;
mod show;

pub use enforcement::POLICED;
pub(crate) use handover::Carried;

use crate::backend::Backend;
use crate::ids::InboxId;
use crate::team::{Mail, Team};
use actions::Actions;
use books::Books;
use model::{Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Event, Place, Policy, Route};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trace::Event as Record;
use trace::recorder::Producer;

/// A domain: its policy, its books, and which releases are its duty.
pub(crate) struct Domain<P, B: Backend> {
    pub policy: P,
    pub books: Books<B>,
    route: Arc<Route>,
    /// Producers that could write for more domains than this stage has.
    pub spare: Vec<Producer>,
    /// The next release of each task whose release is this domain's duty.
    releases: Tournament,
    /// By task: how many of its jobs are known here to be released.
    arrived: Vec<u64>,
    /// Has the policy been told something since it decided?
    dirty: bool,
    /// Buffers, empty between steps.
    actions: Actions,
    mail: Vec<Mail<crate::backend::TaskOf<B>>>,
    finished: Vec<TaskId>,
    /// Tasks that were released in this step, for latencies.
    fresh: Vec<TaskId>,
    /// Has it come to its end?
    pub ended: bool,
    /// Until when the leader sleeps, in nanoseconds of the run.
    pub armed: u64,
}

impl<P: Policy, B: Backend> Domain<P, B> {
    /// `rules_first`: of the first stage of the run, which takes nothing over.
    pub fn new(policy: P, mut books: Books<B>, route: Arc<Route>, rules_first: bool) -> Self {
        let (tasks, places) = (books.tasks.len(), books.cpus.len());
        let mut releases = Tournament::new(tasks);
        for task in (0..tasks as u32).map(TaskId) {
            if books.first_domain.of(route.home(task, 0)) != books.domain {
                continue;
            }
            match &books.team.releasers[task.index()] {
                // Other stages take the duty over.
                Some(releaser) if rules_first => releaser.expect(books.domain),
                Some(_) => {}
                None => {
                    let first = books.release_of(task, 0);
                    if first < books.horizon {
                        releases.set(task.index(), first.nanos());
                    }
                }
            }
        }
        if policy.is_quantum_driven() {
            // The clock comes late to the first boundary as to all others.
            books.timer = 0;
        }
        Domain {
            policy,
            books,
            route,
            spare: Vec::new(),
            releases,
            arrived: vec![0; tasks],
            // At the very start it is asked once.
            dirty: true,
            actions: Actions::new(places, tasks),
            mail: Vec::with_capacity(tasks),
            finished: Vec::with_capacity(tasks),
            fresh: Vec::with_capacity(tasks),
            ended: false,
            armed: 0,
        }
    }

    /// The domain in which a job becomes ready.
    fn home(&self, task: TaskId, number: u64) -> InboxId {
        self.books.first_domain.of(self.route.home(task, number))
    }

    /// When something is due next, in nanoseconds of the run.
    pub fn next(&self) -> u64 {
        self.releases
            .key()
            .min(self.books.arrivals.key())
            .min(self.books.looks.key())
            .min(self.books.timer)
            .min(self.books.horizon.nanos())
            .min(self.books.team.stage_end.load(Ordering::Acquire))
    }

    /// Notes all that has happened up to now, decides, and has it carried out, as the dispatcher of
    /// this place. The caller holds the domain's lock.
    pub fn step(&mut self, team: &Team<B::Host>, here: Place) {
        let now = self.books.begin(here);
        let over = now >= self.books.horizon
            || team.ending.load(Ordering::Acquire)
            || team.is_stage_over(now);
        let decisions = self.books.decisions;
        self.take_mail(team);
        self.take_finished(team);
        if team.inboxes[self.books.domain.index()].take_triggered() {
            self.look_at_triggers();
        }
        let tended = self.books.backend.tend();
        self.books.check(tended);
        if over {
            self.ended = true;
            return;
        }
        self.take_limits();
        let fires = self.take_due(now);
        if fires && self.policy.is_quantum_driven() {
            // All that it knows now it decides from.
            let event = Record::quantum(self.books.now, self.books.cpus[0]);
            self.books.producer.push(event);
        }
        self.decide();
        if self.books.decisions > decisions {
            let took = self.books.pass().since(now);
            self.books.steps.record(took.nanos());
        }
    }

    /// Arrivals, the timer and releases that are due at `now`, at which the step began. True: the
    /// policy's timer fired.
    fn take_due(&mut self, now: Instant) -> bool {
        // A release before or at a quantum boundary that is past begins a quantum where nobody was
        // there to wait for it.
        let due = Instant::from_nanos(self.releases.key());
        let mut fires = due <= now && self.policy.boundary(due).is_some_and(|at| at <= now);
        while self.books.arrivals.key() <= self.books.now.nanos() {
            let task = TaskId(self.books.arrivals.entry() as u32);
            self.books.arrivals.set(task.index(), Tournament::NEVER);
            self.arrive(task);
        }
        if self.books.timer <= now.nanos() {
            self.books.timer = u64::MAX;
            fires = true;
        }
        if fires {
            self.tell(Event::Timer);
        }
        while self.releases.key() <= now.nanos() {
            let task = TaskId(self.releases.entry() as u32);
            self.release(task);
        }
        fires
    }

    /// How long before something is due the leader, at this place, is to be up, in nanoseconds: it
    /// takes no time from a job.
    pub fn early(&self, here: Place) -> u64 {
        match self.books.running[here.index()] {
            None => self.books.early,
            Some(_) => 0,
        }
    }

    /// Brings into the caches what the next release will need, while there is time.
    pub fn foresee(&self) {
        if self.releases.key() < Tournament::NEVER {
            self.books.foresee(TaskId(self.releases.entry() as u32));
        }
    }

    fn tell(&mut self, event: Event) {
        self.policy.happen(event, self.books.now);
        self.dirty = true;
    }

    fn decide(&mut self) {
        while std::mem::take(&mut self.dirty) {
            self.books.decisions += 1;
            self.policy.decide(self.books.now, &mut self.actions);
            self.books.carry_out(&mut self.actions);
            self.finish_late();
        }
        for task in self.fresh.drain(..) {
            self.books.note_prompt(task);
        }
        let policy = &self.policy;
        self.books
            .settle(|place| policy.is_deliberately_idle(place));
    }

    /// Jobs that had finished when they were to be preempted: they were not preempted.
    fn finish_late(&mut self) {
        while let Some(task) = self.books.late.pop() {
            self.finish(task);
        }
    }

    fn take_mail(&mut self, team: &Team<B::Host>) {
        let mut mail = std::mem::take(&mut self.mail);
        team.inboxes[self.books.domain.index()].take_mail(&mut mail);
        for letter in mail.drain(..) {
            match letter {
                Mail::Release { task, number } => {
                    self.arrived[task.index()] = number;
                    self.expect(task);
                }
                Mail::Task {
                    task,
                    state,
                    known,
                    at,
                } => {
                    self.books.own(task, state, known);
                    if at > self.books.now {
                        self.books.arrivals.set(task.index(), at.nanos());
                    } else {
                        self.arrive(task);
                    }
                }
            }
        }
        self.mail = mail;
    }

    fn take_finished(&mut self, team: &Team<B::Host>) {
        let mut finished = std::mem::take(&mut self.finished);
        team.take_finished(self.books.domain, &mut finished);
        for task in finished.drain(..) {
            self.look_at(task);
        }
        self.finished = finished;
    }
}
