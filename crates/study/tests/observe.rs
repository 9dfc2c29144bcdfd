//! The statements of 002, chapter 6, against results that were made up: where each is true, false,
//! and not to be told.

use model::{Duration, Overhead, Overheads};
use study::observe::{Answer, Answers, Observed, Says, observe};
use study::{
    Caches, Candidate, Cap, Charged, Factor, Results, Shard, Study, chapter6, families, presets,
};

/// Enough for intervals that are narrower than any difference.
const MANY: u32 = 4_000_000;
/// Too few for any.
const FEW: u32 = 4;

/// As 002 found it: how high a curve lies in a scenario, by its policy as in figures and the value of
/// the axis in nanoseconds or bytes.
fn paper(scenario: &chapter6::Scenario, policy: &str, x: f64) -> f64 {
    let hard = scenario.guarantee == analyze::Guarantee::Hard;
    let utilizations = scenario.utilizations;
    let is_even = ["uniform-light", "uniform-heavy"].contains(&utilizations);
    let policy = policy.trim_end_matches(" idle").trim_end_matches(" load");
    // Along working sets the axis goes to 3 MiB, along delays to 2 ms.
    let (small, steep) = (1.0 - 0.1 * x / 1048576.0, 1.0 - 0.3 * x / 1048576.0);
    let delays = 1.0 - x / 4e6;
    match (policy, hard) {
        ("EDF-WM", _) => 0.95 * small,
        ("EDF-FM", _) => 0.9 * small,
        ("NPS-F-DELTA-1", _) => 0.7 * steep,
        ("NPS-F-DELTA-4", _) => 0.6 * steep,
        ("C-NPS-F-L3-DELTA-1", _) => 0.5 * steep,
        ("C-NPS-F-L3-DELTA-4", _) => 0.4 * steep,
        ("G-EDF", true) => 0.4 * delays,
        ("C-EDF-L2", true) => 0.6 * delays,
        ("C-EDF-L3", true) => 0.5 * delays,
        ("G-EDF-BF", true) => (if is_even { 0.42 } else { 0.7 }) * delays,
        ("C-EDF-L3-BF", true) => (if is_even { 0.52 } else { 0.75 }) * delays,
        ("C-EDF-L2-BF", true) => (if is_even { 0.62 } else { 0.8 }) * delays,
        ("G-EDF", false) => {
            (if utilizations == "uniform-light" {
                0.7
            } else {
                0.8
            }) * delays
        }
        ("C-EDF-L2", false) => {
            (if utilizations == "uniform-light" {
                0.88
            } else {
                0.84
            }) * delays
        }
        _ => unreachable!("{policy}"),
    }
}

/// The policies that are in both sections lie by the section.
fn as_in_the_paper(along_sizes: bool, scenario: &chapter6::Scenario, policy: &str, x: f64) -> f64 {
    let name = policy.trim_end_matches(" idle").trim_end_matches(" load");
    let hard = scenario.guarantee == analyze::Guarantee::Hard;
    let small = 1.0 - 0.1 * x / 1048576.0;
    let light = scenario.utilizations == "uniform-light";
    match (name, along_sizes, hard) {
        ("P-EDF", true, _) => 0.8 * small,
        ("C-EDF-L3", true, _) => 0.85 * small,
        ("P-EDF", false, true) => 0.9 * (1.0 - x / 4e6),
        ("P-EDF", false, false) => (if light { 0.9 } else { 0.7 }) * (1.0 - x / 4e6),
        ("C-EDF-L3", false, false) => (if light { 0.8 } else { 0.85 }) * (1.0 - x / 4e6),
        _ => paper(scenario, policy, x),
    }
}

