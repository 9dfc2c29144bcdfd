//! Platforms: processors, caches and who shares them (000 §2 and §4; 002 §2.1.3 and §2.4).
//!
//! A platform is detected by room `machine`, read from a file, or built in ([`Platform::builtin`]).

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::size::Bytes;
use crate::strategy::{Strategy, Translations};
use crate::words;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a cache holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache. What the machine does not say is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 1 is nearest to the processor.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// How much it holds; `None` where the machine does not say, as many Arm boards do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Associativity; `None` when unknown, the number of lines when fully associative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Bytes of a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Number of sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<u32>,
    /// The processors behind it.
    pub shared_by: CpuSet,
    /// How it acts and what it costs.
    #[serde(default, skip_serializing_if = "Strategy::is_unknown")]
    pub strategy: Strategy,
}

impl CacheKind {
    /// Every kind.
    pub const ALL: [CacheKind; 3] = [CacheKind::Data, CacheKind::Instruction, CacheKind::Unified];

    /// As platforms write it.
    pub const fn name(self) -> &'static str {
        match self {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        }
    }

    /// As it stands behind the level: `L1d`.
    const fn letter(self) -> &'static str {
        match self {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        }
    }

    /// Do two caches of these kinds at one level serve the same accesses?
    fn overlaps(self, other: CacheKind) -> bool {
        self == other || self == CacheKind::Unified || other == CacheKind::Unified
    }
}

impl Cache {
    /// Its short name: `L1d`, `L1i`, `L2`.
    pub fn label(&self) -> String {
        format!("L{}{}", self.level, self.kind.letter())
    }
}

impl FromStr for CacheKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        words::find(&CacheKind::ALL, CacheKind::name, "kind of cache", text)
    }
}

/// One processor, i.e. one hardware thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its number.
    pub id: CpuId,
    /// Number of its core; SMT siblings have the same core and socket.
    pub core: u32,
    /// Number of its physical package.
    pub socket: u32,
    /// Number of its NUMA node.
    #[serde(default)]
    pub node: u32,
    /// Is it online? What is not known of an offline processor is zero.
    pub online: bool,
    /// May this process use it (affinity mask, cpuset)?
    pub usable: bool,
    /// Relative capacity where processors differ (big and little), 1024 for the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// A machine as a scheduler sees it.
///
/// Invariant: processors ascend by number, and every processor that a cache names exists.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Platform {
    /// A short name: `xeon-l7455`, or `this-machine`.
    pub name: String,
    /// What it is, in one line.
    pub description: String,
    /// Every processor, ascending, offline ones too.
    pub processors: Vec<Processor>,
    /// Every cache, by level, then kind, then lowest processor.
    pub caches: Vec<Cache>,
    /// The buffers of page translations of each processor, where they are described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Translations>,
    /// Page sizes that can be had, ascending.
    #[serde(default)]
    pub page_sizes: Vec<Bytes>,
    /// What one must know to trust this description (assumptions, gaps in what the machine said).
    #[serde(default)]
    pub notes: Vec<String>,
}

/// How a job resumes, by what of its cache affinity is preserved (000 §3).
///
/// Ordered by what is lost: a preemption first, a migration through memory last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resumption {
    /// On the same processor.
    Preemption,
    /// On another processor that shares the cache of this level, and none nearer.
    Migration(u8),
    /// On a processor that shares no cache.
    Memory,
}

impl fmt::Display for Resumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resumption::Preemption => f.pad("preemption"),
            Resumption::Migration(level) => f.pad(&format!("L{level}-migration")),
            Resumption::Memory => f.pad("memory-migration"),
        }
    }
}
impl FromStr for Resumption {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "preemption" => Ok(Resumption::Preemption),
            "memory-migration" => Ok(Resumption::Memory),
            _ => text
                .strip_prefix('L')
                .and_then(|t| t.strip_suffix("-migration"))
                .and_then(|t| t.parse().ok())
                .map(Resumption::Migration)
                .ok_or_else(|| {
                    Error::new(format!("`{text}` is no way to resume")).remedy(
                        "write `preemption`, `L2-migration`, `L3-migration` or `memory-migration`",
                    )
                }),
        }
    }
}
crate::time::serde_as_text!(Resumption);
use serde::{Deserializer, Serializer};

