//! What engine and kernel took from a processor, cut into overheads without a gap.
//!
//! 002 §2.4 has seven overheads within one kernel. Here a dispatcher, which is a thread, does their
//! work, and the kernel brings it to its processor and takes it away again. From the moment at
//! which the processor turns to its dispatcher until its next job goes on, each nanosecond belongs
//! to the overhead that ends next: the timer's interrupt and the way to the dispatcher are part of
//! the first release, what lies between the last release and the end of the decision is part of
//! scheduling, and the way from the dispatcher to the job is part of the context switch. So the
//! samples of one episode add up to what the jobs there lose to it, whatever the engine brackets
//! itself: charging them is safe.
//!
//! The tick is the timer's interrupt where it does the kernel's work and nothing for a dispatcher.

use model::{Overhead, OverheadKind};
use serde::{Deserialize, Serialize};

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
    /// Its dispatcher asks the kernel to let it sleep.
    Sleeps,
    /// The kernel sets a timer for its dispatcher.
    Arms,
    /// This thread is back from the kernel, and begins a job.
    Begins(i32),
    /// The engine begins an overhead, by its own account.
    Own(Overhead),
    /// The engine ends the overhead that it began last.
    OwnEnd,
    /// The machine has stood still for so long, in nanoseconds.
    StoodStill(u64),
}

/// Which cost a sample is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Setting the dispatcher's timer (002, Fig. B.2): part of the overhead that an episode ends
    /// with, and not charged a second time.
    TimerRearming,
    /// A dispatcher looked whether there was something to do, and there was nothing.
    Look,
    /// An overhead that tasks are charged.
    #[serde(untagged)]
    Charged(OverheadKind),
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
    /// The machine stood still.
    Standstill,
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
    /// Has its timer been set in it?
    armed: bool,
    /// Since when its dispatcher asks to sleep.
    asked: Option<u64>,
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

