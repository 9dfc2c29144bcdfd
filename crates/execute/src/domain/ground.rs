//! The ground of a domain: its processors, its tasks' threads, and what is done to them.

use super::actions::{Action, Actions};
use super::{Enforcement, SHORTEST, trouble};
use crate::clock::{Monotonic, Timeline};
use crate::program::Program;
use crate::stage::Carried;
use crate::team::{Mail, Team};
use crate::{gate, kernel};
use model::{CpuId, Duration, Instant, TaskId, Timing};
use policy::tournament::Tournament;
use policy::{Job, NONE};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use trace::recorder::{self, Producer};
use trace::{Event as Record, Overhead};

/// What never changes about a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    /// Is it a program that knows nothing of jobs, so that its WCET is its budget?
    pub budgeted: bool,
    pub phase: Duration,
    pub period: Duration,
    pub deadline: Duration,
    pub wcet: Duration,
}

impl Fixed {
    pub fn new(timing: &Timing, phase: Duration, budgeted: bool) -> Self {
        Fixed {
            budgeted,
            phase,
            period: timing.period,
            deadline: timing.deadline,
            wcet: timing.wcet,
        }
    }
}

/// A task, its current or next job and its thread. Belongs to one domain at a time and moves with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Is the task this domain's? The other fields mean nothing otherwise.
    pub owned: bool,
    /// The number of its current job, or of its next one if none is current.
    pub number: u64,
    /// Has the task a current job?
    pub current: bool,
    /// Was that job shown to have started?
    pub started: bool,
    /// Its nominal release.
    pub release: Instant,
    /// Which part of it, where it is split.
    pub part: u32,
    /// What it has executed, what it may still execute in this part and altogether, in nanoseconds; kept only where there
    /// are slices or budgets.
    pub executed: u64,
    pub slice_left: u64,
    pub budget_left: u64,
    /// Processor time of its thread up to which that is accounted for.
    pub accounted: u64,
    /// Where it runs (a place of the domain), or [`NONE`].
    pub place: u32,
    /// The processor on which its thread last ran, or [`NONE`]: for traces.
    pub last: u32,
    /// The processor that its thread may run on, or [`NONE`] at first.
    pub affinity: u32,
    /// Has its thread the priority of a chosen job?
    pub raised: bool,
    /// The place that it was told to leave while it may have been running there, or [`NONE`].
    pub left: u32,
    /// Is its gate closed?
    pub gated: bool,
    /// Is its thread within a piece of work?
    pub working: bool,
    /// How many pieces of work of its worker are known to be done; wraps.
    pub done: u32,
    /// How many of its jobs were cut short whose work is not done.
    pub behind: u32,
    /// Was it put on a processor as soon as it was released?
    pub prompt: bool,
    /// When it was told to begin on another processor than the one on which that was decided, in nanoseconds; 0: it was not.
    pub called: u64,
}

impl Row {
    /// `held`: a program, which is started and held.
    pub fn new(owned: bool, held: bool) -> Self {
        Row {
            owned,
            number: 0,
            current: false,
            started: false,
            release: Instant::ZERO,
            part: 0,
            executed: 0,
            slice_left: u64::MAX,
            budget_left: u64::MAX,
            accounted: 0,
            place: NONE,
            last: NONE,
            affinity: NONE,
            raised: false,
            left: NONE,
            gated: held,
            working: false,
            done: 0,
            behind: 0,
            prompt: false,
            called: 0,
        }
    }
}

/// What a place shows in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Busy,
    Idle,
    Deliberate,
}

/// What becomes of a job that leaves its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// It waits there, below whoever comes.
    Waits,
    /// It is led to its gate.
    Stops,
    /// It runs on another processor by the same decision.
    Moves,
}

/// How often it is looked whether a thread has left its processor, before it is moved all the same.
const LOOKS: usize = 50;

/// So many of the latest samples are kept.
const SAMPLES: usize = 1 << 16;

/// The latest samples of a time, in nanoseconds; memory is set aside at the start.
#[derive(Debug)]
pub(crate) struct Samples {
    kept: Vec<u32>,
    count: usize,
}

