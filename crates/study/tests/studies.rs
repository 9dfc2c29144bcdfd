//! Studies as a whole: the metric, determinism, resuming, and the shortcuts against asking every
//! question.

mod support;

use analyze::Guarantee;
use analyze::clustered::Scratch;
use model::watch::Silent;
use model::{Platform, Profile, Ratio, Timing};
use std::path::Path;
use study::{
    Asked, Candidate, Cap, Charged, Quantity, Results, Shard, Study, Swept, file, load, presets,
    run, run_in,
};
use support::{delays, small};
use testing::watching::StopAfterSteps;

const FOUR: &str = "platform = \"symmetric:m=4\"\npolicies = [\"p-edf\", \"g-edf\", \"c-edf:size=2\"]\n\
                    caps = { from = 1, to = 4, step = 0.5 }\nsets = 40\n";

fn counts(results: &Results) -> Vec<&Vec<Vec<u32>>> {
    results.shards.iter().map(|s| &s.accepted).collect()
}

/// 000 §5: W(D) = Σ U S(U, D) / Σ U, by hand.
#[test]
fn weighted_schedulability_weighs_by_utilization() {
    let results = Results {
        notes: Vec::new(),
        name: "by hand".into(),
        title: String::new(),
        charges: String::new(),
        provenance: Default::default(),
        charged: Charged::default().told(Guarantee::Soft),
        sets: 4,
        processors: 3,
        policies: vec!["A".into(), "B".into()],
        axis: Swept {
            drawn_to: None,
            quantity: Quantity::Delay,
            scaled_from: None,
            factor_on: None,
            points: vec![0, 100_000, 200_000],
        },
        shards: [
            (1_000, [[4, 4, 0], [4, 3, 3]]),
            (2_000, [[4, 2, 0], [2, 2, 2]]),
            (3_000, [[4, 1, 0], [1, 1, 0]]),
        ]
        .into_iter()
        .map(|(cap, accepted)| Shard {
            cap: Cap::from_thousandths(cap),
            sets: 4,
            accepted: accepted.iter().map(|row| row.to_vec()).collect(),
            parts: Vec::new(),
        })
        .collect(),
    };
    let w = |policy, delay| results.weighted_at(policy, delay);
    // All sets accepted: one. None: zero. Else (1·1 + 2·0.5 + 3·0.25) / 6 = 11/24.
    assert_eq!(
        (w(0, 0), w(0, 1), w(0, 2)),
        (Ratio::ONE, Ratio::new(11, 24).unwrap(), Ratio::ZERO)
    );
    assert_eq!(w(1, 0), Ratio::new(11, 24).unwrap());
    // A is as good as B without delay up to 100 us, exactly there.
    let until = results.keeps_up(0, 1).map(|at| results.axis.text(at));
    assert_eq!(until.as_deref(), Some("100us"));
    // B never reaches A.
    assert_eq!(results.keeps_up(1, 0), None);
    assert_eq!(
        results.by_utilization(1)[0].points,
        [(1.0, 1.0), (2.0, 0.5), (3.0, 0.25)]
    );
    assert_eq!(results.weighted()[0].points[1], (100_000.0, 11.0 / 24.0));
    insta::assert_snapshot!(results.to_json().unwrap().trim_end());
    insta::assert_snapshot!(results.to_weighted_csv());
    insta::assert_snapshot!(results.to_csv());
}

