//! A whole trace: any of the rules, and what is told of it.

use crate::access::{Access, Kind};
use crate::cachegrind::Cachegrind;
use crate::counts::{Counts, MemoryCounts};
use crate::hierarchy::{Hierarchy, Outcome};
use crate::pages::Pages;
use crate::pycachesim::Pycachesim;
use crate::shape::{Part, Shape};
use crate::tlb::{self, Tlb};
use crate::windows::Windows;
use model::strategy::Price;
use model::{CpuId, Duration, Error, Result};
use std::str::FromStr;

/// Whose rules decide what counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// Those of this model ([`hierarchy`](crate::hierarchy)).
    #[default]
    Lines,
    /// Those of Cachegrind ([`cachegrind`](crate::cachegrind)).
    Cachegrind,
    /// Those of pycachesim ([`pycachesim`](crate::pycachesim)).
    Pycachesim,
}

impl Rules {
    /// All of them.
    pub const ALL: [Rules; 3] = [Rules::Lines, Rules::Cachegrind, Rules::Pycachesim];

    /// As the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Rules::Lines => "lines",
            Rules::Cachegrind => "cachegrind",
            Rules::Pycachesim => "pycachesim",
        }
    }
}

impl FromStr for Rules {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Rules::ALL.into_iter().find(|rules| rules.name() == text);
        found.ok_or_else(|| {
            Error::new(format!("unknown rules `{text}`"))
                .remedy("known are `lines`, `cachegrind` and `pycachesim`")
        })
    }
}

/// Caches at work, and what is told of what they do.
pub struct Simulation {
    shape: Shape,
    engine: Engine,
    ports: Vec<Port>,
    /// The processor of the last access, and its place in `ports`.
    last: Option<(CpuId, usize)>,
    windows: Windows,
    colored: Option<ColorCounts>,
    tlb: Option<tlb::Size>,
    page: u64,
    /// How many accesses each cache served as the first, and how many waited for a line since they
    /// missed it and no cache behind it.
    served: Vec<u64>,
    outermost: Vec<u64>,
    /// How many accesses got a line that another processor had changed from a common cache, by the
    /// first cache of the processor.
    given: Vec<u64>,
    /// How many accesses have no cache that they could go to.
    uncached: u64,
}

enum Engine {
    Lines(Box<Hierarchy>),
    Cachegrind(Box<Cachegrind>),
    Pycachesim(Box<Pycachesim>),
}

/// What belongs to a processor: the caches of its data and of its instructions, outwards, and its
/// buffers of translations likewise.
struct Port {
    cpu: CpuId,
    levels: [Vec<usize>; 2],
    /// Whose `fill` is what comes from behind each of them: of Cachegrind's first one it is that of
    /// the cache before the last, where there are more.
    charged: [Vec<usize>; 2],
    tlbs: Option<[Tlb; 2]>,
    used: bool,
}

/// Accesses by the color of their page, at the outermost caches that have colors, together.
#[derive(Clone, Debug)]
pub struct ColorCounts {
    /// One of the caches, by its place in the shape.
    pub part: usize,
    /// Which parts of the shape are such a cache.
    is_counted: Vec<bool>,
    /// Accesses that reached it.
    pub accesses: Vec<u64>,
    /// Those that it did not serve.
    pub misses: Vec<u64>,
}

/// What is counted of one cache for one processor.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The cache.
    pub part: &'a Part,
    /// Its place in the shape.
    pub index: usize,
    /// The processor.
    pub cpu: CpuId,
    /// Its accesses there, and what came of them.
    pub counts: Counts,
}

/// What accesses waited for caches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waited {
    /// In the best and in the worst case.
    pub price: Price,
    /// What happened and has no price, in words.
    pub unpriced: Vec<String>,
}

