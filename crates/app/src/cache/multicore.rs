//! Periodic tasks with colored working sets under G-EDF and P-EDF, in a model of a platform's
//! caches (004 §IV, Figs. 10 to 12).
//!
//! Tasks draw the places that they read from their array with replacement and write every fifth
//! (004 Fig. 9); the task of lowest priority goes through its 512 KiB line by line, from a random
//! place on in every period. A task does a number of jobs and then nothing more. A job has as many
//! accesses as take [`PART`] of its WCET alone with the colors of S1, and as many in every scenario;
//! what it takes beyond that is what others do to its caches.
//!
//! Each draw reads and changes the task's generator of random numbers, which is on its heap (004
//! Fig. 9). S1: each task has a super color of its own. S3: all have the same one; their generators
//! are what is first taken from the common heap and lie side by side, four in a line ("possibly
//! sharing the same cache lines"), unless [`Options::apart`] says otherwise. S2 differs from S1 by what
//! the operating system does to the caches; there is none in the model, so that S2 is S1 (in the
//! paper its factors are one).

use crate::scheduling::assignment_for;
use crate::{On, provenance};
use ::cache::{Coloring, Hierarchy, Kind, Memory, Pages, Shape, Waits};
use analyze::partition::Fit;
use experiment::multicore::BEST_EFFORT;
use experiment::multicore::sets::{self, Drawn, Scheduler};
use model::watch::Watch;
use model::{Bytes, Color, Duration, Error, Platform, Provenance, Result, TaskId, TaskSet};
use policy::{Setup, Spec};
use rayon::prelude::*;
use simulate::{Accesses, Cached, Ending, Observer, Releases, Scenario};

mod told;
mod touching;

pub use told::{Compared, Row};
use touching::{Drawing, Going};

/// The part of a WCET that a job takes alone.
pub const PART: f64 = 0.9;
/// A run is given up when it takes so many times as long as its jobs' periods.
const PATIENCE: u64 = 4;

/// What is run. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches.
    pub on: On,
    /// Sets for each scheduler. Default: 10.
    pub sets: usize,
    /// Jobs of each task. Default: 200.
    pub jobs: u32,
    /// Periods and WCETs are divided by this. Default: 1.
    pub hasten: u64,
    /// The working set sizes. Default: 32 to 256 KiB.
    pub wss: Vec<Bytes>,
    /// What an access takes that the first cache serves, with its computing. Default: 10 ns.
    pub access: Duration,
    /// In S3, has each generator of random numbers a line of its own? Default: no.
    pub apart: bool,
    /// Seed of the sets and of what tasks draw. Default: 1.
    pub seed: u64,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// As 004 §IV has it.
    pub fn new(on: On) -> Self {
        Options {
            on,
            sets: 10,
            jobs: 200,
            hasten: 1,
            wss: experiment::multicore::SIZES.to_vec(),
            access: Duration::from_nanos(10),
            apart: false,
            seed: 1,
            command: String::new(),
        }
    }
}

/// What came of a task in one scenario.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Seen {
    longest: Duration,
    mean: f64,
    missed: bool,
}

/// One set with one size of working sets in one scenario.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ran {
    tasks: Vec<Seen>,
    /// When the last job was done.
    total: Duration,
    given_up: bool,
}

/// S1 and S3 of one set with one size.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pair {
    scheduler: Scheduler,
    wss: Bytes,
    s1: Ran,
    s3: Ran,
}