impl Samples {
    fn new() -> Self {
        Samples {
            kept: Vec::with_capacity(SAMPLES),
            count: 0,
        }
    }
    pub fn record(&mut self, ns: u64) {
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        match self.kept.get_mut(self.count % SAMPLES) {
            Some(slot) => *slot = ns,
            None => self.kept.push(ns),
        }
        self.count += 1;
    }
    pub fn all(&self) -> &[u32] {
        &self.kept
    }
}

/// Processors, threads and what is known of them.
pub(crate) struct Ground {
    pub team: Arc<Team>,
    pub domain: u32,
    /// The first domain of its policy among those of the run: policies count from there.
    pub first_domain: u32,
    /// By place.
    pub cpus: Vec<CpuId>,
    /// The dispatcher of the first place.
    pub first_post: u32,
    pub fixed: Arc<[Fixed]>,
    pub rows: Vec<Row>,
    /// The moment of the present step: when it began, then how far it has come.
    pub now: Instant,
    /// When the present step began.
    began: Instant,
    /// Decisions before it.
    decided: u64,
    timeline: Timeline,
    /// The place of the dispatcher whose step it is.
    here: u32,
    /// Put on their places when everybody has left: place and task.
    coming: Vec<(u32, u32)>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    /// Is execution time to be kept?
    limited: bool,
    /// By place: who runs there, or [`NONE`].
    pub running: Vec<u32>,
    /// By place: whose threads wait there within a piece of work, at the priority to wait, their gates open.
    waiting: Vec<Vec<u32>>,
    pub(super) shown: Vec<Shown>,
    /// By place: the server that it serves, or [`NONE`].
    pub(super) serving: Vec<u32>,
    /// By place: when to look at what its job has executed.
    pub limits: Tournament,
    /// By task: when a pushed job becomes ready here.
    pub arrivals: Tournament,
    /// When the policy wants to be woken.
    pub timer: u64,
    /// How long before something is due its leader is up, where no job runs on its processor, in nanoseconds.
    pub early: u64,
    pub producer: Producer,
    /// Tasks that had finished when they were to be preempted; shown, not yet told.
    pub late: Vec<u32>,
    pub decisions: u64,
    /// How long steps took in which something was decided.
    pub steps: Samples,
    /// How long it took of them to take note and decide.
    pub thoughts: Samples,
    /// From telling a worker on another processor to begin to its first instruction.
    pub calls: Samples,
    /// From release to the first instruction, of jobs that were chosen at once.
    pub latencies: Samples,
}

/// What a ground is made of.
pub(crate) struct Parts {
    pub team: Arc<Team>,
    pub domain: u32,
    pub first_domain: u32,
    pub cpus: Vec<CpuId>,
    pub first_post: u32,
    pub fixed: Arc<[Fixed]>,
    pub rows: Vec<Row>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    pub slices: bool,
    /// Are there programs among the tasks?
    pub programs: bool,
    pub early: Duration,
    pub producer: Producer,
}

impl Ground {
    pub fn new(parts: Parts) -> Self {
        let (places, tasks) = (parts.cpus.len(), parts.rows.len());
        Ground {
            team: parts.team,
            domain: parts.domain,
            first_domain: parts.first_domain,
            cpus: parts.cpus,
            first_post: parts.first_post,
            fixed: parts.fixed,
            rows: parts.rows,
            now: Instant::ZERO,
            began: Instant::ZERO,
            decided: 0,
            timeline: Timeline::new(Monotonic, 0),
            here: 0,
            coming: Vec::with_capacity(places),
            horizon: parts.horizon,
            enforcement: parts.enforcement,
            quantum: parts.quantum,
            limited: parts.slices || parts.programs || parts.enforcement != Enforcement::Off,
            running: vec![NONE; places],
            waiting: (0..places).map(|_| Vec::with_capacity(tasks)).collect(),
            shown: vec![Shown::Busy; places],
            serving: vec![NONE; places],
            limits: Tournament::new(places),
            arrivals: Tournament::new(tasks),
            timer: u64::MAX,
            early: parts.early.nanos().min(10_000_000),
            producer: parts.producer,
            late: Vec::with_capacity(tasks),
            decisions: 0,
            steps: Samples::new(),
            thoughts: Samples::new(),
            calls: Samples::new(),
            latencies: Samples::new(),
        }
    }

