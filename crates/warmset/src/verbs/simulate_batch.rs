//! `warmset simulate --batch`: many task sets, one line of response times each (DESIGN, "Task sets").

use super::scheduling::{Scheduling, assignment_for};
use super::simulate::{JitterArg, default_horizon, lateness};
use crate::{Answer, batch};
use model::assignment::Clustered;
use model::taskfile::BatchSet;
use model::watch::Silent;
use model::{Assignment, CpuId, Duration, Error, Platform, Result};
use simulate::{Responses, Scenario};
use std::fmt::Write;
use std::path::Path;

/// What `--help` says about the batch mode.
pub const HELP: &str = "\
Batch mode: each line of the file is a task set with all times in integer microseconds,
    {\"id\": 7, \"m\": 4, \"tasks\": [{\"wcet\": 4000, \"period\": 33000, \"deadline\": 33000}]}
and each is answered in order by a line such as
    {\"id\":7,\"response_us\":[[4000,4000]],\"misses\":0,\"preemptions\":0,\"migrations\":0}
with the response time of every job from its arrival, null for one unfinished at the horizon. A line's \"horizon_us\" wins over --for; \
for p-edf, p-rm and p-fp its \"assign\" fixes the processor of every task. A set that cannot be partitioned answers null.

    warmset simulate --batch sets.jsonl --policy g-edf";

/// Answers every line of `batch` on standard output, or into `output`.
///
/// # Errors
/// What [`batch::run`] cannot do; a set that the policy cannot run.
pub fn run(
    batch: &str,
    how: &Scheduling,
    jitter: JitterArg,
    horizon: Option<Duration>,
    scenario: &Scenario,
    output: Option<&Path>,
) -> Result<Answer> {
    batch::run("Simulating task sets", batch, output, |set| {
        answer(set, how, jitter, horizon, scenario)
    })
}

fn answer(
    batch: &BatchSet,
    how: &Scheduling,
    jitter: JitterArg,
    horizon: Option<Duration>,
    scenario: &Scenario,
) -> Result<String> {
    let platform = Platform::symmetric(batch.m);
    let assignment = match &batch.assign {
        Some(processors) => Some(given(processors, batch)?),
        None => match assignment_for(how.policy(), &batch.set, &platform, how.fit)? {
            Ok(assignment) => assignment,
            Err(_) => {
                return Ok(format!(
                    "{{\"id\":{},\"response_us\":null,\"misses\":null,\"preemptions\":null,\"migrations\":null}}",
                    batch.id
                ));
            }
        },
    };
    let plan = how
        .policy()
        .plan(&how.setup(&batch.set, &platform, assignment.as_ref()))?;
    let scenario = Scenario {
        lateness: lateness(how.policy(), jitter, &batch.set, &scenario.releases)?,
        horizon: batch
            .horizon
            .or(horizon)
            .unwrap_or_else(|| default_horizon(&batch.set)),
        ..scenario.clone()
    };
    let responses = Responses::new(batch.set.len());
    let (summary, responses) =
        simulate::simulate(plan, &batch.set, &platform, &scenario, None, &Silent, responses)?;
    let mut line = format!("{{\"id\":{},\"response_us\":[", batch.id);
    for (task, responses) in responses.of.iter().enumerate() {
        line.push_str(if task == 0 { "[" } else { ",[" });
        for job in 0..summary.tasks[task].released as usize {
            if job > 0 {
                line.push(',');
            }
            match responses.get(job) {
                Some(ns) => write_micros(&mut line, *ns),
                None => line.push_str("null"),
            }
        }
        line.push(']');
    }
    // Writing to a string cannot fail.
    let _ = write!(
        line,
        "],\"misses\":{},\"preemptions\":{},\"migrations\":{}}}",
        summary.misses(),
        summary.preemptions(),
        summary.migrations()
    );
    Ok(line)
}

/// Whole where it is whole, as with times of a batch file at WCET it always is.
fn write_micros(line: &mut String, ns: u64) {
    // Writing to a string cannot fail.
    let _ = match ns % 1000 {
        0 => write!(line, "{}", ns / 1000),
        rest => write!(line, "{}.{rest:03}", ns / 1000),
    };
}

/// The assignment that a line gives.
fn given(processors: &[u32], batch: &BatchSet) -> Result<Assignment> {
    if let Some(bad) = processors.iter().find(|p| **p >= batch.m) {
        return Err(Error::new(format!("there is no processor {bad}"))
            .at("`assign`")
            .remedy(format!("give numbers below {}", batch.m)));
    }
    Ok(Assignment::Clustered(Clustered {
        clusters: (0..batch.m).map(|c| [CpuId(c)].into_iter().collect()).collect(),
        cluster_of: processors.to_vec(),
    }))
}
