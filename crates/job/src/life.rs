//! One task and its current job.

use crate::limits::{LONGEST, Limits, Reached};
use model::{Duration, Instant, TaskId};
use policy::Job;

/// Where a task and its current job are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The task is another domain's. Nothing else of the life means anything.
    Away,
    /// No job is current: the next one has not been released, or has not begun.
    Waiting,
    /// A job is current, and none of its parts can run now.
    Held,
    /// The current part can run, and is on no processor.
    Ready,
    /// The current part is on a processor.
    Running,
}

/// What is known of a job when it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// When it was released.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// How long it executes; `None`: only its worker knows.
    pub demand: Option<Duration>,
    /// How long it may execute; `None`: as long as it needs.
    pub budget: Option<Duration>,
}

/// How a part comes to a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start<P> {
    /// The processor on which its job last ran; `None`: its job begins.
    pub before: Option<P>,
    /// Whether it left that processor at the same instant: a move, and no preemption.
    pub moves: bool,
}

/// A task and its current or next job, as one domain knows it. `P` is how the engine names
/// processors, all domains' alike.
///
/// Times are nanoseconds inside; limits are counted in what the job has executed altogether, so
/// that executing changes one number. `u64::MAX` is no limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Life<P> {
    /// The number of the current job, or of the next one.
    number: u64,
    release: u64,
    deadline: u64,
    executed: u64,
    /// Executed so much, the job is complete; its budget is used up; the slice of its part is.
    demand: u64,
    budget: u64,
    slice_end: u64,
    /// What jobs that were cut short have left to the next one.
    carried: u64,
    /// When it last left a processor unfinished.
    stopped: u64,
    /// The processor on which it runs, or a job of the task last ran.
    last: Option<P>,
    part: u32,
    /// How many jobs were cut short whose work is not done, where only workers know the demand.
    behind: u32,
    started: bool,
    state: State,
}

impl<P: Copy> Life<P> {
    /// A task that is this domain's and has had no job yet.
    pub const fn new() -> Self {
        Life {
            number: 0,
            release: 0,
            deadline: 0,
            executed: 0,
            demand: u64::MAX,
            budget: u64::MAX,
            slice_end: u64::MAX,
            carried: 0,
            stopped: 0,
            last: None,
            part: 0,
            behind: 0,
            started: false,
            state: State::Waiting,
        }
    }

    /// A task that is another domain's.
    pub const fn away() -> Self {
        Life {
            state: State::Away,
            ..Self::new()
        }
    }

    /// Where the task and its job are.
    #[inline(always)]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether the task has a current job here.
    #[inline(always)]
    pub const fn is_current(&self) -> bool {
        matches!(self.state, State::Held | State::Ready | State::Running)
    }

    /// The number of the current job, or of the next one.
    #[inline(always)]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// When the current job was released.
    #[inline(always)]
    pub const fn release(&self) -> Instant {
        Instant::from_nanos(self.release)
    }

