//! Errors of the library as exceptions of Python.

use model::Error;
use model::shown::sentence;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// What a function of Python returns; its error is `warmset.Error`.
pub(crate) fn raise(error: Error) -> PyErr {
    Python::attach(|py| {
        let [cause, place, remedy] = [error.cause(), error.place(), error.advice()].map(sentence);
        let place = argument(&place).unwrap_or(place);
        let made = class(py, "Error").and_then(|class| class.call1((cause, place, remedy)));
        made.map_or_else(|e| e, PyErr::from_value)
    })
}

/// The argument of Python that an option of the command line is, such as `--grid`.
fn argument(place: &str) -> Option<String> {
    let option = place.strip_prefix("--")?;
    Some(option.replace('-', "_"))
}

/// The class of errors or of remarks, which stands in Python.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static REMARK: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let of = match name {
        "Error" => &ERROR,
        _ => &REMARK,
    };
    of.import(py, "warmset._error", name).cloned()
}
