//! Work whose jobs are counted: how many lines of the shared cache each of them needed (003 §3.2).
//!
//! A counter of the processor says how often the job missed the last cache. Where there is none,
//! the kernel says which pages of its memory the job touched: as many lines as these have stand for
//! the misses that it would have had in a cache that had none of them. That counts pages in whole,
//! and it counts a line once, however often it was driven out and fetched again.

use crate::Work;
use machine::counter::{Counter, Event};
use machine::touched::OwnPages;
use model::Bytes;
use std::sync::atomic::AtomicBool;

/// By what jobs are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountBy {
    /// A counter of the thread that does them.
    Counter(Event),
    /// The pages that they touch, in lines of so many bytes.
    Pages {
        /// Bytes of a line.
        line: Bytes,
    },
}

impl CountBy {
    /// Misses of the last cache where this machine counts them, else pages.
    pub fn here(line: Bytes) -> Self {
        match Counter::start(Event::CacheMisses) {
            Ok(_) => CountBy::Counter(Event::CacheMisses),
            Err(_) => CountBy::Pages { line },
        }
    }
}

/// What counts the jobs of one task.
#[derive(Clone, Debug)]
pub enum Source {
    /// A counter of the thread that does them.
    Counter(Event),
    /// The pages that they touched, in lines of so many bytes.
    Pages {
        /// The pages of the task's memory, of which nobody else uses any.
        pages: OwnPages,
        /// Bytes of a line.
        line: Bytes,
    },
    /// They need no memory.
    Nothing,
}

/// Work that is counted job by job.
pub struct Counted {
    work: Box<dyn Work>,
    source: Source,
    /// Of the thread that does the jobs; made with the first one.
    counter: Option<Counter>,
    latest: Option<u64>,
}

impl Counted {
    /// Counts the jobs of this work.
    pub fn new(work: Box<dyn Work>, source: Source) -> Self {
        Counted {
            work,
            source,
            counter: None,
            latest: None,
        }
    }

    /// Counts from now on; `None`: that cannot be.
    fn begin(&mut self) -> Option<u64> {
        match &self.source {
            Source::Nothing => Some(0),
            Source::Pages { pages, .. } => pages.forget().ok().map(|()| 0),
            Source::Counter(event) => {
                if self.counter.is_none() {
                    self.counter = Counter::start(*event).ok();
                }
                self.counter.as_ref()?.read().ok()?
            }
        }
    }

    /// What was counted since; `None`: nobody knows.
    fn end(&self, begun: Option<u64>) -> Option<u64> {
        let begun = begun?;
        match &self.source {
            Source::Nothing => Some(0),
            Source::Pages { pages, line } => {
                let touched = pages.since().ok()?;
                Some(touched.get().div_ceil(line.get().max(1)))
            }
            Source::Counter(_) => {
                let now = self.counter.as_ref()?.read().ok()??;
                Some(now.saturating_sub(begun))
            }
        }
    }
}

impl Work for Counted {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        let begun = self.begin();
        self.work.job(number, stop);
        self.latest = self.end(begun);
    }

    fn counts_misses(&self) -> bool {
        true
    }

    fn misses(&self) -> Option<u64> {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Until, make_counted};
    use model::{Duration, TaskId, taskfile};

    const LINE: Bytes = Bytes::new(64);

    /// A walk of 512 KiB, one of 20 KiB, a product of matrices of 96 KiB, and work without memory.
    fn set() -> model::TaskSet {
        taskfile::from_toml(
            r#"
            [[task]]
            name = "large"
            wcet = "3ms"
            period = "20ms"
            wss = "512KiB"
            workload = { kind = "walk" }
            [[task]]
            name = "small"
            wcet = "1ms"
            period = "20ms"
            wss = "20KiB"
            workload = { kind = "walk", write_ratio = 0.5, pattern = "random" }
            [[task]]
            name = "product"
            wcet = "3ms"
            period = "20ms"
            workload = { kind = "matrix" }
            [[task]]
            name = "spin"
            wcet = "1ms"
            period = "20ms"
            "#,
        )
        .unwrap()
    }

    /// Each job walks its working set several times, and computes a whole product.
    #[test]
    fn the_pages_that_a_job_touches_are_its_working_set() {
        let set = set();
        let (length, no) = (Duration::from_millis(3), AtomicBool::new(false));
        for (task, kib) in [(0, 512), (1, 20), (2, 96), (3, 0)] {
            let by = CountBy::Pages { line: LINE };
            let (mut work, _) =
                make_counted(&set, TaskId(task), length, Until::Work, 1, None, by).unwrap();
            assert!(work.counts_misses());
            assert_eq!(work.misses(), None, "before the first job");
            for number in 0..3 {
                work.job(number, &no);
                assert_eq!(
                    work.misses(),
                    Some(kib * 1024 / 64),
                    "task {task}, job {number}"
                );
            }
        }
    }

    #[test]
    fn pages_of_colored_memory_are_refused() {
        let set = set();
        let store = Some(Box::new(vec![crate::walk::Line::default(); 320]) as Box<_>);
        let by = CountBy::Pages { line: LINE };
        let length = Duration::from_micros(100);
        let e = make_counted(&set, TaskId(1), length, Until::Work, 1, store, by);
        let e = e.err().unwrap().to_string();
        assert!(
            e.contains("memory in colors") && e.contains("task small"),
            "{e}"
        );
    }
}
