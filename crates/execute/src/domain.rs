//! A scheduling domain in real time: tells its policy what happened, and does to threads what the policy decides.
//!
//! One dispatcher at a time is in here, under the domain's lock; domains share nothing but mail. Dispatchers run one a
//! processor and above all jobs, so that nobody who waits for the lock keeps its holder from running.
//!
//! **How a decision becomes true.** A job that is chosen has a thread at priority [`RUN`](kernel::RUN) that may run on its
//! processor only; a job that was chosen before and is not now has a thread at [`WAIT`](kernel::WAIT) on the processor where
//! it last ran, so that it does not run there while another is chosen. Where nobody is chosen, all that wait there are led to
//! their gates. A job that has not begun sleeps. Every change is made by whoever decided it, on its own processor or another's:
//! the kernel carries it there.
//!
//! **Never on two processors** (002 §4.4.2). A thread cannot be; what has to be right is the order. A job is lowered before
//! another is raised in its place, and changes its processor only after that: the kernel answers when it has left. A job that
//! finishes while it is being preempted has finished: its domain finds out right after lowering it, and decides again.
//!
//! **Who owns a task.** Of all domains, the one in which its current or next job becomes ready; ownership moves with
//! [`Mail::Task`], at a job boundary (002 §4.1) or when a slice is used up (002 §4.2). The duty to release its next job
//! moves on its own, from release to release.

mod actions;
mod carrying;
mod ground;
mod samples;
mod show;
mod threads;

pub(crate) use ground::{Fixed, Ground, Leave, Parts, Row, Shown, prepare};
pub(crate) use samples::SAMPLES;

use crate::clock::Timeline;
use crate::kernel;
use crate::stage::{self, Carried};
use crate::team::{Mail, Team};
use actions::Actions;
use model::{Duration, Error, Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Event, NONE, Policy, Route};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trace::recorder::Producer;
use trace::{Event as Record, Overhead};

/// What happens to a job that has executed for its WCET and is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforcement {
    /// It goes on.
    #[default]
    Off,
    /// It is cut short at the next multiple of the quantum; the rest is done by the task's next job.
    PerQuantum,
    /// It is cut short at once; the rest is done by the task's next job.
    Exact,
}

/// A timer is not set for less, in nanoseconds: the dispatcher that it wakes would take the time that is waited for.
const SHORTEST: u64 = 100_000;
/// A slice is used up when so little is left of it; the next one takes that over.
const NEARLY: u64 = 30_000;
/// The shortest slice, budget or turn of a server that is policed.
pub const POLICED: Duration = Duration::from_nanos(2 * SHORTEST);

/// A domain.
pub(crate) struct Core<P> {
    pub policy: P,
    pub ground: Ground,
    route: Arc<Route>,
    /// Who could write for more domains than this stage has.
    pub spare: Vec<Producer>,
    /// The next release of each task whose release is this domain's duty.
    releases: Tournament,
    /// By task: how many of its jobs are known here to be released.
    arrived: Vec<u64>,
    dirty: bool,
    /// Buffers.
    actions: Actions,
    mail: Vec<Mail>,
    finished: Vec<u32>,
    /// What has just been released, for latencies.
    fresh: Vec<u32>,
    /// Has it come to its end?
    pub ended: bool,
    /// Until when the leader sleeps.
    pub armed: u64,
}

