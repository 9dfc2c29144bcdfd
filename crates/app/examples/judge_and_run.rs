//! Judges a task set, simulates it and runs it for real:
//! `cargo run -p warmset-app --example judge_and_run -- examples/control.toml`

use app::{Tasks, check, run, simulate};
use model::watch::Silent;
use model::{Duration, Result};
use std::path::Path;
use trace::sink::NullSink;

fn main() -> Result<()> {
    let path = std::env::args().nth(1);
    let path = path.unwrap_or_else(|| "examples/control.toml".to_owned());
    println!("{}", judge_and_run(Path::new(&path))?);
    Ok(())
}

/// What came of the task set of a file, in three lines.
pub fn judge_and_run(path: &Path) -> Result<String> {
    let tasks = Tasks::read(path)?;
    let checked = check::check(&tasks, &check::Options::default(), &Silent)?;
    let judged = checked.judgment.advice;

    let simulated = simulate::simulate(&tasks, &simulate::Options::default(), &Silent)?;
    let sum = simulated.added_up;
    let simulated = format!("simulated: {} jobs, {} misses", sum.jobs, sum.misses);

    let options = run::Options {
        horizon: Duration::from_secs(1),
        ..run::Options::default()
    };
    let planned = run::plan(&tasks, &options)?;
    let ran = match planned.preflight.permit() {
        Err(why) => format!("not run: {why}"),
        Ok(()) => {
            let ran = planned.run(&Silent, NullSink)?;
            format!(
                "for real: {} jobs, {} misses",
                ran.summary.jobs, ran.summary.misses
            )
        }
    };
    Ok(format!("judged: {judged}\n{simulated}\n{ran}"))
}
