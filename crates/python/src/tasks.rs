//! A task set, as Python holds it.

use crate::columns::{Columns, integers, numbers, some_integers, some_words, truths, words};
use crate::error::raise;
use model::{Error, TaskSet, taskfile};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A checked task set; never changed.
#[pyclass(frozen, module = "warmset._native")]
pub(crate) struct Tasks {
    pub(crate) tasks: app::Tasks,
}

#[pymethods]
impl Tasks {
    /// Reads a task file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        let tasks = app::Tasks::read(&path).map_err(raise)?;
        Ok(Tasks { tasks })
    }

    /// Reads the text of a task file.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let tasks = taskfile::from_toml(text).map_err(raise)?.into();
        Ok(Tasks { tasks })
    }

    /// The text of its task file.
    fn to_toml(&self) -> String {
        taskfile::to_toml(&self.tasks.set)
    }

    /// What errors call it.
    #[getter]
    fn place(&self) -> &str {
        &self.tasks.place
    }

    /// How many tasks.
    fn __len__(&self) -> usize {
        self.tasks.set.len()
    }

    /// The total utilization, for people: decisions are exact.
    #[getter]
    fn utilization(&self) -> f64 {
        self.tasks.set.utilization_f64()
    }

    /// A row a task.
    fn columns(&self) -> PyResult<Columns> {
        columns(&self.tasks.set).map_err(raise)
    }
}

fn columns(set: &TaskSet) -> Result<Columns, Error> {
    let timings = set.timings();
    let details = || set.ids().map(|id| set.details(id));
    let extras = || details().map(|d| d.map(|d| d.extras).unwrap_or_default());
    Columns::new(vec![
        ("task", words(set.ids().map(|id| set.name(id)))),
        ("wcet_ns", integers(timings.iter().map(|t| t.wcet.nanos()))),
        (
            "period_ns",
            integers(timings.iter().map(|t| t.period.nanos())),
        ),
        (
            "deadline_ns",
            integers(timings.iter().map(|t| t.deadline.nanos())),
        ),
        (
            "utilization",
            numbers(timings.iter().map(|t| t.utilization().to_f64())),
        ),
        (
            "wss_bytes",
            some_integers(set.ids().map(|id| set.wss(id).map(|b| b.get()))),
        ),
        (
            "phase_ns",
            integers(details().map(|d| d.map_or(0, |d| d.phase.nanos()))),
        ),
        (
            "blocking_ns",
            integers(extras().map(|x| x.blocking.nanos())),
        ),
        ("jitter_ns", integers(extras().map(|x| x.jitter.nanos()))),
        (
            "priority",
            some_integers(details().map(|d| d.and_then(|d| d.priority).map(u64::from))),
        ),
        ("soft", truths(details().map(|d| d.is_some_and(|d| d.soft)))),
        (
            "group",
            some_words(details().map(|d| d.and_then(|d| d.group.clone()))),
        ),
    ])
}
