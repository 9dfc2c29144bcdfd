//! Simulates many task sets of a file or a pipe, with one line of response times each (DESIGN,
//! "Task sets").

use super::{Options, default_horizon, inputs, lateness};
use crate::batch;
use crate::output::Output;
use crate::scheduling::assignment_for;
use model::assignment::Clustered;
use model::document::SCHEMA_VERSION;
use model::taskfile::BatchSet;
use model::watch::{Silent, Watch};
use model::{Assignment, CpuId, Error, Platform, Result};
use simulate::Scenario;
use std::fmt::Write;

/// Answers every line of `batch`, a file or `-` for standard input, into `output`. Returns how
/// many sets. Platform, costs, release processors and trace of the options are not used: a line
/// names its number of processors, and nothing costs anything.
///
/// # Errors
/// Several policies; releases or execution times of a file; a set that the policy cannot run; as
/// [`batch::run`].
pub fn run(batch: &str, options: &Options, output: Output<'_>, watch: &dyn Watch) -> Result<u64> {
    let scenario = scenario(options)?;
    batch::run("Simulating task sets", batch, output, watch, |set| {
        answer(set, options, &scenario)
    })
}

/// What all sets have in common.
///
/// # Errors
/// Several policies; releases or execution times of a file.
fn scenario(options: &Options) -> Result<Scenario> {
    options.scheduling.only_one()?;
    Ok(Scenario {
        releases: inputs::releases_of(&options.releases, None)?,
        execution: inputs::execution_of(&options.execution, None)?,
        ..options.scenario()
    })
}

fn answer(batch: &BatchSet, options: &Options, scenario: &Scenario) -> Result<String> {
    let how = &options.scheduling;
    let platform = Platform::symmetric(batch.m);
    let assignment = match &batch.assign {
        Some(processors) => Some(given(processors, batch)?),
        None => match assignment_for(how.policy(), &batch.set, &platform, how.fit)? {
            Ok(assignment) => assignment,
            Err(_) => {
                return Ok(format!(
                    "{{\"schema_version\":{SCHEMA_VERSION},\"id\":{},\"response_ns\":null,\"misses\":null,\"preemptions\":null,\"migrations\":null}}",
                    batch.id
                ));
            }
        },
    };
    let plan = how
        .policy()
        .plan(&how.setup(&batch.set, &platform, assignment.as_ref()))?;
    let scenario = Scenario {
        lateness: lateness(how.policy(), options.jitter, &batch.set, &scenario.releases)?,
        horizon: batch
            .horizon
            .or(options.horizon)
            .unwrap_or_else(|| default_horizon(&batch.set)),
        ..scenario.clone()
    };
    let run = simulate::Run {
        set: &batch.set,
        platform: &platform,
        scenario: &scenario,
        costs: None,
        watch: &Silent,
    };
    let (summary, responses) = run.responses(plan)?;
    let mut line = format!(
        "{{\"schema_version\":{SCHEMA_VERSION},\"id\":{},\"response_ns\":[",
        batch.id
    );
    for (task, responses) in responses.of.iter().enumerate() {
        line.push_str(if task == 0 { "[" } else { ",[" });
        for job in 0..summary.tasks[task].released as usize {
            if job > 0 {
                line.push(',');
            }
            match responses.get(job) {
                Some(ns) => {
                    // Writing to a string cannot fail.
                    let _ = write!(line, "{ns}");
                }
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

/// The assignment that a line gives.
fn given(processors: &[u32], batch: &BatchSet) -> Result<Assignment> {
    if let Some(bad) = processors.iter().find(|p| **p >= batch.m) {
        return Err(Error::new(format!("there is no processor {bad}"))
            .at("`assign`")
            .remedy(format!("give numbers below {}", batch.m)));
    }
    Ok(Assignment::Clustered(Clustered {
        clusters: (0..batch.m)
            .map(|c| [CpuId(c)].into_iter().collect())
            .collect(),
        cluster_of: processors.to_vec(),
    }))
}