    /// A step begins, of the dispatcher at this place. Returns when.
    pub fn begin(&mut self, timeline: &Timeline, here: u32) -> Instant {
        (self.timeline, self.here) = (*timeline, here);
        self.decided = self.decisions;
        self.began = self.pass();
        self.began
    }

    /// The place of the dispatcher whose step it is.
    pub fn here(&self) -> usize {
        self.here as usize
    }

    /// Looks at the clock: the step has come so far.
    pub fn pass(&mut self) -> Instant {
        self.now = self.timeline.now().max(self.now);
        self.now
    }

    /// Reads what the release of a task will need.
    pub fn foresee(&self, task: u32) {
        let worker = &self.team.workers[task as usize];
        std::hint::black_box((
            self.fixed[task as usize],
            self.rows[task as usize],
            worker.thread(),
            worker.done(),
            self.producer.foresee(),
        ));
    }

    /// The nominal release of a job.
    pub fn release_of(&self, task: u32, number: u64) -> Instant {
        let fixed = &self.fixed[task as usize];
        let since = number.saturating_mul(fixed.period.nanos());
        Instant::from_nanos(since.saturating_add(fixed.phase.nanos()))
    }

    /// The absolute deadline of a job.
    pub fn deadline_of(&self, task: u32, number: u64) -> Instant {
        let release = self.release_of(task, number).nanos();
        Instant::from_nanos(release.saturating_add(self.fixed[task as usize].deadline.nanos()))
    }

    /// The current job of a task as it is told to policies.
    pub fn job(&self, task: u32) -> Job {
        let row = &self.rows[task as usize];
        Job {
            task: TaskId(task),
            number: row.number,
            release: row.release,
            deadline: self.deadline_of(task, row.number),
            part: row.part,
        }
    }

    /// Takes everybody off, and serves no server any more: another stage follows.
    pub fn leave(&mut self) {
        for place in 0..self.cpus.len() as u32 {
            self.take_off(place, &Actions::new(0, 0));
            self.show_server(place, None);
        }
    }

    /// What the next stage has to know of the processors, and who writes the trace.
    pub fn give(&mut self, carried: &mut Carried) {
        carried
            .shown
            .extend(self.cpus.iter().copied().zip(self.shown.iter().copied()));
        let (mut nobody, _) = recorder::rings([CpuId(0)], 2);
        if let Some(nobody) = nobody.pop() {
            carried
                .producers
                .push(std::mem::replace(&mut self.producer, nobody));
        }
    }

    /// Goes on where another stage has left its processors.
    pub fn take_over(&mut self, carried: &Carried) {
        for (place, cpu) in self.cpus.iter().enumerate() {
            let known = carried.shown.iter().find(|(c, _)| c == cpu);
            self.shown[place] = known.map_or(Shown::Busy, |(_, shown)| *shown);
        }
    }

    /// A task of another stage is this domain's from now on; its job, if it has one, runs nowhere.
    pub fn own(&mut self, task: u32, row: &Row) {
        self.rows[task as usize] = Row {
            owned: true,
            place: NONE,
            left: NONE,
            part: 0,
            slice_left: u64::MAX,
            called: 0,
            prompt: false,
            ..*row
        };
        let worker = &self.team.workers[task as usize];
        worker.domain.store(self.domain, Ordering::Relaxed);
        worker.post.store(self.first_post, Ordering::Relaxed);
        // Whoever finishes from here on says so here; what was finished before is seen by whoever looks now.
        fence(Ordering::SeqCst);
        let row = &self.rows[task as usize];
        if row.working && !row.gated {
            match self.cpus.iter().position(|c| c.0 == row.affinity) {
                Some(place) => self.waiting[place].push(task),
                // Elsewhere nobody knows that it waits.
                None => self.close(task),
            }
        }
    }

    /// Gives the task to another domain, where its job or part becomes ready at `at`.
    pub fn hand_over(&mut self, task: u32, domain: u32, at: Instant) {
        let row = &mut self.rows[task as usize];
        row.owned = false;
        let row = Row { place: NONE, ..*row };
        self.team.send(domain, Mail::Task { task, row, at });
    }

