//! A short and a long task together: the product of matrices, interrupted by the filter at a
//! constant rate (001 §5.5, Fig. 8).
//!
//! Measured is the real time of a product: in every period the filter is served first, the product
//! gets the rest. The matrices have colors of their own in turn, code and stack others.
//! Partitioned, the filter has colors of its own; unpartitioned, it has exactly those of the
//! matrices. As in the paper, the filter is so large that every activation drives the matrices out
//! there: with w ways, that takes all pages of its colors.
//!
//! A product is many times faster than in the paper, so rates of 2 to 20 kHz meet it less often.
//! Higher rates are measured, too, each told with the rate that gave as many activations for a
//! product in the paper.
//!
//! Periods in which an interrupt was seen count neither their time nor their work.

use crate::prepared::{self, Prepared, median};
use crate::slices::{in_turn, memory_of};
use machine::clock::{Calibration, Clock};
use machine::interrupts::Witness;
use machine::threads::on_processor;
use machine::with_clock;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Result};
use partition::frame::Page;
use partition::{Colors, View};
use serde::Serialize;
use std::hint::black_box;
use workload::filter::{self, Filter};
use workload::matrix::{Product, STEPS};

/// Words of the filter (001 §5.2).
type Word = f32;

/// Rates as in Fig. 8, in hertz.
pub const RATES: [f64; 7] = [2e3, 3e3, 5e3, 8e3, 10e3, 15e3, 20e3];
/// Higher rates, in hertz: where the filter leaves the product some time.
pub const HIGHER: [f64; 6] = [50e3, 100e3, 200e3, 300e3, 400e3, 450e3];
/// What a product takes alone on the Pentium of 133 MHz (001 §5.4), in nanoseconds.
const PAPER_NS: f64 = 10.9e6;
/// How long the products of a measurement take together at least, in nanoseconds.
const LONG_NS: f64 = 8e6;

/// One rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Activations of the filter in a second.
    pub rate: f64,
    /// The rate that gave as many activations for a product in the paper.
    pub paper_rate: f64,
    /// Real time of a product, in nanoseconds: median over the runs. Not a number where the filter
    /// left it no time.
    #[serde(serialize_with = "crate::whole::one")]
    pub partitioned_ns: f64,
    /// The same, unpartitioned.
    #[serde(serialize_with = "crate::whole::one")]
    pub unpartitioned_ns: f64,
    /// An activation of the filter: partitioned, in nanoseconds, median.
    #[serde(serialize_with = "crate::whole::one")]
    pub filter_partitioned_ns: f64,
    /// The same, unpartitioned.
    #[serde(serialize_with = "crate::whole::one")]
    pub filter_unpartitioned_ns: f64,
}

impl Row {
    /// How many times as long a product takes unpartitioned.
    pub fn ratio(&self) -> f64 {
        self.unpartitioned_ns / self.partitioned_ns
    }
}

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The rate, in hertz.
    pub rate: f64,
    /// Has the filter colors of its own?
    pub partitioned: bool,
    /// The run, from 0.
    pub run: usize,
    /// Real time of a product, in nanoseconds.
    pub product_ns: f64,
    /// An activation of the filter, in nanoseconds.
    pub filter_ns: f64,
    /// Periods that were interrupted and do not count.
    pub interrupted: u64,
}

/// What was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Seen {
    /// The colors of the matrices.
    pub data: Colors,
    /// The colors of code and stack.
    pub rest: Colors,
    /// The colors of the filter, where it has its own.
    pub filter: Colors,
    /// Its coefficients.
    pub coefficients: usize,
    /// Its memory.
    pub filter_wss: Bytes,
    /// A product alone, in nanoseconds.
    #[serde(serialize_with = "crate::whole::one")]
    pub product_ns: f64,
    /// How many runs.
    pub runs: usize,
    /// The rates of the paper.
    pub rows: Vec<Row>,
    /// Higher ones.
    pub higher: Vec<Row>,
    /// All measurements.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Runs the experiment with the matrices in `colors` colors in turn, on the palette's processor.
///
/// # Errors
/// The processor cannot be used; too few colors or pages; the user stopped it before the first run
/// was done. Stopped later, it says what the whole runs have shown.
pub fn run(prepared: &Prepared<'_>, colors: u16, runs: usize, watch: &dyn Watch) -> Result<Seen> {
    on_processor(
        prepared.palette.cpu,
        "the experiment",
        || with_clock!(clock => measure(clock, prepared, colors, runs, watch)),
    )
}

