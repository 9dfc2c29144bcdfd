//! Short tasks of 001 in a model of a platform's caches (§5.2, Fig. 4; §5.3, Fig. 5), told and
//! drawn. [`experiment::modeled::short`] runs them.

use crate::{On, PROGRAM, provenance};
use experiment::modeled::lab::Lab;
pub use experiment::modeled::rates::{Activations, Rated};
use experiment::modeled::short;
pub use experiment::modeled::short::{Row, Task, Unpredictability};
use model::strategy::Writing;
use model::{Duration, Provenance, Result, time};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;

/// How it is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The task.
    pub task: Task,
    /// Whose caches and prices.
    pub on: On,
    /// How all caches write, where that is not as the platform says.
    pub write: Option<Writing>,
    /// Numbers of coefficients or points. Empty: [`Task::sizes`].
    pub sizes: Vec<u32>,
    /// What a coefficient of the filter, or an access of a transform, takes where nothing misses.
    pub step: Duration,
    /// Words of code, which each run executes.
    pub code: u32,
    /// Activations a second, with the flooder as a task of low priority in between. Empty: none.
    pub rates: Vec<f64>,
}

/// Runs of a task. JSON: as `warmset cache filter --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ran {
    /// The task.
    pub task: Task,
    /// The name of the platform.
    pub platform: String,
    /// What a coefficient, or an access of a transform, takes where nothing misses.
    #[serde(rename = "step_ns", with = "time::ns")]
    pub step: Duration,
    /// Each number of coefficients or points.
    pub rows: Vec<Row>,
    /// What is free, since the platform has no price for it, such as "`write_back` of L2".
    pub unpriced: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Runs the task with each size.
///
/// # Errors
/// The platform has no colored cache; as [`short::run`].
pub fn run(options: &Options, command: &str) -> Result<Ran> {
    let lab = Lab::of(options.on.platform()?, options.write)?;
    let plan = short::Plan {
        task: options.task,
        sizes: options.sizes.clone(),
        step: options.step,
        code: options.code,
        rates: options.rates.clone(),
    };
    Ok(Ran {
        task: options.task,
        rows: short::run(&lab, &plan)?,
        unpriced: lab.unpriced(),
        platform: lab.platform,
        step: options.step,
        provenance: Provenance {
            source: format!("{PROGRAM}, a model of 001 §5.2 and §5.3"),
            ..provenance(command)
        },
    })
}

impl Ran {
    /// c_max / c_min over numbers of coefficients or points, as 001 Figs. 4 and 5.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let ticks = self.rows.iter().step_by(2);
        let ticks: Vec<_> = ticks
            .map(|row| (f64::from(row.size), row.size.to_string()))
            .collect();
        let panel = |case: usize, title: &str| {
            let curve = |of: fn(&Unpredictability) -> [f64; 2]| -> Vec<(f64, f64)> {
                let rows = self.rows.iter();
                rows.map(|row| (f64::from(row.size), of(&row.unpredictability)[case]))
                    .collect()
            };
            Curves {
                title: format!("{}, {title}", self.platform),
                description: "What a run after the flooder takes, by what one after another takes."
                    .to_owned(),
                x: match self.task {
                    Task::Filter => "coefficients".to_owned(),
                    Task::Cosine | Task::Fourier => "points".to_owned(),
                },
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
                ],
            }
        };
        let title = match self.task {
            Task::Filter => "A filter after a flooder",
            Task::Cosine => "A cosine transform after a flooder",
            Task::Fourier => "A Fourier transform after a flooder",
        };
        lines::figure(
            self.task.name(),
            title,
            "A model of the caches: delays where the memory system is never busy, and where it always is (001 §4.1).",
            &["unpartitioned", "single writer", "partitioned"],
            &[panel(0, "at best"), panel(1, "at worst")],
        )
    }
}
