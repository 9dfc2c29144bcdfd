//! Measurements that are drawn: of the same they agree, and a difference that was planted is found.

use super::*;
use crate::overheads::curve::{Curve, Size};
use model::profile::OverheadKind;
use model::{Bytes, CpmdPoint, Load, Provenance, Resumption};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// About normal, mean 0 and deviation 1.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random_range(0.0..1.0_f64)).sum::<f64>() - 6.0
}

/// A profile of overheads of three policies with so many sets of each size: sets differ by 4 %,
/// samples by a tail, one of a thousand is far off. `planted`: by which factor scheduling costs
/// more.
fn profile(seed: u64, sets: usize, planted: f64) -> Profile {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut profile = Profile::new("drawn", Provenance::default());
    for policy in ["g-edf", "nps-f", "p-edf"] {
        for kind in OverheadKind::ALL {
            let factor = match kind {
                OverheadKind::Scheduling => planted,
                _ => 1.0,
            };
            let sizes: Vec<Size> = [4, 12, 20, 30]
                .into_iter()
                .map(|tasks| {
                    let mut set = || {
                        let mean = factor * 9_000.0 * (1.0 + 0.04 * normal(&mut rng));
                        let mut sample = || {
                            let far = rng.random_range(0..1_000) == 0;
                            let tail = -rng.random_range(1e-9..1.0_f64).ln() * 1_500.0;
                            (mean + tail + if far { 60_000.0 } else { 0.0 }) as u32
                        };
                        (0..300).map(|_| sample()).collect()
                    };
                    let sets = (0..sets).map(|_| set()).collect();
                    Size { tasks, sets }
                })
                .collect();
            profile.overheads.push(OverheadCurve {
                kind,
                policy: policy.to_owned(),
                code: Some(Code::Both),
                points: Curve::of(&sizes).upper(),
            });
        }
    }
    profile
}

#[test]
fn measurements_of_the_same_agree() {
    for sets in [3, 10] {
        let disagree = (0..20)
            .filter(|n| {
                let (a, b) = (profile(2 * n, sets, 1.0), profile(2 * n + 1, sets, 1.0));
                !compare(&a, &b).unwrap().agree
            })
            .count();
        assert!(disagree <= 2, "{disagree} of 20 with {sets} sets");
    }
}

#[test]
fn a_planted_difference_is_found_where_it_is() {
    for (sets, planted) in [(10, 1.2), (10, 0.8), (3, 2.0)] {
        let compared = compare(&profile(1, sets, 1.0), &profile(2, sets, planted)).unwrap();
        assert!(!compared.agree, "{sets} sets, {planted}");
        let found: Vec<&Quantity> = compared
            .quantities
            .iter()
            .filter(|q| q.verdict == Verdict::Differ)
            .collect();
        assert!(!found.is_empty() && found.iter().all(|q| q.curve.starts_with("scheduling,")));
    }
}

#[test]
fn equal_points_of_a_curve_are_one_figure() {
    let profile = profile(1, 10, 1.0);
    let compared = compare(&profile, &profile).unwrap();
    assert!(compared.agree && compared.apart == 0);
    let averages = compared
        .quantities
        .iter()
        .filter(|q| q.figure == Figure::Average && q.at == "4-30 tasks");
    assert!(averages.count() > 10, "constants are told once");
}

fn delays(average: i64, reach: i64, largest: (i64, i64)) -> Profile {
    let ns = Delay::from_nanos;
    let mut profile = Profile::new("drawn", Provenance::default());
    profile.cpmd.push(CpmdCurve {
        resumption: Resumption::Preemption,
        load: Load::Idle,
        write_ratio: 0.25,
        points: vec![CpmdPoint {
            wss: Bytes::from_kib(64),
            samples: 100,
            average: Some(ns(average)),
            deviation: None,
            maximum: Some(ns(largest.1)),
            percentiles: Vec::new(),
            average_interval: Some((ns(average - reach), ns(average + reach))),
            maximum_interval: Some((ns(largest.0), ns(largest.1))),
        }],
    });
    profile
}

#[test]
fn cache_delays_are_compared_as_well() {
    let verdicts = |b: &Profile| -> Vec<Verdict> {
        let compared = compare(&delays(5_000, 100, (9_000, 12_000)), b).unwrap();
        compared.quantities.iter().map(|q| q.verdict).collect()
    };
    use Verdict::{Agree, Apart, Differ};
    assert_eq!(
        verdicts(&delays(5_150, 100, (11_000, 30_000))),
        [Agree, Agree]
    );
    // Nothing is said beyond doubt by ranks.
    assert_eq!(
        verdicts(&delays(5_400, 100, (13_000, 30_000))),
        [Differ, Apart]
    );
    assert_eq!(
        verdicts(&delays(-4_000, 100, (100, 8_999))),
        [Differ, Agree]
    );
    assert_eq!(
        verdicts(&delays(-4_000, 100, (100, 8_998))),
        [Differ, Apart]
    );
}

#[test]
fn what_one_does_not_have_is_named_and_without_intervals_nothing_is_said() {
    let mut with_delays = delays(5_000, 100, (9_000, 12_000));
    with_delays.overheads = profile(1, 3, 1.0).overheads;
    let compared = compare(&with_delays, &profile(2, 3, 1.0)).unwrap();
    assert_eq!(
        compared.only_first,
        ["delay, preemption, idle, write ratio 0.25"]
    );
    assert!(compared.only_second.is_empty());
    let xeon = Profile::builtin("xeon-l7455").unwrap();
    let error = compare(&xeon, &xeon).unwrap_err().to_string();
    assert!(error.contains("both state an interval"), "{error}");
    let error = compare(&xeon, &with_delays).unwrap_err().to_string();
    assert!(error.contains("no figure in common"), "{error}");
}

#[test]
fn a_period_is_exact() {
    let of = |ms: u64| {
        let mut profile = delays(5_000, 100, (9_000, 12_000));
        profile.tick_period = Some(Duration::from_millis(ms));
        profile
    };
    assert!(compare(&of(4), &of(4)).unwrap().agree);
    let compared = compare(&of(4), &of(1)).unwrap();
    assert!(!compared.agree);
    assert_eq!(compared.quantities.last().unwrap().curve, "tick period");
}

#[test]
fn chance_allows_what_the_binomial_distribution_says() {
    // Of twenty at one of twenty each: more than four in 0.3 %, more than three in 1.6 %.
    assert_eq!(allowed(20), 4);
    assert_eq!(allowed(1), 1);
    assert!((24..=26).contains(&allowed(300)), "{}", allowed(300));
    assert!(allowed(100_000) > 5_000);
}
