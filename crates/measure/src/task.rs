//! Execution times of a program, run by run: alone, beside a flood on all other processors, sharing
//! its processor with one, and moved between processors.
//!
//! A run is a job: the time is what the program, and what it started and waited for, took of
//! processors, as the kernel counts it. It does not count while others have the processor; what
//! they did to its caches shows in it.

use crate::pollute::{Polluters, array_size};
use machine::realtime;
use model::{CpuId, CpuSet, Duration, Error, Platform, Result};
use rustix::process::Pid;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration as StdDuration, Instant};

/// What happens beside a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// Nothing that we start.
    Alone,
    /// A flood runs on every other processor.
    Flooded,
    /// A flood shares the processor.
    Preempted,
    /// It is moved from one processor to the next again and again.
    Migrated,
}

impl Beside {
    /// Those that a machine with so many usable processors can have.
    pub fn on(processors: usize) -> &'static [Beside] {
        const ALL: [Beside; 4] = [
            Beside::Alone,
            Beside::Preempted,
            Beside::Flooded,
            Beside::Migrated,
        ];
        if processors > 1 { &ALL } else { &ALL[..2] }
    }
}

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The time that it took of processors.
    pub time: Duration,
    /// How often it lost its processor.
    pub lost: u64,
    /// How often it was moved.
    pub moves: u64,
    /// How it ended.
    pub status: ExitStatus,
}

/// A machine that is ready for runs.
#[derive(Debug)]
pub struct Bench {
    cpu: CpuId,
    cpus: CpuSet,
    here: Polluters,
    others: Option<Polluters>,
    every: Duration,
}

impl Bench {
    /// Runs on the lowest usable processor of the platform, which is this machine; where they are
    /// moved, then every so often.
    ///
    /// # Errors
    /// No processor may be used; no memory or threads for floods.
    pub fn new(platform: &Platform, every: Duration) -> Result<Self> {
        if every.is_zero() {
            return Err(Error::new("moving takes time")
                .at("--every")
                .remedy("give such as 5ms"));
        }
        let cpus = platform.usable();
        let none = || Error::new("no processor may be used");
        let cpu = cpus.lowest().ok_or_else(none)?;
        let size = array_size(platform, &cpus, crate::plan::available_memory());
        let others: CpuSet = cpus.iter().filter(|other| *other != cpu).collect();
        Ok(Bench {
            cpu,
            here: Polluters::start(&[cpu].into_iter().collect(), size)?,
            others: match others.is_empty() {
                true => None,
                false => Some(Polluters::start(&others, size)?),
            },
            cpus,
            every,
        })
    }

