//! The native part of the Python package `warmset`: what takes time, over the same library as the
//! command line (`app`).
//!
//! What a person writes and reads stands in Python (`python/warmset`): it turns times, names and
//! objects into plain values, and calls what is here. Answers that are small come back as the JSON
//! documents of the command line; many rows come back as [`columns`] in Arrow's layout, which other
//! packages take without a copy.

// `arrow` alone hands pointers to and from Python, and says why it may.
#![deny(unsafe_code)]

mod arrow;
mod batch;
mod check;
mod columns;
mod elsewhere;
mod error;
mod generate;
mod policies;
mod profile;
mod ranked;
mod samples;
mod simulate;
mod study;
mod tasks;
mod trace;
mod work;

use pyo3::prelude::*;

/// The native part of the package `warmset`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::batch::{check_batch, set_rows};
    #[pymodule_export]
    use crate::check::check;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::elsewhere::{Parts, study_judge};
    use crate::error::raise;
    #[pymodule_export]
    use crate::generate::generate;
    #[pymodule_export]
    use crate::policies::{policies, tests};
    #[pymodule_export]
    use crate::profile::{Platform, Profile};
    #[pymodule_export]
    use crate::ranked::simulate_ranked;
    #[pymodule_export]
    use crate::samples::read_samples;
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::study::{Results, study_list, study_merge, study_run};
    #[pymodule_export]
    use crate::tasks::Tasks;
    #[pymodule_export]
    use crate::trace::{
        trace_check, trace_events, trace_header, trace_jobs, trace_stats, trace_svg,
    };
    use pyo3::prelude::*;

    /// The version of the program.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// A time such as `4ms` in nanoseconds.
    #[pyfunction]
    fn nanoseconds(text: &str) -> PyResult<u64> {
        let time: model::Duration = text.parse().map_err(raise)?;
        Ok(time.nanos())
    }

    /// A time of nanoseconds as people write it, such as `4ms`.
    #[pyfunction]
    fn time_text(nanoseconds: u64) -> String {
        model::Duration::from_nanos(nanoseconds).to_string()
    }
}