impl Simulation {
    /// Empty caches. `seed`: of random replacement.
    ///
    /// # Errors
    /// The rules cannot have these caches, or pages elsewhere than in the trace.
    pub fn new(shape: Shape, rules: Rules, pages: Pages, seed: u64) -> Result<Self> {
        if rules != Rules::Lines && !pages.is_as_traced() {
            return Err(Error::new("these rules take addresses as they are")
                .at(format!("--rules {}", rules.name()))
                .remedy("leave `--pages` out, or take the rules `lines`"));
        }
        let page = pages.size();
        let engine = match rules {
            Rules::Lines => Engine::Lines(Box::new(Hierarchy::new(&shape, pages, seed)?)),
            Rules::Cachegrind => Engine::Cachegrind(Box::new(Cachegrind::new(&shape, seed)?)),
            Rules::Pycachesim => Engine::Pycachesim(Box::new(Pycachesim::new(&shape, seed)?)),
        };
        let levels = |cpu: CpuId, instructions: bool| {
            let path = shape.path(cpu, instructions);
            match (rules, &path[..]) {
                (Rules::Cachegrind, [first, .., last]) => vec![*first, *last],
                _ => path,
            }
        };
        let charged = |cpu: CpuId, instructions: bool| {
            let path = shape.path(cpu, instructions);
            match (rules, &path[..]) {
                (Rules::Cachegrind, [.., before, last]) => vec![*before, *last],
                _ => path,
            }
        };
        let ports = shape.cpus.iter().map(|cpu| Port {
            cpu: *cpu,
            levels: [levels(*cpu, false), levels(*cpu, true)],
            charged: [charged(*cpu, false), charged(*cpu, true)],
            tlbs: None,
            used: false,
        });
        Ok(Simulation {
            ports: ports.collect(),
            engine,
            last: None,
            windows: Windows::new(shape.parts.len()),
            colored: colored(&shape, page),
            tlb: None,
            page,
            served: vec![0; shape.parts.len()],
            outermost: vec![0; shape.parts.len()],
            given: vec![0; shape.parts.len()],
            uncached: 0,
            shape,
        })
    }

    /// Adds buffers of translations, two of this size to each processor.
    #[must_use]
    pub fn with_tlb(mut self, size: tlb::Size) -> Self {
        self.tlb = Some(size);
        for port in &mut self.ports {
            port.tlbs = Some([Tlb::new(size), Tlb::new(size)]);
        }
        self
    }

    /// One access.
    ///
    /// # Errors
    /// The platform, or the rules, have no such processor; there is no frame for its page.
    #[inline]
    pub fn access(&mut self, access: &Access) -> Result<Outcome> {
        let place = match self.last {
            Some((cpu, place)) if cpu == access.cpu => place,
            _ => self.port(access.cpu)?,
        };
        self.windows.access();
        let Access {
            cpu,
            kind,
            address,
            size,
        } = *access;
        let outcome = match &mut self.engine {
            Engine::Lines(caches) => {
                let port = caches.port_at(place, kind);
                caches.access(port, kind, address, size)?
            }
            Engine::Cachegrind(caches) => caches.access(cpu, kind, address, size)?,
            Engine::Pycachesim(caches) => caches.access(cpu, kind, address, size)?,
        };
        if self.tlb.is_some() {
            self.translate(place, access);
        }
        let instructions = usize::from(kind == Kind::Instruction);
        if outcome.misses == 0 && outcome.reached == 1 {
            let first = self.ports[place].levels[instructions].first();
            if let Some(first) = first {
                self.served[*first] += 1;
            }
            self.color_first(place, instructions, address)?;
            return Ok(outcome);
        }
        self.beyond(place, kind, address, outcome)?;
        Ok(outcome)
    }

    /// Books an access that the first cache served, where that has colors.
    #[inline]
    fn color_first(&mut self, place: usize, instructions: usize, address: u64) -> Result<()> {
        let first = self.ports[place].levels[instructions].first();
        match (&self.colored, first) {
            (Some(colors), Some(first)) if colors.is_counted[*first] => self.color(address, false),
            _ => Ok(()),
        }
    }

