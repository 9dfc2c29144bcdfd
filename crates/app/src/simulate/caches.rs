//! Jobs of a task set as accesses in a model of the platform's caches.
//!
//! Each multithreaded task has one working set (003 §2); a job walks all of it several times, by
//! the pattern and the write ratio of its task. Working sets lie one behind the other in memory,
//! each at the beginning of a page. Either jobs of a task use the same memory, or jobs of one number
//! use memory of their own, as successive frames of a video do (003 §3.2, assumption 1).

use cache::{Kind, Shape};
use model::{Bytes, Computation, Duration, Error, Platform, Result, TaskId, TaskSet, Workload};
use policy::profiler::Estimate;
use serde::Serialize;
use simulate::{Accesses, Cached, Tally};
use std::collections::BTreeMap;
use workload::computation;
use workload::memory::Recorder;
use workload::walk::Steps;

/// How jobs use memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caches {
    /// How often a job walks its working set. Default: 3, as in 003 §4.1.
    pub passes: u32,
    /// Have jobs of one number data of their own? Default: they have not.
    pub fresh: bool,
    /// What a job computes for each access, beside what it waits for caches; then a job takes what
    /// comes of it, be it less or more than its WCET. `None`: what is left of the WCET where all
    /// accesses miss.
    pub access: Option<Duration>,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            passes: 3,
            fresh: false,
            access: None,
        }
    }
}

/// What the caches did for the jobs of a task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskCaches {
    /// The name of the task.
    pub task: String,
    /// Complete jobs.
    pub jobs: u64,
    /// Their accesses.
    pub accesses: u64,
    /// Those that reached the outermost cache.
    pub references: u64,
    /// Those of them that it did not serve.
    pub misses: u64,
    /// Misses by references, if there are any.
    pub miss_rate: Option<f64>,
    /// That of the worst job.
    pub worst_miss_rate: Option<f64>,
    /// What the longest job executed, in nanoseconds.
    pub max_ns: u64,
}

impl TaskCaches {
    fn of(task: String, tally: &Tally) -> Self {
        TaskCaches {
            task,
            jobs: tally.jobs,
            accesses: tally.accesses,
            references: tally.references,
            misses: tally.misses,
            miss_rate: tally.miss_rate(),
            worst_miss_rate: tally.worst_rate(),
            max_ns: tally.longest.nanos(),
        }
    }

    /// By task.
    pub(super) fn all(set: &TaskSet, cached: &Cached) -> Vec<Self> {
        let both = set.ids().zip(cached.tallies());
        both.map(|(id, tally)| TaskCaches::of(set.name(id), &tally))
            .collect()
    }
}

/// What a policy found of the working set of a multithreaded task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Profiled {
    /// The names of its tasks.
    pub tasks: Vec<String>,
    /// The working set.
    #[serde(rename = "wss_bytes", serialize_with = "model::size::whole")]
    pub wss: Bytes,
    /// Have two estimates in a row agreed?
    pub converged: bool,
    /// Jobs that were profiled.
    pub profiled: u64,
    /// Jobs that were discarded.
    pub discarded: u64,
}

impl Profiled {
    /// By multithreaded task.
    pub(crate) fn all(set: &TaskSet, estimates: &[(u32, Estimate)]) -> Vec<Self> {
        let mut all: BTreeMap<u32, Profiled> = BTreeMap::new();
        for (id, (mtt, estimate)) in set.ids().zip(estimates) {
            let found = all.entry(*mtt).or_insert_with(|| Profiled {
                tasks: Vec::new(),
                wss: estimate.wss,
                converged: estimate.converged,
                profiled: estimate.profiled,
                discarded: estimate.discarded,
            });
            found.tasks.push(set.name(id));
        }
        all.into_values().collect()
    }
}

/// The jobs of a set in the caches of a platform.
///
/// # Errors
/// Caches that cannot be modelled, or have no prices; no passes; a program as a workload, whose
/// accesses nobody knows; a walk without a working set size; a WCET that is too short for a job's
/// accesses.
pub fn cached(set: &TaskSet, platform: &Platform, how: Caches, seed: u64) -> Result<Cached> {
    let shape = Shape::of(platform)?;
    let page = cache::page_of(platform);
    in_shape(set, shape, page, how, seed)
}

