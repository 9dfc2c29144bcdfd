//! Simulations as other rooms ask for them, by one of a few kinds of observer.
//!
//! An engine is compiled for each policy, observer and pace. These are compiled here, once; who
//! brings a type of observer of its own to [`crate::simulate`] has all of them compiled anew, which
//! is worth it only where a call a job or an event would be felt.

use crate::{Cached, Costs, Distributions, Observer, Responses, Scenario, Summary};
use model::watch::Watch;
use model::{Platform, Result, TaskId, TaskSet};
use policy::AnyPlan;
use trace::Event;

/// What is simulated, and whom to tell of progress.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// Where they run.
    pub platform: &'a Platform,
    /// When jobs come, and how long they take.
    pub scenario: &'a Scenario,
    /// What overheads cost. In caches there are none.
    pub costs: Option<&'a Costs>,
    /// Whom to tell of progress, and who may stop it.
    pub watch: &'a dyn Watch,
}

/// An [`Observer`] of any type. All of them are shown events.
pub trait Watcher {
    /// Something happened.
    fn event(&mut self, event: Event);
    /// As [`Observer::completed`].
    fn completed(&mut self, task: TaskId, number: u64, response: u64);
}

impl<O: Observer> Watcher for O {
    fn event(&mut self, event: Event) {
        Observer::event(self, event);
    }
    fn completed(&mut self, task: TaskId, number: u64, response: u64) {
        Observer::completed(self, task, number, response);
    }
}

/// The one type that all watchers are to the engine.
struct Any<'a>(&'a mut dyn Watcher);

impl Observer for Any<'_> {
    const EVENTS: bool = true;
    #[inline]
    fn event(&mut self, event: Event) {
        self.0.event(event);
    }
    #[inline]
    fn completed(&mut self, task: TaskId, number: u64, response: u64) {
        self.0.completed(task, number, response);
    }
}

impl Run<'_> {
    fn with<O: Observer>(&self, plan: AnyPlan, observer: O) -> Result<(Summary, O)> {
        let watch = &self.watch;
        let Run { set, platform, .. } = *self;
        crate::simulate(
            plan,
            set,
            platform,
            self.scenario,
            self.costs,
            watch,
            observer,
        )
    }

    /// What comes of a plan of any policy.
    ///
    /// # Errors
    /// A scenario or costs out of range for the set.
    pub fn counted(&self, plan: AnyPlan) -> Result<Summary> {
        Ok(self.with(plan, ())?.0)
    }

    /// The same, and the response time of every job.
    ///
    /// # Errors
    /// As [`Run::counted`].
    pub fn responses(&self, plan: AnyPlan) -> Result<(Summary, Responses)> {
        self.with(plan, Responses::new(self.set.len()))
    }

    /// The same, and how response times are distributed.
    ///
    /// # Errors
    /// As [`Run::counted`].
    pub fn distributed(&self, plan: AnyPlan, into: &mut Distributions) -> Result<Summary> {
        Ok(self.with(plan, into)?.0)
    }

    /// The same, with all events.
    ///
    /// # Errors
    /// As [`Run::counted`].
    pub fn watched(&self, plan: AnyPlan, watcher: &mut dyn Watcher) -> Result<Summary> {
        Ok(self.with(plan, Any(watcher))?.0)
    }

    /// Without overheads, with jobs that get on as caches serve them.
    ///
    /// # Errors
    /// As [`crate::simulate_paced`].
    pub fn in_caches(
        &self,
        plan: AnyPlan,
        watcher: &mut dyn Watcher,
        cached: &mut Cached,
    ) -> Result<Summary> {
        let watch = &self.watch;
        let Run { set, platform, .. } = *self;
        let scenario = self.scenario;
        let any = Any(watcher);
        Ok(crate::simulate_paced(plan, set, platform, scenario, watch, any, cached)?.0)
    }
}
