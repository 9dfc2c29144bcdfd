//! Short tasks that are activated after a flood of the cache (001 §5.2, §5.3, Figs. 4 and 5).
//!
//! Unpredictability is c_max / c_min: the longest activation after a flood against the shortest
//! alone.
//!
//! 001 turns interrupts off while a task is active, and has the machine for itself. Here interrupts
//! stay on, and a processor may be shared with what a hypervisor does not show. So four kinds of
//! activations are left out and counted: *interrupted* ones, which a [`Witness`] tells; *disturbed*
//! ones: before the flood and after the activation the task is activated with a warm cache, and
//! where one of these guards took longer than [`CALM`] times the first quartile of its run,
//! something else slowed the machine down; *held* ones: a step of the flood (a page) took longer
//! than [`HELD`] times what the longest one usually takes, so that an interrupt or a hypervisor had
//! the processor, and its caches, between; and those after which the [`Sentinel`], memory that
//! nothing of ours touches, had lost lines as well: *emptied*. None of these looks at the
//! activation itself, so that none is left out for being slow.

use crate::flood::SCENARIOS;
use crate::prepared::{Prepared, Sample, median};
use machine::threads::on_processor;
use machine::with_clock;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Result};
use partition::Colors;
use serde::Serialize;

pub use crate::task::Task;

mod measuring;
use measuring::measure;

/// Sizes as in Fig. 4 of 001: from 4 to 8192.
pub const SIZES: [usize; 12] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// How many times as long as the first quartile a guard may take.
pub const CALM: f64 = 1.05;
/// How many times as many colors as the task the sentinel has.
const WATCHED: usize = 3;
/// How many times as long as the first quartile the longest step of a flood may take.
pub const HELD: f64 = 1.5;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The task.
    pub task: Task,
    /// Its sizes; those whose memory is larger than the partition drive their own lines out of it.
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
    #[serde(serialize_with = "crate::whole::one")]
    pub min_ns: f64,
    /// The shortest activation alone with its memory in all colors that are free: what it takes
    /// where it has the whole cache, in nanoseconds.
    #[serde(serialize_with = "crate::whole::one")]
    pub whole_ns: f64,
    /// c_max / c_min of each scenario, in the order of [`SCENARIOS`]: medians over the runs; not a
    /// number where none counts.
    pub unpredictability: [f64; SCENARIOS.len()],
    /// Median activation of each scenario against the shortest alone, likewise.
    pub typical: [f64; SCENARIOS.len()],
    /// Activations that were interrupted and left out.
    pub interrupted: u64,
    /// Activations that were not, but something slowed the machine down around them: left out, too.
    pub disturbed: u64,
    /// Activations that were neither, but somebody had the processor during the flood: left out,
    /// too.
    pub held: u64,
    /// Activations that were none of these, but the sentinel lost lines: left out, too.
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
    /// How many runs.
    pub runs: usize,
    /// Activations of a scenario in each.
    pub activations: usize,
    /// How long a flood lasts.
    #[serde(
        rename = "flood_lasts_ns",
        serialize_with = "model::time::ns::serialize"
    )]
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
/// The processor cannot be used; too few colors or pages; every activation was interrupted; the
/// user stopped it before the first size was done. Stopped later, it says what the sizes that are
/// done have shown.
pub fn run(prepared: &mut Prepared<'_>, plan: &Plan<'_>, watch: &dyn Watch) -> Result<Seen> {
    on_processor(
        prepared.palette.cpu,
        "the experiment",
        || with_clock!(clock => measure(clock, prepared, plan, watch)),
    )
}

/// What the samples of one size say, which takes `whole_ns` where it has the whole cache.
fn row_of(task: Task, size: usize, runs: usize, whole_ns: f64, samples: &[Sample]) -> Result<Row> {
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
        return Err(
            Error::new("every activation alone was interrupted or disturbed")
                .remedy("run it again when the machine is idle"),
        );
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
        min_ns: median(least.iter().map(|l| l.1)),
        whole_ns,
        unpredictability: over_runs(&|run, scenario| of(run, scenario).fold(0.0, f64::max)),
        typical: over_runs(&|run, scenario| median(of(run, scenario))),
        interrupted: samples.iter().filter(|s| s.interrupted).count() as u64,
        disturbed: samples
            .iter()
            .filter(|s| s.disturbed && !s.interrupted)
            .count() as u64,
        held: samples
            .iter()
            .filter(|s| s.held && !s.disturbed && !s.interrupted)
            .count() as u64,
        emptied: samples
            .iter()
            .filter(|s| s.emptied && !s.held && !s.disturbed && !s.interrupted)
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
            step_ns: 1.0,
            sentinel_ns: 1.0,
            interrupted: false,
            disturbed: false,
            held: false,
            emptied: false,
        }
    }

    #[test]
    fn unpredictability_is_the_longest_against_the_shortest_alone() {
        let mut samples = Vec::new();
        for run in 0..3 {
            samples.extend([sample(run, 0, 100.0), sample(run, 0, 110.0)]);
            samples.extend([
                sample(run, 1, 150.0),
                sample(run, 1, 200.0 + 100.0 * run as f64),
            ]);
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
        samples.push(Sample {
            held: true,
            ..sample(0, 1, 9000.0)
        });
        let row = row_of(Task::Filter, 512, 3, 90.0, &samples).unwrap();
        assert_eq!((row.min_ns, row.whole_ns), (100.0, 90.0));
        assert_eq!(row.unpredictability[0], 1.1);
        assert_eq!(row.unpredictability[1], 3.0, "the median of 2, 3 and 4");
        assert_eq!(row.typical[1], 2.25);
        assert!(
            row.unpredictability[2].is_nan(),
            "nothing is said of what was not seen"
        );
        assert_eq!(
            (
                row.interrupted,
                row.disturbed,
                row.held,
                row.emptied,
                row.counted
            ),
            (1, 1, 1, 1, 12)
        );
        assert_eq!(row.wss, Bytes::from_kib(4), "words of four bytes");
    }

    #[test]
    fn a_run_without_any_activation_alone_is_refused() {
        assert!(row_of(Task::Filter, 4, 1, 5.0, &[sample(0, 1, 5.0)]).is_err());
    }
}
