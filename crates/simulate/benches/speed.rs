//! Simulated jobs a second on one core, next to the peers' figures. Sets as in the comparison: m =
//! 4, n = 20, U = 3.04.
//!
//! Peers on such a set, wall time, same kind of machine: SchedCAT (C++, G-EDF only, nothing else
//! counted) 8.6 M jobs/s; SimSo G-EDF 6.6 k, P-EDF 7.2 k, EKG 1.9 k, PD2 0.35 k jobs/s.
//!
//! Time is time on the processor (`/proc/self/schedstat`), so that a busy machine does not spoil
//! the figures. At the end a table has the medians next to what the best known tool manages.

use criterion::{Criterion, Throughput, criterion_group};
use model::watch::Silent;
use model::{Duration, Platform, TaskSet, Timing};
use policy::{AnyPlan, Setup, Spec};
use simulate::{Costs, Observer, Scenario, Summary, Traced};
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration as Wall, Instant};
use trace::VecSink;

/// Tasks of total utilization `percent` / 100, periods 10 to 100 ms in whole milliseconds.
fn tasks(n: u64, percent: u64) -> TaskSet {
    let timings = (0..n)
        .map(|i| {
            let period = Duration::from_millis(10 + (i * 37) % 91);
            // Shares 1 : 2 : 3 in turn, which sum to 2 n over n tasks.
            let wcet = period.nanos() * percent * (1 + i % 3) / (100 * 2 * n);
            Timing::implicit(Duration::from_nanos(wcet), period)
        })
        .collect();
    TaskSet::from_timings(timings).expect("a valid set")
}

/// Time on the processor so far; where the kernel does not tell, wall time.
fn on_processor(start: Instant) -> Wall {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    match stat
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok())
    {
        Some(ns) => Wall::from_nanos(ns),
        None => start.elapsed(),
    }
}

/// What was measured: a name, the peer's figure, and seconds for each element of a run.
struct Row {
    name: String,
    peer: &'static str,
    seconds: Vec<f64>,
}

static TABLE: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// The medians, in millions a second.
fn print_table() {
    println!("{:44} {:>10}   best known, millions a second", "", "M/s");
    for row in TABLE.lock().expect("one thread").iter_mut() {
        row.seconds.sort_by(f64::total_cmp);
        let median = row.seconds[row.seconds.len() / 2];
        println!("{:44} {:10.2}   {}", row.name, 1e-6 / median, row.peer);
    }
}

struct Case {
    set: TaskSet,
    platform: Platform,
    policy: Spec,
    costs: Option<Costs>,
    horizon: Duration,
}

impl Case {
    fn new(m: u32, n: u64, percent: u64, policy: &str) -> Self {
        Case {
            set: tasks(n, percent),
            platform: Platform::symmetric(m),
            policy: policy.parse().expect("a policy"),
            costs: None,
            horizon: Duration::from_secs(200),
        }
    }

    /// Overheads of the size that 002 measured, and a cache delay for every way to resume.
    fn with_overheads(mut self) -> Self {
        let kinds = self.platform.resumptions().len();
        self.costs = Some(Costs {
            release: 2_000,
            scheduling: 3_000,
            context_switch: 1_000,
            ipi_latency: 1_500,
            timer_transfer: 1_000,
            tick: 500,
            cpmd: vec![vec![20_000; kinds]; self.set.len()],
            ..Costs::default()
        });
        self
    }

    fn plan(&self) -> AnyPlan {
        let setup = Setup {
            set: &self.set,
            platform: &self.platform,
            assignment: None,
            quantum: Duration::from_millis(1),
        };
        self.policy.plan(&setup).expect("a plan")
    }

    fn scenario(&self) -> Scenario {
        Scenario {
            horizon: self.horizon,
            ..Scenario::default()
        }
    }

