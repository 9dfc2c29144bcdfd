//! Random small task sets with assignments, and one way to simulate them.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod corruptions;

use model::assignment::{Clustered, Quanta, Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::watch::Silent;
use model::{
    Assignment, Bytes, ClusterSpec, CpuId, Details, Duration, Instant, Platform, Provenance,
    TaskSet, Timing,
};
use policy::catalog::{Needs, Tests};
use policy::{AnyPlan, Setup, Spec};
use simulate::{Costs, Releases, Responses, Scenario, Summary, Traced};
use std::sync::LazyLock;
use trace::check::Options;
use trace::{Checker, Event, EventKind, Header, Sink, Stage, VecSink, Verdict};

pub use testing::random::Random;

/// One time unit of these tests; small enough to see that nothing depends on it.
pub const UNIT: u64 = 1000;

/// Whoever makes the choices of which an instance is made: chance, or a fuzzer.
pub trait Choices {
    fn below(&mut self, n: u64) -> u64;
    fn among(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

impl Choices for Random {
    fn below(&mut self, n: u64) -> u64 {
        Random::below(self, n)
    }
}

/// A task in units.
#[derive(Clone, Debug)]
pub struct Small {
    pub wcet: u64,
    pub period: u64,
    pub deadline: u64,
    pub phase: u64,
    /// In MiB.
    pub wss: u64,
    pub group: Option<u64>,
}

/// A task of one MiB and of no group.
pub fn small(wcet: u64, period: u64, deadline: u64, phase: u64) -> Small {
    Small {
        wcet,
        period,
        deadline,
        phase,
        wss: 1,
        group: None,
    }
}

/// A small instance: what the reference and the engine both get.
#[derive(Clone, Debug)]
pub struct Instance {
    pub m: u64,
    pub tasks: Vec<Small>,
    pub policy: String,
    pub assignment: Option<Assignment>,
    pub horizon: u64,
}

pub fn units(n: u64) -> Duration {
    Duration::from_nanos(n * UNIT)
}

impl Instance {
    pub fn set(&self) -> TaskSet {
        let task = |(index, t): (usize, &Small)| {
            (
                Timing {
                    wcet: units(t.wcet),
                    period: units(t.period),
                    deadline: units(t.deadline),
                },
                Details {
                    phase: units(t.phase),
                    wss: Some(Bytes::new(t.wss << 20)),
                    group: t.group.map(|g| format!("g{g}")),
                    ..Details::named(format!("T{}", index + 1))
                },
            )
        };
        TaskSet::new(self.tasks.iter().enumerate().map(task).collect()).unwrap()
    }

    pub fn platform(&self) -> Platform {
        Platform::symmetric(self.m as u32)
    }

    pub fn scenario(&self) -> Scenario {
        Scenario {
            horizon: units(self.horizon),
            quantum: units(1),
            ..Scenario::default()
        }
    }

    fn plan(&self, set: &TaskSet, platform: &Platform) -> AnyPlan {
        let setup = Setup {
            set,
            platform,
            assignment: self.assignment.as_ref(),
            quantum: units(1),
        };
        self.policy.parse::<Spec>().unwrap().plan(&setup).unwrap()
    }

    /// Simulates it; with costs through the engine that charges them, even if all are zero.
    pub fn simulate(
        &self,
        scenario: &Scenario,
        costs: Option<&Costs>,
    ) -> (Summary, Responses, Vec<Event>) {
        let (set, platform) = (self.set(), self.platform());
        let plan = self.plan(&set, &platform);
        struct Run<'a>(&'a TaskSet, &'a Platform, &'a Scenario, Option<&'a Costs>);
        impl policy::Visit for Run<'_> {
            type Out = (Summary, Responses, Vec<Event>);
            fn visit<P: policy::Policy>(self, plan: policy::Plan<P>) -> Self::Out {
                let observer = (Responses::new(self.0.len()), Traced(VecSink::default()));
                let (summary, (responses, Traced(sink))) = match self.3 {
                    Some(costs) => simulate::costly::run(
                        plan, self.0, self.1, self.2, costs, &Silent, observer,
                    ),
                    None => simulate::ideal::run(plan, self.0, self.1, self.2, &Silent, observer),
                }
                .unwrap();
                (summary, responses, sink.events)
            }
        }
        plan.visit(Run(&set, &platform, scenario, costs))
    }

    /// Simulates it with costs, without looking at events, and on the path that would be taken if
    /// somebody did.
    pub fn simulate_plainly(&self, scenario: &Scenario, costs: &Costs) -> (Summary, Responses) {
        struct Run<'a>(&'a TaskSet, &'a Platform, &'a Scenario, &'a Costs);
        impl policy::Visit for Run<'_> {
            type Out = (Summary, Responses);
            fn visit<P: policy::Policy>(self, plan: policy::Plan<P>) -> Self::Out {
                let Run(set, platform, scenario, costs) = self;
                let responses = Responses::new(set.len());
                simulate::costly::run_plainly(
                    plan, set, platform, scenario, costs, &Silent, responses,
                )
                .unwrap()
            }
        }
        let (set, platform) = (self.set(), self.platform());
        let plan = self.plan(&set, &platform);
        plan.visit(Run(&set, &platform, scenario, costs))
    }

    /// Simulates it with costs and without looking at events.
    pub fn simulate_untraced(&self, scenario: &Scenario, costs: &Costs) -> (Summary, Responses) {
        let (set, platform) = (self.set(), self.platform());
        let plan = self.plan(&set, &platform);
        let responses = Responses::new(set.len());
        simulate::simulate(
            plan,
            &set,
            &platform,
            scenario,
            Some(costs),
            &Silent,
            responses,
        )
        .unwrap()
    }
}

impl Instance {
    /// What a trace of it says in front.
    pub fn header(&self, scenario: &Scenario) -> Header {
        let spec: Spec = self.policy.parse().unwrap();
        let stage = Stage {
            policy: self.policy.clone(),
            assignment: self.assignment.clone(),
            quantum: spec.quantum(units(1)).unwrap(),
        };
        Header {
            release_on: scenario.release_on.clone(),
            releases: match scenario.releases {
                Releases::Periodic => trace::Releases::Periodic,
                Releases::Sporadic(_) | Releases::SporadicBy(_) => trace::Releases::Sporadic,
                Releases::Given(_) => trace::Releases::Given,
            },
            enforcement: Some(scenario.enforcement),
            ..Header::simulated(self.set(), self.platform(), stage, Provenance::default())
        }
    }
}

/// What the checker says of a trace.
pub fn check(header: &Header, events: &[Event]) -> Verdict {
    let mut checker = Checker::new(header.clone(), Options::for_trace(header)).unwrap();
    for event in events {
        checker.record(*event);
    }
    checker.finish()
}

/// The policies of the catalog, by the words that their rows name for the suites; those that need
/// an assignment get a random one.
pub static POLICIES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| policy::catalog::tried().collect());

