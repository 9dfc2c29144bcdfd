//! What a study sweeps besides delays: working sets (002 §6.4), factors on overheads, numbers of
//! processors. Each is the same as studies and verdicts that are asked one by one.

mod support;

use analyze::Guarantee;
use model::watch::Silent;
use model::{
    Bytes, Details, Duration, Overhead, Overheads, Platform, Profile, Ratio, TaskSet, profilefile,
};
use study::{Axis, Charged, Factor, Grid, Study, file, load, run, run_in};
use support::small;

/// Two sockets of two processors; a preemption is cheap, a migration through memory is not.
const DELAYS: &str = "version = 1\nplatform = \"made-up\"\n\
    [[cpmd]]\nresumption = \"preemption\"\nload = \"load\"\nwrite_ratio = 0.25\n\
    points = [{ wss = \"64KiB\", samples = 9, average = \"100us\", maximum = \"150us\" },\n\
    { wss = \"256KiB\", samples = 9, average = \"400us\", maximum = \"600us\" }]\n\
    [[cpmd]]\nresumption = \"preemption\"\nload = \"idle\"\nwrite_ratio = 0.25\n\
    points = [{ wss = \"64KiB\", samples = 9, average = \"10us\", maximum = \"15us\" }]\n\
    [[cpmd]]\nresumption = \"memory-migration\"\nload = \"load\"\nwrite_ratio = 0.25\n\
    points = [{ wss = \"64KiB\", samples = 9, average = \"900us\", maximum = \"1200us\" }]\n\
    [[cpmd]]\nresumption = \"memory-migration\"\nload = \"idle\"\nwrite_ratio = 0.25\n\
    points = [{ wss = \"64KiB\", samples = 9, average = \"20us\", maximum = \"30us\" }]\n\
    [[overheads]]\nkind = \"scheduling\"\n\
    points = [{ tasks = 1, samples = 9, average = \"20us\", maximum = \"40us\" }, \
    { tasks = 100, samples = 9, average = \"60us\", maximum = \"90us\" }]\n";

const SMALL: &str = "platform = \"symmetric:m=4\"\npolicies = [\"p-edf\", \"g-edf\", \"edf-wm\"]\nsource = \"mine\"\n\
    utilizations = \"uniform-medium\"\ncaps = { from = 1, to = 4, step = 0.5 }\nsets = 20\nguarantee = \"hard\"\n";

fn made_up() -> Profile {
    profilefile::from_toml(DELAYS).unwrap()
}

fn with(text: &str) -> Study {
    let text = format!(
        "based_on = \"ospert10-fig5\"\nname = \"small\"\nprofile = \"made-up\"\n{SMALL}{text}"
    );
    file::from_toml(&text, Platform::find, |_| Ok(made_up())).unwrap()
}

fn rows(study: &Study) -> Vec<Vec<Vec<u32>>> {
    let results = run(study, &Silent).unwrap();
    results.shards.into_iter().map(|s| s.accepted).collect()
}

/// The column of one point of the axis.
fn column(rows: &[Vec<Vec<u32>>], point: usize) -> Vec<Vec<u32>> {
    let of = |cap: &Vec<Vec<u32>>| cap.iter().map(|policy| policy[point]).collect();
    rows.iter().map(of).collect()
}

