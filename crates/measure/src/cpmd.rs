//! Cache-related preemption and migration delay of this machine, by the synthetic method (000 §3.2;
//! 002 §5.2).
//!
//! Goes through the blocks of a plan, keeps a journal, and writes the raw samples and the profile.
//! Interrupted, it writes what it has and keeps the journal, so that it can go on.

use crate::destinations::Destinations;
use crate::disturb;
use crate::line;
use crate::memory::Area;
use crate::plan::{Block, Plan, available_memory};
use crate::pollute::{self, Polluters};
use crate::run::{Rig, Taken};
use crate::samples::Discard;
use crate::system::{self, Usage};
use crate::walk::WorkingSet;
use machine::clock::{self, Calibration, Clock};
use machine::interrupts::Witness;
use machine::realtime;
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, CpuId, Duration, Error, Load, Platform, Profile, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub mod blocks;
mod ending;

use blocks::{BlockRecord, Row};

/// The profile within the directory of the results.
pub const PROFILE: &str = "profile.toml";
/// The raw samples within the directory of the results.
pub const SAMPLES: &str = "samples.parquet";

/// How long polluters run before a block under load begins.
const SETTLE: Duration = Duration::from_millis(10);
/// How long the clock is compared with the system's.
const CALIBRATE: Duration = Duration::from_millis(50);
/// Above this part of the time of others, an idle machine was not idle.
const BUSY: f64 = 0.05;
/// Above this part of the time, the hypervisor took too much.
const STOLEN: f64 = 0.01;

/// What a measurement found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The profile, as it was written.
    pub profile: Profile,
    /// Its file.
    pub profile_path: PathBuf,
    /// The file of the raw samples.
    pub samples_path: PathBuf,
    /// How many samples were taken, the discarded ones too.
    pub samples: u64,
    /// How many samples do not count, by cause.
    pub discards: BTreeMap<Discard, u64>,
    /// The blocks in the order in which they were measured.
    pub blocks: Vec<BlockSummary>,
    /// What it cost, divided by the sum of all walks and preemption lengths.
    pub cost_ratio: f64,
    /// If the user stopped it: how many blocks of how many are done.
    pub interrupted: Option<(u32, u32)>,
}

/// A block as the outcome has it.
#[derive(Clone, Debug, Serialize)]
pub struct BlockSummary {
    /// Its number.
    pub number: u32,
    /// Working set size.
    pub wss: Bytes,
    /// Part of the words that are written.
    pub write_ratio: f64,
    /// What else ran.
    pub load: Load,
    /// Line transfer times before.
    pub before: Vec<line::Transfer>,
    /// Line transfer times after.
    pub after: Vec<line::Transfer>,
    /// Why it is kept apart, if it is.
    pub kept_apart: Option<Discard>,
    /// Part of the processors' time that other programs had.
    pub foreign: f64,
    /// Part of the processors' time that the hypervisor took.
    pub steal: f64,
}

/// Measures what the plan says. See `docs/measuring.md` for what is done and how to read it.
///
/// # Errors
/// The directory is not writable or full (what was measured before stays in the journal); a journal
/// that does not fit; no memory; a processor that goes away; a runaway; stopped before the first
/// block was finished.
pub fn measure(plan: &Plan, platform: &Platform, watch: &dyn Watch) -> Result<Outcome> {
    #[cfg(target_arch = "x86_64")]
    match clock::counter() {
        Ok(counter) => return Session::new(plan, platform, watch, counter)?.run(),
        Err(e) => watch.note(&format!("note: {e}")),
    }
    Session::new(plan, platform, watch, clock::Monotonic)?.run()
}

/// A measurement that runs.
struct Session<'a, C> {
    plan: &'a Plan,
    platform: &'a Platform,
    watch: &'a dyn Watch,
    rig: Rig<C>,
    destinations: Destinations,
    pairs: Vec<(CpuId, CpuId)>,
    /// Held while measuring.
    changed: Settings,
    _locked: Option<realtime::LockedMemory>,
    warnings: Vec<String>,
    facts: BTreeMap<String, String>,
    started: u64,
}

