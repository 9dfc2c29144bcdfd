//! Coherence, inclusion, replacement and write strategies against a slow reference that is written
//! from the definition: every cache is a list of ways, each with a line, the version of the data
//! that it holds and the times of its fill and last use, and no state says who else has a line;
//! everybody is asked each time. Every read must see the newest version.

use cache::{Hierarchy, Kind, Pages, Shape};
use model::strategy::{Inclusion, Replacement, Writing};
use model::{Bytes, Cache, CacheKind, CpuId, CpuSet, Platform, Strategy};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
struct Held {
    line: u64,
    version: u64,
    changed: bool,
}

/// A way of a set.
#[derive(Clone, Default)]
struct Way {
    held: Option<Held>,
    /// When it was filled, and used last: by this line, or by the one before.
    filled: u64,
    used: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counted {
    accesses: u64,
    misses: u64,
    writebacks: u64,
    invalidations: u64,
    interventions: u64,
}

struct One {
    sets: Vec<Vec<Way>>,
    replacement: Replacement,
    back: bool,
    allocate: bool,
    inclusion: Inclusion,
    next: Option<usize>,
    counted: Counted,
}

struct Reference {
    caches: Vec<One>,
    memory: BTreeMap<u64, u64>,
    newest: BTreeMap<u64, u64>,
    /// Counts fills and uses.
    now: u64,
    reads: u64,
    writes: u64,
    /// Caches that the access at hand has reached, and that missed.
    asked: Vec<usize>,
    missed: Vec<usize>,
}

/// The way that makes room: one that is empty, else the one that the replacement says.
fn makes_room(ways: &[Way], replacement: Replacement) -> usize {
    if let Some(empty) = ways.iter().position(|way| way.held.is_none()) {
        return empty;
    }
    let oldest = |time: fn(&Way) -> u64| {
        let by_time = |way: &usize| time(&ways[*way]);
        (0..ways.len()).min_by_key(by_time).unwrap()
    };
    match replacement {
        Replacement::Lru => oldest(|way| way.used),
        Replacement::Fifo => oldest(|way| way.filled),
        Replacement::Plru => {
            // Half after half, the one in which the latest use is not.
            let (mut first, mut number) = (0, ways.len());
            while number > 1 {
                number /= 2;
                let latest = |from: usize| {
                    let half = ways[from..from + number].iter();
                    half.map(|way| way.used).max().unwrap()
                };
                if latest(first) > latest(first + number) {
                    first += number;
                }
            }
            first
        }
        Replacement::Random => unreachable!("nobody can say which"),
    }
}

impl Reference {
    fn new(shape: &Shape) -> Self {
        let caches = shape.parts.iter().map(|part| One {
            sets: vec![vec![Way::default(); part.ways]; part.sets],
            replacement: part.replacement,
            back: part.write == Writing::Back,
            allocate: part.allocate,
            inclusion: part.inclusion,
            next: part.next,
            counted: Counted::default(),
        });
        Reference {
            caches: caches.collect(),
            memory: BTreeMap::new(),
            newest: BTreeMap::new(),
            now: 0,
            reads: 0,
            writes: 0,
            asked: Vec::new(),
            missed: Vec::new(),
        }
    }

    /// The ways of the set of a line.
    fn ways(&mut self, cache: usize, line: u64) -> &mut Vec<Way> {
        let one = &mut self.caches[cache];
        let set = (line % one.sets.len() as u64) as usize;
        &mut one.sets[set]
    }

    fn way(&mut self, cache: usize, line: u64) -> Option<&mut Way> {
        let has = |way: &&mut Way| way.held.is_some_and(|held| held.line == line);
        self.ways(cache, line).iter_mut().find(has)
    }

    fn find(&mut self, cache: usize, line: u64) -> Option<&mut Held> {
        self.way(cache, line)?.held.as_mut()
    }

    fn take(&mut self, cache: usize, line: u64) -> Option<Held> {
        self.way(cache, line)?.held.take()
    }

    fn behind(&self, cache: usize) -> Vec<usize> {
        std::iter::successors(self.caches[cache].next, |at| self.caches[*at].next).collect()
    }

    /// Those off the way that lie before `path[depth]` (beyond the last: anywhere) and not before
    /// `path[depth - 1]`.
    fn others(&self, path: &[usize], depth: usize) -> Vec<usize> {
        let is_before =
            |cache: usize, at: Option<&usize>| at.is_none_or(|at| self.behind(cache).contains(at));
        let nearer = |cache: usize| depth > 0 && is_before(cache, path.get(depth - 1));
        (0..self.caches.len())
            .filter(|c| !path.contains(c) && is_before(*c, path.get(depth)) && !nearer(*c))
            .collect()
    }