/// Results of a study of a family in a world.
fn made_up(name: &str, sets: u32, height: &dyn Fn(f64) -> f64, overhead: u64) -> Observed {
    let mut study = presets::find(name).unwrap();
    study.overhead = Duration::from_micros(overhead);
    let scenario = chapter6::Scenario::of(&study).unwrap();
    let along_sizes = study.has_working_sets();
    let charged = Charged {
        caches: match along_sizes {
            true => Caches::WorkingSet,
            false => Caches::Delay,
        },
        ..study.charged.clone()
    };
    let label = |policy: &String| {
        let found = Candidate::find(policy, &study.platform, study.guarantee, &charged);
        found.unwrap().label().to_owned()
    };
    let policies: Vec<String> = study.policies.iter().map(label).collect();
    let axis = study.axis.swept();
    let row = |policy: &String| {
        let share = |at: usize| {
            let w = as_in_the_paper(along_sizes, &scenario, policy, axis.value(at));
            (height(w) * f64::from(sets)).round() as u32
        };
        (0..axis.len()).map(share).collect()
    };
    let results = Results {
        name: study.name.clone(),
        title: String::new(),
        charges: String::new(),
        notes: Vec::new(),
        provenance: study.provenance(),
        charged: charged.told(study.guarantee),
        sets,
        processors: 24,
        axis: axis.clone(),
        shards: vec![Shard {
            cap: Cap::from_thousandths(12_000),
            sets,
            accepted: policies.iter().map(row).collect(),
            parts: Vec::new(),
        }],
        policies,
    };
    Observed {
        study,
        results,
        directory: name.to_owned(),
    }
}

/// Every study of every family.
fn everything(sets: u32, height: &dyn Fn(f64) -> f64, overhead: u64) -> Vec<Observed> {
    let names = families::families().into_iter().flat_map(|f| f.studies);
    names
        .map(|name| made_up(&name, sets, height, overhead))
        .collect()
}

fn only_setting(observed: &[Observed]) -> Answers {
    let mut settings = observe(observed);
    assert_eq!(settings.len(), 1);
    settings.remove(0)
}

/// What is said of every statement but the one that no study decides.
fn said(answers: &Answers) -> Vec<(String, Answer)> {
    let told = answers
        .statements
        .iter()
        .filter(|one| one.statement != "6.4.3 (5)");
    told.map(|one| (one.statement.clone(), one.answer))
        .collect()
}

fn as_is(w: f64) -> f64 {
    w
}

fn upside_down(w: f64) -> f64 {
    1.0 - w
}

/// 002 has six observations in §6.3, six in §6.4, eight principles in §6.4.3.
#[test]
fn every_statement_is_reproduced_where_all_is_as_in_the_paper() {
    let answers = only_setting(&everything(MANY, &as_is, 20));
    let said = said(&answers);
    assert_eq!(said.len(), 6 + 6 + 7);
    for (statement, answer) in said {
        let one = answers
            .statements
            .iter()
            .find(|one| one.statement == statement)
            .unwrap();
        let claims = &one.factors[0].claims;
        let open: Vec<_> = claims.iter().filter(|c| c.says != Says::Yes).collect();
        assert_eq!(answer, Answer::Reproduced, "{statement}: {open:#?}");
        assert!(one.missing.is_empty());
    }
}

#[test]
fn no_statement_is_reproduced_where_all_is_upside_down() {
    for (statement, answer) in said(&only_setting(&everything(MANY, &upside_down, 20))) {
        assert_eq!(answer, Answer::NotReproduced, "{statement}");
    }
}

#[test]
fn nothing_is_told_by_a_few_sets() {
    let answers = only_setting(&everything(FEW, &as_is, 20));
    for (statement, answer) in said(&answers) {
        assert_eq!(answer, Answer::CannotTell, "{statement}");
    }
    let first = &answers.statements[0];
    assert!(
        first.missing.iter().any(|m| m.contains("more sets")),
        "{:?}",
        first.missing
    );
}

