//! Every policy that `check` judges, with its parameters, and every test by its name can be compared
//! in a study; what no test judges is refused.

mod support;

use analyze::{Guarantee, registry};
use model::watch::Silent;
use model::{Duration, Platform};
use policy::Spec;
use policy::catalog::{self, Tests};
use study::{Accounting, Candidate, Charged, Study, run};
use support::small;

fn platform() -> Platform {
    Platform::builtin("xeon-l7455:m=4").unwrap()
}

/// Words of every policy: those by which the suites try it, and those that people write.
fn words() -> Vec<&'static str> {
    let tried = catalog::all().iter().flat_map(|info| info.tried);
    let more = [
        "p-rm",
        "ca-edf",
        "c-edf:l2",
        "c-edf:l3",
        "nps-f:delta=4",
        "c-nps-f:l3",
        "c-nps-f:delta=4,l2",
        "g-fp:dm",
        "p-edf:quantum=1ms",
    ];
    tried.copied().chain(more).collect()
}

#[test]
fn every_policy_is_compared_as_check_judges_it() {
    let (mut judged, mut refused) = (0, 0);
    for word in words() {
        let spec: Spec = word.parse().unwrap();
        for guarantee in [Guarantee::Hard, Guarantee::Soft] {
            let tests = match guarantee {
                Guarantee::Hard => spec.info().hard,
                Guarantee::Soft => spec.info().soft,
            };
            for accounting in Accounting::ALL {
                let study = Study {
                    platform: platform(),
                    policies: vec![word.to_owned()],
                    guarantee,
                    ..small("caps = [1, 2.5, 3.5]\nsets = 4\ndelays = [\"0us\", \"200us\"]\n")
                }
                .charging(Charged {
                    accounting: Some(accounting),
                    ..Charged::default()
                });
                let results = run(&study, &Silent);
                if tests == Tests::None || spec.unjudged().is_some() {
                    let e = results.unwrap_err().to_string();
                    assert!(e.starts_with("policies: "), "{word}: {e}");
                    refused += 1;
                    continue;
                }
                let results = results.unwrap_or_else(|e| panic!("{word}, {guarantee}: {e}"));
                judged += 1;
                // By one delay policies by deadlines are packed as in 000 §5, by one heuristic.
                if accounting != Accounting::OneDelay {
                    let kept: Vec<_> = results.shards.into_iter().map(|s| s.accepted).collect();
                    assert_eq!(kept, by_check(&study, &spec), "{word}, {accounting}");
                }
            }
        }
    }
    assert!(
        judged > 60 && refused > 5,
        "{judged} judged, {refused} refused"
    );
}

fn by_check(study: &Study, spec: &Spec) -> Vec<Vec<Vec<u32>>> {
    let caps = study.caps.values().into_iter();
    let shard = |cap| {
        let generator = study.recipe(cap).prepare().unwrap();
        let mut accepted = vec![vec![0; 2]];
        for index in 0..study.sets {
            let number = Study::set_number(cap, index);
            let set = generator.draw(study.seed, number).unwrap();
            for (at, delay) in [0, 200].into_iter().map(Duration::from_micros).enumerate() {
                let costs = study.charged.costs(delay);
                let said =
                    analyze::policies::decide(&set, &study.platform, spec, study.guarantee, &costs);
                accepted[0][at] += u32::from(said.unwrap().unwrap());
            }
        }
        accepted
    };
    caps.map(shard).collect()
}

#[test]
fn every_test_is_compared_by_its_name() {
    for test in registry::ALL {
        for guarantee in [Guarantee::Hard, Guarantee::Soft] {
            let found = Candidate::find(
                &test.name.to_lowercase(),
                &platform(),
                guarantee,
                &Charged::default(),
            );
            match guarantee == Guarantee::Hard && test.guarantee == Guarantee::Soft {
                true => assert!(found.is_err(), "{}", test.name),
                false => assert_eq!(found.unwrap().judge().tests(), test.name),
            }
        }
    }
}

/// All of them in one study have names of their own.
#[test]
fn labels_tell_parameters_apart() {
    let labels: Vec<String> = [
        "nps-f",
        "nps-f:delta=4",
        "c-nps-f:l2",
        "c-nps-f:l3",
        "p-fp",
        "p-fp:dm",
    ]
    .iter()
    .map(|name| {
        let found =
            Candidate::find(name, &platform(), Guarantee::Hard, &Charged::default()).unwrap();
        found.label().to_owned()
    })
    .collect();
    assert_eq!(
        labels,
        [
            "NPS-F",
            "NPS-F-DELTA-4",
            "C-NPS-F-L2",
            "C-NPS-F-L3",
            "P-FP",
            "P-FP-DM"
        ]
    );
}

/// Scaled platforms have room for sets that one question of `check` is not worth its time for.
#[test]
fn sets_of_many_tasks_are_judged_and_too_many_are_told() {
    let many = |policy: &str, processors: u32, cap: u32, periods: &str| {
        let study = Study {
            platform: Platform::builtin(&format!("xeon-l7455:m={processors}")).unwrap(),
            policies: vec![policy.to_owned()],
            ..small(&format!(
                "utilizations = \"uniform:0.001-0.01\"\nperiods = \"{periods}\"\nsets = 1\ncaps = [{cap}]\n\
                 delays = [\"0us\"]\naccounting = \"paper\"\n"
            ))
        };
        run(&study, &Silent)
    };
    // About 1270 and 2360 tasks.
    for (policy, processors, cap) in [
        ("p-fp:dm", 16, 7),
        ("edf-wm", 16, 7),
        ("edf-fm", 24, 13),
        ("nps-f", 24, 13),
    ] {
        let results = many(policy, processors, cap, "choice:100ms").unwrap();
        assert_eq!(results.by_utilization(0)[0].points[0].1, 1.0, "{policy}");
    }
    let e = many("edf-wm", 64, 40, "short").unwrap_err().to_string();
    assert!(e.contains("beyond a limit of this test: 5000 tasks"), "{e}");
}