#[test]
fn working_sets_are_judged_as_check_judges_tasks_that_have_them() {
    for (accounting, load) in [
        ("one-delay", "load"),
        ("paper", "load"),
        ("warmset", "idle"),
    ] {
        let study = with(&format!(
            "working_sets = [\"0B\", \"64KiB\", \"160KiB\"]\naccounting = \"{accounting}\"\nload = \"{load}\"\n"
        ));
        let rows = rows(&study);
        for (at, wss) in [0, 64, 160].into_iter().map(Bytes::from_kib).enumerate() {
            let mut expected = Vec::new();
            for cap in study.caps.values() {
                let mut kept = vec![0; study.policies.len()];
                for index in 0..study.sets {
                    let generator = study.recipe(cap).prepare().unwrap();
                    let set = generator
                        .draw(study.seed, Study::set_number(cap, index))
                        .unwrap();
                    let details = set.ids().map(|id| Details {
                        wss: (wss.get() > 0).then_some(wss),
                        ..Details::named(id.0.to_string())
                    });
                    let set = TaskSet::to_judge(set.timings().to_vec()).unwrap();
                    let set = set.with_details(details.collect()).unwrap();
                    let costs = study.charged.costs(Duration::ZERO);
                    for (policy, kept) in study.policies.iter().zip(&mut kept) {
                        let spec = policy.parse().unwrap();
                        let said = analyze::policies::decide(
                            &set,
                            &study.platform,
                            &spec,
                            Guarantee::Hard,
                            &costs,
                        );
                        *kept += u32::from(said.unwrap() == Some(true));
                    }
                }
                expected.push(kept);
            }
            assert_eq!(column(&rows, at), expected, "{accounting}, {load}, {wss}");
        }
    }
}

/// Without a working set nothing is lost; a preemption is cheaper than a migration.
#[test]
fn each_way_to_go_on_has_its_own_price() {
    let study = with("working_sets = [\"0B\", \"64KiB\"]\naccounting = \"paper\"\n");
    let no_overheads = |study: &Study| {
        let mut study = study.clone();
        let profile = study.charged.profile.as_mut().unwrap();
        profile.overheads.clear();
        rows(&study)
    };
    let free = Study {
        axis: Axis::Delays(Grid::listed([Duration::ZERO]).unwrap()),
        ..study.clone()
    };
    let charged = no_overheads(&study);
    assert_eq!(column(&charged, 0), column(&no_overheads(&free), 0));
    // As if every job paid its preemption, 150 us, or its migration, 1200 us.
    let delays = Duration::from_micros;
    let fixed = Study {
        axis: Axis::Delays(Grid::listed([delays(150), delays(1200)]).unwrap()),
        ..study.clone()
    };
    let fixed = no_overheads(&fixed);
    for (cap, row) in charged.iter().enumerate() {
        assert_eq!(row[0][1], fixed[cap][0][0], "P-EDF only preempts");
        assert_eq!(row[1][1], fixed[cap][1][1], "G-EDF migrates");
    }
    let sum = |row: &dyn Fn(&Vec<Vec<u32>>) -> u32| charged.iter().map(row).sum::<u32>();
    assert!(sum(&|cap| cap[1][1]) < sum(&|cap| cap[1][0]));
}

/// A test by its name pays the longest delay of the platform, once a job.
#[test]
fn tests_by_their_names_pay_the_longest_delay() {
    let tests = |text: &str| Study {
        policies: vec!["GFB".to_owned(), "BCL".to_owned()],
        ..with(text)
    };
    let sized = rows(&tests("working_sets = [\"0B\", \"64KiB\"]\n"));
    let delayed = rows(&tests("delays = [\"0us\", \"1200us\"]\n"));
    assert_eq!(sized, delayed);
}

#[test]
fn a_factor_scales_every_overhead() {
    let study = with(
        "overhead_factors = [0, 0.5, 1, 2.5]\nworking_set = \"160KiB\"\naccounting = \"paper\"\n",
    );
    let rows = rows(&study);
    for (at, factor) in [0u64, 500, 1000, 2500].into_iter().enumerate() {
        let factor = Ratio::new(factor, 1000).unwrap();
        let one = Study {
            axis: Axis::WorkingSets(Grid::listed([Bytes::from_kib(160)]).unwrap()),
            cache: study::Cache::NOTHING,
            charged: Charged {
                profile: Some(made_up().scaled(factor, Overheads::ALL)),
                ..study.charged.clone()
            },
            ..study.clone()
        };
        assert_eq!(
            column(&rows, at),
            column(&self::rows(&one), 0),
            "{factor:?}"
        );
    }
    assert_ne!(column(&rows, 0), column(&rows, 3));
    // The sets depend on seed and distributions alone: a study that charges nothing has the same.
    let free = Study {
        axis: Axis::Delays(Grid::listed([Duration::ZERO]).unwrap()),
        cache: study::Cache::NOTHING,
        charged: Charged {
            profile: None,
            ..study.charged.clone()
        },
        ..study.clone()
    };
    assert_eq!(column(&rows, 0), column(&self::rows(&free), 0));
    // The same by the key for one factor.
    let fixed =
        with("working_sets = [\"160KiB\"]\noverhead_factor = 2.5\naccounting = \"paper\"\n");
    assert_eq!(fixed.overhead_factor, Factor::from_thousandths(2500));
    assert_eq!(column(&rows, 3), column(&self::rows(&fixed), 0));
}

