//! Jobs in a model of caches: a job gets on as fast as the caches, as the schedule left them, serve
//! its accesses to memory (003 §4). Preemptions and migrations cost what they make it miss.
//!
//! A job is so many accesses. Each takes a part of the computing that the job does in any case, and
//! what it waits for the caches by the prices of the platform, in the worst case ([`Waits`]); what
//! others left there to be written back is paid by the access that makes it leave. The computing is
//! what is left of the WCET if every access waits as long as one can: no job takes longer.
//!
//! An access is made at the beginning of its time; accesses of all processors are made in the order
//! of these instants, of equal ones that of the first processor first. A preempted job goes on with
//! the rest of that time.

use crate::pace::Pace;
use cache::{Hierarchy, Kind, Outcome, Pages, Port, Shape, Waits};
use model::{CpuId, Duration, Error, Result, TaskId, TaskSet};

/// The accesses of a task's jobs.
pub trait Accesses {
    /// How many a job makes; zero: none, it only computes.
    fn count(&self) -> u64;
    /// Does any of them write? Where those of no task do, caches need not look at each other, and
    /// are faster.
    fn writes(&self) -> bool;
    /// Job `number` begins: the next access is its first.
    fn begin(&mut self, number: u64);
    /// The next access of the job: the address of the line, and what it does. Asked for as often as
    /// the job makes accesses, and one access ahead.
    fn next(&mut self) -> (u64, Kind);
}

/// What the caches did for the complete jobs of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Complete jobs.
    pub jobs: u64,
    /// Accesses.
    pub accesses: u64,
    /// Accesses that reached the outermost cache.
    pub references: u64,
    /// Of them those that it did not serve.
    pub misses: u64,
    /// References and misses of the job with the highest miss rate.
    pub worst: (u64, u64),
    /// The same of those that ended at [`Cached::count_from`] or later.
    pub worst_counted: (u64, u64),
    /// What all of them executed.
    pub executed: Duration,
    /// What the longest job executed.
    pub longest: Duration,
    /// And the longest of those that ended at [`Cached::count_from`] or later.
    pub longest_counted: Duration,
}

impl Tally {
    /// Misses by references; `None`: no access reached the cache.
    pub fn miss_rate(&self) -> Option<f64> {
        rate((self.references, self.misses))
    }

    /// That of the worst job.
    pub fn worst_rate(&self) -> Option<f64> {
        rate(self.worst)
    }

    /// And of those that ended at [`Cached::count_from`] or later.
    pub fn worst_counted_rate(&self) -> Option<f64> {
        rate(self.worst_counted)
    }

    /// Adds the jobs of another task of the same multithreaded task.
    pub fn add(&mut self, other: &Tally) {
        self.jobs += other.jobs;
        self.accesses += other.accesses;
        self.references += other.references;
        self.misses += other.misses;
        self.executed = self.executed.saturating_add(other.executed);
        self.longest = self.longest.max(other.longest);
        self.longest_counted = self.longest_counted.max(other.longest_counted);
        self.worst = worse(self.worst, other.worst);
        self.worst_counted = worse(self.worst_counted, other.worst_counted);
    }

    fn job(&mut self, job: &Progress, counted: bool) {
        self.jobs += 1;
        self.accesses += job.accesses;
        self.references += job.references;
        self.misses += job.misses;
        let spent = Duration::from_nanos(job.spent);
        self.executed = self.executed.saturating_add(spent);
        self.longest = self.longest.max(spent);
        let rate = (job.references, job.misses);
        if counted {
            self.longest_counted = self.longest_counted.max(spent);
            self.worst_counted = worse(self.worst_counted, rate);
        }
        self.worst = worse(self.worst, rate);
    }
}

/// Misses by references, if there are any.
fn rate((references, misses): (u64, u64)) -> Option<f64> {
    (references > 0).then(|| misses as f64 / references as f64)
}

/// The one with the higher rate; one without references is none.
fn worse(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let rate = |(references, misses): (u64, u64)| (u128::from(misses), u128::from(references));
    let ((am, ar), (bm, br)) = (rate(a), rate(b));
    match ar == 0 || bm * ar > am * br {
        true => b,
        false => a,
    }
}

/// A job under way.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Accesses still to make.
    left: u64,
    /// What is left of the time of the last access, while the job is on no processor.
    rest: u64,
    /// Parts of a nanosecond of computing that are due.
    due: u64,
    spent: u64,
    accesses: u64,
    references: u64,
    misses: u64,
}