impl<P: Policy> Core<P> {
    /// `rules_first`: of the first stage of the run, which takes nothing over.
    pub fn new(policy: P, mut ground: Ground, route: Arc<Route>, rules_first: bool) -> Self {
        let (tasks, ground_places) = (ground.rows.len(), ground.cpus.len());
        let mut releases = Tournament::new(tasks);
        for task in 0..tasks {
            let id = TaskId(task as u32);
            if ground.first_domain + route.home(id, 0) != ground.domain {
                continue;
            }
            match &ground.team.releasers[task] {
                // Other stages take the duty over.
                Some(releaser) if rules_first => releaser.expect(ground.domain),
                Some(_) => {}
                None => {
                    let first = ground.release_of(id.0, 0);
                    if first < ground.horizon {
                        releases.set(task, first.nanos());
                    }
                }
            }
        }
        if policy.is_quantum_driven() {
            // The clock comes late to the first boundary as to all others.
            ground.timer = 0;
        }
        Core {
            policy,
            ground,
            route,
            spare: Vec::new(),
            releases,
            arrived: vec![0; tasks],
            // At the very start it is asked once.
            dirty: true,
            actions: Actions::new(ground_places, tasks),
            mail: Vec::with_capacity(tasks),
            finished: Vec::with_capacity(tasks),
            fresh: Vec::with_capacity(tasks),
            ended: false,
            armed: 0,
        }
    }

    /// The domain in which a job becomes ready.
    fn home(&self, task: u32, number: u64) -> u32 {
        self.ground.first_domain + self.route.home(TaskId(task), number)
    }

    /// When something is due, in nanoseconds of the run.
    pub fn next(&self) -> u64 {
        self.releases
            .key()
            .min(self.ground.arrivals.key())
            .min(self.ground.limits.key())
            .min(self.ground.timer)
            .min(self.ground.horizon.nanos())
            .min(self.ground.team.stage_end.load(Ordering::Acquire))
    }

    /// All that has happened up to now, then the decision, by the dispatcher of this place.
    pub fn step(&mut self, team: &Team, timeline: &Timeline, here: u32) {
        let now = self.ground.begin(timeline, here);
        let over =
            now >= self.ground.horizon || team.ending.load(Ordering::Acquire) || stage::is_over(team, now);
        let decisions = self.ground.decisions;
        self.take_mail(team);
        self.take_finished(team);
        let inbox = &team.inboxes[self.ground.domain as usize];
        if inbox.is_untidy() {
            self.ground.tidy();
        }
        if inbox.is_triggered() {
            self.look_at_triggers();
        }
        self.ground.keep_still();
        if over {
            self.ended = true;
            return;
        }
        self.take_limits();
        // A release before or at a quantum boundary that is past begins a quantum where nobody was there to wait for it.
        let due = Instant::from_nanos(self.releases.key());
        let mut fires = due <= now && self.policy.boundary(due).is_some_and(|at| at <= now);
        while self.ground.arrivals.key() <= now.nanos() {
            let task = self.ground.arrivals.entry() as u32;
            self.ground.arrivals.set(task as usize, Tournament::NEVER);
            self.arrive(task);
        }
        if self.ground.timer <= now.nanos() {
            self.ground.timer = u64::MAX;
            fires = true;
        }
        if fires {
            self.tell(Event::Timer);
        }
        while self.releases.key() <= now.nanos() {
            let task = self.releases.entry() as u32;
            self.release(task);
        }
        if fires && self.policy.is_quantum_driven() {
            // All that it knows now it decides from.
            let event = Record::quantum(self.ground.now, self.ground.cpus[0]);
            self.ground.producer.push(event);
        }
        self.decide();
        if self.ground.decisions > decisions {
            let took = self.ground.pass().since(now);
            self.ground.steps.record(took.nanos());
        }
    }

    /// How long before something is due the leader, at this place, is to be up: it takes no time from a job.
    pub fn early(&self, here: u32) -> u64 {
        match self.ground.running[here as usize] {
            NONE => self.ground.early,
            _ => 0,
        }
    }

    /// Brings into the caches what the next release will need, while there is time.
    pub fn foresee(&self) {
        if self.releases.key() < Tournament::NEVER {
            self.ground.foresee(self.releases.entry() as u32);
        }
    }

    fn tell(&mut self, event: Event) {
        self.policy.happen(event, self.ground.now);
        self.dirty = true;
    }