impl<'a, C: Clock> Session<'a, C> {
    fn new(plan: &'a Plan, platform: &'a Platform, watch: &'a dyn Watch, clock: C) -> Result<Self> {
        let started = clock::monotonic_raw();
        let calibration = Calibration::of(clock, CALIBRATE)?;
        let mut warnings = Vec::new();
        // Tried with the watchdog's priority, the higher of the two; given back at once.
        let realtime = match realtime::raise(realtime::WATCHDOG) {
            Ok(_raised) => true,
            Err(e) => {
                warnings.push(format!("measured without real-time priority: {e}"));
                false
            }
        };
        let mut changed = Settings::new();
        if let Err(e) = changed.keep_processors_awake() {
            warnings.push(format!("processors may have slept while idle: {e}"));
        }
        let locked = realtime::lock_memory()
            .map_err(|e| {
                warnings.push(format!("measured with memory that can be swapped out: {e}"))
            })
            .ok();
        let governors = system::governors(&plan.cpus);
        if governors.iter().any(|g| g != "performance") {
            warnings.push(format!(
                "the frequency of the processors may have changed (governor {}); `cpupower frequency-set -g performance` holds it",
                governors.join(", ")
            ));
        }
        let largest = plan.wss.last().copied().unwrap_or_default().get();
        let rig = Rig {
            clock,
            calibration,
            witness: Witness::new(),
            realtime,
            // Ten nanoseconds for a byte in each of three walks is slower than any memory.
            patience: Duration::from_secs(5)
                .saturating_add(plan.max_preemption)
                .saturating_add(Duration::from_nanos(largest.saturating_mul(30))),
        };
        if !rig.witness.works() {
            warnings.push(
                "interrupts are not seen on this machine: short ones may be among the delays"
                    .to_owned(),
            );
        }
        for warning in &warnings {
            watch.note(&format!("warning: {warning}"));
        }
        let mut session = Session {
            plan,
            platform,
            watch,
            rig,
            destinations: Destinations::among(platform, &plan.cpus),
            pairs: line::pairs(platform, &plan.cpus),
            changed,
            _locked: locked,
            warnings,
            facts: plan.about.clone(),
            started,
        };
        session.tell_settings(&governors);
        Ok(session)
    }

    fn run(mut self) -> Result<Outcome> {
        let kernel = system::kernel();
        let (mut journal, mut records) = blocks::open(self.plan, self.platform, &kernel)?;
        let blocks = self.plan.blocks();
        self.check_journal(&records, &blocks)?;
        let resumed = records.len();
        let polluters = self.start_polluters()?;
        let steps: Vec<u64> = blocks
            .iter()
            .map(|block| self.expected(block).nanos() / 1_000_000 + 1)
            .collect();
        self.watch
            .begin("measuring cache delays", steps.iter().sum());
        self.watch.advance(steps.iter().take(resumed).sum());
        let overhead = Duration::from_nanos(clock::monotonic_raw().saturating_sub(self.started));
        let mut stopped = false;
        // What happens between blocks is short, and must not wait for other programs. The polluters
        // run already, and do not have this priority.
        let hurried = if self.rig.realtime {
            Some(realtime::raise_with_threads(realtime::LOWEST)?)
        } else {
            None
        };
        for (block, steps) in blocks.iter().zip(steps).skip(resumed) {
            let done = self.block(block, polluters.as_ref()).and_then(|record| {
                let Some(record) = record else {
                    return Ok(false);
                };
                journal.add(&record)?;
                records.push(record);
                Ok(true)
            });
            match done {
                Ok(true) => self.watch.advance(steps),
                Ok(false) => {
                    stopped = true;
                    break;
                }
                // A journal without blocks is of no use; the error to tell is this one.
                Err(e) if records.is_empty() => return journal.remove().and(Err(e)),
                Err(e) => return Err(e),
            }
        }
        drop(hurried);
        drop(polluters);
        if records.is_empty() {
            journal.remove()?;
            return Err(
                Error::new("stopped before the first block of samples was finished")
                    .remedy("nothing was kept; begin again"),
            );
        }
        let ended = clock::monotonic_raw();
        let mut outcome = self.finish(&blocks, &records, kernel, stopped)?;
        let spent: u64 = records.iter().map(|r| r.spent.nanos()).sum();
        let around = clock::monotonic_raw().saturating_sub(ended) + overhead.nanos();
        outcome.cost_ratio = cost_ratio(spent + around, &records);
        self.write_profile(&mut outcome)?;
        if !stopped {
            journal.remove()?;
        }
        Ok(outcome)
    }

    /// Refuses a journal of another plan.
    fn check_journal(&self, records: &[BlockRecord], blocks: &[Block]) -> Result<()> {
        if records.len() > blocks.len()
            || records
                .iter()
                .zip(blocks)
                .any(|(r, b)| r.number != b.number)
        {
            return Err(Error::new("the journal has blocks that the plan has not")
                .at(self.plan.out.display())
                .remedy("remove the journal to begin anew"));
        }
        Ok(())
    }

