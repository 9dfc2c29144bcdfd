//! How fast jobs get on: by their execution times, or as something says that looks at what they do
//! in virtual time, such as [caches](crate::cached).

use crate::scenario::LONGEST;
use crate::{Execution, Scenario};
use model::{CpuId, Error, Result, TaskId, TaskSet};

/// Says when jobs are complete. Processors are counted in the order in which [`Pace::begin`] names
/// them; times are nanoseconds of virtual time.
pub trait Pace {
    /// Does it say so? If not, execution times do, and nothing below is asked.
    const PACED: bool;
    /// The simulation begins on these processors.
    ///
    /// # Errors
    /// It does not know one of them.
    fn begin(&mut self, _processors: &[CpuId]) -> Result<()> {
        Ok(())
    }
    /// Job `number` of a task runs from now on.
    fn start(&mut self, _processor: usize, _task: TaskId, _number: u64, _now: u64) {}
    /// The job of a processor leaves it unfinished.
    fn stop(&mut self, _processor: usize, _now: u64) {}
    /// Nothing else happens until then: lets all running jobs get on, at most until the first of
    /// them are complete. Returns when that is, at the latest at `until`.
    fn advance(&mut self, _until: u64) -> Option<u64> {
        None
    }
    /// The next processor whose job has become complete, and which has not been asked for.
    fn finished(&mut self) -> Option<usize> {
        None
    }
    /// How often the last complete job of a task missed the shared cache.
    fn misses(&self, _task: TaskId) -> Option<u64> {
        None
    }
    /// Why it could not go on, once.
    fn error(&mut self) -> Option<Error> {
        None
    }
}

/// Execution times say so.
impl Pace for () {
    const PACED: bool = false;
}

impl<P: Pace> Pace for &mut P {
    const PACED: bool = P::PACED;
    fn begin(&mut self, processors: &[CpuId]) -> Result<()> {
        (**self).begin(processors)
    }
    #[inline]
    fn start(&mut self, processor: usize, task: TaskId, number: u64, now: u64) {
        (**self).start(processor, task, number, now);
    }
    #[inline]
    fn stop(&mut self, processor: usize, now: u64) {
        (**self).stop(processor, now);
    }
    #[inline]
    fn advance(&mut self, until: u64) -> Option<u64> {
        (**self).advance(until)
    }
    #[inline]
    fn finished(&mut self) -> Option<usize> {
        (**self).finished()
    }
    #[inline]
    fn misses(&self, task: TaskId) -> Option<u64> {
        (**self).misses(task)
    }
    fn error(&mut self) -> Option<Error> {
        (**self).error()
    }
}

/// A scenario in which no job is complete by itself.
pub(crate) fn endless(scenario: &Scenario, set: &TaskSet) -> Scenario {
    Scenario {
        execution: Execution::Given(vec![vec![LONGEST]; set.len()]),
        ..scenario.clone()
    }
}