/// What came of some products, in ticks.
#[derive(Clone, Copy, Default, Debug)]
struct Measured {
    /// Real time, less that of interrupted periods.
    real: u64,
    /// Time of the filter.
    filter: u64,
    /// Periods that count.
    periods: u64,
    interrupted: u64,
    /// Steps of the product that were done.
    steps: usize,
}

/// Products until `steps` are done or `patience` ticks have passed, in periods of `period` ticks
/// that begin with the filter.
#[inline(never)]
fn periods<C: Clock>(
    clock: C,
    filter: &mut Filter<'_, Word>,
    product: &mut Product<'_>,
    period: u64,
    steps: usize,
    patience: u64,
    witness: Witness,
) -> Measured {
    let mut measured = Measured::default();
    let first = clock.glance();
    while measured.steps < steps && clock.glance().saturating_sub(first) < patience {
        witness.arm();
        let start = clock.stamp();
        black_box(filter.step(1.0));
        let served = clock.stamp();
        let mut step = measured.steps;
        while step < steps && clock.glance().saturating_sub(start) < period {
            black_box(product.step(step));
            step += 1;
        }
        let end = clock.stamp();
        if witness.interrupted() {
            measured.interrupted += 1;
            continue;
        }
        measured.steps = step;
        // A period is as long as it is meant to be, but for the last one; and never shorter than
        // what was done in it.
        measured.real += end.saturating_sub(start);
        measured.filter += served.saturating_sub(start);
        measured.periods += 1;
    }
    witness.disarm();
    measured
}

/// The product without a filter, over 20 products: how long one takes, in ticks.
fn alone<C: Clock>(clock: C, product: &mut Product<'_>, witness: Witness) -> Result<f64> {
    let mut small = [0.0; filter::words(1)];
    let mut nothing = Filter::new(&mut small, 1)?;
    let many = periods(
        clock,
        &mut nothing,
        product,
        u64::MAX,
        20 * STEPS,
        u64::MAX,
        witness,
    );
    Ok(many.real as f64 / 20.0)
}

/// A product beside a filter, as often as it takes to measure it.
struct Pair<'a, C> {
    clock: C,
    witness: Witness,
    product: Product<'a>,
    /// Of the filter.
    coefficients: usize,
    /// How many products are made.
    products: usize,
    /// Nanoseconds of a tick.
    tick: f64,
}

impl<C: Clock> Pair<'_, C> {
    /// One sample at a rate, with the filter in memory of its own or of the product's colors.
    fn sample(
        &mut self,
        rate: f64,
        run: usize,
        view: &mut View,
        partitioned: bool,
    ) -> Result<Sample> {
        let tick = self.tick;
        let mut filter = Filter::new(bytemuck::cast_slice_mut(view.bytes()), self.coefficients)?;
        let period = (1e9 / rate / tick) as u64;
        // At a rate that leaves the product no time there is an end, too.
        let patience = (20.0 * LONG_NS / tick) as u64;
        let steps = self.products * STEPS;
        let product = &mut self.product;
        let got = periods(
            self.clock,
            &mut filter,
            product,
            period,
            steps,
            patience,
            self.witness,
        );
        let done = got.steps as f64 / STEPS as f64;
        Ok(Sample {
            rate,
            partitioned,
            run,
            product_ns: match got.steps < steps {
                true => f64::NAN,
                false => got.real as f64 * tick / done,
            },
            filter_ns: got.filter as f64 * tick / got.periods.max(1) as f64,
            interrupted: got.interrupted,
        })
    }
}