/// The same in caches of this shape.
///
/// # Errors
/// As [`cached`].
pub fn in_shape(set: &TaskSet, shape: Shape, page: u64, how: Caches, seed: u64) -> Result<Cached> {
    if how.passes == 0 {
        return Err(Error::new("a job makes no pass over its working set")
            .at("--passes")
            .remedy("give at least one"));
    }
    let memory = Memory::of(set, page, u64::from(shape.line));
    let accesses = set.ids().map(|id| made(set, id, how, &memory, seed));
    let accesses = accesses.collect::<Result<Vec<_>>>()?;
    match how.access {
        None => Cached::new(shape, page, set, accesses, seed),
        Some(access) => {
            let computing = computing(set, access, &accesses)?;
            Cached::computing(shape, page, accesses, &computing, seed)
        }
    }
}

/// What jobs compute, by task: so long for each access; those without accesses their WCET.
fn computing(
    set: &TaskSet,
    access: Duration,
    accesses: &[Box<dyn Accesses>],
) -> Result<Vec<Duration>> {
    let computing = |(id, count): (TaskId, u64)| match count {
        0 => Ok(set.timings()[id.index()].wcet),
        count => match access.nanos().checked_mul(count) {
            Some(all) => Ok(Duration::from_nanos(all)),
            None => Err(
                Error::new(format!("{count} accesses of {access} are beyond 2^64 ns"))
                    .at(set.name(id))
                    .remedy("give a shorter time to `--access`"),
            ),
        },
    };
    let counts = accesses.iter().map(|accesses| accesses.count());
    set.ids().zip(counts).map(computing).collect()
}

/// Where working sets lie: by task the first address, and how much memory all of them take.
struct Memory {
    first: Vec<u64>,
    all: u64,
    /// Bytes of a line.
    line: u64,
}

impl Memory {
    fn of(set: &TaskSet, page: u64, line: u64) -> Self {
        let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut first, mut end) = (Vec::new(), 0_u64);
        for id in set.ids() {
            let size = memory_of(set, id).get().div_ceil(page);
            let mut place = || {
                let here = end;
                end = end.saturating_add(size.saturating_mul(page));
                here
            };
            first.push(match set.details(id).and_then(|d| d.group.as_deref()) {
                Some(name) => *groups.entry(name).or_insert_with(place),
                None => place(),
            });
        }
        Memory {
            first,
            all: end,
            line,
        }
    }
}

/// What a task needs: its working set, or what it computes on where that is more.
fn memory_of(set: &TaskSet, id: TaskId) -> Bytes {
    let stated = set.wss(id).unwrap_or(Bytes::new(0));
    match set.details(id).and_then(|d| d.workload.as_ref()) {
        Some(Workload::Compute(what)) => stated.max(computation::size(*what)),
        _ => stated,
    }
}

/// The accesses of a task.
fn made(
    set: &TaskSet,
    id: TaskId,
    how: Caches,
    memory: &Memory,
    seed: u64,
) -> Result<Box<dyn Accesses>> {
    let refuse = |cause: &str, remedy: &str| Err(Error::new(cause).at(set.name(id)).remedy(remedy));
    let workload = set.details(id).and_then(|d| d.workload.as_ref());
    let (write_ratio, pattern) = match workload {
        None | Some(Workload::Spin) => return Ok(Box::new(Computing)),
        Some(Workload::Walk {
            write_ratio,
            pattern,
        }) => (*write_ratio, *pattern),
        Some(Workload::Compute(what)) => {
            let first = memory.first[id.index()];
            let stride = if how.fresh { memory.all } else { 0 };
            let computing = Recorded::of(*what, how.passes, At { first, stride });
            return Ok(Box::new(computing));
        }
        Some(_) => {
            return refuse(
                "the accesses of a program are not known",
                "use another `kind`, or simulate without `--cache`",
            );
        }
    };
    let Some(size) = set.wss(id) else {
        return refuse(
            "a walk needs the size of its working set",
            "add `wss = \"256KiB\"`",
        );
    };
    let steps = Steps::new(size, write_ratio, pattern, seed, memory.line);
    // Tasks of one group begin at different places of their working set.
    let start = (u64::from(id.0) * 0x9e37_79b1 % u64::from(steps.lines())) as u32;
    let at = At {
        first: memory.first[id.index()],
        stride: if how.fresh { memory.all } else { 0 },
    };
    let walking = Walking {
        writes: write_ratio > 0.0,
        count: u64::from(steps.lines()) * u64::from(how.passes),
        steps,
        start,
        here: at.first,
        at,
    };
    Ok(Box::new(walking))
}

