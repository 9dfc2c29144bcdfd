//! Counters of the processor and of the kernel for one thread (perf_event_open(2)).

use crate::probe::open;
use std::io;
use std::os::fd::OwnedFd;

/// What a read of a counter gives: its value, and for how long it was wanted and has counted.
const TOTAL_TIMES: u64 = 1 | 2;

/// A counter of the thread that has made it, in user mode.
#[derive(Debug)]
pub struct Counter(OwnedFd);

impl Counter {
    /// Counts from now on. `kind` and `config`: `PERF_TYPE_…` and `PERF_COUNT_…`.
    ///
    /// # Errors
    /// The kernel refuses: no right to it (`EACCES`, `EPERM`), or no such counter (`ENOENT`,
    /// `EOPNOTSUPP`).
    pub fn start(kind: u32, config: u64) -> io::Result<Self> {
        open(kind, config, TOTAL_TIMES, 0).map(Counter)
    }

    /// What it has counted since it was made; `None`: others had its place for a part of the time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&self) -> io::Result<Option<u64>> {
        let mut words = [0_u8; 24];
        let read = rustix::io::read(&self.0, &mut words)?;
        if read != words.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (words, _) = words.as_chunks::<8>();
        let [count, wanted, counted] = [0, 1, 2].map(|at| u64::from_ne_bytes(words[at]));
        Ok((wanted == counted).then_some(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_PAGE_FAULTS`.
    const FAULTS: (u32, u64) = (1, 2);

    #[test]
    fn faults_of_this_thread_are_counted_one_by_one() {
        use crate::memory::{Mapping, Use};
        let counter = match Counter::start(FAULTS.0, FAULTS.1) {
            Ok(counter) => counter,
            // A machine may permit no counters at all.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => return,
            Err(e) => panic!("{e}"),
        };
        let memory = Mapping::private(64 << 12, Use::Write).unwrap();
        memory.prefer_large_pages(false);
        let before = counter.read().unwrap().unwrap();
        for page in 0..64 {
            memory.store(page << 12, 1);
        }
        let faults = counter.read().unwrap().unwrap() - before;
        // Reading the counter may touch a page of its own.
        assert!((64..=66).contains(&faults), "{faults}");
        for page in 0..64 {
            memory.store(page << 12, 2);
        }
        assert!(counter.read().unwrap().unwrap() - before - faults < 3);
    }
}