/// Wilson (1927): the limits p of (x/n − p)² = z² p (1 − p) / n.
#[test]
fn confidence_intervals_are_the_roots_of_the_score_equation() {
    for (accepted, sets) in [(0, 10), (1, 10), (8, 10), (10, 10), (500, 1000)] {
        let (low, high) = study::wilson(accepted, sets);
        let (share, n) = (f64::from(accepted) / f64::from(sets), f64::from(sets));
        assert!((0.0..=share).contains(&low) && (share..=1.0).contains(&high) && low < high);
        for limit in [low, high]
            .into_iter()
            .filter(|p| (1e-9..1.0 - 1e-9).contains(p))
        {
            let score = (share - limit).powi(2) * n / (limit * (1.0 - limit));
            assert!(
                (score.sqrt() - 1.959_964).abs() < 1e-4,
                "{accepted}/{sets}: {limit}"
            );
        }
    }
    // Newcombe (1998), table I: 81 of 263.
    let (low, high) = study::wilson(81, 263);
    assert!(
        (low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5,
        "{low} {high}"
    );
    assert_eq!(study::wilson(0, 0), (0.0, 1.0));
}

/// Of one cap W(D) is its share, and so is the interval; of several it is narrower than the mean of
/// theirs.
#[test]
fn the_interval_of_weighted_schedulability_comes_from_those_of_the_caps() {
    let of = |caps: &[(u32, u32)]| {
        let mut results = run(&small(FOUR), &Silent).unwrap();
        let shard = |(cap, accepted): &(u32, u32)| Shard {
            cap: Cap::from_thousandths(*cap),
            sets: 40,
            accepted: vec![vec![*accepted]],
            parts: Vec::new(),
        };
        results.shards = caps.iter().map(shard).collect();
        results.weighted_interval(0, 0)
    };
    let close =
        |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12;
    assert!(close(of(&[(2_000, 30)]), study::wilson(30, 40)));
    let (low, high) = study::wilson(20, 40);
    let root = 2f64.sqrt();
    let narrow = (0.5 - (0.5 - low) / root, 0.5 + (high - 0.5) / root);
    assert!(close(of(&[(2_000, 20), (2_000, 20)]), narrow));
    // A cap of thrice the weight moves the ends by thrice as much.
    let (few, many) = (
        of(&[(1_000, 20), (3_000, 0)]),
        of(&[(1_000, 0), (3_000, 20)]),
    );
    assert!(many.1 - many.0 > few.1 - few.0);
    assert!(of(&[(1_000, 40), (2_000, 40)]).1 <= 1.0 && of(&[(1_000, 0)]).0 == 0.0);
}

#[test]
fn counts_do_not_depend_on_the_number_of_threads() {
    let study = small(FOUR);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| run(&study, &Silent)).unwrap()
    };
    assert_eq!(on(1), on(2));
    assert_eq!(on(1), on(7));
}

/// The shortcuts (overload, bisection) change no count: every set asked at every delay, drawn by
/// its number.
#[test]
fn shortcuts_change_nothing() {
    for guarantee in ["soft", "hard"] {
        let study = small(&format!(
            "{FOUR}guarantee = \"{guarantee}\"\nutilizations = \"bimodal-medium\"\n"
        ));
        let results = run(&study, &Silent).unwrap();
        let strict = if guarantee == "soft" {
            Guarantee::Soft
        } else {
            Guarantee::Hard
        };
        let policies: Vec<Candidate> = study
            .policies
            .iter()
            .map(|name| {
                Candidate::find(name, &study.platform, strict, &Charged::default()).unwrap()
            })
            .collect();
        let mut scratch = Scratch::new();
        for shard in &results.shards {
            let generator = study.recipe(shard.cap).prepare().unwrap();
            let mut accepted = vec![vec![0; results.axis.len()]; policies.len()];
            for index in 0..study.sets {
                let set = generator
                    .draw(study.seed, Study::set_number(shard.cap, index))
                    .unwrap();
                for (d, delay) in delays(&results).into_iter().enumerate() {
                    let inflated: Vec<Timing> =
                        set.timings().iter().map(|t| t.inflated(delay)).collect();
                    for (p, policy) in policies.iter().enumerate() {
                        let set = Asked {
                            drawn: set.timings(),
                            delay,
                            wss: None,
                            inflated: &inflated,
                        };
                        accepted[p][d] +=
                            u32::from(policy.judge().accepts(&set, &mut scratch).unwrap());
                    }
                }
            }
            assert_eq!(shard.accepted, accepted, "{guarantee}, cap {}", shard.cap);
        }
    }
}

