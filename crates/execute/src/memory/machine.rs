//! Processors, tasks and the clock of a run in memory.

use crate::ids::PostId;
use model::{CpuId, Duration, Error, Instant, Result, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// For how long each job of each task executes: the processor time of its piece of work.
pub(crate) type Execution = Box<dyn Fn(TaskId, u64) -> Duration + Send>;

/// What a backend does, as far as it can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Tend,
    Run,
    Preempt,
    Stop,
    LeaveIdle,
    Retire,
    Take,
}

/// What goes wrong with the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The system refuses this operation, the n-th of its kind, from 0.
    Refuses(Operation, u32),
    /// A job that is preempted executes for so long before it is off its processor.
    Lingers(Duration),
    /// Jobs that are stopped do not stop: they go on where no other job runs.
    NeverStops,
}

/// What a task's thread is at.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Where it runs, as it was told.
    on: Option<CpuId>,
    /// Where it would go on if no other job ran there: preempted within a piece of work, and not
    /// stopped.
    waits: Option<CpuId>,
    /// How many pieces of work it was told to do, and has done.
    told: u32,
    done: u32,
    /// Processor time that the present piece has yet to take, in nanoseconds.
    left: u64,
    /// That the present or latest piece took so far.
    used: u64,
    executed: u64,
    /// When the present or latest piece began.
    began: Instant,
    has_begun: bool,
}

/// A machine in memory.
pub(crate) struct Machine {
    now: Instant,
    /// Posts that were called and have not been stepped.
    pub called: BTreeSet<PostId>,
    /// The posts that lead the stage that rules, once one has followed another.
    pub leaders: Vec<PostId>,
    threads: Vec<Thread>,
    execution: Execution,
    failures: Vec<Failure>,
    /// How often each operation was asked for.
    counts: BTreeMap<u8, u32>,
    /// What a backend must never be told, and was.
    pub breaches: Vec<String>,
}