    /// A look-up by an access: counts, and is a use of the line.
    fn look(&mut self, cache: usize, line: u64) -> bool {
        self.asked.push(cache);
        self.now += 1;
        let now = self.now;
        match self.way(cache, line) {
            Some(way) => {
                way.used = now;
                true
            }
            None => {
                self.missed.push(cache);
                false
            }
        }
    }

    fn put(&mut self, path: &[usize], depth: usize, held: Held) {
        let cache = path[depth];
        assert!(self.find(cache, held.line).is_none());
        self.now += 1;
        let new = Way {
            held: Some(held),
            filled: self.now,
            used: self.now,
        };
        let replacement = self.caches[cache].replacement;
        let ways = self.ways(cache, held.line);
        let place = makes_room(ways, replacement);
        let Some(mut gone) = std::mem::replace(&mut ways[place], new).held else {
            return;
        };
        if self.caches[cache].inclusion == Inclusion::Inclusive {
            let inner: Vec<usize> = (0..self.caches.len())
                .filter(|c| self.behind(*c).contains(&cache))
                .collect();
            for other in inner {
                if let Some(lost) = self.take(other, gone.line) {
                    self.caches[other].counted.invalidations += 1;
                    if lost.changed {
                        gone.changed = true;
                        gone.version = gone.version.max(lost.version);
                    }
                }
            }
        }
        if gone.changed {
            self.caches[cache].counted.writebacks += 1;
            self.write_back(path, depth + 1, gone.line, gone.version);
        } else if let Some(next) = path.get(depth + 1) {
            let is_exclusive = self.caches[*next].inclusion == Inclusion::Exclusive;
            if is_exclusive && self.find(*next, gone.line).is_none() {
                self.put(path, depth + 1, gone);
            }
        }
    }

    fn write_back(&mut self, path: &[usize], depth: usize, line: u64, version: u64) {
        let Some(cache) = path.get(depth).copied() else {
            self.writes += 1;
            self.memory.insert(line, version);
            return;
        };
        let back = self.caches[cache].back;
        let takes =
            self.caches[cache].allocate || self.caches[cache].inclusion == Inclusion::Exclusive;
        if let Some(held) = self.find(cache, line) {
            held.version = version;
            held.changed |= back;
            if back {
                return;
            }
        } else if back && takes {
            let held = Held {
                line,
                version,
                changed: true,
            };
            return self.put(path, depth, held);
        }
        self.write_back(path, depth + 1, line, version);
    }

    /// Everybody else's changed line comes back. Does anybody else hold it, and was it changed?
    fn share(&mut self, path: &[usize], depth: usize, line: u64) -> (bool, bool) {
        let (mut any, mut newest) = (false, None);
        for other in self.others(path, depth) {
            if let Some(held) = self.find(other, line) {
                any = true;
                let changed = std::mem::take(&mut held.changed);
                let version = held.version;
                if changed && newest.is_none() {
                    self.caches[other].counted.interventions += 1;
                    newest = Some(version);
                }
            }
        }
        if let Some(version) = newest {
            // It passes those behind, which take it over.
            for other in self.others(path, depth) {
                if let Some(held) = self.find(other, line) {
                    held.version = version;
                }
            }
            self.write_back(path, depth, line, version);
        }
        (any, newest.is_some())
    }

    /// The version that the cache before `path[depth]` gets, and whether it has to keep it as
    /// changed.
    fn fetch(&mut self, path: &[usize], depth: usize, line: u64) -> (u64, bool) {
        let Some(cache) = path.get(depth).copied() else {
            let (_, changed) = self.share(path, depth, line);
            self.reads += u64::from(!changed);
            return (self.memory.get(&line).copied().unwrap_or(0), false);
        };
        let found = self.look(cache, line);
        let (any, changed) = self.share(path, depth, line);
        let exclusive = self.caches[cache].inclusion == Inclusion::Exclusive;
        if found {
            if exclusive && !any {
                let held = self.take(cache, line).unwrap();
                return (held.version, held.changed);
            }
            return (self.find(cache, line).unwrap().version, false);
        }
        if changed {
            return (self.newest[&line], false);
        }
        let (version, changed) = self.fetch(path, depth + 1, line);
        if exclusive {
            return (version, changed);
        }
        self.put(
            path,
            depth,
            Held {
                line,
                version,
                changed,
            },
        );
        (version, false)
    }

    fn fill(&mut self, path: &[usize], depth: usize, line: u64) {
        let (version, changed) = self.fetch(path, depth + 1, line);
        self.put(
            path,
            depth,
            Held {
                line,
                version,
                changed,
            },
        );
    }