/// Runs all sets with all sizes.
///
/// # Errors
/// No sets, jobs or sizes; a platform whose caches cannot be modelled, have no prices or too few
/// colors; sets that cannot be drawn.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Compared> {
    let is_empty = options.sets == 0 || options.jobs == 0 || options.wss.is_empty();
    if is_empty || options.wss.iter().any(|wss| wss.get() < 64) {
        return Err(Error::new("there is nothing to run")
            .at("--sets, --jobs, --wss")
            .remedy("give at least one set, one job and one size of at least 64B"));
    }
    crate::workers()?;
    let platform = options.on.platform()?;
    // What the first cache serves takes `access`.
    let shape = Shape::of(&platform)?.without_hits();
    let page = cache::page_of(&platform);
    let lab = Lab {
        colors: shape.colors(page)?,
        shape,
        page,
        platform: &platform,
        options,
    };
    let mut all = Vec::new();
    for scheduler in Scheduler::ALL {
        let processors = platform.usable().len() as u32;
        let drawn = sets::draw(
            scheduler,
            processors,
            options.seed,
            options.sets,
            options.hasten,
        )?;
        for drawn in drawn {
            all.extend(options.wss.iter().map(|wss| (drawn.clone(), *wss)));
        }
    }
    watch.begin("running task sets in the model", all.len() as u64);
    let planned = all.len();
    let ran = all.into_par_iter().map(|(drawn, wss)| {
        if watch.stopped() {
            return Ok(None);
        }
        let pair = lab.pair(&drawn, wss, watch)?;
        watch.advance(1);
        Ok(pair)
    });
    let pairs: Vec<Option<Pair>> = ran.collect::<Result<_>>()?;
    watch.finish();
    crate::note_free(&lab.shape, watch);
    let pairs: Vec<Pair> = pairs.into_iter().flatten().collect();
    Ok(Compared {
        platform: platform.name.clone(),
        sets: options.sets as u64,
        jobs: options.jobs,
        hasten: options.hasten,
        access: options.access,
        apart: options.apart,
        rows: told::rows(&pairs),
        interrupted: pairs.len() < planned,
        provenance: Provenance {
            seed: Some(options.seed),
            ..provenance(&options.command)
        },
    })
}

struct Lab<'a> {
    shape: Shape,
    page: u64,
    colors: u64,
    platform: &'a Platform,
    options: &'a Options,
}

/// Bytes from a generator of random numbers to the next in the heap: one word, and what the heap
/// keeps of it.
const GENERATOR: u64 = 16;

/// Where a task's memory is: its pages by their numbers, and the address of its generator.
struct Placed {
    pages: Vec<u64>,
    generator: u64,
}

/// Which memory tasks have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Super {
    /// A super color each: S1.
    Own,
    /// All the same one: S3.
    Same,
}

