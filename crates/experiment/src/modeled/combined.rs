//! A short and a long task of 001 together in a model of a platform's caches: the product of
//! matrices, interrupted by the filter at a constant rate (001 §5.5, Fig. 8).
//!
//! In every period the filter is served first and completely, then the product has the rest.
//! Partitioned, the filter has colors of its own; unpartitioned, exactly those of the two matrices.
//! The product lies in its partition in both. Told is the real time of a product.

use super::lab::{Lab, Placed};
use super::matrix::{in_partition, own_colors, pages, touched};
use cache::{Case, Kind, Timed};
use model::{Duration, Error, Result, time};
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

/// How it is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a step of the product, and a coefficient of the filter, take where nothing misses.
    pub step: Duration,
    /// Words of code of each.
    pub code: u32,
    /// Coefficients of the filter, of 8 bytes.
    pub coefficients: u32,
    /// What an interruption takes without the filter: there and back.
    pub switch: Duration,
    /// How often the filter is activated in a second.
    pub rates: Vec<u32>,
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
/// platform has no `fill` for a cache, or too few colors for both.
pub fn run(lab: &Lab, plan: &Plan) -> Result<Vec<Row>> {
    let refuse = |cause: &str, place: &str, remedy: &str| {
        Err(Error::new(cause.to_owned())
            .at(place.to_owned())
            .remedy(remedy.to_owned()))
    };
    if plan.rates.contains(&0) || plan.rates.iter().any(|rate| *rate > 1_000_000_000) {
        return refuse(
            "a filter is activated some times a second",
            "--rates",
            "give rates from 1 to 1000000000",
        );
    }
    if plan.coefficients == 0 || plan.step.is_zero() {
        return refuse(
            "a filter has coefficients, and its steps take time",
            "--coefficients",
            "give numbers above zero",
        );
    }
    let runs = Runs { lab, plan };
    plan.rates.iter().map(|rate| runs.row(*rate)).collect()
}

/// Both tasks on a machine.
struct Runs<'a> {
    lab: &'a Lab,
    plan: &'a Plan,
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

    /// The filter in exactly the colors of the matrices, or in as many others; its code always has
    /// a color of its own.
    fn memory(&self, partitioned: bool) -> Result<Memory> {
        let lab = self.lab;
        let taps = self.plan.coefficients as usize;
        let bytes = (filter::words(taps) * size_of::<f64>()) as u64;
        let filter_pages = bytes.div_ceil(lab.page);
        let mut memory = lab.memory(pages(lab) + filter_pages + 2)?;
        let product = in_partition(lab, &mut memory)?;
        let own = own_colors(lab);
        // The matrices' colors are the first ones, and the code of the product has the last of
        // them.
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
        let steps = matrix_steps(self.plan.step);
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
    Duration::from_nanos(step.nanos().saturating_mul(super::matrix::PRODUCT_STEPS))
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
        let plan = self.runs.plan;
        let [data, code] = &self.memory.product;
        while self.now() >= self.next && !self.is_starved {
            self.serve()?;
            self.next += self.period;
            self.is_starved = self.now().saturating_sub(begin) > self.patience;
        }
        touched(&mut self.machine, touch, data, plan.step)?;
        match touch.write {
            true => self.runs.lab.execute(&mut self.machine, code, plan.code),
            false => Ok(()),
        }
    }

    /// An activation of the filter.
    fn serve(&mut self) -> Result<()> {
        let plan = self.runs.plan;
        let [data, code] = &self.memory.filter;
        self.machine.compute(plan.switch, 1);
        let begin = self.now();
        self.runs.lab.execute(&mut self.machine, code, plan.code)?;
        let taps = plan.coefficients as usize;
        self.newest = filter::before(self.newest, taps);
        let (machine, mut done) = (&mut self.machine, Ok(()));
        let recorder = &mut Recorder::new(size_of::<f64>() as u32, |touch: Touch| {
            let kind = if touch.write { Kind::Write } else { Kind::Read };
            // Two reads a coefficient; the sample that comes in is none of them.
            if !touch.write {
                machine.compute(plan.step, 2);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modeled::matrix::{CODE, STEP};
    use model::Platform;
    use model::strategy::Writing;

    fn seen(rates: &[u32]) -> Result<Vec<Row>> {
        let platform = Platform::builtin("pentium-133")?;
        let plan = Plan {
            step: STEP,
            code: CODE,
            coefficients: 512,
            switch: Duration::from_micros(4),
            rates: rates.to_vec(),
        };
        run(&Lab::of(platform, Some(Writing::Through))?, &plan)
    }

    /// 001 §5.5: partitioning makes both faster; the filter's share grows with the rate.
    #[test]
    fn a_filter_in_the_matrices_colors_slows_both_down() {
        let seen = seen(&[2000, 5000]).unwrap();
        for row in &seen {
            for case in 0..2 {
                let [most, least] = [row.unpartitioned, row.partitioned].map(|of| of[case]);
                assert!(most.filter > least.filter, "{row:?}");
                assert!(row.ratio[case].is_some_and(|ratio| ratio > 1.05), "{row:?}");
            }
        }
        assert!(seen[1].ratio[0] > seen[0].ratio[0]);
    }

    /// By hand: 512 coefficients of 34 ns are 17.4 us, so that nothing is left of a period of 10
    /// us.
    #[test]
    fn a_filter_that_takes_all_time_leaves_no_product() {
        let seen = seen(&[100_000]).unwrap();
        assert_eq!(seen[0].ratio, [None, None]);
        assert_eq!(seen[0].partitioned[0].product, None);
    }

    #[test]
    fn rates_of_zero_are_refused() {
        let e = seen(&[0]).unwrap_err().to_string();
        assert!(e.contains("--rates"), "{e}");
    }
}
