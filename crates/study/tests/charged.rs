//! What studies charge: accounting and profile in results, files and directories, and the same
//! answers as `check`.

mod support;

use analyze::Guarantee;
use model::watch::Silent;
use model::{Duration, Platform, Profile, Statistic};
use study::{Accounting, Charged, Study, file, load, presets, run, run_in};
use support::{delays, small};

/// A profile in which a decision takes this long for any number of tasks, and nothing else costs.
fn costly(scheduling: Duration) -> Profile {
    let points = format!(
        "points = [{{ tasks = 1, samples = 9, average = \"{scheduling}\", maximum = \"{scheduling}\" }},\n\
         {{ tasks = 1000, samples = 9, average = \"{scheduling}\", maximum = \"{scheduling}\" }}]"
    );
    let text = format!(
        "version = 1\nplatform = \"made-up\"\n[[overheads]]\nkind = \"scheduling\"\n{points}\n"
    );
    model::profilefile::from_toml(&text).unwrap()
}

fn charged(accounting: Option<Accounting>, profile: Option<Profile>) -> Charged {
    Charged {
        profile,
        accounting,
        ..Charged::default()
    }
}

const SMALL: &str = "platform = \"symmetric:m=2\"\npolicies = [\"p-edf\", \"g-edf\", \"p-fp:dm\"]\nsource = \"mine\"\n\
                     caps = { from = 1, to = 2, step = 0.5 }\nsets = 10\nguarantee = \"hard\"\n\
                     delays = { from = \"0us\", to = \"200us\", step = \"100us\" }\n";

