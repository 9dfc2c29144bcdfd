//! A short and a long task of 001 together in a model of a platform's caches: the product of
//! matrices, interrupted by the filter at a constant rate (001 §5.5, Fig. 8).
//!
//! In every period the filter is served first and completely, then the product has the rest.
//! Partitioned, the filter has colors of its own; unpartitioned, exactly those of the two matrices.
//! The product lies in its partition in both. Told is the real time of a product.

use super::lab::{Lab, Placed};
use super::matrix::{CODE, STEP, in_partition, own_colors, pages, touched};
use crate::{On, PROGRAM, provenance};
use cache::{Case, Kind, Timed};
use model::strategy::Writing;
use model::{Duration, Error, Provenance, Result, time};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;
use workload::matrix::{self, STEPS};
use workload::memory::Recorder;
use workload::{Touch, filter};

/// Rates as in 001 Fig. 8, in hertz.
pub const RATES: [u32; 7] = [2000, 3000, 5000, 8000, 10_000, 15_000, 20_000];
/// A product is given up when it takes so many times as long as alone.
const PATIENCE: u64 = 50;
/// Products whose mean is told, after one that is not.
const PRODUCTS: u64 = 3;

/// What is run. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches and prices.
    pub on: On,
    /// How all caches write, where that is not as the platform says.
    pub write: Option<Writing>,
    /// What a step of the product, and a coefficient of the filter, take where nothing misses.
    /// Default: 4.5 cycles of 133 MHz (001 §5.4).
    pub step: Duration,
    /// Words of code of each. Default: 100.
    pub code: u32,
    /// Coefficients of the filter, of 8 bytes. Default: 512, as in the paper.
    pub coefficients: u32,
    /// What an interruption takes without the filter: there and back. Default: twice the interrupt
    /// latency of L4, 2 us (001 §4.1).
    pub switch: Duration,
    /// How often the filter is activated in a second. Default: [`RATES`].
    pub rates: Vec<u32>,
}

impl Options {
    /// The defaults on a platform.
    pub fn new(on: On) -> Self {
        Options {
            on,
            write: None,
            step: STEP,
            code: CODE,
            coefficients: 512,
            switch: Duration::from_micros(4),
            rates: RATES.to_vec(),
        }
    }
}

/// Products beside a filter. JSON: as `warmset cache combined --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Combined {
    /// The name of the platform.
    pub platform: String,
    /// Coefficients of the filter.
    pub coefficients: u32,
    /// What an interruption takes without the filter.
    #[serde(rename = "switch_ns", with = "time::ns")]
    pub switch: Duration,
    /// Each rate.
    pub rows: Vec<Row>,
    /// Caches whose write-backs are free, since the platform has no price for them.
    pub unpriced: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// One rate: all in the best case and in the worst.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Activations of the filter in a second.
    pub rate: u32,
    /// Where the filter has colors of its own.
    pub partitioned: [Beside; 2],
    /// Where it has those of the matrices.
    pub unpartitioned: [Beside; 2],
    /// Real time of a product, unpartitioned by partitioned; `None` where the filter leaves it no
    /// time.
    pub ratio: [Option<f64>; 2],
}

/// A product beside the filter.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Beside {
    /// Real time of a product; `None` where the filter leaves it no time.
    #[serde(serialize_with = "nanos", rename = "product_ns")]
    pub product: Option<Duration>,
    /// An activation of the filter, without the interruption: the mean.
    #[serde(rename = "filter_ns", with = "time::ns")]
    pub filter: Duration,
}

fn nanos<S: serde::Serializer>(
    time: &Option<Duration>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    time.map(Duration::nanos).serialize(to)
}

/// Runs products at each rate.
///
/// # Errors
/// A rate of zero, or one whose period is below a nanosecond; a filter without coefficients; the
/// platform has no colored cache, no `fill` for a cache, or too few colors for both.
pub fn run(options: &Options, command: &str) -> Result<Combined> {
    let refuse = |cause: &str, place: &str, remedy: &str| {
        Err(Error::new(cause.to_owned())
            .at(place.to_owned())
            .remedy(remedy.to_owned()))
    };
    if options.rates.contains(&0) || options.rates.iter().any(|rate| *rate > 1_000_000_000) {
        return refuse(
            "a filter is activated some times a second",
            "--rates",
            "give rates from 1 to 1000000000",
        );
    }
    if options.coefficients == 0 || options.step.is_zero() {
        return refuse(
            "a filter has coefficients, and its steps take time",
            "--coefficients",
            "give numbers above zero",
        );
    }
    let lab = Lab::of(&options.on, options.write)?;
    let runs = Runs { lab: &lab, options };
    let rows = options.rates.iter().map(|rate| runs.row(*rate));
    Ok(Combined {
        rows: rows.collect::<Result<_>>()?,
        platform: lab.platform.clone(),
        coefficients: options.coefficients,
        switch: options.switch,
        unpriced: lab.machine()?.unpriced().map(str::to_owned).collect(),
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §5.5"),
            ..provenance(command)
        },
    })
}

