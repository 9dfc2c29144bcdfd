//! What is judged can be run: an answer is written, read again for each policy, and simulated with
//! the same costs.
//!
//! Random sets with a profile of cache delays, or of all overheads, grown to where the verdict
//! turns. Hard: no deadline is missed. Soft: nobody is later than the bound.
//! `WARMSET_SIMULATED_SETS` says how many sets a policy.

use analyze::Guarantee;
use analyze::policies::{Costs, Judgment, PolicyVerdict, read_list};
use model::assignmentfile::AssignmentFile;
use model::profile::{Intervals, OverheadCurve, OverheadKind, OverheadPoint};
use model::watch::Silent;
use model::{
    Assignment, Bytes, Details, Duration, Load, Platform, Profile, Statistic, TaskSet, Timing,
};
use policy::{Setup, Spec};
use simulate::{Scenario, Summary};
use testing::platforms::pairs;
use testing::random::Random;
use testing::times::ms;

/// The delays of the built-in machine, and this much for every other overhead; zero: the profile
/// has none.
fn profile(micros: u64) -> Profile {
    let mut profile = Profile::builtin("xeon-l7455").unwrap();
    let cost = Some(Duration::from_micros(micros));
    let curve = |kind: &OverheadKind| OverheadCurve {
        kind: *kind,
        policy: String::new(),
        code: None,
        points: [1, 100]
            .map(|tasks| OverheadPoint {
                tasks,
                samples: 1,
                average: cost,
                maximum: cost,
                untrimmed: None,
                intervals: Intervals::default(),
            })
            .to_vec(),
    };
    use OverheadKind::*;
    let kinds = [
        Release,
        Scheduling,
        ContextSwitch,
        IpiLatency,
        TimerTransfer,
        Tick,
    ];
    profile.overheads = match micros {
        0 => Vec::new(),
        _ => kinds.iter().map(curve).collect(),
    };
    profile
}

/// Tasks with periods in whole milliseconds, which use less than half of the processors.
fn set(random: &mut Random, m: u32) -> TaskSet {
    let count = random.among(u64::from(m) + 1, 3 * u64::from(m) + 1);
    let task = |index: u64| {
        let period = random.among(4, 20) * 1_000;
        let share = random.among(5, 500 * u64::from(m) / count);
        let timing = Timing::implicit(
            Duration::from_micros((period * share / 1_000).max(20)),
            Duration::from_micros(period),
        );
        let details = Details {
            wss: Some(Bytes::from_kib(random.among(4, 48))),
            ..Details::named(format!("t{index}"))
        };
        (timing, details)
    };
    TaskSet::new((0..count).map(task).collect()).unwrap()
}

fn scaled(set: &TaskSet, thousandths: u64) -> TaskSet {
    let scale = |id: model::TaskId| {
        let timing = set.timings()[id.index()];
        let wcet = (timing.wcet.nanos() * thousandths).div_ceil(1_000);
        let timing = Timing {
            wcet: Duration::from_nanos(wcet),
            ..timing
        };
        (timing, set.details(id).cloned().unwrap())
    };
    TaskSet::new(set.ids().map(scale).collect()).unwrap()
}

fn judge(
    set: &TaskSet,
    platform: &Platform,
    policy: &str,
    guarantee: Guarantee,
    profile: &Profile,
) -> Judgment {
    let costs = Costs {
        profile: Some(profile),
        load: Load::Load,
        statistic: Some(Statistic::Maximum),
        ..Costs::NONE
    };
    let policies = read_list(policy).unwrap();
    analyze::policies::judge(set, platform, &policies, guarantee, &costs, &Silent).unwrap()
}

fn simulated(
    set: &TaskSet,
    platform: &Platform,
    policy: &str,
    profile: &Profile,
    assignment: Option<&Assignment>,
) -> Summary {
    let spec: Spec = policy.parse().unwrap();
    let setup = Setup {
        set,
        platform,
        assignment,
        quantum: ms(1),
    };
    let plan = spec.plan(&setup).unwrap();
    let name = spec.info().name;
    let costs =
        simulate::Costs::from_profile(profile, name, set, platform, Load::Load, Statistic::Maximum)
            .unwrap();
    let scenario = Scenario {
        horizon: ms(200),
        ..Scenario::default()
    };
    simulate::simulate(plan, set, platform, &scenario, Some(&costs), &Silent, ())
        .unwrap()
        .0
}