    /// Lets the thread of a task run on this place, above all others.
    fn put_on(&mut self, place: u32, task: u32) {
        self.show_choice(place, task);
        let cpu = self.cpus[place as usize];
        let affinity = self.rows[task as usize].affinity;
        if affinity != NONE
            && let Some(before) = self.cpus.iter().position(|c| c.0 == affinity)
        {
            forget(&mut self.waiting[before], task);
        }
        if affinity != cpu.0 {
            self.await_leaving(task);
        }
        let team = &self.team;
        let worker = &team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        worker.domain.store(self.domain, Ordering::Release);
        worker.post.store(self.first_post + place, Ordering::Relaxed);
        row.left = NONE;
        // First where, then how high: a queued thread is moved at little cost, a running one is not.
        if row.affinity != cpu.0 {
            row.affinity = cpu.0;
            if let Err(e) = worker.pin(cpu) {
                trouble(team, task, "move", &e);
            }
        }
        if !row.raised {
            row.raised = true;
            if let Err(e) = worker.raise(kernel::RUN) {
                trouble(team, task, "raise", &e);
            }
        }
        if std::mem::take(&mut row.gated) {
            worker.open();
        }
        if self.limited {
            row.accounted = worker.time();
        }
        row.place = place;
        self.tell(place, task);
        self.running[place as usize] = task;
        if self.limited {
            self.set_limit(place, task);
        }
    }

    /// Tells whoever does the jobs of a task, and is on this place, to do its next piece of work if it is not within one.
    fn tell(&mut self, place: u32, task: u32) {
        let worker = &self.team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        if !std::mem::replace(&mut row.working, true) {
            if place != self.here {
                row.called = self.timeline.now().nanos();
                if self.early > 0 {
                    // Whoever waits there without sleeping makes room.
                    self.team.posts[(self.first_post + place) as usize].nudge();
                }
            }
            worker.tell();
        }
        if worker.program().is_some() {
            let post = &self.team.posts[(self.first_post + place) as usize];
            post.watched.watch(task);
            self.team.belfry.bells.ring(post.beat);
        }
    }

    /// Takes the thread of a place from its priority and then, as asked, leads it to its gate. False where it had finished
    /// before that: then it is shown to be complete and added to the late ones.
    pub fn vacate(&mut self, place: u32, then: Leave) -> bool {
        let task = self.running[place as usize];
        if task == NONE {
            return true;
        }
        let team = Arc::clone(&self.team);
        let worker = &team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        if place == self.here && then == Leave::Moves && worker.program().is_none() {
            // It does not run while its dispatcher does, and is not there any more when that ends.
        } else {
            row.raised = false;
            if let Err(e) = worker.raise(kernel::WAIT) {
                trouble(&team, task, "lower", &e);
            }
            row.left = match place == self.here {
                true => NONE,
                false => place,
            };
        }
        if worker.program().is_some() {
            team.posts[(self.first_post + place) as usize].watched.forget();
            self.show_leaving(task);
        }
        if worker.done() != self.rows[task as usize].done && self.work_done(task) {
            self.show_completion(task, false);
            self.late.push(task);
            return false;
        }
        if self.limited {
            self.account(task);
        }
        let row = &mut self.rows[task as usize];
        row.place = NONE;
        self.running[place as usize] = NONE;
        self.limits.set(place as usize, Tournament::NEVER);
        match then {
            Leave::Stops => self.close(task),
            Leave::Waits => self.waiting[place as usize].push(task),
            Leave::Moves if self.rows[task as usize].raised => {}
            Leave::Moves => self.waiting[place as usize].push(task),
        }
        true
    }