struct Task {
    accesses: Box<dyn Accesses>,
    count: u64,
    /// Computing for each access: whole nanoseconds, and the rest in parts of `count`.
    each: u64,
    part: u64,
    /// All of it.
    computing: u64,
    /// The job that `job` is of.
    number: Option<u64>,
    /// Its next access, if it has one left.
    next: (u64, Kind),
    job: Progress,
    tally: Tally,
}

/// A processor of the model.
struct Processor {
    port: Port,
    waits: Waits,
    /// Of them those of accesses that read what nobody changes, by the number of caches that miss.
    reads: Vec<u64>,
    levels: u32,
}

/// The caches, and the jobs that use them.
pub struct Cached {
    shape: Shape,
    caches: Hierarchy,
    /// Of what the caches say that is owed, so much has been paid.
    paid: u64,
    writes: bool,
    tasks: Vec<Task>,
    processors: Vec<Processor>,
    /// By processor: the task that runs there, and until when its last access takes; `u64::MAX`:
    /// none.
    running: Vec<usize>,
    busy: Vec<u64>,
    finished: Vec<usize>,
    error: Option<Error>,
    count_from: u64,
}

/// Stands for no task.
const NONE: usize = usize::MAX;

impl Cached {
    /// Empty caches of this shape, and by task the accesses of its jobs. `page`: bytes of a page,
    /// which prefetchers do not leave; addresses are those in memory.
    ///
    /// # Errors
    /// A cache of data has no `fill`; a job whose accesses take longer than its WCET if all miss.
    pub fn new(
        shape: Shape,
        page: u64,
        set: &TaskSet,
        accesses: Vec<Box<dyn Accesses>>,
        seed: u64,
    ) -> Result<Self> {
        let writes = writes(&accesses);
        let mut longest = 0;
        for cpu in &shape.cpus {
            longest = Waits::most(&shape, *cpu, writes)?.nanos().max(longest);
        }
        let mut computing = Vec::new();
        for (id, accesses) in set.ids().zip(&accesses) {
            let wcet = set.timings()[id.index()].wcet.nanos();
            let count = accesses.count();
            let waited = count.saturating_mul(longest);
            let Some(left) = wcet.checked_sub(waited) else {
                return Err(Error::new(format!(
                    "the {count} accesses of a job take up to {} in these caches, longer than its WCET of {}",
                    Duration::from_nanos(waited).rounded(),
                    Duration::from_nanos(wcet)
                ))
                .at(set.name(id))
                .remedy("give it a longer WCET or a smaller working set, or fewer passes"));
            };
            computing.push(Duration::from_nanos(left));
        }
        Self::computing(shape, page, accesses, &computing, seed)
    }

    /// The same for jobs that compute for so long without their waiting, by task: a job may take
    /// longer than its WCET.
    ///
    /// # Errors
    /// A cache has no price `fill`; pages of a size that cannot be.
    pub fn computing(
        shape: Shape,
        page: u64,
        accesses: Vec<Box<dyn Accesses>>,
        computing: &[Duration],
        seed: u64,
    ) -> Result<Self> {
        let mut caches = Hierarchy::new(&shape, Pages::as_traced(page)?, seed)?;
        let writes = writes(&accesses);
        if !writes {
            caches.reads_only();
        }
        for cpu in &shape.cpus {
            Waits::of(&shape, *cpu, false)?;
        }
        let task = |(accesses, computing): (Box<dyn Accesses>, &Duration)| {
            let (count, computing) = (accesses.count(), computing.nanos());
            Task {
                accesses,
                count,
                each: computing.checked_div(count).unwrap_or(0),
                part: computing.checked_rem(count).unwrap_or(0),
                computing,
                number: None,
                next: (0, Kind::Read),
                job: Progress::default(),
                tally: Tally::default(),
            }
        };
        let tasks = accesses.into_iter().zip(computing).map(task).collect();
        Ok(Cached {
            shape,
            caches,
            paid: 0,
            writes,
            tasks,
            processors: Vec::new(),
            running: Vec::new(),
            busy: Vec::new(),
            finished: Vec::new(),
            error: None,
            count_from: 0,
        })
    }

    /// Only jobs that end then or later count in [`Tally::longest_counted`] and
    /// [`Tally::worst_counted`].
    pub fn count_from(&mut self, since_start: Duration) {
        self.count_from = since_start.nanos();
    }

    /// The caches.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Does any access write?
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// What the caches did for each task.
    pub fn tallies(&self) -> impl Iterator<Item = Tally> {
        self.tasks.iter().map(|task| task.tally)
    }