    /// Books an access that went beyond the first cache.
    fn beyond(&mut self, place: usize, kind: Kind, address: u64, outcome: Outcome) -> Result<()> {
        let colored = self.colored.as_ref();
        let instructions = usize::from(kind == Kind::Instruction);
        let levels = &self.ports[place].levels[instructions];
        let charged = &self.ports[place].charged[instructions];
        self.uncached += u64::from(levels.is_empty());
        match (outcome.fetched.checked_sub(1), levels.first()) {
            (Some(past), _) => self.outermost[charged[past as usize]] += 1,
            // A write that its first cache has, and passes on.
            (None, Some(first)) if !outcome.missed(0) => self.served[*first] += 1,
            (None, _) => {}
        }
        if let Some(first) = levels.first()
            && outcome.given
            && (outcome.fetched as usize) < levels.len()
        {
            self.given[*first] += 1;
        }
        let mut color = None;
        for (depth, part) in (0..).zip(levels) {
            let missed = outcome.missed(depth);
            if missed {
                self.windows.missed(*part);
            }
            let is_colored = || colored.is_some_and(|colors| colors.is_counted[*part]);
            if outcome.reached > depth && is_colored() {
                color = Some(missed);
            }
        }
        match color {
            Some(missed) => self.color(address, missed),
            None => Ok(()),
        }
    }

    /// Books an access with the color of its first byte.
    fn color(&mut self, address: u64, missed: bool) -> Result<()> {
        let physical = match &mut self.engine {
            Engine::Lines(caches) => caches.physical(address)?,
            Engine::Cachegrind(_) | Engine::Pycachesim(_) => address,
        };
        if let Some(colors) = &mut self.colored {
            let color = (physical / self.page % colors.accesses.len() as u64) as usize;
            colors.accesses[color] += 1;
            colors.misses[color] += u64::from(missed);
        }
        Ok(())
    }

    fn translate(&mut self, place: usize, access: &Access) {
        let instructions = usize::from(access.kind == Kind::Instruction);
        let last = access.address + u64::from(access.size - 1);
        if let Some(tlbs) = &mut self.ports[place].tlbs {
            for page in access.address / self.page..=last / self.page {
                tlbs[instructions].translate(page);
            }
        }
    }

    fn port(&mut self, cpu: CpuId) -> Result<usize> {
        let found = self.ports.iter().position(|port| port.cpu == cpu);
        let place = found.ok_or_else(|| {
            let last = self.ports.last().map_or(0, |port| port.cpu.0);
            Error::new(format!("the platform has no processor {cpu}")).remedy(format!(
                "its processors go up to {last}: choose a larger platform"
            ))
        })?;
        self.ports[place].used = true;
        self.last = Some((cpu, place));
        Ok(place)
    }

