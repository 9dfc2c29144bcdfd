//! Does the machine schedule ordinary programs as it did before?
//!
//! [`Look::first`] notes how long a piece of work takes on each processor, and how two threads
//! share one; [`Look::again`] asks the same later, and whether anything of sched_ext is left.
//! [`waits`] notes for how long an ordinary thread was kept from its processor while a run went on.

use crate::init;
use machine::realtime;
use model::{CpuId, CpuSet, Error, Result};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long two threads share a processor.
const SHARED: Duration = Duration::from_millis(80);
/// Steps of the work of a processor.
const STEPS: u64 = 1_000_000;
/// The least that one of two ordinary threads has to get of a processor, in percent.
const LEAST_PERCENT: u64 = 25;
/// How long it is waited until the kernel has taken a scheduler off.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread that is on its way to its end may take for that.
const TO_DIE: Duration = Duration::from_secs(1);
/// `SCHED_EXT`.
const EXT: &str = "7";

/// What was seen of a machine.
#[derive(Debug)]
pub struct Look {
    cpus: CpuSet,
    /// By processor, how long the work took.
    took: Vec<(CpuId, Duration)>,
}

impl Look {
    /// Before anything.
    ///
    /// # Errors
    /// Something of sched_ext is there already; processors do not share.
    pub fn first() -> Result<Self> {
        let cpus = online()?;
        let look = Look {
            took: work_on_each(&cpus)?,
            cpus,
        };
        look.again()?;
        Ok(look)
    }

    /// Is everything as it was?
    ///
    /// # Errors
    /// What is not.
    pub fn again(&self) -> Result<()> {
        let failed = |what: String| Err(Error::new(what));
        let late = Instant::now() + PATIENCE;
        loop {
            match fs::read_to_string("/sys/kernel/sched_ext/state") {
                Ok(state) if state.trim() == "disabled" => break,
                state if Instant::now() > late => {
                    return failed(format!("sched_ext is left behind: {state:?}"));
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        // A process whose memory is gone, so that nobody finds it by its name, may have a few steps
        // to its end.
        let late = Instant::now() + TO_DIE;
        loop {
            let threads = threads_of_class(EXT);
            match threads.is_empty() {
                true => break,
                false if Instant::now() > late => {
                    return failed(format!("threads are left in SCHED_EXT: {threads:?}"));
                }
                false => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        let cpus = online()?;
        if cpus != self.cpus {
            return failed(format!("processors {cpus} are online, {} were", self.cpus));
        }
        let mut slower = self.slower(&cpus)?;
        if slower.is_some() {
            // The kernel gives back what a program had that was killed: that is ordinary work, too.
            std::thread::sleep(init::BEFORE);
            slower = self.slower(&cpus)?;
        }
        if let Some(what) = slower {
            return failed(what);
        }
        let (one, two) = shared(cpus.lowest().unwrap_or(CpuId(0)))?;
        if one.min(two) * 100 < (one + two) * LEAST_PERCENT {
            return failed(format!(
                "of one processor an ordinary thread did {one} steps and another one {two}"
            ));
        }
        Ok(())
    }

    /// Where ordinary work takes longer than before, if it does.
    fn slower(&self, cpus: &CpuSet) -> Result<Option<String>> {
        let now = work_on_each(cpus)?;
        let mut both = now.iter().zip(&self.took);
        let slower = both.find(|(now, before)| now.1 > 2 * before.1 + Duration::from_millis(20));
        Ok(slower.map(|((cpu, took), (_, before))| {
            format!("ordinary work takes {took:?} on processor {cpu}, and took {before:?}")
        }))
    }
}

/// First a thread never gives its processor away for so long, as what is starved by it is helped by
/// the kernel once a second.
const ALL_THE_TIME: Duration = Duration::from_millis(1500);
/// Then it works and sleeps in turn.
const WORKS: Duration = Duration::from_millis(20);
const SLEEPS: Duration = Duration::from_millis(5);

/// Threads that want processors, each in a place of its own, until they are told to stop. Each says
/// for how long it was kept from them at most.
pub(crate) struct Waits<P> {
    stop: Arc<AtomicBool>,
    threads: Vec<(P, JoinHandle<Result<Duration>>)>,
}

impl<P: Clone + Send + 'static> Waits<P> {
    /// Lets one begin in each of these places.
    pub(crate) fn begin(
        places: impl IntoIterator<Item = P>,
        wait: fn(&P, &AtomicBool) -> Result<Duration>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |place: P| {
            let (stop, own) = (Arc::clone(&stop), place.clone());
            (place, std::thread::spawn(move || wait(&own, &stop)))
        };
        let threads = places.into_iter().map(start).collect();
        Waits { stop, threads }
    }

    /// Ends them. Returns the longest time of all, and in which place it was.
    ///
    /// # Errors
    /// One of them could not run where it was to; there is none.
    pub(crate) fn longest(mut self) -> Result<(Duration, P)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut longest = None;
        for (place, thread) in self.threads.drain(..) {
            let waited = thread
                .join()
                .unwrap_or_else(|_| Err(Error::new("it panicked")))?;
            if longest.as_ref().is_none_or(|(most, _)| waited > *most) {
                longest = Some((waited, place));
            }
        }
        longest.ok_or_else(|| Error::new("nobody wanted a processor"))
    }
}

impl<P> Drop for Waits<P> {
    /// What comes after it has the processors for itself.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Ordinary threads, one on each processor, each of which notes for how long it was kept from it:
/// from one look at the clock to the next, or from the end of a sleep to the first instruction.
pub(crate) fn waits(look: &Look) -> Waits<CpuId> {
    Waits::begin(look.cpus.iter().collect::<Vec<_>>(), longest_wait)
}

fn longest_wait(cpu: &CpuId, stop: &AtomicBool) -> Result<Duration> {
    pin(*cpu)?;
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    let mut turn = ALL_THE_TIME;
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        while begun.elapsed() < turn && !stop.load(Ordering::Relaxed) {
            (0..1000).fold(1, |value, _| step(value));
            let now = Instant::now();
            longest = longest.max(now - last);
            last = now;
        }
        turn = WORKS;
        last = Instant::now() + SLEEPS;
        std::thread::sleep(SLEEPS);
    }
    Ok(longest)
}

fn online() -> Result<CpuSet> {
    let path = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read it", &e))?;
    text.trim().parse()
}

fn pin(cpu: CpuId) -> Result<()> {
    realtime::pin_to(cpu).map_err(|e| Error::new(format!("cannot run on processor {cpu}: {e}")))
}

/// Takes processor time, a step each: what it returns is of no use, and keeps the work from being
/// left out.
fn step(value: u64) -> u64 {
    std::hint::black_box(
        value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1),
    )
}

/// Threads do the same work at the same time, one on each processor.
fn work_on_each(cpus: &CpuSet) -> Result<Vec<(CpuId, Duration)>> {
    let work = |cpu: CpuId| {
        pin(cpu)?;
        let begun = Instant::now();
        (0..STEPS).fold(1, |value, _| step(value));
        Ok((cpu, begun.elapsed()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (cpus.iter())
            .map(|cpu| scope.spawn(move || work(cpu)))
            .collect();
        (threads.into_iter())
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::new("it panicked")))
            })
            .collect()
    })
}