    fn decide(&mut self) {
        while std::mem::take(&mut self.dirty) {
            self.ground.decisions += 1;
            self.policy.decide(self.ground.now, &mut self.actions);
            self.ground.carry_out(&mut self.actions);
            // Whoever had finished when it was lowered was not preempted.
            while let Some(task) = self.ground.late.pop() {
                self.finish(task);
            }
        }
        for task in self.fresh.drain(..) {
            self.ground.note_prompt(task);
        }
        let policy = &self.policy;
        self.ground.settle(|place| policy.is_deliberately_idle(place));
    }

    fn take_mail(&mut self, team: &Team) {
        let mut mail = std::mem::take(&mut self.mail);
        team.inboxes[self.ground.domain as usize].take_mail(&mut mail);
        for letter in mail.drain(..) {
            match letter {
                Mail::Release { task, number } => {
                    self.arrived[task as usize] = number;
                    self.expect(task);
                }
                Mail::Task { task, row, at } => {
                    self.ground.rows[task as usize] = Row { owned: true, ..row };
                    if at > self.ground.now {
                        self.ground.arrivals.set(task as usize, at.nanos());
                    } else {
                        self.arrive(task);
                    }
                }
            }
        }
        self.mail = mail;
    }

    /// A task has become this domain's: a part of its job is ready, or its next job if that is released.
    fn arrive(&mut self, task: u32) {
        let row = &self.ground.rows[task as usize];
        if row.current {
            self.ready(task);
            self.look_at(task);
        } else if self.arrived[task as usize] > row.number {
            self.begin(task);
        }
    }

    fn release(&mut self, task: u32) {
        let number = self.arrived[task as usize];
        self.arrived[task as usize] = number + 1;
        let fixed = self.ground.fixed[task as usize];
        if let Some(releaser) = &self.ground.team.releasers[task as usize] {
            let at = Instant::from_nanos(self.releases.key());
            releaser.release(number, at, fixed.phase, fixed.period);
        }
        let nominal = self.ground.release_of(task, number);
        self.ground.show_release(task, number, nominal);
        self.ground.show_overhead(Overhead::Release, task, number);
        self.releases.set(task as usize, Tournament::NEVER);
        if fixed.triggered || self.ground.release_of(task, number + 1) < self.ground.horizon {
            match self.home(task, number + 1) {
                home if home == self.ground.domain => self.expect(task),
                home => {
                    if let Some(releaser) = &self.ground.team.releasers[task as usize] {
                        // Nobody's, until the letter has come.
                        releaser.leave();
                    }
                    let letter = Mail::Release {
                        task,
                        number: number + 1,
                    };
                    self.ground.team.send(home, letter);
                }
            }
        }
        let row = &self.ground.rows[task as usize];
        if row.owned && !row.current && row.number == number {
            self.fresh.push(task);
            self.begin(task);
        }
        self.ground.end_overhead(Overhead::Release, task, number);
    }

    /// The release of the next job of a task is this domain's duty from now on.
    fn expect(&mut self, task: u32) {
        if let Some(releaser) = &self.ground.team.releasers[task as usize] {
            releaser.expect(self.ground.domain);
            self.look_at_trigger(task);
            return;
        }
        let at = self.ground.release_of(task, self.arrived[task as usize]);
        if at < self.ground.horizon {
            self.releases.set(task as usize, at.nanos());
        }
    }

    /// Looks which of the releases that are this domain's duty are asked for.
    fn look_at_triggers(&mut self) {
        for task in 0..self.arrived.len() {
            let releaser = self.ground.team.releasers[task].as_ref();
            if releaser.is_some_and(|r| r.domain() == self.ground.domain) {
                self.look_at_trigger(task as u32);
            }
        }
    }

