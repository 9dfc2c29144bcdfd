//! What watches a simulation.

use model::Result;
use model::files::Aside;
use simulate::{Cached, Distributions, Run, Summary, Traced};
use trace::{FileSink, Thrashing};

/// What watches a simulation: events are made only where something takes them.
pub(super) struct Watched {
    pub(super) distributions: Distributions,
    pub(super) events: (Option<FileSink<Aside>>, Option<Thrashing>),
}

impl Watched {
    pub(super) fn simulate(
        &mut self,
        run: Run<'_>,
        plan: policy::AnyPlan,
        cached: Option<&mut Cached>,
    ) -> Result<Summary> {
        let distributions = &mut self.distributions;
        let (sink, thrashing) = &mut self.events;
        if cached.is_none() && sink.is_none() && thrashing.is_none() {
            return run.distributed(plan, distributions);
        }
        let mut observer = (distributions, Traced((sink.as_mut(), thrashing.as_mut())));
        match cached {
            None => run.watched(plan, &mut observer),
            Some(cached) => run.in_caches(plan, &mut observer, cached),
        }
    }
}
