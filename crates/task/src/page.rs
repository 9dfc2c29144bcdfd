//! The pages that a run and its tasks share: who writes what, and in which order.
//!
//! - [`Control`] is written by the engine alone: it is sealed, so that the task can map it to read
//!   only (000 §3.3).
//! - [`Reply`] is written by the task: how many jobs it has done.
//! - [`Bells`] belong to the run: who has done a job rings the bell of its processor.
//!
//! Words that somebody sleeps on are futexes between processes.

use crate::Job;
use crate::shared::{Words, futex_wake};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Of the layout below.
pub const VERSION: u32 = 2;

/// What the engine tells a task.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    /// [`VERSION`].
    pub version: AtomicU32,
    /// How many jobs the task was told to do; wraps. It sleeps on this.
    pub told: AtomicU32,
    /// Not 0: the run is over.
    pub over: AtomicU32,
    /// The bell that it rings.
    pub bell: AtomicU32,
    /// Odd while the rest is being written.
    sequence: AtomicU32,
    processor: AtomicU32,
    number: AtomicU64,
    release: AtomicU64,
    deadline: AtomicU64,
    preemptions: AtomicU64,
    migrations: AtomicU64,
    preemption_length: AtomicU64,
}

// SAFETY: atomic integers alone.
unsafe impl Words for Control {}
// SAFETY: as above.
unsafe impl Words for Reply {}
// SAFETY: as above.
unsafe impl Words for Bells {}

impl Control {
    /// From here on it is being written: who reads it waits for what is written next. One writer at
    /// a time.
    pub fn begin(&self) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence | 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Writes what the page says of a job.
    pub fn write(&self, job: &Job) {
        self.begin();
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.processor.store(job.processor, Ordering::Relaxed);
        self.number.store(job.number, Ordering::Relaxed);
        self.release.store(job.release, Ordering::Relaxed);
        self.deadline.store(job.deadline, Ordering::Relaxed);
        self.preemptions.store(job.preemptions, Ordering::Relaxed);
        self.migrations.store(job.migrations, Ordering::Relaxed);
        self.preemption_length
            .store(job.preemption_length, Ordering::Relaxed);
        self.sequence
            .store(sequence.wrapping_add(1), Ordering::Release);
    }

    /// Reads it, again where it was written meanwhile.
    pub fn read(&self) -> Job {
        loop {
            let sequence = self.sequence.load(Ordering::Acquire);
            let job = Job {
                number: self.number.load(Ordering::Relaxed),
                release: self.release.load(Ordering::Relaxed),
                deadline: self.deadline.load(Ordering::Relaxed),
                preemptions: self.preemptions.load(Ordering::Relaxed),
                migrations: self.migrations.load(Ordering::Relaxed),
                preemption_length: self.preemption_length.load(Ordering::Relaxed),
                processor: self.processor.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if sequence.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == sequence {
                return job;
            }
            std::hint::spin_loop();
        }
    }
}

/// What a task tells the engine.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Reply {
    /// How many jobs it has done; wraps.
    pub done: AtomicU32,
    /// Not 0: it has asked for its first job.
    pub waiting: AtomicU32,
    /// When it began its job.
    pub began: AtomicU64,
    /// Where the task has this page in its memory: an engine in the kernel reads `done` there, when
    /// the task goes to sleep.
    pub place: AtomicU64,
}

/// A bell for each processor of the run.
#[derive(Debug)]
#[repr(C)]
pub struct Bells([AtomicU32; 1024]);

impl Bells {
    /// How often a bell was rung; a futex. None beyond those that there are.
    pub fn bell(&self, number: u32) -> Option<&AtomicU32> {
        self.0.get(number as usize)
    }
    /// Rings.
    pub fn ring(&self, number: u32) {
        if let Some(bell) = self.bell(number) {
            bell.fetch_add(1, Ordering::Release);
            futex_wake(bell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_was_written_together() {
        let control = Control::default();
        let all = |n: u64| Job {
            number: n,
            release: n,
            deadline: n,
            preemptions: n,
            migrations: n,
            preemption_length: n,
            processor: n as u32,
        };
        control.write(&all(1));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (2..200_000).for_each(|n| control.write(&all(n))));
            let mut last = 0;
            while !writer.is_finished() {
                let job = control.read();
                assert_eq!(job, all(job.number));
                assert!(job.number >= last);
                last = job.number;
            }
        });
        assert_eq!(control.read(), all(199_999));
        // Begun and not written: the reader waits, and never sees what was there.
        control.begin();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| control.read());
            std::thread::sleep(std::time::Duration::from_millis(5));
            control.write(&all(7));
            assert_eq!(reader.join().unwrap(), all(7));
        });
    }
}
