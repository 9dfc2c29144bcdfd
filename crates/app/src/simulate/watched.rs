//! Which engine simulates, and what watches it.

use model::files::Aside;
use model::watch::Watch;
use model::{Platform, Result, TaskSet};
use simulate::{Cached, Costs, Distributions, Scenario, Summary, Traced};
use trace::{FileSink, Thrashing};

/// What watches a simulation: events are made only where something takes them.
pub(super) struct Watched {
    pub(super) distributions: Distributions,
    pub(super) events: (Option<FileSink<Aside>>, Option<Thrashing>),
}

/// What is simulated.
pub(super) struct Run<'a> {
    pub(super) set: &'a TaskSet,
    pub(super) platform: &'a Platform,
    pub(super) scenario: &'a Scenario,
    pub(super) costs: Option<&'a Costs>,
    pub(super) watch: &'a dyn Watch,
}

impl Run<'_> {
    pub(super) fn simulate(
        &self,
        plan: policy::AnyPlan,
        watched: &mut Watched,
        cached: Option<&mut Cached>,
    ) -> Result<Summary> {
        let Run {
            set,
            platform,
            scenario,
            costs,
            watch,
        } = *self;
        let distributions = &mut watched.distributions;
        let (sink, thrashing) = &mut watched.events;
        if cached.is_none() && sink.is_none() && thrashing.is_none() {
            let run =
                simulate::simulate(plan, set, platform, scenario, costs, &watch, distributions);
            return Ok(run?.0);
        }
        let observer = (distributions, Traced((sink.as_mut(), thrashing.as_mut())));
        let run = match cached {
            None => simulate::simulate(plan, set, platform, scenario, costs, &watch, observer),
            Some(cached) => {
                simulate::simulate_paced(plan, set, platform, scenario, &watch, observer, cached)
            }
        };
        Ok(run?.0)
    }
}
