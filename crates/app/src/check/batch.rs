//! Judges many task sets of a file or a pipe, with one line of verdicts each (DESIGN, "Task sets").

use crate::batch;
use crate::output::Output;
use analyze::{TestInfo, registry};
use model::document::SCHEMA_VERSION;
use model::taskfile::BatchSet;
use model::watch::Watch;
use model::{Duration, Error, Result, TaskSet};
use serde::Serialize;
use serde::ser::SerializeMap as _;

/// How the sets of a batch are judged. By default by all tests, for releases at any time.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the tests, such as `GFB,BAK,BCL`; `None`: all.
    pub tests: Option<String>,
    /// Jobs are released at multiples of this time only; `None`: at any time.
    pub grid: Option<Duration>,
}

/// The verdicts of the tests on one set, each by its name. JSON: the line of the answer.
#[derive(Serialize)]
pub struct Verdicts<'a> {
    /// As every document.
    pub schema_version: u32,
    /// The set as its line names it.
    pub id: &'a serde_json::Value,
    /// The grid that releases are taken to be on.
    #[serde(rename = "grid_ns", skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "model::time::ns::serialize")]
    pub grid: Option<Duration>,
    /// By the name of each test: the guarantee is shown, or not; `None`: the test does not apply.
    #[serde(serialize_with = "as_map")]
    pub verdicts: Vec<(&'static str, Option<bool>)>,
    /// Of a set with blocking or release jitter: why a test does not apply, by its name.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<(&'static str, String)>,
}

fn as_map<T: Serialize, S: serde::Serializer>(
    by_name: &[(&'static str, T)],
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(by_name.len()))?;
    for (name, said) in by_name {
        map.serialize_entry(name, said)?;
    }
    map.end()
}

/// Answers every line of `batch`, a file or `-` for standard input, into `output`. Returns how
/// many sets.
///
/// # Errors
/// An unknown test; a grid of zero, or one that a set does not stay on; as [`batch::run`].
pub fn run(batch: &str, options: &Options, output: Output<'_>, watch: &dyn Watch) -> Result<u64> {
    let judge = Judge::new(options)?;
    batch::run("Judging task sets", batch, output, watch, |set| {
        serde_json::to_string(&judge.verdicts(set)?)
            .map_err(|e| Error::new(format!("the verdicts cannot be written as JSON: {e}")))
    })
}

/// Judges set by set.
pub struct Judge {
    tests: Vec<&'static TestInfo>,
    grid: Option<Duration>,
}

impl Judge {
    /// Finds the tests.
    ///
    /// # Errors
    /// An unknown test; a grid of zero.
    pub fn new(options: &Options) -> Result<Self> {
        let tests = match options.tests.as_deref() {
            Some(names) => registry::find_list(names).map_err(|e| e.at("--tests"))?,
            None => registry::ALL.iter().collect(),
        };
        if options.grid.is_some_and(Duration::is_zero) {
            return Err(Error::new("a grid of zero has no multiples")
                .at("--grid")
                .remedy("give a time such as `1us`, or leave it out for releases at any time"));
        }
        Ok(Judge {
            tests,
            grid: options.grid,
        })
    }

    /// The answer to one set.
    ///
    /// # Errors
    /// The set does not stay on the grid.
    pub fn verdicts<'a>(&self, batch: &'a BatchSet) -> Result<Verdicts<'a>> {
        if let Some(grid) = self.grid {
            stays_on_grid(&batch.set, grid)?;
        }
        let has_extras = !batch.set.extras().is_empty();
        let mut reasons = Vec::new();
        let verdicts = self.tests.iter().map(|test| {
            let decision = match self.grid {
                Some(grid) if test.on_grid.is_some() => {
                    test.decide_on_grid(batch.set.timings(), batch.m, grid)
                }
                _ => test.decide_set(&batch.set, batch.m),
            };
            if let (true, Err(why)) = (has_extras, &decision) {
                reasons.push((test.name, why.to_string()));
            }
            (test.name, decision.ok())
        });
        let verdicts = verdicts.collect();
        Ok(Verdicts {
            schema_version: SCHEMA_VERSION,
            id: &batch.id,
            grid: self.grid,
            verdicts,
            reasons,
        })
    }
}

/// # Errors
/// The first time that is no multiple of `grid`, with its task; jitter or blocking.
fn stays_on_grid(set: &TaskSet, grid: Duration) -> Result<()> {
    const REMEDY: &str = "leave out --grid for releases at any time";
    if set.extras().iter().any(|extras| !extras.is_none()) {
        return Err(
            Error::new("a set with jitter or blocking does not stay on a grid").remedy(REMEDY),
        );
    }
    for (index, t) in set.timings().iter().enumerate() {
        for (what, time) in [
            ("wcet", t.wcet),
            ("period", t.period),
            ("deadline", t.deadline),
        ] {
            if !time.nanos().is_multiple_of(grid.nanos()) {
                return Err(Error::new(format!(
                    "the {what} of {time} is no multiple of the grid of {grid}"
                ))
                .at(format!("task {}", index + 1))
                .remedy(REMEDY));
            }
        }
    }
    Ok(())
}
