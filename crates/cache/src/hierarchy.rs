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

mod ahead;
mod coherence;
mod lines;
mod prefetch;
mod quick;

use crate::access::Kind;
use crate::array::{Arrays, Place};
use crate::counts::{Counts, MemoryCounts};
use crate::pages::Pages;
use crate::shape::{Part, Shape};
use model::strategy::{Inclusion, Indexing, Price};
use model::{CpuId, Error, Result};
use prefetch::Streams;
use quick::{Last, is_plain};

/// The first cache of a processor for instructions or data: where its accesses go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(usize);

/// A cache at work.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) part: Part,
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
    /// Its caches write back and allocate, replace by LRU, and neither prefetch nor include or
    /// exclude others.
    plain: bool,
    /// It is plain, and others matter to none of its accesses.
    is_short: bool,
    /// All its caches have held a line; found out where it is short.
    warm: bool,
    /// It is plain but for the prefetcher of this one of its caches, which is not the first.
    ahead: Option<usize>,
    /// Where the lines of its caches are, if it is plain or would be without a prefetcher.
    places: Vec<Place>,
    /// Accesses to one line that took a short way, by how many caches missed, and by column: they
    /// are in no cache's own counts.
    served: Vec<[u64; 3]>,
}

/// Which caches of a path an access has reached, and which of them missed; bit 0 the first.
#[derive(Clone, Copy, Default)]
struct Reached {
    asked: u32,
    missed: u32,
    /// How many caches a line was fetched past.
    fetched: u32,
    /// A line came from another processor that had changed it.
    given: bool,
}

/// The caches of a platform.
#[derive(Clone)]
pub struct Hierarchy {
    nodes: Vec<Node>,
    arrays: Arrays,
    paths: Vec<Path>,
    bits: u32,
    pages: Pages,
    /// Every page lies at its own address.
    as_traced: bool,
    memory: MemoryCounts,
    /// What lines that were written back and words that were written through cost so far.
    owed: Price,
    reached: Reached,
    /// Is a prefetch under way, which counts nowhere?
    silent: bool,
    /// Lines that prefetchers want, with the place on the way of the cache that wants them.
    pending: Vec<(usize, u64)>,
    /// Accesses so far, but for those in `served` of a path.
    long: u64,
    last: Last,
    /// Nothing is ever written.
    reads_only: bool,
    /// Something was.
    wrote: bool,
    /// What others hold makes no difference: nothing is written, and no cache gives lines away.
    ignores_others: bool,
}

/// What an access came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// How many levels of its processor it reached: 1 if the first served it.
    pub reached: u32,
    /// Which of them missed a line of it, by the bits from the lowest on: a write can find its line
    /// in one that writes through, and miss it in the next.
    pub misses: u32,
    /// How many of them a line was fetched past: it came from the next one, or from memory. Zero: no
    /// line was fetched.
    pub fetched: u32,
    /// Another processor had changed a line of it, and gave that.
    pub given: bool,
}

impl Outcome {
    /// The first level served it.
    const SERVED: Outcome = Outcome {
        reached: 1,
        misses: 0,
        fetched: 0,
        given: false,
    };

    /// Did the level at this place on the way, the first at 0, miss a line?
    #[inline(always)]
    pub const fn missed(self, depth: u32) -> bool {
        self.misses >> depth & 1 == 1
    }
}

