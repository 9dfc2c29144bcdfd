//! Parts of studies that are judged elsewhere: a function of Python brings them there and back, and
//! workers judge them here.

use crate::error::class;
use crate::work::work;
use model::watch::Watch;
use model::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use study::{Arrivals, Counts, Executor, Part, PartJudge, Texts, Work};

/// A part as Python has it: cap in thousandths, number of the first set, sets.
type Plain = (u32, u32, u32);

/// Parts that are still to be sent, the heaviest first.
#[pyclass(module = "warmset._native")]
pub(crate) struct Parts {
    /// The next one is the last.
    left: Vec<Part>,
}

#[pymethods]
impl Parts {
    fn __len__(&self) -> usize {
        self.left.len()
    }

    /// Takes so many of the next ones, or as many as are left.
    fn take(&mut self, count: usize) -> Vec<Plain> {
        let from = self.left.len().saturating_sub(count);
        let taken = self.left.drain(from..).rev();
        taken.map(|p| (p.cap, p.first, p.sets)).collect()
    }
}

/// An executor that is a function of Python: called with a study as text and its [`Parts`], it
/// returns an iterator of pairs of text, `(counts, note)`: lines of counts as they come, and a
/// remark; either may be empty.
pub(crate) struct Dispatched {
    dispatch: Py<PyAny>,
    /// What it raised that is no error of ours.
    raised: Mutex<Option<PyErr>>,
}

impl Dispatched {
    pub(crate) fn new(dispatch: Py<PyAny>) -> Self {
        Dispatched {
            dispatch,
            raised: Mutex::new(None),
        }
    }

    /// The exception that ended the work, if it was not an error of ours.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.raised
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// An exception as an error.
    fn error(&self, py: Python<'_>, raised: PyErr) -> Error {
        let ours = || -> PyResult<Error> {
            let value = raised.value(py);
            let [cause, place, remedy] = ["cause", "place", "remedy"]
                .map(|name| value.getattr(name).and_then(|v| v.extract::<String>()));
            Ok(Error::new(cause?).at(place?).remedy(remedy?))
        };
        let is_ours = class(py, "Error").is_ok_and(|class| raised.is_instance(py, &class));
        match ours() {
            Ok(error) if is_ours => error,
            _ => {
                let told = raised.to_string();
                let mut kept = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
                *kept = Some(raised);
                Error::new(told)
            }
        }
    }
}

impl Executor for Dispatched {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()> {
        let arrivals = Arrivals::new(work, parts, keep, watch);
        let study = text_of(&Texts::of(work.study()))?;
        let left = parts.to_vec();
        let answers = Python::attach(|py| {
            let made = self.dispatch.call1(py, (study, Parts { left }));
            made.map_err(|e| self.error(py, e))
        })?;
        while !watch.stopped() {
            let next = Python::attach(|py| {
                let next = answers.bind(py).call_method0("__next__");
                match next.and_then(|pair| pair.extract::<(String, String)>()) {
                    Ok(pair) => Ok(Some(pair)),
                    Err(e) if e.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => Ok(None),
                    Err(e) => Err(self.error(py, e)),
                }
            });
            let Some((counts, note)) = next? else {
                return match arrivals.left() {
                    0 => Ok(()),
                    left => Err(Error::new(format!("{left} parts did not come back"))
                        .remedy("run it again: parts that were kept are not run again")),
                };
            };
            if !note.is_empty() {
                watch.note(&note);
            }
            if let Err(e) = arrivals.take(&counts) {
                close(&answers);
                return Err(e);
            }
        }
        close(&answers);
        Ok(())
    }
}

/// Ends a generator: what it has sent is dropped.
fn close(answers: &Py<PyAny>) {
    // An iterator of another kind has no end of its own, and what was kept is not lost by that.
    Python::attach(|py| {
        answers
            .call_method0(py, "close")
            .map(drop)
            .unwrap_or_default()
    });
}

fn text_of(texts: &Texts) -> Result<String> {
    serde_json::to_string(texts)
        .map_err(|e| Error::new(format!("the study cannot be written as JSON: {e}")))
}

/// Studies that a worker keeps ready: those of one that is run, and of the next ones.
const READY: usize = 4;
/// The latest one is the last.
static KNOWN: Mutex<Vec<(String, Arc<PartJudge>)>> = Mutex::new(Vec::new());

/// What judges the parts of a study of these texts.
fn judge_of(study: &str) -> Result<Arc<PartJudge>> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, judge)) = known().iter().find(|(text, _)| text == study) {
        return Ok(Arc::clone(judge));
    }
    let texts: Texts = serde_json::from_str(study).map_err(|e| {
        Error::new(format!("what came is not a study: {e}"))
            .remedy("install the same version of Warmset wherever parts are judged")
    })?;
    let judge = Arc::new(PartJudge::new(&texts)?);
    let mut known = known();
    if known.len() == READY {
        known.remove(0);
    }
    known.push((study.to_owned(), Arc::clone(&judge)));
    Ok(judge)
}

/// Judges parts of a study that came as text, on this thread alone: lines of counts.
#[pyfunction]
pub(crate) fn study_judge(py: Python<'_>, study: &str, parts: Vec<Plain>) -> PyResult<String> {
    if parts.is_empty() {
        return Err(PyValueError::new_err("no parts are named"));
    }
    work(py, None, |watch| {
        let judge = judge_of(study)?;
        let mut lines = String::new();
        for (cap, first, sets) in parts {
            if watch.stopped() {
                return Err(Error::new("stopped"));
            }
            lines += &judge.judge(Part { cap, first, sets })?;
            lines.push('\n');
        }
        Ok(lines)
    })
}
