//! Measures what this machine costs: cache-related preemption and migration delays, and overheads
//! of the scheduler.

mod charts;
pub mod modelled;
pub mod overheads;
mod prefetchers;
pub mod scheduled;
pub mod task;
pub mod wss;

use crate::pages;
use ::measure::cpmd::{self, Outcome};
use ::measure::plan::{Options, Plan};
use model::watch::Watch;
use model::{Error, Platform, Result};
use prefetchers::Held;
use std::path::Path;

/// Measures cache-related preemption and migration delays of this machine into a directory. The
/// provenance of the results gets the machine's settings, where the options name none.
///
/// # Errors
/// Options that make no plan; a finished measurement in the directory; no right to measure; files
/// that cannot be written.
pub fn cpmd(mut options: Options, watch: &dyn Watch) -> Result<Outcome> {
    let machine = machine::detect::this_machine()?;
    if options.about.is_empty() {
        options.about = machine.settings();
    }
    let plan = Plan::of(&options, &machine.platform)?;
    spare_finished(&plan)?;
    // Found out before hours of measuring.
    ::measure::keep::there(&plan.out.join(cpmd::PROFILE), &machine.platform)?;
    delays(plan, options.prefetchers_off, &machine.platform, watch)
}

/// Measures by a plan, which is told how the hardware prefetchers are meanwhile: off, or as the
/// machine has them.
///
/// # Errors
/// Prefetchers that cannot be turned off; no right to measure; files that cannot be written.
pub(crate) fn delays(
    mut plan: Plan,
    prefetchers_off: bool,
    platform: &Platform,
    watch: &dyn Watch,
) -> Result<Outcome> {
    let prefetchers = Held::over(prefetchers_off, &plan.cpus)?;
    plan.prefetchers = prefetchers.state();
    let outcome = cpmd::measure(&plan, platform, watch)?;
    watch.finish();
    Ok(outcome)
}

/// Is a measurement into `dir` complete?
///
/// # Errors
/// The user stopped it: what was measured is kept.
pub fn complete(outcome: &Outcome, dir: &Path) -> Result<()> {
    match outcome.interrupted {
        None => Ok(()),
        Some((done, all)) => Err(Error::new(format!(
            "interrupted after {done} of {all} blocks of samples; what was measured is kept"
        ))
        .at(dir.display())
        .remedy("go on with the same command and `--resume`")),
    }
}

/// Refuses to measure over a measurement that is complete: it may have taken hours.
fn spare_finished(plan: &Plan) -> Result<()> {
    let there = |name: &str| plan.out.join(name).exists();
    if !plan.resume && there(pages::SAMPLES) && !there(cpmd::blocks::NAME) {
        return Err(Error::new("a finished measurement is in this directory")
            .at(plan.out.display())
            .remedy("choose another directory, or remove its samples.parquet to measure anew"));
    }
    Ok(())
}
