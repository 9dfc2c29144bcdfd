//! Plans for random sets: one for every set that a policy of `check` holds, each of which `check`
//! says yes to; the same answer each time; answers of searches that are ended early.

use advise::{Advice, Asked, Ended, Options, Outcome, Pace, What, advise};
use analyze::Guarantee;
use analyze::policies::{self, Costs};
use model::watch::Silent;
use model::{Details, Duration, Platform, Profile, TaskId, TaskSet, Timing};
use policy::Spec;
use std::sync::atomic::{AtomicU64, Ordering};
use testing::random::Random;
use testing::sets::{implicit_ms, set_ms, task_ms};

const NEVER: fn() -> bool = || false;

fn answer(asked: &Asked<'_>, options: &Options) -> Advice {
    advise(asked, options, &Pace::new(&Silent, &NEVER)).expect("an answer")
}

fn on<'a>(set: &'a TaskSet, platform: &'a Platform) -> Asked<'a> {
    Asked {
        set,
        platform,
        guarantee: Guarantee::Hard,
        costs: Costs::NONE,
    }
}

/// `count` tasks that ask for `load` processors or a little less, with periods of whole
/// milliseconds.
fn draw(random: &mut Random, count: usize, load: f64) -> TaskSet {
    const PERIODS: [u64; 8] = [5, 8, 10, 16, 20, 25, 40, 50];
    let weights: Vec<f64> = (0..count).map(|_| random.among(1, 100) as f64).collect();
    let all: f64 = weights.iter().sum();
    let task = |weight: &f64| {
        let period = PERIODS[random.below(8) as usize] * 1_000_000;
        let share = (weight / all * load).min(0.98);
        let wcet = ((period as f64 * share) as u64).max(10_000);
        let deadline = match random.one_in(2) {
            true => random.among(wcet.max(period / 2), period),
            false => period,
        };
        Timing {
            wcet: Duration::from_nanos(wcet),
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
        }
    };
    TaskSet::from_timings(weights.iter().map(task).collect()).expect("a set")
}

/// `check` says yes to every plan of an answer.
fn verify(asked: &Asked<'_>, advice: &Advice) {
    for found in advice
        .policies
        .iter()
        .filter(|p| p.outcome == Outcome::Holds)
    {
        let set = match &found.priorities {
            Some(priorities) => asked.set.with_priorities(priorities).expect("one a task"),
            None => asked.set.clone(),
        };
        let spec: Spec = found.policy.parse().expect("a policy");
        let judgment = policies::judge_assigned(
            &set,
            asked.platform,
            &spec,
            found.assignment.as_ref().expect("a plan has one"),
            asked.guarantee,
            &asked.costs,
            &Silent,
        );
        let judgment = judgment.expect("judged");
        assert!(
            judgment.is_schedulable(),
            "{}: {:?}",
            found.policy,
            judgment
        );
        assert_eq!(
            judgment.policies[0].growth, found.growth,
            "{}",
            found.policy
        );
    }
}

#[test]
fn every_set_that_a_policy_holds_gets_a_plan_and_some_that_none_holds_do() {
    let platform = Platform::symmetric(2);
    let mut random = Random::new(1);
    let (mut held, mut more, mut none) = (0, 0, 0);
    let names = policies::suggested(&platform, Guarantee::Hard).expect("policies");
    for round in 0..200 {
        let load = 1.7 + 0.3 * (f64::from(round) / 200.0);
        let set = draw(&mut random, 10, load);
        let asked = on(&set, &platform);
        let decide = |spec: &Spec| {
            policies::decide(&set, &platform, spec, Guarantee::Hard, &Costs::NONE).expect("decided")
        };
        let by_check = names.iter().any(|spec| decide(spec) == Some(true));
        let advice = answer(&asked, &Options::default());
        verify(&asked, &advice);
        match (by_check, advice.recommendation.is_some()) {
            (true, true) => held += 1,
            (true, false) => panic!("{round}: `check` holds it: {:?}", set.timings()),
            (false, true) => more += 1,
            (false, false) => none += 1,
        }
    }
    println!("{held} held by check, {more} more by the search, {none} by neither");
    assert!(held > 50 && more > 0, "{held}, {more}, {none}");
}

