//! What `judge` accepts with a profile of cache delays keeps its guarantee in a simulation that
//! charges the same profile.
//!
//! Random sets of mixed working sets, 4 KiB to 4 MiB, grown until they are only just accepted,
//! under every policy, hard and soft, each with four patterns of releases. A hard verdict is broken
//! by a miss, and any verdict by a response beyond its bound.
//!
//! `WARMSET_SIMULATED_SETS` says how many accepted sets a policy, `WARMSET_SIMULATED_POLICY` which
//! policies (names with commas), `WARMSET_SIMULATED_SEED` where to begin.

mod releases;
mod sets;

use analyze::Guarantee;
use analyze::policies::{Costs, PolicyVerdict, Rule, judge, read_list};
use model::TaskSet;
use model::watch::Silent;
use policy::{Setup, Spec};
use releases::{Pattern, Run};
use sets::{Case, QUANTUM};
use std::collections::BTreeMap;

const HARD: &str = "p-edf,c-edf:size=2,g-edf,p-rm,p-fp:dm,p-fp,g-fp:dm,g-fp,edf-wm,nps-f,nps-f:delta=2,c-nps-f:size=2,pd2";
const SOFT: &str = "p-edf,c-edf:size=2,g-edf,g-fifo,p-rm,p-fp:dm,p-fp,g-fp:dm,g-fp,edf-fm,edf-wm,\
                    nps-f,c-nps-f:size=2,pd2,ca-edf";

/// The verdict of one policy; `None`: the machine has no clusters for it.
fn ask(case: &Case, set: &TaskSet, policy: &Spec, guarantee: Guarantee) -> Option<PolicyVerdict> {
    let costs = costs(case);
    let judged = judge(
        set,
        &case.platform,
        std::slice::from_ref(policy),
        guarantee,
        &costs,
        &Silent,
    )
    .ok()?;
    assert_eq!(judged.rule, Rule::ByPiece);
    judged.policies.into_iter().next()
}

fn costs(case: &Case) -> Costs<'_> {
    Costs {
        profile: Some(&case.profile),
        load: case.load,
        ..Costs::NONE
    }
}

/// What came of the sets of one policy.
#[derive(Default)]
struct Outcome {
    asked: u64,
    accepted: u64,
    /// Sets in which some job resumed, and so was charged a delay.
    delayed: u64,
    /// Sets with misses within the bounds of tardiness.
    tardy: u64,
    decided: BTreeMap<&'static str, u64>,
    broken: Vec<String>,
}

/// Simulates a set that was accepted, with every pattern.
fn play(
    case: &Case,
    set: &TaskSet,
    verdict: &PolicyVerdict,
    policy: &Spec,
    guarantee: Guarantee,
    outcome: &mut Outcome,
) {
    assert!(verdict.schedulable, "{policy}: {}", verdict.reason);
    assert!(verdict.cpmd_covered && verdict.margins_covered, "{policy}");
    *outcome.decided.entry(verdict.decided_by).or_default() += 1;
    let mut name = policy.to_string();
    let in_quanta = name == "pd2" || name == "ca-edf";
    if name == "ca-edf" {
        name += ":cache=8MiB";
    }
    let statistic = costs(case).statistic_for(guarantee);
    let charged = case.costs(name.split(':').next().unwrap(), set, statistic);
    let plan = || {
        let setup = Setup {
            set,
            platform: &case.platform,
            assignment: verdict.assignment.as_ref(),
            quantum: QUANTUM,
        };
        name.parse::<Spec>().unwrap().plan(&setup).unwrap()
    };
    let run = Run {
        case,
        set,
        plan: &plan,
        costs: &charged,
        in_quanta,
    };
    let (mut is_delayed, mut is_tardy) = (false, false);
    for pattern in Pattern::ALL {
        let (summary, releases) = run.simulate(pattern);
        for bound in &verdict.tasks {
            let seen = &summary.tasks[bound.task.index()];
            is_delayed |= seen.preemptions > 0;
            is_tardy |= seen.misses > 0;
            let misses = bound.tardiness.is_zero() && seen.misses > 0;
            if misses || seen.response_max > bound.response {
                outcome.broken.push(format!(
                    "{policy} {guarantee:?}, seed {}, {pattern:?}: {} responds in {} with a bound of {} ({}), {} misses\n{:?}\n{:?}\n{:?}\n{charged:?}\n{:?}\n{releases:?}",
                    case.seed,
                    bound.name,
                    seen.response_max,
                    bound.response,
                    verdict.decided_by,
                    seen.misses,
                    set.timings(),
                    case.wss,
                    case.platform.usable(),
                    verdict.assignment,
                ));
                return;
            }
        }
        if guarantee == Guarantee::Hard {
            let misses: u64 = summary.tasks.iter().map(|t| t.misses).sum();
            assert_eq!(
                misses, 0,
                "{policy}, seed {}: a task without a bound misses",
                case.seed
            );
        }
    }
    outcome.delayed += u64::from(is_delayed);
    outcome.tardy += u64::from(is_tardy);
}

