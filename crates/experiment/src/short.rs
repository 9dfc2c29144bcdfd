//! Short tasks that are activated after a flood of the cache (001 §5.2, §5.3, Figs. 4 and 5).
//!
//! Unpredictability is c_max / c_min: the longest activation after a flood against the shortest alone.
//!
//! 001 turns interrupts off while a task is active, and has the machine for itself. Here interrupts stay on, and a processor
//! may be shared with what a hypervisor does not show. So three kinds of activations are left out and counted:
//! *interrupted* ones, which a [`Witness`] tells (an interrupt in the flood is taken as a part of it); and *disturbed* ones: before the
//! flood and after the activation the task is activated with a warm cache, and where one of these guards took longer than
//! [`CALM`] times the first quartile of its run, something else slowed the machine down; and those after which the [`Sentinel`], memory that nothing of ours
//! touches, had lost lines as well: *emptied*. None of these looks at the activation itself, so that none is left out for
//! being slow.

use crate::ground::{self, Ground, Sample, Sentinel, median};
use machine::clock::{Calibration, Clock};
use machine::interrupts::Witness;
use machine::with_clock;
use model::watch::Watch;
use model::{Bytes, CpuSet, Duration, Error, Result};
use partition::frame::Page;
use partition::{Colors, Large, LargeWindow, View};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;
use workload::{cosine::Cosine, filter::Filter, fourier::Fourier};

/// What is activated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A digital filter of n coefficients (001 §5.2).
    Filter,
    /// A discrete cosine transform of n points.
    Cosine,
    /// A fast Fourier transform of n points.
    Fourier,
}

impl Task {
    /// The memory that it needs at a size.
    pub fn wss(self, size: usize) -> Bytes {
        let doubles = match self {
            Task::Filter => workload::filter::doubles(size),
            Task::Cosine => workload::cosine::doubles(size),
            Task::Fourier => workload::fourier::doubles(size),
        };
        Bytes::new((doubles * size_of::<f64>()) as u64)
    }
}

/// What happens between two activations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Nothing.
    Alone,
    /// A flood of all colors, most of all of those of the task's data.
    Unpartitioned,
    /// As large a flood of all colors but the task's: of its data, its code and its stack.
    Partitioned,
    /// The same, and as many pages of the task's colors are read but not written (001 §5.3).
    SingleWriter,
    /// As large a flood of all colors but those of the task's data.
    DataOnly,
    /// Nothing, for as long as a flood lasts: what time alone takes.
    Waiting,
    /// The lowest level is emptied and nothing else: what no color keeps.
    FirstLevel,
    /// One line of each of many small pages is read: translations of addresses are lost, and hardly any of the cache.
    Translations,
}

/// All scenarios, in the order in which they are shown.
pub const SCENARIOS: [Scenario; 8] = [
    Scenario::Alone,
    Scenario::Unpartitioned,
    Scenario::Partitioned,
    Scenario::SingleWriter,
    Scenario::DataOnly,
    Scenario::Waiting,
    Scenario::FirstLevel,
    Scenario::Translations,
];

/// Sizes as in Fig. 4 of 001: from 4 to 8192.
pub const SIZES: [usize; 12] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// How many times as long as the first quartile a guard may take.
pub const CALM: f64 = 1.05;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The task.
    pub task: Task,
    /// Its sizes.
    pub sizes: &'a [usize],
    /// How many colors its data has.
    pub colors: u16,
    /// How many runs.
    pub runs: usize,
    /// How many activations of each scenario a run has.
    pub activations: usize,
}

/// The task at one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Coefficients or points.
    pub size: usize,
    /// Its memory.
    pub wss: Bytes,
    /// The shortest activation alone: median over the runs, in nanoseconds.
    pub least_ns: f64,
    /// c_max / c_min of each scenario, in the order of [`SCENARIOS`]: medians over the runs; not a number where none counts.
    pub unpredictability: [f64; SCENARIOS.len()],
    /// Median activation of each scenario against the shortest alone, likewise.
    pub typical: [f64; SCENARIOS.len()],
    /// Activations that were interrupted and left out.
    pub interrupted: u64,
    /// Activations that were not, but something slowed the machine down around them: left out, too.
    pub disturbed: u64,
    /// Activations that were neither, but the sentinel lost lines: left out, too.
    pub emptied: u64,
    /// Activations that count.
    pub counted: u64,
}

