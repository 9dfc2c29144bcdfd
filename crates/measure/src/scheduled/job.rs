//! The job of Fig. 1 of 000 within a schedule: it walks through its working set cold and warm, keeps
//! it warm until it is preempted, and walks through it again when it goes on.
//!
//! The walks are those of the synthetic method ([`crate::run`]), the flush before and the walk that
//! settles included. The job never executes for longer than it is allowed: who is not preempted in
//! time ends. Assumes a page that the engine writes before the job goes on.

use crate::disturb::{Evidence, Pass};
use crate::memory::Area;
use crate::ratio::WriteRatio;
use crate::run::Taken;
use crate::scheduled::rule::{self, Account, Back, News, Why};
use crate::walk::{Trace, Walk, WorkingSet, walk_of};
use machine::clock::{Calibration, Clock, Stamp, thread_time};
use machine::interrupts::Witness;
use machine::realtime;
use model::{Bytes, Duration, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Words that are touched between two looks at how long the job has executed.
const TOUCHES: usize = 256;

/// What jobs gave, in the order in which they ended: a sample, or why there is none.
pub type Given = Arc<Mutex<Vec<Result<Taken, Why>>>>;

/// Does the jobs of one task.
pub struct Jobs<C, P> {
    set: WorkingSet,
    walk: Walk<C>,
    clock: C,
    calibration: Calibration,
    witness: Witness,
    page: P,
    /// So long a job executes at most.
    limit: Duration,
    /// The least that a job took until its working set was warm, and would take after that.
    needs: Duration,
    cold: Trace,
    warm: Trace,
    post: Trace,
    given: Given,
}

/// What a job measures with.
#[derive(Clone, Copy, Debug)]
pub struct Tools<C> {
    /// The clock.
    pub clock: C,
    /// What its ticks are.
    pub calibration: Calibration,
    /// Sees interrupts, or does not.
    pub witness: Witness,
}

/// What of a job is known when it has waited.
struct Left {
    stamp: Stamp,
    news: News,
    stamp_back: Stamp,
}

impl<C: Clock, P: Fn() -> News> Jobs<C, P> {
    /// Jobs of a task with this working set, new memory.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(
        tools: &Tools<C>,
        wss: Bytes,
        ratio: WriteRatio,
        limit: Duration,
        page: P,
        given: Given,
    ) -> Result<Self> {
        Ok(Jobs {
            set: WorkingSet::of(Area::map(wss)?),
            walk: walk_of::<C>(ratio),
            clock: tools.clock,
            calibration: tools.calibration,
            witness: tools.witness,
            page,
            limit,
            needs: Duration::ZERO,
            cold: Trace::new(),
            warm: Trace::new(),
            post: Trace::new(),
            given,
        })
    }

    /// Does one job; comes back soon after `stop` was set.
    pub fn job(&mut self, stop: &AtomicBool) {
        let end = thread_time().saturating_add(self.limit);
        let given = self.one(end, stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut all = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(given);
    }

    fn one(&mut self, end: Duration, stop: &AtomicBool) -> Result<Taken, Why> {
        let before = thread_time();
        let began = (self.page)();
        if self.needs > self.limit {
            // It works as long as others do.
            self.keep_warm(end, (self.clock.glance(), began), stop);
            return Err(Why::TooShort);
        }
        self.set.area().flush();
        self.walk(Phase::Cold);
        if thread_time() >= end {
            self.needs = self.limit.saturating_add(Duration::from_nanos(1));
            return Err(Why::TooShort);
        }
        // Settles: what it notes is overwritten by the warm walk.
        self.walk(Phase::Warm);
        let first = realtime::switches().involuntary;
        self.walk(Phase::Warm);
        let in_warm = realtime::switches().involuntary - first;
        let stamp = self.clock.glance();
        let warm = (self.page)();
        // The last walk takes as long as the first one where nothing has stayed.
        let rest = self.length(&self.cold);
        let now = thread_time();
        self.needs = now
            .saturating_sub(before)
            .saturating_add(rest)
            .min(match self.needs {
                Duration::ZERO => Duration::MAX,
                needs => needs,
            });
        let until = end.saturating_sub(rest);
        let mut account = Account {
            began,
            warm: (now < until).then_some(warm),
            back: None,
        };
        // What cannot be a sample any more is not waited for.
        if account.warm.is_none() || warm.times() != began.times() {
            return rule::decide(&account).and(Err(Why::Early));
        }
        let Some(left) = self.keep_warm(until, (stamp, warm), stop) else {
            return Err(Why::NotPreempted);
        };
        let second = realtime::switches().involuntary;
        self.walk(Phase::Post);
        let in_post = realtime::switches().involuntary - second;
        let away = self.between(left.stamp, left.stamp_back);
        account.back = Some(Back {
            news: left.news,
            end: (self.page)(),
            left: self.warm.end,
            on: self.post.start,
            away: away.nanos(),
        });
        let back = rule::decide(&account)?;
        Ok(self.taken(&back, away, in_warm + in_post > 0))
    }

    fn walk(&mut self, phase: Phase) {
        let trace = match phase {
            Phase::Cold => &mut self.cold,
            Phase::Warm => &mut self.warm,
            Phase::Post => &mut self.post,
        };
        (self.walk)(&mut self.set, self.clock, self.witness, trace);
    }

    /// Touches word after word until the page has news, or the thread has executed until `until`.
    /// `known`: what the page said last, and a stamp from before it was read.
    ///
    /// The job was still there at the stamp before the last look without news. A stamp from between
    /// that look and the one with news may be from after the preemption: reading the clock takes
    /// most of the loop.
    fn keep_warm(&self, until: Duration, known: (Stamp, News), stop: &AtomicBool) -> Option<Left> {
        let (mut there, known) = known;
        let mut line = 0;
        while thread_time() < until && !stop.load(Ordering::Relaxed) {
            for _ in 0..TOUCHES {
                let stamp = self.clock.glance();
                self.set.touch_line(line);
                line += 1;
                let news = (self.page)();
                if news.times() != known.times() {
                    return Some(Left {
                        stamp: there,
                        news,
                        stamp_back: self.clock.stamp(),
                    });
                }
                there = stamp;
            }
        }
        None
    }

    fn between(&self, a: Stamp, b: Stamp) -> Duration {
        self.calibration.between(a, b).unwrap_or(Duration::ZERO)
    }

    fn length(&self, trace: &Trace) -> Duration {
        self.between(trace.stamps[0], trace.stamps[self.set.blocks()])
    }

    fn taken(&self, back: &Back, away: Duration, switched: bool) -> Taken {
        let pass = |t: &Trace| Pass {
            blocks: (0..self.set.blocks())
                .map(|b| self.between(t.stamps[b], t.stamps[b + 1]).nanos())
                .collect(),
            interrupted: t.interrupted,
        };
        let stays = |t: &Trace| t.start == t.end;
        Taken {
            from: back.left,
            to: back.on,
            asked: Duration::from_nanos(back.news.length),
            preempted: away,
            cold: self.length(&self.cold),
            warm: self.length(&self.warm),
            post: self.length(&self.post),
            evidence: Evidence {
                cold: pass(&self.cold),
                warm: pass(&self.warm),
                post: pass(&self.post),
                late: away.nanos().saturating_sub(back.news.length),
                on_processor: stays(&self.warm) && stays(&self.post),
                switched,
            },
        }
    }
}

#[derive(Clone, Copy)]
enum Phase {
    Cold,
    Warm,
    Post,
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::clock::{Monotonic, current_cpu};
    use std::sync::atomic::AtomicU64;

    /// A page that has news at its third reading, as the engine would have it.
    fn jobs(limit: Duration, after: u64) -> (Jobs<Monotonic, impl Fn() -> News>, Given) {
        let tools = Tools {
            clock: Monotonic,
            calibration: Calibration::of(Monotonic, Duration::from_millis(2)).unwrap(),
            witness: Witness::blind(),
        };
        let (looks, given) = (AtomicU64::new(0), Given::default());
        let page = move || News {
            preemptions: u64::from(looks.fetch_add(1, Ordering::Relaxed) >= after),
            processor: current_cpu(),
            ..News::default()
        };
        let ratio = WriteRatio::DEFAULT;
        let wss = Bytes::from_kib(16);
        let jobs = Jobs::new(&tools, wss, ratio, limit, page, Arc::clone(&given));
        (jobs.unwrap(), given)
    }

    fn only(given: &Given) -> Result<Taken, Why> {
        let mut all = given.lock().unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    #[test]
    fn a_job_that_is_told_of_a_preemption_while_it_waits_gives_its_walks() {
        let cpu = current_cpu();
        realtime::pin_to(cpu).unwrap();
        // Read before the first walk and behind the warm one; from then on there is news.
        let (mut jobs, given) = jobs(Duration::from_secs(1), 500);
        jobs.job(&AtomicBool::new(false));
        let taken = only(&given).unwrap();
        assert_eq!((taken.from, taken.to), (cpu, cpu));
        assert_eq!(taken.evidence.post.total(), taken.post.nanos());
        assert!(!taken.warm.is_zero() && !taken.cold.is_zero());
    }

    /// Reading the clock takes most of the loop, so that most preemptions fall between a look and
    /// the next reading of the clock.
    #[test]
    fn a_job_that_is_away_between_two_looks_confirms_how_long() {
        let cpu = current_cpu();
        realtime::pin_to(cpu).unwrap();
        let tools = Tools {
            clock: Monotonic,
            calibration: Calibration::of(Monotonic, Duration::from_millis(2)).unwrap(),
            witness: Witness::blind(),
        };
        let (looks, away) = (AtomicU64::new(0), AtomicU64::new(0));
        let page = move || {
            let look = looks.fetch_add(1, Ordering::Relaxed);
            let length = away.load(Ordering::Relaxed);
            if look == 500 {
                let left = std::time::Instant::now();
                std::thread::sleep(std::time::Duration::from_millis(20));
                away.store(left.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            News {
                preemptions: u64::from(look > 500),
                length,
                processor: cpu,
                ..News::default()
            }
        };
        let (wss, limit) = (Bytes::from_kib(16), Duration::from_secs(1));
        let given = Given::default();
        let ratio = WriteRatio::DEFAULT;
        let mut jobs = Jobs::new(&tools, wss, ratio, limit, page, Arc::clone(&given)).unwrap();
        jobs.job(&AtomicBool::new(false));
        let taken = only(&given).unwrap();
        assert!(taken.preempted >= taken.asked, "{taken:?}");
    }

    #[test]
    fn a_job_that_is_told_too_early_or_never_gives_none() {
        let (mut early, given) = jobs(Duration::from_secs(1), 1);
        early.job(&AtomicBool::new(false));
        assert_eq!(only(&given).unwrap_err(), Why::Early);
        let (mut never, given) = jobs(Duration::from_millis(30), u64::MAX);
        never.job(&AtomicBool::new(false));
        assert_eq!(only(&given).unwrap_err(), Why::NotPreempted);
        let (mut short, given) = jobs(Duration::from_nanos(1), u64::MAX);
        short.job(&AtomicBool::new(false));
        assert_eq!(only(&given).unwrap_err(), Why::TooShort);
    }
}