/// Cuts the marks of one processor into tiles.
#[derive(Clone, Debug, Default)]
pub struct Tiler {
    tiles: Vec<Tile>,
    /// The kernel says nothing here.
    own_only: bool,
    interrupt: Option<Interrupt>,
    /// From when on the processor turns to its dispatcher, which is not there yet.
    turns: Option<u64>,
    woken_from_afar: bool,
    episode: Option<Episode>,
    /// The engine's own brackets that are open, and since when; the time of others within them.
    own: Vec<(Overhead, u64)>,
    /// The thread that its dispatcher left the processor to, and when, where it begins a job.
    beginning: Option<(i32, u64)>,
    /// Marks that no such run can have.
    senseless: u64,
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
                if let Some(episode) = &mut self.episode {
                    episode.disturbed.get_or_insert(Disturbance::Interrupt);
                }
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
            }
            Mark::TimerExit => self.leave_interrupt(time),
            Mark::Wakes => self.turn(time),
            Mark::WokenFromAfar => self.woken_from_afar = true,
            Mark::Comes => self.come(time),
            Mark::Leaves(to) => self.leave(time, to),
            Mark::Sleeps => self.with_episode(|episode| episode.asked = Some(time)),
            Mark::Arms => self.arm(time),
            Mark::Begins(thread) => self.begin(time, thread),
            Mark::Own(overhead) => self.own.push((overhead, time)),
            Mark::OwnEnd => self.end_own(time),
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

    fn with_episode(&mut self, change: impl FnOnce(&mut Episode)) {
        match &mut self.episode {
            Some(episode) => change(episode),
            None => self.senseless += 1,
        }
    }

    fn leave_interrupt(&mut self, time: u64) {
        let Some(interrupt) = self.interrupt.take() else {
            self.senseless += 1;
            return;
        };
        if interrupt.is_tick && !interrupt.wakes && self.episode.is_none() && self.turns.is_none() {
            self.tiles.push(Tile {
                cost: Cost::Charged(OverheadKind::Tick),
                begun: interrupt.since,
                own: None,
                whole: time.saturating_sub(interrupt.since),
                disturbed: None,
            });
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
        if self.episode.is_some() {
            self.senseless += 1;
        }
        let turned = self.turns.take();
        self.episode = Some(Episode {
            from: turned.unwrap_or(time),
            first: self.tiles.len(),
            from_afar: std::mem::take(&mut self.woken_from_afar) && turned.is_none(),
            armed: false,
            asked: None,
            disturbed: None,
        });
        self.own.clear();
    }

    fn end_own(&mut self, time: u64) {
        let Some((overhead, since)) = self.own.pop() else {
            self.senseless += 1;
            return;
        };
        let kind = match overhead {
            Overhead::Release => OverheadKind::Release,
            Overhead::Scheduling => OverheadKind::Scheduling,
            Overhead::ContextSwitch => OverheadKind::ContextSwitch,
            _ => return,
        };
        // Without an episode a dispatcher on another processor brings a job here: what that costs
        // is part of the latency of its interrupt.
        let (begun, disturbed) = match &mut self.episode {
            Some(episode) => (
                std::mem::replace(&mut episode.from, time),
                episode.disturbed.take(),
            ),
            None if self.own_only => (since, None),
            None => return,
        };
        self.tiles.push(Tile {
            cost: Cost::Charged(kind),
            begun,
            own: Some(time.saturating_sub(since)),
            whole: time.saturating_sub(begun),
            disturbed,
        });
    }

    fn arm(&mut self, time: u64) {
        let Some(episode) = &mut self.episode else {
            return;
        };
        episode.armed = true;
        if let Some(asked) = episode.asked.take() {
            // In front of the episode's own tiles, the last of which grows at its end.
            let tile = Tile {
                cost: Cost::TimerRearming,
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
        let Some(episode) = self.episode.take() else {
            self.senseless += 1;
            return;
        };
        self.own.clear();
        let rest = time.saturating_sub(episode.from);
        if self.tiles.len() > episode.first {
            self.lengthen(rest, episode.disturbed);
            let is_switch = self.tiles.last().map(|tile| tile.cost)
                == Some(Cost::Charged(OverheadKind::ContextSwitch));
            self.beginning = (is_switch && to != 0).then_some((to, time));
            return;
        }
        let cost = match episode.from_afar && episode.armed {
            true => Cost::Charged(OverheadKind::TimerTransfer),
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

    /// The machine stood still since then.
    fn stand_still(&mut self, since: u64) {
        // Tiles end in the order in which they stand, but for timers that were set within one.
        for tile in self.tiles.iter_mut().rev().take(RECENT) {
            if tile.begun + tile.whole > since {
                tile.disturbed = Some(Disturbance::Standstill);
            }
        }
        if let Some(episode) = &mut self.episode {
            episode.disturbed = Some(Disturbance::Standstill);
        }
    }
}

/// So many of the latest tiles may have been taken while the machine stood still: a standstill is
/// noted when it is over.
const RECENT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use Mark::*;
    use Overhead::{ContextSwitch, Release, Scheduling};

    const WORKER: i32 = 70;

    fn cut(marks: &[(u64, Mark)]) -> Vec<Tile> {
        let mut tiler = Tiler::default();
        for (time, mark) in marks {
            tiler.add(*time, *mark);
        }
        assert_eq!(tiler.senseless(), 0);
        tiler.tiles().to_vec()
    }
    fn tile(kind: OverheadKind, begun: u64, own: Option<u64>, whole: u64) -> Tile {
        Tile {
            cost: Cost::Charged(kind),
            begun,
            own,
            whole,
            disturbed: None,
        }
    }

    /// Two jobs are released, and one of them begins.
    const RELEASES: [(u64, Mark); 18] = [
        (100, TimerEntry),
        (110, Wakes),
        (130, TimerExit),
        (150, Comes),
        (180, Own(Release)),
        (200, OwnEnd),
        (200, Own(Release)),
        (215, OwnEnd),
        (225, Own(Scheduling)),
        (260, OwnEnd),
        (262, Own(ContextSwitch)),
        (280, OwnEnd),
        (285, Sleeps),
        (290, Arms),
        (300, Leaves(WORKER)),
        (330, Begins(WORKER)),
        (400, TimerEntry),
        (420, TimerExit),
    ];

    #[test]
    fn the_tiles_of_an_episode_leave_no_gap() {
        let rearming = Tile {
            cost: Cost::TimerRearming,
            begun: 285,
            own: None,
            whole: 5,
            disturbed: None,
        };
        let mut tiles = cut(&RELEASES);
        assert_eq!(
            tiles,
            [
                rearming,
                tile(OverheadKind::Release, 100, Some(20), 100),
                tile(OverheadKind::Release, 200, Some(15), 15),
                tile(OverheadKind::Scheduling, 215, Some(35), 45),
                tile(OverheadKind::ContextSwitch, 260, Some(18), 70),
            ]
        );
        tiles.remove(0);
        for pair in tiles.windows(2) {
            assert_eq!(pair[0].begun + pair[0].whole, pair[1].begun);
        }
        // From the interrupt to the first instruction of the job.
        assert_eq!(tiles.iter().map(|t| t.whole).sum::<u64>(), 330 - 100);
    }

    #[test]
    fn a_job_that_goes_on_ends_the_scheduling() {
        let tiles = cut(&[
            (100, Wakes),
            (120, Comes),
            (130, Own(Scheduling)),
            (140, OwnEnd),
            (155, Leaves(WORKER)),
            // It was not told to begin anything: it asks for something else.
            (170, Begins(WORKER)),
        ]);
        assert_eq!(tiles, [tile(OverheadKind::Scheduling, 100, Some(10), 55)]);
    }

    #[test]
    fn a_tick_is_the_timers_interrupt_without_a_dispatcher() {
        let tiles = cut(&[
            (100, TimerEntry),
            (101, Tick),
            (107, TimerExit),
            // Of something that is neither.
            (200, TimerEntry),
            (209, TimerExit),
            // A tick and a release together belong to the release.
            (300, TimerEntry),
            (301, Tick),
            (302, Wakes),
            (310, TimerExit),
            (320, Comes),
            (330, Own(Release)),
            (340, OwnEnd),
            (345, Leaves(0)),
        ]);
        let release = tile(OverheadKind::Release, 300, Some(10), 45);
        assert_eq!(tiles, [tile(OverheadKind::Tick, 100, None, 7), release]);
    }

    #[test]
    fn who_finds_nothing_to_do_has_looked_or_set_a_timer_for_another_processor() {
        let looked = cut(&[(5, Wakes), (9, Comes), (12, Sleeps), (15, Leaves(WORKER))]);
        assert_eq!((looked[0].cost, looked[0].whole), (Cost::Look, 10));
        let set = cut(&[
            (5, WokenFromAfar),
            (9, Comes),
            (12, Sleeps),
            (14, Arms),
            (15, Leaves(WORKER)),
        ]);
        assert_eq!(set[0].cost, Cost::TimerRearming);
        assert_eq!(set[1], tile(OverheadKind::TimerTransfer, 9, None, 6));
    }

    #[test]
    fn what_is_brought_from_afar_is_no_switch_of_this_processor() {
        assert_eq!(cut(&[(5, Own(ContextSwitch)), (9, OwnEnd)]), []);
    }

    #[test]
    fn without_the_kernel_the_engines_own_brackets_are_left() {
        let mut tiler = Tiler::own_only();
        for (time, mark) in RELEASES {
            if matches!(mark, Own(_) | OwnEnd) {
                tiler.add(time, mark);
            }
        }
        let own = |tile: &Tile| tile.own == Some(tile.whole);
        assert!(tiler.tiles().iter().all(own));
        let whole: Vec<_> = tiler.tiles().iter().map(|tile| tile.whole).collect();
        assert_eq!(whole, [20, 15, 35, 18]);
    }

    #[test]
    fn an_interrupt_within_disturbs_that_overhead_alone() {
        let mut marks = RELEASES.to_vec();
        marks.splice(8..8, [(220, TimerEntry), (222, Tick), (223, TimerExit)]);
        let disturbed: Vec<_> = cut(&marks).iter().map(|t| t.disturbed).collect();
        let interrupt = Some(Disturbance::Interrupt);
        assert_eq!(disturbed, [None, None, None, interrupt, None]);
    }

    #[test]
    fn a_standstill_disturbs_all_that_it_overlaps() {
        let mut tiler = Tiler::default();
        for (time, mark) in RELEASES {
            tiler.add(time, mark);
        }
        // From 240 to 300.
        tiler.add(450, StoodStill(210));
        let disturbed = tiler.tiles().iter().map(|t| t.disturbed.is_some());
        assert_eq!(
            disturbed.collect::<Vec<_>>(),
            [true, false, false, true, true]
        );
    }

    #[test]
    fn lost_marks_are_noticed() {
        for marks in [
            &[(1, Leaves(0))][..],
            &[(1, TimerExit)],
            &[(1, OwnEnd)],
            &[(1, Comes), (2, Comes)],
            &[(1, Sleeps)],
        ] {
            let mut tiler = Tiler::default();
            for (time, mark) in marks {
                tiler.add(*time, *mark);
            }
            assert_eq!(tiler.senseless(), 1, "{marks:?}");
        }
    }
}