/// Both tasks on a machine.
struct Runs<'a> {
    lab: &'a Lab,
    options: &'a Options,
}

/// Where both lie: data, then code.
struct Memory {
    product: [Placed; 2],
    filter: [Placed; 2],
}

impl Runs<'_> {
    fn row(&self, rate: u32) -> Result<Row> {
        let beside = |partitioned: bool| -> Result<[Beside; 2]> {
            let memory = self.memory(partitioned)?;
            Ok([
                self.beside(rate, &memory, Case::Best)?,
                self.beside(rate, &memory, Case::Worst)?,
            ])
        };
        let (partitioned, unpartitioned) = (beside(true)?, beside(false)?);
        let ratio = |case: usize| {
            let [most, least] = [unpartitioned, partitioned].map(|of| of[case].product);
            Some(most?.nanos() as f64 / least?.nanos() as f64)
        };
        Ok(Row {
            rate,
            partitioned,
            unpartitioned,
            ratio: [ratio(0), ratio(1)],
        })
    }

    /// The filter in exactly the colors of the matrices, or in as many others; its code always has a
    /// color of its own.
    fn memory(&self, partitioned: bool) -> Result<Memory> {
        let lab = self.lab;
        let taps = self.options.coefficients as usize;
        let bytes = (filter::words(taps) * size_of::<f64>()) as u64;
        let filter_pages = bytes.div_ceil(lab.page);
        let mut memory = lab.memory(pages(lab) + filter_pages + 2)?;
        let product = in_partition(lab, &mut memory)?;
        let own = own_colors(lab);
        // The matrices' colors are the first ones, and the code of the product has the last of them.
        let matrices = own.min(2);
        if own + matrices >= lab.colors {
            return Err(Error::new(format!(
                "{} colors are too few for the product and the filter",
                lab.colors
            ))
            .remedy("choose a platform with more colors"));
        }
        let first = if partitioned { own } else { 0 };
        let colors = (0..filter_pages).map(|n| first + n % matrices);
        Ok(Memory {
            product,
            filter: [
                lab.place(&mut memory, colors)?,
                lab.place(&mut memory, [own + matrices])?,
            ],
        })
    }

    fn beside(&self, rate: u32, memory: &Memory, case: Case) -> Result<Beside> {
        let period = 1_000_000_000 / u64::from(rate);
        let steps = matrix_steps(self.options.step);
        let mut both = Both {
            runs: self,
            memory,
            machine: self.lab.machine()?,
            case,
            period: Duration::from_nanos(period),
            next: Duration::ZERO,
            patience: Duration::from_nanos(steps.nanos().saturating_mul(PATIENCE)),
            newest: 0,
            activations: 0,
            filter: Duration::ZERO,
            is_starved: false,
        };
        both.product()?;
        let begin = both.now();
        (both.activations, both.filter) = (0, Duration::ZERO);
        for _ in 0..PRODUCTS {
            both.product()?;
        }
        let took = both.now().saturating_sub(begin).nanos() / PRODUCTS;
        Ok(Beside {
            product: (!both.is_starved).then(|| Duration::from_nanos(took)),
            filter: Duration::from_nanos(both.filter.nanos() / both.activations.max(1)),
        })
    }
}

/// What a product computes for.
fn matrix_steps(step: Duration) -> Duration {
    Duration::from_nanos(
        step.nanos()
            .saturating_mul(super::matrix::Multiplied::PRODUCT_STEPS),
    )
}

/// Both tasks under way.
struct Both<'a> {
    runs: &'a Runs<'a>,
    memory: &'a Memory,
    machine: Timed,
    /// By which prices time passes.
    case: Case,
    period: Duration,
    /// When the filter is activated next.
    next: Duration,
    /// How long a product may take.
    patience: Duration,
    /// The place of the filter's newest sample.
    newest: usize,
    activations: u64,
    filter: Duration,
    is_starved: bool,
}