/// A factor on some overheads is the same as a profile in which these alone are other ones.
#[test]
fn a_factor_on_some_overheads_leaves_the_others() {
    let swept = "overhead_factors = [0, 1, 4]\nworking_set = \"64KiB\"\naccounting = \"paper\"\n";
    let all = rows(&with(swept));
    for on in [Overhead::Scheduling, Overhead::Cpmd] {
        let study = with(&format!("{swept}factor_on = [\"{}\"]\n", on.name()));
        let results = run(&study, &Silent).unwrap();
        assert_eq!(
            results.axis.title(),
            format!("factor on the overheads {}", on.name())
        );
        let alone = rows(&study);
        assert_eq!(column(&alone, 1), column(&all, 1));
        assert_ne!(column(&alone, 2), column(&all, 2), "{on:?}");
        for (at, factor) in [0u64, 1, 4].into_iter().enumerate() {
            let scaled = made_up().scaled(Ratio::whole(factor), Overheads::of(&[on]));
            let one = Study {
                axis: Axis::WorkingSets(Grid::listed([Bytes::from_kib(64)]).unwrap()),
                cache: study::Cache::NOTHING,
                factor_on: Overheads::ALL,
                charged: Charged {
                    profile: Some(scaled),
                    ..study.charged.clone()
                },
                ..study.clone()
            };
            assert_eq!(
                column(&alone, at),
                column(&rows(&one), 0),
                "{on:?} {factor}"
            );
        }
        let again = file::from_toml(&study.to_toml(), Platform::find, |_| Ok(made_up())).unwrap();
        assert_eq!(again.factor_on, Overheads::of(&[on]));
    }
}

/// As many studies of their own, whose caps are the shares of their processors.
#[test]
fn processors_are_platforms_that_are_scaled() {
    let text = "platform = \"xeon-l7455\"\npolicies = [\"p-edf\", \"g-edf\", \"c-edf:l3\"]\n\
                caps = [0.5, 0.75, 1]\nsets = 20\nprocessors = [4, 24, 30]\ndelay = \"300us\"\n";
    let study = small(text);
    let results = run(&study, &Silent).unwrap();
    assert!(results.caps_are_shares());
    assert!(results.axis.title().contains("scaled from xeon-l7455"));
    let note = results.notes.iter().find(|n| n.starts_with("Scaled: "));
    assert!(
        note.is_some_and(|n| n.contains("24 processors")),
        "{:?}",
        results.notes
    );
    let rows = rows(&study);
    for (at, m) in [4u32, 24, 30].into_iter().enumerate() {
        let caps = [m as f64 * 0.5, m as f64 * 0.75, m as f64];
        let alone = small(&format!(
            "platform = \"xeon-l7455:m={m}\"\npolicies = [\"p-edf\", \"g-edf\", \"c-edf:l3\"]\n\
             caps = {caps:?}\nsets = 20\ndelays = [\"300us\"]\n"
        ));
        assert_eq!(column(&rows, at), column(&self::rows(&alone), 0), "m = {m}");
    }
    // Without caches and costs a share of more processors is easier to pack, never harder to fill.
    let json: serde_json::Value = serde_json::from_str(&results.to_json().unwrap()).unwrap();
    assert_eq!(json["caps_are"], "share of processors");
    assert_eq!(json["axis"]["points"], serde_json::json!([4, 24, 30]));
    assert_eq!(json["axis"]["name"], "processors");
}

