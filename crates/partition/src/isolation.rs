//! Does a color isolate? The digital filter beside the flooder on one processor (001 §5.1 and §5.2, Fig. 4; §5.3).
//!
//! A filter of n coefficients runs for short, and a flooder reads and writes all of the cache between its activations.
//! Unpredictability is c_max / c_min: the longest activation after a flood against the shortest alone. Five ways:
//! *alone* (nobody floods), *unpartitioned* (the flooder has pages of all colors), *partitioned* (it has none of the
//! filter's), *single writer* (§5.3: it may read pages of the filter's colors but not write them), *translations* (only
//! the translations of the filter's addresses are lost, which are nobody's color: 001 §4.2).
//!
//! 001 turns interrupts off while a task is active. Here they stay on; a [`Witness`] tells which activations were
//! interrupted, from the beginning of the flood on, and these are left out and counted.

use crate::colors::{Color, Colors};
use crate::frame::Page;
use crate::geometry::PAGE;
use crate::palette::{Palette, with_clock};
use machine::clock::{Calibration, Clock, Monotonic};
use machine::interrupts::Witness;
use machine::memory::LINE;
use model::watch::Watch;
use model::{Bytes, CpuSet, Duration, Error, Result};
use serde::Serialize;
use std::hint::black_box;

/// Coefficients of the filter in Fig. 4 of 001: from 4 to 8192.
pub const SIZES: [usize; 12] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Doubles of a page.
const PER_PAGE: usize = PAGE / size_of::<f64>();

/// What happens between two activations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Nothing.
    Alone,
    /// A flood of all colors.
    Unpartitioned,
    /// A flood of all colors but the filter's.
    Partitioned,
    /// The same, and pages of the filter's colors are read but not written.
    SingleWriter,
    /// One line of each page of the partitioned flood is read: hardly any of the cache is used, but the translations of
    /// addresses are lost. What a partition cannot keep.
    Translations,
}

/// All scenarios, in the order in which they are shown.
pub const SCENARIOS: [Scenario; 5] = [
    Scenario::Alone,
    Scenario::Unpartitioned,
    Scenario::Partitioned,
    Scenario::SingleWriter,
    Scenario::Translations,
];

/// The filter of one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of coefficients.
    pub coefficients: usize,
    /// Coefficients and samples together.
    pub wss: Bytes,
    /// The shortest activation alone: median over the runs, in nanoseconds.
    pub least_ns: f64,
    /// c_max / c_min of each scenario, in the order of [`SCENARIOS`]: medians over the runs.
    pub unpredictability: [f64; 5],
    /// Activations that were interrupted and left out.
    pub interrupted: u64,
    /// Activations that count.
    pub counted: u64,
}

/// The experiment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Isolation {
    /// The filter's colors.
    pub colors: Colors,
    /// How much of the cache they are.
    pub partition: Bytes,
    /// How many runs, and activations of a scenario in each.
    pub runs: (usize, usize),
    /// Were interrupts seen? Where not, all activations count.
    pub witnessed: bool,
    /// The rows, by number of coefficients.
    pub rows: Vec<Row>,
}

impl Isolation {
    /// The row whose working set is nearest to half of the partition.
    pub fn at_half(&self) -> Option<&Row> {
        let half = self.partition.get() / 2;
        self.rows.iter().min_by_key(|r| r.wss.get().abs_diff(half))
    }
}

/// Runs the experiment with the filter in the first `colors` colors. It owns the palette meanwhile: the filter's data
/// lies in its pages.
///
/// # Errors
/// The processor cannot be used; too few colors or pages; every activation was interrupted; the user stopped it.
pub fn filter(
    palette: &mut Palette,
    colors: u16,
    sizes: &[usize],
    runs: usize,
    activations: usize,
    watch: &dyn Watch,
) -> Result<Isolation> {
    let palette = &*palette;
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            machine::realtime::pin(&CpuSet::from_iter([palette.cpu]))?;
            with_clock!(clock => run(clock, palette, colors, sizes, runs, activations, watch))
        });
        measured
            .join()
            .unwrap_or_else(|_| Err(Error::new("the experiment broke off: a defect of this program")))
    })
}

/// The filter's data: coefficients and the last samples, page by page, and where the newest sample is.
struct Filter {
    coefficients: Vec<*mut f64>,
    samples: Vec<*mut f64>,
    taps: usize,
    newest: usize,
}

