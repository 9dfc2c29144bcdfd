//! What a platform's caches do with a recorded trace of memory accesses.

pub mod coloring;
pub mod combined;
pub mod estimate;
pub mod matrix;
pub mod multicore;
pub mod sets;
pub mod short;
mod told;
pub mod videos;

pub use cache::Rules;
pub use cache::tlb::Size as TlbSize;
pub use told::{Colors, Level, Memory, Misses, Simulated, TlbLevel, Waited, Windows};

use crate::{On, provenance};
use cache::{Coloring, Memory as Frames, Pages, Shape, Simulation, trace};
use model::watch::Watch;
use model::{Bytes, Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the pages of the program lie in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Each at its own address, as the trace has it.
    #[default]
    AsTraced,
    /// Anywhere.
    Random,
    /// At frames of these colors in turn, each color by the number of the frame (001 §3.1).
    Plain(model::Colors),
    /// At any frame, through addresses that give it these colors in turn (001 §3.2).
    Free(model::Colors),
}

impl FromStr for Placement {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let colors = |text: &str| text.parse::<model::Colors>();
        match text.split_once(':') {
            None if text == "as-traced" => Ok(Placement::AsTraced),
            None if text == "random" => Ok(Placement::Random),
            Some(("plain", list)) => colors(list).map(Placement::Plain),
            Some(("free", list)) => colors(list).map(Placement::Free),
            _ => Err(Error::new(format!("`{text}` does not place pages")).remedy(
                "write `as-traced`, `random`, or `plain:COLORS` or `free:COLORS` with colors \
                     such as `0-3,8`",
            )),
        }
    }
}

/// What is simulated. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace: the name of a file, or `-` for standard input.
    pub trace: String,
    /// Whose caches. Default: this machine's.
    pub on: On,
    /// Whose rules of counting. Default: `lines`.
    pub rules: Rules,
    /// Where pages lie. Default: as in the trace.
    pub pages: Placement,
    /// Memory that pages are placed in. Default: 1 GiB.
    pub memory: Bytes,
    /// Buffers of page translations. Default: those of the platform, if it describes some.
    pub tlb: Option<TlbSize>,
    /// Seed of random placement and replacement. Default: 1.
    pub seed: u64,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// The defaults for a trace.
    pub fn new(trace: &str) -> Self {
        Options {
            trace: trace.to_owned(),
            on: On::ThisMachine,
            rules: Rules::Lines,
            pages: Placement::AsTraced,
            memory: Bytes::from_mib(1024),
            tlb: None,
            seed: 1,
            command: String::new(),
        }
    }
}

/// So many accesses go by between two looks at the watch.
const CHUNK: u64 = 1 << 16;

/// Sends every access of a trace through the caches.
///
/// # Errors
/// The trace cannot be read, is none, or has no access; the platform's caches cannot be modelled,
/// or have no colors where some are asked for; the trace names a processor that there is not.
pub fn simulate(options: &Options, watch: &dyn Watch) -> Result<Simulated> {
    let platform = options.on.platform()?;
    let shape = Shape::of(&platform)?;
    let page = cache::page_of(&platform);
    let pages = place(options, &shape, page)?;
    let mut simulation = Simulation::new(shape, options.rules, pages, options.seed)?;
    if let Some(size) = options.tlb.or(platform.tlb.map(TlbSize::from)) {
        simulation = simulation.with_tlb(size);
    }
    let stopped = feed(&mut simulation, &options.trace, watch)?;
    let place = shown(&options.trace);
    if simulation.windows().is_empty() && !stopped {
        return Err(Error::new("the trace has no accesses")
            .at(place)
            .remedy("record one with `valgrind --tool=lackey --trace-mem=yes`"));
    }
    let mut told = Simulated::of(&simulation, options.rules, page, stopped);
    told.trace = place.to_owned();
    told.platform = platform.name;
    told.provenance = provenance(&options.command);
    told.provenance.seed = Some(options.seed);
    Ok(told)
}

/// What errors and results call a trace.
fn shown(trace: &str) -> &str {
    match trace {
        "-" => "standard input",
        file => file,
    }
}

/// Reads the trace to its end. Returns whether the user stopped it before.
fn feed(simulation: &mut Simulation, name: &str, watch: &dyn Watch) -> Result<bool> {
    let (source, length) = open(name)?;
    let read = AtomicU64::new(0);
    let place = shown(name);
    if let Some(length) = length {
        watch.begin("sending accesses to caches", length);
    }
    let counted = Counted {
        source,
        bytes: &read,
    };
    let mut reader = trace::Reader::new(counted).map_err(|e| e.at(place))?;
    let (mut done, mut advanced) = (0_u64, 0);
    let mut stopped = false;
    while !stopped {
        let Some(access) = reader.read().map_err(|e| e.at(place))? else {
            // Ctrl-C ends the program that writes into a pipe, too.
            stopped = watch.stopped();
            break;
        };
        simulation
            .access(&access)
            .map_err(|e| e.at(format!("{place}: line {}", reader.line())))?;
        done += 1;
        if done.is_multiple_of(CHUNK) {
            let bytes = read.load(Ordering::Relaxed);
            watch.advance(bytes - advanced);
            advanced = bytes;
            stopped = watch.stopped();
        }
    }
    watch.finish();
    Ok(stopped)
}

/// Counts what is read of a source.
struct Counted<'a> {
    source: Box<dyn Read>,
    bytes: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.bytes.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// The trace, and its length where that is known.
fn open(name: &str) -> Result<(Box<dyn Read>, Option<u64>)> {
    if name == "-" {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let cannot = |e: &std::io::Error| Error::io(Path::new(name), "read the trace", e);
    let file = File::open(name).map_err(|e| cannot(&e))?;
    let meta = file.metadata().map_err(|e| cannot(&e))?;
    if meta.is_dir() {
        return Err(Error::new("this is a directory")
            .at(name)
            .remedy("name a file, not a directory"));
    }
    Ok((Box::new(file), meta.is_file().then_some(meta.len())))
}

fn place(options: &Options, shape: &Shape, page: u64) -> Result<Pages> {
    let frames = options.memory.get() / page;
    let colored = |coloring, colors: &model::Colors| {
        let number = shape.colors_of_addresses(page)?;
        let memory = Frames::new(coloring, frames, number).map_err(|e| e.at("--memory"))?;
        Pages::colored(page, memory, colors.iter().collect())
    };
    let placed = match &options.pages {
        Placement::AsTraced => return Pages::as_traced(page),
        Placement::Random => Pages::random(page, frames, options.seed),
        Placement::Plain(colors) => colored(Coloring::Plain, colors),
        Placement::Free(colors) => colored(Coloring::Free, colors),
    };
    placed.map_err(|e| e.at("--pages"))
}
