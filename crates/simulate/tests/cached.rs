//! Jobs in a model of caches: where caches cost nothing the schedule is that of execution times;
//! where they do, a job takes what its accesses wait.

use crate::support::{Instance, POLICIES, Random, UNIT, instance, small, units};
use cache::{Kind, Shape, Waits};
use model::strategy::{Price, Writing};
use model::watch::Silent;
use model::{Bytes, Cache, CacheKind, CpuId, CpuSet, Duration, Platform, Strategy};
use policy::{Setup, Spec};
use simulate::{Accesses, Cached, Responses, Traced};
use trace::VecSink;

/// So many lines one behind the other, and from the first again.
struct Lines {
    first: u64,
    lines: u64,
    count: u64,
    kind: Kind,
    at: u64,
}

impl Lines {
    fn read(first: u64, lines: u64, count: u64) -> Self {
        Lines {
            first,
            lines,
            count,
            kind: Kind::Read,
            at: 0,
        }
    }
}

impl Accesses for Lines {
    fn count(&self) -> u64 {
        self.count
    }
    fn writes(&self) -> bool {
        self.kind.writes()
    }
    fn begin(&mut self, _number: u64) {
        self.at = 0;
    }
    fn next(&mut self) -> (u64, Kind) {
        let line = self.first + self.at % self.lines;
        self.at += 1;
        (line * 64, self.kind)
    }
}

/// The caches of 003's machine with these prices, in nanoseconds, from the first level on.
fn shape(fills: [u64; 3]) -> Shape {
    let mut platform = Platform::builtin("core-i7").unwrap();
    for cache in &mut platform.caches {
        let fill = fills[usize::from(cache.level) - 1];
        cache.strategy.fill = Some(Price::always(Duration::from_nanos(fill)));
    }
    Shape::of(&platform).unwrap()
}

fn cached(of: &Instance, fills: [u64; 3], lines: u64, count: u64) -> Cached {
    let set = of.set();
    let accesses = set.ids().map(|id| {
        Box::new(Lines::read(u64::from(id.0) * lines, lines, count)) as Box<dyn Accesses>
    });
    Cached::new(shape(fills), 4096, &set, accesses.collect(), 1).unwrap()
}

fn run(of: &Instance, cached: &mut Cached) -> model::Result<(Responses, VecSink)> {
    let (set, platform) = (of.set(), of.platform());
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: of.assignment.as_ref(),
        quantum: units(1),
    };
    let plan = of.policy.parse::<Spec>()?.plan(&setup)?;
    let observer = (Responses::new(set.len()), Traced(VecSink::default()));
    let (_, (responses, Traced(sink))) = simulate::simulate_paced(
        plan,
        &set,
        &platform,
        &of.scenario(),
        &Silent,
        observer,
        cached,
    )?;
    Ok((responses, sink))
}

#[test]
fn caches_that_cost_nothing_change_no_schedule() {
    let mut random = Random::new(0x00dd_ba11_5eed_0021);
    let (mut same, mut refused) = (0, 0);
    for round in 0..20 * POLICIES.len() {
        let of = instance(&mut random, POLICIES[round % POLICIES.len()]);
        let count = random.below(9);
        match run(&of, &mut cached(&of, [0; 3], 3, count)) {
            Ok((responses, sink)) => {
                let (_, ideal, events) = of.simulate(&of.scenario(), None);
                assert_eq!(responses, ideal, "{of:?}");
                assert_eq!(sink.events, events, "{of:?}");
                same += 1;
            }
            Err(e) => {
                assert!(e.to_string().contains("budgets and slices"), "{e}");
                refused += 1;
            }
        }
    }
    assert!(
        same > 15 * refused.max(1) / 2,
        "{same} of {}",
        same + refused
    );
}

