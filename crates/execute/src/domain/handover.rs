//! From one stage to the next: a domain gives its tasks away, and another one takes them over.

use super::Domain;
use super::books::{Books, Shown};
use crate::backend::{Backend, TaskOf};
use crate::ids::InboxId;
use crate::task_state::{Moving, TaskState};
use crate::team::{Mail, Team};
use model::{CpuId, TaskId};
use policy::tournament::Tournament;
use policy::{DomainId, Place, Policy, Route};
use trace::recorder::{self, Producer};

/// What goes from one stage to the next.
pub(crate) struct Carried<T> {
    /// By task, its state and what the backend knows of it. Empty for none: every task has an
    /// owner.
    pub tasks: Vec<Option<(Moving, T)>>,
    /// By task: how many of its jobs were released.
    pub arrived: Vec<u64>,
    /// What processors show in the trace.
    pub shown: Vec<(CpuId, Shown)>,
    /// Who writes the trace, by domain.
    pub producers: Vec<Producer>,
}

impl<T> Carried<T> {
    /// Of so many tasks, nothing yet.
    pub fn new(tasks: usize) -> Self {
        Carried {
            tasks: (0..tasks).map(|_| None).collect(),
            arrived: vec![0; tasks],
            shown: Vec::new(),
            producers: Vec::new(),
        }
    }
}

impl<B: Backend> Books<B> {
    /// The task, which runs nowhere, is this domain's from now on.
    pub(super) fn own(&mut self, task: TaskId, state: Moving, known: TaskOf<B>) {
        self.tasks[task.index()].receive(state);
        let taken = self.backend.take(task, known);
        self.check(taken);
    }
}

impl<P: Policy, B: Backend> Domain<P, B> {
    /// The stage is over: takes note of what has happened, and takes everybody off.
    pub fn leave(&mut self, team: &Team<B::Host>) {
        self.books.begin(Place(0));
        self.take_mail(team);
        self.take_finished(team);
        self.books.clear();
        self.finish_late();
    }

    /// Takes the mail that is left. True: there was some.
    pub fn take_last_mail(&mut self, team: &Team<B::Host>) -> bool {
        let has_mail = team.inboxes[self.books.domain.index()].has_mail();
        self.take_mail(team);
        has_mail
    }

    /// Gives away the tasks that are its own, and what is known of them. [`Domain::leave`] has
    /// taken everybody off.
    pub fn give(&mut self, carried: &mut Carried<TaskOf<B>>) {
        let books = &mut self.books;
        let states = (0..).map(TaskId).zip(&mut books.tasks);
        for (task, state) in states.filter(|(_, state)| state.is_owned()) {
            carried.tasks[task.index()] = Some((state.hand_over(), books.backend.give(task)));
        }
        for (most, here) in carried.arrived.iter_mut().zip(&self.arrived) {
            *most = (*most).max(*here);
        }
        let shown = books.cpus.iter().copied().zip(books.shown.iter().copied());
        carried.shown.extend(shown);
        let (mut nobody, _) = recorder::rings([CpuId(0)], 2);
        if let Some(nobody) = nobody.pop() {
            let producer = std::mem::replace(&mut books.producer, nobody);
            carried.producers.push(producer);
        }
        carried.producers.append(&mut self.spare);
    }

    /// Takes over, as domain `index` of its stage, what is its own of what another stage has left.
    pub fn take_over(
        &mut self,
        team: &Team<B::Host>,
        route: &Route,
        carried: &mut Carried<TaskOf<B>>,
        index: DomainId,
    ) {
        self.books.begin(Place(0));
        for (place, cpu) in self.books.cpus.iter().enumerate() {
            let known = carried.shown.iter().find(|(c, _)| c == cpu);
            self.books.shown[place] = known.map_or(Shown::Busy, |(_, shown)| *shown);
        }
        for (task, known) in (0..).map(TaskId).zip(&mut carried.tasks) {
            let arrived = carried.arrived[task.index()];
            self.arrived[task.index()] = arrived;
            self.releases.set(task.index(), Tournament::NEVER);
            if route.home(task, arrived) == index {
                self.expect(task);
            }
            self.books.tasks[task.index()] = TaskState::new(false);
            let is_mine =
                |(state, _): &mut (Moving, _)| route.home(task, state.handed.number()) == index;
            if let Some((state, of_backend)) = known.take_if(is_mine) {
                self.take_task_over(team, task, state, of_backend);
            }
        }
        self.dirty = true;
    }

    /// A task of another stage is this domain's from now on; its job, if it has one, runs nowhere.
    fn take_task_over(
        &mut self,
        team: &Team<B::Host>,
        task: TaskId,
        state: Moving,
        known: TaskOf<B>,
    ) {
        // Whoever finishes from here on says so here; what was finished before is seen by whoever
        // looks now.
        team.move_reports_to(task, self.books.domain);
        self.books.tasks[task.index()].receive_anew(state);
        let taken = self.books.backend.take(task, known);
        self.books.check(taken);
        let life = &self.books.tasks[task.index()].life;
        if life.is_current() {
            self.ready(task);
        } else if life.awaits(self.arrived[task.index()]) {
            self.begin(task);
        }
        self.look_at(task);
    }

    /// Looks for the last time, when all dispatchers have ended: how far the jobs of each task have
    /// come, for the tasks that are this domain's: the number of the first job that is not done.
    pub fn unfinished(&mut self, team: &Team<B::Host>) -> Vec<(TaskId, u64)> {
        let domain: InboxId = self.books.domain;
        team.inboxes[domain.index()].take_mail(&mut self.mail);
        for letter in std::mem::take(&mut self.mail) {
            if let Mail::Task { task, state, .. } = letter {
                self.books.tasks[task.index()].receive(state);
            }
        }
        let states = (0..).map(TaskId).zip(&self.books.tasks);
        states
            .filter(|(_, state)| state.is_owned())
            .map(|(task, state)| (task, state.life.number()))
            .collect()
    }

    /// By task: how many jobs were released here at least.
    pub fn arrived(&self) -> &[u64] {
        &self.arrived
    }
}
