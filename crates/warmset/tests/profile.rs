//! `warmset profile` from end to end: showing, reading off, SchedCAT's tables, and what is refused.

use std::fs;
use testing::command::Called;
use testing::warmset;

fn warmset(args: &[&str]) -> Called {
    Called::of(warmset!().arg("profile").args(args))
}
fn refusal(args: &[&str]) -> String {
    warmset(args).refusal()
}
fn stdout(args: &[&str]) -> String {
    warmset(args).with_status(0)
}

#[test]
fn the_tables_of_the_xeon_are_shown() {
    insta::assert_snapshot!(stdout(&["show", "xeon-l7455"]));
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["show", "xeon-l7455", "--format", "json"])).unwrap();
    assert_eq!(json["cpmd"].as_array().unwrap().len(), 8);
}

/// 000 §4.2: between the points the reading is interpolated, outside it is flagged.
#[test]
fn readings_carry_their_flag() {
    insta::assert_snapshot!(stdout(&["show", "xeon-l7455", "--wss", "300KiB"]));
    for (size, flagged) in [("4KiB", 0), ("12MiB", 0), ("1KiB", 16), ("16MiB", 16)] {
        let text = stdout(&["show", "xeon-l7455", "--wss", size]);
        assert_eq!(
            (text.lines().count(), text.matches("extrapolated").count()),
            (16, flagged),
            "{size}"
        );
    }
    assert_eq!(
        stdout(&["show", "xeon-l7455", "--tasks", "3"]),
        "the profile has no such curve\n"
    );
}

