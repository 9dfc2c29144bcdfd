//! A long task of 001 in a model of a platform's caches (§5.4, Fig. 7): the product of two matrices
//! in time slices, told and drawn. [`experiment::modeled::matrix`] runs it.

use crate::{On, PROGRAM, provenance};
use experiment::modeled::lab::Lab;
use experiment::modeled::matrix::{self, CODE, STEP};
pub use experiment::modeled::matrix::{Row, SLICES, Unpredictability};
use model::strategy::{Price, Writing};
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
    /// What c_ij := c_ij + a_ik b_kj takes where nothing misses. Default: 4.5 cycles of 133 MHz
    /// (001 §5.4).
    pub step: Duration,
    /// Words of code, which are executed for each element. Default: 100.
    pub code: u32,
    /// The time slices. Default: [`SLICES`].
    pub slices: Vec<Duration>,
}

impl Options {
    /// The defaults on a platform.
    pub fn new(on: On) -> Self {
        Options {
            on,
            write: None,
            step: STEP,
            code: CODE,
            slices: SLICES.to_vec(),
        }
    }
}

/// Products in time slices. JSON: as `warmset cache matrix --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Multiplied {
    /// The name of the platform.
    pub platform: String,
    /// What a step takes where nothing misses.
    #[serde(rename = "step_ns", with = "time::ns")]
    pub step: Duration,
    /// How many colors a partition has.
    pub own_colors: u64,
    /// The product without interruption, in memory that lies in one piece: c_min.
    pub alone: Price,
    /// The same in the colors of a partition, which are fewer than its matrices need.
    pub alone_partitioned: Price,
    /// The longest submatrix of 8×8 without interruption.
    pub submatrix: Price,
    /// Each time slice.
    pub rows: Vec<Row>,
    /// What is free, since the platform has no price for it, such as "`write_back` of L2".
    pub unpriced: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Runs the product with each time slice.
///
/// # Errors
/// The platform has no colored cache; as [`matrix::run`].
pub fn run(options: &Options, command: &str) -> Result<Multiplied> {
    let lab = Lab::of(options.on.platform()?, options.write)?;
    let plan = matrix::Plan {
        step: options.step,
        code: options.code,
        slices: options.slices.clone(),
    };
    let products = matrix::run(&lab, &plan)?;
    Ok(Multiplied {
        step: options.step,
        own_colors: products.own_colors,
        alone: products.alone,
        alone_partitioned: products.alone_partitioned,
        submatrix: products.submatrix,
        rows: products.rows,
        unpriced: lab.unpriced(),
        platform: lab.platform,
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §5.4"),
            ..provenance(command)
        },
    })
}

impl Multiplied {
    /// Steps of a product.
    pub const PRODUCT_STEPS: u64 = matrix::PRODUCT_STEPS;

    /// c_max / c_min over time slices, as 001 Fig. 7.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let micros = |slice: Duration| slice.nanos() as f64 / 1e3;
        let ticks: Vec<_> = self
            .rows
            .iter()
            .map(|row| (micros(row.slice), micros(row.slice).to_string()))
            .collect();
        let panel = |case: usize, title: &str| {
            let curve = |of: fn(&Unpredictability) -> [f64; 2]| -> Vec<(f64, f64)> {
                let rows = self.rows.iter();
                rows.map(|row| (micros(row.slice), of(&row.unpredictability)[case]))
                    .collect()
            };
            Curves {
                title: format!("{}, {title}", self.platform),
                description: "What a product in time slices takes, by what it takes alone."
                    .to_owned(),
                x: "time slice, us".to_owned(),
                y: "c_max / c_min".to_owned(),
                logarithmic: true,
                ticks: ticks.clone(),
                level: None,
                least: 1.0,
                most: None,
                curves: vec![
                    (0, curve(|u| u.unpartitioned)),
                    (1, curve(|u| u.single_writer)),
                    (2, curve(|u| u.partitioned)),
                    (3, curve(|u| u.whole_submatrices)),
                ],
            }
        };
        lines::figure(
            "matrix",
            "A product of matrices, all caches flooded after each time slice",
            "A model of the caches: delays where the memory system is never busy, and where it always is (001 §4.1).",
            &[
                "unpartitioned",
                "single writer",
                "partitioned",
                "unpartitioned, slices end with a submatrix",
            ],
            &[panel(0, "at best"), panel(1, "at worst")],
        )
    }
}
