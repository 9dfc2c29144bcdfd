//! What an access waits: by hand, and a search over random caches, prices and accesses for one that
//! waits longer than [`Waits::most`] says.

use cache::{Hierarchy, Kind, Outcome, Pages, Shape, Waits};
use model::strategy::{Inclusion, Prefetch, Price, Replacement, Writing};
use model::{Bytes, Cache, CacheKind, CpuId, Duration, Platform, Strategy};
use testing::random::Random;

const LINE: u64 = 16;

fn cache(level: u8, sets: u32, ways: u32, cpus: &str, strategy: Strategy) -> Cache {
    Cache {
        level,
        kind: match level {
            1 => CacheKind::Data,
            _ => CacheKind::Unified,
        },
        size: Some(Bytes::new(u64::from(sets * ways) * LINE)),
        ways: Some(ways),
        line: Some(LINE as u32),
        sets: Some(sets),
        shared_by: cpus.parse().unwrap(),
        strategy,
    }
}

fn nanos(ns: u64) -> Option<Price> {
    Some(Price::always(Duration::from_nanos(ns)))
}

fn priced(fill: u64, write_back: u64, word: u64, intervention: u64) -> Strategy {
    Strategy {
        fill: nanos(fill),
        write_back: nanos(write_back),
        word: nanos(word),
        intervention: nanos(intervention),
        ..Strategy::default()
    }
}

/// Caches at work, and what their accesses wait.
struct Machine {
    shape: Shape,
    caches: Hierarchy,
}

impl Machine {
    fn new(cpus: u32, caches: Vec<Cache>) -> Self {
        let mut platform = Platform::symmetric(cpus);
        platform.caches = caches;
        let shape = Shape::of(&platform.in_order()).unwrap();
        let caches = Hierarchy::new(&shape, Pages::as_traced(4096).unwrap(), 7).unwrap();
        Machine { shape, caches }
    }

    fn access(&mut self, cpu: u32, kind: Kind, line: u64) -> (u64, Outcome) {
        let cpu = CpuId(cpu);
        let waits = Waits::of(&self.shape, cpu, kind == Kind::Instruction).unwrap();
        let port = self.caches.port(cpu, kind).unwrap();
        let before = self.caches.owed().pessimistic.nanos();
        let outcome = self.caches.access(port, kind, line * LINE, 1).unwrap();
        let owed = self.caches.owed().pessimistic.nanos() - before;
        (waits.line(outcome).pessimistic.nanos() + owed, outcome)
    }

    fn most(&self, cpu: u32) -> u64 {
        Waits::most(&self.shape, CpuId(cpu), true).unwrap().nanos()
    }
}

/// Two processors with an L1 of one line each, and a common L2 of one line.
#[test]
fn each_price_is_paid_where_it_is_due() {
    let caches = |first: Strategy, second: Strategy| {
        let first = |cpu| cache(1, 1, 1, cpu, first);
        Machine::new(
            2,
            vec![first("0"), first("1"), cache(2, 1, 1, "0-1", second)],
        )
    };
    let mut back = caches(priced(10, 3, 0, 7), priced(100, 30, 0, 70));
    assert_eq!(back.access(0, Kind::Write, 1).0, 100);
    assert_eq!(back.access(0, Kind::Write, 1).0, 0);
    // The L2 has the line, in an old version: it gets the new one from the other processor.
    assert_eq!(back.access(1, Kind::Read, 1).0, 10 + 7);
    assert_eq!(back.access(0, Kind::Write, 1).0, 0);
    // Both lose line 1: the L2 what the read wrote there, the L1 what was written since; the L2
    // takes that in the place of line 2, which nobody has changed.
    assert_eq!(back.access(0, Kind::Read, 2).0, 100 + 30 + 3);
    // Changed by another, and no longer in the L2, which gets it from there.
    let mut wide = caches(priced(10, 0, 0, 7), priced(100, 0, 0, 70));
    wide.access(0, Kind::Write, 1);
    wide.access(1, Kind::Read, 2);
    assert_eq!(wide.access(1, Kind::Read, 1).0, 10 + 7);
    // Without a common cache it comes through memory, and waits for that.
    let alone = |cpu| cache(1, 1, 1, cpu, priced(10, 0, 0, 7));
    let mut apart = Machine::new(2, vec![alone("0"), alone("1")]);
    apart.access(0, Kind::Write, 1);
    assert_eq!(apart.access(1, Kind::Read, 1).0, 10);

    let through = Strategy {
        write: Some(Writing::Through),
        ..priced(10, 3, 2, 7)
    };
    let mut passing = caches(through, priced(100, 0, 0, 0));
    // A write that only the L2 fetches: its word, and the L2's fill.
    assert_eq!(passing.access(0, Kind::Write, 1).0, 100 + 2);
    assert_eq!(passing.access(0, Kind::Read, 1).0, 10);
    assert_eq!(passing.access(0, Kind::Write, 1).0, 2);
    let second = Strategy {
        write: Some(Writing::Through),
        ..priced(100, 0, 20, 0)
    };
    let mut passing = caches(through, second);
    assert_eq!(
        passing.access(0, Kind::Write, 1).0,
        2 + 20,
        "nobody fetches it"
    );
    let unpriced = Waits::unpriced(&caches(Strategy::default(), second).shape);
    assert_eq!(
        unpriced,
        ["`write_back` of L1d", "`intervention` of L1d"],
        "the L2 writes through, and its word has a price"
    );
}