fn is_kept(guarantee: Guarantee, summary: &Summary, verdict: &PolicyVerdict) -> bool {
    match guarantee {
        Guarantee::Hard => summary.misses() == 0,
        Guarantee::Soft => {
            let both = summary.tasks.iter().zip(&verdict.tasks);
            verdict.tasks.len() == summary.tasks.len()
                && both
                    .into_iter()
                    .all(|(seen, t)| seen.tardiness_max <= t.tardiness)
        }
    }
}

/// Sets that were judged and simulated.
#[derive(Default)]
struct Outcome {
    accepted: u64,
    /// Those that break the guarantee where nothing is handed over.
    broken_alone: u64,
}

fn play(policy: &str, guarantee: Guarantee, micros: u64, sets: u64) -> Outcome {
    let mut random = Random::new(0x2545_f491_4f6c_dd1d ^ policy.len() as u64 ^ micros);
    let (profile, mut outcome) = (profile(micros), Outcome::default());
    for number in 0..sets {
        let platform = pairs(
            [1, 2, 4][random.among(0, 2) as usize],
            4,
            Some(Bytes::new(1 << 23)),
        );
        let small = set(&mut random, platform.usable().len() as u32);
        let growth = judge(&small, &platform, policy, guarantee, &profile).policies[0].growth;
        let Some(growth) = growth else { continue };
        let set = scaled(&small, growth.thousandths);
        let judgment = judge(&set, &platform, policy, guarantee, &profile);
        let verdict = &judgment.policies[0];
        assert!(
            verdict.schedulable,
            "{policy}, set {number}: {}",
            verdict.reason
        );
        outcome.accepted += 1;
        let answer = serde_json::to_string(&judgment).unwrap();
        let file = AssignmentFile::from_json(&answer, "answer.json").unwrap();
        let assignment = file.assignment(policy, &set, Spec::for_assignment).unwrap();
        let summary = simulated(&set, &platform, policy, &profile, Some(&assignment));
        assert!(
            is_kept(guarantee, &summary, verdict),
            "{policy}, set {number}, {} misses: {platform:?}\n{:?}\n{assignment:?}\n{:?}",
            summary.misses(),
            set.timings(),
            verdict.tasks
        );
        if let Assignment::Quanta(_) = assignment {
            let alone = simulated(&set, &platform, policy, &profile, None);
            outcome.broken_alone += u64::from(!is_kept(guarantee, &alone, verdict));
        }
    }
    assert!(
        outcome.accepted > sets / 2,
        "{policy}: hardly any set is accepted"
    );
    outcome
}

fn sets() -> u64 {
    let given = std::env::var("WARMSET_SIMULATED_SETS").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// Without the reservations PD² misses deadlines of sets that were accepted: the verdict is for
/// what is handed over.
#[test]
fn quanta_that_are_handed_over_keep_the_guarantee() {
    for micros in [0, 15] {
        let outcome = play("pd2", Guarantee::Hard, micros, sets());
        assert!(
            outcome.broken_alone > sets() / 10,
            "{micros} us: {} of {}",
            outcome.broken_alone,
            outcome.accepted
        );
        play("ca-edf", Guarantee::Soft, micros, sets());
    }
}

/// With all overheads every assignment that is handed over runs as it was judged.
#[test]
fn every_assignment_that_is_handed_over_keeps_the_guarantee() {
    for policy in [
        "p-edf",
        "c-edf:size=1",
        "g-edf",
        "p-rm",
        "p-fp:dm",
        "edf-wm",
        "edf-wm:slice=2ms",
        "nps-f",
        "nps-f:delta=2",
    ] {
        play(policy, Guarantee::Hard, 15, sets() / 3);
    }
    for policy in ["edf-fm", "edf-fm:fill=spread"] {
        play(policy, Guarantee::Soft, 15, sets() / 3);
    }
}