/// What was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Seen {
    /// The task.
    pub task: Task,
    /// The colors of its data.
    pub data: Colors,
    /// The colors of its code and stack.
    pub rest: Colors,
    /// How much of the cache the colors of its data are.
    pub partition: Bytes,
    /// How many runs, and activations of a scenario in each.
    pub runs: (usize, usize),
    /// How long a flood lasts.
    pub flood_lasts: Duration,
    /// How much of it is in large pages.
    pub flood_large: Bytes,
    /// Were interrupts seen? Where not, all activations count.
    pub witnessed: bool,
    /// The rows, by size.
    pub rows: Vec<Row>,
    /// All activations.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Seen {
    /// The row whose working set is nearest to half of the partition.
    pub fn at_half(&self) -> Option<&Row> {
        let half = self.partition.get() / 2;
        self.rows.iter().min_by_key(|r| r.wss.get().abs_diff(half))
    }
}

/// Runs the experiment on the palette's processor.
///
/// # Errors
/// The processor cannot be used; too few colors or pages; every activation was interrupted; the user stopped it.
pub fn run(ground: &mut Ground<'_>, plan: &Plan<'_>, watch: &dyn Watch) -> Result<Seen> {
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            machine::realtime::pin(&CpuSet::from_iter([ground.palette.cpu]))?;
            with_clock!(clock => measure(clock, ground, plan, watch))
        });
        measured
            .join()
            .unwrap_or_else(|_| Err(Error::new("the experiment broke off: a defect of this program")))
    })
}