/// As `check` does: with a profile the project's own accounting, else one delay.
#[test]
fn every_result_tells_accounting_and_profile() {
    let some = || Some(costly(Duration::from_micros(50)));
    for (accounting, profile, told) in [
        (None, None, "accounting one-delay, no profile"),
        (
            Some(Accounting::Paper),
            None,
            "accounting paper, no profile",
        ),
        (
            None,
            some(),
            "accounting warmset, profile made-up (maximum)",
        ),
        (
            Some(Accounting::OneDelay),
            some(),
            "accounting one-delay, profile made-up (maximum)",
        ),
    ] {
        let has_profile = profile.is_some();
        let study = small(SMALL).charging(charged(accounting, profile));
        let results = run(&study, &Silent).unwrap();
        assert_eq!(results.charged.to_string(), told);
        let accounting = results.charged.accounting.name();
        let name = if has_profile { "made-up" } else { "" };
        let json: serde_json::Value = serde_json::from_str(&results.to_json().unwrap()).unwrap();
        assert_eq!(json["accounting"], accounting);
        assert_eq!(json["profile"].as_str().unwrap_or_default(), name);
        for csv in [results.to_csv(), results.to_weighted_csv()] {
            let mut lines = csv.lines();
            assert!(lines.next().unwrap().ends_with(",accounting,profile"));
            assert!(
                lines.all(|line| line.ends_with(&format!(",{accounting},{name}"))),
                "{csv}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(run_in(dir.path(), &study, &Silent).unwrap(), results);
        assert_eq!(load(dir.path()).unwrap(), results);
    }
}

/// What is charged are the profile's overheads, by each accounting as `check` does.
#[test]
fn a_profile_costs_what_its_overheads_cost() {
    let accepted = |accounting, profile| {
        let results = run(
            &small(SMALL).charging(charged(accounting, profile)),
            &Silent,
        )
        .unwrap();
        let counts = results
            .shards
            .iter()
            .flat_map(|s| s.accepted.iter().flatten());
        (counts.sum::<u32>(), results.notes)
    };
    let profile = |us| Some(costly(Duration::from_micros(us)));
    for accounting in [Accounting::Paper, Accounting::Warmset] {
        let (free, _) = accepted(Some(accounting), profile(0));
        let (costly, notes) = accepted(Some(accounting), profile(2_000));
        assert!(costly < free, "{accounting}: {costly} {free}");
        let note = "it has none of these kinds: release, context-switch, ipi-latency, timer-transfer, tick";
        assert!(notes[0].contains(note), "{notes:?}");
    }
    let one_delay = Some(Accounting::OneDelay);
    let (free, _) = accepted(one_delay, None);
    let (costly, notes) = accepted(one_delay, profile(2_000));
    assert_eq!(costly, free);
    assert!(
        notes[0].contains("No overhead of the profile `made-up` is charged"),
        "{notes:?}"
    );
}

/// Policies are judged as `check` judges them, by each accounting, with and without a profile.
#[test]
fn a_study_says_what_check_says() {
    for (name, accounting) in ["p-fp:dm", "pd2"]
        .into_iter()
        .flat_map(|name| Accounting::ALL.map(|accounting| (name, accounting)))
    {
        let spec: policy::Spec = name.parse().unwrap();
        for profile in [None, Some(costly(Duration::from_micros(300)))] {
            let study = Study {
                policies: vec![spec.to_string()],
                ..small(SMALL).charging(charged(Some(accounting), profile))
            };
            let results = run(&study, &Silent).unwrap();
            for shard in &results.shards {
                let generator = study.recipe(shard.cap).prepare().unwrap();
                let mut kept = vec![0; results.axis.len()];
                for index in 0..study.sets {
                    let set = generator
                        .draw(study.seed, Study::set_number(shard.cap, index))
                        .unwrap();
                    for (delay, kept) in delays(&results).into_iter().zip(&mut kept) {
                        let costs = study.charged.costs(delay);
                        let only = std::slice::from_ref(&spec);
                        let platform = &study.platform;
                        let judged = analyze::policies::judge(
                            &set,
                            platform,
                            only,
                            Guarantee::Hard,
                            &costs,
                            &Silent,
                        );
                        *kept += u32::from(judged.unwrap().is_schedulable());
                    }
                }
                assert_eq!(shard.accepted, [kept], "{name} {accounting}");
            }
        }
    }
}

#[test]
fn a_directory_is_of_one_accounting_and_profile() {
    let dir = tempfile::tempdir().unwrap();
    let profile = || Some(costly(Duration::from_micros(50)));
    let study = small(SMALL).charging(charged(None, profile()));
    run_in(dir.path(), &study, &Silent).unwrap();
    for other in [
        charged(None, None),
        charged(Some(Accounting::Paper), profile()),
        charged(None, Some(costly(Duration::from_micros(51)))),
        Charged {
            statistic: Some(Statistic::Average),
            ..charged(None, profile())
        },
    ] {
        let e = run_in(dir.path(), &small(SMALL).charging(other.clone()), &Silent).unwrap_err();
        assert!(e.to_string().contains("another study"), "{other:?}: {e}");
    }
}

/// A study that is named after a figure without overheads says so no more when it has some.
#[test]
fn a_title_tells_of_overheads() {
    let preset = presets::find("bastoni11-fig6.4a").unwrap();
    let with = preset
        .clone()
        .charging(charged(None, Some(costly(Duration::from_micros(5)))));
    assert_eq!(
        with.title,
        "Soft, uniform light, moderate periods, kernel overheads of made-up"
    );
    let paper = preset.charging(charged(
        Some(Accounting::Paper),
        Some(Profile::builtin("xeon-l7455").unwrap()),
    ));
    // It has cache delays alone.
    assert!(
        paper.title.ends_with("no kernel overheads"),
        "{}",
        paper.title
    );
    assert_eq!(
        paper.provenance().command,
        "warmset study run bastoni11-fig6.4a --sets 1000 --seed 1 --profile xeon-l7455 --accounting paper"
    );
}

#[test]
fn a_file_names_profile_statistic_and_accounting() {
    let find = |_: &str| Ok(costly(Duration::from_micros(5)));
    let text = "based_on = \"ospert10-fig5\"\nprofile = \"made-up\"\nstatistic = \"maximum\"\naccounting = \"paper\"\n";
    let study = file::from_toml(text, Platform::find, find).unwrap();
    let wanted = Charged {
        profile: Some(costly(Duration::from_micros(5))),
        statistic: Some(Statistic::Maximum),
        accounting: Some(Accounting::Paper),
        ..Charged::default()
    };
    assert_eq!(study.charged, wanted);
    assert_eq!(
        file::from_toml(&study.to_toml(), Platform::find, find).unwrap(),
        study
    );
    for (text, message) in [
        ("profile = \"no\"", "line 2, `profile`"),
        ("statistic = \"median\"", "known are `average`, `maximum`"),
        (
            "accounting = \"two\"",
            "write `one-delay`, `paper` or `warmset`",
        ),
    ] {
        let text = format!("based_on = \"ospert10-fig5\"\n{text}\n");
        let e = file::from_toml(&text, Platform::find, Profile::find)
            .unwrap_err()
            .to_string();
        assert!(e.contains(message), "{e}");
    }
}

/// What is charged is told in one sentence, and a study without a title of its own is named by its
/// scenario and by the kernel's overheads that are charged.
#[test]
fn a_sentence_tells_what_is_charged_and_how() {
    let results = |text: &str| {
        let profile = |name: &str| match name {
            "made-up" => Ok(costly(Duration::from_micros(5))),
            other => Profile::find(other),
        };
        let text = format!(
            "policies = [\"p-edf\"]\nplatform = \"xeon-l7455:m=2\"\nutilizations = \"uniform-light\"\n\
             periods = \"short\"\nsets = 1\n{text}"
        );
        let study = file::from_toml(&text, Platform::find, profile).unwrap();
        run(&study, &Silent).unwrap()
    };
    let caps = "caps = [1]\n";
    for (text, told) in [
        (
            format!("{caps}delays = [\"0us\", \"1us\"]"),
            "D once a job; no kernel overheads",
        ),
        (
            format!("{caps}delays = [\"0us\"]\ncharge = 2\noverhead = \"20us\""),
            "D twice a job; 20us a job besides; no kernel overheads",
        ),
        (
            format!("{caps}delays = [\"0us\"]\nprofile = \"made-up\"\naccounting = \"paper\""),
            "D where policies preempt and migrate (accounting paper); kernel overheads of made-up (average)",
        ),
        (
            format!("{caps}overhead_factors = [0, 1]\nprofile = \"made-up\"\ndelay = \"500us\""),
            "D = 500us where policies preempt and migrate (accounting warmset); kernel overheads of made-up (average) times f",
        ),
        (
            format!("{caps}working_sets = [\"0KiB\"]\nprofile = \"xeon-l7455\"\nload = \"idle\"\nguarantee = \"hard\""),
            "cache delays of xeon-l7455 (maximum, idle) for ξ where policies preempt and migrate (accounting warmset); no kernel overheads",
        ),
        (
            "caps = [0.5]\nprocessors = [2]\nprofile = \"xeon-l7455\"\nworking_set = \"64KiB\"\noverhead_factor = 2".to_owned(),
            "cache delays of xeon-l7455 (average, load) for ξ = 64KiB times 2 where policies preempt and migrate (accounting warmset); no kernel overheads",
        ),
        (
            "caps = [0.5]\nprocessors = [2]".to_owned(),
            "no cache delays; no kernel overheads",
        ),
    ] {
        let results = results(&text);
        assert_eq!(results.charges, format!("Charged: {told}."));
        assert!(results.to_json().unwrap().contains(&results.charges));
        let guarantee = if text.contains("hard") { "Hard" } else { "Soft" };
        let kernel = match told.contains("made-up") {
            true => "kernel overheads of made-up",
            false => "no kernel overheads",
        };
        assert_eq!(
            results.title,
            format!("{guarantee}, uniform light, short periods, {kernel}")
        );
    }
    // What is given is not scaled, and the note says so.
    let fixed = results(&format!(
        "{caps}overhead_factors = [0, 1]\nprofile = \"made-up\"\ndelay = \"500us\""
    ));
    let scaled = "every overhead of the profile `made-up`, but not D, times f";
    assert!(
        fixed.notes.iter().any(|note| note.contains(scaled)),
        "{:?}",
        fixed.notes
    );
}
