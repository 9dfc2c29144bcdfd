//! What is drawn follows the distributions: bounds, means and Kolmogorov–Smirnov against the exact
//! ones, on fixed seeds.

use generate::fixed_sum::{FixedSum, uunifast, uunifast_discard};
use generate::{Amount, Deadlines, Fill, Generator, Random, Range, Recipe, Utilizations};
use model::{Duration, Timing};

/// The critical value of the Kolmogorov–Smirnov statistic at a level of 0.1 %, for many samples.
fn critical(samples: usize) -> f64 {
    1.95 / (samples as f64).sqrt()
}

/// The largest distance between the samples' distribution and `cdf`.
fn kolmogorov_smirnov(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    samples
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let f = cdf(*x);
            (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
        })
        .fold(0.0, f64::max)
}

fn assert_follows(name: &str, samples: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    let count = samples.len();
    let distance = kolmogorov_smirnov(samples, cdf);
    assert!(
        distance < critical(count),
        "{name}: {distance} of {count} samples"
    );
}

fn tasks(utilizations: &str, periods: &str, deadlines: Deadlines, count: u32) -> Vec<Timing> {
    let recipe = Recipe {
        amount: Amount::Tasks {
            utilizations: utilizations.parse().unwrap(),
            tasks: count,
        },
        periods: periods.parse().unwrap(),
        deadlines,
    };
    recipe
        .prepare()
        .unwrap()
        .draw(7, 0)
        .unwrap()
        .timings()
        .to_vec()
}

const SAMPLES: u32 = 20_000;

/// Periods of about a second, so that rounding to the microsecond is far below what the test can
/// see.
fn utilizations(name: &str) -> Vec<f64> {
    tasks(name, "uniform:900ms-1100ms", Deadlines::Implicit, SAMPLES)
        .iter()
        .map(|t| t.utilization().to_f64())
        .collect()
}

#[test]
fn uniform_utilizations_follow_their_distribution() {
    for (name, low, high) in [
        ("uniform-light", 0.001, 0.1),
        ("uniform-medium", 0.1, 0.4),
        ("uniform-heavy", 0.5, 0.9),
        ("rtcsa13", 0.1, 0.7),
    ] {
        let drawn = utilizations(name);
        assert!(drawn.iter().all(|u| (low..=high).contains(u)), "{name}");
        assert_follows(name, drawn, |u| (u - low) / (high - low));
    }
}

#[test]
fn bimodal_utilizations_follow_their_distribution() {
    for (name, heavy) in [
        ("light", 1.0 / 9.0),
        ("medium", 3.0 / 9.0),
        ("heavy", 5.0 / 9.0),
    ] {
        let drawn = utilizations(&format!("bimodal-{name}"));
        assert!(drawn.iter().all(|u| (0.001..=0.9).contains(u)), "{name}");
        assert_follows(name, drawn, |u| {
            (1.0 - heavy) * ((u - 0.001) / 0.499).clamp(0.0, 1.0)
                + heavy * ((u - 0.5) / 0.4).clamp(0.0, 1.0)
        });
    }
}

#[test]
fn exponential_utilizations_follow_their_distribution_cut_at_one() {
    for (name, mean) in [("light", 0.10), ("medium", 0.25), ("heavy", 0.50)] {
        let name = format!("exponential-{name}");
        let drawn = utilizations(&name);
        assert!(drawn.iter().all(|u| (0.0..=1.0).contains(u)), "{name}");
        let distribution: Utilizations = name.parse().unwrap();
        let average = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!(
            (average - distribution.mean()).abs() < 0.005,
            "{name}: {average}"
        );
        let all = 1.0 - (-1.0_f64 / mean).exp();
        assert_follows(&name, drawn, |u| (1.0 - (-u / mean).exp()) / all);
    }
}

