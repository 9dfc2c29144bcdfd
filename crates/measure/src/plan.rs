//! What to measure: working sets, write ratios, loads, lengths, and the blocks of samples that they
//! are measured in.
//!
//! 000 §4.1 and 002 §5.2.2: working sets of powers of two from 4 KiB and of each cache's own size;
//! preemption lengths uniform in [0, 50 ms]; idle and under load. A plan and its seed determine
//! every random choice, so that an interrupted measurement goes on as it would have.

use crate::destinations::Destinations;
use crate::ratio::WriteRatio;
use machine::prefetchers::State as Prefetchers;
use model::{Bytes, CpuId, CpuSet, Duration, Error, Load, Platform, Result};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where powers of two end if none are asked for. Beyond it lie only the sizes of larger caches.
const LARGEST: Bytes = Bytes::from_mib(32);
/// One block in this many for what lies beyond [`LARGEST`]: one sample of it takes as long as
/// hundreds of small ones.
const THIN: u32 = 10;
/// Working sets are whole multiples of this, the smallest block that a walk is timed in.
pub const GRAIN: Bytes = Bytes::from_kib(4);

/// What the user asked for; `None` where the default is to be taken.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory for the results.
    pub out: PathBuf,
    /// The short measurement.
    pub quick: bool,
    /// Write ratios; empty: the one of the figures in 000.
    pub write_ratios: Vec<WriteRatio>,
    /// Working set sizes; empty: by the caches.
    pub wss: Vec<Bytes>,
    /// Samples for each kind of resumption, size, ratio and load.
    pub samples: Option<u32>,
    /// The longest preemption.
    pub max_preemption: Option<Duration>,
    /// Loads; empty: both.
    pub loads: Vec<Load>,
    /// The processors to measure on.
    pub cpus: Option<CpuSet>,
    /// Are hardware prefetchers to be turned off meanwhile?
    pub prefetchers_off: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// Go on with an interrupted measurement.
    pub resume: bool,
    /// The command line, for provenance.
    pub command: String,
    /// What is known of the machine, for provenance: facts by name.
    pub about: BTreeMap<String, String>,
}

/// A measurement, decided in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Directory for the results.
    #[serde(skip)]
    pub out: PathBuf,
    /// The command line, for provenance.
    #[serde(skip)]
    pub command: String,
    /// What is known of the machine, for provenance: facts by name.
    #[serde(skip)]
    pub about: BTreeMap<String, String>,
    /// Go on with an interrupted measurement.
    #[serde(skip)]
    pub resume: bool,
    /// Working set sizes, ascending.
    pub wss: Vec<Bytes>,
    /// Write ratios.
    pub write_ratios: Vec<WriteRatio>,
    /// Loads.
    pub loads: Vec<Load>,
    /// Samples aimed at for each kind of resumption, size, ratio and load.
    pub samples: u32,
    /// Of those, in one block.
    pub per_block: u32,
    /// Do sizes above [`LARGEST`] get one block in [`THIN`] only? So when nobody asked for them by
    /// name.
    pub thin: bool,
    /// Preemption lengths are uniform between zero and this.
    pub max_preemption: Duration,
    /// The processors to measure on.
    pub cpus: CpuSet,
    /// Whether hardware prefetchers are on meanwhile, as whoever turns them off says.
    #[serde(default)]
    pub prefetchers: Prefetchers,
    /// The seed of every random choice.
    pub seed: u64,
}

/// A group of samples that are taken one after the other under the same circumstances.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Block {
    /// Its number, from 0.
    pub number: u32,
    /// Working set size.
    pub wss: Bytes,
    /// Write ratio.
    pub write_ratio: WriteRatio,
    /// What else runs.
    pub load: Load,
}

/// One preemption or migration to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// Where the thread resumes.
    pub to: CpuId,
    /// After how long.
    pub length: Duration,
}

