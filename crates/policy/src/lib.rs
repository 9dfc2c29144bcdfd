//! Scheduling policies as pure state machines: events in, decisions out (DESIGN, principle 1).
//!
//! A policy has no clock, no thread and no system call, draws no random number and allocates
//! nothing once it is built. The engine in virtual time and the engine in real time drive the same
//! code.
//!
//! What a policy is made of: a [`Plan`] cuts the processors into independent scheduling
//! [`Domain`]s, each with its own [`Policy`]; a [`Route`] says in which domain each job of a task
//! becomes ready. Domains share nothing, so an engine may hold one lock for each. A job moves
//! between domains only when a policy pushes it ([`Decisions::push`]).
//!
//! How to add one: `docs/policies.md`.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod cluster;
mod ids;
mod keys;
mod mtts;
pub mod phantoms;
pub mod place;
pub mod plan;
pub mod profiler;
pub mod quantum;
pub mod queue;
pub mod spec;
pub mod tournament;

pub use catalog::{AnyPlan, Info, Visit};
pub use ids::{DomainId, Place, ServerId};
pub use keys::{KeyedBy, KeyedChange, KeyedServers, KeyedSlice, Keys};
pub use plan::{Domain, Plan, Route, Setup};
pub use profiler::Profiler;
pub use spec::Spec;

use model::{Duration, Instant, TaskId};

/// A job, or the part of a split job, that can run: released, its predecessor complete.
///
/// At most one job of a task is ready at a time, so that the task names the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Whose job.
    pub task: TaskId,
    /// Which one, from 0.
    pub number: u64,
    /// When it was released; before `now` where a tardy predecessor delayed it.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// Which part of a job that is split over domains, from 0; 0 for a whole job.
    pub part: u32,
}

/// What happened in a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A job can run from now on.
    Ready(Job),
    /// The job of this task is complete, or was cut short. It need not be running in the eyes of
    /// the policy: on a real machine a job may finish while its preemption is under way.
    Done(TaskId),
    /// The running job of this task has used up what [`Policy::slice`] gave to its part. It is off
    /// its processor; the policy pushes it on in the next decision.
    Exhausted(TaskId),
    /// The instant that was asked for by [`Decisions::wake`] has come.
    Timer,
}

/// Where a policy puts its decisions. What it does not mention stays as it is.
pub trait Decisions {
    /// From now on, the job of this task runs at this place, instead of whichever ran there. A job
    /// that runs elsewhere in the domain is taken off that place by an earlier `run` or `idle`.
    fn run(&mut self, place: Place, task: TaskId);
    /// From now on, no job of this domain runs at this place. Not needed after a job that is done
    /// or exhausted.
    fn idle(&mut self, place: Place);
    /// [`Event::Timer`] at this instant, which lies in the future. A domain has one timer: a later
    /// call replaces the earlier.
    fn wake(&mut self, at: Instant);
    /// The exhausted job of this task becomes ready in another domain, as its part `part`, at `at`
    /// or, if that is past, now.
    fn push(&mut self, task: TaskId, to: DomainId, at: Instant, part: u32);
    /// A server begins (or, with `None`, ceases) to be served at this place. Only told, for traces;
    /// decides nothing.
    #[inline]
    fn serve(&mut self, _place: Place, _server: Option<ServerId>) {}
}

/// The state machine of one scheduling domain.
///
/// The engine tells all that happens at one instant by [`Policy::happen`], completions before
/// releases, and then asks once by [`Policy::decide`]. In between nothing changes on the
/// processors. At the very start it asks once, with no event.
pub trait Policy {
    /// Does it give slices ([`Policy::slice`]) and push jobs ([`Decisions::push`])? Engines leave
    /// out what serves them where not.
    ///
    /// Override it in a policy that splits jobs over domains (002 §4.2).
    const SLICES: bool = false;

    /// Are decisions made at quantum boundaries only?
    ///
    /// Override it in a quantum-driven policy: engines then handle releases as a part of the
    /// boundary, without a decision of their own.
    #[inline]
    fn is_quantum_driven(&self) -> bool {
        false
    }

    /// When the first quantum begins at or after this instant; `None`: there are no quanta.
    ///
    /// Override it in a quantum-driven policy: in real time what is due at a boundary is learned a
    /// little later, and an engine has to know that there is one which it is late for.
    #[inline]
    fn boundary(&self, _from: Instant) -> Option<Instant> {
        None
    }

    /// Takes notice of an event. Decides nothing yet: at one instant many jobs may be released.
    fn happen(&mut self, event: Event, now: Instant);

    /// Brings the processors in line with what happened.
    fn decide(&mut self, now: Instant, out: &mut impl Decisions);

    /// How long this part of a job may execute in this domain before [`Event::Exhausted`]; `None`:
    /// as long as it needs.
    ///
    /// Override it where a job is split over domains (002 §4.2). Budgets against overruns are the
    /// engine's own affair.
    #[inline]
    fn slice(&self, _job: &Job) -> Option<Duration> {
        None
    }

    /// The absolute deadline by which this part has to be done here.
    ///
    /// Override it together with [`Policy::slice`]; pictures and the checker show it as the part's
    /// window.
    #[inline]
    fn window(&self, job: &Job) -> Instant {
        job.deadline
    }

    /// Is the place left idle on purpose although a job is ready?
    ///
    /// Override it in a policy that is not work-conserving (003 §3.1), so that traces can tell.
    #[inline]
    fn is_deliberately_idle(&self, _place: Place) -> bool {
        false
    }

    /// The order of jobs as data; `None`: only this state machine knows who runs where.
    ///
    /// Override it in a policy that does nothing but choose the first jobs of a domain by it.
    fn keys(&self) -> Option<Keys> {
        None
    }

    /// What finds working set sizes while jobs run; `None`: nothing does. An engine that cannot
    /// count the misses of jobs ([`Policy::counted`]) refuses a policy that has one.
    ///
    /// Override it in a policy that needs them and is not given them (003 §3.2).
    fn profiler(&self) -> Option<&Profiler> {
        None
    }

    /// The job of this task that is told as done next has missed the shared cache so often.
    ///
    /// Override it together with [`Policy::profiler`].
    fn counted(&mut self, _task: TaskId, _misses: u64) {}
}

/// Stands for no task and no place in the tables of policies and engines.
pub const NONE: u32 = u32::MAX;