#[test]
fn periods_are_integral_and_every_one_is_as_likely() {
    for (name, low, high) in [("short", 3, 33), ("moderate", 10, 100), ("long", 50, 250)] {
        let drawn = tasks("uniform-medium", name, Deadlines::Implicit, SAMPLES);
        let mut counts = vec![0_u32; high - low + 1];
        for t in &drawn {
            assert_eq!(t.period.nanos() % 1_000_000, 0);
            counts[(t.period.nanos() / 1_000_000) as usize - low] += 1;
        }
        // Chi-square with many degrees of freedom is nearly normal: four standard deviations.
        let expected = f64::from(SAMPLES) / counts.len() as f64;
        let freedom = counts.len() as f64 - 1.0;
        let chi_square: f64 = counts
            .iter()
            .map(|c| (f64::from(*c) - expected).powi(2) / expected)
            .sum();
        assert!(
            (chi_square - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(),
            "{name}: {chi_square}"
        );
    }
}

#[test]
fn log_uniform_periods_have_uniform_logarithms() {
    let drawn = tasks(
        "uniform-medium",
        "log-uniform:1ms-1s/1us",
        Deadlines::Implicit,
        SAMPLES,
    );
    let periods: Vec<f64> = drawn.iter().map(|t| t.period.as_millis_f64()).collect();
    assert!(periods.iter().all(|p| (1.0..=1000.0).contains(p)));
    assert_follows("log-uniform", periods, |p| p.ln() / 1000_f64.ln());
    let coarse = tasks(
        "uniform-medium",
        "log-uniform:10ms-1s/10ms",
        Deadlines::Implicit,
        1_000,
    );
    assert!(coarse.iter().all(|t| t.period.nanos() % 10_000_000 == 0));
}

#[test]
fn deadlines_are_a_uniform_part_of_the_way_to_the_period() {
    let part =
        |t: &Timing| (t.deadline - t.wcet).nanos() as f64 / (t.period - t.wcet).nanos() as f64;
    for (kind, low, high) in [
        ("constrained", 0.0, 1.0),
        ("constrained:0.5-1", 0.5, 1.0),
        ("arbitrary", 0.0, 2.0),
    ] {
        let drawn = tasks(
            "uniform-medium",
            "uniform:900ms-1100ms",
            kind.parse().unwrap(),
            SAMPLES,
        );
        assert!(drawn.iter().all(|t| t.deadline >= t.wcet));
        assert_eq!(
            drawn.iter().all(|t| t.deadline <= t.period),
            high <= 1.0,
            "{kind}"
        );
        assert_follows(kind, drawn.iter().map(part).collect(), |x| {
            ((x - low) / (high - low)).clamp(0.0, 1.0)
        });
    }
}

/// The distribution function of the sum of `n` uniform numbers (Irwin–Hall).
fn irwin_hall(n: i32, x: f64) -> f64 {
    let x = x.clamp(0.0, f64::from(n));
    let factorial = |n: i32| (1..=n).map(f64::from).product::<f64>();
    (0..=n)
        .filter(|k| f64::from(*k) < x)
        .map(|k| {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sign * (x - f64::from(k)).powi(n) / (factorial(k) * factorial(n - k))
        })
        .sum()
}

/// The distribution function of one of `n` numbers in [0, 1] that are uniform over those with this
/// sum.
fn marginal(n: i32, sum: f64, x: f64) -> f64 {
    let all = irwin_hall(n - 1, sum) - irwin_hall(n - 1, sum - 1.0);
    (irwin_hall(n - 1, sum) - irwin_hall(n - 1, sum - x.clamp(0.0, 1.0))) / all
}

#[test]
fn randfixedsum_is_uniform_in_every_coordinate() {
    for (n, sum) in [
        (2, 0.5),
        (3, 1.5),
        (5, 0.7),
        (5, 1.0),
        (5, 2.3),
        (8, 4.0),
        (8, 6.9),
        (12, 3.0),
    ] {
        let prepared = FixedSum::new(n, sum, Range::ALL).unwrap();
        let mut columns = vec![Vec::new(); n as usize];
        let mut x = vec![0.0; n as usize];
        for number in 0..5_000 {
            prepared.draw(&mut Random::new(11, number), &mut x);
            assert!((x.iter().sum::<f64>() - sum).abs() < 1e-9);
            assert!(x.iter().all(|u| (0.0..=1.0).contains(u)));
            for (column, u) in columns.iter_mut().zip(&x) {
                column.push(*u);
            }
        }
        for (k, column) in columns.into_iter().enumerate() {
            assert_follows(&format!("{n} tasks, {sum}, task {k}"), column, |u| {
                marginal(n as i32, sum, u)
            });
        }
    }
}

/// Two coordinates together: with three numbers, the larger of the first two says whether the pair
/// is uniform.
#[test]
fn randfixedsum_is_uniform_in_pairs() {
    let (n, sum) = (3, 1.2);
    let prepared = FixedSum::new(n, sum, Range::ALL).unwrap();
    let mut x = [0.0; 3];
    let larger: Vec<f64> = (0..SAMPLES)
        .map(|number| {
            prepared.draw(&mut Random::new(5, u64::from(number)), &mut x);
            x[0].max(x[1])
        })
        .collect();
    // The area of {a, b ≤ t, 0.2 ≤ a + b ≤ 1.2} in the unit square, over that for t = 1.
    let below = |t: f64, s: f64| {
        // Area of {a, b in [0, t], a + b ≤ s}.
        let triangle = |side: f64| side.max(0.0).powi(2) / 2.0;
        triangle(s) - 2.0 * triangle(s - t) + triangle(s - 2.0 * t)
    };
    let area = |t: f64| below(t, sum) - below(t, sum - 1.0);
    assert_follows("the larger of a pair", larger, |t| {
        area(t.clamp(0.0, 1.0)) / area(1.0)
    });
}

#[test]
fn randfixedsum_keeps_its_range_and_its_corners() {
    let range = Range::new(0.1, 0.4).unwrap();
    for total in [1.0, 1.7, 2.5, 3.9, 4.0] {
        let prepared = FixedSum::new(10, total, range).unwrap();
        let mut x = [0.0; 10];
        prepared.draw(&mut Random::new(1, 1), &mut x);
        assert!(
            (x.iter().sum::<f64>() - total).abs() < 1e-9,
            "{total}: {x:?}"
        );
        assert!(x.iter().all(|u| (0.1..=0.4).contains(u)), "{total}: {x:?}");
    }
    // Densities here are far below the smallest floating-point number.
    let many = FixedSum::new(2_000, 1.5, Range::ALL).unwrap();
    let mut x = vec![0.0; 2_000];
    many.draw(&mut Random::new(1, 2), &mut x);
    assert!((x.iter().sum::<f64>() - 1.5).abs() < 1e-9);
    for (n, total) in [(0, 1.0), (5, 6.0), (5, 0.0), (100_000, 1.0)] {
        assert!(FixedSum::new(n, total, Range::ALL).is_err(), "{n} {total}");
    }
}

#[test]
fn uunifast_is_uniform_over_the_simplex() {
    let n = 6;
    let mut columns = vec![Vec::new(); n];
    let mut x = vec![0.0; n];
    for number in 0..5_000 {
        uunifast(&mut Random::new(3, number), 0.8, &mut x);
        assert!((x.iter().sum::<f64>() - 0.8).abs() < 1e-12);
        for (column, u) in columns.iter_mut().zip(&x) {
            column.push(*u / 0.8);
        }
    }
    for (k, column) in columns.into_iter().enumerate() {
        // Each coordinate of a uniform point of the simplex is Beta(1, n - 1).
        assert_follows(&format!("task {k}"), column, |u| {
            1.0 - (1.0 - u).powi(n as i32 - 1)
        });
    }
}

#[test]
fn uunifast_discard_is_what_randfixedsum_samples_too() {
    let (n, sum) = (5, 2.3);
    let mut x = vec![0.0; n];
    let mut first = Vec::new();
    for number in 0..5_000 {
        uunifast_discard(&mut Random::new(3, number), sum, &mut x).unwrap();
        assert!(x.iter().all(|u| *u <= 1.0));
        first.push(x[0]);
    }
    assert_follows("first task", first, |u| marginal(n as i32, sum, u));
    let e = uunifast_discard(&mut Random::new(3, 0), 29.9, &mut [0.0; 30]).unwrap_err();
    assert!(e.to_string().contains("randfixedsum"), "{e}");
}

/// 000 §5: "adding tasks until the total utilization exceeds U, then discarding the last" stops
/// where it should.
#[test]
fn the_total_reaches_for_the_cap_and_never_passes_it() {
    let generator = |fill| -> Generator {
        Recipe {
            amount: Amount::Cap {
                utilizations: "uniform-heavy".parse().unwrap(),
                cap: "7.25".parse().unwrap(),
                fill,
            },
            periods: "short".parse().unwrap(),
            deadlines: Deadlines::Implicit,
        }
        .prepare()
        .unwrap()
    };
    let (drop, scale) = (generator(Fill::Drop), generator(Fill::Scale));
    for number in 0..200 {
        let (dropped, scaled) = (
            drop.draw(1, number).unwrap(),
            scale.draw(1, number).unwrap(),
        );
        let cap = "7.25".parse().unwrap();
        assert!(dropped.cmp_utilization(cap).is_le());
        assert!(dropped.utilization_f64() > 7.25 - 0.9);
        assert!(scaled.cmp_utilization(cap).is_le());
        // Within the microsecond over the last task's period, which is at least 3 ms.
        assert!(scaled.utilization_f64() > 7.25 - 1.0 / 3000.0);
        // The same tasks, but for the last one.
        assert_eq!(dropped.timings(), &scaled.timings()[..dropped.len()]);
        assert!(scaled.len() <= dropped.len() + 1);
    }
}

#[test]
fn tasks_are_added_until_a_test_refuses_them() {
    let recipe = Recipe {
        amount: Amount::UntilRefused {
            utilizations: "rtcsa13".parse().unwrap(),
        },
        periods: "rtcsa13".parse().unwrap(),
        deadlines: Deadlines::Implicit,
    };
    let generator = recipe.prepare().unwrap();
    let fits =
        |tasks: &[Timing]| tasks.iter().map(|t| t.utilization().to_f64()).sum::<f64>() <= 3.0;
    let set = generator.draw_until(1, 0, fits).unwrap();
    assert!(fits(set.timings()) && set.utilization_f64() > 3.0 - 0.7);
    for t in set.timings() {
        assert!(
            [25, 50, 100, 200]
                .map(Duration::from_millis)
                .contains(&t.period)
        );
    }
    assert!(generator.draw_until(1, 0, |_| false).is_err());
    assert!(generator.draw(1, 0).is_err());
}