impl Lab<'_> {
    /// `None`: interrupted.
    fn pair(&self, drawn: &Drawn, wss: Bytes, watch: &dyn Watch) -> Result<Option<Pair>> {
        let set = drawn.with_working_sets(wss, BEST_EFFORT)?;
        let counts = self.counts(drawn, &set)?;
        let (Some(s1), Some(s3)) = (
            self.ran(drawn, &set, &counts, Super::Own, watch)?,
            self.ran(drawn, &set, &counts, Super::Same, watch)?,
        ) else {
            return Ok(None);
        };
        Ok(Some(Pair {
            scheduler: drawn.scheduler,
            wss,
            s1,
            s3,
        }))
    }

    /// The memory of each task: as many super colors as tasks, one for a heap without color and one
    /// for the operating system (004 §IV).
    fn placed(&self, set: &TaskSet, how: Super) -> Result<Vec<Placed>> {
        let count = set.timings().len() as u64;
        let supers = count + 2;
        let each = self.colors / supers;
        if each == 0 {
            return Err(Error::new(format!(
                "{supers} super colors do not fit into a cache of {} colors",
                self.colors
            ))
            .remedy("choose a platform with more colors"));
        }
        let distance = match self.options.apart {
            true => u64::from(self.shape.line),
            false => GENERATOR,
        };
        let shared = (count * distance).div_ceil(self.page);
        let pages = |id: TaskId| set.wss(id).map_or(0, Bytes::get).div_ceil(self.page);
        let most = set.ids().map(|id| 1 + pages(id)).sum::<u64>() + shared;
        let frames = (most + 1) * self.colors;
        let mut memory = Memory::new(Coloring::Plain, frames, self.colors)?;
        let mut taken = vec![0; set.timings().len()];
        let mut take = |place: usize| {
            let color = place as u64 * each + taken[place] % each;
            taken[place] += 1;
            memory.take(Color(color as u16))
        };
        let first: Vec<u64> = match how {
            Super::Own => Vec::new(),
            Super::Same => (0..shared).map(|_| take(0)).collect::<Result<_>>()?,
        };
        set.ids()
            .map(|id| {
                let (place, generator) = match how {
                    Super::Own => (id.index(), take(id.index())? * self.page),
                    Super::Same => {
                        let offset = u64::from(id.0) * distance;
                        let page = first[(offset / self.page) as usize];
                        (0, page * self.page + offset % self.page)
                    }
                };
                let pages = (0..pages(id)).map(|_| take(place));
                Ok(Placed {
                    pages: pages.collect::<Result<_>>()?,
                    generator,
                })
            })
            .collect()
    }

    /// What a task touches in so many accesses a job.
    fn accesses(
        &self,
        drawn: &Drawn,
        set: &TaskSet,
        id: TaskId,
        placed: Placed,
        count: u64,
    ) -> Box<dyn Accesses> {
        let size = set.wss(id).map_or(0, Bytes::get);
        let seed = self.options.seed ^ ((u64::from(id.0) + 1) << 32) ^ drawn.number;
        let memory = touching::Pages::new(placed.pages, self.page);
        match id == drawn.best_effort {
            true => Box::new(Going::new(memory, size, count, seed)),
            false => Box::new(Drawing::new(memory, placed.generator, size, count, seed)),
        }
    }

    /// How many accesses a job of each task has: as many as take [`PART`] of its WCET alone.
    fn counts(&self, drawn: &Drawn, set: &TaskSet) -> Result<Vec<u64>> {
        let placed = self.placed(set, Super::Own)?;
        let count = |(id, placed): (TaskId, Placed)| {
            let each = self.alone(self.accesses(drawn, set, id, placed, u64::MAX), set, id)?;
            let wcet = set.timings()[id.index()].wcet.nanos() as f64;
            Ok(((PART * wcet / each) as u64).max(1))
        };
        set.ids().zip(placed).map(count).collect()
    }

    /// What an access of a task takes alone, in nanoseconds: its mean once the caches are warm.
    fn alone(&self, mut accesses: Box<dyn Accesses>, set: &TaskSet, id: TaskId) -> Result<f64> {
        let lines = set.wss(id).map_or(0, Bytes::get) / u64::from(self.shape.line);
        let (warming, counted) = (16 * lines, 8 * lines);
        let pages = Pages::as_traced(self.page)?;
        let mut caches = Hierarchy::new(&self.shape, pages, 1)?;
        let cpu = self.shape.cpus[0];
        let (port, waits) = (
            caches.port(cpu, Kind::Read)?,
            Waits::of(&self.shape, cpu, false)?,
        );
        accesses.begin(0);
        let mut waited = 0;
        for number in 0..warming + counted {
            let (address, kind) = accesses.next();
            let before = caches.owed().pessimistic;
            let outcome = caches.access(port, kind, address, 1)?;
            if number >= warming {
                let owed = caches.owed().pessimistic.saturating_sub(before);
                waited += (waits.line(outcome).pessimistic.saturating_add(owed)).nanos();
            }
        }
        let access = self.options.access.nanos() as f64;
        Ok(access + waited as f64 / counted.max(1) as f64)
    }

    /// One scenario; `None`: interrupted.
    fn ran(
        &self,
        drawn: &Drawn,
        set: &TaskSet,
        counts: &[u64],
        how: Super,
        watch: &dyn Watch,
    ) -> Result<Option<Ran>> {
        let placed = self.placed(set, how)?;
        let both = set.ids().zip(placed).zip(counts);
        let accesses = both
            .map(|((id, placed), count)| self.accesses(drawn, set, id, placed, *count))
            .collect();
        let access = self.options.access.nanos();
        let computing: Vec<Duration> = counts
            .iter()
            .map(|count| Duration::from_nanos(count.saturating_mul(access)))
            .collect();
        let seed = self.options.seed;
        let mut cached =
            Cached::computing(self.shape.clone(), self.page, accesses, &computing, seed)?;
        let jobs = u64::from(self.options.jobs);
        let periods = set.timings().iter().map(|t| t.period.nanos());
        let longest = periods.clone().max().unwrap_or(0);
        let scenario = Scenario {
            releases: Releases::Given(
                periods
                    .clone()
                    .map(|period| (0..jobs).map(|job| job * period).collect())
                    .collect(),
            ),
            horizon: Duration::from_nanos(PATIENCE * jobs * longest),
            seed,
            ..Scenario::default()
        };
        let spec: Spec = drawn.scheduler.policy().parse()?;
        let assignment =
            assignment_for(&spec, set, self.platform, Fit::Best)?.map_err(Error::new)?;
        let plan = spec.plan(&Setup {
            set,
            platform: self.platform,
            assignment: assignment.as_ref(),
            quantum: Duration::from_millis(1),
        })?;
        let run = simulate::Run {
            set,
            platform: self.platform,
            scenario: &scenario,
            costs: None,
            watch: &super::sets::Quiet(watch),
        };
        let mut ends = Ends::of(periods.collect());
        let summary = run.in_caches(plan, &mut ends, &mut cached)?;
        if summary.ending == Ending::Interrupted {
            return Ok(None);
        }
        let seen = cached
            .tallies()
            .zip(&summary.tasks)
            .map(|(tally, task)| Seen {
                longest: tally.longest,
                mean: tally.executed.nanos() as f64 / tally.jobs.max(1) as f64,
                missed: task.misses > 0,
            });
        Ok(Some(Ran {
            tasks: seen.collect(),
            total: Duration::from_nanos(ends.last),
            given_up: summary.tasks.iter().any(|task| task.completed < jobs),
        }))
    }
}

