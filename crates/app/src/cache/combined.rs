//! A short and a long task of 001 together in a model of a platform's caches (§5.5, Fig. 8): the
//! product of matrices, interrupted by the filter at a constant rate, told and drawn.
//! [`experiment::modeled::combined`] runs them.

use crate::{On, PROGRAM, provenance};
use experiment::modeled::combined;
pub use experiment::modeled::combined::{Beside, RATES, Row};
use experiment::modeled::lab::Lab;
use experiment::modeled::matrix::{CODE, STEP};
use model::strategy::Writing;
use model::{Duration, Provenance, Result, time};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;

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
    /// What is free, since the platform has no price for it, such as "`write_back` of L2".
    pub unpriced: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Runs products at each rate.
///
/// # Errors
/// The platform has no colored cache; as [`combined::run`].
pub fn run(options: &Options, command: &str) -> Result<Combined> {
    let lab = Lab::of(options.on.platform()?, options.write)?;
    let plan = combined::Plan {
        step: options.step,
        code: options.code,
        coefficients: options.coefficients,
        switch: options.switch,
        rates: options.rates.clone(),
    };
    Ok(Combined {
        rows: combined::run(&lab, &plan)?,
        coefficients: options.coefficients,
        switch: options.switch,
        unpriced: lab.unpriced(),
        platform: lab.platform,
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §5.5"),
            ..provenance(command)
        },
    })
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