/// How many steps each of two threads does on one processor.
fn shared(cpu: CpuId) -> Result<(u64, u64)> {
    let (stop, steps) = (
        AtomicBool::new(false),
        [AtomicU64::new(0), AtomicU64::new(0)],
    );
    let work = |steps: &AtomicU64| {
        pin(cpu)?;
        while !stop.load(Ordering::Relaxed) {
            (0..1000).fold(1, |value, _| step(value));
            steps.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads = steps
            .each_ref()
            .map(|steps| scope.spawn(move || work(steps)));
        std::thread::sleep(SHARED);
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|_| Err(Error::new("it panicked")))?;
        }
        Result::Ok(())
    })?;
    Ok((
        steps[0].load(Ordering::Relaxed),
        steps[1].load(Ordering::Relaxed),
    ))
}

/// Threads of this scheduling class: what is field 41 of their `stat`.
fn threads_of_class(class: &str) -> Vec<String> {
    let mut found = Vec::new();
    let below = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for process in below(Path::new("/proc")) {
        for thread in below(&process.join("task")) {
            // One that has ended meanwhile is not there.
            let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
            // The name, in parentheses, is the second field and may hold anything.
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            // One that has ended, and that nobody has waited for yet, is nowhere.
            let is_there = !matches!(rest.split(' ').next(), Some("Z" | "X"));
            if is_there && rest.split(' ').nth(38) == Some(class) {
                found.push(thread.display().to_string());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_class_are_found() {
        // Those of this test are ordinary ones.
        assert!(!threads_of_class("0").is_empty());
        assert!(threads_of_class("99").is_empty());
    }

    #[test]
    fn work_is_done_on_each_processor() {
        let cpus: CpuSet = [CpuId(0)].into_iter().collect();
        match work_on_each(&cpus) {
            Ok(took) => assert_eq!(took.len(), 1),
            // Where this process may not use the first processor.
            Err(e) => assert!(!e.cause().is_empty()),
        }
    }
}
