//! What needs a right that not everybody has: a counter of the kernel.

use machine::counter::{Counter, Event};
use std::sync::atomic::AtomicBool;
use testing::{NotRun, Outcome};
use workload::Work;
use workload::counted::{Counted, Source};

/// Touches 1000 fresh pages with each job.
struct Growing(Vec<Vec<u8>>);

impl Work for Growing {
    fn job(&mut self, number: u64, _: &AtomicBool) {
        // Far above what malloc keeps: fresh pages.
        let size = (number as usize + 1) << 26;
        let mut new = Vec::<u8>::with_capacity(size);
        for page in new.spare_capacity_mut().chunks_mut(4096).take(1000) {
            page[0].write(1);
        }
        self.0.push(new);
    }
}

/// The way of a counter, with page faults in the place of misses: pages that are new to a job.
fn a_counter_counts_what_a_job_does_and_nothing_else() -> Outcome {
    // Every kernel has this one; who is no root, or in a container, may be forbidden it.
    if let Err(e) = Counter::start(Event::PageFaults) {
        let why = e.to_string();
        assert!(why.contains("denied") || why.contains("permitted"), "{why}");
        return Err(NotRun::because(why));
    }
    let no = AtomicBool::new(false);
    let mut work = Counted::new(
        Box::new(Growing(Vec::new())),
        Source::Counter(Event::PageFaults),
    );
    for number in 0..3 {
        // Faults of others, between jobs, are not its own.
        let mut between = Growing(Vec::new());
        between.job(0, &no);
        work.job(number, &no);
        let faults = work.misses().unwrap();
        // One each where pages have 4 KiB, one for 512 where the kernel gives large ones.
        assert!((2..=1010).contains(&faults), "{faults}");
    }
    Ok(())
}

testing::tests!(a_counter_counts_what_a_job_does_and_nothing_else);