    /// The caches.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The caches of the processors that made accesses, each with each of these processors.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for (index, part) in self.shape.parts.iter().enumerate() {
            for port in self.ports.iter().filter(|port| port.used) {
                if !port.levels.iter().flatten().any(|level| *level == index) {
                    continue;
                }
                let counts = match &self.engine {
                    Engine::Lines(caches) => {
                        let own = part.cpus.iter().position(|cpu| *cpu == port.cpu);
                        own.map(|own| caches.counts(index)[own])
                    }
                    Engine::Cachegrind(caches) => caches.counts(index),
                    Engine::Pycachesim(caches) => caches.counts(index),
                };
                rows.extend(counts.map(|counts| Row {
                    part,
                    index,
                    cpu: port.cpu,
                    counts,
                }));
            }
        }
        rows
    }

    /// What reached memory; other rules do not count it.
    pub fn memory(&self) -> Option<MemoryCounts> {
        match &self.engine {
            Engine::Lines(caches) => Some(caches.memory()),
            Engine::Cachegrind(_) | Engine::Pycachesim(_) => None,
        }
    }

    /// Misses by time.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// What each color contributed, where a cache has colors.
    pub fn colors(&self) -> Option<&ColorCounts> {
        self.colored.as_ref()
    }

    /// The buffers of translations of the processors that made accesses: of data, of instructions.
    pub fn tlbs(&self) -> impl Iterator<Item = (CpuId, &[Tlb; 2])> {
        let used = self.ports.iter().filter(|port| port.used);
        used.filter_map(|port| port.tlbs.as_ref().map(|tlbs| (port.cpu, tlbs)))
    }

    /// What the accesses waited for caches, by the prices of the platform (`waits`). Where a miss
    /// of a buffer of translations has a price, it comes on top. `None`: no cache has a price.
    pub fn waited(&self) -> Option<Waited> {
        let prices = |part: &Part| part.strategy.prices();
        let is_priced = |part: &Part| prices(part).iter().any(|(_, price)| price.is_some());
        if !self.shape.parts.iter().any(is_priced) {
            return None;
        }
        let mut sums = [0_u128; 2];
        let mut unpriced = Vec::new();
        let mut pay = |price: Price, times: u64| {
            for (sum, time) in sums.iter_mut().zip([price.optimistic, price.pessimistic]) {
                *sum += u128::from(time.nanos()) * u128::from(times);
            }
        };
        // The rules `lines` know what was owed: not all that was written back was.
        let owed = match &self.engine {
            Engine::Lines(caches) => Some(caches.owed()),
            Engine::Cachegrind(_) | Engine::Pycachesim(_) => None,
        };
        pay(owed.unwrap_or_default(), 1);
        for (index, part) in self.shape.parts.iter().enumerate() {
            let mut counts = Counts::default();
            for row in self.rows().iter().filter(|row| row.index == index) {
                counts.add(&row.counts);
            }
            let times = [
                self.served[index],
                self.outermost[index],
                counts.writebacks,
                self.given[index],
                counts.written_through,
            ];
            for ((key, price), times) in prices(part).into_iter().zip(times) {
                let is_owed = owed.is_some() && ["write_back", "word"].contains(&key);
                match price {
                    Some(_) if is_owed => {}
                    Some(price) => pay(price, times),
                    None if times > 0 && key != "hit" => {
                        unpriced.push(format!("{times} × `{key}` of {}", part.name));
                    }
                    None => {}
                }
            }
        }
        if self.uncached > 0 {
            unpriced.push(format!("{} × memory without a cache", self.uncached));
        }
        let untranslated = self.tlbs().flat_map(|(_, both)| both);
        let untranslated: u64 = untranslated.map(|tlb| tlb.misses).sum();
        match self.tlb.and_then(tlb::Size::miss) {
            Some(price) => pay(price, untranslated),
            None if untranslated > 0 => {
                unpriced.push(format!("{untranslated} × `miss` of the TLB"));
            }
            None => {}
        }
        let [optimistic, pessimistic] =
            sums.map(|sum| Duration::from_nanos(u64::try_from(sum).unwrap_or(u64::MAX)));
        Some(Waited {
            price: Price {
                optimistic,
                pessimistic,
            },
            unpriced,
        })
    }
}

/// The caches of the outermost level whose ways are larger than a page: those with as many colors.
fn colored(shape: &Shape, page: u64) -> Option<ColorCounts> {
    let part = shape.colored(page)?;
    let colors = usize::try_from(shape.colors(page).ok()?).ok()?;
    let one = &shape.parts[part];
    let is_alike =
        |part: &Part| (part.level, part.sets, part.indexing) == (one.level, one.sets, one.indexing);
    Some(ColorCounts {
        part,
        is_counted: shape.parts.iter().map(is_alike).collect(),
        accesses: vec![0; colors],
        misses: vec![0; colors],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Platform;

    /// Processors 0 and 1 are on different sockets, each with an L3 of its own of 256 colors.
    #[test]
    fn colors_count_at_all_caches_of_the_outermost_level() {
        let xeon = Platform::builtin("xeon-l7455").unwrap();
        let pages = Pages::as_traced(4096).unwrap();
        let shape = Shape::of(&xeon).unwrap();
        let mut simulation = Simulation::new(shape, Rules::Lines, pages, 1).unwrap();
        for (cpu, address) in [(0, 0x1_0000), (1, 0x2_0000), (1, 0x2_0000), (3, 0x1_0040)] {
            let access = Access {
                cpu: CpuId(cpu),
                kind: Kind::Read,
                address,
                size: 8,
            };
            simulation.access(&access).unwrap();
        }
        let colors = simulation.colors().unwrap();
        assert_eq!(colors.misses.len(), 256);
        assert_eq!((colors.misses[0x10], colors.misses[0x20]), (2, 1));
        assert_eq!(colors.misses.iter().sum::<u64>(), 3);
        assert_eq!(colors.accesses, colors.misses);
    }
}
