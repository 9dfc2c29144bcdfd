//! What the report says, over profiles as they come and as they should not.

use model::{Bytes, CpmdCurve, CpmdPoint, Delay, Duration, Load, Profile, Provenance, Resumption};
use report::findings::{self, Verdict};
use report::schedulability::Curve;

fn point(
    kib: u64,
    average_ns: Option<i64>,
    interval: Option<(i64, i64)>,
    maximum_ns: Option<i64>,
) -> CpmdPoint {
    CpmdPoint {
        wss: Bytes::from_kib(kib),
        samples: 120,
        average: average_ns.map(Delay::from_nanos),
        deviation: average_ns.map(|a| Duration::from_nanos(a.unsigned_abs() / 3)),
        maximum: maximum_ns.map(Delay::from_nanos),
        percentiles: Vec::new(),
        average_interval: interval.map(|(a, b)| (Delay::from_nanos(a), Delay::from_nanos(b))),
        maximum_interval: None,
    }
}

fn curve(resumption: Resumption, load: Load, points: Vec<CpmdPoint>) -> CpmdCurve {
    CpmdCurve {
        resumption,
        load,
        write_ratio: 0.25,
        points,
    }
}

fn profile(curves: Vec<CpmdCurve>) -> Profile {
    let mut profile = Profile::new("this-machine", Provenance::default());
    profile.cpmd = curves;
    profile
}

fn said(profile: &Profile) -> String {
    findings::cpmd(profile, "this machine").join("\n")
}

#[test]
fn the_xeon_of_the_papers() {
    let xeon = Profile::builtin("xeon-l7455").unwrap();
    insta::assert_snapshot!(findings::cpmd(&xeon, "the Xeon L7455").join("\n"));
}

#[test]
fn a_machine_without_l2_migrations() {
    let interval = |a: i64| Some((a - a / 20, a + a / 20));
    let p = |a: i64| vec![point(256, Some(a), interval(a), Some(3 * a))];
    insta::assert_snapshot!(said(&profile(vec![
        curve(Resumption::Preemption, Load::Idle, p(2_100)),
        curve(Resumption::Preemption, Load::Load, p(61_000)),
        curve(Resumption::Migration(3), Load::Idle, p(9_400)),
        curve(Resumption::Migration(3), Load::Load, p(63_000)),
        curve(Resumption::Memory, Load::Idle, p(31_000)),
        curve(Resumption::Memory, Load::Load, p(140_000)),
    ])));
}

#[test]
fn a_single_processor() {
    insta::assert_snapshot!(said(&profile(vec![
        curve(
            Resumption::Preemption,
            Load::Idle,
            vec![point(64, Some(900), None, Some(2_000))]
        ),
        curve(
            Resumption::Preemption,
            Load::Load,
            vec![point(64, Some(9_000), None, Some(20_000))]
        ),
    ])));
}

#[test]
fn nothing_measured_under_load() {
    insta::assert_snapshot!(said(&profile(vec![
        curve(
            Resumption::Preemption,
            Load::Idle,
            vec![point(64, Some(900), None, Some(2_000))]
        ),
        curve(
            Resumption::Migration(2),
            Load::Idle,
            vec![point(64, Some(700), None, Some(2_000))]
        ),
    ])));
}

#[test]
fn negative_delays() {
    insta::assert_snapshot!(said(&profile(vec![
        curve(
            Resumption::Preemption,
            Load::Idle,
            vec![point(256, Some(-170), Some((-300, -20)), Some(40))]
        ),
        curve(
            Resumption::Preemption,
            Load::Load,
            vec![point(256, Some(-5_000), Some((-9_000, 10)), Some(70_000))]
        ),
        curve(
            Resumption::Memory,
            Load::Idle,
            vec![point(
                256,
                Some(90_000),
                Some((80_000, 99_000)),
                Some(120_000)
            )]
        ),
        curve(
            Resumption::Memory,
            Load::Load,
            vec![point(256, Some(-4_000), Some((-8_000, 0)), Some(90_000))]
        ),
    ])));
}

