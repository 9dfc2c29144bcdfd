//! What engine and kernel took from a processor, cut into overheads without a gap.
//!
//! 002 §2.4 has seven overheads within one kernel. Here a dispatcher, which is a thread, does their
//! work, and the kernel brings it to its processor and takes it away again. From the moment at
//! which the processor turns to its dispatcher until its next job goes on, each nanosecond belongs
//! to the overhead that ends next: the timer's interrupt and the way to the dispatcher are part of
//! the release, what lies between the last job released and the end of the decision is part of
//! scheduling, and the way from the dispatcher to the job is part of the context switch. So the
//! samples of one episode add up to what the jobs there lose to it, whatever the engine brackets
//! itself: charging them is safe.
//!
//! The engine's watch for standstills is a thread above all dispatchers, which looks again and
//! again whether it comes late: from the timer's interrupt that wakes it up until it has gone.
//!
//! The tick is the timer's interrupt where it does the kernel's work and nothing for a dispatcher.
//!
//! Some kernels do not record the switch from an idle processor to a thread. A dispatcher that was
//! woken and then does what it can do on its processor alone has come there, whatever was recorded;
//! its episode begins with the waking, which is when it comes at the earliest.

use model::{Overhead, OverheadKind};
use serde::{Deserialize, Serialize};
use watch::Look;

/// What happened on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The processor's timer interrupts what runs.
    TimerEntry,
    /// The timer's interrupt is over.
    TimerExit,
    /// Within the timer's interrupt: the kernel's tick.
    Tick,
    /// Something on this processor wakes its dispatcher up.
    Wakes,
    /// Something on another processor does.
    WokenFromAfar,
    /// Its dispatcher comes.
    Comes,
    /// Its dispatcher leaves the processor to this thread; 0: to nobody.
    Leaves(i32),
    /// A thread of higher priority takes the processor from its dispatcher, which comes back.
    Preempted,
    /// Its dispatcher asks the kernel to let it sleep.
    Sleeps,
    /// The kernel sets a timer for its dispatcher.
    Arms,
    /// The timer wakes this processor's watch for standstills up.
    WatchWakes,
    /// That watch leaves the processor.
    WatchLeaves,
    /// This thread is back from the kernel, and begins a job.
    Begins(i32),
    /// The engine begins an overhead, by its own account.
    Own(Overhead),
    /// The engine ends such an overhead.
    OwnEnd(Overhead),
    /// The machine has stood still for so long, in nanoseconds.
    StoodStill(u64),
}

/// Which cost a sample is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// A dispatcher looked whether there was something to do, and there was nothing.
    Look,
    /// An overhead that a profile has.
    #[serde(untagged)]
    Overhead(OverheadKind),
}

/// One overhead on one processor, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Which.
    pub cost: Cost,
    /// When it began, as `CLOCK_MONOTONIC` counts.
    pub begun: u64,
    /// How long the engine itself took, by its own account; `None`: it took no part.
    pub own: Option<u64>,
    /// How long all of it took, the kernel's part included.
    pub whole: u64,
    /// Why it does not count.
    pub disturbed: Option<Disturbance>,
}

/// Why a sample does not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The timer's interrupt came within it. Ticks are charged on their own.
    Interrupt,
    /// A thread of higher priority than the dispatcher ran.
    Preemption,
    /// The machine stood still.
    Standstill,
}

impl Disturbance {
    /// For sentences.
    pub const fn words(self) -> &'static str {
        match self {
            Disturbance::Interrupt => "an interrupt of the timer within",
            Disturbance::Preemption => "a thread of higher priority within",
            Disturbance::Standstill => "a standstill of the machine within",
        }
    }
}

/// A dispatcher is on its processor, or on its way there.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// From when on nothing is part of an overhead yet.
    from: u64,
    /// Where its tiles begin among all.
    first: usize,
    /// Was its dispatcher woken from another processor?
    from_afar: bool,
    /// Does a thread of higher priority run meanwhile?
    away: bool,
    /// Has its timer been set in it?
    armed: bool,
    /// Since when its dispatcher asks to sleep, until its timer is set.
    asked: Option<u64>,
    /// When another processor woke its dispatcher up, after it had last asked to sleep: too late
    /// for it to stay.
    missed: Option<u64>,
    /// Why what began at `from` does not count.
    disturbed: Option<Disturbance>,
}

/// The timer interrupts.
#[derive(Clone, Copy, Debug)]
struct Interrupt {
    since: u64,
    is_tick: bool,
    wakes: bool,
}

/// The engine works for this processor, by its own account.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    overhead: Overhead,
    since: u64,
    /// By a dispatcher on another processor?
    from_afar: bool,
}