fn measure<C: Clock>(
    clock: C,
    prepared: &Prepared<'_>,
    colors: u16,
    runs: usize,
    watch: &dyn Watch,
) -> Result<Seen> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let witness = Witness::new();
    let tick = calibration.duration(1_000_000).nanos().max(1) as f64 / 1e6;
    let mut below = 0_u64;
    black_box(&mut below);
    let mut code = prepared::code(&[
        periods::<C>
            as fn(
                C,
                &mut Filter<'static, Word>,
                &mut Product<'static>,
                u64,
                usize,
                u64,
                Witness,
            ) -> Measured as usize,
        Filter::step as fn(&mut Filter<'static, Word>, f64) -> f64 as usize,
        Product::step as fn(&mut Product<'static>, usize) -> f64 as usize,
    ]);
    code.push(Page::under(&below));
    let rest = prepared.colors_of(&code, watch)?;
    drop(code);
    let data = prepared.first_beside(&rest, colors)?;
    let own = prepared
        .first_beside(&rest.union(&data), colors)
        .map_err(|_| {
            Error::new(format!(
                "{colors} colors for the matrices leave too few for the filter"
            ))
            .remedy("give them fewer")
        })?;
    let page = partition::geometry::PAGE;
    let filter_pages = prepared.palette.cache.ways as usize * data.len();
    let coefficients = filter_pages * page / size_of::<Word>() / filter::words(1);
    let mut memory = memory_of(&prepared.pool, &in_turn(&data))?;
    let mut product = Product::new(bytemuck::cast_slice_mut(memory.bytes()))?;
    let mut partitioned = prepared.pool.take(&own, filter_pages)?;
    let mut unpartitioned = prepared.pool.take(&data, filter_pages)?;
    let alone = alone(clock, &mut product, witness)? * tick;
    let mut seen = Seen {
        data,
        rest,
        filter: own,
        coefficients,
        filter_wss: Bytes::new((filter_pages * page) as u64),
        product_ns: alone,
        runs,
        rows: Vec::new(),
        higher: Vec::new(),
        samples: Vec::new(),
    };
    let mut pair = Pair {
        clock,
        witness,
        product,
        coefficients,
        products: (LONG_NS / alone).ceil().max(1.0) as usize,
        tick,
    };
    let rates: Vec<f64> = RATES.into_iter().chain(HIGHER).collect();
    watch.begin(
        "a product of matrices beside a filter",
        (runs * rates.len()) as u64,
    );
    'runs: for run in 0..runs {
        for rate in rates.iter().copied() {
            if watch.stopped() {
                if run == 0 {
                    return Err(Error::new("stopped before the first run was done"));
                }
                seen.samples.retain(|sample| sample.run < run);
                seen.runs = run;
                break 'runs;
            }
            seen.samples
                .push(pair.sample(rate, run, &mut partitioned, true)?);
            seen.samples
                .push(pair.sample(rate, run, &mut unpartitioned, false)?);
            watch.advance(1);
        }
    }
    let row = |rate: f64| row_of(rate, rate * alone / PAPER_NS, &seen.samples);
    let (rows, higher) = (RATES.map(row), HIGHER.map(row));
    seen.rows = rows.to_vec();
    seen.higher = higher.to_vec();
    Ok(seen)
}

/// What the samples of one rate say.
fn row_of(rate: f64, paper_rate: f64, samples: &[Sample]) -> Row {
    let of = |partitioned: bool, value: fn(&Sample) -> f64| {
        let values: Vec<f64> = samples
            .iter()
            .filter(|s| s.rate == rate && s.partitioned == partitioned)
            .map(value)
            .filter(|v| v.is_finite())
            .collect();
        match values.is_empty() {
            true => f64::NAN,
            false => median(values),
        }
    };
    Row {
        rate,
        paper_rate,
        partitioned_ns: of(true, |s| s.product_ns),
        unpartitioned_ns: of(false, |s| s.product_ns),
        filter_partitioned_ns: of(true, |s| s.filter_ns),
        filter_unpartitioned_ns: of(false, |s| s.filter_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::matrix::DOUBLES;

    #[test]
    fn medians_of_what_was_finished_are_compared() {
        let sample = |partitioned, run, product_ns| Sample {
            rate: 5e3,
            partitioned,
            run,
            product_ns,
            filter_ns: 7.0,
            interrupted: 0,
        };
        let samples = [
            sample(true, 0, 100.0),
            sample(true, 1, 120.0),
            sample(true, 2, f64::NAN),
            sample(false, 0, 220.0),
        ];
        let row = row_of(5e3, 5e3, &samples);
        assert_eq!((row.partitioned_ns, row.ratio()), (110.0, 2.0));
        assert!(row_of(6e3, 6e3, &samples).partitioned_ns.is_nan());
    }

    #[test]
    fn a_period_serves_the_filter_first_and_ends_when_the_work_is_done() {
        let (mut a, mut b) = (vec![0.0; 8], vec![0.0; DOUBLES]);
        let mut filter = Filter::new(&mut a, 4).unwrap();
        let mut product = Product::new(&mut b).unwrap();
        let clock = machine::clock::Monotonic;
        let blind = Witness::blind();
        let all = periods(
            clock,
            &mut filter,
            &mut product,
            u64::MAX,
            50,
            u64::MAX,
            blind,
        );
        assert_eq!((all.steps, all.periods, all.interrupted), (50, 1, 0));
        assert!(all.filter <= all.real);
        let none = periods(clock, &mut filter, &mut product, 0, 50, 2_000_000, blind);
        assert_eq!(none.steps, 0, "the filter takes all of the time");
        assert!(none.periods > 1);
    }
}
