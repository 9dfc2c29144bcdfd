//! Colors: small sets against a search of its own over every placement and every division, and in
//! every plan that tasks which may run at the same time have no color in common.

use advise::{Advice, Asked, Options, Outcome, Pace, Way, advise};
use analyze::Guarantee;
use analyze::policies::{Costs, Growth, judge_assigned};
use model::assignment::Clustered;
use model::watch::Silent;
use model::{Assignment, Colors, Details, Duration, Platform, TaskSet, Timing, Wcets};
use testing::random::Random;

/// A task whose WCET depends on up to three numbers of colors, the longest so many tenths of its
/// period.
fn task(
    random: &mut Random,
    number: usize,
    is_shared_known: bool,
    tenths: (u64, u64),
) -> (Timing, Details) {
    let us = Duration::from_micros;
    let period = random.among(8_000, 20_000);
    let longest = random.among(period * tenths.0 / 10, period * tenths.1 / 10);
    let mut by_colors = Vec::new();
    let mut wcet = longest;
    for colors in 1..=random.among(2, 3) {
        by_colors.push((colors as u16, us(wcet)));
        wcet = random.among(wcet / 2, wcet);
    }
    let shared = is_shared_known.then(|| us(longest + random.below(period / 10)));
    let wcets = Wcets::new(shared, by_colors).expect("a table");
    let timing = Timing::implicit(wcets.without(), us(period));
    let details = Details {
        wcets: Some(wcets),
        ..Details::named(format!("t{number}"))
    };
    (timing, details)
}

fn set_of(random: &mut Random, tasks: usize, is_shared_known: bool, tenths: (u64, u64)) -> TaskSet {
    TaskSet::new(
        (0..tasks)
            .map(|number| task(random, number, is_shared_known, tenths))
            .collect(),
    )
    .expect("a set")
}

fn asked<'a>(set: &'a TaskSet, platform: &'a Platform) -> Asked<'a> {
    Asked {
        set,
        platform,
        guarantee: Guarantee::Hard,
        costs: Costs::NONE,
    }
}

fn advised(set: &TaskSet, platform: &Platform, colors: u16, policies: &str) -> Advice {
    let options = Options {
        policies: Some(policies.to_owned()),
        colors: Some(colors),
        ..Options::default()
    };
    let pace = Pace::new(&Silent, &|| false);
    advise(&asked(set, platform), &options, &pace).expect("an answer")
}

/// The largest growth of WCETs of P-EDF on two processors: every placement with every division of
/// the colors, and with none where all can share; then that of sharing alone.
fn brute_force(set: &TaskSet, platform: &Platform, supply: u16) -> [Option<u64>; 2] {
    let n = set.len();
    let (mut best, mut shared) = (None, None);
    let mut consider = |cluster_of: &[u32], colors: &[Option<Colors>]| {
        let Ok(colored) = set.with_colors(colors) else {
            return;
        };
        let assignment = Assignment::Clustered(Clustered {
            clusters: ["0", "1"].map(|c| c.parse().expect("a processor")).to_vec(),
            cluster_of: cluster_of.to_vec(),
        });
        let judged = judge_assigned(
            &colored,
            platform,
            &"p-edf".parse().expect("a policy"),
            &assignment,
            Guarantee::Hard,
            &Costs::NONE,
            &Silent,
        )
        .expect("a verdict");
        let verdict = &judged.policies[0];
        if verdict.schedulable {
            let growth = verdict.growth.map(|growth| growth.thousandths);
            best = best.max(growth);
            if colors.iter().all(Option::is_none) {
                shared = shared.max(growth);
            }
        }
    };
    for placement in 0..1_u32 << n {
        let cluster_of: Vec<u32> = (0..n).map(|task| placement >> task & 1).collect();
        for first in 0..=supply {
            for second in 0..=supply - first {
                let of = [first, second].map(|n| (n > 0).then(|| Colors::first(n)));
                // A processor without colors may have no tasks here: all of them have tables.
                if cluster_of.iter().any(|place| of[*place as usize].is_none()) {
                    continue;
                }
                let colors: Vec<_> = cluster_of.iter().map(|p| of[*p as usize].clone()).collect();
                consider(&cluster_of, &colors);
            }
        }
        let all_known = set.ids().all(|id| {
            let wcets = set.details(id).and_then(|d| d.wcets.as_ref());
            wcets.is_some_and(|wcets| wcets.shared().is_some())
        });
        if all_known {
            consider(&cluster_of, &vec![None; n]);
        }
    }
    [best, shared]
}