#[test]
fn every_axis_is_kept_in_a_directory_and_in_a_file() {
    for text in [
        "working_sets = [{ from = \"0B\", to = \"64KiB\", step = \"32KiB\" }, \"256KiB\"]\nload = \"idle\"\n",
        "overhead_factors = { from = 0.5, to = 1.5, step = 0.5 }\nworking_set = \"64KiB\"\n",
        "caps = [0.5, 1]\nprocessors = [2, 8]\ndelay = \"100us\"\n",
        "caps = [1, { from = 2, to = 4, step = 1 }]\ndelays = [\"1us\", \"1ms\"]\n",
    ] {
        let caps = "caps = { from = 1, to = 4, step = 0.5 }\n";
        let body = match text.starts_with("caps") {
            true => SMALL.replace(caps, ""),
            false => SMALL.to_owned(),
        };
        // What is charged is written out, so that a file always says it.
        let text = format!(
            "based_on = \"ospert10-fig5\"\nname = \"small\"\nprofile = \"made-up\"\n\
             accounting = \"warmset\"\n{body}{text}"
        );
        let read = |text: &str| file::from_toml(text, Platform::find, |_| Ok(made_up()));
        let study = read(&text).unwrap();
        assert_eq!(
            read(&study.to_toml()).unwrap(),
            study,
            "{}",
            study.to_toml()
        );
        let dir = tempfile::tempdir().unwrap();
        let results = run_in(dir.path(), &study, &Silent).unwrap();
        assert_eq!(load(dir.path()).unwrap(), results, "{text}");
        assert_eq!(results, run(&study, &Silent).unwrap());
        for csv in [results.to_csv(), results.to_weighted_csv()] {
            let name = format!(",{},", results.axis.quantity.name());
            assert!(
                csv.lines().skip(1).all(|line| line.contains(&name)),
                "{csv}"
            );
        }
    }
}

#[test]
fn what_cannot_be_swept_is_refused() {
    for (text, message) in [
        (
            "working_sets = [\"64KiB\"]\n",
            "profile: the cost of a working set stands in a profile",
        ),
        (
            "overhead_factors = [1, 2]\n",
            "overhead_factors: a factor on overheads, and none are charged",
        ),
        (
            "delays = [\"1us\"]\nworking_set = \"64KiB\"\n",
            "working_set: `working_set` holds one value",
        ),
        (
            "caps = [2]\nprocessors = [4]\n",
            "caps: the cap 2 is above 1",
        ),
        (
            "caps = [1]\nprocessors = [9000]\n",
            "processors: `9000` is no number of processors",
        ),
        (
            "caps = [0.1]\nprocessors = [4]\n",
            "caps: a single task of `uniform-heavy` may exceed the cap 0.4",
        ),
        (
            "overhead_factor = 2\n",
            "a factor on overheads, and none are charged",
        ),
        (
            "delays = [\"1us\"]\nfactor_on = [\"tick\"]\n",
            "factor_on: it says which overheads a factor is on, and there is none",
        ),
        (
            "working_sets = [\"64KiB\"]\nprofile = \"xeon-l7455\"\ncharge = 2\n",
            "charge: working sets are charged by",
        ),
    ] {
        let e = run(&small(text), &Silent).unwrap_err().to_string();
        assert!(e.contains(message), "{text}: {e}");
    }
    let tick = with(
        "overhead_factors = [1, 2]\nworking_set = \"64KiB\"\naccounting = \"paper\"\n\
         factor_on = [\"tick\"]\n",
    );
    let e = run(&tick, &Silent).unwrap_err().to_string();
    assert!(
        e.contains("factor_on: a factor on tick, and the profile has no"),
        "{e}"
    );
    let idle = with("working_sets = [\"64KiB\"]\nload = \"idle\"\n");
    assert!(run(&idle, &Silent).is_ok());
    let mut no_idle = made_up();
    no_idle.cpmd.retain(|curve| curve.load == model::Load::Load);
    let lacking = Study {
        charged: Charged {
            profile: Some(no_idle),
            ..idle.charged.clone()
        },
        ..idle
    };
    let e = run(&lacking, &Silent).unwrap_err().to_string();
    assert!(e.contains("profile: ") && e.contains("(idle)"), "{e}");
}
