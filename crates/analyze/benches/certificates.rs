//! What writing certificates costs `check`: the same sets judged without and with, in turns, so that
//! both meet the same noise. A figure is the median of the ratios of such pairs.
//!
//! Asked for: less than twice the time. `cargo bench -p warmset-analyze --bench certificates`.

use analyze::Guarantee;
use analyze::policies::{self, Costs, Judgment};
use model::watch::Silent;
use model::{Duration, Platform, TaskSet, Timing};
use policy::Spec;
use std::hint::black_box;
use std::time::Instant;
use testing::random::Random;

/// Tasks, processors, and sets of this size.
const SIZES: [(u64, u32, u64); 4] = [(4, 2, 40), (10, 2, 40), (40, 8, 10), (100, 24, 4)];
const POLICIES: [&str; 5] = ["p-edf", "g-edf", "p-fp:dm", "g-fp:dm", "edf-wm"];

/// A set with utilization between 0.5 and 0.9 of the processors; periods of whole milliseconds.
fn set(random: &mut Random, count: u64, m: u32) -> TaskSet {
    let share = random.among(500, 900) * u64::from(m) / count;
    let task = |_| {
        let period = random.among(5, 100);
        let permille = random.among(share / 2, share + share / 2).min(990);
        let wcet = (period * permille / 100).max(1);
        Timing {
            wcet: Duration::from_nanos(wcet * 100_000),
            period: Duration::from_millis(period),
            deadline: Duration::from_millis(random.among(period * 3 / 4, period)),
        }
    };
    TaskSet::to_judge((0..count).map(task).collect()).expect("a set to judge")
}

fn judge(set: &TaskSet, platform: &Platform, policies: &[Spec]) -> Judgment {
    let judged = policies::judge(
        set,
        platform,
        policies,
        Guarantee::Hard,
        &Costs::NONE,
        &Silent,
    );
    judged.expect("it is judged")
}

/// Seconds that it takes.
fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn main() {
    let policies: Vec<Spec> = POLICIES
        .iter()
        .map(|p| p.parse().expect("a policy"))
        .collect();
    println!("tasks  processors  check       with a certificate  ratio  by policy");
    for (count, m, sets) in SIZES {
        let platform = Platform::symmetric(m);
        let mut random = Random::new(count);
        let sets: Vec<TaskSet> = (0..sets).map(|_| set(&mut random, count, m)).collect();
        let pair = |policies: &[Spec]| {
            let mut pairs: Vec<(f64, f64)> = Vec::new();
            for set in &sets {
                let alone = time(|| {
                    black_box(judge(set, &platform, policies));
                });
                let with = time(|| {
                    let mut judgment = judge(set, &platform, policies);
                    let costs = &Costs::NONE;
                    policies::search(set, &platform, &mut judgment, costs).expect("judged");
                    let made = policies::certify(set, &platform, &judgment, costs);
                    let text = serde_json::to_string(&made.expect("judged"));
                    black_box(text.expect("JSON"));
                });
                pairs.push((alone, with));
            }
            let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
                let mut all: Vec<f64> = pairs.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            (median(&|p| p.0), median(&|p| p.1), median(&|p| p.1 / p.0))
        };
        let (alone, with, ratio) = pair(&policies);
        let each = policies.iter().map(|policy| {
            let (_, _, ratio) = pair(std::slice::from_ref(policy));
            format!("{policy} {ratio:.2}")
        });
        println!(
            "{count:>5}  {m:>10}  {:>8.2} ms  {:>15.2} ms  {ratio:>6.2}  {}",
            1e3 * alone,
            1e3 * with,
            each.collect::<Vec<_>>().join(", ")
        );
    }
}