/// A line that a prefetcher fetches, and what makes room for it, keep nobody waiting.
#[test]
fn prefetches_are_free() {
    let ahead = Strategy {
        prefetch: Some(Prefetch::NextLine),
        ..priced(100, 30, 0, 0)
    };
    let machine = |strategy| Machine::new(1, vec![cache(1, 4, 1, "0", strategy)]);
    let (mut with, mut without) = (machine(ahead), machine(priced(100, 30, 0, 0)));
    for machine in [&mut with, &mut without] {
        machine.access(0, Kind::Write, 1);
        // Line 5, the next one, lies where line 1 does.
        assert_eq!(machine.access(0, Kind::Read, 4).0, 100);
    }
    assert_eq!(with.access(0, Kind::Read, 5).0, 0, "it is there");
    assert_eq!(without.access(0, Kind::Read, 5).0, 130);
}

/// Makes the choices.
struct Chance(Random);

impl Chance {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// A strategy with prices, behind caches that take no longer than `fill`.
    fn strategy(&mut self, level: u8, behind_through: bool, fill: &mut u64) -> Strategy {
        *fill += self.0.below(100);
        let inclusion = match (level, behind_through) {
            (1, _) => Inclusion::Neither,
            (_, true) => self.of(&[Inclusion::Neither, Inclusion::Inclusive]),
            _ => self.of(&[
                Inclusion::Neither,
                Inclusion::Inclusive,
                Inclusion::Exclusive,
            ]),
        };
        let [write_back, word, intervention] = [0; 3].map(|_| self.0.below(100));
        Strategy {
            write: Some(self.of(&[Writing::Back, Writing::Back, Writing::Through])),
            allocate: Some(!self.0.one_in(3)),
            replacement: Some(self.of(&[Replacement::Lru, Replacement::Fifo, Replacement::Random])),
            inclusion: Some(inclusion),
            prefetch: match self.0.below(4) {
                0 => Some(self.of(&[Prefetch::NextLine, Prefetch::Stride])),
                _ => None,
            },
            ..priced(*fill, write_back, word, intervention)
        }
    }

    fn machine(&mut self) -> Machine {
        let mut fill = 0;
        let levels = self.0.among(1, 4) as u8;
        let mut caches = Vec::new();
        let mut through = false;
        for level in 1..=levels {
            let strategy = self.strategy(level, through, &mut fill);
            through = strategy.write == Some(Writing::Through);
            let (sets, ways) = (self.of(&[1, 2, 3]), self.of(&[1, 2, 3]));
            let groups: &[&str] = match level {
                1 => &["0", "1", "2", "3"],
                2 => &["0-1", "2-3"],
                _ => &["0-3"],
            };
            caches.extend(
                groups
                    .iter()
                    .map(|cpus| cache(level, sets, ways, cpus, strategy)),
            );
        }
        Machine::new(4, caches)
    }
}

#[test]
fn no_access_waits_longer_than_the_most() {
    let mut random = Chance(Random::new(0x5eed_0021));
    // How many machines had an access that waits as long, and one at least half as long.
    let (mut reached, mut half) = (0, 0);
    let asked = std::env::var("WARMSET_MACHINES").ok();
    let machines = asked.map_or(4000, |number| number.parse().unwrap());
    for number in 0..machines {
        let mut machine = random.machine();
        let most = machine.most(0);
        let cpus = random.of(&[1, 2, 4]);
        let lines = random.of(&[4, 12, 40]);
        let mut longest = 0;
        for _ in 0..400 {
            let kind = random.of(&[Kind::Read, Kind::Write, Kind::Write, Kind::Modify]);
            let (cpu, line) = (random.0.below(cpus) as u32, random.0.below(lines));
            let (waited, outcome) = machine.access(cpu, kind, line);
            assert!(
                waited <= most,
                "machine {number}: {waited} of {most} ns, {kind:?} {outcome:?} {:?}",
                machine.shape
            );
            longest = longest.max(waited);
        }
        reached += u32::from(longest == most);
        half += u32::from(2 * longest >= most);
    }
    assert!(
        reached > machines / 10 && half > machines / 2,
        "{reached} {half}"
    );
}
