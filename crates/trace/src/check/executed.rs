//! What a job of a real run says that it executed, held against what the trace shows.
//!
//! A job is shown on a processor from the event that puts it there to the event that takes it off.
//! Its thread may run at other times only where the record leaves room:
//!
//! - while a switch to it is carried out: the bracket of the context switch that ends when it is
//!   put on;
//! - while it waits on the processor that it left and nobody is shown there;
//! - within the tolerance after it was taken off, as a decision may take so long to reach its
//!   processor;
//! - within the tolerance before another job is shown to leave that processor: that other one may
//!   have ended unnoticed;
//! - while processors stood still, as the clock of a thread may go on then.
//!
//! Nothing bounds the other direction: interrupts, and standstills too short to be noted, take time
//! from a job that is shown on its processor, and no event says how much.

use crate::event::{Event, EventKind};
use crate::state::{Fault, Job, Observer, State};
use model::Overhead;
use model::{CpuId, Duration, Instant, TaskId};

/// Clocks differ by less: the clock of a thread is not slewed, that of the trace by up to 500 parts
/// in a million for the frequency and as many for the offset (adjtimex(2)).
const SLEWED: u64 = 1_000;

/// What happened on a processor so far.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// For how long nobody was shown on it.
    empty: Duration,
    /// How many jobs have left it.
    left: u64,
    /// The latest switch that has ended here: for whom, from when to when.
    switch: Option<(TaskId, u64, Instant, Instant)>,
}

/// A job that has left its processor, with the state of that processor then.
#[derive(Clone, Copy, Debug)]
struct Away {
    cpu: CpuId,
    since: Instant,
    place: Place,
}

/// The first pending job of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    away: Option<Away>,
    /// For how long it may have executed while it was not shown.
    unseen: Duration,
}

/// The rule `execution` of real runs.
#[derive(Debug)]
pub struct Executed {
    places: Vec<Place>,
    tasks: Vec<Current>,
    tolerance: Duration,
}

/// Learns how long the job that completes is shown to have executed.
#[derive(Debug, Default)]
pub struct Shown(pub Option<Duration>);

impl Observer for Shown {
    fn done(&mut self, _: TaskId, _: &Job, _: Instant, executed: Duration) {
        self.0 = Some(executed);
    }
}

impl Executed {
    /// For so many tasks and processors.
    pub fn new(tasks: usize, processors: usize, tolerance: Duration) -> Self {
        Executed {
            places: vec![Place::default(); processors],
            tasks: vec![Current::default(); tasks],
            tolerance,
        }
    }

    /// Nothing changes from `from` to `to`.
    pub fn hold(&mut self, from: Instant, to: Instant, state: &State) {
        for (place, processor) in self.places.iter_mut().zip(&state.processors) {
            if processor.running.is_none() {
                place.empty = place.empty.saturating_add(to.since(from));
            }
        }
    }

    /// An event that is well formed is about to change the state.
    pub fn event(&mut self, event: &Event, state: &State) {
        let Some(cpu) = event.cpu() else { return };
        let Some(place) = self.places.get_mut(cpu.index()) else {
            return;
        };
        match event.kind {
            EventKind::OverheadEnd if event.overhead_kind() == Some(Overhead::ContextSwitch) => {
                let open = state.processors[cpu.index()].overheads.last();
                if let Some((open, (task, job))) = open.and_then(|o| Some((o, o.job?))) {
                    place.switch = Some((task, job, open.since, event.time));
                }
            }
            EventKind::Completion => place.left += 1,
            EventKind::Preemption | EventKind::Suspension => {
                place.left += 1;
                self.tasks[event.task.index()].away = Some(Away {
                    cpu,
                    since: event.time,
                    place: *place,
                });
            }
            kind if kind.puts_on() => self.comes(event, cpu, state),
            _ => {}
        }
    }

    /// A job is put on a processor: adds up for how long it may have executed since it was last
    /// shown on one.
    fn comes(&mut self, event: &Event, cpu: CpuId, state: &State) {
        let switch = match self.places[cpu.index()].switch {
            Some((task, job, since, end))
                if (task, job, end) == (event.task, event.job, event.time) =>
            {
                end.since(since)
            }
            _ => Duration::ZERO,
        };
        let current = &mut self.tasks[event.task.index()];
        let room = match current.away.take() {
            None => switch,
            Some(away) => {
                let (gap, place) = (event.time.since(away.since), self.places[away.cpu.index()]);
                let empty = place.empty.saturating_sub(away.place.empty);
                let changes = place.left - away.place.left + 1;
                let settling = self.tolerance.nanos().saturating_mul(changes);
                let stood = gap.saturating_sub(state.awake(away.since, event.time, Some(away.cpu)));
                let room = empty
                    .saturating_add(Duration::from_nanos(settling))
                    .saturating_add(stood);
                // On the processor that it left the switch has passed with nobody there.
                let room = match away.cpu == cpu {
                    true => room,
                    false => room.saturating_add(switch),
                };
                room.min(gap)
            }
        };
        current.unseen = current.unseen.saturating_add(room);
    }

    /// A job has completed. Returns by how much it says to have executed for longer than is shown.
    ///
    /// # Errors
    /// It is more than the record leaves room for.
    pub fn complete(&mut self, event: &Event, shown: Duration) -> Result<Duration, Fault> {
        let unseen = std::mem::take(&mut self.tasks[event.task.index()]).unseen;
        let said = Duration::from_nanos(event.argument);
        let more = said.saturating_sub(shown);
        let allowed = unseen.saturating_add(Duration::from_nanos(said.nanos() / SLEWED));
        if more <= allowed {
            return Ok(more);
        }
        Err(Fault {
            rule: "execution",
            text: format!(
                "it says that it executed {said}, the trace shows {shown} and leaves room for {allowed} more"
            ),
        })
    }
}
