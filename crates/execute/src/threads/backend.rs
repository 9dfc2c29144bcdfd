//! Carrying decisions out by the priority and the affinity of threads, and of programs in their
//! place.
//!
//! **How a decision becomes true.** A job that is chosen has a thread at priority
//! [`RUN`](kernel::RUN) that may run on its processor only; a job that was chosen before and is not
//! now has a thread at [`WAIT`](kernel::WAIT) on the processor where it last ran, so that it does
//! not run there while another is chosen. Where nobody is chosen, all that wait there are led to
//! their gates. A job that has not begun sleeps. Every change is made by whoever decided it, on its
//! own processor or another's: the kernel carries it there.

use crate::backend::{Backend, Choice, Done, Then};
use crate::clock::{Monotonic, Timeline};
use crate::ids::PostId;
use crate::kernel;
use crate::programs::pages;
use crate::programs::program::Program;
use crate::programs::rights::Owner;
use crate::stage::{DomainSite, ForDomain};
use crate::threads::host::{ThreadTeam, Threads};
use crate::threads::post::PostWords;
use crate::threads::task::{ThreadTask, Turn};
use crate::threads::worker::{UNKNOWN, Worker};
use model::{CpuId, Duration, Error, Instant, Result, TaskId};
use policy::Place;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often it is looked whether a thread has left its processor, before it is moved all the same.
const LOOKS: usize = 50;
/// From one of these looks to the next, in nanoseconds.
const LOOK: u64 = 500;

/// The threads and programs of one domain.
pub(crate) struct ThreadBackend {
    team: Arc<ThreadTeam>,
    /// By place.
    cpus: Vec<CpuId>,
    first_post: PostId,
    /// By task.
    tasks: Vec<ThreadTask>,
    /// By place: the task that runs there.
    running: Vec<Option<TaskId>>,
    /// By place: tasks whose threads wait there within a piece of work, at the priority to wait,
    /// their gates open.
    waiting: Vec<Vec<TaskId>>,
    /// The place of the dispatcher whose step it is.
    here: Place,
    timeline: Timeline,
    /// Do leaders of idle processors wait without sleeping?
    early: bool,
    /// Are there programs among the tasks?
    programs: bool,
}

impl ForDomain for ThreadBackend {
    fn for_domain(site: &DomainSite<'_, Threads>) -> Self {
        let workers = &site.team.host.workers;
        let task = |(task, worker): (TaskId, &Worker)| ThreadTask {
            owned: (site.owned)(task),
            affinity: None,
            place: None,
            raised: false,
            left: None,
            // A program that knows nothing of jobs is started and held.
            gated: worker.program().is_some_and(|p| p.pages().is_none()),
            working: false,
            done: 0,
            called: None,
            turn: Turn::default(),
        };
        ThreadBackend {
            team: Arc::clone(site.team),
            cpus: site.cpus.to_vec(),
            first_post: site.first_post,
            tasks: (0..).map(TaskId).zip(workers).map(task).collect(),
            running: vec![None; site.cpus.len()],
            waiting: site
                .cpus
                .iter()
                .map(|_| Vec::with_capacity(workers.len()))
                .collect(),
            here: Place(0),
            timeline: Timeline::new(Monotonic, 0),
            early: !site.early.is_zero(),
            programs: workers.iter().any(|w| w.program().is_some()),
        }
    }
}

fn forget(list: &mut Vec<TaskId>, task: TaskId) {
    if let Some(at) = list.iter().position(|t| *t == task) {
        list.swap_remove(at);
    }
}