#[test]
fn only_the_largest_delays_are_known() {
    insta::assert_snapshot!(said(&profile(vec![
        curve(
            Resumption::Preemption,
            Load::Load,
            vec![point(256, None, None, Some(1_000_000))]
        ),
        curve(
            Resumption::Memory,
            Load::Load,
            vec![point(256, None, None, Some(1_100_000))]
        ),
    ])));
}

#[test]
fn nothing_known_at_all() {
    insta::assert_snapshot!(said(&profile(Vec::new())));
}

fn verdict(policy: &str, passes: Option<bool>, reason: &str, largest: Option<u64>) -> Verdict {
    Verdict {
        policy: policy.to_owned(),
        passes,
        refuted: false,
        test: "GFB".to_owned(),
        reason: reason.to_owned(),
        inflated: Some(3.1),
        largest_delay: largest.map(Duration::from_micros),
        growth: None,
        lost: Vec::new(),
        asked: String::new(),
    }
}

#[test]
fn verdicts_of_all_kinds() {
    let p = |passes| {
        verdict(
            "P-EDF",
            Some(passes),
            if passes {
                ""
            } else {
                "`video` fits on no processor"
            },
            passes.then_some(800),
        )
    };
    let g = verdict("G-EDF", Some(true), "", Some(1_250));
    let none = verdict("C-EDF-L2", None, "the machine has no shared L2", None);
    let promise = "no deadline is missed";
    let all = [
        findings::verdicts(&[p(true), g.clone()], 2.93, 4, promise),
        findings::verdicts(&[p(false), g, none.clone()], 2.93, 4, promise),
        findings::verdicts(&[p(false), none], 2.93, 1, promise),
        findings::verdicts(&[], 2.93, 4, promise),
    ];
    insta::assert_snapshot!(all.map(|s| s.join("\n")).join("\n--\n"));
}

fn weighted(policy: &str, points: &[(f64, f64)]) -> Curve {
    Curve {
        policy: policy.to_owned(),
        points: points.to_vec(),
        band: Vec::new(),
    }
}

#[test]
fn where_global_stops_being_better() {
    let partitioned = weighted("P-EDF", &[(0.0, 0.55), (2e6, 0.3)]);
    let crosses = weighted("G-EDF", &[(0.0, 1.0), (725_000.0, 0.55), (2e6, 0.1)]);
    let never = weighted("G-EDF", &[(0.0, 1.0), (2e6, 0.6)]);
    let below = weighted("G-EDF", &[(0.0, 0.5), (2e6, 0.1)]);
    let xeon = Profile::builtin("xeon-l7455").unwrap();
    let small = profile(vec![curve(
        Resumption::Preemption,
        Load::Idle,
        vec![point(64, Some(900), None, None)],
    )]);
    let said = |g: &Curve| {
        findings::global_or_partitioned(g, &partitioned, &[&xeon, &small], |name| {
            format!("`{name}`")
        })
        .join("\n")
    };
    insta::assert_snapshot!([said(&crosses), said(&never), said(&below)].join("\n--\n"));
}

#[test]
fn what_was_extrapolated_is_said() {
    assert_eq!(findings::extrapolated::<&str>(&[]), None);
    insta::assert_snapshot!(findings::extrapolated(&["video", "map"]).unwrap());
}

/// Averages under load of 10.4 % above a preemption are more than 10 %: the limit that is named is
/// rounded up.
#[test]
fn a_limit_is_never_rounded_below_what_was_measured() {
    let p = |a: i64| vec![point(256, Some(a), None, None)];
    let told = said(&profile(vec![
        curve(Resumption::Preemption, Load::Load, p(100_000)),
        curve(Resumption::Migration(3), Load::Load, p(110_410)),
    ]));
    assert!(
        told.contains("no migration costs more than 10.5 % above a preemption"),
        "{told}"
    );
}