    fn read(&mut self, path: &[usize], line: u64) {
        if !self.look(path[0], line) {
            self.fill(path, 0, line);
        }
        let seen = self.find(path[0], line).unwrap().version;
        let newest = self.newest.get(&line).copied().unwrap_or(0);
        assert_eq!(seen, newest, "line {line} is stale");
    }

    fn write(&mut self, path: &[usize], line: u64) {
        for depth in 0..=path.len() {
            let mut newest: Option<u64> = None;
            for other in self.others(path, depth) {
                if let Some(held) = self.take(other, line) {
                    self.caches[other].counted.invalidations += 1;
                    if held.changed && newest.is_none() {
                        self.caches[other].counted.interventions += 1;
                        newest = Some(held.version);
                    }
                }
            }
            if let Some(version) = newest {
                self.write_back(path, depth, line, version);
            }
        }
        let version = self.newest.entry(line).or_insert(0);
        *version += 1;
        let version = *version;
        for (depth, cache) in path.iter().copied().enumerate() {
            let found = self.look(cache, line);
            if !found && self.caches[cache].allocate {
                self.fill(path, depth, line);
            }
            let back = self.caches[cache].back;
            if let Some(held) = self.find(cache, line) {
                held.version = version;
                held.changed |= back;
                if back {
                    return;
                }
            }
        }
        self.memory.insert(line, version);
    }

