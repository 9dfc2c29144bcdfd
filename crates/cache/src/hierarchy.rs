//! The caches of a platform at work, with the rules of this model (`lines`).
//!
//! - An access goes to the first cache of its processor, and to the next one only for lines that are
//!   not there. It counts once at each cache that it reaches, and as a miss there if any of its
//!   lines is not there.
//! - A fetched line is put into every cache on its way, but into exclusive ones. What makes room and
//!   was changed goes to the next level; that counts as a write-back, not as an access, and is no
//!   use of the line there. A level that writes back takes it without a fetch.
//! - A write that is not kept (written through, or not there and not fetched) goes on to the next
//!   level as an access.
//! - Caches that do not lie behind one another are kept coherent by MESI ([`coherence`]): before a
//!   line is changed, all others lose it; a changed line that another asks for is first written to
//!   the nearest cache behind both, or to memory.
//! - Prefetches act as reads that count nowhere but in `prefetches`.

mod coherence;
mod lines;
mod prefetch;
mod quick;

use crate::access::Kind;
use crate::array::Array;
use crate::counts::{Counts, MemoryCounts};
use crate::pages::Pages;
use crate::shape::{Part, Shape};
use model::strategy::{Inclusion, Indexing};
use model::{CpuId, Error, Result};
use prefetch::Streams;
use quick::{Last, Quick, is_plain};

/// The first cache of a processor for instructions or data: where its accesses go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(usize);

/// A cache at work.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) part: Part,
    array: Array,
    /// One less than the number of sets where that is a power of two.
    mask: Option<u64>,
    /// The address of the program chooses the set, and differs from the one in memory in it.
    by_program: bool,
    counts: Vec<Counts>,
    /// The caches before it.
    inner: Vec<usize>,
    /// Has it held a line?
    used: bool,
    streams: Option<Streams>,
}

/// The way of accesses from a processor outwards.
#[derive(Clone)]
struct Path {
    cpu: CpuId,
    /// The caches, and this processor's place in the counts of each.
    caches: Vec<(usize, usize)>,
    /// For each place on the way, memory included as the last: the caches that are before it and
    /// neither on the way nor before the cache before it.
    peers: Vec<Vec<usize>>,
    /// No cache off the way has held a line.
    alone: bool,
    /// Its caches write back and allocate, and neither prefetch nor include or exclude others.
    plain: bool,
}

/// Which caches of a path an access has reached, and which of them missed; bit 0 the first.
#[derive(Clone, Copy, Default)]
struct Reached {
    asked: u32,
    missed: u32,
}

/// The caches of a platform.
#[derive(Clone)]
pub struct Hierarchy {
    nodes: Vec<Node>,
    paths: Vec<Path>,
    bits: u32,
    pages: Pages,
    memory: MemoryCounts,
    reached: Reached,
    /// Is a prefetch under way, which counts nowhere?
    silent: bool,
    /// Lines that prefetchers want, with the place on the way of the cache that wants them.
    pending: Vec<(usize, u64)>,
    /// Accesses so far.
    now: u64,
    last: Last,
    /// Nothing is ever written.
    reads_only: bool,
}

/// What an access came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// How many levels of its processor it reached: 1 if the first served it.
    pub reached: u32,
    /// How many of them, from the first on, missed a line of it.
    pub missed: u32,
}

impl Hierarchy {
    /// The caches of a shape, empty. `seed`: of random replacement.
    ///
    /// # Errors
    /// More than 32 levels cannot be: never for a shape of a platform.
    pub fn new(shape: &Shape, pages: Pages, seed: u64) -> Result<Self> {
        let bits = shape.line.trailing_zeros();
        let mut nodes: Vec<Node> = Vec::new();
        for (index, part) in shape.parts.iter().enumerate() {
            let sets = part.sets as u64;
            let way = sets << bits;
            nodes.push(Node {
                array: Array::new(
                    part.sets,
                    part.ways,
                    part.replacement,
                    seed.wrapping_add(index as u64),
                ),
                mask: sets.is_power_of_two().then(|| sets - 1),
                by_program: part.indexing == Indexing::Virtual
                    && !pages.is_as_traced()
                    && way > pages.size(),
                counts: vec![Counts::default(); part.cpus.len()],
                inner: inner(shape, index),
                used: false,
                streams: part.prefetch.map(|_| Streams::new(pages.size() >> bits)),
                part: part.clone(),
            });
        }
        let mut paths = Vec::new();
        for cpu in &shape.cpus {
            for instructions in [false, true] {
                paths.push(path(shape, &nodes, *cpu, instructions)?);
            }
        }
        Ok(Hierarchy {
            nodes,
            paths,
            bits,
            pages,
            memory: MemoryCounts::default(),
            reached: Reached::default(),
            silent: false,
            pending: Vec::new(),
            now: 0,
            last: Last::NONE,
            reads_only: false,
        })
    }

    /// Promises that no access will write, before any was made. No cache has to know then what
    /// others hold: all counts are the same, and come sooner.
    pub fn reads_only(&mut self) {
        self.reads_only = self.now == 0;
    }

    /// Where accesses of a processor go.
    ///
    /// # Errors
    /// The platform has no such processor.
    pub fn port(&self, cpu: CpuId, kind: Kind) -> Result<Port> {
        let instructions = kind == Kind::Instruction;
        let found = self.paths.iter().position(|path| path.cpu == cpu);
        found
            .map(|place| Port(place + usize::from(instructions)))
            .ok_or_else(|| {
                let last = self.paths.last().map_or(0, |path| path.cpu.0);
                Error::new(format!("the platform has no processor {cpu}")).remedy(format!(
                    "its processors go up to {last}: choose a larger platform"
                ))
            })
    }