    /// If the release of a task that is this domain's duty is asked for, it is due when that may be.
    fn look_at_trigger(&mut self, task: u32) {
        let ground = &self.ground;
        let (fixed, number) = (&ground.fixed[task as usize], self.arrived[task as usize]);
        let Some(releaser) = &ground.team.releasers[task as usize] else {
            return;
        };
        let at = releaser.next(fixed.phase, fixed.period);
        let Some(at) = at.filter(|at| *at < ground.horizon) else {
            return;
        };
        if !releaser.has_room(number) {
            ground.team.fail(
                Error::new("thousands of its jobs are released and not begun")
                    .at(format!("task {}", ground.team.workers[task as usize].name()))
                    .remedy("give it a longer period, or more of a processor"),
            );
            return;
        }
        self.releases.set(task as usize, at.nanos());
    }

    /// The next job of a task, which is released, becomes its current one.
    fn begin(&mut self, task: u32) {
        let ground = &mut self.ground;
        if let Some(releaser) = &ground.team.releasers[task as usize] {
            releaser.begin(ground.rows[task as usize].number);
        }
        let release = ground.release_of(task, ground.rows[task as usize].number);
        let fixed = &ground.fixed[task as usize];
        let budget = match ground.enforcement {
            Enforcement::Off if !fixed.budgeted => u64::MAX,
            _ => fixed.wcet.nanos(),
        };
        let row = &mut ground.rows[task as usize];
        row.current = true;
        row.started = false;
        row.release = release;
        row.part = 0;
        row.executed = 0;
        row.budget_left = budget;
        self.ready(task);
    }

    fn ready(&mut self, task: u32) {
        let job = self.ground.job(task);
        if P::SLICES {
            let slice = self.policy.slice(&job);
            self.ground.rows[task as usize].slice_left = slice.map_or(u64::MAX, Duration::nanos);
            if slice.is_some() || job.part > 0 {
                let cpu = self.ground.cpus[0];
                let window = self.policy.window(&job);
                let event = Record::window(self.ground.now, cpu, job.task, job.number, window);
                self.ground.producer.push(event);
            }
        }
        self.tell(Event::Ready(job));
    }

    fn take_finished(&mut self, team: &Team) {
        let mut finished = std::mem::take(&mut self.finished);
        team.take_finished(self.ground.domain, &mut finished);
        for task in finished.drain(..) {
            self.look_at(task);
        }
        self.finished = finished;
    }

    /// Has the worker of a task done something that is not yet known here?
    fn look_at(&mut self, task: u32) {
        let row = &self.ground.rows[task as usize];
        if self.ground.team.workers[task as usize].done() == row.done {
            return;
        }
        if !row.owned {
            // Its new domain looks when it is ready there.
            return;
        }
        // It may have finished since this step began: a completion is not stamped before its job's end.
        self.ground.pass();
        if self.ground.work_done(task) {
            self.ground.show_completion(task, false);
            self.finish(task);
        }
    }

    /// The current job of a task is complete or cut short; it is shown already, and on no processor any more.
    fn finish(&mut self, task: u32) {
        self.tell(Event::Done(TaskId(task)));
        let row = &mut self.ground.rows[task as usize];
        row.current = false;
        row.number += 1;
        let number = row.number;
        let home = self.home(task, number);
        if home == self.ground.domain {
            if self.arrived[task as usize] > number {
                self.begin(task);
            }
        } else {
            self.ground.hand_over(task, home, Instant::ZERO);
        }
    }

    /// Running jobs that have reached what they may execute.
    fn take_limits(&mut self) {
        while self.ground.limits.key() <= self.ground.now.nanos() {
            let place = self.ground.limits.entry() as u32;
            self.ground.limits.set(place as usize, Tournament::NEVER);
            let task = self.ground.running[place as usize];
            if task == NONE {
                continue;
            }
            self.ground.account(task);
            let row = &self.ground.rows[task as usize];
            if row.slice_left > NEARLY && row.budget_left > 0 {
                // It did not have the processor all the time.
                self.ground.set_limit(place, task);
                continue;
            }
            let slice = row.budget_left > 0;
            let then = match slice || self.ground.stops_beyond_budget(task) {
                true => Leave::Stops,
                false => Leave::Waits,
            };
            if !self.ground.vacate(place, then) {
                // It finished at the last moment.
                while let Some(task) = self.ground.late.pop() {
                    self.finish(task);
                }
            } else if slice {
                self.ground.show_exhaustion(task, place);
                self.tell(Event::Exhausted(TaskId(task)));
            } else {
                self.ground.cut(task, place);
                self.finish(task);
            }
        }
    }

