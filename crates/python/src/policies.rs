//! What policies and tests there are.

use crate::columns::{Columns, some_words, words};
use crate::error::raise;
use analyze::registry;
use policy::catalog;
use pyo3::prelude::*;

/// The schedulability tests, a row each.
#[pyfunction]
pub(crate) fn tests() -> PyResult<Columns> {
    let all = registry::ALL.iter();
    Columns::new(vec![
        ("test", words(all.clone().map(|t| t.name))),
        ("policy", words(all.clone().map(|t| t.policy))),
        (
            "guarantee",
            words(all.clone().map(|t| t.guarantee.to_string())),
        ),
        (
            "exactness",
            words(all.clone().map(|t| t.exactness.to_string())),
        ),
        ("source", words(all.clone().map(|t| t.source))),
        ("preconditions", words(all.clone().map(|t| t.preconditions))),
        ("about", words(all.map(|t| t.about))),
    ])
    .map_err(raise)
}

/// The scheduling policies, a row each.
#[pyfunction]
pub(crate) fn policies() -> PyResult<Columns> {
    let all = catalog::all().iter();
    let some = |text: &'static str| (!text.is_empty()).then_some(text);
    Columns::new(vec![
        ("policy", words(all.clone().map(|p| p.name))),
        ("summary", words(all.clone().map(|p| p.summary))),
        ("parameters", some_words(all.map(|p| some(p.parameters)))),
    ])
    .map_err(raise)
}
