//! The end of a measurement: what disturbed it, what is told of it, and the profile that is
//! written.

use super::{BUSY, BlockSummary, Outcome, PROFILE, SAMPLES, STOLEN, Session};
use crate::cpmd::blocks::BlockRecord;
use crate::keep;
use crate::placement;
use crate::plan::Block;
use crate::results;
use crate::samples::{self, Discard, Sample};
use crate::system;
use machine::clock::Clock;
use machine::realtime;
use model::{Load, Profile, Provenance, Result};
use std::collections::BTreeMap;

impl<'a, C: Clock> Session<'a, C> {
    /// Writes the samples, and builds the profile.
    pub(super) fn finish(
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
        let of = |load| {
            blocks
                .iter()
                .filter(move |b: &&BlockSummary| b.load == load)
        };
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
        let stalls = discards.get(&Discard::Late).unwrap_or(&0)
            + discards.get(&Discard::Stalled).unwrap_or(&0);
        if stalls > 0 {
            self.warn(&format!(
                "the machine stood still for more than 5 ms during {stalls} samples (throttled, or the hypervisor)"
            ));
        }
    }

    pub(super) fn tell_settings(&mut self, governors: &[String]) {
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
        tell("prefetchers", self.plan.prefetchers.name().to_owned());
        tell(
            "walk",
            "words of 8 bytes in ascending order; a written word is read, changed and stored"
                .to_owned(),
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
            format!(
                "{} of each cell, in blocks of {}",
                plan.samples, plan.per_block
            ),
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
            time: system::now(),
            machine: self.platform.description.clone(),
            kernel,
            seed: Some(self.plan.seed),
            warnings: self.warnings.clone(),
            settings: self.facts.clone(),
        }
    }

    pub(super) fn write_profile(&self, outcome: &mut Outcome) -> Result<()> {
        outcome.profile.provenance.settings.insert(
            "cost".to_owned(),
            format!(
                "{:.3} times the sum of all walks and preemption lengths",
                outcome.cost_ratio
            ),
        );
        if let Some(before) = keep::there(&outcome.profile_path, self.platform)? {
            outcome.profile = keep::overheads(outcome.profile.clone(), before);
        }
        model::files::write(
            &outcome.profile_path,
            model::profilefile::to_toml(&outcome.profile),
        )
    }
}

/// The provenance as key-value pairs for the file of samples.
pub(super) fn about(p: &Provenance) -> Vec<(String, String)> {
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