impl Plan {
    /// Decides what was left open, by what the platform has.
    ///
    /// # Errors
    /// No processor left, a processor that is offline or not permitted, a working set that is zero,
    /// not a multiple of [`GRAIN`] or larger than memory, no samples.
    pub fn of(options: &Options, platform: &Platform) -> Result<Plan> {
        let cpus = processors(options.cpus.as_ref(), platform)?;
        let kinds = Destinations::among(platform, &cpus).kinds().len() as u32;
        let wss = if options.wss.is_empty() {
            working_sets(platform, &cpus, options.quick, memory("MemTotal:"))
        } else {
            let mut wss = options.wss.clone();
            wss.sort_unstable();
            wss.dedup();
            wss
        };
        for size in &wss {
            check_working_set(*size)?;
        }
        // The quick one shares a fixed number of samples among the kinds, so that machines with
        // many kinds stay quick.
        let samples = options.samples.unwrap_or(if options.quick {
            850 / kinds.max(1)
        } else {
            1000
        });
        if samples == 0 {
            return Err(Error::new("no samples are asked for")
                .remedy("give `--samples` a number of at least 1"));
        }
        let max_preemption = options
            .max_preemption
            .unwrap_or(Duration::from_millis(if options.quick { 5 } else { 50 }));
        if max_preemption > Duration::from_secs(10) {
            return Err(Error::new(format!(
                "a preemption of {max_preemption} is longer than this measures"
            ))
            .remedy("give `--max-preemption` at most 10s"));
        }
        let or = |given: &[WriteRatio]| match given {
            [] => vec![WriteRatio::DEFAULT],
            some => {
                let mut ratios: Vec<WriteRatio> = Vec::new();
                for ratio in some {
                    if !ratios.contains(ratio) {
                        ratios.push(*ratio);
                    }
                }
                ratios
            }
        };
        let mut loads = options.loads.clone();
        loads.sort_unstable();
        loads.dedup();
        if loads.is_empty() {
            loads = vec![Load::Idle, Load::Load];
        }
        Ok(Plan {
            out: options.out.clone(),
            command: options.command.clone(),
            about: options.about.clone(),
            resume: options.resume,
            wss,
            write_ratios: or(&options.write_ratios),
            loads,
            samples,
            per_block: if options.quick {
                samples.div_ceil(3)
            } else {
                samples.min(25)
            },
            thin: options.wss.is_empty(),
            max_preemption,
            cpus,
            prefetchers: Prefetchers::Unknown,
            seed: options.seed,
        })
    }

    /// The blocks in the order in which they are measured: round by round through all cells, each
    /// round shuffled, so that whatever drifts spreads evenly.
    pub fn blocks(&self) -> Vec<Block> {
        let rounds = self.samples.div_ceil(self.per_block.max(1));
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut blocks = Vec::new();
        for number in 0..rounds {
            let mut round: Vec<Block> = Vec::new();
            let left_out =
                |wss: &Bytes| self.thin && *wss > LARGEST && !number.is_multiple_of(THIN);
            for wss in self.wss.iter().filter(|wss| !left_out(wss)) {
                for write_ratio in &self.write_ratios {
                    for load in &self.loads {
                        round.push(Block {
                            number: 0,
                            wss: *wss,
                            write_ratio: *write_ratio,
                            load: *load,
                        });
                    }
                }
            }
            round.shuffle(&mut rng);
            blocks.append(&mut round);
        }
        for (number, block) in (0..).zip(&mut blocks) {
            block.number = number;
        }
        blocks
    }

    /// Where a block starts, and what then happens: the same for the same plan, whatever was
    /// measured before.
    ///
    /// One more sample than asked for: the first one warms up the machine after the blocks before,
    /// and is not kept.
    pub fn draws(&self, block: &Block, destinations: &Destinations) -> (CpuId, Vec<Draw>) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 orders the blocks.
        rng.set_stream(u64::from(block.number) + 1);
        let start = destinations.start(&mut rng);
        let mut from = start;
        let count = self
            .per_block
            .saturating_mul(destinations.kinds().len() as u32);
        let draws = (0..=count)
            .map(|_| {
                from = destinations.next(from, &mut rng);
                Draw {
                    to: from,
                    length: Duration::from_nanos(rng.random_range(0..=self.max_preemption.nanos())),
                }
            })
            .collect();
        (start, draws)
    }
}