/// A lone task of 10 accesses to 5 lines, 7 ns from memory: the first job misses all five, 35 ns; it
/// computes for what ten misses leave of its WCET. All later ones find their lines in the first
/// cache.
#[test]
fn a_job_takes_what_its_accesses_wait_and_what_is_left_of_its_wcet() {
    let mut of = support_instance(1);
    of.horizon = 30;
    let mut cached = cached(&of, [2, 5, 7], 5, 10);
    cached.count_from(units(10));
    let (responses, _) = run(&of, &mut cached).unwrap();
    let computing = 3 * UNIT - 10 * 7;
    assert_eq!(responses.of[0], [computing + 35, computing, computing]);
    let tally = cached.tallies().next().unwrap();
    assert_eq!((tally.jobs, tally.accesses), (3, 30));
    assert_eq!((tally.references, tally.misses), (5, 5));
    assert_eq!((tally.worst, tally.worst_rate()), ((5, 5), Some(1.0)));
    assert_eq!(tally.longest.nanos(), computing + 35);
    // The first job was over before.
    assert_eq!(tally.worst_counted_rate(), None);
    assert_eq!(tally.longest_counted.nanos(), computing);
}

/// Two tasks that walk more than the first cache holds and preempt each other on one processor: what
/// a preempted job has left is what it loses, and no more.
#[test]
fn a_preempted_job_goes_on_with_the_rest_of_its_access() {
    let mut of = support_instance(1);
    of.tasks.push(small(60, 100, 100, 0));
    of.horizon = 100;
    // One access a unit and a half, and one every 60.
    let set = of.set();
    let accesses: Vec<Box<dyn Accesses>> = [(0, 2), (100, 1)]
        .map(|(first, count)| Box::new(Lines::read(first, 1, count)) as Box<dyn Accesses>)
        .into();
    let mut cached = Cached::new(shape([0, 0, 10]), 4096, &set, accesses, 1).unwrap();
    let (responses, sink) = run(&of, &mut cached).unwrap();
    // The first task: two misses are in its WCET, one is one too many from its second job on.
    assert_eq!(responses.of[0][0], 3 * UNIT - 10);
    assert!(responses.of[0][1..].iter().all(|r| *r == 3 * UNIT - 20));
    // The second: its own 60 units, and all jobs of the first that came before its end.
    let preempted = responses.of[0].iter().take(9).sum::<u64>();
    assert_eq!(responses.of[1], [60 * UNIT + preempted]);
    let preemptions = sink
        .events
        .iter()
        .filter(|e| e.kind == trace::EventKind::Preemption);
    assert_eq!(preemptions.count(), 8);
}

/// Any lines of a few, read or written, others in each job.
struct Any {
    random: Random,
    lines: u64,
    count: u64,
}

impl Accesses for Any {
    fn count(&self) -> u64 {
        self.count
    }
    fn writes(&self) -> bool {
        true
    }
    fn begin(&mut self, _number: u64) {}
    fn next(&mut self) -> (u64, Kind) {
        let kind = match self.random.below(3) {
            0 => Kind::Read,
            1 => Kind::Write,
            _ => Kind::Modify,
        };
        (self.random.below(self.lines) * 64, kind)
    }
}

/// Two caches of a line or two for each processor and a common one, with strategies and prices by
/// chance: everything that has a price happens often.
fn dear(m: u64, random: &mut Random) -> Shape {
    let mut platform = Platform::symmetric(m as u32);
    let mut fill = 0;
    for level in 1..=3 {
        fill += random.below(4);
        let mut price = |most| Some(Price::always(Duration::from_nanos(random.below(most))));
        let strategy = Strategy {
            fill: Some(Price::always(Duration::from_nanos(fill))),
            write_back: price(5),
            word: price(3),
            intervention: price(4),
            write: Some([Writing::Back, Writing::Through][random.below(2) as usize]),
            allocate: Some(!random.one_in(3)),
            ..Strategy::default()
        };
        let groups = match level {
            3 => vec![CpuSet::first(m as u32)],
            _ => (0..m as u32)
                .map(|cpu| std::iter::once(CpuId(cpu)).collect())
                .collect(),
        };
        platform
            .caches
            .extend(groups.into_iter().map(|shared_by| Cache {
                level,
                kind: CacheKind::Unified,
                size: Some(Bytes::new(64 * u64::from(level))),
                ways: Some(u32::from(level)),
                line: Some(64),
                sets: Some(1),
                shared_by,
                strategy,
            }));
    }
    Shape::of(&platform.in_order()).unwrap()
}

