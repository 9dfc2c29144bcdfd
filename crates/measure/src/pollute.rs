//! Cache polluters: a best-effort thread pinned to every processor that thrashes all levels of
//! caches (000 §4.1).
//!
//! Each walks through an array larger than the last-level cache and changes a word of every line.
//! On the processor that the measuring thread holds, the polluter runs exactly while that thread is
//! preempted: it has no real-time priority. Started once, paused for the blocks without load.

use crate::memory::{Area, WORDS_OF_LINE};
use model::{Bytes, CpuSet, Error, Platform, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Running or paused polluters; they end when this is dropped.
#[derive(Debug)]
pub struct Polluters {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The array of each.
    pub bytes_each: Bytes,
}

#[derive(Debug, Default)]
struct Shared {
    running: AtomicBool,
    end: AtomicBool,
    parked: AtomicUsize,
    gate: Mutex<()>,
    changed: Condvar,
}

/// Lines between two looks at whether to pause: some microseconds.
const CHUNK_LINES: usize = 256;

/// What the array of a polluter must hold: a quarter more than the largest cache, if the polluters
/// together take at most half of the memory that is available; less otherwise. 32 MiB where no
/// cache size is known.
pub fn array_size(platform: &Platform, cpus: &CpuSet, available: Option<Bytes>) -> Bytes {
    let largest = platform
        .caches
        .iter()
        .filter_map(|c| c.size)
        .max()
        .map_or(32 << 20, |size| size.get().saturating_add(size.get() / 4));
    let each = available.map_or(u64::MAX, |a| a.get() / 2 / cpus.len().max(1) as u64);
    Bytes::new((largest.min(each) & !0xfffff).max(1 << 20))
}

impl Polluters {
    /// Starts one on each of the processors, paused, with their arrays in memory.
    ///
    /// # Errors
    /// No memory or threads to be had.
    pub fn start(cpus: &CpuSet, bytes_each: Bytes) -> Result<Self> {
        let mut polluters = Polluters {
            shared: Arc::new(Shared::default()),
            threads: Vec::new(),
            bytes_each,
        };
        let (report, mapped) = std::sync::mpsc::channel();
        for cpu in cpus.iter() {
            let report = report.clone();
            let shared = Arc::clone(&polluters.shared);
            let thread = std::thread::Builder::new()
                .name(format!("polluter-{cpu}"))
                .spawn(move || {
                    // Pinned first, so that the array lies in this processor's memory. Whether it
                    // may be had is checked by the plan; one that goes away meanwhile shows where
                    // the measuring thread is put on it.
                    let area = machine::realtime::pin(&[cpu].into_iter().collect())
                        .and_then(|()| Area::map(bytes_each));
                    let area = match area {
                        Ok(area) => Some(area),
                        Err(e) => {
                            // The starter waits for every report; it is gone only if it panicked.
                            let _ = report.send(e);
                            None
                        }
                    };
                    drop(report);
                    if let Some(area) = area {
                        pollute(&area, &shared);
                    }
                })
                .map_err(|e| Error::new(format!("cannot start a cache polluter: {e}")))?;
            polluters.threads.push(thread);
        }
        drop(report);
        // Ends when every thread has its array, or has said why not.
        match mapped.recv() {
            Ok(e) => Err(e),
            Err(_) => {
                polluters.wait_until_parked();
                Ok(polluters)
            }
        }
    }

    /// Lets them run, or pauses them; returns when they do so.
    pub fn set_running(&self, running: bool) {
        if self.shared.running.swap(running, Ordering::AcqRel) == running {
            return;
        }
        if running {
            let _gate = self
                .shared
                .gate
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.shared.changed.notify_all();
        } else {
            self.wait_until_parked();
        }
    }

    fn wait_until_parked(&self) {
        while self.shared.parked.load(Ordering::Acquire) < self.threads.len()
            && !self.threads.iter().all(JoinHandle::is_finished)
        {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

impl Drop for Polluters {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        {
            let _gate = self
                .shared
                .gate
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.shared.changed.notify_all();
        }
        for thread in self.threads.drain(..) {
            // One that panicked pollutes no more.
            let _ = thread.join();
        }
    }
}

fn pollute(area: &Area, shared: &Shared) {
    let lines = area.size() / (WORDS_OF_LINE * 8);
    let mut line = 0;
    loop {
        if !shared.running.load(Ordering::Acquire) || shared.end.load(Ordering::Acquire) {
            let mut gate = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
            shared.parked.fetch_add(1, Ordering::Release);
            while !shared.running.load(Ordering::Acquire) && !shared.end.load(Ordering::Acquire) {
                gate = shared
                    .changed
                    .wait(gate)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            shared.parked.fetch_sub(1, Ordering::Release);
            if shared.end.load(Ordering::Acquire) {
                return;
            }
        }
        for _ in 0..CHUNK_LINES {
            // SAFETY: `line` is below the number of lines of the area, which this thread alone
            // uses.
            unsafe {
                let word = area.base().add(line * WORDS_OF_LINE);
                word.write_volatile(word.read_volatile().wrapping_add(1));
            }
            line += 1;
            if line == lines {
                line = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_larger_than_the_largest_cache_if_memory_allows() {
        let platform = Platform::builtin("xeon-l7455").unwrap();
        let cpus = platform.usable();
        let plenty = Some(Bytes::from_mib(1 << 20));
        assert_eq!(array_size(&platform, &cpus, plenty), Bytes::from_mib(15));
        assert_eq!(
            array_size(&platform, &cpus, Some(Bytes::from_mib(48))),
            Bytes::from_mib(1),
            "24 polluters share half of 48 MiB"
        );
        assert_eq!(
            array_size(&Platform::symmetric(2), &CpuSet::first(2), None),
            Bytes::from_mib(32)
        );
    }

    #[test]
    fn polluters_run_pause_and_end() {
        let cpus = machine::realtime::affinity().unwrap();
        let polluters = Polluters::start(&cpus, Bytes::from_mib(1)).unwrap();
        let parked = || polluters.shared.parked.load(Ordering::Acquire);
        assert_eq!(parked(), cpus.len(), "they start paused");
        for _ in 0..3 {
            polluters.set_running(true);
            while parked() > 0 {
                std::thread::yield_now();
            }
            polluters.set_running(false);
            assert_eq!(parked(), cpus.len());
        }
        drop(polluters);
    }
}