impl Hierarchy {
    /// The caches of a shape, empty. `seed`: of random replacement.
    ///
    /// # Errors
    /// More than 32 levels cannot be: never for a shape of a platform.
    pub fn new(shape: &Shape, pages: Pages, seed: u64) -> Result<Self> {
        let bits = shape.line.trailing_zeros();
        let mut nodes: Vec<Node> = Vec::new();
        let mut arrays = Arrays::default();
        for (index, part) in shape.parts.iter().enumerate() {
            let sets = part.sets as u64;
            let way = sets << bits;
            let seed = seed.wrapping_add(index as u64);
            arrays.add(part.sets, part.ways, part.replacement, seed);
            nodes.push(Node {
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
                paths.push(path(shape, &nodes, &arrays, *cpu, instructions)?);
            }
        }
        Ok(Hierarchy {
            nodes,
            arrays,
            paths,
            bits,
            as_traced: pages.is_as_traced(),
            pages,
            memory: MemoryCounts::default(),
            owed: Price::default(),
            reached: Reached::default(),
            silent: false,
            pending: Vec::new(),
            long: 0,
            last: Last::NONE,
            reads_only: false,
            wrote: false,
            ignores_others: false,
        })
    }

    /// Promises that no access will write, before any was made. No cache has to know then what
    /// others hold: all counts are the same, and come sooner.
    pub fn reads_only(&mut self) {
        self.reads_only = self.accesses() == 0;
        let gives = |node: &Node| node.is(Inclusion::Exclusive);
        self.ignores_others = self.reads_only && !self.nodes.iter().any(gives);
        for path in &mut self.paths {
            path.is_short = path.plain && (path.alone || self.reads_only);
        }
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
        if kind.writes() {
            if self.reads_only {
                return Err(never());
            }
            self.wrote = true;
        }
        let line = address >> self.bits;
        let end = address.wrapping_add(u64::from(size).wrapping_sub(1));
        if line == end >> self.bits {
            if self.last.serves(port.0, line, kind.writes()) {
                self.paths[port.0].served[0][kind.column()] += 1;
                return Ok(Outcome::SERVED);
            }
            if self.as_traced && self.paths[port.0].is_short {
                let missed = self.pass(port.0, kind, line);
                return Ok(self.outcome(port, missed));
            }
            return self.one_line(port, kind, address);
        }
        self.last = Last::NONE;
        self.walk(port, kind, address, end)
    }

    /// An access line by line.
    fn walk(&mut self, port: Port, kind: Kind, address: u64, last: u64) -> Result<Outcome> {
        self.long += 1;
        self.reached = Reached::default();
        for line in address >> self.bits..=last >> self.bits {
            let line = match self.as_traced {
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
        let Reached {
            asked,
            missed,
            fetched,
            given,
        } = self.reached;
        self.prefetch_pending(port.0);
        let column = kind.column();
        for (depth, (index, own)) in self.paths[port.0].caches.iter().enumerate() {
            let counts = &mut self.nodes[*index].counts[*own];
            counts.accesses[column] += u64::from(asked >> depth & 1);
            counts.misses[column] += u64::from(missed >> depth & 1);
        }
        Ok(Outcome {
            reached: u32::BITS - asked.leading_zeros(),
            misses: missed,
            fetched,
            given,
        })
    }

    /// What reached memory.
    pub fn memory(&self) -> MemoryCounts {
        let mut memory = self.memory;
        for path in &self.paths {
            memory.lines_read += path.served[path.caches.len()].iter().sum::<u64>();
        }
        memory
    }

    /// The pages that were touched, and where they lie.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        let short = self.paths.iter().flat_map(|path| &path.served).flatten();
        self.long + short.sum::<u64>()
    }

    /// What was counted of a cache of the shape, for each of its processors in ascending order.
    pub fn counts(&self, cache: usize) -> Vec<Counts> {
        let mut all = self.nodes[cache].counts.clone();
        for path in &self.paths {
            let Some(depth) = path.caches.iter().position(|(index, _)| *index == cache) else {
                continue;
            };
            let counts = &mut all[path.caches[depth].1];
            for (missed, short) in path.served.iter().enumerate().skip(depth) {
                for (column, times) in short.iter().enumerate() {
                    counts.accesses[column] += times;
                    counts.misses[column] += if missed > depth { *times } else { 0 };
                }
            }
        }
        all
    }

    /// What it cost so far that lines were written back and words written through, by accesses of
    /// all processors (`waits`).
    #[inline]
    pub fn owed(&self) -> Price {
        self.owed
    }

    /// Something costs as much beside what its access waits for its line.
    fn owe(&mut self, price: Option<Price>) {
        if let Some(price) = price.filter(|_| !self.silent) {
            self.owed = self.owed.and(price);
        }
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

fn path(
    shape: &Shape,
    nodes: &[Node],
    arrays: &Arrays,
    cpu: CpuId,
    instructions: bool,
) -> Result<Path> {
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
    let places: Option<Vec<Place>> = indices.iter().map(|at| arrays.lru_place(*at)).collect();
    let places = places.unwrap_or_default();
    let mostly = !places.is_empty() && indices.iter().all(|index| is_plain(&nodes[*index]));
    let looks_ahead = |depth: &usize| nodes[indices[*depth]].streams.is_some();
    let ahead: Vec<usize> = (0..indices.len()).filter(looks_ahead).collect();
    let plain = mostly && ahead.is_empty();
    Ok(Path {
        cpu,
        caches: indices.iter().map(own).collect(),
        peers,
        alone: true,
        warm: false,
        served: vec![[0; 3]; indices.len() + 1],
        plain,
        is_short: plain,
        ahead: match ahead[..] {
            [depth] if mostly && depth > 0 => Some(depth),
            _ => None,
        },
        places,
    })
}