    /// Starts the best-effort threads that dirty the caches, if the plan measures under load.
    fn start_polluters(&mut self) -> Result<Option<Polluters>> {
        if self.plan.loads.contains(&Load::Load) {
            let size = pollute::array_size(self.platform, &self.plan.cpus, available_memory());
            self.facts.insert(
                "polluters".to_owned(),
                format!(
                    "{} best-effort threads, one pinned to each processor, each changing one word of every line of {size}",
                    self.plan.cpus.len()
                ),
            );
            Polluters::start(&self.plan.cpus, size).map(Some)
        } else {
            Ok(None)
        }
    }

    /// How long a block will take, roughly: for the bar.
    fn expected(&self, block: &Block) -> Duration {
        let samples = u64::from(self.plan.per_block) * self.destinations.kinds().len() as u64 + 1;
        // A third of a nanosecond a byte for all walks and the flush together.
        let walks = block.wss.get() / 3;
        Duration::from_nanos(samples * (self.plan.max_preemption.nanos() / 2 + walks + 100_000))
    }

    fn block(
        &mut self,
        block: &Block,
        polluters: Option<&Polluters>,
    ) -> Result<Option<BlockRecord>> {
        let began = clock::monotonic_raw();
        let (start, draws) = self.plan.draws(block, &self.destinations);
        // New memory for every block: how its pages lie in the caches is a matter of luck, and
        // should not be the same luck throughout.
        let mut set = WorkingSet::of(Area::map(block.wss)?);
        if !set.area().locked() {
            self.warn("the working set could not be locked in memory (`ulimit -l`)");
        }
        let before = line::measure(&self.pairs)?;
        let usage = Usage::now(&self.plan.cpus);
        if let (Some(polluters), Load::Load) = (polluters, block.load) {
            polluters.set_running(true);
            realtime::sleep(SETTLE);
        }
        let taken = self.rig.take(block, &mut set, start, &draws, self.watch);
        if let Some(polluters) = polluters {
            polluters.set_running(false);
        }
        let Some(taken) = taken? else {
            return Ok(None);
        };
        let (foreign, steal) = Usage::now(&self.plan.cpus).since(&usage);
        let after = line::measure(&self.pairs)?;
        let lines: Vec<u64> = (0..set.blocks()).map(|b| set.lines_of(b) as u64).collect();
        let (evidence, rows): (Vec<_>, Vec<_>) = taken.into_iter().map(row_of).unzip();
        let samples = rows
            .into_iter()
            .zip(disturb::judge(&evidence, &lines))
            .map(|(Row(from, to, times, _), cause)| Row(from, to, times, cause))
            .collect();
        drop(set);
        Ok(Some(BlockRecord {
            number: block.number,
            before,
            after,
            foreign,
            steal,
            samples,
            spent: Duration::from_nanos(clock::monotonic_raw().saturating_sub(began)),
        }))
    }

    fn warn(&mut self, warning: &str) {
        if !self.warnings.iter().any(|w| w == warning) {
            self.watch.note(&format!("warning: {warning}"));
            self.warnings.push(warning.to_owned());
        }
    }
}

fn row_of(taken: Taken) -> (disturb::Evidence, Row) {
    let times = [
        taken.asked,
        taken.preempted,
        taken.cold,
        taken.warm,
        taken.post,
    ]
    .map(Duration::nanos);
    (taken.evidence, Row(taken.from, taken.to, times, None))
}

/// What was spent, divided by what the method itself takes: three walks and the preemption of every
/// sample.
fn cost_ratio(spent: u64, records: &[BlockRecord]) -> f64 {
    let method: u64 = records
        .iter()
        .flat_map(|r| &r.samples)
        .map(|Row(_, _, [_, preempted, cold, warm, post], _)| preempted + cold + warm + post)
        .sum();
    spent as f64 / method.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_compared_with_walks_and_preemptions() {
        let record = BlockRecord {
            number: 0,
            before: Vec::new(),
            after: Vec::new(),
            spent: Duration::ZERO,
            foreign: 0.0,
            steal: 0.0,
            samples: vec![Row(CpuId(0), CpuId(0), [70, 80, 10, 4, 6], None); 3],
        };
        // Asked for 70, got 80: what happened counts. 3 × (80 + 10 + 4 + 6) = 300.
        assert_eq!(cost_ratio(330, &[record]), 1.1);
    }
}
