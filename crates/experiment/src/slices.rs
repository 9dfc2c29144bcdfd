//! A long task that is interrupted: the product of matrices in time slices, with a flood after each
//! (001 §5.4, Fig. 7).
//!
//! c_max is the processor time of the product when the cache is flooded whenever a slice has
//! passed, c_min without any interruption. A product takes so much less time than in the paper that
//! some are done one after the other, until they take about as long: so a slice means the same
//! share of the work.
//!
//! Slices are kept by looking at the clock after each row of a submatrix. A slice in which an
//! interrupt was seen is done again, flood included, and counted: what the product computes is the
//! same.

use crate::flood::{Flood, Scenario};
use crate::prepared::{self, Prepared, median};
use machine::clock::{Calibration, Clock};
use machine::interrupts::Witness;
use machine::threads::on_processor;
use machine::with_clock;
use model::watch::Watch;
use model::{Duration, Error, Result};
use partition::Colors;
use partition::frame::Page;
use serde::Serialize;
use std::hint::black_box;
use workload::matrix::{DOUBLES, Product, STEPS};

/// The time slices of Fig. 7.
pub const SLICES: [Duration; 7] = [
    Duration::from_micros(25),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(400),
    Duration::from_micros(700),
    Duration::from_micros(1000),
];
/// What a product takes alone on the Pentium of 133 MHz (001 §5.4).
const PAPER: Duration = Duration::from_micros(10_900);

/// What happens after a slice, in the order in which it is shown.
pub const SCENARIOS: [Scenario; 4] = [
    Scenario::Alone,
    Scenario::Unpartitioned,
    Scenario::Partitioned,
    Scenario::SingleWriter,
];

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The time slice.
    #[serde(rename = "slice_ns", serialize_with = "model::time::ns::serialize")]
    pub slice: Duration,
    /// The scenario, by its place in [`SCENARIOS`].
    pub scenario: usize,
    /// The run, from 0.
    pub run: usize,
    /// Processor time of all products.
    pub ns: f64,
}

/// The products with one time slice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The time slice.
    #[serde(rename = "slice_ns", serialize_with = "model::time::ns::serialize")]
    pub slice: Duration,
    /// c_max / c_min of each scenario: the longest run against the shortest alone.
    pub unpredictability: [f64; SCENARIOS.len()],
    /// The median run against the shortest alone.
    pub typical: [f64; SCENARIOS.len()],
    /// What a single interruption costs in the median, in nanoseconds: the time above that alone,
    /// for each slice.
    pub an_interruption_ns: [f64; SCENARIOS.len()],
}

/// What was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Seen {
    /// The colors of the matrices.
    pub data: Colors,
    /// The colors of code and stack.
    pub rest: Colors,
    /// How many products are done one after the other.
    pub products: usize,
    /// What one takes alone, in nanoseconds.
    pub product_ns: f64,
    /// How many runs.
    pub runs: usize,
    /// Slices that were done again.
    pub again: u64,
    /// Were interrupts seen?
    pub witnessed: bool,
    /// The rows, by time slice.
    pub rows: Vec<Row>,
    /// All measurements.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Runs the experiment with the matrices in the first `colors` colors, on the palette's processor.
///
/// # Errors
/// The processor cannot be used; too few colors or pages; interrupts in every slice; the user
/// stopped it before the first run was done. Stopped later, it says what the whole runs have shown.
pub fn run(
    prepared: &mut Prepared<'_>,
    colors: u16,
    runs: usize,
    watch: &dyn Watch,
) -> Result<Seen> {
    on_processor(
        prepared.palette.cpu,
        "the experiment",
        || with_clock!(clock => measure(clock, prepared, colors, runs, watch)),
    )
}

/// Computes from a step on until the slice has passed or the work is done; gives the next step and
/// the ticks it took.
#[inline(never)]
fn slice<C: Clock>(
    clock: C,
    product: &mut Product<'_>,
    from: usize,
    end: usize,
    ticks: u64,
) -> (usize, u64) {
    let start = clock.stamp();
    let mut step = from;
    while step < end {
        black_box(product.step(step));
        step += 1;
        if clock.glance().saturating_sub(start) >= ticks {
            break;
        }
    }
    (step, clock.stamp().saturating_sub(start))
}

/// How often an interrupted slice is done again before it is given up.
const PATIENCE: u64 = 1000;

/// All products in slices; the ticks they took, and how many slices were done again.
fn products<C: Clock>(
    clock: C,
    product: &mut Product<'_>,
    steps: usize,
    ticks: u64,
    witness: Witness,
    mut flood: impl FnMut(),
) -> Result<(u64, u64)> {
    let (mut total, mut again, mut step) = (0, 0, 0);
    for number in 0..STEPS {
        // Warm, as it is in the middle of long work.
        black_box(product.step(number));
    }
    while step < steps {
        let mut tries = 0;
        loop {
            witness.arm();
            let (next, took) = slice(clock, product, step, steps, ticks);
            let interrupted = witness.interrupted();
            flood();
            if !interrupted {
                step = next;
                total += took;
                break;
            }
            again += 1;
            tries += 1;
            if tries == PATIENCE {
                return Err(Error::new("every slice of a product was interrupted")
                    .remedy("run it again when the machine is idle"));
            }
        }
    }
    witness.disarm();
    Ok((total, again))
}