    fn run(&self, observer: impl Observer) -> Summary {
        let run = simulate::simulate(
            self.plan(),
            &self.set,
            &self.platform,
            &self.scenario(),
            self.costs.as_ref(),
            &Silent,
            observer,
        );
        run.expect("a simulation").0
    }

    /// With overheads, on the path that is taken where somebody looks at events.
    fn run_plainly(&self) -> Summary {
        struct Plainly<'a>(&'a Case, &'a Scenario, &'a Costs);
        impl policy::Visit for Plainly<'_> {
            type Out = Summary;
            fn visit<P: policy::Policy>(self, plan: policy::Plan<P>) -> Summary {
                let Plainly(case, scenario, costs) = self;
                let (set, platform) = (&case.set, &case.platform);
                let run = simulate::costly::run_plainly(
                    plan,
                    set,
                    platform,
                    scenario,
                    costs,
                    &Silent,
                    (),
                );
                run.expect("a simulation").0
            }
        }
        let scenario = self.scenario();
        let costs = self.costs.as_ref().expect("overheads");
        self.plan().visit(Plainly(self, &scenario, costs))
    }

    fn bench(
        &self,
        c: &mut Criterion,
        name: &str,
        peer: &'static str,
        elements: u64,
        run: impl Fn(&Self) -> Summary,
    ) {
        let mut seconds = Vec::new();
        let mut group = c.benchmark_group("simulate");
        group
            .sample_size(20)
            .throughput(Throughput::Elements(elements));
        group.warm_up_time(Wall::from_millis(500));
        group.measurement_time(Wall::from_secs(2));
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                let start = Instant::now();
                let before = on_processor(start);
                for _ in 0..iterations {
                    black_box(run(self));
                }
                let time = on_processor(start)
                    .saturating_sub(before)
                    .max(Wall::from_nanos(1));
                seconds.push(time.as_secs_f64() / (iterations * elements) as f64);
                time
            });
        });
        group.finish();
        // A filter on the command line may have left it out.
        if !seconds.is_empty() {
            TABLE.lock().expect("one thread").push(Row {
                name: name.to_owned(),
                peer,
                seconds,
            });
        }
    }
}

fn speed(c: &mut Criterion) {
    let others = "SchedCAT 8.6 (G-EDF only), SimSo 0.0066";
    let trace = "SimSo 0.0066; SchedCAT keeps no trace";
    let none = "SchedCAT simulates no overheads";
    for (m, n, percent, peers) in [
        (4, 20, 304, [others, trace, none]),
        (24, 72, 1824, ["not measured"; 3]),
    ] {
        let name = |what: &str| format!("g-edf m={m} n={n} {what}, jobs");
        let ideal = Case::new(m, n, percent, "g-edf");
        let jobs = ideal.run(()).completed();
        ideal.bench(c, &name("ideal"), peers[0], jobs, |case| case.run(()));
        ideal.bench(c, &name("trace kept"), peers[1], jobs, |case| {
            case.run(Traced(VecSink::default()))
        });
        let costly = Case::new(m, n, percent, "g-edf").with_overheads();
        let jobs = costly.run(()).completed();
        costly.bench(c, &name("all overheads"), peers[2], jobs, |case| {
            case.run(())
        });
        let plain = name("all overheads, plain path");
        costly.bench(c, &plain, peers[2], jobs, Case::run_plainly);
    }
    // Every quantum of every processor that is given to a job.
    let pd2 = Case::new(4, 20, 304, "pd2");
    let quanta = |set: &TaskSet| {
        let per_second =
            |t: &Timing| t.wcet.nanos().div_ceil(1_000_000) * 1_000_000_000 / t.period.nanos();
        200 * set.timings().iter().map(per_second).sum::<u64>()
    };
    pd2.bench(
        c,
        "pd2 m=4 n=20 ideal, quanta",
        "SimSo 0.00035 jobs",
        quanta(&pd2.set),
        |case| case.run(()),
    );
}

criterion_group!(benches, speed);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    print_table();
}