/// Jobs that only compute.
struct Computing;

impl Accesses for Computing {
    fn count(&self) -> u64 {
        0
    }
    fn writes(&self) -> bool {
        false
    }
    fn begin(&mut self, _number: u64) {}
    fn next(&mut self) -> (u64, Kind) {
        (0, Kind::Read)
    }
}

/// Where the working set of the first job lies, and how much further that of each next one.
struct At {
    first: u64,
    stride: u64,
}

impl At {
    fn of(&self, number: u64) -> u64 {
        // Beyond what addresses can be, the first memory comes again.
        let most = (1_u64 << 62).checked_div(self.stride).unwrap_or(1).max(1);
        self.first + number % most * self.stride
    }
}

/// Jobs that compute on memory of their own, some times one after the other: what the computation
/// touches, as it is recorded when a job begins.
struct Recorded {
    what: Computation,
    passes: u64,
    at: At,
    here: u64,
    /// Accesses of a whole computation: the offset, and whether it writes. The number is the same
    /// every time.
    touches: Vec<(u32, bool)>,
    next: usize,
    /// How many times it has been computed, before this one.
    done: u64,
}

impl Recorded {
    fn of(what: Computation, passes: u32, at: At) -> Self {
        let mut recorded = Recorded {
            what,
            passes: u64::from(passes),
            here: at.first,
            at,
            touches: Vec::new(),
            next: 0,
            done: 0,
        };
        recorded.record();
        recorded
    }

    /// Records what the computation touches that comes next.
    fn record(&mut self) {
        let (touches, steps) = (&mut self.touches, computation::steps(self.what));
        touches.clear();
        for step in 0..steps {
            // Memory of a computation is far below 4 GiB (`Computation::MOST`).
            let mut recorder = Recorder::new(size_of::<f64>() as u32, |touch| {
                touches.push((touch.offset as u32, touch.write));
            });
            computation::step(self.what, &mut recorder, self.done * steps + step);
        }
        self.next = 0;
    }
}

impl Accesses for Recorded {
    fn count(&self) -> u64 {
        self.touches.len() as u64 * self.passes
    }

    fn writes(&self) -> bool {
        true
    }

    fn begin(&mut self, number: u64) {
        self.here = self.at.of(number);
        self.done = number.wrapping_mul(self.passes);
        self.record();
    }

    #[inline]
    fn next(&mut self) -> (u64, Kind) {
        if self.next == self.touches.len() {
            self.done = self.done.wrapping_add(1);
            // What other computations touch does not depend on how often they were done.
            match self.what {
                Computation::Filter { .. } => self.record(),
                _ => self.next = 0,
            }
        }
        let (offset, write) = self.touches[self.next];
        self.next += 1;
        let kind = if write { Kind::Write } else { Kind::Read };
        (self.here + u64::from(offset), kind)
    }
}

/// Jobs that walk a working set.
struct Walking {
    steps: Steps,
    count: u64,
    writes: bool,
    start: u32,
    at: At,
    /// Where the working set of the present job lies.
    here: u64,
}

impl Accesses for Walking {
    fn count(&self) -> u64 {
        self.count
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn begin(&mut self, number: u64) {
        self.here = self.at.of(number);
        self.steps.begin(self.start);
    }

    #[inline]
    fn next(&mut self) -> (u64, Kind) {
        let touch = self.steps.step();
        let kind = if touch.write { Kind::Write } else { Kind::Read };
        (self.here + touch.offset, kind)
    }
}
