//! Raw samples of cache delays.

use crate::columns::{Columns, integers, numbers, signed, some_words, words};
use crate::error::raise;
use crate::work::work;
use measure::samples::{self, Sample};
use model::Duration;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Reads the samples that `warmset measure cpmd` kept, a row each, in the order in which they were
/// taken. A directory stands for the file in it.
#[pyfunction]
pub(crate) fn read_samples(py: Python<'_>, path: PathBuf) -> PyResult<Columns> {
    let path = match path.is_dir() {
        true => path.join(app::pages::SAMPLES),
        false => path,
    };
    let samples = work(py, None, |_| samples::read(&path))?;
    let times = |of: fn(&Sample) -> Duration| integers(samples.iter().map(move |s| of(s).nanos()));
    Columns::new(vec![
        ("block", integers(samples.iter().map(|s| s.block.into()))),
        ("load", words(samples.iter().map(|s| s.load.to_string()))),
        ("wss_bytes", integers(samples.iter().map(|s| s.wss.get()))),
        (
            "write_ratio",
            numbers(samples.iter().map(|s| s.write_ratio)),
        ),
        (
            "from_cpu",
            integers(samples.iter().map(|s| s.from.0.into())),
        ),
        ("to_cpu", integers(samples.iter().map(|s| s.to.0.into()))),
        (
            "resumption",
            words(samples.iter().map(|s| s.resumption.to_string())),
        ),
        ("asked_ns", times(|s| s.asked)),
        ("preempted_ns", times(|s| s.preempted)),
        ("cold_ns", times(|s| s.cold)),
        ("warm_ns", times(|s| s.warm)),
        ("post_ns", times(|s| s.post)),
        (
            "delay_ns",
            signed(samples.iter().map(|s| Some(s.delay.nanos()))),
        ),
        (
            "discarded",
            some_words(samples.iter().map(|s| s.discarded.map(|d| d.name()))),
        ),
        ("line_before_ns", times(|s| s.line_before)),
        ("line_after_ns", times(|s| s.line_after)),
    ])
    .map_err(raise)
}