fn files_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                std::fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_study_that_was_stopped_goes_on_and_ends_the_same() {
    let study = small(FOUR);
    let (whole, stopped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let uninterrupted = run_in(whole.path(), &study, &Silent).unwrap();
    assert_eq!(
        counts(&uninterrupted),
        counts(&run(&study, &Silent).unwrap())
    );
    let e = run_in(stopped.path(), &study, &StopAfterSteps::new(120)).unwrap_err();
    assert!(e.to_string().starts_with("stopped after "), "{e}");
    let lines = |dir: &Path| std::fs::read_to_string(dir.join("counts.jsonl")).unwrap();
    let kept = lines(stopped.path()).lines().count();
    // 120 sets in parts of ten, and at most one part more that each thread was at.
    assert!(kept >= 12, "{kept} parts are kept");
    assert!(kept < lines(whole.path()).lines().count());
    let e = load(stopped.path()).unwrap_err().to_string();
    assert!(e.contains("not complete"), "{e}");
    assert_eq!(
        run_in(stopped.path(), &study, &Silent).unwrap(),
        uninterrupted
    );
    assert_eq!(files_of(stopped.path()), files_of(whole.path()));
    assert_eq!(load(whole.path()).unwrap(), uninterrupted);
}

#[test]
fn a_directory_keeps_one_study() {
    let dir = tempfile::tempdir().unwrap();
    let study = small(FOUR);
    run_in(dir.path(), &study, &Silent).unwrap();
    let other = Study {
        seed: 2,
        ..study.clone()
    };
    let e = run_in(dir.path(), &other, &Silent).unwrap_err().to_string();
    assert!(e.contains("another study"), "{e}");
    std::fs::write(
        dir.path().join("counts.jsonl"),
        "{\"part\":{\"cap\":1000,\"first\":0,\"sets\":10},\"accepted\":[]}\n",
    )
    .unwrap();
    let e = run_in(dir.path(), &study, &Silent).unwrap_err().to_string();
    assert!(
        e.contains("counts.jsonl") && e.contains("line 1") && e.contains("remove the file"),
        "{e}"
    );
}

#[test]
fn a_cap_has_the_same_sets_in_every_grid() {
    let wide = run(&small(FOUR), &Silent).unwrap();
    let narrow = run(
        &small(&FOUR.replace("from = 1, to = 4, step = 0.5", "from = 2.5")),
        &Silent,
    )
    .unwrap();
    let at = wide
        .shards
        .iter()
        .find(|s| s.cap == narrow.shards[0].cap)
        .unwrap();
    assert_eq!(at, &narrow.shards[0]);
}

#[test]
fn overheads_and_charges_inflate_as_said() {
    let base = small(FOUR);
    let charged = run(&small(&format!("{FOUR}charge = 2\n")), &Silent).unwrap();
    let doubled = run(
        &small(&format!(
            "{FOUR}delays = {{ from = \"0us\", to = \"4ms\", step = \"200us\" }}\n"
        )),
        &Silent,
    )
    .unwrap();
    assert_eq!(counts(&charged), counts(&doubled));
    let shifted = run(&small(&format!("{FOUR}overhead = \"100us\"\n")), &Silent).unwrap();
    let plain = run(&base, &Silent).unwrap();
    for (s, p) in shifted.shards.iter().zip(&plain.shards) {
        for (s, p) in s.accepted.iter().zip(&p.accepted) {
            assert_eq!(s[..20], p[1..]);
        }
    }
}

#[test]
fn studies_read_and_write() {
    for (name, _, _) in presets::list() {
        let preset = presets::find(&name).unwrap();
        assert_eq!(
            file::from_toml(&preset.to_toml(), Platform::find, Profile::find).unwrap(),
            preset
        );
    }
    for (text, message) in [
        ("", "the key `policies` is missing; add `policies = …`"),
        (
            "polices = []",
            "line 1: unknown key `polices`; did you mean `policies`?",
        ),
        (
            "based_on = \"ospert10-fig6\"",
            "line 1, `based_on`: there is no study",
        ),
        ("based_on = \"ospert10-fig5\"\nsets = -1", "line 2, `sets`"),
        ("based_on = \"ospert10-fig5\"\nsets = 1.5", "line 2, `sets`"),
        (
            "based_on = \"ospert10-fig5\"\nguarantee = \"firm\"",
            "write `hard` or `soft`",
        ),
        (
            "based_on = \"ospert10-fig5\"\ncaps = { from = 1, to = 2 }",
            "both its end and its step",
        ),
        (
            "based_on = \"ospert10-fig5\"\ncaps = { from = 2, to = 1, step = 1 }",
            "ends before it starts",
        ),
        (
            "based_on = \"ospert10-fig5\"\ncaps = { from = 0.0001 }",
            "three decimals",
        ),
        (
            "based_on = \"ospert10-fig5\"\ndelays = { from = 5 }",
            "has no unit",
        ),
        (
            "based_on = \"ospert10-fig5\"\ndelays = [\"1us\", \"1us\"]",
            "line 2, `delays`: 1us does not lie above 1us",
        ),
        (
            "based_on = \"ospert10-fig5\"\nworking_sets = [\"64KiB\"]\nprocessors = [4]",
            "line 3, `processors`: a study sweeps one quantity, and `working_sets` is given too",
        ),
        (
            "based_on = \"ospert10-fig5\"\nworking_set = \"64KiB\"\ndelay = \"1us\"",
            "what caches cost is given twice",
        ),
        (
            "based_on = \"ospert10-fig5\"\nprocessors = 4",
            "expected a range or a list",
        ),
        (
            "policies = [\"p-edf\"]\nutilizations = \"uniform-light\"\nperiods = \"short\"\ncaps = [1]",
            "add one of `delays = …`, `working_sets = …`, `overhead_factors = …`, `processors = …`",
        ),
        (
            "based_on = \"ospert10-fig5\"\nutilizations = \"uniform-havy\"",
            "did you mean `uniform-heavy`?",
        ),
        (
            "based_on = \"ospert10-fig5\"\nplatform = \"xeon\"",
            "line 2, `platform`",
        ),
    ] {
        let e = file::from_toml(text, Platform::find, Profile::find)
            .unwrap_err()
            .to_string();
        assert!(e.contains(message), "{text}: {e}");
    }
}

#[test]
fn studies_that_cannot_be_run_are_refused() {
    for (text, message) in [
        ("sets = 0", "sets: 0 sets for each cap"),
        (
            "caps = { from = 0.5 }",
            "caps: a single task of `uniform-heavy` may exceed the cap 0.5",
        ),
        ("caps = { from = 25 }", "above the 24 processors"),
        ("policies = []", "no policy is named"),
        ("policies = [\"p-edf\", \"p-edf\"]", "is named twice"),
        (
            "policies = [\"q-edf\"]",
            "policies: unknown policy `q-edf`; did you mean",
        ),
        (
            "policies = [\"GFB\"]\ndeadlines = \"arbitrary\"\nsets = 1",
            "policies: `GFB`: needs",
        ),
    ] {
        let e = run(&small(text), &Silent).unwrap_err().to_string();
        assert!(e.contains(message), "{text}: {e}");
    }
}

/// 000's delay does not cover slices and slots: a study says so as `warmset check` does, where
/// there is a delay at all. In quanta it is charged in each.
#[test]
fn what_one_delay_does_not_cover_is_told() {
    let policies = "policies = [\"EDF-WM\", \"NPS-F\", \"C-NPS-F\", \"PD2\", \"EDF-FM\", \"p-edf\"]\nsource = \"mine\"\n";
    let told = |delays: &str| {
        let study = small(&format!(
            "platform = \"symmetric:m=2\"\n{policies}caps = {{ from = 1 }}\nsets = 1\nguarantee = \"soft\"\ndelays = {delays}"
        ));
        run(&study, &Silent).unwrap()
    };
    let results = told("{ from = \"0us\", to = \"100us\", step = \"100us\" }");
    let of: Vec<&str> = results
        .notes
        .iter()
        .filter_map(|n| n.split(':').next())
        .collect();
    assert_eq!(of, ["EDF-WM", "NPS-F", "C-NPS-F"], "{:?}", results.notes);
    assert!(
        results
            .notes
            .iter()
            .all(|n| n.contains("one delay a job is charged, and more may occur"))
    );
    let json: serde_json::Value = serde_json::from_str(&results.to_json().unwrap()).unwrap();
    assert_eq!(json["notes"].as_array().map(Vec::len), Some(3));
    assert_eq!(told("{ from = \"0us\" }").notes, [""; 0]);
}
