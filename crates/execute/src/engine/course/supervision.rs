//! The supervisor: lets a run begin, collects its events, and sees to it that it ends.

use super::Engine;
use crate::backend::Host;
use crate::clock::{Monotonic, Timeline, Timestamps};
use crate::engine::{Ending, Maker, Settings};
use crate::watchdog::{Trip, Watchdog};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result};
use trace::Sink;

/// How often the supervisor looks.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// Producers have pushed what they have to say of the time so long ago.
const BEHIND: Duration = Duration::from_millis(200);

impl<M: Maker> Engine<M> {
    /// Lets the run begin and watches it to its end.
    pub(in crate::engine) fn supervise<S: Sink>(
        &mut self,
        settings: &Settings,
        watchdog: &Watchdog,
        watch: &impl Watch,
        sink: &mut S,
        mut flush: impl FnMut(&mut S),
    ) -> Result<Ending> {
        let total = settings.horizon.nanos().div_ceil(1_000_000);
        watch.begin("running", total);
        let source = Monotonic;
        let timeline = Timeline::new(source, release(settings.release_at, source.read())?);
        let board = watchdog.board();
        self.begin(timeline, settings);
        let latest = Instant::ZERO + settings.horizon + settings.patience.late;
        let (mut told, mut flushed) = (0, Instant::ZERO);
        loop {
            board.ordinary();
            std::thread::sleep(LOOK);
            let now = timeline.now();
            self.collect(now, sink);
            self.keeper.look(&*self.team);
            if now.since(flushed) >= Duration::from_secs(1) {
                flushed = now;
                flush(sink);
            }
            let at = (now.nanos() / 1_000_000).min(total);
            watch.advance(at - told);
            told = at;
            self.look_ahead(timeline)?;
            // First: the watchdog kills programs, whose ends are faults as well.
            if let Some(trip) = board.tripped() {
                return Err(self.tripped(trip));
            }
            if let Some(e) = self.team.fault() {
                return Err(e.clone());
            }
            if watchdog.has_died() {
                return Err(Error::new(
                    "the watchdog was killed or stopped: the run ended without its protection",
                )
                .remedy("leave the processes `warmset-dog` and `warmset-heir` alone"));
            }
            if watch.stopped() {
                return Ok(Ending::Interrupted);
            }
            if self.keeper.ended() == self.team.host.workers.len() {
                return Ok(Ending::ProgramsEnded);
            }
            // Their threads may be gone later: they are ordinary ones by then, and wait for their turn.
            if self.team.is_over() {
                return Ok(Ending::Horizon);
            }
            if timeline.now() > latest {
                return Err(not_over(settings.patience.late));
            }
        }
    }

    /// Lets the run begin at the origin of its time line, and tells the watchdog what to expect.
    fn begin(&mut self, timeline: Timeline, settings: &Settings) {
        let (horizon, board) = (Instant::ZERO + settings.horizon, &self.team.host.board);
        let late = Duration::from_nanos(settings.patience.late.nanos().saturating_mul(2));
        board.latest(timeline.reading(horizon).saturating_add(late.nanos()));
        if !self.slack_window.is_zero() {
            board.watch_slack(self.slack.len(), self.slack_window);
        }
        self.team
            .await_first_decisions(timeline.reading(Instant::ZERO));
        self.team.host.begin(timeline);
        for (post, _) in self.team.posts_of(0) {
            self.team.host.call(post);
        }
    }

    pub(super) fn tripped(&self, trip: Trip) -> Error {
        let cpu_of = |place: u32| {
            let post = self.team.posts.iter().find(|p| p.slot == place);
            post.map_or(CpuId(0), |p| p.cpu)
        };
        match trip {
            Trip::Dispatcher(place) => {
                let cpu = cpu_of(place);
                Error::new(format!(
                    "the watchdog ended the run: the dispatcher of processor {cpu} stood still"
                ))
                .remedy("look for other work at real-time priority 97 or above, or for a virtual machine that was stopped")
            }
            Trip::Overdue(place) => Error::new(format!(
                "the watchdog ended the run: something was due on processor {}, and nobody decided",
                cpu_of(place)
            ))
            .remedy("report it, with the task set"),
            Trip::Slackless => Error::new(format!(
                "the watchdog ended the run: for {} its jobs left ordinary programs nothing but what \
                 the kernel keeps for them",
                self.slack_window.rounded()
            ))
            .remedy(
                "give the tasks less than 94 % of every processor, WCETs that their jobs keep, or \
                 `--enforcement exact`",
            ),
            Trip::Late => not_over(self.settings.patience.late),
            Trip::Ordinary => Error::new("the watchdog ended the run: ordinary programs did not get to run")
                .remedy("give the tasks less than 90 % of every processor"),
        }
    }

    fn collect<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        if let Some(collector) = &mut self.collector {
            let until = Instant::from_nanos(now.nanos().saturating_sub(BEHIND.nanos()));
            collector.collect(until, sink);
        }
    }
}

/// Time enough for every dispatcher to see that the run begins, in nanoseconds.
const SOON: u64 = 30_000_000;

/// The reading of the clock at which all tasks are released, where everything is ready at `now`.
fn release(at: Option<u64>, now: u64) -> Result<u64> {
    let soonest = now + SOON;
    match at {
        Some(at) if at < soonest => {
            let late = Duration::from_nanos(soonest - at).rounded();
            Err(Error::new(format!(
                "everything was ready {late} too late for the moment of release"
            ))
            .remedy("give a later one"))
        }
        at => Ok(at.unwrap_or(soonest)),
    }
}

fn not_over(late: Duration) -> Error {
    Error::new(format!(
        "the run was not over {late} after its horizon and was ended: a dispatcher did not come to \
         its end"
    ))
    .remedy("report it, with the task set; what is shown is true up to then")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_released_at_the_moment_that_is_asked_for_or_not_at_all() {
        assert_eq!(release(None, 1_000).unwrap(), 1_000 + SOON);
        assert_eq!(release(Some(5_000 + SOON), 1_000).unwrap(), 5_000 + SOON);
        let e = release(Some(1_000 + SOON), 5_000_000)
            .unwrap_err()
            .to_string();
        assert_eq!(
            e,
            "everything was ready 4.999ms too late for the moment of release; give a later one"
        );
    }
}
