//! A run by the engine in the kernel, in the words of the engine in user space.

use execute::Outcome;
use execute::colored::{Provider, Who, on_its_stack};
use kernel::Surroundings;
use model::{Result, TaskId};
use std::sync::Arc;

/// The stacks of page colors that its threads run on.
#[derive(Debug)]
pub(super) struct Colored(pub Arc<dyn Provider>);

impl Surroundings for Colored {
    fn within(&self, task: TaskId, body: &mut dyn FnMut()) {
        on_its_stack(Some(&self.0), Who::Worker(task), body);
    }

    fn ready(&self, threads: &[i32]) -> Result<()> {
        self.0.ready(threads)
    }
}

/// An outcome of the engine in the kernel, which has no dispatchers of its own.
pub(super) fn outcome(of: kernel::Outcome) -> Outcome {
    Outcome {
        ending: of.ending,
        end: of.end,
        origin: of.origin,
        lost: of.lost,
        decisions: of.decisions,
        latencies: of.latencies,
        triggers: of.triggers,
        stuck: of.stuck,
        programs: of.programs,
        threads: of.threads,
        best_effort: of.best_effort,
        profiled: of.profiled,
        ..Outcome::default()
    }
}