fn processors(asked: Option<&CpuSet>, platform: &Platform) -> Result<CpuSet> {
    let usable = platform.usable();
    if usable.is_empty() {
        return Err(
            Error::new(format!("no processor of `{}` may be used", platform.name))
                .remedy("widen the affinity mask or the cpuset of this process"),
        );
    }
    let Some(asked) = asked else {
        return Ok(usable);
    };
    if asked.is_empty() {
        return Err(Error::new("no processor is asked for")
            .remedy(format!("choose among {usable}, which this process may use")));
    }
    if let Some(missing) = asked.iter().find(|cpu| !usable.contains(*cpu)) {
        let why = match platform.processors.iter().find(|p| p.id == missing) {
            None => "does not exist",
            Some(p) if !p.online => "is offline",
            Some(_) => "is not permitted to this process",
        };
        return Err(Error::new(format!("processor {missing} {why}"))
            .remedy(format!("choose among {usable}")));
    }
    Ok(asked.clone())
}

/// Powers of two from 4 KiB, and each cache's own size (000 §4.1).
///
/// Quick: both up to twice the level-2 cache. Else: powers of two up to the last level, at most
/// [`LARGEST`], and every cache's own size that fits into a quarter of the memory.
fn working_sets(
    platform: &Platform,
    cpus: &CpuSet,
    quick: bool,
    memory: Option<Bytes>,
) -> Vec<Bytes> {
    let caches: Vec<(u8, Bytes)> = platform
        .data_levels()
        .into_iter()
        .flat_map(|level| {
            cpus.iter().filter_map(move |cpu| {
                platform
                    .data_cache(level, cpu)
                    .and_then(|c| c.size)
                    .map(|size| (level, size))
            })
        })
        .collect();
    let last = caches.iter().map(|(_, size)| *size).max();
    let second = caches
        .iter()
        .filter(|(level, _)| *level == 2)
        .map(|(_, size)| Bytes::new(size.get().saturating_mul(2)))
        .max();
    let limit = if quick {
        second.unwrap_or(Bytes::from_mib(4)).min(Bytes::from_mib(8))
    } else {
        last.unwrap_or(LARGEST).min(LARGEST)
    };
    let mut sizes: Vec<Bytes> = (0..)
        .map(|power| Bytes::from_kib(4 << power))
        .take_while(|size| *size <= limit)
        .collect();
    let room = match quick {
        true => limit,
        false => memory.map_or(limit, |all| limit.max(Bytes::new(all.get() / 4))),
    };
    sizes.extend(
        caches.iter().map(|(_, size)| *size).filter(|size| {
            *size <= room && size.get().is_multiple_of(GRAIN.get()) && size.get() > 0
        }),
    );
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn check_working_set(size: Bytes) -> Result<()> {
    if size.get() == 0 || !size.get().is_multiple_of(GRAIN.get()) {
        return Err(
            Error::new(format!("a working set of {size} cannot be measured"))
                .remedy(format!("give whole multiples of {GRAIN}")),
        );
    }
    let free = available_memory();
    // The larger half stays for the polluters and the rest of the system.
    if free.is_some_and(|free| size.get() > free.get() / 2) {
        return Err(Error::new(format!(
            "a working set of {size} does not fit into half of the {} MiB of memory that are available",
            free.unwrap_or_default().get() >> 20
        ))
        .remedy("give smaller ones with `--wss`"));
    }
    Ok(())
}

/// Memory that can be had without swapping; `None` where the system does not say.
pub fn available_memory() -> Option<Bytes> {
    memory("MemAvailable:")
}

/// A line of the system's account of its memory.
fn memory(key: &str) -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes::from_kib(kib))
}

#[cfg(test)]
mod tests;