/// The task in its memory.
enum Active<'a> {
    Filter(Filter<'a>),
    Cosine(Cosine<'a>),
    Fourier(Fourier<'a>),
}

impl<'a> Active<'a> {
    fn new(task: Task, memory: &'a mut [f64], size: usize) -> Result<Self> {
        Ok(match task {
            Task::Filter => Active::Filter(Filter::new(memory, size)?),
            Task::Cosine => Active::Cosine(Cosine::new(memory, size)?),
            Task::Fourier => Active::Fourier(Fourier::new(memory, size)?),
        })
    }

    #[inline(always)]
    fn step(&mut self, sample: f64) -> f64 {
        match self {
            Active::Filter(filter) => filter.step(sample),
            Active::Cosine(transform) => transform.step(sample),
            Active::Fourier(transform) => transform.step(sample),
        }
    }
}

/// An activation and how long it took, in ticks.
#[inline(never)]
fn activate<C: Clock>(clock: C, active: &mut Active<'_>, sample: f64) -> u64 {
    let start = clock.stamp();
    black_box(active.step(sample));
    clock.stamp().saturating_sub(start)
}

/// What floods.
struct Floods<'a> {
    flood: &'a mut Large,
    readable: &'a LargeWindow,
    /// Pages of a flood that nothing is kept free of.
    everywhere: Vec<u32>,
    /// As many that spare the task's data, code and stack.
    beside_all: Vec<u32>,
    /// As many that spare its data.
    beside_data: Vec<u32>,
    /// Readable pages of the colors of its data.
    rivals: Vec<u32>,
    /// As much as twice the lowest level, of others' colors.
    small: View,
    /// Many small pages of others' colors.
    translations: View,
    /// How long a flood lasts.
    lasts: std::time::Duration,
}

impl Floods<'_> {
    fn before(&mut self, scenario: Scenario) {
        match scenario {
            Scenario::Alone => {}
            Scenario::Unpartitioned => ground::write(self.flood.bytes(), &self.everywhere),
            Scenario::Partitioned => ground::write(self.flood.bytes(), &self.beside_all),
            Scenario::SingleWriter => {
                ground::write(self.flood.bytes(), &self.beside_all);
                ground::read(self.readable.bytes(), &self.rivals);
            }
            Scenario::DataOnly => ground::write(self.flood.bytes(), &self.beside_data),
            Scenario::FirstLevel => ground::write_all(&mut self.small),
            Scenario::Translations => ground::touch(&mut self.translations),
            Scenario::Waiting => {
                let until = Instant::now() + self.lasts;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

fn measure<C: Clock>(clock: C, ground: &mut Ground<'_>, plan: &Plan<'_>, watch: &dyn Watch) -> Result<Seen> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let witness = Witness::new();
    let number = ground.palette.colors();
    if plan.colors == 0 || plan.colors > number / 2 {
        return Err(
            Error::new(format!("{} of {number} colors cannot be the task's", plan.colors))
                .remedy(format!("choose between 1 and {}", number / 2)),
        );
    }
    let data = Colors::first(plan.colors);
    // Where the activation's code and its notes on the stack lie.
    let mut below = 0_u64;
    black_box(&mut below);
    let mut own = ground::code(&[
        activate::<C> as fn(C, &mut Active<'static>, f64) -> u64 as usize,
        match plan.task {
            Task::Filter => Filter::step as fn(&mut Filter<'static>, f64) -> f64 as usize,
            Task::Cosine => Cosine::step as fn(&mut Cosine<'static>, f64) -> f64 as usize,
            Task::Fourier => Fourier::step as fn(&mut Fourier<'static>, f64) -> f64 as usize,
        },
    ]);
    own.push(Page::under(&below));
    let rest = ground.colors_of(&own, watch)?.difference(&data);
    drop(own);
    let ways = ground.palette.cache.ways as usize;
    let mut memory = ground.pool.take(&data, ways * data.len())?;
    let both = data.union(&rest);
    // Beyond code and stack, the last colors, as many as the task's.
    let watched: Colors = ground.others(&both).iter().rev().take(data.len()).collect();
    let mut sentinel = Sentinel::new(ground.pool.take(&watched, ways * data.len() / 2)?);
    let free = ground.others(&both.union(&watched));
    let small = ground.pool.take(&free, 2 * free.len())?;
    let translations = ground.pool.take_all(&free, usize::MAX)?;
    let readable = ground
        .readable
        .as_ref()
        .ok_or_else(|| Error::new("no memory was made that can only be read: a defect of this program"))?;
    let mut floods = Floods {
        everywhere: ground.everywhere(&data, &watched),
        beside_all: ground.beside(&data, &watched, &both),
        beside_data: ground.beside(&data, &watched, &data),
        rivals: {
            let mut pages = readable.of(&data);
            pages.truncate(pages.len() / 2);
            pages
        },
        readable,
        flood: &mut ground.flood,
        small,
        translations,
        lasts: std::time::Duration::ZERO,
    };
    let begun = Instant::now();
    floods.before(Scenario::Partitioned);
    floods.lasts = begun.elapsed();
    let mut seen = Seen {
        task: plan.task,
        partition: Bytes::new(ground.palette.cache.of_one_color().get() * u64::from(plan.colors)),
        data,
        rest,
        runs: (plan.runs, plan.activations),
        flood_lasts: Duration::from_nanos(floods.lasts.as_nanos() as u64),
        flood_large: floods.flood.large,
        witnessed: witness.works(),
        rows: Vec::new(),
        samples: Vec::new(),
    };
    watch.begin(
        "short tasks beside the flooder",
        (plan.sizes.len() * plan.runs) as u64,
    );
    for size in plan.sizes.iter().copied() {
        let mut active = Active::new(plan.task, bytemuck::cast_slice_mut(memory.bytes()), size)?;
        let first = seen.samples.len();
        let mut kept = Vec::new();
        for run in 0..plan.runs {
            let mut guards = Vec::new();
            for activation in 0..plan.activations * SCENARIOS.len() {
                if watch.stopped() {
                    return Err(Error::new("stopped before the experiment was done"));
                }
                // In turn, so that what the machine does otherwise meets all alike.
                let scenario = activation % SCENARIOS.len();
                sentinel.read();
                sentinel.read();
                // What is in the partition at first, as it would be after the last activation.
                activate(clock, &mut active, 1.0);
                let before = activate(clock, &mut active, 1.0);
                floods.before(SCENARIOS[scenario]);
                witness.arm();
                let took = activate(clock, &mut active, run as f64);
                let interrupted = witness.interrupted();
                kept.push(sentinel.time(clock));
                activate(clock, &mut active, 1.0);
                let after = activate(clock, &mut active, 1.0);
                guards.push(before.max(after));
                seen.samples.push(Sample {
                    size,
                    scenario,
                    run,
                    ns: calibration.duration(took).nanos() as f64,
                    interrupted,
                    disturbed: false,
                    emptied: false,
                });
            }
            let most = ground::calm(&guards, CALM, calibration.step);
            let begun = seen.samples.len() - guards.len();
            for (sample, guard) in seen.samples[begun..].iter_mut().zip(guards) {
                sample.disturbed = guard > most;
            }
            witness.disarm();
            watch.advance(1);
        }
        // A flood of another kind leaves prefetchers and translations in another state: each has its own measure.
        for scenario in 0..SCENARIOS.len() {
            let of = |sample: &Sample| sample.scenario == scenario;
            let own = seen.samples[first..].iter().zip(&kept).filter(|(s, _)| of(s));
            let most = ground::calm(
                &own.map(|(_, kept)| *kept).collect::<Vec<_>>(),
                CALM,
                calibration.step,
            );
            for (sample, kept) in seen.samples[first..].iter_mut().zip(&kept).filter(|(s, _)| of(s)) {
                sample.emptied = *kept > most;
            }
        }
        let row = row_of(plan.task, size, plan.runs, &seen.samples[first..])?;
        seen.rows.push(row);
    }
    Ok(seen)
}

/// What the samples of one size say.
fn row_of(task: Task, size: usize, runs: usize, samples: &[Sample]) -> Result<Row> {
    let counted: Vec<&Sample> = samples.iter().filter(|s| s.counts()).collect();
    let of = |run: usize, scenario: usize| {
        counted
            .iter()
            .filter(move |s| s.run == run && s.scenario == scenario)
            .map(|s| s.ns)
    };
    let least: Vec<(usize, f64)> = (0..runs)
        .map(|run| (run, of(run, 0).fold(f64::INFINITY, f64::min)))
        .filter(|(_, least)| least.is_finite())
        .collect();
    if least.is_empty() {
        return Err(Error::new("every activation alone was interrupted or disturbed")
            .remedy("run it again when the machine is idle"));
    }
    // Runs in which nothing of a scenario counts say nothing of it.
    let over_runs = |value: &dyn Fn(usize, usize) -> f64| {
        std::array::from_fn(|scenario| {
            let ratios: Vec<f64> = least
                .iter()
                .filter(|(run, _)| of(*run, scenario).next().is_some())
                .map(|(run, least)| value(*run, scenario) / least.max(f64::MIN_POSITIVE))
                .collect();
            match ratios.is_empty() {
                true => f64::NAN,
                false => median(ratios),
            }
        })
    };
    Ok(Row {
        size,
        wss: task.wss(size),
        least_ns: median(least.iter().map(|l| l.1)),
        unpredictability: over_runs(&|run, scenario| of(run, scenario).fold(0.0, f64::max)),
        typical: over_runs(&|run, scenario| median(of(run, scenario))),
        interrupted: samples.iter().filter(|s| s.interrupted).count() as u64,
        disturbed: samples.iter().filter(|s| s.disturbed && !s.interrupted).count() as u64,
        emptied: samples
            .iter()
            .filter(|s| s.emptied && !s.disturbed && !s.interrupted)
            .count() as u64,
        counted: counted.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(run: usize, scenario: usize, ns: f64) -> Sample {
        Sample {
            size: 512,
            scenario,
            run,
            ns,
            interrupted: false,
            disturbed: false,
            emptied: false,
        }
    }

    #[test]
    fn unpredictability_is_the_longest_against_the_shortest_alone() {
        let mut samples = Vec::new();
        for run in 0..3 {
            samples.extend([sample(run, 0, 100.0), sample(run, 0, 110.0)]);
            samples.extend([sample(run, 1, 150.0), sample(run, 1, 200.0 + 100.0 * run as f64)]);
        }
        // Left out, however long it is.
        samples.push(Sample {
            interrupted: true,
            ..sample(0, 1, 9000.0)
        });
        samples.push(Sample {
            emptied: true,
            ..sample(0, 1, 9000.0)
        });
        samples.push(Sample {
            disturbed: true,
            ..sample(0, 0, 1.0)
        });
        let row = row_of(Task::Filter, 512, 3, &samples).unwrap();
        assert_eq!(row.least_ns, 100.0);
        assert_eq!(row.unpredictability[0], 1.1);
        assert_eq!(row.unpredictability[1], 3.0, "the median of 2, 3 and 4");
        assert_eq!(row.typical[1], 2.25);
        assert!(
            row.unpredictability[2].is_nan(),
            "nothing is said of what was not seen"
        );
        assert_eq!(
            (row.interrupted, row.disturbed, row.emptied, row.counted),
            (1, 1, 1, 12)
        );
        assert_eq!(row.wss, Bytes::from_kib(8));
    }

    #[test]
    fn a_run_without_any_activation_alone_is_refused() {
        assert!(row_of(Task::Filter, 4, 1, &[sample(0, 1, 5.0)]).is_err());
    }
}
