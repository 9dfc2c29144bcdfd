//! The life of a job in its domain: due, released, ready, complete or cut short, and on to the next
//! one.

use super::Domain;
use crate::backend::{Backend, Then};
use crate::team::Mail;
use crate::trigger::ear;
use job::{Begin, Reached};
use model::{Enforcement, Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Event, Place, Policy};
use trace::{Event as Record, Overhead};

impl<P: Policy, B: Backend> Domain<P, B> {
    /// The release of the next job of a task is this domain's duty from now on.
    pub(super) fn expect(&mut self, task: TaskId) {
        if let Some(releaser) = &self.books.team.releasers[task.index()] {
            releaser.expect(self.books.domain);
            self.look_at_trigger(task);
            return;
        }
        let at = self.books.release_of(task, self.arrived[task.index()]);
        if at < self.books.horizon {
            self.releases.set(task.index(), at.nanos());
        }
    }

    /// Looks which of the releases that are this domain's duty are asked for.
    pub(super) fn look_at_triggers(&mut self) {
        for task in (0..self.arrived.len() as u32).map(TaskId) {
            let releaser = self.books.team.releasers[task.index()].as_ref();
            if releaser.is_some_and(|r| r.domain() == Some(self.books.domain)) {
                self.look_at_trigger(task);
            }
        }
    }

    /// If the release of a task that is this domain's duty is asked for, it is due when that may
    /// be.
    fn look_at_trigger(&mut self, task: TaskId) {
        let books = &self.books;
        let (parameters, number) = (&books.parameters[task.index()], self.arrived[task.index()]);
        let Some(releaser) = &books.team.releasers[task.index()] else {
            return;
        };
        let at = releaser.next(parameters.phase, parameters.period);
        let Some(at) = at.filter(|at| *at < books.horizon) else {
            return;
        };
        if !releaser.has_room(number) {
            let name = books.team.name(task);
            books.team.fail(ear::too_far_behind(name));
            return;
        }
        self.releases.set(task.index(), at.nanos());
    }

    /// The release that is due, of a task whose release is this domain's duty.
    pub(super) fn release(&mut self, task: TaskId) {
        let number = self.arrived[task.index()];
        self.arrived[task.index()] = number + 1;
        let parameters = self.books.parameters[task.index()];
        if let Some(releaser) = &self.books.team.releasers[task.index()] {
            let at = Instant::from_nanos(self.releases.key());
            releaser.release(number, at, parameters.phase, parameters.period);
        }
        let nominal = self.books.release_of(task, number);
        self.books.show_release(task, number, nominal);
        self.books.show_overhead(Overhead::Release, task, number);
        self.releases.set(task.index(), Tournament::NEVER);
        if parameters.triggered || self.books.release_of(task, number + 1) < self.books.horizon {
            self.expect_next(task, number + 1);
        }
        let life = &self.books.tasks[task.index()].life;
        if life.awaits(number + 1) && life.number() == number {
            self.fresh.push(task);
            self.begin(task);
        }
        self.books.end_overhead(Overhead::Release, task, number);
    }

    /// Passes the duty to release job `number` of a task on to the domain in which it becomes
    /// ready.
    fn expect_next(&mut self, task: TaskId, number: u64) {
        let home = self.home(task, number);
        if home == self.books.domain {
            self.expect(task);
            return;
        }
        if let Some(releaser) = &self.books.team.releasers[task.index()] {
            // Nobody's, until the letter has come.
            releaser.leave();
        }
        self.books.team.send(home, Mail::Release { task, number });
    }

    /// A task has become this domain's: a part of its job is ready, or its next job if that is
    /// released.
    pub(super) fn arrive(&mut self, task: TaskId) {
        let life = &self.books.tasks[task.index()].life;
        if life.is_current() {
            self.ready(task);
            self.look_at(task);
        } else if life.awaits(self.arrived[task.index()]) {
            self.begin(task);
        }
    }

