//! Random task sets as columns.

use crate::batch::Rows;
use crate::check::on;
use crate::columns::{self, Columns, integers};
use crate::error::raise;
use crate::profile::Platform;
use crate::work::work;
use app::generate::{Drawing, Options, prepare};
use arrow_array::{ArrayRef, RecordBatch};
use model::watch::Watch;
use model::{Error, Result, TaskSet};
use pyo3::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// Sets are drawn so many at a time, each time as one batch of rows.
const CHUNK: u64 = 8192;

/// Draws task sets: one row a set, with `id`, `m` and lists of nanoseconds.
#[pyfunction]
#[pyo3(signature = (
    sets=1, utilization=None, periods=None, deadlines=None, cap=None, fill=None, tasks=None,
    total=None, method=None, range=None, until=None, platform=None, seed=1, first=0, progress=None
))]
#[allow(clippy::too_many_arguments, reason = "options by name, in Python")]
pub(crate) fn generate(
    py: Python<'_>,
    sets: u64,
    utilization: Option<&str>,
    periods: Option<&str>,
    deadlines: Option<&str>,
    cap: Option<&str>,
    fill: Option<&str>,
    tasks: Option<u32>,
    total: Option<&str>,
    method: Option<&str>,
    range: Option<String>,
    until: Option<String>,
    platform: Option<&Platform>,
    seed: u64,
    first: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Columns> {
    let options = || -> Result<Options> {
        let mut options = Options {
            cap: cap.map(str::parse).transpose()?,
            total: total.map(str::parse).transpose()?,
            tasks,
            range,
            until,
            on: on(platform),
            sets,
            seed,
            first,
            ..Options::new()?
        };
        set(&mut options.utilization, utilization)?;
        set(&mut options.periods, periods)?;
        set(&mut options.deadlines, deadlines)?;
        set(&mut options.fill, fill)?;
        set(&mut options.method, method)?;
        Ok(options)
    };
    let options = options().map_err(raise)?;
    work(py, progress, |watch| drawn(&options, watch))
}

/// The value that a text stands for, where one is given.
fn set<T: std::str::FromStr<Err = Error>>(value: &mut T, text: Option<&str>) -> Result<()> {
    if let Some(text) = text {
        *value = text.parse()?;
    }
    Ok(())
}

fn drawn(options: &Options, watch: &dyn Watch) -> Result<Columns> {
    app::workers()?;
    let drawing = prepare(options)?;
    watch.begin("drawing task sets", options.sets);
    let (mut batches, end) = (Vec::new(), options.first + options.sets);
    for start in (options.first..end).step_by(CHUNK as usize) {
        let numbers = start..end.min(start + CHUNK);
        batches.push(batch(&drawing, numbers.clone())?);
        watch.advance(numbers.end - numbers.start);
        if watch.stopped() {
            return Err(Error::new("stopped before all sets were drawn")
                .remedy("sets are quick to draw again by their seed"));
        }
    }
    // There is at least one set.
    let schema = batches[0].schema();
    Ok(Columns::of(schema, batches))
}

fn batch(drawing: &Drawing<'_>, numbers: Range<u64>) -> Result<RecordBatch> {
    let sets: Vec<(u32, TaskSet)> = numbers
        .clone()
        .into_par_iter()
        .map(|number| {
            let set = drawing.set(number)?;
            Ok((drawing.processors(&set)?, set))
        })
        .collect::<Result<_>>()?;
    let mut rows = Rows::default();
    for (m, set) in &sets {
        rows.push(*m, set.timings());
    }
    let mut all: Vec<(&str, ArrayRef)> = vec![("id", integers(numbers))];
    all.extend(rows.columns());
    columns::batch(all)
}
