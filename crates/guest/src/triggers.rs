//! What releases the jobs of tasks with triggers in a guest: a thread that writes into FIFOs at
//! random times. What the engine says of that is held against what was written, and against the
//! trace.

use crate::case::Case;
use execute::Triggered;
use model::{Error, Result, TaskId, TaskSet};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{CWD, FileType, Mode};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace::{Event, EventKind, Sink};

/// So long after its start it writes the burst.
const BURST_AFTER: Duration = Duration::from_millis(150);
/// It begins to write when a scheduler is there, some 50 ms before the first release.
const STATE: &str = "/sys/kernel/sched_ext/state";
const LOOKS: Duration = Duration::from_millis(10);

/// After so long programs do what they are for: before, their threads and processes come up, and
/// may sleep for that.
const THERE: model::Instant = model::Instant::from_nanos(400_000_000);

/// A file of events that counts releases, and what jobs execute.
pub(crate) struct Counting<S> {
    pub file: S,
    /// By task.
    pub releases: Vec<u64>,
    /// By task, in nanoseconds, of all jobs that are complete.
    pub executed: Vec<u64>,
    /// By task, the least that a complete job has executed, when what does them is there
    /// ([`THERE`]).
    pub least: Vec<u64>,
}

impl<S> Counting<S> {
    pub fn new(file: S, set: &TaskSet) -> Self {
        Counting {
            file,
            releases: vec![0; set.len()],
            executed: vec![0; set.len()],
            least: vec![u64::MAX; set.len()],
        }
    }
}

impl<S: Sink> Sink for Counting<S> {
    fn record(&mut self, event: Event) {
        if event.kind == EventKind::Release {
            self.releases[event.task.index()] += 1;
        }
        if event.kind == EventKind::Completion {
            let task = event.task.index();
            self.executed[task] += event.argument;
            if event.time > THERE {
                self.least[task] = self.least[task].min(event.argument);
            }
        }
        self.file.record(event);
    }
}

/// The FIFO of a task.
struct Fifo {
    task: TaskId,
    file: File,
    /// About so long is from one event to the next.
    gap: Duration,
}

/// What writes.
pub(crate) struct Events {
    over: Arc<AtomicBool>,
    /// It returns how much it has written, by FIFO.
    thread: JoinHandle<(Vec<Fifo>, Vec<u64>)>,
}

impl Events {
    /// Makes the FIFOs of a case, and begins to write.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn begin(case: &Case, set: &TaskSet) -> Result<Self> {
        let triggered = set.ids().filter(|task| task.0 < case.triggers);
        let made = triggered.map(|task| {
            let path = case.fifo(task);
            make(Path::new(&path)).map(|file| Fifo {
                task,
                file,
                gap: Duration::from_nanos(
                    case.gap
                        .unwrap_or(set.timings()[task.index()].period)
                        .nanos(),
                ),
            })
        });
        let fifos = made.collect::<Result<Vec<_>>>()?;
        let over = Arc::new(AtomicBool::new(false));
        let (end, burst) = (Arc::clone(&over), case.burst);
        let thread = std::thread::spawn(move || write(fifos, burst, &end));
        Ok(Events { over, thread })
    }

    /// The run is over: does what was written agree with what the engine says, and that with the
    /// trace, whose releases these are?
    ///
    /// # Errors
    /// It does not.
    pub fn end(self, triggered: &[Triggered], releases: &[u64]) -> Result<()> {
        self.over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let written = self.thread.join();
        let (fifos, written) =
            written.map_err(|_| Error::new("the thread that writes panicked"))?;
        let tasks: Vec<TaskId> = triggered.iter().map(|t| t.task).collect();
        if tasks != fifos.iter().map(|fifo| fifo.task).collect::<Vec<_>>() {
            return Err(Error::new(format!("the engine heard of tasks {tasks:?}")));
        }
        for ((fifo, written), said) in fifos.iter().zip(written).zip(triggered) {
            let unread = rustix::io::ioctl_fionread(&fifo.file).unwrap_or(u64::MAX);
            let released = releases[fifo.task.index()];
            println!(
                "guest: task {}: {written} written, {unread} not read, {released} released: \
                 {said:?}",
                fifo.task.0 + 1
            );
            // One may be released in the last moment, behind what the trace has.
            let due = said.events - said.left;
            let agrees = said.events + unread == written && released.max(due) - released <= 1;
            if !agrees || released > due || said.ended {
                return Err(Error::new(format!(
                    "{written} bytes were written, {unread} are left, the trace has {released} \
                     releases, and the engine says {said:?}"
                )));
            }
        }
        Ok(())
    }
}

fn make(path: &Path) -> Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let made = rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0);
    made.map_err(|e| Error::io(path, "make the FIFO", &e.into()))?;
    // To read as well: so it needs no reader to be opened.
    let mut options = File::options();
    let file = options.read(true).write(true).open(path);
    file.map_err(|e| Error::io(path, "open the FIFO", &e))
}

/// Writes until the run is over, about once in the gap of each.
fn write(fifos: Vec<Fifo>, burst: u64, over: &AtomicBool) -> (Vec<Fifo>, Vec<u64>) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut gap = |fifo: &Fifo| fifo.gap.mul_f64(random.random_range(0.3..1.9));
    let is_there = || std::fs::read(STATE).is_ok_and(|state| state.starts_with(b"enabled"));
    while !fifos.is_empty() && !over.load(Ordering::Acquire) && !is_there() {
        std::thread::park_timeout(LOOKS);
    }
    let begun = Instant::now();
    let mut written = vec![0; fifos.len()];
    let mut next: Vec<Instant> = fifos.iter().map(|fifo| begun + gap(fifo)).collect();
    let mut burst = (burst > 0).then_some((begun + BURST_AFTER, burst));
    while !over.load(Ordering::Acquire) {
        let now = Instant::now();
        for (at, fifo) in fifos.iter().enumerate() {
            let mut count = 0;
            if next[at] <= now {
                count = 1;
                next[at] = now + gap(fifo);
            }
            if let Some((_, bytes)) = burst.filter(|(when, _)| at == 0 && *when <= now) {
                count += bytes;
                burst = None;
            }
            let bytes = vec![b'.'; count as usize];
            written[at] += (&fifo.file).write(&bytes).map_or(0, |wrote| wrote as u64);
        }
        let all = next.iter().copied().chain(burst.map(|(when, _)| when));
        let Some(first) = all.min() else { break };
        std::thread::park_timeout(first.saturating_duration_since(Instant::now()));
    }
    (fifos, written)
}