impl Machine {
    /// At time zero, with so many tasks.
    pub fn new(tasks: usize, execution: Execution, failures: Vec<Failure>) -> Self {
        Machine {
            now: Instant::ZERO,
            called: BTreeSet::new(),
            leaders: Vec::new(),
            threads: vec![Thread::default(); tasks],
            execution,
            failures,
            counts: BTreeMap::new(),
            breaches: Vec::new(),
        }
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// Notes a breach of the contract.
    pub fn note(&mut self, breach: String) {
        self.breaches.push(format!("{} at {}", breach, self.now));
    }

    /// The operation was done; does the system say that it was not?
    pub fn may_fail(&mut self, operation: Operation) -> Result<()> {
        let count = self.counts.entry(operation as u8).or_insert(0);
        let refused = self.failures.contains(&Failure::Refuses(operation, *count));
        *count += 1;
        match refused {
            true => Err(Error::new(format!("{operation:?} was refused"))),
            false => Ok(()),
        }
    }

    fn lingers(&self) -> u64 {
        let all = self.failures.iter();
        all.filter_map(|f| match f {
            Failure::Lingers(time) => Some(time.nanos()),
            _ => None,
        })
        .sum()
    }

    fn thread(&mut self, task: TaskId) -> &mut Thread {
        &mut self.threads[task.index()]
    }

    pub fn runs_on(&self, task: TaskId) -> Option<CpuId> {
        self.threads[task.index()].on
    }

    pub fn executed(&self, task: TaskId) -> u64 {
        self.threads[task.index()].executed
    }

    pub fn done(&self, task: TaskId) -> u32 {
        self.threads[task.index()].done
    }

    /// When the latest piece of work began, and the processor time that it took, in nanoseconds.
    pub fn latest(&self, task: TaskId) -> (Instant, u64) {
        let thread = &self.threads[task.index()];
        (thread.began, thread.used)
    }

    pub fn run(&mut self, task: TaskId, cpu: CpuId) {
        if let Some(on) = self.runs_on(task) {
            self.note(format!("T{} runs on {on} and is run on {cpu}", task.0 + 1));
        }
        if self.threads.iter().any(|t| t.on == Some(cpu)) {
            self.note(format!("T{} is run on {cpu}, which is taken", task.0 + 1));
        }
        let thread = self.thread(task);
        thread.on = Some(cpu);
        thread.waits = None;
    }

    pub fn begin_piece(&mut self, task: TaskId) {
        let number = u64::from(self.threads[task.index()].told);
        let length = (self.execution)(task, number).nanos();
        if self.runs_on(task).is_none() {
            self.note(format!("T{} begins and runs nowhere", task.0 + 1));
        }
        let thread = self.thread(task);
        thread.told += 1;
        thread.left = length.max(1);
        thread.used = 0;
        thread.has_begun = false;
    }

    pub fn preempt(&mut self, task: TaskId, cpu: CpuId) {
        let lingers = self.lingers();
        if self.runs_on(task) != Some(cpu) && self.done_since(task) == 0 {
            self.note(format!(
                "T{} is preempted on {cpu} and is not there",
                task.0 + 1
            ));
        }
        if lingers > 0 {
            self.execute(task, lingers);
        }
        let thread = self.thread(task);
        thread.on = None;
        thread.waits = (thread.told != thread.done).then_some(cpu);
    }

    /// How many pieces of work are done of a thread that is within none.
    fn done_since(&self, task: TaskId) -> u32 {
        let thread = &self.threads[task.index()];
        u32::from(thread.told == thread.done)
    }

    /// The task's job is over: it runs nowhere until its next one is run.
    pub fn retire(&mut self, task: TaskId) {
        self.thread(task).on = None;
    }

    pub fn stop(&mut self, task: TaskId) {
        if !self.failures.contains(&Failure::NeverStops) {
            self.thread(task).waits = None;
        }
    }

    pub fn leave_idle(&mut self, cpu: CpuId) {
        if self.failures.contains(&Failure::NeverStops) {
            return;
        }
        for thread in self.threads.iter_mut().filter(|t| t.waits == Some(cpu)) {
            thread.waits = None;
        }
    }

    /// A task comes to a domain of these processors; one that waits on another is stopped.
    pub fn take(&mut self, task: TaskId, cpus: &[CpuId]) {
        let stops = !self.failures.contains(&Failure::NeverStops);
        let thread = self.thread(task);
        if stops && thread.waits.is_some_and(|cpu| !cpus.contains(&cpu)) {
            thread.waits = None;
        }
    }

    /// Lets a task execute for so long, or until its piece of work is done. True: it is done now.
    fn execute(&mut self, task: TaskId, time: u64) -> bool {
        let now = self.now;
        let thread = self.thread(task);
        if thread.told == thread.done {
            return false;
        }
        if !std::mem::replace(&mut thread.has_begun, true) {
            thread.began = now;
        }
        let time = time.min(thread.left);
        thread.left -= time;
        thread.used += time;
        thread.executed += time;
        if thread.left == 0 {
            thread.done += 1;
            thread.waits = None;
            return true;
        }
        false
    }

    /// The tasks that execute, each on a processor of its own: those that were run, and on the
    /// others those that were not stopped.
    fn executing(&self) -> Vec<TaskId> {
        let all = || (0..).map(TaskId).zip(&self.threads);
        let mut taken: BTreeSet<CpuId> = all().filter_map(|(_, t)| t.on).collect();
        let mut found: Vec<TaskId> = all()
            .filter(|(_, t)| t.on.is_some() && t.told != t.done)
            .map(|(task, _)| task)
            .collect();
        for (task, thread) in all() {
            if let Some(cpu) = thread.waits
                && taken.insert(cpu)
            {
                found.push(task);
            }
        }
        found
    }

    /// When the next piece of work is done if nothing else happens.
    pub fn next_done(&self) -> Option<Instant> {
        let left = self
            .executing()
            .into_iter()
            .map(|task| self.threads[task.index()].left);
        left.min().map(|left| self.now + Duration::from_nanos(left))
    }

    /// Moves the clock. Returns the tasks that have done a piece of work; none is done before `to`.
    pub fn pass(&mut self, to: Instant) -> Vec<TaskId> {
        let time = to.since(self.now).nanos();
        let never_stops = self.failures.contains(&Failure::NeverStops);
        let mut finished = Vec::new();
        for task in self.executing() {
            if self.runs_on(task).is_none() && time > 0 && !never_stops {
                self.note(format!("T{} executes and was not chosen", task.0 + 1));
            }
            if self.execute(task, time) {
                finished.push(task);
            }
        }
        self.now = to.max(self.now);
        finished
    }

    /// Moves the clock beyond a time, by a nanosecond; nothing executes meanwhile.
    pub fn pass_after(&mut self, before: Instant) -> Instant {
        self.now = self.now.max(before + Duration::from_nanos(1));
        self.now
    }
}
