//! What a simulation of caches says, as plain data.

use cache::simulation::Row;
use cache::{Rules, Simulation};
use model::strategy::Price;
use model::{CpuId, CpuSet, Duration, Error, Provenance, Result, files, time};
use report::misses::{self, Series};
use serde::Serialize;
use std::path::Path;

/// What caches did with a trace. JSON: as `warmset cache --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Simulated {
    /// The file, or `standard input`.
    pub trace: String,
    /// The name of the platform.
    pub platform: String,
    /// Whose rules of counting.
    pub rules: &'static str,
    /// Accesses of the trace.
    pub accesses: u64,
    /// Not all of the trace: the user stopped it.
    pub interrupted: bool,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Each cache with each processor of the trace that it serves.
    pub levels: Vec<Level>,
    /// What reached memory; `None` with rules that do not count it.
    pub memory: Option<Memory>,
    /// Buffers of page translations, where there are some.
    pub tlbs: Vec<TlbLevel>,
    /// What each page color contributed, where a cache has colors.
    pub colors: Option<Colors>,
    /// Misses by time.
    pub windows: Windows,
    /// What accesses waited for caches, where the platform has prices.
    pub waited: Option<Waited>,
    /// What was assumed since the platform does not say it.
    pub assumed: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// One cache and one processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Level {
    /// `L1d`, `L2`.
    pub name: String,
    /// The processor.
    pub cpu: CpuId,
    /// All processors that share the cache.
    pub shared_by: CpuSet,
    /// Accesses that reached it.
    pub accesses: u64,
    /// Those that it served; with the rules of pycachesim lines.
    pub hits: u64,
    /// Those that it did not serve; with the rules of pycachesim lines.
    pub misses: u64,
    /// Fetches of instructions.
    pub instructions: u64,
    /// Those of them that missed.
    pub instruction_misses: u64,
    /// Reads of data.
    pub reads: u64,
    /// Those of them that missed.
    pub read_misses: u64,
    /// Writes of data.
    pub writes: u64,
    /// Those of them that missed.
    pub write_misses: u64,
    /// Changed lines that left for the next level; with the rules of pycachesim also accesses that
    /// were written through.
    pub writebacks: u64,
    /// Lines lost to a write of another processor, or to an inclusive cache behind.
    pub invalidations: u64,
    /// Changed lines that another processor asked for.
    pub interventions: u64,
    /// Writes to lines that others held, too.
    pub upgrades: u64,
    /// Writes that went on to the next level, by line.
    pub written_through: u64,
    /// Lines fetched before they were asked for.
    pub prefetches: u64,
    /// Those of them that were used.
    pub useful_prefetches: u64,
}

/// What reached memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Memory {
    /// Lines read.
    pub lines_read: u64,
    /// Lines written.
    pub lines_written: u64,
    /// Writes that were written through, by line.
    pub written_through: u64,
}

/// One buffer of page translations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TlbLevel {
    /// `dTLB` or `iTLB`.
    pub name: &'static str,
    /// The processor.
    pub cpu: CpuId,
    /// Pages looked up.
    pub accesses: u64,
    /// Pages that were not there.
    pub misses: u64,
}

/// Accesses by the color of their page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Colors {
    /// The cache.
    pub cache: String,
    /// Accesses of each color that reached it, from color 0 on.
    pub accesses: Vec<u64>,
    /// Those that it did not serve.
    pub misses: Vec<u64>,
}

/// Misses in windows of equally many accesses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Windows {
    /// Accesses of a window; the last one may have fewer.
    pub accesses: u64,
    /// Each cache of the processors of the trace.
    pub caches: Vec<Misses>,
}

/// Misses of one cache by time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Misses {
    /// `L1d`, `L2`.
    pub name: String,
    /// The processors that share it.
    pub shared_by: CpuSet,
    /// Misses in each window.
    pub misses: Vec<u64>,
}

/// What accesses waited for caches, by the prices of the platform.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Waited {
    /// In the best case.
    #[serde(rename = "optimistic_ns", with = "time::ns")]
    pub optimistic: Duration,
    /// In the worst case.
    #[serde(rename = "pessimistic_ns", with = "time::ns")]
    pub pessimistic: Duration,
    /// What happened and has no price.
    pub unpriced: Vec<String>,
}