impl Filter {
    /// In these pages, which are the filter's alone.
    fn new(pages: &[Page<'_>], taps: usize) -> Self {
        let each = taps.div_ceil(PER_PAGE);
        let at = |page: &Page<'_>| page.address() as *mut f64;
        let filter = Filter {
            coefficients: pages[..each].iter().map(at).collect(),
            samples: pages[each..2 * each].iter().map(at).collect(),
            taps,
            newest: 0,
        };
        for i in 0..taps {
            // SAFETY: within pages that nobody else writes, by the exclusive palette.
            unsafe {
                filter.coefficients[i / PER_PAGE]
                    .add(i % PER_PAGE)
                    .write(1.0 / (i + 1) as f64);
                filter.samples[i / PER_PAGE].add(i % PER_PAGE).write(0.0);
            }
        }
        filter
    }

    /// Takes a sample in and gives the sum of c_i x_(t-i) (001 §5.2).
    #[inline(never)]
    fn step(&mut self, sample: f64) -> f64 {
        let taps = self.taps;
        // The newest sample lies lowest, so that both arrays are walked upwards.
        self.newest = (self.newest + taps - 1) % taps;
        // SAFETY: `newest` is below `taps`.
        unsafe {
            self.samples[self.newest / PER_PAGE]
                .add(self.newest % PER_PAGE)
                .write(sample);
        }
        let mut sums = [0.0; 4];
        let mut done = 0;
        while done < taps {
            let at = if self.newest + done < taps {
                self.newest + done
            } else {
                self.newest + done - taps
            };
            let length = (PER_PAGE - done % PER_PAGE)
                .min(PER_PAGE - at % PER_PAGE)
                .min(taps - done)
                .min(taps - at);
            // SAFETY: both stretches lie within one page each, and below `taps`.
            let (c, x) = unsafe {
                (
                    std::slice::from_raw_parts(
                        self.coefficients[done / PER_PAGE].add(done % PER_PAGE),
                        length,
                    ),
                    std::slice::from_raw_parts(self.samples[at / PER_PAGE].add(at % PER_PAGE), length),
                )
            };
            let mut four = c.chunks_exact(4).zip(x.chunks_exact(4));
            for (c, x) in &mut four {
                for lane in 0..4 {
                    sums[lane] += c[lane] * x[lane];
                }
            }
            let rest = length - length % 4;
            for i in rest..length {
                sums[0] += c[i] * x[i];
            }
            done += length;
        }
        sums.iter().sum()
    }
}

/// Reads lines of pages, and writes those of the first part.
#[inline(never)]
fn flood(written: &[Page<'_>], read: &[Page<'_>]) {
    for page in written {
        for offset in (0..PAGE).step_by(LINE) {
            let value = page.read(offset);
            // SAFETY: a page of the palette that is not the filter's; nobody else uses it meanwhile.
            unsafe { ((page.address() + offset) as *mut u64).write_volatile(value.wrapping_add(1)) };
        }
    }
    for page in read {
        for offset in (0..PAGE).step_by(LINE) {
            page.read(offset);
        }
    }
}

/// Reads one line of each page, a different one from page to page.
#[inline(never)]
fn translate(pages: &[Page<'_>]) {
    for (place, page) in pages.iter().enumerate() {
        page.read(place * LINE % PAGE);
    }
}

fn run<C: Clock>(
    clock: C,
    palette: &Palette,
    colors: u16,
    sizes: &[usize],
    runs: usize,
    activations: usize,
    watch: &dyn Watch,
) -> Result<Isolation> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let witness = Witness::new();
    let number = palette.colors();
    if colors == 0 || colors >= number {
        return Err(
            Error::new(format!("{colors} of {number} colors cannot be the filter's"))
                .remedy(format!("choose between 1 and {}", number.saturating_sub(1))),
        );
    }
    // In turn: the filter's pages are spread evenly over its colors.
    let own = Colors::first(colors);
    let ways = palette.cache.ways as usize;
    let mut pages = Vec::new();
    let mut rivals = Vec::new();
    let mut others = Vec::new();
    for color in (0..number).map(Color) {
        let members = palette.members(color);
        if own.contains(color) {
            // No more than the partition holds are the filter's; the rest of the color is the flooder's.
            pages.push(members[..ways].to_vec());
            rivals.extend_from_slice(&members[ways..]);
        } else {
            others.extend(members);
        }
    }
    let pages: Vec<Page<'_>> = (0..ways).flat_map(|i| pages.iter().map(move |p| p[i])).collect();
    let all: Vec<Page<'_>> = rivals.iter().chain(&others).copied().collect();
    watch.begin("filter beside the flooder", (sizes.len() * runs) as u64);
    let mut rows = Vec::new();
    for taps in sizes.iter().copied() {
        if 2 * taps.div_ceil(PER_PAGE) > pages.len() || taps == 0 {
            return Err(Error::new(format!(
                "a filter of {taps} coefficients does not fit into {} pages",
                pages.len()
            ))
            .remedy("give it more colors"));
        }
        let mut filter = Filter::new(&pages, taps);
        let mut ratios: [Vec<f64>; 5] = Default::default();
        let mut least = Vec::new();
        let (mut interrupted, mut counted) = (0, 0);
        for run in 0..runs {
            let mut longest = [0_u64; 5];
            let mut shortest = u64::MAX;
            for activation in 0..activations * SCENARIOS.len() {
                if watch.stopped() {
                    return Err(Error::new("stopped before the experiment was done"));
                }
                // In turn, so that what the machine does otherwise meets all alike.
                let which = activation % SCENARIOS.len();
                // What is in the partition at first, as it would be after the last activation.
                black_box(filter.step(1.0));
                black_box(filter.step(1.0));
                witness.arm();
                match SCENARIOS[which] {
                    Scenario::Alone => {}
                    Scenario::Unpartitioned => flood(&all, &[]),
                    Scenario::Partitioned => flood(&others, &[]),
                    Scenario::SingleWriter => flood(&others, &rivals),
                    Scenario::Translations => translate(&others),
                }
                let start = clock.stamp();
                black_box(filter.step(run as f64));
                let took = clock.stamp().saturating_sub(start);
                if witness.interrupted() {
                    interrupted += 1;
                    continue;
                }
                counted += 1;
                longest[which] = longest[which].max(took);
                if which == 0 {
                    shortest = shortest.min(took);
                }
            }
            witness.disarm();
            if shortest < u64::MAX && longest.iter().all(|l| *l > 0) {
                least.push(calibration.duration(shortest).nanos() as f64);
                for (ratios, longest) in ratios.iter_mut().zip(longest) {
                    ratios.push(longest as f64 / shortest.max(1) as f64);
                }
            }
            watch.advance(1);
        }
        if least.is_empty() {
            return Err(
                Error::new("every run was interrupted").remedy("run it again when the machine is idle")
            );
        }
        rows.push(Row {
            coefficients: taps,
            wss: Bytes::new((2 * taps * size_of::<f64>()) as u64),
            least_ns: crate::selftest::median(least.into_iter()),
            unpredictability: ratios.map(|r| crate::selftest::median(r.into_iter())),
            interrupted,
            counted,
        });
    }
    Ok(Isolation {
        colors: own,
        partition: Bytes::new(palette.cache.of_one_color().get() * u64::from(colors)),
        runs: (runs, activations),
        witnessed: witness.works(),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::memory::Area;

    #[test]
    fn the_filter_sums_coefficients_times_the_last_samples() {
        let area = Area::map(Bytes::from_kib(32)).unwrap();
        let pages = crate::frame::pages(&area);
        for taps in [1, 4, 7, 512, 700, 1024] {
            let mut filter = Filter::new(&pages, taps);
            let mut past: Vec<f64> = Vec::new();
            for t in 0..2 * taps.min(40) + taps {
                let sample = (t * 7 % 11) as f64;
                past.insert(0, sample);
                past.truncate(taps);
                let wanted: f64 = past.iter().enumerate().map(|(i, x)| x / (i + 1) as f64).sum();
                let got = filter.step(sample);
                assert!(
                    (got - wanted).abs() < 1e-9 * wanted.abs().max(1.0),
                    "{taps} taps, step {t}"
                );
            }
        }
    }

    #[test]
    fn the_row_at_half_of_the_partition_is_found() {
        let row = |wss: u64| Row {
            coefficients: 1,
            wss: Bytes::from_kib(wss),
            least_ns: 1.0,
            unpredictability: [1.0; 5],
            interrupted: 0,
            counted: 1,
        };
        let isolation = Isolation {
            colors: Colors::first(4),
            partition: Bytes::from_kib(256),
            runs: (1, 1),
            witnessed: true,
            rows: vec![row(32), row(64), row(128)],
        };
        assert_eq!(isolation.at_half().unwrap().wss, Bytes::from_kib(128));
    }
}