/// Cuts the marks of one processor into tiles.
#[derive(Clone, Debug, Default)]
pub struct Tiler {
    tiles: Vec<Tile>,
    /// The kernel says nothing here.
    own_only: bool,
    interrupt: Option<Interrupt>,
    watch: Option<Look>,
    /// From when on the processor turns to its dispatcher, which is not there yet.
    turns: Option<u64>,
    /// When another processor woke up the dispatcher, which is not there yet.
    woken_from_afar: Option<u64>,
    /// What happened while the dispatcher was on its way.
    delayed: Option<Disturbance>,
    episode: Option<Episode>,
    /// The engine's own brackets that are open.
    own: Vec<Bracket>,
    /// The thread that its dispatcher left the processor to, and when, where it begins a job.
    beginning: Option<(i32, u64)>,
    /// Marks that no such run can have.
    senseless: u64,
    /// Comings of the dispatcher that nothing recorded.
    unseen: u64,
    /// Has its dispatcher come, or left, once? Threads begin as ordinary ones, whose switches are
    /// not recorded.
    has_begun: bool,
}

impl Tiler {
    /// Where the kernel says nothing: of the engine's own brackets alone, which are not all that
    /// its jobs lose.
    pub fn own_only() -> Self {
        Tiler {
            own_only: true,
            ..Tiler::default()
        }
    }