impl Simulated {
    /// Of a simulation; names and origin are empty.
    pub(super) fn of(simulation: &Simulation, rules: Rules, page: u64, interrupted: bool) -> Self {
        let rows = simulation.rows();
        let shape = simulation.shape();
        let mut tlbs = Vec::new();
        for (cpu, both) in simulation.tlbs() {
            for (name, tlb) in ["dTLB", "iTLB"].into_iter().zip(both) {
                tlbs.push(TlbLevel {
                    name,
                    cpu,
                    accesses: tlb.accesses,
                    misses: tlb.misses,
                });
            }
        }
        Simulated {
            trace: String::new(),
            platform: String::new(),
            rules: rules.name(),
            accesses: simulation.windows().accesses(),
            interrupted,
            line_bytes: shape.line,
            page_bytes: page,
            memory: simulation.memory().map(|memory| Memory {
                lines_read: memory.lines_read,
                lines_written: memory.lines_written,
                written_through: memory.written_through,
            }),
            tlbs,
            colors: simulation.colors().map(|colors| Colors {
                cache: shape.parts[colors.part].name.clone(),
                accesses: colors.accesses.clone(),
                misses: colors.misses.clone(),
            }),
            windows: windows(simulation, &rows),
            levels: rows.iter().map(Level::of).collect(),
            waited: simulation.waited().map(|waited| {
                let Price {
                    optimistic,
                    pessimistic,
                } = waited.price;
                Waited {
                    optimistic,
                    pessimistic,
                    unpriced: waited.unpriced,
                }
            }),
            assumed: shape.assumed.clone(),
            provenance: Provenance::default(),
        }
    }

    /// Nothing, if the whole trace was read.
    ///
    /// # Errors
    /// The user stopped it: what it says is true of the accesses up to then.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            true => Err(
                Error::new(format!("interrupted after {} accesses", self.accesses))
                    .at(&self.trace)
                    .remedy("what is shown is true of these; run it again for the rest"),
            ),
            false => Ok(()),
        }
    }

    /// Draws misses by time into a file, as SVG.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn draw(&self, file: &Path) -> Result<()> {
        let series: Vec<Series> = self.windows.caches.iter().map(Series::from).collect();
        let title = format!("Misses of {} on {}", self.trace, self.platform);
        let span = misses::Span {
            accesses: self.accesses,
            width: self.windows.accesses,
        };
        let figure = misses::figure("misses", &title, span, &series)?;
        match figure {
            Some(figure) => files::write(file, figure.to_svg()),
            None => Err(Error::new("there are no accesses to draw")
                .at(file.display())
                .remedy("give a trace with accesses")),
        }
    }
}

impl From<&Misses> for Series {
    fn from(misses: &Misses) -> Self {
        Series {
            name: format!("{} of {}", misses.name, misses.shared_by),
            misses: misses.misses.clone(),
        }
    }
}

/// Misses by time of the caches that have rows.
fn windows(simulation: &Simulation, rows: &[Row<'_>]) -> Windows {
    let windows = simulation.windows();
    let mut caches: Vec<Misses> = Vec::new();
    let mut last = None;
    for row in rows {
        if last.replace(row.index) == Some(row.index) {
            continue;
        }
        caches.push(Misses {
            name: row.part.name.clone(),
            shared_by: row.part.cpus.iter().copied().collect(),
            misses: windows.misses(row.index),
        });
    }
    Windows {
        accesses: windows.width(),
        caches,
    }
}

impl Level {
    fn of(row: &Row<'_>) -> Self {
        let c = row.counts;
        Level {
            name: row.part.name.clone(),
            cpu: row.cpu,
            shared_by: row.part.cpus.iter().copied().collect(),
            accesses: c.accesses(),
            hits: c.hits(),
            misses: c.misses(),
            instructions: c.instructions(),
            instruction_misses: c.instruction_misses(),
            reads: c.reads(),
            read_misses: c.read_misses(),
            writes: c.writes(),
            write_misses: c.write_misses(),
            writebacks: c.writebacks,
            invalidations: c.invalidations,
            interventions: c.interventions,
            upgrades: c.upgrades,
            written_through: c.written_through,
            prefetches: c.prefetches,
            useful_prefetches: c.useful_prefetches,
        }
    }
}