fn campaign(policy: &Spec, guarantee: Guarantee, sets: u64, first: u64) -> Outcome {
    let name = policy.to_string();
    let in_quanta = name == "pd2" || name == "ca-edf";
    let implicit = in_quanta || name == "edf-fm" || name.contains("nps-f");
    let mut outcome = Outcome::default();
    for number in 0..4 * sets {
        if outcome.accepted == sets || outcome.broken.len() > 3 {
            break;
        }
        outcome.asked += 1;
        let case = Case::random(first + number, in_quanta, implicit);
        let Some(verdict) = ask(&case, &case.set(1_000), policy, guarantee) else {
            continue;
        };
        let Some(edge) = verdict.growth else { continue };
        let set = case.set(edge.thousandths.min(case.most()));
        let Some(verdict) = ask(&case, &set, policy, guarantee) else {
            continue;
        };
        // Below the edge packing may fail.
        if !verdict.schedulable && edge.thousandths > case.most() {
            continue;
        }
        outcome.accepted += 1;
        play(&case, &set, &verdict, policy, guarantee, &mut outcome);
    }
    outcome
}

fn hold(policies: &str, guarantee: Guarantee) {
    let given = |name: &str| std::env::var(name).ok();
    let number = |name: &str, usual: u64| given(name).and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (sets, first) = (
        number("WARMSET_SIMULATED_SETS", 200),
        number("WARMSET_SIMULATED_SEED", 1),
    );
    let only = given("WARMSET_SIMULATED_POLICY");
    let mut broken = Vec::new();
    for policy in read_list(policies).unwrap() {
        let name = policy.to_string();
        if only
            .as_ref()
            .is_some_and(|o| !o.split(',').any(|o| o == name))
        {
            continue;
        }
        // Response times of global fixed priorities take long to find at the brink.
        let sets = if name.starts_with("g-fp") {
            sets.div_ceil(20)
        } else {
            sets
        };
        let outcome = campaign(&policy, guarantee, sets, first);
        println!(
            "{name} {guarantee:?}: {} of {} sets accepted, {} with preempted jobs, {} tardy within bounds, broken {}; {:?}",
            outcome.accepted,
            outcome.asked,
            outcome.delayed,
            outcome.tardy,
            outcome.broken.len(),
            outcome.decided,
        );
        assert!(
            outcome.accepted > sets / 4 || !outcome.broken.is_empty(),
            "{name}: hardly any set is accepted"
        );
        broken.extend(outcome.broken);
    }
    assert!(
        broken.is_empty(),
        "{} broken:\n{}",
        broken.len(),
        broken.join("\n\n")
    );
}

/// Every policy that can be judged is in these lists, and no other.
#[test]
fn every_policy_of_the_catalog_is_simulated() {
    use policy::catalog::{self, Tests};
    for info in catalog::all() {
        for (tests, list) in [(info.hard, HARD), (info.soft, SOFT)] {
            let is_there = list
                .split(',')
                .any(|name| name.split(':').next() == Some(info.name));
            let is_judged = tests != Tests::None;
            assert_eq!(is_there, is_judged, "{}: {list}", info.name);
        }
    }
}

#[test]
fn what_is_accepted_hard_with_cache_delays_misses_no_deadline() {
    hold(HARD, Guarantee::Hard);
}

#[test]
fn what_is_accepted_soft_with_cache_delays_keeps_its_bounds() {
    hold(SOFT, Guarantee::Soft);
}
