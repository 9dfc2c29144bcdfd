//! Cache-related preemption and migration delay of this machine, by the synthetic method (000 §3.2; 002 §5.2).
//!
//! Goes through the blocks of a plan, keeps a journal, and writes the raw samples and the profile. Interrupted, it
//! writes what it has and keeps the journal, so that it can go on.

use crate::destinations::Destinations;
use crate::disturb;
use crate::journal::{BlockRecord, Journal, Row};
use crate::line;
use crate::memory::Area;
use crate::placement;
use crate::plan::{Block, Plan, available_memory};
use crate::pollute::{self, Polluters};
use crate::results;
use crate::run::{Rig, Taken};
use crate::samples::{self, Discard, Sample};
use crate::system::{self, Usage};
use crate::walk::WorkingSet;
use machine::clock::{self, Calibration, Clock};
use machine::interrupts::Witness;
use machine::realtime;
use machine::settings::Settings;
use model::watch::Watch;
use model::{Bytes, CpuId, Duration, Error, Load, Platform, Profile, Provenance, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
/// The directory is not writable or full (what was measured before stays in the journal); a journal that does not fit;
/// no memory; a processor that goes away; a runaway; stopped before the first block was finished.
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
            .map_err(|e| warnings.push(format!("measured with memory that can be swapped out: {e}")))
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
                "interrupts are not seen on this machine: short ones may be among the delays".to_owned(),
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
        let (mut journal, mut records) = Journal::open(self.plan, self.platform, &kernel)?;
        let blocks = self.plan.blocks();
        if records.len() > blocks.len() || records.iter().zip(&blocks).any(|(r, b)| r.number != b.number) {
            return Err(Error::new("the journal has blocks that the plan has not")
                .at(self.plan.out.display())
                .remedy("remove the journal to begin anew"));
        }
        let resumed = records.len();
        let polluters = if self.plan.loads.contains(&Load::Load) {
            let size = pollute::array_size(self.platform, &self.plan.cpus, available_memory());
            self.facts.insert(
                "polluters".to_owned(),
                format!(
                    "{} best-effort threads, one pinned to each processor, each changing one word of every line of {size}",
                    self.plan.cpus.len()
                ),
            );
            Some(Polluters::start(&self.plan.cpus, size)?)
        } else {
            None
        };
        let steps: Vec<u64> = blocks
            .iter()
            .map(|block| self.expected(block).nanos() / 1_000_000 + 1)
            .collect();
        self.watch.begin("measuring cache delays", steps.iter().sum());
        self.watch.advance(steps.iter().take(resumed).sum());
        let overhead = Duration::from_nanos(clock::monotonic_raw().saturating_sub(self.started));
        let mut stopped = false;
        // What happens between blocks is short, and must not wait for other programs. The polluters run already, and do
        // not have this priority.
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

    /// How long a block will take, roughly: for the bar.
    fn expected(&self, block: &Block) -> Duration {
        let samples = u64::from(self.plan.per_block) * self.destinations.kinds().len() as u64 + 1;
        // A third of a nanosecond a byte for all walks and the flush together.
        let walks = block.wss.get() / 3;
        Duration::from_nanos(samples * (self.plan.max_preemption.nanos() / 2 + walks + 100_000))
    }

    fn block(&mut self, block: &Block, polluters: Option<&Polluters>) -> Result<Option<BlockRecord>> {
        let began = clock::monotonic_raw();
        let (start, draws) = self.plan.draws(block, &self.destinations);
        // New memory for every block: how its pages lie in the caches is a matter of luck, and should not be the same
        // luck throughout.
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

    /// Writes the samples, and builds the profile.
    fn finish(
        &mut self,
        blocks: &[Block],
        records: &[BlockRecord],
        kernel: String,
        stopped: bool,
    ) -> Result<Outcome> {
        let placements = placement::classify(records);
        let mut samples: Vec<Sample> = Vec::new();
        let mut summaries = Vec::new();
        for ((record, block), apart) in records.iter().zip(blocks).zip(placements) {
            samples.extend(record.expand(block, self.platform).map(|mut sample| {
                sample.discarded = sample.discarded.or(apart);
                sample
            }));
            summaries.push(BlockSummary {
                number: block.number,
                wss: block.wss,
                write_ratio: block.write_ratio.as_f64(),
                load: block.load,
                before: record.before.clone(),
                after: record.after.clone(),
                kept_apart: apart,
                foreign: record.foreign,
                steal: record.steal,
            });
        }
        let discards = results::discards(&samples);
        self.warn_of_disturbances(&summaries, &discards, samples.len());
        if stopped {
            self.warn(&format!(
                "interrupted after {} of {} blocks of samples",
                records.len(),
                blocks.len()
            ));
        }
        let drift = self.rig.calibration.drift_ppm(self.rig.clock);
        if drift > self.rig.calibration.error_ppm.saturating_add(1000) {
            self.warn(&format!(
                "the clock drifted by {drift} parts per million: the machine may have been moved to another host"
            ));
        }
        let compared: Vec<String> = results::compared(&samples)
            .into_iter()
            .map(|(wss, k)| format!("{wss}: {k}"))
            .collect();
        self.facts.insert(
            "samples of each cell that are compared".to_owned(),
            compared.join(", "),
        );
        let mut profile = Profile::new(self.platform.name.clone(), self.provenance(kernel));
        profile.cpmd = results::curves(&samples, self.plan.seed);
        let samples_path = self.plan.out.join(SAMPLES);
        samples::write(&samples_path, &samples, &about(&profile.provenance))?;
        Ok(Outcome {
            profile,
            profile_path: self.plan.out.join(PROFILE),
            samples_path,
            samples: samples.len() as u64,
            discards,
            blocks: summaries,
            cost_ratio: 0.0,
            interrupted: stopped.then_some((records.len() as u32, blocks.len() as u32)),
        })
    }

    fn warn_of_disturbances(
        &mut self,
        blocks: &[BlockSummary],
        discards: &BTreeMap<Discard, u64>,
        samples: usize,
    ) {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let of = |load| blocks.iter().filter(move |b: &&BlockSummary| b.load == load);
        for load in [Load::Idle, Load::Load] {
            let foreign = mean(of(load).map(|b| b.foreign).collect());
            if foreign > BUSY {
                self.warn(&format!(
                    "other programs had {:.0} % of the processors' time {}",
                    foreign * 100.0,
                    match load {
                        Load::Idle =>
                            "while idle delays were measured: they are not those of an idle machine",
                        Load::Load => "while delays under load were measured",
                    }
                ));
            }
        }
        let steal = mean(blocks.iter().map(|b| b.steal).collect());
        if steal > STOLEN {
            self.warn(&format!(
                "the hypervisor took {:.0} % of the processors' time",
                steal * 100.0
            ));
        }
        let gone: u64 = discards.values().sum();
        if gone as f64 > 0.2 * samples as f64 {
            self.warn(&format!(
                "{gone} of {samples} samples were disturbed and discarded"
            ));
        }
        let stalls =
            discards.get(&Discard::Late).unwrap_or(&0) + discards.get(&Discard::Stalled).unwrap_or(&0);
        if stalls > 0 {
            self.warn(&format!(
                "the machine stood still for more than 5 ms during {stalls} samples (throttled, or the hypervisor)"
            ));
        }
    }

    fn tell_settings(&mut self, governors: &[String]) {
        let plan = self.plan;
        let c = &self.rig.calibration;
        let mut tell = |name: &str, value: String| {
            self.facts.insert(name.to_owned(), value);
        };
        tell(
            "clock",
            format!(
                "{} at {:.3} MHz, intervals within {} ppm, in steps of {}",
                self.rig.clock.name(),
                c.frequency() as f64 / 1e6,
                c.error_ppm,
                c.step
            ),
        );
        tell(
            "priority",
            if self.rig.realtime {
                format!(
                    "SCHED_FIFO {}, a watchdog at {}",
                    realtime::HIGHEST.get(),
                    realtime::WATCHDOG.get()
                )
            } else {
                "none".to_owned()
            },
        );
        tell(
            "interrupts",
            if self.rig.witness.works() {
                "on, seen by a segment register that they clear".to_owned()
            } else {
                "on, not seen".to_owned()
            },
        );
        tell("prefetchers", "on, as the machine has them".to_owned());
        tell(
            "walk",
            "words of 8 bytes in ascending order; a written word is read, changed and stored".to_owned(),
        );
        tell(
            "pages",
            "4 KiB (MADV_NOHUGEPAGE), in memory before measuring, new for every block".to_owned(),
        );
        tell(
            "cold walk",
            if cfg!(target_arch = "x86_64") {
                "every line flushed before".to_owned()
            } else {
                "as the sample before left the caches".to_owned()
            },
        );
        tell(
            "preemption lengths",
            format!("uniform between 0 and {}", plan.max_preemption),
        );
        tell("processors", plan.cpus.to_string());
        tell(
            "samples aimed at",
            format!("{} of each cell, in blocks of {}", plan.samples, plan.per_block),
        );
        if !governors.is_empty() {
            tell("governor", governors.join(", "));
        }
        for (name, value) in self.changed.told() {
            self.facts.insert(name.clone(), value.clone());
        }
    }

    fn provenance(&self, kernel: String) -> Provenance {
        Provenance {
            source: format!(
                "warmset {}, synthetic method (000 §3.2)",
                env!("CARGO_PKG_VERSION")
            ),
            command: self.plan.command.clone(),
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            machine: self.platform.description.clone(),
            kernel,
            seed: Some(self.plan.seed),
            warnings: self.warnings.clone(),
            settings: self.facts.clone(),
        }
    }

    fn write_profile(&self, outcome: &mut Outcome) -> Result<()> {
        outcome.profile.provenance.settings.insert(
            "cost".to_owned(),
            format!(
                "{:.3} times the sum of all walks and preemption lengths",
                outcome.cost_ratio
            ),
        );
        model::files::write(
            &outcome.profile_path,
            model::profilefile::to_toml(&outcome.profile),
        )
    }
}

fn row_of(taken: Taken) -> (disturb::Evidence, Row) {
    let times = [taken.asked, taken.preempted, taken.cold, taken.warm, taken.post].map(Duration::nanos);
    (taken.evidence, Row(taken.from, taken.to, times, None))
}

/// What was spent, divided by what the method itself takes: three walks and the preemption of every sample.
fn cost_ratio(spent: u64, records: &[BlockRecord]) -> f64 {
    let method: u64 = records
        .iter()
        .flat_map(|r| &r.samples)
        .map(|Row(_, _, [_, preempted, cold, warm, post], _)| preempted + cold + warm + post)
        .sum();
    spent as f64 / method.max(1) as f64
}

/// The provenance as key-value pairs for the file of samples.
fn about(p: &Provenance) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = [
        ("source", &p.source),
        ("command", &p.command),
        ("time", &p.time),
        ("machine", &p.machine),
        ("kernel", &p.kernel),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .collect();
    if let Some(seed) = p.seed {
        pairs.push(("seed".to_owned(), seed.to_string()));
    }
    pairs.extend(p.settings.iter().map(|(k, v)| (k.clone(), v.clone())));
    pairs.extend(p.warnings.iter().map(|w| ("warning".to_owned(), w.clone())));
    pairs
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
