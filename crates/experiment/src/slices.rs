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
//!
//! The matrices have a color each, and code and stack others, as in the paper; c has one too, as
//! caches fetch here what is written. Once more all three have one color together: a partition that
//! is smaller than what works in it, as the paper's of three pages was.

use crate::flood::{Flood, Scenario};
use crate::prepared::{self, Prepared, median};
use machine::clock::{Calibration, Clock};
use machine::interrupts::Witness;
use machine::threads::on_processor;
use machine::with_clock;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Result};
use partition::frame::Page;
use partition::geometry::PAGE;
use partition::{Colors, Pool, View};
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
    #[serde(serialize_with = "crate::whole::each")]
    pub an_interruption_ns: [f64; SCENARIOS.len()],
}

/// What was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Seen {
    /// The colors of code and stack.
    pub rest: Colors,
    /// How many products are done one after the other.
    pub products: usize,
    /// How many runs.
    pub runs: usize,
    /// Slices that were done again.
    pub again: u64,
    /// Were interrupts seen?
    pub witnessed: bool,
    /// The matrices in colors of their own, then in one.
    pub layouts: Vec<Laid>,
}

/// What was seen with the matrices in some colors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Laid {
    /// The colors of a, b and c.
    pub matrices: [Colors; MATRICES],
    /// How much of the cache these are.
    pub partition: Bytes,
    /// What a product takes alone, in nanoseconds.
    #[serde(serialize_with = "crate::whole::one")]
    pub product_ns: f64,
    /// The rows, by time slice.
    pub rows: Vec<Row>,
    /// All measurements.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// How many matrices a product has.
pub const MATRICES: usize = 3;

/// Colors for a, b and c: these in turn, and again where there are fewer.
pub(crate) fn in_turn(colors: &Colors) -> [Colors; MATRICES] {
    let all: Vec<_> = colors.iter().collect();
    std::array::from_fn(|matrix| match all.len() {
        0 => Colors::new(),
        few @ 1..MATRICES => Colors::from_iter([all[matrix % few]]),
        _ => all.iter().copied().skip(matrix).step_by(MATRICES).collect(),
    })
}

/// Memory of the product with a, b and c in these colors.
///
/// # Errors
/// A color has too few pages.
pub(crate) fn memory_of(pool: &Pool, matrices: &[Colors; MATRICES]) -> Result<View> {
    let pages = DOUBLES / MATRICES * size_of::<f64>() / PAGE;
    pool.take_parts(&matrices.each_ref().map(|colors| (colors, pages)))
}

/// Runs the experiment with the matrices in `colors` colors in turn, then in one, on the palette's
/// processor.
///
/// # Errors
/// The processor cannot be used; too few colors or pages; interrupts in every slice; the user
/// stopped it before the first run was done. Stopped later, it says what whole runs have shown.
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
    let mut below = 0_u64;
    black_box(&mut below);
    let mut own = prepared::code(&[
        slice::<C> as fn(C, &mut Product<'static>, usize, usize, u64) -> (usize, u64) as usize,
        Product::step as fn(&mut Product<'static>, usize) -> f64 as usize,
    ]);
    own.push(Page::under(&below));
    let rest = prepared.colors_of(&own, watch)?;
    drop(own);
    let apart = prepared.first_beside(&rest, colors)?;
    let mut rig = Rig {
        clock,
        witness: Witness::new(),
        tick: calibration.duration(1_000_000).nanos().max(1) as f64 / 1e6,
        runs,
        seen: Seen {
            rest,
            products: 0,
            runs,
            again: 0,
            witnessed: false,
            layouts: Vec::new(),
        },
    };
    rig.seen.witnessed = rig.witness.works();
    watch.begin(
        "products of matrices in time slices",
        (2 * runs * SLICES.len()) as u64,
    );
    for colors in [apart.clone(), apart.iter().take(1).collect()] {
        if !rig.lay(prepared, &colors, watch)? {
            break;
        }
    }
    Ok(rig.seen)
}

/// What measures, and what was seen so far.
struct Rig<C> {
    clock: C,
    witness: Witness,
    /// Nanoseconds of a tick.
    tick: f64,
    runs: usize,
    seen: Seen,
}

impl<C: Clock> Rig<C> {
    /// All runs with the matrices in these colors in turn. False: the user stopped it.
    fn lay(
        &mut self,
        prepared: &mut Prepared<'_>,
        colors: &Colors,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let matrices = in_turn(colors);
        let one = prepared.palette.cache.of_one_color().get();
        let partition = Bytes::new(one * colors.len() as u64);
        let mut memory = memory_of(&prepared.pool, &matrices)?;
        let mut flood = Flood::new(prepared, colors, &self.seen.rest, &Colors::new())?;
        let mut product = Product::new(bytemuck::cast_slice_mut(memory.bytes()))?;
        let product_ns = time_alone(self.clock, &mut product, self.tick, self.witness)?;
        if self.seen.layouts.is_empty() {
            self.seen.products = ((PAPER.nanos() as f64 / product_ns).round() as usize).max(1);
        }
        let mut samples = Vec::new();
        let mut done = 0;
        while done < self.runs && self.run(done, &mut product, &mut flood, &mut samples, watch)? {
            done += 1;
        }
        samples.retain(|sample: &Sample| sample.run < done);
        if done == 0 {
            return match self.seen.layouts.is_empty() {
                true => Err(Error::new("stopped before the first run was done")),
                false => Ok(false),
            };
        }
        self.seen.runs = self.seen.runs.min(done);
        self.seen.layouts.push(Laid {
            matrices,
            partition,
            product_ns,
            rows: SLICES.map(|length| row_of(length, &samples)).to_vec(),
            samples,
        });
        Ok(done == self.runs)
    }

    /// One run with each time slice and scenario. False: the user stopped it.
    fn run(
        &mut self,
        run: usize,
        product: &mut Product<'_>,
        flood: &mut Flood<'_>,
        samples: &mut Vec<Sample>,
        watch: &dyn Watch,
    ) -> Result<bool> {
        for length in SLICES {
            // In turn, so that what the machine does otherwise meets all alike.
            for (scenario, which) in SCENARIOS.into_iter().enumerate() {
                if watch.stopped() {
                    return Ok(false);
                }
                let steps = self.seen.products * STEPS;
                let ticks = (length.nanos() as f64 / self.tick) as u64;
                let (took, again) =
                    products(self.clock, product, steps, ticks, self.witness, || {
                        flood.run(which, || {});
                    })?;
                self.seen.again += again;
                samples.push(Sample {
                    slice: length,
                    scenario,
                    run,
                    ns: took as f64 * self.tick,
                });
            }
            watch.advance(1);
        }
        Ok(true)
    }
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
    fn matrices_have_colors_in_turn_and_share_where_there_are_fewer() {
        let colors = |text: &str| text.parse::<Colors>().unwrap();
        let turn = |text: &str| in_turn(&colors(text));
        assert_eq!(turn("2-4"), [colors("2"), colors("3"), colors("4")]);
        assert_eq!(turn("0-4"), [colors("0,3"), colors("1,4"), colors("2")]);
        assert_eq!(turn("5,7"), [colors("5"), colors("7"), colors("5")]);
        assert_eq!(turn("6"), [colors("6"), colors("6"), colors("6")]);
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
