//! One block of samples: a thread at high priority that is preempted and migrated as the plan says
//! (000 §3.2).
//!
//! For every sample, Fig. 1: walk cold [t0, t1], walk warm [t1, t2], touch single words until t3,
//! leave the processor for the drawn length, resume on the drawn processor at t4, walk again until
//! t5. The thread triggers all of this itself: it moves to its destination at once and sleeps
//! there, so that whatever else may run has both processors while it is away. Nothing of the
//! working set is touched between t3 and t4.
//!
//! One more walk, which is not timed, comes between the cold and the warm one: a last-level cache
//! that does not include the others keeps a line only when it leaves them for the second time, so
//! that a working set larger than a private cache is not warm after one walk. Without it the "warm"
//! walk of twice the level-2 cache takes 1.7 times what a warm one takes, and delays come out
//! negative.

use crate::disturb::{Evidence, Pass};
use crate::plan::{Block, Draw};
use crate::walk::{Trace, WorkingSet, walk_of};
use machine::clock::{Calibration, Clock, Stamp};
use machine::interrupts::Witness;
use machine::realtime::{self, Watchdog};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Result};

/// The parts of a processor, in percent, that the measuring thread stays below: the kernel stops
/// real-time threads above 95 for 50 ms of every second.
const BUSY_PERCENT: u64 = 90;
/// Single words touched between t2 and t3.
const TOUCHES: usize = 64;

/// What measuring needs of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Rig<C> {
    /// The clock.
    pub clock: C,
    /// What its ticks are.
    pub calibration: Calibration,
    /// Sees interrupts, or does not.
    pub witness: Witness,
    /// May the thread have a real-time priority?
    pub realtime: bool,
    /// After how long without a finished sample the thread is taken for a runaway.
    pub patience: Duration,
}

/// A sample with its evidence, before it is judged.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The processor that the thread left.
    pub from: CpuId,
    /// The one that it resumed on.
    pub to: CpuId,
    /// The length that was drawn.
    pub asked: Duration,
    /// t4 − t3.
    pub preempted: Duration,
    /// t1 − t0.
    pub cold: Duration,
    /// t2 − t1.
    pub warm: Duration,
    /// t5 − t4.
    pub post: Duration,
    /// What it is judged by.
    pub evidence: Evidence,
}

/// A sample as the thread leaves it.
struct Raw {
    draw: Draw,
    from: CpuId,
    left: Stamp,
    left_on: CpuId,
    cold: Trace,
    warm: Trace,
    post: Trace,
    switched: bool,
}