#[test]
fn nothing_is_told_of_all_scenarios_by_one() {
    let one = [
        "bastoni11-6.3-hard-uniform-light-short",
        "bastoni11-6.4-soft-uniform-light-short",
    ];
    let observed: Vec<Observed> = one
        .iter()
        .map(|name| made_up(name, MANY, &as_is, 20))
        .collect();
    let answers = only_setting(&observed);
    for (statement, answer) in said(&answers) {
        assert_eq!(answer, Answer::CannotTell, "{statement}");
    }
    let first = &answers.statements[0];
    assert!(
        first.missing.iter().any(|m| {
            m.contains("17 of 18 scenarios with P-EDF and G-EDF")
                && m.contains("bastoni11-6.3-hard-uniform-light-moderate")
        }),
        "{:?}",
        first.missing
    );
    assert!(
        first
            .missing
            .iter()
            .any(|m| m.contains("bastoni11-6.3bf-uniform-light-short")),
        "{:?}",
        first.missing
    );
}

/// What 002 explains by run queues and releases is not decided by cache delays alone.
#[test]
fn what_rests_on_overheads_is_not_told_without_them() {
    let answers = only_setting(&everything(MANY, &as_is, 0));
    assert!(!answers.kernel_overheads);
    for (statement, answer) in said(&answers) {
        let rests = ["6.3.5", "6.3.6", "6.4.4", "6.4.3 (4)"].contains(&statement.as_str());
        let expected = if rests {
            Answer::CannotTell
        } else {
            Answer::Reproduced
        };
        assert_eq!(answer, expected, "{statement}");
        let one = answers
            .statements
            .iter()
            .find(|one| one.statement == statement)
            .unwrap();
        let named = one
            .missing
            .iter()
            .any(|m| m.contains("no kernel overheads are charged"));
        assert_eq!(named, rests, "{statement}: {:?}", one.missing);
    }
}

#[test]
fn the_principle_of_stacks_says_why_no_study_decides_it() {
    let answers = only_setting(&everything(FEW, &as_is, 0));
    let one = answers
        .statements
        .iter()
        .find(|one| one.statement == "6.4.3 (5)")
        .unwrap();
    assert_eq!(one.answer, Answer::CannotTell);
    assert!(one.missing[0].contains("schedulability does not show it"));
}

/// From a factor of 2 on all is as in the paper, below upside down.
#[test]
fn a_statement_holds_from_a_factor_on() {
    let with_factor = |thousandths: u32| {
        let height: &dyn Fn(f64) -> f64 = match thousandths {
            0..2000 => &upside_down,
            _ => &as_is,
        };
        let all = everything(MANY, height, 20).into_iter();
        all.map(move |one| Observed {
            study: Study {
                overhead_factor: Factor::from_thousandths(thousandths),
                ..one.study
            },
            ..one
        })
        .collect::<Vec<_>>()
    };
    let observed: Vec<Observed> = [500, 1000, 2000, 4000]
        .into_iter()
        .flat_map(with_factor)
        .collect();
    let answers = only_setting(&observed);
    for one in answers
        .statements
        .iter()
        .filter(|one| one.statement != "6.4.3 (5)")
    {
        assert_eq!(
            (one.answer, one.factor, one.not_at),
            (Answer::FromFactor, Some(2.0), Some(1.0)),
            "{}",
            one.statement
        );
        assert_eq!(one.factors.len(), 4);
    }
}

