//! Platforms and profiles.

use crate::columns::{Columns, integers, numbers, signed, some_integers, some_words, words};
use crate::error::raise;
use app::platform::Described;
use app::{Choice, On};
use model::profile::OverheadCurve;
use model::{Bytes, CpmdCurve, CpmdPoint, document, platformfile, profilefile};
use pyo3::prelude::*;

/// Processors and the caches that they share; never changed.
#[pyclass(frozen, module = "warmset._native")]
pub(crate) struct Platform {
    pub(crate) platform: model::Platform,
}

#[pymethods]
impl Platform {
    /// A built-in platform such as `xeon-l7455`, one of a file, or `this-machine`.
    #[staticmethod]
    fn find(name: String) -> PyResult<Self> {
        let on = On::Platform(Choice::Named(name));
        let platform = on.platform().map_err(raise)?;
        Ok(Platform { platform })
    }

    /// So many identical processors without caches.
    #[staticmethod]
    fn identical(m: u32) -> PyResult<Self> {
        let platform = On::Identical(m).platform().map_err(raise)?;
        Ok(Platform { platform })
    }

    /// Reads the text of a platform file.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let platform = platformfile::from_toml(text).map_err(raise)?;
        Ok(Platform { platform })
    }

    /// The text of its platform file.
    fn to_toml(&self) -> String {
        platformfile::to_toml(&self.platform)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.platform.name
    }

    /// How many of its processors can be used.
    #[getter]
    fn processors(&self) -> usize {
        self.platform.usable().len()
    }

    /// The document of `warmset platform --format json`.
    fn json(&self) -> PyResult<String> {
        let platform = self.platform.clone();
        document::compact(&Described::Platform { platform }).map_err(raise)
    }

    /// A picture of processors and caches, as SVG.
    fn svg(&self) -> String {
        report::platform::svg(&self.platform)
    }
}

/// What a platform costs; never changed.
#[pyclass(frozen, module = "warmset._native")]
pub(crate) struct Profile {
    pub(crate) profile: model::Profile,
}

#[pymethods]
impl Profile {
    /// A built-in profile, one of a file, or the one in use on this machine.
    #[staticmethod]
    fn find(name: String) -> PyResult<Self> {
        let profile = Choice::<model::Profile>::Named(name).profile();
        let profile = profile.map_err(raise)?;
        Ok(Profile { profile })
    }

    /// Reads the text of a profile file.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let profile = profilefile::from_toml(text).map_err(raise)?;
        Ok(Profile { profile })
    }

    /// The names of the built-in profiles.
    #[staticmethod]
    fn builtin() -> Vec<&'static str> {
        profilefile::names().collect()
    }

    /// The text of its file.
    fn to_toml(&self) -> String {
        profilefile::to_toml(&self.profile)
    }

    /// The name of the platform that it is of.
    #[getter]
    fn platform(&self) -> &str {
        &self.profile.platform
    }

    /// Where it comes from.
    #[getter]
    fn source(&self) -> &str {
        &self.profile.provenance.source
    }

    /// The values at a working set size, at a number of tasks, or at both: the document of `warmset
    /// profile show --wss SIZE --tasks N --format json`.
    #[pyo3(signature = (wss=None, tasks=None))]
    fn values(&self, wss: Option<&str>, tasks: Option<u32>) -> PyResult<String> {
        let wss: Option<Bytes> = wss.map(str::parse).transpose().map_err(raise)?;
        document::compact(&app::profile::values(&self.profile, wss, tasks)).map_err(raise)
    }

    /// Cache delays by working set size, a row a point of a curve.
    fn cpmd(&self) -> PyResult<Columns> {
        let curves = self.profile.cpmd.iter();
        let rows: Vec<(&CpmdCurve, &CpmdPoint)> = curves
            .flat_map(|c| c.points.iter().map(move |p| (c, p)))
            .collect();
        let rows = || rows.iter().copied();
        Columns::new(vec![
            (
                "resumption",
                words(rows().map(|(c, _)| c.resumption.to_string())),
            ),
            ("load", words(rows().map(|(c, _)| c.load.to_string()))),
            ("write_ratio", numbers(rows().map(|(c, _)| c.write_ratio))),
            ("wss_bytes", integers(rows().map(|(_, p)| p.wss.get()))),
            ("samples", integers(rows().map(|(_, p)| p.samples))),
            (
                "average_ns",
                signed(rows().map(|(_, p)| p.average.map(|d| d.nanos()))),
            ),
            (
                "deviation_ns",
                some_integers(rows().map(|(_, p)| p.deviation.map(|d| d.nanos()))),
            ),
            (
                "maximum_ns",
                signed(rows().map(|(_, p)| p.maximum.map(|d| d.nanos()))),
            ),
        ])
        .map_err(raise)
    }

    /// Overheads by number of tasks, a row a point of a curve.
    fn overheads(&self) -> PyResult<Columns> {
        let curves = self.profile.overheads.iter();
        let rows: Vec<_> = curves
            .flat_map(|c| c.points.iter().map(move |p| (c, p)))
            .collect();
        let rows = || rows.iter().copied();
        let policy = |c: &OverheadCurve| (!c.policy.is_empty()).then(|| c.policy.clone());
        Columns::new(vec![
            ("overhead", words(rows().map(|(c, _)| c.kind.name()))),
            ("policy", some_words(rows().map(|(c, _)| policy(c)))),
            (
                "code",
                some_words(rows().map(|(c, _)| c.code.map(|code| code.to_string()))),
            ),
            ("tasks", integers(rows().map(|(_, p)| p.tasks.into()))),
            ("samples", integers(rows().map(|(_, p)| p.samples))),
            (
                "average_ns",
                some_integers(rows().map(|(_, p)| p.average.map(|d| d.nanos()))),
            ),
            (
                "maximum_ns",
                some_integers(rows().map(|(_, p)| p.maximum.map(|d| d.nanos()))),
            ),
        ])
        .map_err(raise)
    }

    /// Cache delays by working set size as a chart, as SVG; `None`: it has none.
    fn svg(&self) -> PyResult<Option<String>> {
        let figure = report::cpmd::figure("cpmd", &self.profile, &[], &report::cpmd::FIG2);
        Ok(figure.map_err(raise)?.map(|f| f.to_svg()))
    }
}