    /// The stage is over: takes note of what has happened, and takes everybody off.
    pub fn leave(&mut self, team: &Team, timeline: &Timeline) {
        self.ground.begin(timeline, 0);
        self.take_mail(team);
        self.take_finished(team);
        self.ground.leave();
        while let Some(task) = self.ground.late.pop() {
            self.finish(task);
        }
    }

    /// Takes the mail that is left. Was there any?
    pub fn take_last_mail(&mut self, team: &Team) -> bool {
        let has_mail = team.inboxes[self.ground.domain as usize].has_mail();
        self.take_mail(team);
        has_mail
    }

    /// Gives away the tasks that are its own, and what is known of them.
    pub fn give(&mut self, carried: &mut Carried) {
        for (task, row) in self.ground.rows.iter().enumerate().filter(|(_, r)| r.owned) {
            carried.rows[task] = *row;
        }
        for (most, here) in carried.arrived.iter_mut().zip(&self.arrived) {
            *most = (*most).max(*here);
        }
        self.ground.give(carried);
        carried.producers.append(&mut self.spare);
    }

    /// Takes over, as domain `index` of its stage, what is its own of what another stage has left.
    pub fn take_over(&mut self, route: &Route, timeline: &Timeline, carried: &Carried, index: u32) {
        self.ground.begin(timeline, 0);
        self.ground.take_over(carried);
        for (task, row) in carried.rows.iter().enumerate() {
            let (id, arrived) = (TaskId(task as u32), carried.arrived[task]);
            self.arrived[task] = arrived;
            self.releases.set(task, Tournament::NEVER);
            if route.home(id, arrived) == index {
                self.expect(id.0);
            }
            self.ground.rows[task] = Row::new(false, false);
            if route.home(id, row.number) == index {
                self.ground.own(id.0, row);
                if row.current {
                    self.ready(id.0);
                } else if arrived > row.number {
                    self.begin(id.0);
                }
                self.look_at(id.0);
            }
        }
        self.dirty = true;
    }

    /// Looks for the last time, when all dispatchers have ended: how far the jobs of each task have come, for
    /// the tasks that are this domain's: the number of the first job that is not done.
    pub fn unfinished(&mut self) -> Vec<(u32, u64)> {
        let team = Arc::clone(&self.ground.team);
        team.inboxes[self.ground.domain as usize].take_mail(&mut self.mail);
        for letter in std::mem::take(&mut self.mail) {
            if let Mail::Task { task, row, .. } = letter {
                self.ground.rows[task as usize] = Row { owned: true, ..row };
            }
        }
        let rows = self.ground.rows.iter().enumerate().filter(|(_, row)| row.owned);
        rows.map(|(task, row)| (task as u32, row.number)).collect()
    }

    /// By task: how many jobs were released here at least.
    pub fn arrived(&self) -> &[u64] {
        &self.arrived
    }
}

/// Converts what the kernel said about a thread into an error of the run.
#[cold]
fn trouble(team: &Team, task: u32, doing: &str, error: &std::io::Error) {
    let thread: kernel::Thread = team.workers[task as usize].thread();
    team.fail(
        model::Error::new(format!("cannot {doing} thread {}: {error}", thread.0))
            .at(format!("task {}", task + 1))
            .remedy("see `warmset platform` for what this machine permits"),
    );
}