impl Both<'_> {
    fn now(&self) -> Duration {
        self.machine.elapsed(self.case)
    }

    /// One product, with the filter whenever its time has come.
    fn product(&mut self) -> Result<()> {
        let begin = self.now();
        for number in 0..STEPS {
            let mut done = Ok(());
            let recorder = &mut Recorder::new(size_of::<f64>() as u32, |touch| {
                // The first error ends the product.
                if done.is_ok() {
                    done = self.touch(touch, begin);
                }
            });
            matrix::step(recorder, number);
            done?;
            if self.is_starved {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn touch(&mut self, touch: Touch, begin: Duration) -> Result<()> {
        let options = self.runs.options;
        let [data, code] = &self.memory.product;
        while self.now() >= self.next && !self.is_starved {
            self.serve()?;
            self.next += self.period;
            self.is_starved = self.now().saturating_sub(begin) > self.patience;
        }
        touched(&mut self.machine, touch, data, options.step)?;
        match touch.write {
            true => self.runs.lab.execute(&mut self.machine, code, options.code),
            false => Ok(()),
        }
    }

    /// An activation of the filter.
    fn serve(&mut self) -> Result<()> {
        let options = self.runs.options;
        let [data, code] = &self.memory.filter;
        self.machine.compute(options.switch, 1);
        let begin = self.now();
        self.runs
            .lab
            .execute(&mut self.machine, code, options.code)?;
        let taps = options.coefficients as usize;
        self.newest = filter::before(self.newest, taps);
        let (machine, mut done) = (&mut self.machine, Ok(()));
        let recorder = &mut Recorder::new(size_of::<f64>() as u32, |touch: Touch| {
            let kind = if touch.write { Kind::Write } else { Kind::Read };
            // Two reads a coefficient; the sample that comes in is none of them.
            if !touch.write {
                machine.compute(options.step, 2);
            }
            if done.is_ok() {
                done = machine.access(kind, data.address(touch.offset), touch.bytes);
            }
        });
        filter::step(recorder, taps, self.newest, 0.0);
        done?;
        self.activations += 1;
        let took = self.now().saturating_sub(begin);
        self.filter += took;
        Ok(())
    }
}

impl Combined {
    /// The largest ratio in the best case or in the worst, with its rate.
    pub fn peak(&self, case: usize) -> Option<(u32, f64)> {
        let ratios = self
            .rows
            .iter()
            .filter_map(|row| Some((row.rate, row.ratio[case]?)));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The ratio over rates, as the small diagram of 001 Fig. 8.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let khz = |rate: u32| f64::from(rate) / 1e3;
        let curve = |case: usize| -> Vec<(f64, f64)> {
            let rows = self.rows.iter();
            rows.filter_map(|row| Some((khz(row.rate), row.ratio[case]?)))
                .collect()
        };
        let ticks = self
            .rows
            .iter()
            .map(|row| (khz(row.rate), khz(row.rate).to_string()));
        let curves = Curves {
            title: self.platform.clone(),
            description: "Real time of a product, unpartitioned by partitioned.".to_owned(),
            x: "activations of the filter, kHz".to_owned(),
            y: "unpartitioned / partitioned".to_owned(),
            logarithmic: true,
            ticks: ticks.collect(),
            level: None,
            least: 1.0,
            most: None,
            curves: vec![(0, curve(0)), (1, curve(1))],
        };
        lines::figure(
            "combined",
            "A product of matrices beside a filter",
            "A model of the caches; rates at which the filter leaves the product no time are left out.",
            &["at best", "at worst"],
            &[curves],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;

    fn options(rates: &[u32]) -> Options {
        Options {
            write: Some(Writing::Through),
            rates: rates.to_vec(),
            ..Options::new(On::Platform(Choice::Named("pentium-133".to_owned())))
        }
    }

    /// 001 §5.5: partitioning makes both faster; the filter's share grows with the rate.
    #[test]
    fn a_filter_in_the_matrices_colors_slows_both_down() {
        let seen = run(&options(&[2000, 5000]), "").unwrap();
        for row in &seen.rows {
            for case in 0..2 {
                let [most, least] = [row.unpartitioned, row.partitioned].map(|of| of[case]);
                assert!(most.filter > least.filter, "{row:?}");
                assert!(row.ratio[case].is_some_and(|ratio| ratio > 1.05), "{row:?}");
            }
        }
        assert!(seen.rows[1].ratio[0] > seen.rows[0].ratio[0]);
    }

    /// By hand: 512 coefficients of 34 ns are 17.4 us, so that nothing is left of a period of 10 us.
    #[test]
    fn a_filter_that_takes_all_time_leaves_no_product() {
        let seen = run(&options(&[100_000]), "").unwrap();
        assert_eq!(seen.rows[0].ratio, [None, None]);
        assert_eq!(seen.rows[0].partitioned[0].product, None);
        assert!(seen.figure().unwrap().is_none());
    }

    #[test]
    fn rates_of_zero_are_refused() {
        let e = run(&options(&[0]), "").unwrap_err().to_string();
        assert!(e.contains("--rates"), "{e}");
    }
}