#[test]
fn tables_of_averages_and_maxima_make_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for statistic in ["average", "maximum"] {
        let csv = path(&format!("{statistic}.csv"));
        warmset(&[
            "export",
            "xeon-l7455",
            "--statistic",
            statistic,
            "--load",
            "load",
            "-o",
            &csv,
        ])
        .with_status(0);
    }
    let (one, both) = (path("one.toml"), path("both.toml"));
    let (average, maximum) = (path("average.csv"), path("maximum.csv"));
    warmset(&[
        "import",
        &average,
        "--statistic",
        "average",
        "--platform",
        "xeon-l7455",
        "-o",
        &one,
    ])
    .with_status(0);
    warmset(&[
        "import",
        &maximum,
        "--statistic",
        "maximum",
        "--into",
        &one,
        "-o",
        &both,
    ])
    .with_status(0);
    // What was read off under load is the same again.
    let under_load = |profile: &str| -> Vec<String> {
        let text = stdout(&["show", profile, "--wss", "300KiB"]);
        text.lines()
            .filter(|l| l.contains("(load"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(under_load(&both), under_load("xeon-l7455"));
    assert_eq!(under_load(&one).len(), 4);
    // Both tables are named as where the curves come from.
    let written = fs::read_to_string(&both).unwrap();
    assert!(
        written.contains("average.csv; SchedCAT table") && written.contains("maximum.csv"),
        "{written}"
    );
    // The input stayed as it was, and the same table does not go in twice.
    let again = refusal(&[
        "import",
        &average,
        "--statistic",
        "average",
        "--into",
        &one,
        "-o",
        &both,
    ]);
    assert!(again.contains("has this value of `L1` already"), "{again}");
}

#[test]
fn overheads_go_in_and_out_and_what_has_no_place_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (table, profile) = (path("oh.csv"), path("p.toml"));
    fs::write(
        &table,
        "TASK-COUNT, CXS, RELEASE-LATENCY\n 10, 5.5, 30\n 20, 6.25, 40\n",
    )
    .unwrap();
    let said = warmset(&[
        "import",
        &table,
        "--statistic",
        "maximum",
        "--policy",
        "g-edf",
        "-o",
        &profile,
    ])
    .err;
    assert!(said.contains("RELEASE-LATENCY"), "{said}");
    assert_eq!(
        stdout(&[
            "export",
            &profile,
            "--statistic",
            "maximum",
            "--overheads",
            "--policy",
            "g-edf"
        ]),
        "TASK-COUNT,CXS\n10,5.5\n20,6.25\n"
    );
    let text = stdout(&["show", &profile, "--tasks", "30"]);
    assert_eq!(
        text,
        "context-switch (g-edf)  maximum           7us  extrapolated: outside of what was measured\n"
    );
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (bad, out) = (path("bad.csv"), path("out.toml"));
    fs::write(&bad, "WSS,L7\n4,1\n").unwrap();
    for (args, cause) in [
        (vec!["show", "xeon"], "built in are `xeon-l7455`"),
        (vec!["show", "xeon-l7455", "--wss", "300"], "has no unit"),
        (
            vec![
                "export",
                "xeon-l7455",
                "--statistic",
                "average",
                "--overheads",
            ],
            "has no average overheads",
        ),
        (
            vec![
                "export",
                "xeon-l7455",
                "--statistic",
                "average",
                "--write-ratio",
                "2",
            ],
            "2 is not a ratio",
        ),
        (
            vec![
                "export",
                "xeon-l7455",
                "--statistic",
                "average",
                "--write-ratio",
                "0.5",
            ],
            "has no average cache delays",
        ),
        (
            vec!["import", &bad, "--statistic", "average", "-o", &out],
            "bad.csv: line 1: unknown column `L7`",
        ),
    ] {
        let said = refusal(&args);
        assert!(said.contains(cause), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    assert!(!dir.path().join("out.toml").exists());
}

/// What is measured on this machine is charged by default once it was taken into use, and only here.
#[test]
fn the_profile_in_use_is_charged_on_this_machine_alone() {
    let dir = tempfile::tempdir().unwrap();
    let own = model::Profile {
        platform: "this-machine".to_owned(),
        provenance: model::Provenance::default(),
        ..model::Profile::builtin("xeon-l7455").unwrap()
    };
    std::fs::write(
        dir.path().join("own.toml"),
        model::profilefile::to_toml(&own),
    )
    .unwrap();
    let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\nwss = \"64KiB\"\n";
    std::fs::write(dir.path().join("tasks.toml"), task).unwrap();
    let call = |arguments: &str| {
        let mut command = testing::warmset!();
        command
            .env_remove("WARMSET_PROFILE")
            .env("XDG_DATA_HOME", dir.path().join("data"));
        testing::command::Called::within(command, dir.path(), arguments)
    };
    let charged = |more: &str| {
        let checked = call(&format!(
            "check tasks.toml --policy p-edf --format json {more}"
        ));
        checked.json()["costs"].as_str().unwrap().to_owned()
    };
    let nothing = charged("");
    assert!(nothing.starts_with("no cache delay"), "{nothing}");
    let refused = call("check tasks.toml --profile this-machine").refusal();
    assert!(
        refused.contains("no profile of this machine is in use"),
        "{refused}"
    );
    let refused = call("profile use xeon-l7455").refusal();
    assert!(refused.contains("another machine"), "{refused}");

    assert!(
        call("profile use own.toml")
            .answer()
            .contains("From now on")
    );
    for more in ["", "--profile this-machine"] {
        assert!(charged(more).contains("profile `this-machine`"), "{more}");
    }
    for more in ["--profile none", "-m 2", "--platform xeon-l7455"] {
        assert_eq!(charged(more), nothing, "{more}");
    }
    assert!(
        call("profile show this-machine")
            .answer()
            .contains("this-machine")
    );
    // A real run reads from it what the engine needs for itself.
    let reserves = |more: &str| {
        let seen = call(&format!("run tasks.toml --preflight --format json {more}")).json();
        let all = seen["preflight"].as_array().unwrap().iter();
        let mut named = all.filter(|f| f["name"] == "reserves");
        named.next().unwrap()["seen"].as_str().unwrap().to_owned()
    };
    for more in ["", "--profile own.toml"] {
        let told = reserves(more);
        assert!(told.contains("no overheads of `g-edf`"), "{more}: {told}");
    }
    let mut with_overheads = own;
    with_overheads.overheads = overheads();
    let text = model::profilefile::to_toml(&with_overheads);
    std::fs::write(dir.path().join("both.toml"), text).unwrap();
    let told = reserves("--profile both.toml");
    assert!(told.contains("is read from the profile"), "{told}");
    let without = reserves("--profile none");
    assert!(
        without.starts_with("no profile of this machine is in use: 1 %"),
        "{without}"
    );
    let refused = call("run tasks.toml --profile xeon-l7455").refusal();
    assert!(refused.contains("another machine"), "{refused}");

    assert!(call("profile use none").answer().contains("Removed"));
    assert_eq!(charged(""), nothing);
    assert!(
        call("profile use none")
            .answer()
            .contains("No profile was in use")
    );
}

/// A profile of two delays, with these averages in nanoseconds, each known to 2 %.
fn measured(dir: &std::path::Path, name: &str, averages: [i64; 2]) {
    let mut profile = model::Profile::builtin("xeon-l7455").unwrap();
    profile.overheads.clear();
    profile.tick_period = None;
    profile.cpmd.truncate(1);
    profile.cpmd[0].points.truncate(2);
    for (point, ns) in profile.cpmd[0].points.iter_mut().zip(averages) {
        let delay = model::Delay::from_nanos;
        point.average = Some(delay(ns));
        point.average_interval = Some((delay(ns - ns / 50), delay(ns + ns / 50)));
        point.maximum = Some(delay(2 * ns));
        point.maximum_interval = Some((delay(ns + ns / 2), delay(2 * ns)));
    }
    std::fs::write(dir.join(name), model::profilefile::to_toml(&profile)).unwrap();
}

#[test]
fn two_measurements_are_compared_within_their_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let call = |arguments: &str| {
        testing::command::Called::within(testing::warmset!(), dir.path(), arguments)
    };
    measured(dir.path(), "a.toml", [10_000, 20_000]);
    measured(dir.path(), "b.toml", [10_200, 19_900]);
    measured(dir.path(), "c.toml", [10_200, 24_000]);
    let alike = call("profile compare a.toml b.toml").with_status(0);
    assert!(
        alike.starts_with("The two agree: of 4 figures 4 agree"),
        "{alike}"
    );
    let apart = call("profile compare a.toml c.toml").with_status(1);
    assert!(
        apart.contains("+20 %") && apart.contains("differ"),
        "{apart}"
    );
    assert!(
        apart.contains("The two do not agree: of 4 figures 3 agree"),
        "{apart}"
    );
    let all = call("profile compare a.toml c.toml --all").with_status(1);
    assert!(all.lines().count() > apart.lines().count(), "{all}");
    let refused = call("profile compare xeon-l7455 xeon-l7455").refusal();
    assert!(refused.contains("both state an interval"), "{refused}");
    let refused = call("profile compare a.toml nowhere.toml").refusal();
    assert!(refused.contains("nowhere.toml"), "{refused}");
}

/// Overheads of any policy: 5 us on average, 9 us at most.
fn overheads() -> Vec<model::profile::OverheadCurve> {
    let curve = |kind| model::profile::OverheadCurve {
        kind,
        policy: String::new(),
        code: Some(model::Code::Both),
        points: vec![model::profile::OverheadPoint {
            tasks: 4,
            samples: 100,
            average: Some(model::Duration::from_micros(5)),
            maximum: Some(model::Duration::from_micros(9)),
            untrimmed: None,
            intervals: model::profile::Intervals::default(),
        }],
    };
    model::OverheadKind::ALL.into_iter().map(curve).collect()
}