/// Factors on other overheads are answered apart; what has none counts for both.
#[test]
fn factors_on_different_overheads_are_told_apart() {
    let with_factor = |(thousandths, factor_on): (u32, Overheads)| {
        let turned = thousandths != 1000 && factor_on == Overheads::ALL;
        let height: &dyn Fn(f64) -> f64 = if turned { &upside_down } else { &as_is };
        let all = everything(MANY, height, 20).into_iter();
        all.map(move |one| Observed {
            study: Study {
                overhead_factor: Factor::from_thousandths(thousandths),
                factor_on,
                ..one.study
            },
            ..one
        })
        .collect::<Vec<_>>()
    };
    let queues = Overheads::of(&[Overhead::Release, Overhead::Scheduling]);
    let given = [(500, Overheads::ALL), (1000, Overheads::ALL), (500, queues)];
    let observed: Vec<Observed> = given.into_iter().flat_map(with_factor).collect();
    let [all, some] = observe(&observed).try_into().expect("two settings");
    assert_eq!(all.factors_on, Overhead::ALL);
    assert_eq!(some.factors_on, [Overhead::Release, Overhead::Scheduling]);
    let of = |answers: &Answers| {
        let found = answers.statements.iter().find(|s| s.statement == "6.4.4");
        let one = found.expect("answered");
        (one.answer, one.factor, one.factors.len())
    };
    assert_eq!(of(&all), (Answer::FromFactor, Some(1.0), 2));
    assert_eq!(of(&some), (Answer::Reproduced, None, 2));
    let claim = &all
        .statements
        .iter()
        .find(|s| s.statement == "6.4.4")
        .unwrap()
        .factors[0]
        .claims[1];
    assert_eq!(claim.rests_on, [Overhead::Release, Overhead::Scheduling]);
}

/// One counter-example is enough against a statement about all, and is shown.
#[test]
fn a_counter_example_is_named() {
    let mut observed = everything(MANY, &as_is, 20);
    let name = "bastoni11-6.3-hard-bimodal-light-long";
    let place = observed
        .iter()
        .position(|one| one.directory == name)
        .unwrap();
    observed[place] = made_up(name, MANY, &upside_down, 20);
    let answers = only_setting(&observed);
    let one = answers
        .statements
        .iter()
        .find(|one| one.statement == "6.3.1")
        .unwrap();
    assert_eq!(one.answer, Answer::NotReproduced);
    let claim = &one.factors[0].claims[0];
    // The family by brute force has the same scenario, and fewer sets would not outvote it.
    assert_eq!((claim.says, claim.wanted), (Says::No, 18));
    let against: Vec<&str> = claim
        .evidence
        .iter()
        .filter(|e| e.says == Says::No)
        .map(|e| e.directory.as_str())
        .collect();
    assert_eq!(against, [name]);
    let evidence = claim.evidence.iter().find(|e| e.says == Says::No).unwrap();
    assert_eq!((evidence.below.len(), evidence.above.len()), (1, 0));
    assert_eq!(
        (
            evidence.below[0].from.as_str(),
            evidence.below[0].to.as_str()
        ),
        ("0ms", "2ms")
    );
}

/// Curves of one study are compared set by set; without the sets by wider intervals, and what is
/// missing says so.
#[test]
fn evidence_is_of_pairs_where_sets_are_known() {
    let name = "bastoni11-6.3-soft-uniform-light-long";
    let mut study = presets::find(name).unwrap();
    study.sets = 1;
    let results = study::run(&study, &model::watch::Silent).unwrap();
    let mut blind = results.clone();
    blind.shards.iter_mut().for_each(|s| s.parts.clear());
    let evidence = |results| {
        let observed = [Observed {
            study: study.clone(),
            results,
            directory: name.to_owned(),
        }];
        let answers = only_setting(&observed);
        let mut statements = answers.statements.into_iter();
        let one = statements.find(|one| one.statement == "6.3.6").unwrap();
        let claim = one.factors[0].claims[0].clone();
        assert_eq!(claim.evidence.len(), 1);
        // One of 18 scenarios, of which ten are needed: nine may say yes wrongly, ten no, in any of
        // five claims.
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(claim.yes_at, 1.0 - 0.05 / 9.0) && close(claim.no_at, 1.0 - 0.05 / 50.0));
        (claim.evidence[0].clone(), one.missing)
    };
    let ((pairs, _), (shares, missing)) = (evidence(results), evidence(blind));
    assert!(pairs.paired && !shares.paired);
    assert_eq!(pairs.difference, shares.difference);
    let wide = |(low, high): (f64, f64)| high - low;
    assert!(wide(pairs.interval) < wide(shares.interval));
    let told = missing.iter().any(|m| m.contains("which sets were kept"));
    assert!(told, "{missing:?}");
}