    /// The processor that is done with its last access first, and when.
    #[inline]
    fn first(&self) -> (usize, u64) {
        let mut first = (0, u64::MAX);
        for (processor, busy) in self.busy.iter().enumerate() {
            if *busy < first.1 {
                first = (processor, *busy);
            }
        }
        first
    }

    /// The next access of the job on a processor.
    #[inline]
    fn step(&mut self, processor: usize) {
        let here = &self.processors[processor];
        let task = &mut self.tasks[self.running[processor]];
        let (address, kind) = task.next;
        let outcome = match self.caches.access(here.port, kind, address, 1) {
            Ok(outcome) => outcome,
            Err(e) => {
                self.error.get_or_insert(e);
                Outcome::default()
            }
        };
        let job = &mut task.job;
        job.left -= 1;
        if job.left > 0 {
            task.next = task.accesses.next();
            self.caches.expect(here.port, task.next.0);
        }
        job.accesses += 1;
        job.references += u64::from(outcome.reached == here.levels);
        job.misses += u64::from(outcome.missed(here.levels - 1));
        job.due += task.part;
        let mut takes = task.each + here.reads[outcome.fetched as usize];
        if self.writes {
            let owed = self.caches.owed().pessimistic.nanos();
            let waits = here.waits.line(outcome).pessimistic.nanos();
            takes = task.each + waits + (owed - self.paid);
            self.paid = owed;
        }
        if job.due >= task.count {
            job.due -= task.count;
            takes += 1;
        }
        job.spent += takes;
        self.busy[processor] += takes;
    }

    /// The jobs that are complete at this instant.
    fn complete(&mut self, now: u64) -> Option<u64> {
        for processor in (0..self.busy.len()).rev() {
            let task = self.running[processor];
            if self.busy[processor] != now || self.tasks[task].job.left > 0 {
                continue;
            }
            let task = &mut self.tasks[task];
            task.tally.job(&task.job, now >= self.count_from);
            self.busy[processor] = u64::MAX;
            self.running[processor] = NONE;
            self.finished.push(processor);
        }
        (!self.finished.is_empty()).then_some(now)
    }
}

/// Does any task write?
fn writes(accesses: &[Box<dyn Accesses>]) -> bool {
    accesses.iter().any(|accesses| accesses.writes())
}

impl Pace for Cached {
    const PACED: bool = true;

    fn begin(&mut self, processors: &[CpuId]) -> Result<()> {
        let made = processors.iter().map(|cpu| {
            let waits = Waits::of(&self.shape, *cpu, false)?;
            let levels = self.shape.path(*cpu, false).len() as u32;
            let read = |fetched| {
                let outcome = Outcome {
                    fetched,
                    ..Outcome::default()
                };
                waits.line(outcome).pessimistic.nanos()
            };
            Ok(Processor {
                port: self.caches.port(*cpu, Kind::Read)?,
                reads: (0..=levels).map(read).collect(),
                levels,
                waits,
            })
        });
        self.processors = made.collect::<Result<_>>()?;
        self.running = vec![NONE; processors.len()];
        self.busy = vec![u64::MAX; processors.len()];
        Ok(())
    }

    fn start(&mut self, processor: usize, task: TaskId, number: u64, now: u64) {
        let at = task.index();
        let task = &mut self.tasks[at];
        if task.number.replace(number) != Some(number) {
            task.accesses.begin(number);
            if task.count > 0 {
                task.next = task.accesses.next();
            }
            // Without accesses it is done at once.
            let alone = if task.count == 0 { task.computing } else { 0 };
            task.job = Progress {
                left: task.count,
                rest: alone,
                spent: alone,
                ..Progress::default()
            };
        }
        self.running[processor] = at;
        self.busy[processor] = now + task.job.rest;
    }

    fn stop(&mut self, processor: usize, now: u64) {
        let task = std::mem::replace(&mut self.running[processor], NONE);
        let busy = std::mem::replace(&mut self.busy[processor], u64::MAX);
        if task != NONE {
            self.tasks[task].job.rest = busy - now;
        }
    }

    fn advance(&mut self, until: u64) -> Option<u64> {
        loop {
            let (processor, now) = self.first();
            if now >= until || self.error.is_some() {
                return self.complete(until);
            }
            match self.tasks[self.running[processor]].job.left {
                0 => return self.complete(now),
                _ => self.step(processor),
            }
        }
    }

    fn finished(&mut self) -> Option<usize> {
        self.finished.pop()
    }

    fn misses(&self, task: TaskId) -> Option<u64> {
        Some(self.tasks[task.index()].job.misses)
    }

    fn error(&mut self) -> Option<Error> {
        self.error.take()
    }
}