    /// The next job of a task, which is released, becomes its current one.
    pub(super) fn begin(&mut self, task: TaskId) {
        let books = &mut self.books;
        let number = books.tasks[task.index()].life.number();
        if let Some(releaser) = &books.team.releasers[task.index()] {
            releaser.begin(number);
        }
        let release = books.release_of(task, number);
        let parameters = &books.parameters[task.index()];
        let budget = match books.enforcement {
            Enforcement::Off if !parameters.budgeted => None,
            _ => Some(parameters.wcet),
        };
        let deadline = books.deadline_of(task, number);
        books.tasks[task.index()].life.begin(Begin {
            release,
            deadline,
            demand: None,
            budget,
        });
        self.ready(task);
    }

    /// The current job of a task, or its next part, can run from now on.
    pub(super) fn ready(&mut self, task: TaskId) {
        let life = &mut self.books.tasks[task.index()].life;
        let job = life.job(task);
        let slice = match P::SLICES {
            true => self.policy.slice(&job),
            false => None,
        };
        life.ready(slice);
        if P::SLICES && (slice.is_some() || job.part > 0) {
            let cpu = self.books.cpus[0];
            let window = self.policy.window(&job);
            let event = Record::window(self.books.now, cpu, job.task, job.number, window);
            self.books.producer.push(event);
        }
        self.tell(Event::Ready(job));
    }

    /// Notes what a task of this domain has done that is not yet known here. A task of another
    /// domain is left alone: that domain looks when it is ready there.
    pub(super) fn look_at(&mut self, task: TaskId) {
        if !self.books.tasks[task.index()].is_owned() || !self.books.backend.has_done(task) {
            return;
        }
        // It may have finished since this step began: a completion is not stamped before its job's
        // end.
        self.books.pass();
        if let Some(executed) = self.books.take_work_done(task) {
            self.books.show_completion(task, executed, false);
            self.finish(task);
        }
    }

    /// The current job of a task is complete; it is shown already, and on no processor any more.
    pub(super) fn finish(&mut self, task: TaskId) {
        if let Some(misses) = self.books.backend.misses(task) {
            self.policy.counted(task, misses);
        }
        self.tell(Event::Done(task));
        self.books.tasks[task.index()].life.complete();
        self.follow(task);
    }

    /// The current job of a task has ended: on to the next one.
    fn follow(&mut self, task: TaskId) {
        // It may have finished after its slice was used up, while its next part was waited for.
        self.books.arrivals.set(task.index(), Tournament::NEVER);
        let life = &self.books.tasks[task.index()].life;
        let number = life.number();
        let home = self.home(task, number);
        if home == self.books.domain {
            if life.awaits(self.arrived[task.index()]) {
                self.begin(task);
            }
        } else {
            self.books.hand_over(task, home, Instant::ZERO);
        }
    }

    /// Running jobs that have reached what they may execute.
    pub(super) fn take_limits(&mut self) {
        while self.books.looks.key() <= self.books.now.nanos() {
            let place = Place(self.books.looks.entry() as u32);
            self.books.looks.set(place.index(), Tournament::NEVER);
            if let Some(task) = self.books.running[place.index()] {
                self.take_limit(place, task);
            }
        }
    }

    /// The job that runs at this place may have reached what it may execute.
    fn take_limit(&mut self, place: Place, task: TaskId) {
        self.books.account(task);
        let slice = match self.books.tasks[task.index()]
            .life
            .reached(&self.books.limits)
        {
            Reached::Slice => true,
            Reached::Budget => false,
            Reached::Nothing | Reached::Complete => {
                // It did not have the processor all the time.
                self.books.set_limit(place, task);
                return;
            }
        };
        let parameters = &self.books.parameters[task.index()];
        let is_budgeted = parameters.budgeted;
        let then = match slice || parameters.stops_beyond_budget {
            true => Then::Stops,
            false => Then::Waits,
        };
        if !self.books.preempt(task, place, then) {
            // It finished at the last moment.
            self.finish_late();
        } else if slice {
            self.books.tasks[task.index()].life.exhaust(self.books.now);
            self.books.show_exhaustion(task, place);
            self.tell(Event::Exhausted(task));
        } else {
            self.books.cut(task, place);
            self.tell(Event::Done(task));
            let life = &mut self.books.tasks[task.index()].life;
            match is_budgeted {
                // A program that knows nothing of jobs leaves nothing to its next one.
                true => life.complete(),
                false => life.cut(),
            }
            self.follow(task);
        }
    }
}