    /// The same for the processor at a place in [`Shape::cpus`].
    #[inline]
    pub(crate) fn port_at(&self, place: usize, kind: Kind) -> Port {
        Port(2 * place + usize::from(kind == Kind::Instruction))
    }

    /// One access. Returns how far it went.
    ///
    /// # Errors
    /// There is no frame for its page; it writes although none was to
    /// ([`reads_only`](Self::reads_only)).
    #[inline]
    pub fn access(&mut self, port: Port, kind: Kind, address: u64, size: u32) -> Result<Outcome> {
        const SERVED: Outcome = Outcome {
            reached: 1,
            missed: 0,
        };
        self.now += 1;
        if self.reads_only && kind.writes() {
            return Err(never());
        }
        let line = address >> self.bits;
        let end = address.wrapping_add(u64::from(size).wrapping_sub(1));
        if line == end >> self.bits {
            let last = &self.last;
            if last.line == line && last.port == port.0 && (last.written || !kind.writes()) {
                let (index, own) = last.cache;
                self.nodes[index].counts[own].accesses[kind.column()] += 1;
                return Ok(SERVED);
            }
            if self.pages.is_as_traced() {
                match self.quick(port, kind, line) {
                    Quick::Served => return Ok(SERVED),
                    Quick::Absent if self.paths[port.0].is_plain(self.reads_only) => {
                        self.last = Last::NONE;
                        return Ok(self.miss(port.0, kind, line));
                    }
                    Quick::Absent | Quick::Other => {}
                }
            }
        }
        self.last = Last::NONE;
        self.walk(port, kind, address, end)
    }

    /// An access line by line.
    fn walk(&mut self, port: Port, kind: Kind, address: u64, last: u64) -> Result<Outcome> {
        self.reached = Reached::default();
        for line in address >> self.bits..=last >> self.bits {
            let line = match self.pages.is_as_traced() {
                true => line,
                false => self.pages.physical(line << self.bits)? >> self.bits,
            };
            if kind != Kind::Write {
                self.read(port.0, line);
            }
            if kind.writes() {
                self.write(port.0, line);
            }
        }
        let Reached { asked, missed } = self.reached;
        self.prefetch_pending(port.0);
        let column = kind.column();
        for (depth, (index, own)) in self.paths[port.0].caches.iter().enumerate() {
            let counts = &mut self.nodes[*index].counts[*own];
            counts.accesses[column] += u64::from(asked >> depth & 1);
            counts.misses[column] += u64::from(missed >> depth & 1);
        }
        Ok(Outcome {
            reached: asked.trailing_ones(),
            missed: missed.trailing_ones(),
        })
    }

    /// What reached memory.
    pub fn memory(&self) -> MemoryCounts {
        self.memory
    }

    /// The pages that were touched, and where they lie.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.now
    }

    /// What was counted of a cache of the shape, for each of its processors in ascending order.
    pub fn counts(&self, cache: usize) -> &[Counts] {
        &self.nodes[cache].counts
    }

    /// The caches that a port's accesses pass, from the nearest outwards, by their place in the
    /// shape.
    pub fn passes(&self, port: Port) -> impl Iterator<Item = usize> + '_ {
        self.paths[port.0].caches.iter().map(|(index, _)| *index)
    }

    /// Where an address lies in memory.
    ///
    /// # Errors
    /// There is no frame for its page.
    pub fn physical(&mut self, address: u64) -> Result<u64> {
        self.pages.physical(address)
    }

    /// The set of a line in a cache.
    fn set(&self, index: usize, line: u64) -> usize {
        let node = &self.nodes[index];
        let chooses = match node.by_program {
            true => self.pages.program(line << self.bits) >> self.bits,
            false => line,
        };
        (match node.mask {
            Some(mask) => chooses & mask,
            None => chooses % node.part.sets as u64,
        }) as usize
    }
}

/// An access writes although none was to.
#[cold]
fn never() -> Error {
    Error::new("an access writes in caches that are for reading only")
        .remedy("leave out what promises that nothing is written")
}

impl Node {
    fn is(&self, inclusion: Inclusion) -> bool {
        self.part.inclusion == inclusion
    }
}

/// The caches before one.
fn inner(shape: &Shape, index: usize) -> Vec<usize> {
    let next = |at: &usize| shape.parts[*at].next;
    let is_before = |at: usize| {
        std::iter::successors(Some(at), next)
            .skip(1)
            .any(|behind| behind == index)
    };
    (0..shape.parts.len()).filter(|at| is_before(*at)).collect()
}

fn path(shape: &Shape, nodes: &[Node], cpu: CpuId, instructions: bool) -> Result<Path> {
    let indices = shape.path(cpu, instructions);
    if indices.len() > 32 {
        return Err(
            Error::new("a processor has more than 32 levels of caches").remedy("describe fewer")
        );
    }
    let own = |index: &usize| {
        let place = shape.parts[*index].cpus.iter().position(|c| *c == cpu);
        (*index, place.unwrap_or(0))
    };
    let mut peers = Vec::new();
    let mut known: Vec<usize> = Vec::new();
    for depth in 0..=indices.len() {
        let before: Vec<usize> = match indices.get(depth) {
            Some(index) => nodes[*index].inner.clone(),
            None => (0..nodes.len()).collect(),
        };
        let new = before
            .iter()
            .copied()
            .filter(|at| !known.contains(at) && !indices.contains(at))
            .collect();
        peers.push(new);
        known.extend(before);
    }
    Ok(Path {
        cpu,
        caches: indices.iter().map(own).collect(),
        peers,
        alone: true,
        plain: indices.iter().all(|index| is_plain(&nodes[*index])),
    })
}
