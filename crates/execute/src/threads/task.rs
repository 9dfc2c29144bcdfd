//! What the thread backend knows of one task.

use crate::ids::PostId;
use model::{CpuId, Instant};
use policy::Place;

/// What is known of the thread or program of a task. It moves with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTask {
    /// Does this domain own the task? The other fields mean nothing otherwise.
    pub owned: bool,
    /// The processor that it may run on; none at first.
    pub affinity: Option<CpuId>,
    /// Where it runs, as far as is decided.
    pub place: Option<Place>,
    /// Has it the priority of a chosen job?
    pub raised: bool,
    /// The post of the processor that it was told to leave while it may have been running there.
    pub left: Option<PostId>,
    /// Is its gate closed?
    pub gated: bool,
    /// Is it within a piece of work?
    pub working: bool,
    /// How many pieces of work of its worker were told of; wraps.
    pub done: u32,
    /// When it was told to begin from another processor, and has not been told of.
    pub called: Option<Instant>,
    /// Of a program that is not written for the engine: how its time is counted.
    pub turn: Turn,
}

/// The processor time of a program that is not written for the engine.
///
/// Clocks of processes do not tell it: a program starts others, whose times are known only while
/// they live and once they are found, so that one that starts many short ones would have a
/// processor for as long as it likes. As long as it is chosen, the processor is its own, apart from
/// interrupts, dispatchers and the time in which the machine stands still; when nobody of it wants
/// the processor its job is over. So clocks count, but no less than [`Turn::SURE`] of the time for
/// which it was chosen, and no more than all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// What it has had before the present turn, in nanoseconds.
    before: u64,
    /// Since when it has been chosen, and what its clocks told then, in nanoseconds.
    since: Option<(Instant, u64)>,
}

impl Turn {
    /// The share of a turn that a program has had whatever its clocks tell, of 16.
    const SURE: u64 = 15;

    /// It is chosen. `clocks`: the times of all its processes that are known, in nanoseconds.
    pub fn begin(&mut self, now: Instant, clocks: u64) {
        self.since = Some((now, clocks));
    }

    /// What it has had in all, in nanoseconds.
    pub fn time(&self, now: Instant, clocks: u64) -> u64 {
        self.before + self.gained(now, clocks)
    }

    fn gained(&self, now: Instant, clocks: u64) -> u64 {
        let Some((since, at_first)) = self.since else {
            return 0;
        };
        let all = now.nanos().saturating_sub(since.nanos());
        clocks
            .saturating_sub(at_first)
            .clamp(all / 16 * Self::SURE, all)
    }

    /// It is not chosen any more. True: its clocks do not tell who had the processor.
    pub fn end(&mut self, now: Instant, clocks: u64) -> bool {
        let gained = self.gained(now, clocks);
        self.before += gained;
        self.since
            .take()
            .is_some_and(|(_, at_first)| clocks.saturating_sub(at_first) < gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const fn ms(ms: u64) -> u64 {
        ms * 1_000_000
    }

    #[test]
    fn clocks_count_within_the_time_for_which_it_was_chosen() {
        let mut turn = Turn::default();
        // What it has had when it was not chosen does not count.
        turn.begin(at(100), ms(70));
        assert_eq!(turn.time(at(116), ms(86)), ms(16));
        // An interrupt took the rest.
        assert_eq!(turn.time(at(116), ms(86) - 900_000), ms(16) - 900_000);
        assert!(!turn.end(at(116), ms(86) - 900_000));
        assert_eq!(turn.time(at(200), ms(150)), ms(16) - 900_000);
    }

    #[test]
    fn what_no_clock_tells_counts_once() {
        let mut turn = Turn::default();
        turn.begin(at(0), 0);
        // Others had it, and are not known.
        assert_eq!(turn.time(at(16), ms(1)), ms(15));
        assert!(turn.end(at(16), ms(1)));
        // They are known now, with what they had then.
        turn.begin(at(20), ms(17));
        assert_eq!(turn.time(at(36), ms(33)), ms(31));
        // Or are found within a turn.
        assert_eq!(turn.time(at(36), ms(90)), ms(31));
        assert!(!turn.end(at(36), ms(90)));
        // A clock that goes back (a process has gone) takes nothing away.
        turn.begin(at(40), ms(90));
        assert_eq!(turn.time(at(56), ms(40)), ms(46));
    }
}
