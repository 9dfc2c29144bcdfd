//! What the kernel recorded around jobs that took longer than their bounds.
//!
//! Recorded in the kernel's own buffers, which are read when the run is over ([`measure::kernel`]).
//! Without tracefs, or the right to it, there is no record: the answer says so.

use super::observe::{Job, Observed};
use crate::run::Threads;
use machine::tracefs::{self, Recording, Tracepoint};
use measure::kernel::pieces::{self, Processor};
use measure::kernel::points;
use measure::kernel::window::{self, Named, Part, Window};
use model::{CpuId, Duration, Result, TaskSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// How long a run lasts besides its length: threads are started, workloads are calibrated.
const AROUND: Duration = Duration::from_secs(3);

/// What is known of a run from the kernel.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Kernel {
    /// Why there is no record of the kernel's, as a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Events that its buffers had no room for.
    pub lost: u64,
    /// Timers that fired within the run.
    pub timers: u64,
    /// Those that were due while their processor was not idle and fired 50 µs late or later: it
    /// stood still, or the kernel kept interrupts off. Standstills between two looks of the watch
    /// are among them where a timer was due meanwhile.
    pub late_timers: u64,
    /// The latest of them, by how much.
    pub latest_ns: u64,
    /// The part of the processors' time that the hypervisor took, as the kernel's statistics say
    /// (ten milliseconds are the least that they tell).
    pub stolen: f64,
}

/// A recording that is going on, or why there is none.
pub(super) enum Recorder {
    On(Recording, Vec<Tracepoint>),
    Off(String),
}

impl Recorder {
    /// Begins to record what happens on these processors for about so long.
    pub(super) fn begin(cpus: &[CpuId], length: Duration) -> Self {
        match measure::kernel::begin(cpus, length.saturating_add(AROUND)) {
            Ok(recording) => Recorder::On(recording, points::known()),
            Err(e) => Recorder::Off(e.to_string()),
        }
    }

    /// It is not wanted.
    pub(super) fn off() -> Self {
        Recorder::Off("it was not asked for (--no-kernel-record)".to_owned())
    }

    /// Ends it.
    ///
    /// # Errors
    /// The buffers cannot be read.
    pub(super) fn end(self) -> Result<Record> {
        let (recording, points) = match self {
            Recorder::On(recording, points) => (recording, points),
            Recorder::Off(why) => {
                return Ok(Record {
                    missing: Some(why),
                    ..Record::default()
                });
            }
        };
        let recorded = recording.end()?;
        Ok(Record {
            processors: pieces::cut(&points, &recorded),
            lost: recorded.lost,
            names: tracefs::names(),
            missing: None,
        })
    }
}

/// What was recorded.
#[derive(Default)]
pub(super) struct Record {
    processors: BTreeMap<u32, Processor>,
    lost: u64,
    /// Names of threads, of those that have ended too.
    names: HashMap<i32, String>,
    missing: Option<String>,
}

/// A record, and the run that it is of.
pub(super) struct Around<'a> {
    pub record: &'a Record,
    pub threads: &'a Threads,
    pub set: &'a TaskSet,
    /// What `CLOCK_MONOTONIC` was at the beginning of the run, in nanoseconds.
    pub origin: u64,
    pub observed: &'a Observed,
}