    /// The processor of all runs that are not moved.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// What can happen beside runs here.
    pub fn besides(&self) -> &'static [Beside] {
        Beside::on(self.cpus.len())
    }

    /// One run. `start` starts the program, tells its number, and waits for it.
    ///
    /// # Errors
    /// This thread may not run on the processor; those of `start`.
    pub fn run(
        &self,
        beside: Beside,
        start: impl FnOnce(&mut dyn FnMut(u32)) -> Result<ExitStatus>,
    ) -> Result<Run> {
        let before = realtime::affinity()?;
        let is_over = AtomicBool::new(false);
        let (tell, told) = channel();
        let run = std::thread::scope(|scope| {
            // Started before this thread is pinned: it is not to disturb the program.
            let mover = (beside == Beside::Migrated).then(|| {
                let mover = std::thread::Builder::new().name("mover".to_owned());
                mover.spawn_scoped(scope, || self.moves(told, &is_over))
            });
            let mover = mover
                .transpose()
                .map_err(|e| Error::new(format!("cannot start a thread that moves: {e}")))?;
            self.set_floods(beside, true);
            // The program inherits it.
            let pinned = realtime::pin(&[self.cpu].into_iter().collect());
            let (used, lost) = machine::process::of_children();
            let status = pinned.and_then(|()| {
                start(&mut |process| {
                    // It has inherited its processor; whoever serves it from this thread does so
                    // from another one, where there is one. That it cannot be left is no harm.
                    let _ = realtime::pin(&self.elsewhere());
                    // Nobody listens but a mover.
                    let _ = tell.send(process);
                })
            });
            let after = machine::process::of_children();
            is_over.store(true, Ordering::Relaxed);
            drop(tell);
            self.set_floods(beside, false);
            let moves = mover.map_or(0, |mover| mover.join().unwrap_or(0));
            Ok(Run {
                time: after.0.saturating_sub(used),
                lost: after.1.saturating_sub(lost),
                moves,
                status: status?,
            })
        });
        realtime::pin(&before)?;
        run
    }

    /// All processors but that of the runs; that one where it is the only one.
    fn elsewhere(&self) -> CpuSet {
        let others: CpuSet = self.cpus.iter().filter(|cpu| *cpu != self.cpu).collect();
        if others.is_empty() {
            self.cpus.clone()
        } else {
            others
        }
    }

    fn set_floods(&self, beside: Beside, running: bool) {
        match (beside, &self.others) {
            (Beside::Preempted, _) => self.here.set_running(running),
            (Beside::Flooded, Some(others)) => others.set_running(running),
            _ => {}
        }
    }

    /// Moves all threads of a process from processor to processor until the run is over; how often.
    fn moves(&self, told: Receiver<u32>, is_over: &AtomicBool) -> u64 {
        let Ok(process) = told.recv() else { return 0 };
        let places: Vec<CpuId> = self.cpus.iter().collect();
        let every = StdDuration::from_nanos(self.every.nanos());
        let (mut moves, mut next) = (0, Instant::now() + every);
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next += every;
            let place = places[(moves as usize + 1) % places.len()];
            moves += u64::from(move_to(process, place));
        }
        moves
    }
}

/// Lets all threads of a process run on this processor only; `false`: it has ended.
fn move_to(process: u32, cpu: CpuId) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.index());
    let threads = PathBuf::from(format!("/proc/{process}/task"));
    let Ok(threads) = std::fs::read_dir(threads) else {
        return false;
    };
    let numbers = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(Pid::from_raw)
        // One that has ended meanwhile is nowhere.
        .filter(|thread| rustix::thread::sched_setaffinity(Some(*thread), &set).is_ok())
        .count()
        > 0
}

/// With 95 % confidence, how many of all runs, in parts of one, take longer than the longest of so
/// many, if they are alike and do not depend on each other: 1 − 0.05^(1/n).
pub fn beyond(runs: usize) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / runs.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn bench() -> Bench {
        let platform = machine::detect::this_machine().unwrap().platform;
        Bench::new(&platform, Duration::from_millis(2)).unwrap()
    }

    /// Starts a shell that computes for a while.
    fn compute(tell: &mut dyn FnMut(u32)) -> Result<ExitStatus> {
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        tell(child.id());
        Ok(child.wait().unwrap())
    }

    #[test]
    fn runs_are_timed_moved_and_leave_this_thread_where_it_was() {
        let bench = bench();
        let before = realtime::affinity().unwrap();
        for beside in bench.besides() {
            let run = bench.run(*beside, compute).unwrap();
            assert_eq!(run.status.code(), Some(3));
            assert!(run.time > Duration::from_millis(1), "{beside:?}: {run:?}");
            assert_eq!(run.moves > 0, *beside == Beside::Migrated, "{run:?}");
        }
        assert_eq!(realtime::affinity().unwrap(), before);
        let failed = bench.run(Beside::Alone, |_| Err(Error::new("on purpose")));
        assert!(failed.is_err());
        assert_eq!(realtime::affinity().unwrap(), before);
    }

    #[test]
    fn the_longest_of_more_runs_is_exceeded_by_fewer() {
        // 0.05^(1/59) is just below 0.95: the usual 59 samples for 95 % of 95 %.
        assert!(beyond(59) < 0.05 && beyond(58) > 0.05);
        assert!((beyond(1) - 0.95).abs() < 1e-9);
    }
}
