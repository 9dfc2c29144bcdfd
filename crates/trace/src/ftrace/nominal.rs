//! When jobs of periodic tasks should have been released, from when their threads were woken up.
//!
//! A timer never expires early, so a wake-up is late by its latency: the earliest one, taken back by
//! whole periods, is the best that is known of where the multiples of the period lie.

use crate::event::{Event, EventKind};
use model::{Duration, Error, Instant, Result, TaskSet};

/// Nominal releases.
pub(super) struct Nominal {
    /// By task, when its first job was due, before the shift, in nanoseconds.
    first: Vec<Option<i128>>,
    /// By task and job, how many periods after the first it was due.
    periods: Vec<Vec<u64>>,
    /// By how much all events come later, so that no release is before the begin.
    pub shift: Duration,
}

impl Nominal {
    pub(super) fn of(events: &[Event], set: &TaskSet) -> Result<Self> {
        let mut wakes: Vec<Vec<u64>> = vec![Vec::new(); set.len()];
        for event in events.iter().filter(|e| e.kind == EventKind::Release) {
            wakes[event.task.index()].push(event.time.nanos());
        }
        let (mut first, mut periods) = (Vec::new(), Vec::new());
        for (id, wakes) in set.ids().zip(&wakes) {
            let period = set.timings()[id.index()].period.nanos();
            let origin = wakes.first().copied().unwrap_or(0);
            // The nearest multiple.
            let count = |wake: u64| {
                let apart = wake - origin;
                apart / period + u64::from(apart % period >= period.div_ceil(2))
            };
            let counts: Vec<u64> = wakes.iter().map(|wake| count(*wake)).collect();
            if let Some(place) = counts.windows(2).position(|pair| pair[0] == pair[1]) {
                return Err(Error::new(format!(
                    "jobs {} and {} of task `{}` were woken up within half a period of {}: its releases are not periodic",
                    place + 1,
                    place + 2,
                    set.name(id),
                    set.timings()[id.index()].period
                ))
                .remedy("leave out `--releases periodic`, or correct the period"));
            }
            let due = wakes
                .iter()
                .zip(&counts)
                .map(|(wake, n)| i128::from(*wake) - i128::from(*n) * i128::from(period));
            first.push(due.min());
            periods.push(counts);
        }
        let least = first.iter().flatten().min().copied().unwrap_or(0).min(0);
        let shift = u64::try_from(-least).unwrap_or(u64::MAX);
        Ok(Nominal {
            first,
            periods,
            shift: Duration::from_nanos(shift),
        })
    }

    /// Moves all events by the shift and gives releases their nominal deadlines; the tasks with
    /// their phases.
    pub(super) fn apply(&self, events: &mut [Event], set: &TaskSet) -> Result<TaskSet> {
        let shift = i128::from(self.shift.nanos());
        let instant = |ns: i128| Instant::from_nanos(u64::try_from(ns).unwrap_or(0));
        for event in events.iter_mut() {
            event.time = event.time + self.shift;
            if event.kind == EventKind::Release {
                let index = event.task.index();
                let timing = set.timings()[index];
                let periods = self.periods[index].get(event.job as usize).copied();
                let due = self.first[index].unwrap_or(0)
                    + i128::from(periods.unwrap_or(0)) * i128::from(timing.period.nanos());
                event.argument = (instant(due + shift) + timing.deadline).nanos();
            }
        }
        let tasks = set.ids().map(|id| {
            let mut details = set.details(id).cloned();
            if let (Some(details), Some(due)) = (&mut details, self.first[id.index()]) {
                details.phase = instant(due + shift).since(Instant::ZERO);
            }
            let name = set.name(id);
            let details = details.unwrap_or_else(|| model::Details::named(name));
            (set.timings()[id.index()], details)
        });
        TaskSet::new(tasks.collect())
    }
}