    fn access(&mut self, path: &[usize], kind: Kind, lines: std::ops::RangeInclusive<u64>) {
        self.asked.clear();
        self.missed.clear();
        for line in lines {
            if kind != Kind::Write {
                self.read(path, line);
            }
            if kind.writes() {
                self.write(path, line);
            }
        }
        for cache in path {
            let counted = &mut self.caches[*cache].counted;
            counted.accesses += u64::from(self.asked.contains(cache));
            counted.misses += u64::from(self.missed.contains(cache));
        }
    }
}

fn cache(level: u8, kind: CacheKind, sets: u32, ways: u32, cpus: &str, how: Strategy) -> Cache {
    Cache {
        level,
        kind,
        size: Some(Bytes::new(u64::from(sets * ways * 16))),
        ways: Some(ways),
        line: Some(16),
        sets: Some(sets),
        shared_by: cpus.parse().unwrap(),
        strategy: how,
    }
}

/// Four processors with instructions and data apart, an L2 for each two, and an L3 for each two or
/// for all.
fn platform(first: Strategy, second: Strategy, third: Strategy, shared: bool) -> Platform {
    let mut platform = Platform::symmetric(4);
    for cpu in ["0", "1", "2", "3"] {
        platform
            .caches
            .push(cache(1, CacheKind::Data, 2, 2, cpu, first));
        platform
            .caches
            .push(cache(1, CacheKind::Instruction, 2, 1, cpu, first));
    }
    // Halves of halves, where the replacement asks for them.
    let ways = match second.replacement {
        Some(Replacement::Plru) => 4,
        _ => 3,
    };
    for pair in ["0-1", "2-3"] {
        platform
            .caches
            .push(cache(2, CacheKind::Unified, 2, ways, pair, second));
    }
    // Sets are chosen by a mask, or by a remainder.
    let sets = if shared { 4 } else { 3 };
    let groups: &[&str] = if shared { &["0-3"] } else { &["0-1", "2-3"] };
    for group in groups {
        platform
            .caches
            .push(cache(3, CacheKind::Unified, sets, 4, group, third));
    }
    platform.in_order()
}

fn strategies() -> impl Strategy0<Value = (Strategy, Strategy, Strategy)> {
    let how = |write, allocate, inclusion, replacement| Strategy {
        write: Some(write),
        allocate: Some(allocate),
        inclusion: Some(inclusion),
        replacement: Some(replacement),
        ..Strategy::default()
    };
    let write = || prop_oneof![Just(Writing::Back), Just(Writing::Through)];
    let inclusion = || {
        prop_oneof![
            Just(Inclusion::Neither),
            Just(Inclusion::Inclusive),
            Just(Inclusion::Exclusive)
        ]
    };
    // Half of the time by age everywhere: such caches go other ways.
    let replacement = || {
        prop_oneof![
            Just(Replacement::Lru),
            Just(Replacement::Fifo),
            Just(Replacement::Plru)
        ]
    };
    let replacements = prop_oneof![
        Just([Replacement::Lru; 3]),
        [replacement(), replacement(), replacement()]
    ];
    (
        write(),
        write(),
        write(),
        any::<[bool; 3]>(),
        inclusion(),
        inclusion(),
        replacements,
    )
        .prop_map(move |(a, b, c, allocate, second, third, replaced)| {
            // An exclusive cache is behind one that writes back: others are refused.
            let a = if second == Inclusion::Exclusive {
                Writing::Back
            } else {
                a
            };
            let b = if third == Inclusion::Exclusive {
                Writing::Back
            } else {
                b
            };
            (
                how(a, allocate[0], Inclusion::Neither, replaced[0]),
                how(b, allocate[1], second, replaced[1]),
                how(c, allocate[2], third, replaced[2]),
            )
        })
}

use proptest::strategy::Strategy as Strategy0;

/// Accesses: processor, kind, address, size.
type Made = Vec<(u32, u8, u64, u32)>;

fn made() -> impl Strategy0<Value = Made> {
    prop::collection::vec((0_u32..4, 0_u8..8, 0_u64..24 * 16, 1_u32..20), 1..400)
}

/// Sends the same accesses of the first `cpus` processors through both.
fn compare(platform: &Platform, cpus: u32, accesses: Made) {
    let shape = Shape::of(platform).unwrap();
    let mut reference = Reference::new(&shape);
    let pages = Pages::as_traced(4096).unwrap();
    let mut caches = Hierarchy::new(&shape, pages, 1).unwrap();
    for (cpu, kind, address, size) in accesses {
        let kind = match kind {
            // One processor without instructions is alone in all its caches.
            0 | 1 if cpus > 1 => Kind::Instruction,
            0..=4 => Kind::Read,
            5 | 6 => Kind::Write,
            _ => Kind::Modify,
        };
        let cpu = CpuId(cpu % cpus);
        let path = shape.path(cpu, kind == Kind::Instruction);
        let lines = address / 16..=(address + u64::from(size) - 1) / 16;
        reference.access(&path, kind, lines);
        let port = caches.port(cpu, kind).unwrap();
        caches.access(port, kind, address, size).unwrap();
    }
    for (index, part) in shape.parts.iter().enumerate() {
        let mut counted = Counted::default();
        for counts in caches.counts(index) {
            counted.accesses += counts.accesses();
            counted.misses += counts.misses();
            counted.writebacks += counts.writebacks;
            counted.invalidations += counts.invalidations;
            counted.interventions += counts.interventions;
        }
        let expected = reference.caches[index].counted;
        assert_eq!(counted, expected, "{} of {:?}", part.name, part.cpus);
    }
    assert_eq!(caches.memory().lines_read, reference.reads);
    assert_eq!(caches.memory().lines_written, reference.writes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn coherent_caches_do_as_the_definition_says(
        (first, second, third) in strategies(),
        shared in any::<bool>(),
        cpus in prop_oneof![Just(1_u32), Just(4)],
        accesses in made(),
    ) {
        compare(&platform(first, second, third, shared), cpus, accesses);
    }

    /// Without particular strategies accesses take a shorter way.
    #[test]
    fn the_short_way_counts_as_the_long_one(
        shared in any::<bool>(),
        cpus in prop_oneof![Just(1_u32), Just(4)],
        accesses in made(),
    ) {
        let plain = Strategy::default();
        compare(&platform(plain, plain, plain, shared), cpus, accesses);
    }
}

/// A changed line that another processor reads is written back and shared; a write takes it away
/// from all others (MESI).
#[test]
fn a_line_goes_from_one_processor_to_another() {
    let how = Strategy::default();
    let shape = Shape::of(&platform(how, how, how, true)).unwrap();
    let pages = Pages::as_traced(4096).unwrap();
    let mut caches = Hierarchy::new(&shape, pages, 1).unwrap();
    let data = |cpu: u32| shape.path(CpuId(cpu), false)[0];
    for (cpu, kind) in [
        (0, Kind::Write),
        (2, Kind::Read),
        (0, Kind::Write),
        (0, Kind::Write),
        (2, Kind::Write),
    ] {
        let port = caches.port(CpuId(cpu), kind).unwrap();
        caches.access(port, kind, 64, 4).unwrap();
    }
    let [first, other] = [0, 2].map(|cpu| caches.counts(data(cpu))[0]);
    // Given for the read of processor 2 and for its write; upgraded for the write in between.
    assert_eq!(
        (first.interventions, first.upgrades, first.invalidations),
        (2, 1, 1)
    );
    assert_eq!(
        (other.misses(), other.invalidations, other.interventions),
        (2, 1, 0)
    );
    assert_eq!(caches.memory().lines_read, 1);
    assert!(CpuSet::first(4).contains(shape.cpus[3]));
}