/// Every policy of the catalog may be the only one that is asked for: servers, quanta and all.
#[test]
fn every_policy_alone_gets_a_plan_that_can_be_stretched() {
    let set = set_ms(&[(2, 30), (1, 10), (3, 40)]);
    let details = (0..3).map(|at| Details {
        wss: Some(model::Bytes::from_kib(64)),
        ..Details::named(format!("T{at}"))
    });
    let set = set.with_details(details.collect()).expect("three tasks");
    let platform = Platform::symmetric(2);
    for guarantee in [Guarantee::Hard, Guarantee::Soft] {
        let asked = Asked {
            guarantee,
            ..on(&set, &platform)
        };
        for policy in policy::catalog::all() {
            let spec: Spec = policy.name.parse().expect("a policy");
            let Ok(Some(true)) = policies::decide(&set, &platform, &spec, guarantee, &Costs::NONE)
            else {
                continue;
            };
            let options = Options {
                policies: Some(policy.name.to_owned()),
                ..Options::default()
            };
            let advice = answer(&asked, &options);
            verify(&asked, &advice);
            let found = advice.recommendation.expect("a plan");
            assert_eq!(found.stretch.tasks.len(), 3, "{}", policy.name);
        }
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    let platform = Platform::symmetric(2);
    let mut random = Random::new(7);
    for _ in 0..5 {
        let set = draw(&mut random, 8, 1.9);
        let asked = on(&set, &platform);
        let both = [(), ()].map(|()| answer(&asked, &Options::default()));
        assert_eq!(both[0], both[1]);
        let json = both.map(|a| serde_json::to_string(&a).expect("JSON"));
        assert_eq!(json[0], json[1]);
    }
}

#[test]
fn a_search_that_is_ended_early_says_so_and_its_plan_holds() {
    let platform = Platform::symmetric(2);
    let set = draw(&mut Random::new(3), 10, 1.8);
    let asked = on(&set, &platform);
    let whole = answer(&asked, &Options::default());
    assert_eq!(whole.ended, Ended::Complete);
    for looks in [0, 1, 3, 10, 30, 100, 1_000] {
        let asks = AtomicU64::new(0);
        let over = || asks.fetch_add(1, Ordering::Relaxed) >= looks;
        let advice = advise(&asked, &Options::default(), &Pace::new(&Silent, &over));
        let advice = advice.expect("an answer");
        if asks.load(Ordering::Relaxed) > looks {
            assert_eq!(advice.ended, Ended::Budget, "{looks}");
            assert!(!advice.not_tried.is_empty(), "{looks}");
        }
        assert_eq!(advice.policies.len(), whole.policies.len());
        let enough = looks >= 30;
        assert!(advice.recommendation.is_some() || !enough, "{looks}");
        if let Some(found) = advice.recommendation {
            assert!(found.verdict.schedulable, "{looks}");
        }
    }
}

/// What is left of a set when a change is made.
fn changed(set: &TaskSet, platform: &Platform, what: &What) -> (TaskSet, Platform) {
    let mut timings = set.timings().to_vec();
    let at = |name: &str| {
        set.ids()
            .position(|id| set.name(id) == name)
            .expect("a task")
    };
    let mut platform = platform.clone();
    match what {
        What::Wcets { thousandths } => {
            for t in &mut timings {
                t.wcet = Duration::from_nanos((t.wcet.nanos() * thousandths).div_ceil(1_000));
            }
        }
        What::Wcet { task, to, .. } => timings[at(task)].wcet = *to,
        What::Period { task, to, .. } => {
            let t = &mut timings[at(task)];
            if t.deadline == t.period {
                t.deadline = *to;
            }
            t.period = *to;
        }
        What::Processors { processors } => platform = Platform::symmetric(*processors as u32),
    }
    (TaskSet::from_timings(timings).expect("a set"), platform)
}

#[test]
fn every_change_that_is_proposed_makes_the_set_hold() {
    let platform = Platform::symmetric(2);
    let mut random = Random::new(11);
    let mut seen = 0;
    for _ in 0..6 {
        let set = loop {
            let set = draw(&mut random, 6, 2.1);
            if set.utilization_f64() > 2.01 {
                break set;
            }
        };
        let advice = answer(&on(&set, &platform), &Options::default());
        assert!(advice.recommendation.is_none());
        assert!(advice.answer.starts_with("no policy can hold this set"));
        for change in &advice.changes {
            let (set, platform) = changed(&set, &platform, &change.what);
            let options = Options {
                policies: Some(change.policy.clone()),
                ..Options::default()
            };
            let again = answer(&on(&set, &platform), &options);
            assert!(again.recommendation.is_some(), "{}", change.words);
            seen += 1;
        }
        let sorts = |kind: fn(&What) -> bool| advice.changes.iter().any(|c| kind(&c.what));
        assert!(sorts(|w| matches!(w, What::Wcets { .. })));
        assert!(sorts(|w| matches!(w, What::Processors { .. })));
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn costs_are_charged_as_check_charges_them_and_are_stretched() {
    let platform = Platform::find("xeon-l7455").expect("built in").scaled(2);
    let platform = platform.expect("two processors");
    let profile = Profile::find("xeon-l7455").expect("built in");
    let plain = draw(&mut Random::new(5), 8, 1.5);
    let details = plain.ids().map(|id| Details {
        wss: Some("64KiB".parse().expect("a size")),
        ..Details::named(plain.name(id))
    });
    let set = plain
        .clone()
        .with_details(details.collect())
        .expect("names");
    let asked = Asked {
        costs: Costs {
            profile: Some(&profile),
            ..Costs::NONE
        },
        ..on(&set, &platform)
    };
    let advice = answer(&asked, &Options::default());
    verify(&asked, &advice);
    let stretch = advice.recommendation.expect("a plan").stretch;
    let (delays, costs) = (
        stretch.delays.expect("charged"),
        stretch.costs.expect("charged"),
    );
    assert!(delays.percent >= 100 && costs.percent >= 100);
    assert_eq!(stretch.tasks.len(), set.len());
    assert!(stretch.tasks.is_sorted_by_key(|t| t.thousandths));
}

#[test]
fn tasks_stay_where_they_are_kept_and_priorities_of_the_set_are_heeded() {
    let platform = Platform::symmetric(2);
    let timings = [
        task_ms(2, 5, 5),
        task_ms(2, 5, 4),
        task_ms(3, 10, 10),
        task_ms(4, 20, 20),
    ];
    let details = (0..4).map(|i| Details {
        cpus: (i == 0).then(|| "1".parse().expect("processors")),
        priority: Some(10 - i),
        ..Details::named(format!("t{i}"))
    });
    let set = TaskSet::new(timings.into_iter().zip(details).collect()).expect("a set");
    let asked = on(&set, &platform);
    let advice = answer(&asked, &Options::default());
    verify(&asked, &advice);
    assert!(
        advice
            .policies
            .iter()
            .any(|p| p.policy == "p-fp" && p.priorities.is_none())
    );
    let found = advice.recommendation.expect("a plan").verdict;
    let home = found
        .clusters
        .iter()
        .find(|c| c.tasks.iter().any(|t| t.task == TaskId(0)))
        .expect("placed");
    assert_eq!(home.processors.to_string(), "1");
}

#[test]
fn soft_sets_and_single_processors_get_plans() {
    let platform = Platform::symmetric(2);
    // Two thirds each: no partition, and G-EDF bounds tardiness.
    let set = set_ms(&[(2, 3), (2, 3), (2, 3)]);
    let asked = Asked {
        guarantee: Guarantee::Soft,
        ..on(&set, &platform)
    };
    let advice = answer(&asked, &Options::default());
    verify(&asked, &advice);
    assert!(advice.recommendation.is_some());
    let by = |name: &str| advice.policies.iter().find(|p| p.policy == name);
    assert_eq!(by("p-edf").expect("asked").outcome, Outcome::Fails);
    assert!(by("p-edf").expect("asked").searched.is_exact);
    assert_eq!(by("g-edf").expect("asked").outcome, Outcome::Holds);

    let one = Platform::symmetric(1);
    let set = TaskSet::from_timings(vec![implicit_ms(1, 2), implicit_ms(2, 5)]).expect("a set");
    let asked = on(&set, &one);
    let advice = answer(&asked, &Options::default());
    verify(&asked, &advice);
    assert_eq!(advice.recommendation.expect("a plan").policy, "p-edf");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let platform = Platform::symmetric(2);
    let set = set_ms(&[(1, 2)]);
    for (names, cause) in [
        ("pedf", "unknown policy `pedf`; did you mean `p-edf`?"),
        (
            "p-edf:quantum=1ms",
            "policy `p-edf:quantum=1ms`: no test takes `quantum` into account",
        ),
        ("", "no policy is named"),
    ] {
        let options = Options {
            policies: Some(names.to_owned()),
            ..Options::default()
        };
        let asked = on(&set, &platform);
        let e = advise(&asked, &options, &Pace::new(&Silent, &NEVER)).expect_err("refused");
        assert!(e.to_string().starts_with(cause), "{e}");
    }
}
