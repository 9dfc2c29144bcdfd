//! Profiles in which every overhead has a cost.

use super::*;

/// Every policy with all seven overheads: what is drawn, lost and added to utilization is the same.
#[test]
fn with_a_profile_of_overheads_every_policy_pays_all_of_them() {
    let platform = Platform::builtin("xeon-l7455").unwrap();
    let profile = costly("xeon-l7455", 5);
    let set = with_wss(&[(20, 50); 30]);
    let costs = Costs {
        profile: Some(&profile),
        ..Costs::NONE
    };
    for guarantee in [Guarantee::Hard, Guarantee::Soft] {
        let policies = suggested(&platform, guarantee).unwrap();
        let judged = judge(&set, &platform, &policies, guarantee, &costs).unwrap();
        assert_eq!(judged.rule, Rule::AllOverheads);
        assert!(judged.is_schedulable());
        for v in judged.policies.iter().filter(|v| v.schedulable) {
            let name = &v.policy;
            assert!(v.cpmd_covered, "{name}");
            let lost = |kind: &str| {
                v.lost
                    .iter()
                    .find(|l| l.to == kind)
                    .map_or(0.0, |l| l.utilization)
            };
            for kind in ["release", "scheduling", "context-switch", "tick", "cpmd"] {
                assert!(lost(kind) > 0.0, "{name}: {kind}");
            }
            let all: f64 = v.lost.iter().map(|l| l.utilization).sum();
            assert!((v.inflated_utilization.unwrap() - v.utilization - all).abs() < 1e-9);
            let drawn: f64 = v
                .clusters
                .iter()
                .flat_map(|c| &c.tasks)
                .map(|t| t.utilization + t.overhead)
                .sum();
            // Overheads of servers are drawn within their reserves.
            assert!(
                (drawn - v.utilization - all).abs() < 1e-3,
                "{name}: {drawn} {all}"
            );
            assert_eq!(v.tasks.len(), set.len(), "{name}");
            if guarantee == Guarantee::Hard {
                assert!(v.tasks.iter().all(|t| t.tardiness.is_zero()), "{name}");
            }
        }
    }
    let free = judge(
        &set,
        &platform,
        &[spec("p-edf")],
        Guarantee::Hard,
        &Costs::NONE,
    )
    .unwrap();
    assert_eq!(free.rule, Rule::OneDelay);
}

#[test]
fn a_kind_that_the_profile_lacks_is_named_where_the_policy_has_it() {
    let platform = Platform::builtin("xeon-l7455").unwrap();
    let mut profile = costly("xeon-l7455", 5);
    profile
        .overheads
        .retain(|c| c.kind != OverheadKind::TimerTransfer);
    let costs = Costs {
        profile: Some(&profile),
        ..Costs::NONE
    };
    let policies = read_list("p-edf,edf-wm").unwrap();
    let judged = judge(
        &with_wss(&[(1, 50)]),
        &platform,
        &policies,
        Guarantee::Hard,
        &costs,
    )
    .unwrap();
    let note = "the profile has no timer transfer overhead: taken as nothing";
    for v in &judged.policies {
        assert_eq!(
            v.notes.iter().any(|n| n == note),
            v.policy == "edf-wm",
            "{:?}",
            v.notes
        );
    }
}

/// A tick of 100 us takes a tenth of a processor at 1000 Hz, and a fortieth at 250 Hz.
#[test]
fn the_profile_says_how_far_ticks_are_apart() {
    let mut profile = costly("xeon-l7455", 100);
    profile.overheads.retain(|c| c.kind == OverheadKind::Tick);
    let set = with_wss(&[(10, 20)]);
    let lost = |profile: &Profile| {
        let costs = Costs {
            profile: Some(profile),
            ..Costs::NONE
        };
        let platform = Platform::symmetric(1);
        let judged = judge(&set, &platform, &[spec("p-edf")], Guarantee::Hard, &costs).unwrap();
        let lost = &judged.policies[0].lost;
        lost.iter()
            .find(|l| l.to == "tick")
            .map_or(0.0, |l| l.utilization)
    };
    let usual = lost(&profile);
    profile.tick_period = Some(ms(4));
    let slower = lost(&profile);
    assert!(
        (0.05..0.08).contains(&usual) && (0.01..0.03).contains(&slower),
        "{usual} {slower}"
    );
}

/// The watch for standstills is charged within ticks, as often as it looks between two of them, and
/// the verdict says so.
#[test]
fn the_watch_is_charged_with_the_tick_and_named() {
    let set = with_wss(&[(10, 20)]);
    let judged = |profile: &Profile| {
        let costs = Costs {
            profile: Some(profile),
            ..Costs::NONE
        };
        let platform = Platform::symmetric(1);
        judge(&set, &platform, &[spec("p-edf")], Guarantee::Hard, &costs).unwrap()
    };
    let mut watched = costly("xeon-l7455", 100);
    watched.tick_period = Some(ms(4));
    let only_ticks = judged(&watched);
    assert!(only_ticks.policies[0].schedulable);
    watched.watch_period = Some(ms(2));
    let mut watch = watched.overheads[0].clone();
    watch.kind = OverheadKind::Watch;
    watched.overheads.push(watch);
    let with_watch = judged(&watched);
    // A tick of 100 us and two looks of 100 us each, as one tick.
    let mut as_tick = costly("xeon-l7455", 100);
    as_tick.tick_period = Some(ms(4));
    let heavier = costly("xeon-l7455", 300);
    let ticks = heavier.overheads.into_iter();
    let ticks = ticks.filter(|curve| curve.kind == OverheadKind::Tick);
    as_tick.overheads.retain(|c| c.kind != OverheadKind::Tick);
    as_tick.overheads.extend(ticks);
    assert_eq!(
        with_watch.policies[0].lost,
        judged(&as_tick).policies[0].lost
    );
    assert_ne!(with_watch.policies[0].lost, only_ticks.policies[0].lost);
    let note = "of each tick 200us are for the engine's own watch for standstills";
    let notes = &with_watch.policies[0].notes;
    assert!(notes.iter().any(|n| n == note), "{notes:?}");
    let notes = &only_ticks.policies[0].notes;
    assert!(!notes.iter().any(|n| n.contains("watch")), "{notes:?}");
}