/// When the last job was done.
struct Ends {
    periods: Vec<u64>,
    last: u64,
}

impl Ends {
    fn of(periods: Vec<u64>) -> Self {
        Ends { periods, last: 0 }
    }
}

impl Observer for Ends {
    const EVENTS: bool = false;
    fn completed(&mut self, task: TaskId, number: u64, response: u64) {
        let released = number * self.periods[task.index()];
        self.last = self.last.max(released.saturating_add(response));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;
    use model::strategy::Price;
    use model::watch::Silent;

    fn options(wss: u64) -> Options {
        Options {
            sets: 1,
            jobs: 2,
            hasten: 50,
            wss: vec![Bytes::from_kib(wss)],
            ..Options::new(On::Platform(Choice::Named("i7-2600".to_owned())))
        }
    }

    /// 004 §IV-B: what all tasks have in one super color takes longer than what each has alone.
    #[test]
    fn one_super_color_for_all_makes_jobs_longer() {
        let seen = run(&options(64), &Silent).unwrap();
        assert_eq!(seen.rows.len(), 2, "a row for each scheduler");
        for row in &seen.rows {
            assert!(row.tasks > 10 && row.given_up == [0, 0], "{row:?}");
            assert!(row.worst > 1.0 && row.average > 1.0, "{row:?}");
            assert!(row.missed_percent[1] >= row.missed_percent[0], "{row:?}");
        }
    }

    /// The generators of the tasks are all that S3 adds where working sets fit side by side.
    #[test]
    fn generators_in_common_lines_make_jobs_longer() {
        let together = run(&options(32), &Silent).unwrap();
        let apart = Options {
            apart: true,
            ..options(32)
        };
        let apart = run(&apart, &Silent).unwrap();
        for (together, apart) in together.rows.iter().zip(&apart.rows) {
            assert!(
                together.average > 1.1 * apart.average,
                "{together:?} {apart:?}"
            );
        }
    }

    /// Jobs pay for all that they are given accesses for: alone, with S1, a job takes as long
    /// whatever the caches cost.
    #[test]
    fn jobs_take_their_part_of_the_wcet_whatever_caches_cost() {
        let of = |write_back: u64, intervention: u64| {
            let mut priced = model::Platform::builtin("i7-2600").unwrap();
            for cache in &mut priced.caches {
                let price = |nanos| Some(Price::always(Duration::from_nanos(nanos)));
                cache.strategy.write_back = price(write_back);
                cache.strategy.intervention = price(intervention);
            }
            let on = On::Platform(Choice::Value(priced));
            run(&Options { on, ..options(64) }, &Silent).unwrap().rows
        };
        let (free, dear, given) = (of(0, 0), of(50, 0), of(0, 400));
        for ((free, dear), given) in free.iter().zip(&dear).zip(&given) {
            let near = |a: u64, b: u64| a.abs_diff(b) < a / 50;
            assert!(near(free.total[0], dear.total[0]), "{free:?} {dear:?}");
            // With S1 no line is another task's; with S3 the generators' are.
            assert_eq!(free.total[0], given.total[0]);
            assert!(given.average > 1.5 * free.average, "{free:?} {given:?}");
        }
    }

    #[test]
    fn nothing_to_run_is_refused() {
        let nothing = Options {
            jobs: 0,
            ..options(32)
        };
        assert!(run(&nothing, &Silent).is_err());
        let few = Options {
            on: On::Platform(Choice::Named("pentium-pro".to_owned())),
            ..options(32)
        };
        assert!(run(&few, &Silent).is_err());
    }
}