#[test]
fn small_sets_get_the_best_placement_and_division() {
    let platform = Platform::symmetric(2);
    let mut random = Random::new(24);
    let (mut held, mut failed, mut both) = (0, 0, 0);
    for number in 0..60 {
        let tasks = 2 + number % 3;
        let set = set_of(&mut random, tasks, number % 2 == 0, (3, 9));
        let supply = 2 + (number % 4) as u16;
        let advice = advised(&set, &platform, supply, "p-edf");
        let [expected, shared] = brute_force(&set, &platform, supply);
        let found = advice.recommendation.as_ref();
        let growth = found.and_then(|found| found.verdict.growth);
        assert_eq!(
            growth.map(|g: Growth| g.thousandths),
            expected,
            "{set:?} {supply}"
        );
        match expected {
            Some(_) => {
                held += 1;
                // Also where the plan gives colors it is said what sharing would bear.
                let ways = &advice.colors.as_ref().expect("colors were given").ways;
                let found = ways.iter().find(|found| found.way == Way::Shared);
                let growth = found.and_then(|found| found.growth);
                assert_eq!(growth.map(|g| g.thousandths), shared, "{set:?} {supply}");
                both += u32::from(shared.is_some() && ways[0].way != Way::Shared);
                assert!(advice.policies[0].searched.is_exact || way(&advice) == Way::Shared);
            }
            None => failed += 1,
        }
    }
    assert!(
        held > 20 && failed > 5 && both > 5,
        "{held} {failed} {both}"
    );
}

fn way(advice: &Advice) -> Way {
    advice.colors.as_ref().expect("colors were given").ways[0].way
}

/// The colors of tasks that may run at the same time are apart, there are no more than there are to
/// give, and WCETs are those of the tables.
fn is_isolated(set: &TaskSet, advice: &Advice, supply: u16) {
    for p in advice
        .policies
        .iter()
        .filter(|p| p.outcome == Outcome::Holds)
    {
        let colors = p.colors.as_ref().expect("colors or none for each task");
        let planned = p.planned_set(set).expect("the same set");
        let place = |task: usize| match p.assignment.as_ref() {
            Some(Assignment::Clustered(c)) if c.clusters.iter().all(|c| c.len() == 1) => {
                Some(c.cluster_of[task])
            }
            _ => None,
        };
        for (task, own) in colors.iter().enumerate() {
            let Some(own) = own else { continue };
            assert!(own.highest().is_some_and(|color| color.0 < supply));
            for (other, theirs) in colors.iter().enumerate().skip(task + 1) {
                let is_apart = place(task).is_none() || place(task) != place(other);
                if let Some(theirs) = theirs.as_ref().filter(|_| is_apart) {
                    assert!(
                        own.intersection(theirs).is_empty(),
                        "{} {colors:?}",
                        p.policy
                    );
                }
            }
            let id = model::TaskId(task as u32);
            let wcets = set.details(id).and_then(|d| d.wcets.as_ref());
            let expected = wcets.expect("a table").with(own.len() as u16);
            assert_eq!(Some(planned.timings()[task].wcet), expected);
        }
    }
}

#[test]
fn tasks_that_may_run_together_have_no_color_in_common() {
    let platform = Platform::symmetric(3);
    let mut random = Random::new(7);
    let mut ways = std::collections::BTreeSet::new();
    for number in 0..12 {
        let set = set_of(&mut random, 7, number % 2 == 0, (1, 6));
        let supply = 6 + (number % 7) as u16;
        let advice = advised(&set, &platform, supply, "p-edf,g-edf,p-rm,edf-wm,nps-f");
        is_isolated(&set, &advice, supply);
        let found = advice.colors.iter().flat_map(|colors| &colors.ways);
        ways.extend(found.map(|found| found.way));
    }
    assert_eq!(ways.len(), 3, "{ways:?}");
}

#[test]
fn colors_that_nobody_needs_and_none_at_all_are_refused() {
    let platform = Platform::symmetric(1);
    let us = Duration::from_micros;
    let plain = TaskSet::from_timings(vec![Timing::implicit(us(1), us(9))]).expect("a set");
    let colored = set_of(&mut Random::new(1), 2, false, (1, 6));
    for (set, colors, cause) in [
        (&plain, 4, "no WCET of the set"),
        (&colored, 0, "no colors"),
    ] {
        let options = Options {
            colors: Some(colors),
            ..Options::default()
        };
        let pace = Pace::new(&Silent, &|| false);
        let refused = advise(&asked(set, &platform), &options, &pace).expect_err("refused");
        assert!(refused.to_string().contains(cause), "{refused}");
    }
    // Without colors to give the WCETs that stand are taken, and that is said.
    let pace = Pace::new(&Silent, &|| false);
    let options = Options::default();
    let advice = advise(&asked(&colored, &platform), &options, &pace).expect("an answer");
    assert!(advice.colors.is_none());
    assert!(
        advice
            .not_tried
            .iter()
            .any(|what| what.starts_with("colors: "))
    );
}