impl Around<'_> {
    /// What was on the processors of a job from its release until it was done.
    pub(super) fn window(&self, job: &Job) -> Option<Window> {
        if self.record.missing.is_some() {
            return None;
        }
        let thread = *self.threads.tasks.get(job.task)?;
        let at = |nanos: u64| self.origin.saturating_add(nanos);
        let (from, to) = (at(job.released.nanos()), at(job.done.nanos()));
        let processors = &self.record.processors;
        let name = |thread| self.name(thread);
        let mut seen = window::window(processors, thread, (from, to), name);
        // Its thread did the job before as long as that one was not done.
        let begun = at(self.observed.begun(job).nanos()).max(from);
        let own = window::window(processors, thread, (begun, to), name);
        (seen.had_ns, seen.interrupted_ns) = (own.had_ns, own.interrupted_ns);
        Some(seen)
    }

    /// What a thread is to the run.
    fn name(&self, thread: i32) -> Named {
        let of = |all: &[(CpuId, i32)]| all.iter().any(|(_, other)| *other == thread);
        let task = self.threads.tasks.iter().position(|t| *t == thread);
        let (name, part) = if let Some(task) = task {
            let id = self.set.ids().nth(task);
            let name = id.map_or_else(|| task.to_string(), |id| self.set.name(id));
            (name, Part::Task)
        } else if of(&self.threads.dispatchers) {
            ("dispatcher".to_owned(), Part::Dispatcher)
        } else if of(&self.threads.watches) {
            ("watch".to_owned(), Part::Watch)
        } else {
            let kept = self.record.names.get(&thread).cloned();
            // It may be of a name that the kernel has let go of, and there still.
            let path = format!("/proc/{thread}/comm");
            let name = kept.or_else(|| std::fs::read_to_string(path).ok());
            let name = name.unwrap_or_else(|| "a thread that has ended".to_owned());
            (format!("{} ({thread})", name.trim_end()), Part::Other)
        };
        Named { name, part }
    }

    /// What is known of all of the run.
    pub(super) fn summary(&self, end: u64, stolen: f64) -> Kernel {
        let within = self.origin..self.origin.saturating_add(end);
        let processors = self.record.processors.values();
        let late = processors.clone().flat_map(|processor| &processor.late);
        let late = late.filter(|late| within.contains(&late.due));
        let fired = processors.flat_map(|processor| &processor.fired);
        Kernel {
            missing: self.record.missing.clone(),
            lost: self.record.lost,
            timers: fired.filter(|fired| within.contains(fired)).count() as u64,
            late_timers: late.clone().count() as u64,
            latest_ns: late.map(|late| late.by).max().unwrap_or(0),
            stolen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::tracefs::{Record as Event, Recorded};
    use model::Instant;
    use testing::sets::set_ms;

    fn record() -> Record {
        let points = points::known();
        let switch = |time, leaves, comes| Event {
            time,
            cpu: 0,
            point: 0,
            values: [leaves, comes, 0, 0],
        };
        let recorded = Recorded {
            all: vec![
                switch(1_000, 1, 70),
                switch(1_400, 70, 50),
                switch(1_500, 50, 99),
                switch(1_600, 99, 70),
                switch(2_000, 70, 0),
            ],
            ..Recorded::default()
        };
        Record {
            processors: pieces::cut(&points, &recorded),
            names: [(99, "kworker/0:1".to_owned())].into(),
            ..Record::default()
        }
    }

    #[test]
    fn a_job_beyond_its_bound_is_told_what_had_its_processor() {
        let set = set_ms(&[(2, 10)]);
        let threads = Threads {
            tasks: vec![70],
            dispatchers: vec![(CpuId(0), 50)],
            watches: Vec::new(),
        };
        let at = Instant::from_nanos;
        let job = |number, released, done| Job {
            task: 0,
            number,
            released: at(released),
            done: at(done),
            executed: Duration::from_nanos(300),
        };
        let mut observed = Observed::of(&set);
        observed.jobs = vec![job(0, 0, 300), job(1, 200, 900)];
        let around = Around {
            record: &record(),
            threads: &threads,
            set: &set,
            origin: 1_000,
            observed: &observed,
        };
        let window = around.window(&observed.jobs[1]).unwrap();
        let ran: Vec<_> = window.processors[0]
            .ran
            .iter()
            .map(|ran| (ran.name.as_str(), ran.part, ran.total_ns))
            .collect();
        assert_eq!(
            ran,
            [
                ("T1", Part::Task, 500),
                ("dispatcher", Part::Dispatcher, 100),
                ("kworker/0:1 (99)", Part::Other, 100),
            ]
        );
        // From when the job before was done: 100 ns until the dispatcher came, 300 ns behind it.
        assert_eq!((window.had_ns, window.unaccounted_ns(300)), (400, 100));
        assert_eq!(window.not_charged_ns(), 100);
        assert_eq!(around.summary(1_000, 0.0).missing, None);

        let none = Recorder::off().end().unwrap();
        let around = Around {
            record: &none,
            ..around
        };
        assert_eq!(around.window(&observed.jobs[1]), None);
        let told = around.summary(1_000, 0.0).missing.unwrap();
        assert!(told.contains("--no-kernel-record"), "{told}");
    }
}