/// A random instance for a policy.
pub fn instance(random: &mut impl Choices, policy: &str) -> Instance {
    let spec: Spec = policy.parse().unwrap();
    let m = match spec.needs().unwrap() {
        Needs::Clusters(ClusterSpec::Size(size)) => u64::from(size) * random.among(1, 2),
        _ => random.among(1, 4),
    };
    let n = random.among(1, 7);
    let is_fair = spec.info().quantum_driven && spec.info().hard != Tests::None;
    let implicit = is_fair || random.below(2) == 0;
    let tasks: Vec<Small> = (0..n)
        .map(|_| {
            let period = random.among(2, 12);
            let deadline = if implicit {
                period
            } else {
                random.among(1, 2 * period)
            };
            Small {
                wcet: random.among(1, deadline.min(period)),
                period,
                deadline,
                phase: if random.below(3) == 0 {
                    random.below(8)
                } else {
                    0
                },
                wss: random.among(1, 3),
                group: None,
            }
        })
        .collect();
    let mut made = Instance {
        m,
        assignment: None,
        policy: policy.to_owned(),
        horizon: random.among(40, 120),
        tasks,
    };
    if policy.starts_with("ca-edf") {
        // Some working sets are larger than the cache.
        for task in &mut made.tasks {
            if random.below(5) == 0 {
                task.wss = random.among(4, 7);
            }
        }
    }
    if policy.starts_with("ca-edf") && n > 2 && m > 1 {
        // Two tasks of one group share a working set and have one period.
        let Small { wss, period, .. } = made.tasks[0];
        for task in [0, 2] {
            let task = &mut made.tasks[task];
            task.group = Some(1);
            task.wss = wss;
            if task.period != period {
                task.deadline = if implicit { period } else { task.deadline };
                task.period = period;
                task.wcet = task.wcet.min(period).min(task.deadline);
            }
        }
    }
    made.assignment = assignment(random, &made);
    made
}

fn cpus(m: u64) -> Vec<CpuId> {
    (0..m as u32).map(CpuId).collect()
}

fn clusters(m: u64, n: u64, size: u64, random: &mut impl Choices) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters: cpus(m)
            .chunks(size as usize)
            .map(|c| c.iter().copied().collect())
            .collect(),
        cluster_of: (0..n).map(|_| random.below(m / size) as u32).collect(),
    })
}