/// What others have left in the caches, what they have changed and what they want is paid by
/// whoever comes next; no job takes longer than its WCET for it.
#[test]
fn no_job_takes_longer_than_its_wcet_whatever_caches_cost() {
    let mut random = Random::new(0x00dd_ba11_5eed_0022);
    let (mut ran, mut jobs, mut near) = (0, 0, 0);
    for round in 0..40 * POLICIES.len() {
        let of = instance(&mut random, POLICIES[round % POLICIES.len()]);
        let set = of.set();
        let shape = dear(of.m, &mut random);
        let accesses = set.timings().iter().map(|timing| {
            let any = Any {
                random: Random::new(random.bits()),
                lines: 2 + random.below(8),
                // So many that they fill the most of its WCET.
                count: timing.wcet.nanos() / most(&shape).max(1),
            };
            Box::new(any) as Box<dyn Accesses>
        });
        let accesses = accesses.collect();
        let mut cached = Cached::new(shape, 4096, &set, accesses, 1).unwrap();
        let Ok(_) = run(&of, &mut cached) else {
            continue;
        };
        ran += 1;
        for (tally, timing) in cached.tallies().zip(set.timings()) {
            assert!(tally.longest <= timing.wcet, "{tally:?} {timing:?} {of:?}");
            jobs += tally.jobs;
            near += u64::from(2 * tally.longest.nanos() > timing.wcet.nanos());
        }
    }
    assert!(ran > 100 && jobs > 1000 && near > 20, "{ran} {jobs} {near}");
}

/// The most that an access waits on any processor.
fn most(shape: &Shape) -> u64 {
    let most = |cpu: &CpuId| Waits::most(shape, *cpu, true).unwrap().nanos();
    shape.cpus.iter().map(most).max().unwrap()
}

/// One processor, two tasks that take turns: the L1 holds one line, the L2 two. Each job writes its
/// line, which makes the other's leave the L1, changed.
#[test]
fn what_another_job_left_changed_is_paid_by_the_one_that_makes_it_leave() {
    let price = |nanos| Some(Price::always(Duration::from_nanos(nanos)));
    let mut platform = Platform::symmetric(1);
    for level in 1..=2 {
        platform.caches.push(Cache {
            level,
            kind: CacheKind::Unified,
            size: Some(Bytes::new(64 * u64::from(level))),
            ways: Some(u32::from(level)),
            line: Some(64),
            sets: Some(1),
            shared_by: CpuSet::first(1),
            strategy: Strategy {
                fill: price(10 * u64::from(level)),
                write_back: price(3),
                ..Strategy::default()
            },
        });
    }
    let mut of = support_instance(1);
    of.tasks.push(small(3, 10, 10, 0));
    of.horizon = 30;
    let set = of.set();
    let written = |line| -> Box<dyn Accesses> {
        Box::new(Lines {
            kind: Kind::Write,
            ..Lines::read(line, 1, 1)
        })
    };
    let shape = Shape::of(&platform).unwrap();
    // One access waits at most for memory, one line from the L1 and two from the L2.
    assert_eq!(most(&shape), 20 + 3 * 3);
    let accesses = vec![written(0), written(1)];
    let mut cached = Cached::new(shape, 4096, &set, accesses, 1).unwrap();
    let (responses, _) = run(&of, &mut cached).unwrap();
    let computing = 3 * UNIT - 29;
    // From memory; with the other's line written back; then from the L2, with the same.
    let first = [20, 13, 13].map(|waits| computing + waits);
    let second = [23, 13, 13].map(|waits| computing + waits);
    assert_eq!(responses.of[0], first);
    let both: Vec<u64> = first.iter().zip(second).map(|(a, b)| a + b).collect();
    assert_eq!(responses.of[1], both);
}

/// A task of 3 units in 10, and further ones, by fixed priorities in their order.
fn support_instance(m: u64) -> Instance {
    Instance {
        m,
        tasks: vec![small(3, 10, 10, 0)],
        policy: "g-edf".to_owned(),
        assignment: None,
        horizon: 10,
    }
}

#[test]
fn accesses_that_do_not_fit_into_the_wcet_are_refused() {
    let of = support_instance(1);
    let set = of.set();
    let lines = Lines::read(0, 1, 301);
    let refused = Cached::new(shape([0, 0, 10]), 4096, &set, vec![Box::new(lines)], 1);
    let e = refused.err().unwrap().to_string();
    assert!(
        e.contains("301 accesses") && e.contains("longer than its WCET"),
        "{e}"
    );
}