    /// Waits until a thread is off the processor that it was told to leave: the kernel answers at once, the interrupt takes
    /// some time. Moving it before that would stop that processor, and this dispatcher, for much longer (002 §4.4.2).
    fn await_leaving(&mut self, task: u32) {
        let left = std::mem::replace(&mut self.rows[task as usize].left, NONE);
        if left == NONE {
            return;
        }
        if self.running[left as usize] == NONE {
            // Nobody has come in its place: its dispatcher interrupts it.
            self.team.posts[(self.first_post + left) as usize].call();
        }
        let worker = &self.team.workers[task as usize];
        let mut before = worker.time();
        for _ in 0..LOOKS {
            let look = kernel::monotonic() + 500;
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

    fn close(&mut self, task: u32) {
        let worker = &self.team.workers[task as usize];
        self.rows[task as usize].gated = true;
        if let Err(e) = worker.close() {
            trouble(&self.team, task, "stop", &e);
        }
    }

    /// The worker of a task has done a piece of work. Is its job complete with that?
    pub fn work_done(&mut self, task: u32) -> bool {
        let worker = &self.team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        row.done = row.done.wrapping_add(1);
        row.working = false;
        if row.affinity != NONE
            && let Some(place) = self.cpus.iter().position(|c| c.0 == row.affinity)
        {
            forget(&mut self.waiting[place], task);
        }
        if row.behind > 0 {
            // That was left over from a job that was cut short: on with the next one's.
            row.behind -= 1;
            let place = row.place;
            if place != NONE {
                self.tell(place, task);
            }
            return false;
        }
        if let Some(program) = worker.program() {
            let prompt = std::mem::take(&mut row.prompt);
            if let (true, Some(pages), Some(t)) = (prompt, program.pages(), self.team.timeline()) {
                let latency = pages.began().saturating_sub(t.reading(row.release));
                self.latencies.record(latency);
            }
            self.account(task);
            self.park(task);
            return self.rows[task as usize].current;
        }
        let began = worker.began.load(Ordering::Relaxed);
        let called = std::mem::take(&mut row.called);
        if called > 0 {
            self.calls.record(began.saturating_sub(called));
        }
        if std::mem::take(&mut row.prompt) {
            self.latencies.record(began.saturating_sub(row.release.nanos()));
        }
        row.current
    }

    /// The job of a program is over: until its next one it is held, or goes on as an ordinary program.
    fn park(&mut self, task: u32) {
        let worker = &self.team.workers[task as usize];
        let Some(program) = worker.program() else { return };
        let row = &mut self.rows[task as usize];
        row.raised = false;
        if let Some(place) = self.cpus.iter().position(|c| c.0 == row.affinity) {
            forget(&mut self.waiting[place], task);
        }
        match program.park(row.gated) {
            Ok(held) => row.gated = held,
            Err(e) => trouble(&self.team, task, "park", &e),
        }
    }

    /// Is a task, once its budget is used up, to be stopped?
    pub fn stops_beyond_budget(&self, task: u32) -> bool {
        let program = self.team.workers[task as usize].program();
        program.is_none_or(Program::stops_beyond_budget)
    }

    /// Looks after programs into which somebody was born who may have missed a change.
    pub fn tidy(&mut self) {
        for (task, row) in self.rows.iter().enumerate().filter(|(_, row)| row.owned) {
            if let Some(program) = self.team.workers[task].program()
                && program.stale.swap(false, Ordering::AcqRel)
                && let Err(e) = program.tidy(row.place != NONE, row.gated, row.working)
            {
                trouble(&self.team, task as u32, "look after", &e);
            }
        }
    }

    /// If the job of a task was put on a processor in this step, in which it was released, its latency will count.
    pub fn note_prompt(&mut self, task: u32) {
        let row = &mut self.rows[task as usize];
        row.prompt = row.place != NONE && row.behind == 0;
    }

    /// The job of a place, which is off its processor, is over although its work is not done.
    pub fn cut(&mut self, task: u32, place: u32) {
        let row = &mut self.rows[task as usize];
        if self.fixed[task as usize].budgeted {
            // What it does goes on, and knows nothing of jobs.
            row.working = false;
            self.park(task);
        } else {
            row.behind += 1;
        }
        self.show_cut(task, place);
    }

    /// Adds up what the thread of a task has executed.
    pub fn account(&mut self, task: u32) {
        let now = self.team.workers[task as usize].time();
        let row = &mut self.rows[task as usize];
        let time = now.saturating_sub(std::mem::replace(&mut row.accounted, now));
        row.executed += time;
        if row.slice_left != u64::MAX {
            row.slice_left = row.slice_left.saturating_sub(time);
        }
        if row.budget_left != u64::MAX {
            row.budget_left = row.budget_left.saturating_sub(time);
        }
    }

    /// When to look next at what the job of a place has executed.
    pub fn set_limit(&mut self, place: u32, task: u32) {
        let row = &self.rows[task as usize];
        let now = self.now.nanos();
        let at = |left: u64| match left {
            u64::MAX => u64::MAX,
            left => now.saturating_add(left.max(SHORTEST)),
        };
        let mut budget = at(row.budget_left);
        if self.enforcement == Enforcement::PerQuantum && budget != u64::MAX {
            let quantum = self.quantum.nanos().max(1);
            budget = budget.div_ceil(quantum).saturating_mul(quantum);
        }
        self.limits.set(place as usize, at(row.slice_left).min(budget));
    }

    /// After a decision: leads to their gates all who wait where nobody runs, and shows which places are idle.
    pub fn settle(&mut self, is_deliberate: impl Fn(u32) -> bool) {
        for place in 0..self.cpus.len() {
            if self.running[place] != NONE {
                continue;
            }
            while let Some(task) = self.waiting[place].pop() {
                self.close(task);
            }
            self.show_idle(place as u32, is_deliberate(place as u32));
        }
    }
}

fn forget(list: &mut Vec<u32>, task: u32) {
    if let Some(at) = list.iter().position(|t| *t == task) {
        list.swap_remove(at);
    }
}

impl Ground {
    /// Does what was decided: first everybody leaves who has to, then others come, those on other processors first. What a
    /// dispatcher does for others takes its own processor, too.
    pub(super) fn carry_out(&mut self, actions: &mut Actions) {
        let here = self.here;
        let chosen = actions.list.iter().rev().find_map(|action| match action {
            Action::Run { place, task } if *place == here => {
                Some((TaskId(*task), self.rows[*task as usize].number))
            }
            _ => None,
        });
        let cpu = self.cpus[here as usize];
        let begun = self.now;
        self.producer
            .push(Record::overhead_begin(begun, cpu, Overhead::Scheduling, chosen));
        let decided = self.pass();
        if self.decisions == self.decided + 1 {
            self.thoughts.record(decided.since(self.began).nanos());
        }
        if let Some(at) = actions.wake.take() {
            self.timer = at.nanos();
        }
        for index in 0..actions.list.len() {
            match actions.list[index] {
                Action::Run { place, task } => {
                    self.take_off(place, actions);
                    self.coming.push((place, task));
                }
                Action::Idle { place } => self.take_off(place, actions),
                Action::Push { task, to, at, part } => self.push(task, to, at, part),
                Action::Serve { place, server } => self.show_server(place, server),
            }
        }
        actions.list.clear();
        for index in 0..self.coming.len() {
            if self.coming[index].0 != here {
                self.bring(index);
            }
        }
        let now = self.now;
        self.producer
            .push(Record::overhead_end(now, cpu, Overhead::Scheduling, chosen));
        for index in 0..self.coming.len() {
            if self.coming[index].0 == here {
                self.bring(index);
            }
        }
        self.coming.clear();
    }

    /// Puts somebody on a place that is free.
    fn bring(&mut self, index: usize) {
        let (place, task) = self.coming[index];
        // The policy learns of those that have finished when it has decided, and decides again.
        if self.late.contains(&task) {
            return;
        }
        let job = Some((TaskId(task), self.rows[task as usize].number));
        let (cpu, now) = (self.cpus[place as usize], self.now);
        self.producer
            .push(Record::overhead_begin(now, cpu, Overhead::ContextSwitch, job));
        self.put_on(place, task);
        let now = self.pass();
        self.producer
            .push(Record::overhead_end(now, cpu, Overhead::ContextSwitch, job));
        self.show_start(place, task);
    }

    /// A part of a job becomes ready in another domain of the same policy.
    fn push(&mut self, task: u32, to: u32, at: Instant, part: u32) {
        let to = self.first_domain + to;
        self.rows[task as usize].part = part;
        if to == self.domain {
            self.arrivals.set(task as usize, at.max(self.now).nanos());
        } else {
            self.hand_over(task, to, at);
        }
    }

    fn take_off(&mut self, place: u32, actions: &Actions) {
        let task = self.running[place as usize];
        let then = match actions.moves(task, place) {
            true => Leave::Moves,
            false => Leave::Waits,
        };
        if task != NONE && self.vacate(place, then) {
            self.pass();
            let number = self.rows[task as usize].number;
            let event = Record::preemption(self.now, self.cpus[place as usize], TaskId(task), number);
            self.producer.push(event);
        }
    }
}

/// What has to be ready before any ground is used.
pub(crate) fn prepare() -> model::Result<()> {
    gate::install()
}