/// How processors are grouped into clusters (000 §2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClusterSpec {
    /// One processor each.
    Partitioned,
    /// All in one.
    Global,
    /// Those that share the cache of this level.
    Level(u8),
    /// This many each, neighbors in cache order; the size must divide the number of processors.
    Size(u32),
}

impl fmt::Display for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterSpec::Partitioned => f.pad("partitioned"),
            ClusterSpec::Global => f.pad("global"),
            ClusterSpec::Level(level) => f.pad(&format!("l{level}")),
            ClusterSpec::Size(size) => f.pad(&format!("size={size}")),
        }
    }
}

impl Platform {
    /// `m` identical processors without caches: for studies that need no hierarchy.
    pub fn symmetric(m: u32) -> Self {
        Platform {
            name: format!("symmetric:m={m}"),
            description: format!("{m} identical processors, no caches described"),
            processors: (0..m)
                .map(|id| Processor {
                    id: CpuId(id),
                    core: id,
                    socket: 0,
                    node: 0,
                    online: true,
                    usable: true,
                    capacity: None,
                })
                .collect(),
            caches: Vec::new(),
            tlb: None,
            page_sizes: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The same platform with processors and caches in the order that the invariant asks for.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.processors.sort_by_key(|p| p.id);
        self.caches
            .sort_by_key(|c| (c.level, c.kind, c.shared_by.lowest()));
        self
    }

    /// Does the invariant hold, and can the rest be?
    ///
    /// # Errors
    /// No processor, a processor twice, a cache of level 0 or of size 0 or of processors that do
    /// not exist, two caches of one level and kind that share a processor.
    pub fn check(&self) -> Result<()> {
        let all: CpuSet = self.processors.iter().map(|p| p.id).collect();
        if all.is_empty() {
            return Err(
                Error::new("the platform has no processors").remedy("describe at least one")
            );
        }
        if let Some(pair) = self.processors.windows(2).find(|w| w[0].id >= w[1].id) {
            return Err(
                Error::new(format!("processor {} is described twice", pair[1].id))
                    .remedy("describe each processor once"),
            );
        }
        for (index, cache) in self.caches.iter().enumerate() {
            let name = cache.label();
            let own = &cache.shared_by;
            let problem = if cache.level == 0 {
                Some("a cache has level 0: levels count from 1".to_owned())
            } else if own.is_empty() {
                Some(format!("an {name} serves no processor"))
            } else if let Some(cpu) = own.iter().find(|cpu| !all.contains(*cpu)) {
                Some(format!(
                    "an {name} serves processor {cpu}, which is not described"
                ))
            } else if cache.size == Some(Bytes::new(0))
                || [cache.ways, cache.line, cache.sets].contains(&Some(0))
            {
                Some(format!(
                    "the {name} of processors {own} has a size, ways, line or sets of zero"
                ))
            } else {
                self.caches[..index]
                    .iter()
                    .filter(|c| c.level == cache.level && c.kind.overlaps(cache.kind))
                    .find_map(|c| c.shared_by.intersection(own).lowest())
                    .map(|cpu| format!("processor {cpu} has two caches {name}"))
            };
            if let Some(problem) = problem {
                return Err(Error::new(problem).remedy("correct the description of the caches"));
            }
        }
        Ok(())
    }

    /// The processors that schedulers may use: online and permitted to this process.
    pub fn usable(&self) -> CpuSet {
        self.processors
            .iter()
            .filter(|p| p.online && p.usable)
            .map(|p| p.id)
            .collect()
    }

    /// The cache of a level that serves data to this processor.
    pub fn data_cache(&self, level: u8, cpu: CpuId) -> Option<&Cache> {
        self.caches.iter().find(|c| {
            c.level == level && c.kind != CacheKind::Instruction && c.shared_by.contains(cpu)
        })
    }

    /// The outermost cache that serves all usable processors with data, of those that tell their
    /// size: whose misses go to memory, and which the cache-aware scheduler shares out (003 §3).
    pub fn shared_cache(&self) -> Option<&Cache> {
        let usable = self.usable();
        self.caches
            .iter()
            .filter(|c| c.kind != CacheKind::Instruction && c.size.is_some())
            .filter(|c| usable.is_subset(&c.shared_by))
            .max_by_key(|c| c.level)
    }

    /// The levels of caches that hold data, ascending.
    pub fn data_levels(&self) -> Vec<u8> {
        let mut levels: Vec<u8> = self
            .caches
            .iter()
            .filter(|c| c.kind != CacheKind::Instruction)
            .map(|c| c.level)
            .collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// How a job that ran on `from` resumes on `to`: by the nearest data cache that serves both.
    pub fn resumption(&self, from: CpuId, to: CpuId) -> Resumption {
        if from == to {
            return Resumption::Preemption;
        }
        self.caches
            .iter()
            .filter(|c| {
                c.kind != CacheKind::Instruction
                    && c.shared_by.contains(from)
                    && c.shared_by.contains(to)
            })
            .map(|c| c.level)
            .min()
            .map_or(Resumption::Memory, Resumption::Migration)
    }

    /// Every kind of resumption that can happen among the usable processors, in order.
    pub fn resumptions(&self) -> Vec<Resumption> {
        let usable = self.usable();
        let mut kinds: Vec<Resumption> = usable
            .iter()
            .flat_map(|a| usable.iter().map(move |b| (a, b)))
            .map(|(a, b)| self.resumption(a, b))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The usable processors in cache order: neighbors share as much as possible. Ties by number.
    pub fn in_cache_order(&self) -> Vec<CpuId> {
        let levels = self.data_levels();
        let mut cpus: Vec<CpuId> = self.usable().iter().collect();
        cpus.sort_by_cached_key(|cpu| {
            let socket = self
                .processors
                .iter()
                .find(|p| p.id == *cpu)
                .map_or(0, |p| p.socket);
            // From the outermost level inwards: the lowest processor behind the cache stands for
            // the cache.
            let groups: Vec<CpuId> = levels
                .iter()
                .rev()
                .map(|l| {
                    self.data_cache(*l, *cpu)
                        .and_then(|c| c.shared_by.lowest())
                        .unwrap_or(*cpu)
                })
                .collect();
            (socket, groups, *cpu)
        });
        cpus
    }

    /// The usable processors in clusters.
    ///
    /// # Errors
    /// No usable processor; no cache of that level; a size that does not divide the number of
    /// processors.
    pub fn clusters(&self, spec: ClusterSpec) -> Result<Vec<CpuSet>> {
        let usable = self.usable();
        if usable.is_empty() {
            return Err(
                Error::new(format!("no processor of `{}` may be used", self.name))
                    .remedy("widen the affinity mask or the cpuset of this process"),
            );
        }
        let ordered = self.in_cache_order();
        let m = ordered.len();
        let size = match spec {
            ClusterSpec::Partitioned => 1,
            ClusterSpec::Global => m,
            ClusterSpec::Size(size) => {
                let size = size as usize;
                if size == 0 || !m.is_multiple_of(size) {
                    return Err(Error::new(format!(
                        "clusters of {size} do not divide {m} processors"
                    ))
                    .remedy(format!("choose a divisor of {m}")));
                }
                size
            }
            ClusterSpec::Level(level) => {
                let mut clusters: Vec<CpuSet> = Vec::new();
                for cpu in ordered {
                    let cache = self.data_cache(level, cpu).ok_or_else(|| {
                        Error::new(format!(
                            "processor {cpu} of `{}` has no level-{level} cache",
                            self.name
                        ))
                        .remedy(format!("levels described: {:?}", self.data_levels()))
                    })?;
                    let group = cache.shared_by.intersection(&usable);
                    if !clusters.contains(&group) {
                        clusters.push(group);
                    }
                }
                return Ok(clusters);
            }
        };
        Ok(ordered
            .chunks(size)
            .map(|c| c.iter().copied().collect())
            .collect())
    }
}
