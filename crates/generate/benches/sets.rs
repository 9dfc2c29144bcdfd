//! Sets drawn per second, for the recipes that studies use most.
//!
//! Peer: none published; the fastest tests of the peers judge 2.5 million sets a second
//! (EVA-rt-Engine, GFB), so drawing must not be slower than that by more than a small factor.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use generate::{Amount, Deadlines, Fill, Method, Random, Range, Recipe};
use model::Ratio;
use std::time::Duration;

fn sets(c: &mut Criterion) {
    let cap = |utilizations: &str, cap| Amount::Cap {
        utilizations: utilizations.parse().unwrap(),
        cap: Ratio::whole(cap),
        fill: Fill::Drop,
    };
    let total = |method| Amount::Total {
        method,
        tasks: 48,
        total: Ratio::whole(12),
        range: Range::ALL,
    };
    let mut group = c.benchmark_group("draw");
    group
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    for (name, amount) in [
        ("uniform-medium, cap 12", cap("uniform-medium", 12)),
        ("uniform-heavy, cap 24", cap("uniform-heavy", 24)),
        ("uniform-light, cap 24", cap("uniform-light", 24)),
        ("exponential-light, cap 12", cap("exponential-light", 12)),
        (
            "uunifast-discard, 48 tasks, 12",
            total(Method::UunifastDiscard),
        ),
        ("randfixedsum, 48 tasks, 12", total(Method::RandFixedSum)),
    ] {
        let recipe = Recipe {
            amount,
            periods: "moderate".parse().unwrap(),
            deadlines: Deadlines::Implicit,
        };
        let generator = recipe.prepare().unwrap();
        let mut timings = Vec::new();
        let mut number = 0;
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                number += 1;
                generator
                    .draw_into(&mut Random::new(1, number), &mut timings)
                    .unwrap();
                timings.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, sets);
criterion_main!(benches);