impl<C: Clock> Rig<C> {
    /// Takes the samples of a block: those of the plan but the first, which only warms up; `None`
    /// if the user wants to stop.
    ///
    /// # Errors
    /// A processor has gone, or the watchdog took the thread for a runaway.
    pub fn take(
        &self,
        block: &Block,
        set: &mut WorkingSet,
        start: CpuId,
        draws: &[Draw],
        watch: &dyn Watch,
    ) -> Result<Option<Vec<Taken>>> {
        let blocks = set.blocks();
        let raws = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("measure".to_owned())
                .spawn_scoped(scope, || self.thread(block, set, start, draws, watch))
                .map_err(|e| Error::new(format!("cannot start the measuring thread: {e}")))?
                .join()
                .unwrap_or_else(|_| Err(Error::new("the measuring thread ended early")))
        })?;
        Ok(raws.map(|raws| {
            raws.iter()
                .skip(1)
                .map(|raw| self.taken(raw, blocks))
                .collect()
        }))
    }

    fn thread(
        &self,
        block: &Block,
        set: &mut WorkingSet,
        start: CpuId,
        draws: &[Draw],
        watch: &dyn Watch,
    ) -> Result<Option<Vec<Raw>>> {
        realtime::pin(&[start].into_iter().collect())?;
        let walk = walk_of::<C>(block.write_ratio);
        let (clock, witness) = (self.clock, self.witness);
        let mut raws = Vec::with_capacity(draws.len());
        // Kept hot: what a walk notes must not miss more than the walk itself.
        let (mut cold, mut warm, mut post) = (Trace::new(), Trace::new(), Trace::new());
        // The watchdog first: what a raised thread starts begins without priority, and would come
        // late.
        let watchdog = if self.realtime {
            Some(Watchdog::over_this_thread(self.patience)?)
        } else {
            None
        };
        let _raised = if self.realtime {
            Some(realtime::raise(realtime::HIGHEST)?)
        } else {
            None
        };
        let (began, mut slept, mut from) = (clock.stamp(), 0, start);
        for draw in draws {
            if watch.stopped() {
                return Ok(None);
            }
            if let Some(watchdog) = &watchdog {
                if watchdog.tripped() {
                    return Err(runaway(block, self.patience));
                }
                watchdog.beat();
            }
            slept += self.rest(clock.stamp().saturating_sub(began), slept);
            set.area().flush();
            let switches = realtime::switches().involuntary;
            walk(set, clock, witness, &mut cold);
            // Settles: what it notes is overwritten by the warm walk.
            walk(set, clock, witness, &mut warm);
            walk(set, clock, witness, &mut warm);
            set.touch(TOUCHES);
            let (left, left_on) = clock.stamp_on();
            let in_walks = realtime::switches().involuntary - switches;
            if draw.to != from {
                realtime::pin_to(draw.to).map_err(|e| gone(draw.to, &e))?;
            }
            let switches = realtime::switches().involuntary;
            realtime::sleep(draw.length);
            walk(set, clock, witness, &mut post);
            let switched = in_walks + realtime::switches().involuntary - switches > 0;
            slept += post.stamps[0].saturating_sub(left);
            raws.push(Raw {
                draw: *draw,
                from,
                left,
                left_on,
                cold: cold.clone(),
                warm: warm.clone(),
                post: post.clone(),
                switched,
            });
            from = draw.to;
        }
        Ok(Some(raws))
    }

    /// Sleeps if the thread was busy for more than its part of the time; says for how many ticks.
    fn rest(&self, elapsed: u64, slept: u64) -> u64 {
        let busy = elapsed.saturating_sub(slept);
        let owed = (busy / BUSY_PERCENT * 100).saturating_sub(elapsed);
        let owed = self.calibration.duration(owed);
        // Small debts are paid by the next preemption.
        if owed < Duration::from_millis(20) {
            return 0;
        }
        let before = self.clock.stamp();
        realtime::sleep(owed);
        self.clock.stamp().saturating_sub(before)
    }

    fn taken(&self, raw: &Raw, blocks: usize) -> Taken {
        let between = |a: Stamp, b: Stamp| self.calibration.between(a, b).unwrap_or(Duration::ZERO);
        let total = |t: &Trace| between(t.stamps[0], t.stamps[blocks]);
        let pass = |t: &Trace| Pass {
            blocks: (0..blocks)
                .map(|b| between(t.stamps[b], t.stamps[b + 1]).nanos())
                .collect(),
            interrupted: t.interrupted,
        };
        // Across two processors for a migration: their counters are some hundred nanoseconds apart
        // at worst, which a preemption length does not notice. Every other interval is of one
        // processor.
        let preempted = between(raw.left, raw.post.stamps[0]);
        let on = |cpu: CpuId, t: &Trace| t.start == cpu && t.end == cpu;
        Taken {
            from: raw.from,
            to: raw.draw.to,
            asked: raw.draw.length,
            preempted,
            cold: total(&raw.cold),
            warm: total(&raw.warm),
            post: total(&raw.post),
            evidence: Evidence {
                cold: pass(&raw.cold),
                warm: pass(&raw.warm),
                post: pass(&raw.post),
                late: preempted.saturating_sub(raw.draw.length).nanos(),
                on_processor: on(raw.from, &raw.warm)
                    && raw.left_on == raw.from
                    && on(raw.draw.to, &raw.post),
                switched: raw.switched,
            },
        }
    }
}