    /// The absolute deadline of the current job.
    #[inline(always)]
    pub const fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline)
    }

    /// What the current job, or the one before, has executed.
    #[inline(always)]
    pub const fn executed(&self) -> Duration {
        Duration::from_nanos(self.executed)
    }

    /// What the current job still has to execute; [`Duration::MAX`] where only its worker knows.
    #[inline(always)]
    pub const fn remaining(&self) -> Duration {
        Duration::from_nanos(left(self.demand, self.executed))
    }

    /// The processor on which the job runs, or a job of the task last ran; none has run: `None`.
    #[inline(always)]
    pub const fn last(&self) -> Option<P> {
        self.last
    }

    /// Whether the current job has run already.
    #[inline(always)]
    pub const fn has_started(&self) -> bool {
        self.started
    }

    /// How many jobs were cut short whose work is not done, where only workers know the demand.
    #[inline(always)]
    pub const fn behind(&self) -> u32 {
        self.behind
    }

    /// The current part as it is told to policies.
    #[inline(always)]
    pub const fn job(&self, task: TaskId) -> Job {
        Job {
            task,
            number: self.number,
            release: self.release(),
            deadline: self.deadline(),
            part: self.part,
        }
    }

    /// Whether the next job can begin here, `released` jobs of the task being released: not while
    /// a tardy predecessor is current, nor where the task is not this domain's.
    #[inline(always)]
    pub const fn awaits(&self, released: u64) -> bool {
        matches!(self.state, State::Waiting) && released > self.number
    }

    /// The next job, which is released, becomes the current one. What jobs that were cut short
    /// have left to it is added to its demand.
    #[inline(always)]
    pub fn begin(&mut self, job: Begin) {
        debug_assert_eq!(
            self.state,
            State::Waiting,
            "a job begins before its predecessor ends"
        );
        self.release = job.release.nanos();
        self.deadline = job.deadline.nanos();
        self.demand = match job.demand {
            Some(demand) if self.carried == 0 => demand.nanos(),
            Some(demand) => demand
                .nanos()
                .saturating_add(self.carried)
                .min(LONGEST.nanos()),
            None => u64::MAX,
        };
        self.budget = job.budget.map_or(u64::MAX, Duration::nanos);
        self.carried = 0;
        self.executed = 0;
        self.part = 0;
        self.started = false;
        self.state = State::Held;
    }

    /// The current part can run from now on, for `slice`; `None`: as long as it needs.
    #[inline(always)]
    pub fn ready(&mut self, slice: Option<Duration>) {
        debug_assert_eq!(
            self.state,
            State::Held,
            "a part becomes ready that is not held"
        );
        self.slice_end = match slice {
            Some(slice) => self.executed.saturating_add(slice.nanos()),
            None => u64::MAX,
        };
        self.state = State::Ready;
    }

    /// The current part begins to run on a processor.
    #[inline(always)]
    pub fn start(&mut self, processor: P, now: Instant) -> Start<P> {
        debug_assert_eq!(self.state, State::Ready, "a part starts that is not ready");
        self.state = State::Running;
        let last = self.last.replace(processor);
        let resumes = std::mem::replace(&mut self.started, true);
        Start {
            before: last.filter(|_| resumes),
            moves: resumes & (self.stopped == now.nanos()),
        }
    }

    /// The running part leaves its processor, unfinished, and can run on.
    #[inline(always)]
    pub fn stop(&mut self, now: Instant) {
        debug_assert_eq!(self.state, State::Running, "a part stops that does not run");
        self.state = State::Ready;
        self.stopped = now.nanos();
    }

    /// The current job has executed for so long since this was last told.
    #[inline(always)]
    pub fn execute(&mut self, time: Duration) {
        self.executed += time.nanos();
    }

    /// When a job that executes from `now` on has to be looked at: where it is complete, or comes
    /// to a limit; [`u64::MAX`] nanoseconds: never.
    #[inline(always)]
    pub fn look_at(&self, now: Instant, limits: &Limits) -> Instant {
        let whole = now
            .nanos()
            .saturating_add(self.demand.saturating_sub(self.executed));
        if !limits.any {
            return Instant::from_nanos(whole);
        }
        let (slice, budget) = (
            left(self.slice_end, self.executed),
            left(self.budget, self.executed),
        );
        let whole = match self.demand {
            u64::MAX => u64::MAX,
            _ => whole,
        };
        Instant::from_nanos(whole.min(limits.reach(now, slice, budget)))
    }

    /// What the current job has come to. Its demand counts before its budget, that before its
    /// slice.
    #[inline(always)]
    pub fn reached(&self, limits: &Limits) -> Reached {
        if self.executed >= self.demand {
            Reached::Complete
        } else if self.executed >= self.budget {
            Reached::Budget
        } else if left(self.slice_end, self.executed) <= limits.nearly {
            Reached::Slice
        } else {
            Reached::Nothing
        }
    }

    /// The slice of the running part is used up: it leaves its processor, and is held until its
    /// next part becomes ready.
    #[inline(always)]
    pub fn exhaust(&mut self, now: Instant) {
        debug_assert_eq!(
            self.state,
            State::Running,
            "a slice is used up by a part that does not run"
        );
        self.state = State::Held;
        self.stopped = now.nanos();
    }

    /// The policy has pushed the job, whose slice is used up, to its next part.
    #[inline(always)]
    pub fn push(&mut self, part: u32) {
        debug_assert_eq!(self.state, State::Held, "a part is pushed that is not held");
        self.part = part;
    }

    /// A worker has done a piece of work. Returns whether the current job is complete with it: not
    /// where the piece was left over by a job that was cut short.
    pub fn work_done(&mut self) -> bool {
        if self.behind > 0 {
            self.behind -= 1;
            return false;
        }
        self.is_current()
    }

    /// The current job is over and leaves nothing to its successor. It need not be running: on a
    /// real machine it may finish while its preemption is under way.
    #[inline(always)]
    pub fn complete(&mut self) {
        debug_assert!(self.is_current(), "a job completes that is not current");
        self.state = State::Waiting;
        self.number += 1;
    }

    /// The current job is cut short: its successor does the rest.
    #[inline]
    pub fn cut(&mut self) {
        match self.demand {
            u64::MAX => self.behind += 1,
            demand => self.carried = demand.saturating_sub(self.executed),
        }
        self.complete();
    }

    /// Gives the task, with its current job if there is one, to another domain. It runs nowhere.
    #[must_use = "the task is lost if nobody receives it"]
    pub fn hand_over(&mut self) -> Handed<P> {
        debug_assert!(
            self.state != State::Running,
            "a part is handed over that runs"
        );
        debug_assert!(
            self.state != State::Away,
            "a task is handed over that is not here"
        );
        Handed(std::mem::replace(self, Self::away()))
    }

    /// Takes a task over, in the state in which it was handed over.
    pub fn receive(&mut self, handed: Handed<P>) {
        debug_assert_eq!(self.state, State::Away, "a task comes that is here already");
        *self = handed.0;
    }

    /// Takes a task over under another plan: its current job, if there is one, is held, and goes on
    /// as a whole job with what is left of its budget.
    pub fn receive_anew(&mut self, handed: Handed<P>) {
        self.receive(handed);
        self.part = 0;
        self.slice_end = u64::MAX;
        if self.is_current() {
            self.state = State::Held;
        }
    }
}

impl<P: Copy> Default for Life<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A task on its way from one domain to another. It is in no domain, and exists once.
#[derive(PartialEq, Eq, Debug)]
pub struct Handed<P>(Life<P>);

impl<P: Copy> Handed<P> {
    /// The number of its current job, or of the next one: what has to be known where it does not
    /// arrive any more.
    pub const fn number(&self) -> u64 {
        self.0.number
    }

    /// Whether it has a current job.
    pub const fn is_current(&self) -> bool {
        self.0.is_current()
    }
}

/// What is left of a limit; `u64::MAX` is none and stays so.
#[inline(always)]
const fn left(limit: u64, executed: u64) -> u64 {
    match limit {
        u64::MAX => u64::MAX,
        limit => limit.saturating_sub(executed),
    }
}
