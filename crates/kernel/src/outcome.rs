//! What a run is given besides its plan, and what comes of it besides its trace.

use crate::surroundings::Surroundings;
use execute::{Done, Efforts, Ending, ProgramEnd, Triggered, Triggers};
use model::{Duration, Instant, TaskId};
use policy::profiler::Estimate;
use std::sync::Arc;

/// Everything about a run but the plan and the work.
#[derive(Clone, Debug)]
pub struct Settings {
    /// When all tasks are released, as a reading of `CLOCK_MONOTONIC` in nanoseconds; else as soon
    /// as everything is ready.
    pub release_at: Option<u64>,
    /// How long it is waited for jobs that were told to end.
    pub to_end: Duration,
    /// Bytes of the ring that events come through, a power of two and 4096 at least. An event takes
    /// 40. Those that find it full are lost.
    pub ring: u32,
    /// So many events may wait until they are written. An event takes 32 bytes.
    pub waiting: usize,
    /// What the threads of tasks run in; `None`: in what the system gives them.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// The kernel unloads the program under which a thread waits for a processor for longer, to the
    /// millisecond. No more than 30 s.
    pub watchdog: Duration,
    /// What releases the jobs of tasks that have a trigger, open.
    pub triggers: Triggers,
    /// What fills the time that jobs leave.
    pub best_effort: Efforts,
    /// A thread whose job waits for longer than that is let run for an instant, so that the kernel
    /// does not unload the program.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            release_at: None,
            to_end: Duration::from_secs(5),
            ring: 1 << 24,
            waiting: 400_000,
            surroundings: None,
            watchdog: Duration::from_secs(30),
            triggers: Triggers::default(),
            best_effort: Efforts::default(),
            patience: Duration::from_secs(10),
        }
    }
}

/// What came of a run besides its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// When it ended.
    pub end: Instant,
    /// Why.
    pub ending: Ending,
    /// What `CLOCK_MONOTONIC` was at time zero, in nanoseconds.
    pub origin: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What became of the programs among the tasks, in the order of the tasks.
    pub programs: Vec<ProgramEnd>,
    /// By task, the number of its thread; 0 where a program does its jobs.
    pub threads: Vec<i32>,
    /// How often a domain decided.
    pub decisions: u64,
    /// From release to first instruction, of jobs that were chosen at their release: nanoseconds,
    /// sorted; of each task the first 65536.
    pub latencies: Vec<u32>,
    /// What came of the triggers of tasks that have one, in the order of the tasks.
    pub triggers: Vec<Triggered>,
    /// Tasks whose work did not come back when it was told to end. Their threads are ordinary ones.
    pub stuck: Vec<TaskId>,
    /// What best-effort work got done, by name.
    pub best_effort: Vec<Done>,
    /// By task its multithreaded task, and what the policy found of its working set; empty: it
    /// looked for none.
    pub profiled: Vec<(u32, Estimate)>,
}