    /// Takes a mark. Marks come in the order of time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn add(&mut self, time: u64, mark: Mark) {
        match mark {
            Mark::TimerEntry => {
                self.beginning = None;
                self.disturb(Disturbance::Interrupt);
                self.disturb_watch(Disturbance::Interrupt);
                self.interrupt = Some(Interrupt {
                    since: time,
                    is_tick: false,
                    wakes: false,
                });
            }
            Mark::Tick => {
                if let Some(interrupt) = &mut self.interrupt {
                    interrupt.is_tick = true;
                }
                self.disturb_watch(Disturbance::Interrupt);
            }
            Mark::TimerExit => self.leave_interrupt(time),
            Mark::Wakes => self.turn(time),
            Mark::WokenFromAfar => self.wake_from_afar(time),
            Mark::Comes => {
                // The watch is above it, and has gone.
                self.watch_leaves(time);
                self.come(time);
            }
            Mark::Leaves(to) => self.leave(time, to),
            Mark::Preempted => self.step_aside(),
            Mark::Sleeps => self.sleep(time),
            Mark::Arms => self.arm(time),
            Mark::WatchWakes => self.watch_wakes(time),
            Mark::WatchLeaves => self.watch_leaves(time),
            Mark::Begins(thread) => self.begin(time, thread),
            Mark::Own(overhead) => self.begin_own(overhead, time),
            Mark::OwnEnd(overhead) => self.end_own(overhead, time),
            Mark::StoodStill(length) => self.stand_still(time.saturating_sub(length)),
        }
    }

    /// The tiles so far. The last ones may still become longer, or be found to be disturbed.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// How many marks made no sense where they came: some were lost.
    pub fn senseless(&self) -> u64 {
        self.senseless
    }

    /// How often the dispatcher was there though nothing had recorded that it came.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// The dispatcher is at work here: if nothing recorded that it came, it did when it was woken.
    fn be_there(&mut self) {
        let woken = self.turns.or(self.woken_from_afar);
        if let (None, Some(since), false) = (&self.episode, woken, self.own_only) {
            self.unseen += 1;
            self.come(since);
        }
    }

    fn sleep(&mut self, time: u64) {
        self.be_there();
        match &mut self.episode {
            Some(episode) => (episode.asked, episode.missed) = (Some(time), None),
            None => self.senseless += u64::from(self.has_begun),
        }
    }

    fn wake_from_afar(&mut self, time: u64) {
        match &mut self.episode {
            Some(episode) => episode.missed = Some(time),
            None => {
                self.woken_from_afar.get_or_insert(time);
            }
        }
    }

    fn begin_own(&mut self, overhead: Overhead, time: u64) {
        // A dispatcher on another processor may bring a job here meanwhile.
        if overhead != Overhead::ContextSwitch {
            self.be_there();
        }
        self.own.push(Bracket {
            overhead,
            since: time,
            from_afar: self.episode.is_none() && !self.own_only,
        });
    }

    /// The dispatcher waits for a thread of higher priority.
    fn step_aside(&mut self) {
        self.be_there();
        if let Some(episode) = &mut self.episode {
            episode.away = true;
            episode.disturbed.get_or_insert(Disturbance::Preemption);
        }
    }

    fn leave_interrupt(&mut self, time: u64) {
        let Some(interrupt) = self.interrupt.take() else {
            self.senseless += 1;
            return;
        };
        if interrupt.is_tick && !interrupt.wakes && self.episode.is_none() && self.turns.is_none() {
            self.tiles.push(Tile {
                cost: Cost::Overhead(OverheadKind::Tick),
                begun: interrupt.since,
                own: None,
                whole: time.saturating_sub(interrupt.since),
                disturbed: None,
            });
        }
    }

    /// This happens to the dispatcher, if it is there or on its way.
    fn disturb(&mut self, by: Disturbance) {
        match &mut self.episode {
            Some(episode) => {
                episode.disturbed.get_or_insert(by);
            }
            None if self.turns.or(self.woken_from_afar).is_some() => {
                self.delayed.get_or_insert(by);
            }
            None => {}
        }
    }

    /// The processor turns to its dispatcher: with the interrupt that it is in, if it is in one.
    fn turn(&mut self, time: u64) {
        if self.episode.is_some() || self.turns.is_some() {
            return;
        }
        self.turns = Some(match &mut self.interrupt {
            Some(interrupt) => {
                interrupt.wakes = true;
                interrupt.since
            }
            None => time,
        });
    }

    fn come(&mut self, time: u64) {
        self.beginning = None;
        self.has_begun = true;
        if let Some(episode) = &mut self.episode {
            if std::mem::take(&mut episode.away) {
                return;
            }
            self.senseless += 1;
        }
        let turned = self.turns.take();
        self.episode = Some(Episode {
            from: turned.unwrap_or(time),
            first: self.tiles.len(),
            from_afar: self.woken_from_afar.take().is_some() && turned.is_none(),
            away: false,
            armed: false,
            asked: None,
            missed: None,
            disturbed: self.delayed.take(),
        });
    }

    fn end_own(&mut self, overhead: Overhead, time: u64) {
        let ends = |bracket: &Bracket| bracket.overhead == overhead;
        let Some(place) = self.own.iter().rposition(ends) else {
            self.senseless += 1;
            return;
        };
        let Bracket {
            since, from_afar, ..
        } = self.own.remove(place);
        let kind = match overhead {
            Overhead::Release => OverheadKind::Release,
            Overhead::Scheduling => OverheadKind::Scheduling,
            Overhead::ContextSwitch => OverheadKind::ContextSwitch,
            _ => return,
        };
        // Where a dispatcher on another processor brings a job here, what that costs is part of the
        // latency of its interrupt.
        if from_afar {
            return;
        }
        let (begun, disturbed) = match &mut self.episode {
            Some(episode) => (
                std::mem::replace(&mut episode.from, time),
                episode.disturbed.take(),
            ),
            None => (since, None),
        };
        let own = time.saturating_sub(since);
        let whole = time.saturating_sub(begun);
        if kind == OverheadKind::Release && self.release_on(begun, own, whole, disturbed) {
            return;
        }
        self.tiles.push(Tile {
            cost: Cost::Overhead(kind),
            begun,
            own: Some(own),
            whole,
            disturbed,
        });
    }

    /// Adds to the release before, where there is one right before: what one interrupt releases is
    /// one sample (002 §2.4). A job that is released alone pays for the whole way to the
    /// dispatcher, and must not look like an exception among many that are released together.
    fn release_on(
        &mut self,
        begun: u64,
        own: u64,
        whole: u64,
        disturbed: Option<Disturbance>,
    ) -> bool {
        match self.tiles.last_mut() {
            Some(last) if last.cost == RELEASE && last.begun + last.whole == begun => {
                last.own = last.own.map(|before| before + own);
                last.whole += whole;
                last.disturbed = last.disturbed.or(disturbed);
                true
            }
            _ => false,
        }
    }

    fn arm(&mut self, time: u64) {
        let Some(episode) = &mut self.episode else {
            return;
        };
        episode.armed = true;
        if let Some(asked) = episode.asked.take() {
            // In front of the episode's own tiles, the last of which grows at its end.
            let tile = Tile {
                cost: Cost::Overhead(OverheadKind::TimerRearming),
                begun: asked,
                own: None,
                whole: time.saturating_sub(asked),
                disturbed: episode.disturbed,
            };
            self.tiles.insert(episode.first, tile);
            episode.first += 1;
        }
    }

    fn leave(&mut self, time: u64, to: i32) {
        self.be_there();
        let Some(episode) = self.episode.take() else {
            self.senseless += u64::from(self.has_begun);
            self.has_begun = true;
            return;
        };
        // It does not sleep within work of its own: what is open is another dispatcher's.
        for bracket in &mut self.own {
            bracket.from_afar = true;
        }
        self.woken_from_afar = episode.missed;
        let rest = time.saturating_sub(episode.from);
        if self.tiles.len() > episode.first {
            self.lengthen(rest, episode.disturbed);
            let is_switch = self.tiles.last().map(|tile| tile.cost)
                == Some(Cost::Overhead(OverheadKind::ContextSwitch));
            self.beginning = (is_switch && to != 0).then_some((to, time));
            return;
        }
        let cost = match episode.from_afar && episode.armed {
            true => Cost::Overhead(OverheadKind::TimerTransfer),
            false => Cost::Look,
        };
        self.tiles.push(Tile {
            cost,
            begun: episode.from,
            own: None,
            whole: rest,
            disturbed: episode.disturbed,
        });
    }

    fn begin(&mut self, time: u64, thread: i32) {
        if let Some((to, left)) = self.beginning.take()
            && to == thread
        {
            self.lengthen(time.saturating_sub(left), None);
        }
    }

    /// The latest tile goes on for so long.
    fn lengthen(&mut self, by: u64, disturbed: Option<Disturbance>) {
        if let Some(tile) = self.tiles.last_mut() {
            tile.whole += by;
            tile.disturbed = tile.disturbed.or(disturbed);
        }
    }
}

const RELEASE: Cost = Cost::Overhead(OverheadKind::Release);

#[cfg(test)]
mod tests;
mod watch;