fn assignment(random: &mut impl Choices, of: &Instance) -> Option<Assignment> {
    let (m, n) = (of.m, of.tasks.len() as u64);
    let cpu = |p: u64| CpuId(p as u32);
    let spec: Spec = of.policy.parse().unwrap();
    match spec.needs().unwrap() {
        Needs::Clusters(ClusterSpec::Size(size)) => Some(clusters(m, n, u64::from(size), random)),
        Needs::Clusters(_) => Some(clusters(m, n, 1, random)),
        Needs::Turns { .. } => {
            let turn = |_| {
                let first = random.below(m);
                let whole = random.among(1, 9);
                Turn {
                    first: cpu(first),
                    second: cpu(if random.below(2) == 0 {
                        first
                    } else {
                        random.below(m)
                    }),
                    part: random.among(0, whole),
                    whole,
                }
            };
            Some(Assignment::Turns(Turns {
                cpus: cpus(m),
                tasks: (0..n).map(turn).collect(),
            }))
        }
        Needs::Slices { .. } => {
            let slices = |task: &Small| {
                let parts = random.among(1, m).min(task.wcet).min(task.deadline);
                if parts == 1 {
                    return vec![Slice {
                        cpu: cpu(random.below(m)),
                        budget: units(task.wcet),
                        window: units(task.deadline),
                    }];
                }
                let first = random.below(m);
                let slice = |k| Slice {
                    cpu: cpu((first + k) % m),
                    budget: units(task.wcet / parts + u64::from(k < task.wcet % parts)),
                    window: units(task.deadline / parts),
                };
                (0..parts).map(slice).collect()
            };
            Some(Assignment::Slices(Slices {
                cpus: cpus(m),
                tasks: of.tasks.iter().map(slices).collect(),
            }))
        }
        Needs::Slots { clusters, .. } => {
            // Whole servers and, between neighbors, servers that both serve, at different times of
            // the slot.
            let slot = random.among(2, 6);
            let split = clusters.is_none();
            let mut servers = 0;
            let mut timetables = Vec::new();
            let mut carried: Option<(u32, u64)> = None;
            for p in 0..m {
                let mut turns = Vec::new();
                let serve = |start: u64, end: u64, server: u32| Serve {
                    start: units(start),
                    end: units(end),
                    server,
                };
                let mut at = 0;
                if let Some((server, until)) = carried.take() {
                    turns.push(serve(0, until, server));
                    at = until;
                }
                let middle = random.among(at, slot);
                if middle > at {
                    turns.push(serve(at, middle, servers));
                    servers += 1;
                }
                if split && p + 1 < m && middle > 0 && middle < slot {
                    // At the end of this processor's slot, at the beginning of the next one's.
                    turns.push(serve(middle, slot, servers));
                    carried = Some((servers, random.among(1, middle)));
                    servers += 1;
                }
                if p + 1 == m && servers == 0 {
                    turns.push(serve(0, slot, 0));
                    servers = 1;
                }
                timetables.push(Timetable { cpu: cpu(p), turns });
            }
            Some(Assignment::Slots(Slots {
                slot: units(slot),
                server_of: (0..n)
                    .map(|_| random.below(u64::from(servers)) as u32)
                    .collect(),
                timetables,
            }))
        }
        // More may be reserved than jobs execute.
        Needs::Nothing if spec.info().quantum_driven && random.below(2) == 0 => {
            Some(Assignment::Quanta(Quanta {
                cpus: cpus(m).into_iter().collect(),
                quantum: units(1),
                reserved: of
                    .tasks
                    .iter()
                    .map(|t| units(random.among(t.wcet, t.period)))
                    .collect(),
            }))
        }
        Needs::Nothing => None,
    }
}

/// Who runs on each processor in each unit of time, from the events; everything on unit boundaries.
pub fn occupancy(events: &[Event], m: u64, horizon: u64) -> Vec<Vec<Option<u32>>> {
    let mut table = vec![vec![None; m as usize]; horizon as usize];
    let mut running: Vec<Option<(u32, Instant)>> = vec![None; m as usize];
    let fill =
        |table: &mut Vec<Vec<Option<u32>>>, cpu: usize, task: u32, from: Instant, to: Instant| {
            assert_eq!((from.nanos() % UNIT, to.nanos() % UNIT), (0, 0));
            for slot in from.nanos() / UNIT..to.nanos() / UNIT {
                table[slot as usize][cpu] = Some(task);
            }
        };
    for event in events {
        let Some(cpu) = event.cpu().map(|c| c.index()) else {
            continue;
        };
        if event.kind.puts_on() {
            assert_eq!(running[cpu], None, "{event} on a busy processor");
            running[cpu] = Some((event.task.0, event.time));
        } else if event.kind.takes_off() {
            let (task, since) = running[cpu].take().expect("somebody runs");
            assert_eq!(task, event.task.0, "{event}");
            fill(&mut table, cpu, task, since, event.time);
        } else if event.kind == EventKind::Idle {
            assert_eq!(running[cpu], None, "{event} on a busy processor");
        }
    }
    for (cpu, running) in running.into_iter().enumerate() {
        if let Some((task, since)) = running {
            fill(
                &mut table,
                cpu,
                task,
                since,
                Instant::from_nanos(horizon * UNIT),
            );
        }
    }
    table
}