fn runaway(block: &Block, patience: Duration) -> Error {
    Error::new(format!(
        "no sample of {} was finished within {patience}: the watchdog took the measuring thread's priority",
        block.wss
    ))
    .remedy("measure smaller working sets, or on a machine that is less loaded")
}

fn gone(cpu: CpuId, e: &std::io::Error) -> Error {
    Error::new(format!("processor {cpu} cannot be had any more: {e}"))
        .remedy("choose others with `--cpus`, or bring it online again and go on with `--resume`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destinations::Destinations;
    use crate::memory::Area;
    use crate::plan::{Options, Plan};
    use machine::clock::Monotonic;
    use model::watch::Silent;
    use model::{Bytes, Load, Platform};
    use testing::watching::StopAfterLooks;

    fn rig() -> Rig<Monotonic> {
        Rig {
            clock: Monotonic,
            calibration: Calibration::of(Monotonic, Duration::from_millis(2)).unwrap(),
            witness: Witness::blind(),
            realtime: realtime::raise(realtime::WATCHDOG).is_ok(),
            patience: Duration::from_secs(20),
        }
    }

    /// A plan over the processors that this test may use.
    fn plan() -> (Plan, Platform) {
        let cpus = realtime::affinity().unwrap();
        let mut platform = Platform::symmetric(cpus.iter().last().unwrap().0 + 1);
        for p in &mut platform.processors {
            p.usable = cpus.contains(p.id);
        }
        let options = Options {
            wss: vec![Bytes::from_kib(16)],
            samples: Some(8),
            max_preemption: Some(Duration::from_millis(1)),
            loads: vec![Load::Idle],
            ..Options::default()
        };
        (Plan::of(&options, &platform).unwrap(), platform)
    }

    #[test]
    fn a_block_follows_its_draws() {
        let (plan, platform) = plan();
        let destinations = Destinations::among(&platform, &plan.cpus);
        let block = plan.blocks()[0];
        let (start, draws) = plan.draws(&block, &destinations);
        let mut set = WorkingSet::of(Area::map(block.wss).unwrap());
        let taken = rig()
            .take(&block, &mut set, start, &draws, &Silent)
            .unwrap()
            .unwrap();
        assert_eq!(taken.len(), draws.len() - 1, "the first one warms up");
        let mut from = draws[0].to;
        for (sample, draw) in taken.iter().zip(&draws[1..]) {
            assert_eq!(
                (sample.from, sample.to, sample.asked),
                (from, draw.to, draw.length)
            );
            assert!(
                sample.preempted >= draw.length,
                "it sleeps at least as long as asked"
            );
            assert!(!sample.warm.is_zero() && !sample.post.is_zero());
            assert_eq!(sample.evidence.warm.total(), sample.warm.nanos());
            assert!(sample.evidence.on_processor, "pinned threads stay");
            from = draw.to;
        }
    }

    #[test]
    fn who_wants_to_stop_is_heard_at_the_next_sample() {
        let (plan, platform) = plan();
        let destinations = Destinations::among(&platform, &plan.cpus);
        let block = plan.blocks()[0];
        let (start, draws) = plan.draws(&block, &destinations);
        let mut set = WorkingSet::of(Area::map(block.wss).unwrap());
        assert!(
            rig()
                .take(&block, &mut set, start, &draws, &StopAfterLooks::new(0))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_thread_that_is_always_busy_rests() {
        let rig = rig();
        // Nanoseconds are the ticks of this clock. Half a second busy without any sleep: a ninth of
        // it is owed.
        assert!(rig.rest(500_000_000, 0) >= 50_000_000);
        assert_eq!(rig.rest(500_000_000, 100_000_000), 0);
        assert_eq!(rig.rest(1_000_000, 0), 0, "small debts wait");
    }
}