/// How long a product takes without time slices and floods, in nanoseconds; a tick of the clock
/// takes `tick`.
fn time_alone<C: Clock>(
    clock: C,
    product: &mut Product<'_>,
    tick: f64,
    witness: Witness,
) -> Result<f64> {
    let (ticks, _) = products(clock, product, 8 * STEPS, u64::MAX, witness, || {})?;
    Ok(ticks as f64 * tick / 8.0)
}

fn measure<C: Clock>(
    clock: C,
    prepared: &mut Prepared<'_>,
    colors: u16,
    runs: usize,
    watch: &dyn Watch,
) -> Result<Seen> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let witness = Witness::new();
    let data = Colors::first(colors);
    let mut below = 0_u64;
    black_box(&mut below);
    let mut own = prepared::code(&[
        slice::<C> as fn(C, &mut Product<'static>, usize, usize, u64) -> (usize, u64) as usize,
        Product::step as fn(&mut Product<'static>, usize) -> f64 as usize,
    ]);
    own.push(Page::under(&below));
    let rest = prepared.colors_of(&own, watch)?.difference(&data);
    drop(own);
    let bytes = DOUBLES * size_of::<f64>();
    let mut memory = prepared
        .pool
        .take(&data, bytes.div_ceil(partition::geometry::PAGE))?;
    let mut flood = Flood::new(prepared, &data, &rest, &Colors::new()).ok_or_else(|| {
        Error::new("no memory was made that can only be read: a defect of this program")
    })?;
    let mut product = Product::new(bytemuck::cast_slice_mut(memory.bytes()))?;
    let tick = calibration.duration(1_000_000).nanos().max(1) as f64 / 1e6;
    let product_ns = time_alone(clock, &mut product, tick, witness)?;
    let number = ((PAPER.nanos() as f64 / product_ns).round() as usize).max(1);
    let mut seen = Seen {
        data,
        rest,
        products: number,
        product_ns,
        runs,
        again: 0,
        witnessed: witness.works(),
        rows: Vec::new(),
        samples: Vec::new(),
    };
    watch.begin(
        "products of matrices in time slices",
        (runs * SLICES.len()) as u64,
    );
    'runs: for run in 0..runs {
        for length in SLICES {
            // In turn, so that what the machine does otherwise meets all alike.
            for (scenario, which) in SCENARIOS.into_iter().enumerate() {
                if watch.stopped() {
                    if run == 0 {
                        return Err(Error::new("stopped before the first run was done"));
                    }
                    seen.samples.retain(|sample| sample.run < run);
                    seen.runs = run;
                    break 'runs;
                }
                let ticks = (length.nanos() as f64 / tick) as u64;
                let (took, again) =
                    products(clock, &mut product, number * STEPS, ticks, witness, || {
                        flood.run(which, || {});
                    })?;
                seen.again += again;
                seen.samples.push(Sample {
                    slice: length,
                    scenario,
                    run,
                    ns: took as f64 * tick,
                });
            }
            watch.advance(1);
        }
    }
    seen.rows = SLICES
        .into_iter()
        .map(|length| row_of(length, &seen.samples))
        .collect();
    Ok(seen)
}

/// What the samples of one time slice say.
fn row_of(slice: Duration, samples: &[Sample]) -> Row {
    let of = |scenario: usize| {
        samples
            .iter()
            .filter(move |s| s.slice == slice && s.scenario == scenario)
            .map(|s| s.ns)
    };
    let least = of(0).fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE);
    let interruptions = (least / slice.nanos().max(1) as f64).max(1.0);
    Row {
        slice,
        unpredictability: std::array::from_fn(|s| of(s).fold(0.0, f64::max) / least),
        typical: std::array::from_fn(|s| median(of(s)) / least),
        an_interruption_ns: std::array::from_fn(|s| {
            (median(of(s)) - median(of(0))) / interruptions
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_compares_with_the_shortest_alone() {
        let slice = Duration::from_micros(100);
        let sample = |scenario, run, ns| Sample {
            slice,
            scenario,
            run,
            ns,
        };
        let samples = [
            sample(0, 0, 1_000_000.0),
            sample(0, 1, 1_100_000.0),
            sample(0, 2, 1_000_000.0),
            sample(1, 0, 2_000_000.0),
            sample(1, 1, 3_000_000.0),
            sample(1, 2, 2_000_000.0),
        ];
        let row = row_of(slice, &samples);
        assert_eq!(
            (row.unpredictability[0], row.unpredictability[1]),
            (1.1, 3.0)
        );
        assert_eq!(row.typical[1], 2.0);
        assert_eq!(
            row.an_interruption_ns[1], 100_000.0,
            "a million more in ten interruptions"
        );
    }

    #[test]
    fn slices_end_and_go_on_where_they_ended() {
        let mut memory = vec![0.0; DOUBLES];
        let mut product = Product::new(&mut memory).unwrap();
        let clock = machine::clock::Monotonic;
        assert_eq!(slice(clock, &mut product, 5, 40, 0).0, 6, "at least a step");
        assert_eq!(slice(clock, &mut product, 5, 40, u64::MAX).0, 40);
        let mut floods = 0;
        let (took, again) = products(clock, &mut product, 100, 0, Witness::blind(), || {
            floods += 1
        })
        .unwrap();
        assert_eq!((floods, again), (100, 0));
        assert!(took > 0);
    }
}
