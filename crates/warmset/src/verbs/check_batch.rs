//! `warmset check --batch`: many task sets from a file or a pipe, one verdict line each (DESIGN, "Task sets").

use crate::{Answer, batch};
use analyze::{TestInfo, registry};
use model::taskfile::BatchSet;
use model::{Duration, Error, Result, TaskSet};
use std::path::Path;

/// Options of the batch mode.
#[derive(clap::Args, Debug)]
pub struct BatchArgs {
    /// Judge every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tasks", "platform", "processors", "profile", "cpmd", "hard", "soft", "policy", "explain"
    ])]
    pub batch: Option<String>,
    /// With --batch: the tests to run, such as `GFB,BAK,BCL` [default: all]
    #[arg(long, value_name = "NAMES")]
    pub tests: Option<String>,
    /// With --batch: take for granted that jobs are released at multiples of this time only, such as `1us`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub grid: Option<Duration>,
}

/// What `--help` says about the batch mode.
pub const HELP: &str = "\
Batch mode: each line of the file is a task set with all times in integer microseconds,
    {\"id\": 7, \"m\": 4, \"tasks\": [{\"wcet\": 4000, \"period\": 33000, \"deadline\": 33000}]}
and each is answered in order by a line such as
    {\"id\":7,\"verdicts\":{\"GFB\":true,\"BAK\":false}}
`true`: the test shows that the guarantee holds; `false`: it does not show it, which refutes the set only where \
the test is exact (docs/tests.md). A test that does not apply to the set answers null. A bad line ends the run with status 2 and its number; the answers \
of the lines before it are already printed. With -o the file appears only if every line was answered.

A yes holds for jobs that are released at any time. With --grid it holds for releases at multiples of \
that time, and every time of the sets must be one: BCLI, RTA and GEDF_ANY then accept more. The answers say so:
    {\"id\":7,\"grid_ns\":1000,\"verdicts\":{\"RTA\":true}}

    warmset check --batch sets.jsonl --tests GFB,BAK,BCL
    warmset check --batch sets.jsonl --tests BCLI,RTA --grid 1us";

/// Answers every line of `batch` on standard output, or into `output`.
///
/// # Errors
/// An unknown test; a grid of zero, or one that a set does not stay on; what [`batch::run`] cannot do.
pub fn run(batch: &str, args: &BatchArgs, output: Option<&Path>) -> Result<Answer> {
    let tests: Vec<&TestInfo> = match args.tests.as_deref() {
        Some(names) => registry::find_list(names).map_err(|e| e.at("--tests"))?,
        None => registry::ALL.iter().collect(),
    };
    let grid = args.grid;
    if grid.is_some_and(Duration::is_zero) {
        return Err(Error::new("a grid of zero has no multiples")
            .at("--grid")
            .remedy("give a time such as `1us`, or leave it out for releases at any time"));
    }
    batch::run("Judging task sets", batch, output, |set| judge(set, &tests, grid))
}

/// The answer to one set.
fn judge(batch: &BatchSet, tests: &[&TestInfo], grid: Option<Duration>) -> Result<String> {
    let mut answer = format!("{{\"id\":{},", batch.id);
    if let Some(grid) = grid {
        stays_on_grid(&batch.set, grid)?;
        answer.push_str(&format!("\"grid_ns\":{},", grid.nanos()));
    }
    answer.push_str("\"verdicts\":{");
    for (index, test) in tests.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let decision = match grid {
            Some(grid) if test.on_grid.is_some() => test.decide_on_grid(batch.set.timings(), batch.m, grid),
            _ => test.decide_set(&batch.set, batch.m),
        };
        let verdict = match decision {
            Ok(true) => "true",
            Ok(false) => "false",
            Err(_) => "null",
        };
        answer.push_str(&format!("{comma}\"{}\":{verdict}", test.name));
    }
    answer.push_str("}}");
    Ok(answer)
}

/// # Errors
/// The first time that is no multiple of `grid`, with its task; jitter or blocking.
fn stays_on_grid(set: &TaskSet, grid: Duration) -> Result<()> {
    const REMEDY: &str = "leave out --grid for releases at any time";
    if set.extras().iter().any(|extras| !extras.is_none()) {
        return Err(Error::new("a set with jitter or blocking does not stay on a grid").remedy(REMEDY));
    }
    for (index, t) in set.timings().iter().enumerate() {
        for (what, time) in [("wcet", t.wcet), ("period", t.period), ("deadline", t.deadline)] {
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