/// Remembers the first error.
fn keep_first(first: &mut Result<()>, next: Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

impl ThreadBackend {
    fn worker(&self, task: TaskId) -> &Worker {
        &self.team.host.workers[task.index()]
    }

    fn post(&self, place: Place) -> &PostWords {
        &self.team.host.posts[self.first_post.of(place).index()]
    }

    /// The place of the processor that the thread of a task may run on, if that is of this domain.
    fn place_of_affinity(&self, task: TaskId) -> Option<Place> {
        let cpu = self.tasks[task.index()].affinity?;
        let at = self.cpus.iter().position(|c| *c == cpu)?;
        Some(Place(at as u32))
    }

    /// The task waits on no processor of this domain.
    fn wait_no_more(&mut self, task: TaskId) {
        if let Some(place) = self.place_of_affinity(task) {
            forget(&mut self.waiting[place.index()], task);
        }
    }

    /// Converts what the kernel said about a thread into an error of the run.
    #[cold]
    fn trouble(&self, task: TaskId, doing: &str, error: &io::Error) -> Error {
        let thread = self.worker(task).thread();
        Error::new(format!("cannot {doing} thread {}: {error}", thread.0))
            .at(format!("task {}", task.0 + 1))
            .remedy("see `warmset platform` for what this machine permits")
    }

    fn checked(&self, task: TaskId, doing: &str, done: io::Result<()>) -> Result<()> {
        done.map_err(|e| self.trouble(task, doing, &e))
    }

    /// Waits until a thread is off the processor that it was told to leave: the kernel answers at
    /// once, the interrupt takes some time. Moving it before that would stop that processor, and
    /// this dispatcher, for much longer (002 §4.4.2).
    fn await_leaving(&mut self, task: TaskId) {
        let Some(left) = self.tasks[task.index()].left.take() else {
            return;
        };
        let of_domain = left.0.checked_sub(self.first_post.0).map(|at| at as usize);
        let taken = of_domain.and_then(|at| self.running.get(at).copied().flatten());
        if taken.is_none() {
            // Nobody has come in its place: its dispatcher interrupts it.
            self.team.host.post(left).call();
        }
        let worker = self.worker(task);
        let mut before = worker.time();
        for _ in 0..LOOKS {
            let look = kernel::monotonic() + LOOK;
            while kernel::monotonic() < look {
                std::hint::spin_loop();
            }
            // Who executes grows older.
            let time = worker.time();
            if std::mem::replace(&mut before, time) == time {
                return;
            }
        }
    }

    /// Writes the choice of a task on its control page, if it has one (000 §3.3).
    fn show_choice(&self, place: Place, task: TaskId, choice: &Choice) {
        let worker = self.worker(task);
        if !worker.has_page() {
            return;
        }
        let reading = |at: Instant| self.timeline.reading(at);
        let post = &self.team.posts[self.first_post.of(place).index()];
        worker.choose(&pages::Choice {
            number: choice.number,
            release: reading(choice.release),
            deadline: reading(choice.deadline),
            processor: post.cpu.0,
            bell: post.slot,
            now: reading(choice.now),
            before: choice.before.map(|cpu| cpu.0),
        });
    }

    /// Looks after programs into which somebody was born who may have missed a change.
    fn tidy(&self) -> Result<()> {
        let mut done = Ok(());
        for (task, known) in (0..).map(TaskId).zip(&self.tasks).filter(|(_, t)| t.owned) {
            if let Some(program) = self.worker(task).program()
                && program.stale.swap(false, Ordering::AcqRel)
            {
                let tidied = program.tidy(known.place.is_some(), known.gated, known.working);
                keep_first(&mut done, self.checked(task, "look after", tidied));
            }
        }
        done
    }

    /// The program of a task, if it is not written for the engine.
    fn unmodified(&self, task: TaskId) -> Option<&Program> {
        let program = self.worker(task).program();
        program.filter(|program| program.pages().is_none())
    }

    /// A task is not chosen any more, since `now`.
    fn end_turn(&mut self, task: TaskId, now: Instant) {
        let mut turn = self.tasks[task.index()].turn;
        if let Some(program) = self.unmodified(task)
            && turn.end(now, program.time())
        {
            // Somebody may have lost its parents before anybody saw it.
            program.take_orphans_in(Owner {
                run: self.team.host.board.number(),
                number: Some(task.0),
            });
        }
        self.tasks[task.index()].turn = turn;
    }

    fn close(&mut self, task: TaskId) -> Result<()> {
        self.tasks[task.index()].gated = true;
        let closed = self.worker(task).close();
        self.checked(task, "stop", closed)
    }
}

impl Backend for ThreadBackend {
    type Host = Threads;

    fn begin_step(&mut self, here: Place) {
        self.here = here;
        if let Some(timeline) = self.team.host.timeline() {
            self.timeline = *timeline;
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        self.timeline.now()
    }

    /// Looks after programs. Where one waits for something within its job, those that wait for its
    /// processor are led to their gates: it is not theirs.
    fn tend(&mut self) -> Result<()> {
        if !self.programs {
            return Ok(());
        }
        let mut done = Ok(());
        if self.post(Place(0)).take_untidy() {
            done = self.tidy();
        }
        for place in Place::all(self.cpus.len()) {
            if self.post(place).watched.take_still() {
                keep_first(&mut done, self.leave_idle(place));
            }
        }
        done
    }

    fn run(&mut self, task: TaskId, place: Place, choice: &Choice) -> Result<()> {
        let mut done = Ok(());
        // Until its page says where it is moved to, who reads it waits.
        self.worker(task).begin_choice();
        let cpu = self.cpus[place.index()];
        self.wait_no_more(task);
        let moves = self.tasks[task.index()].affinity != Some(cpu);
        if moves {
            self.await_leaving(task);
        }
        if place != self.here && self.early {
            // Whoever waits there without sleeping makes room.
            self.post(place).nudge();
        }
        let known = &mut self.tasks[task.index()];
        known.left = None;
        // First where, then how high: a queued thread is moved at little cost, a running one is
        // not.
        if moves {
            known.affinity = Some(cpu);
            let pinned = self.worker(task).pin(cpu);
            keep_first(&mut done, self.checked(task, "move", pinned));
        }
        // It is where its page says from here on.
        self.show_choice(place, task, choice);
        let known = &mut self.tasks[task.index()];
        let gated = std::mem::take(&mut known.gated);
        let was_raised = std::mem::replace(&mut known.raised, true);
        let worker = self.worker(task);
        let is_program = worker.program().is_some();
        if gated && is_program {
            // Its threads wake up in an order that is always the same; they are raised in turn.
            worker.open();
        }
        if !was_raised {
            let raised = worker.raise(kernel::RUN);
            keep_first(&mut done, self.checked(task, "raise", raised));
        }
        if gated && !is_program {
            worker.open();
        }
        if let Some(program) = self.unmodified(task) {
            let (now, clocks) = (self.timeline.now(), program.time());
            self.tasks[task.index()].turn.begin(now, clocks);
        }
        done
    }

    fn begin_work(&mut self, task: TaskId, place: Place) {
        self.running[place.index()] = Some(task);
        let known = &mut self.tasks[task.index()];
        known.place = Some(place);
        let worker = &self.team.host.workers[task.index()];
        if !std::mem::replace(&mut known.working, true) {
            if place != self.here {
                known.called = Some(self.timeline.now());
            }
            worker.tell();
        }
        if worker.program().is_some() {
            let post = self.first_post.of(place).index();
            self.team.host.posts[post].watched.watch(task);
            self.team
                .host
                .sentinel_bells
                .page
                .ring(self.team.posts[post].slot);
        }
    }

    fn preempt(&mut self, task: TaskId, place: Place, then: Then, now: Instant) -> Result<()> {
        let mut done = Ok(());
        let program = self.worker(task).program().is_some();
        // Before it leaves: its sentinel, which then runs, must not take it for one that sleeps.
        let was_over = program && self.post(place).watched.forget();
        self.end_turn(task, self.timeline.now());
        // A thread that moves does not run while the dispatcher of its processor does, and is not
        // there any more when that ends.
        let stays_raised = place == self.here && then == Then::Moves && !program;
        if !stays_raised {
            let left = (place != self.here).then(|| self.first_post.of(place));
            let known = &mut self.tasks[task.index()];
            known.raised = false;
            known.left = left;
            let lowered = self.worker(task).raise(kernel::WAIT);
            done = self.checked(task, "lower", lowered);
            if then != Then::Stops {
                self.waiting[place.index()].push(task);
            }
        }
        if was_over {
            // Its sentinel has found that, and may have been kept from saying so.
            self.worker(task)
                .count_done_behind(self.tasks[task.index()].done);
        }
        if self.worker(task).has_page() {
            self.worker(task).leave(self.timeline.reading(now));
        }
        self.tasks[task.index()].place = None;
        self.running[place.index()] = None;
        done
    }

    fn stop(&mut self, task: TaskId) -> Result<()> {
        self.close(task)
    }

    fn leave_idle(&mut self, place: Place) -> Result<()> {
        let mut done = Ok(());
        while let Some(task) = self.waiting[place.index()].pop() {
            keep_first(&mut done, self.close(task));
        }
        done
    }

    fn executed(&mut self, task: TaskId) -> u64 {
        match self.unmodified(task) {
            Some(program) => {
                let turn = &self.tasks[task.index()].turn;
                turn.time(self.timeline.now(), program.time())
            }
            None => self.worker(task).time(),
        }
    }

    fn misses(&self, task: TaskId) -> Option<u64> {
        // Written before the worker said that it was done.
        let misses = self.worker(task).misses.load(Ordering::Relaxed);
        (misses != UNKNOWN).then_some(misses)
    }

    fn has_done(&self, task: TaskId) -> bool {
        self.worker(task).done() != self.tasks[task.index()].done
    }

    fn take_done(&mut self, task: TaskId, now: Instant) -> Done {
        self.end_turn(task, now);
        let known = &mut self.tasks[task.index()];
        known.done = known.done.wrapping_add(1);
        known.working = false;
        let called = known.called.take();
        if let Some(place) = known.place.take() {
            self.running[place.index()] = None;
        }
        self.wait_no_more(task);
        let worker = self.worker(task);
        match worker.program() {
            Some(program) => Done {
                began: program
                    .pages()
                    .map(|pages| self.timeline.time_of(pages.began())),
                called: None,
                used: None,
            },
            None => Done {
                began: Some(Instant::from_nanos(worker.began.load(Ordering::Relaxed))),
                called,
                used: Some(Duration::from_nanos(worker.used.load(Ordering::Relaxed))),
            },
        }
    }

    /// The job of a program is over: until its next one it is held, or goes on as an ordinary
    /// program.
    fn retire(&mut self, task: TaskId) -> Result<()> {
        if self.worker(task).program().is_none() {
            return Ok(());
        }
        self.wait_no_more(task);
        let known = &mut self.tasks[task.index()];
        known.working = false;
        known.raised = false;
        let gated = known.gated;
        let parked = match self.worker(task).program() {
            Some(program) => program.park(gated),
            None => Ok(gated),
        };
        match parked {
            Ok(held) => {
                self.tasks[task.index()].gated = held;
                Ok(())
            }
            Err(e) => Err(self.trouble(task, "park", &e)),
        }
    }

    fn give(&mut self, task: TaskId) -> ThreadTask {
        let known = &mut self.tasks[task.index()];
        let given = *known;
        known.owned = false;
        given
    }

    fn take(&mut self, task: TaskId, known: ThreadTask) -> Result<()> {
        let known = ThreadTask {
            owned: true,
            place: None,
            called: None,
            ..known
        };
        self.tasks[task.index()] = known;
        if !known.working || known.gated {
            return Ok(());
        }
        match self.place_of_affinity(task) {
            Some(place) => {
                self.waiting[place.index()].push(task);
                Ok(())
            }
            // Elsewhere nobody knows that it waits.
            None => self.close(task),
        }
    }

    fn foresee(&self, task: TaskId) {
        let worker = self.worker(task);
        std::hint::black_box((self.tasks[task.index()], worker.thread(), worker.done()));
    }
}
