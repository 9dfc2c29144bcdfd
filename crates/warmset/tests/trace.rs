//! `warmset trace` end to end, on traces made by the reference scheduler of room `trace`'s tests.

#[path = "../../trace/tests/support/mod.rs"]
mod support;

use model::Instant;
use std::path::{Path, PathBuf};
use support::{at_wcet, header, ms, schedule, tasks};
use testing::command::Called;
use testing::warmset;
use trace::{Event, EventKind, FileSink, Header, Sink};

/// Status, standard output, standard error.
fn warmset(args: &[&str], dir: &Path) -> (i32, String, String) {
    let Called { status, out, err } = Called::of(warmset!().args(args).current_dir(dir));
    (status, out, err)
}

/// 002 Fig. 2.6 (b), told to be scheduled by `policy`.
fn sample(policy: &str) -> (Header, Vec<Event>) {
    let set = tasks(&[(2, 3), (3, 8), (1, 7), (5, 7)]);
    let made = header(set.clone(), "g-edf", &[2], &[0; 4]);
    let events = schedule(&made, ms(24), at_wcet(&made));
    (header(set, policy, &[2], &[0; 4]), events)
}

fn written(dir: &Path, header: &Header, events: &[Event]) -> PathBuf {
    let path = dir.join("run.wtrace");
    let mut sink = FileSink::create(&path, header).unwrap();
    for event in events {
        sink.record(*event);
    }
    sink.finish().unwrap();
    path
}

#[test]
fn a_correct_trace_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    written(dir.path(), &header, &events);
    let (status, out, err) = warmset(&["trace", "check", "run.wtrace"], dir.path());
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
    let (status, out, _) = warmset(
        &["trace", "check", "run.wtrace", "--format", "json"],
        dir.path(),
    );
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &json["clean"]), (0, &serde_json::json!(true)));
    assert_eq!(json["verdict"]["policies"], serde_json::json!(["g-edf"]));
}

#[test]
fn a_violation_is_shown_with_its_moment_the_queue_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-fp");
    written(dir.path(), &header, &events);
    let args = ["trace", "check", "run.wtrace", "--picture", "first.svg"];
    let (status, out, err) = warmset(&args, dir.path());
    assert_eq!((status, err.as_str()), (1, ""));
    insta::assert_snapshot!(out);
    let svg = std::fs::read_to_string(dir.path().join("first.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("rule priority is broken at 0 ms"));
}

/// The picture in `docs/traces.md`: nine tasks on three processors, and one preemption that was
/// carried out 800 us late.
#[test]
fn the_picture_of_a_violation_in_the_documentation_is_the_one_that_is_drawn() {
    let set = tasks(&[
        (2, 5),
        (3, 8),
        (1, 4),
        (4, 13),
        (2, 7),
        (3, 11),
        (5, 23),
        (1, 6),
        (6, 29),
    ]);
    let header = header(set, "g-edf", &[3], &[0; 9]);
    let mut events = schedule(&header, ms(60), at_wcet(&header));
    let alone = |place: usize| {
        let time = events[place].time;
        events[place].kind == EventKind::Preemption
            && time.nanos() >= 20_000_000
            && events[place + 1].cpu() == events[place].cpu()
            && events[place + 1].kind == EventKind::Start
            && events[place + 2].time.nanos() > time.nanos() + 800_000
    };
    let late = (0..events.len() - 2).find(|place| alone(*place)).unwrap();
    for event in &mut events[late..late + 2] {
        event.time = Instant::from_nanos(event.time.nanos() + 800_000);
    }
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &header, &events);
    let args = ["trace", "check", "run.wtrace", "--picture", "drawn.svg"];
    let (status, out, err) = warmset(&args, dir.path());
    assert_eq!((status, err.as_str()), (1, ""));
    assert!(out.contains("| priority"), "{out}");
    assert_is_kept(&dir.path().join("drawn.svg"), "schedule-violation.svg");
}

/// Is a picture the one in the documentation? With `WARMSET_DRAW` it becomes that.
fn assert_is_kept(drawn: &Path, name: &str) {
    let drawn = std::fs::read(drawn).unwrap();
    let kept = Path::new(ROOT).join("docs/img").join(name);
    if std::env::var_os("WARMSET_DRAW").is_some() {
        std::fs::write(&kept, &drawn).unwrap();
    }
    assert!(
        std::fs::read(kept).unwrap() == drawn,
        "{name}: look at it, and draw it again: WARMSET_DRAW=1 cargo test -p warmset --test trace"
    );
}

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// 002 Figs. 2.2, 2.6 and 2.7, 003 Fig. 2, by the commands of `docs/traces.md`.
#[test]
fn the_figures_of_the_papers_in_the_documentation_are_those_that_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["--rows", "tasks", "--to-time", "12ms", "--width", "470"];
    let wide = ["--rows", "tasks", "--to-time", "18500us"];
    let cache = ["--rows", "tasks", "--to-time", "8ms"];
    let figures: [(&str, &str, &str, &[&str]); 7] = [
        (
            "edf",
            "EDF",
            "figures/one-processor.toml --policy p-edf -m 1",
            &small,
        ),
        (
            "rm",
            "RM",
            "figures/one-processor.toml --policy p-rm -m 1",
            &small,
        ),
        (
            "p-edf",
            "P-EDF",
            "figures/two-processors.toml --policy p-edf -m 2 --assignment figures/partition.json --for 21ms",
            &wide,
        ),
        (
            "g-edf",
            "G-EDF",
            "figures/two-processors.toml --policy g-edf -m 2 --for 21ms",
            &wide,
        ),
        (
            "cache-g-edf",
            "G-EDF",
            "figures/cache.toml --policy g-edf:ties=index -m 2 --for 16ms",
            &cache,
        ),
        (
            "cache-aware",
            "Cache-aware",
            "figures/cache.toml --policy ca-edf:cache=1MiB -m 2 --for 16ms",
            &cache,
        ),
        (
            "overheads",
            "EDF-fm with overheads",
            "overheads/tasks.toml --policy edf-fm -m 2 --assignment overheads/who.json --releases overheads/releases.txt \
             --release-on T4=0 --profile overheads/profile.toml --for 16ms",
            &["--to-time", "16ms"],
        ),
    ];
    let examples = Path::new(ROOT).join("examples");
    for (name, title, simulated, drawn) in figures {
        let (trace, svg) = (dir.path().join("run.wtrace"), dir.path().join("drawn.svg"));
        let (trace, svg) = (trace.to_str().unwrap(), svg.to_str().unwrap());
        let mut args = vec!["simulate"];
        args.extend(simulated.split_whitespace());
        args.extend(["--trace", trace]);
        // Under RM and P-EDF deadlines are missed.
        let (status, _, err) = warmset(&args, &examples);
        assert!(status < 2, "{name}: {err}");
        let (status, out, _) = warmset(&["trace", "check", trace], dir.path());
        assert_eq!(status, 0, "{name}: {out}");
        let mut args = vec![
            "trace", "export", trace, "--to", "svg", "--title", title, "-o", svg,
        ];
        args.extend(drawn);
        let (status, _, err) = warmset(&args, dir.path());
        assert_eq!((status, err.as_str()), (0, ""), "{name}");
        assert_is_kept(Path::new(svg), &format!("schedule-{name}.svg"));
    }
}

#[test]
fn a_trace_that_was_cut_off_is_checked_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    let path = written(dir.path(), &header, &events);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3000]).unwrap();
    let (status, out, _) = warmset(&["trace", "check", "run.wtrace"], dir.path());
    assert_eq!(status, 1);
    assert!(
        out.contains("33 events, cut off before its end")
            && out.contains("note: the trace has no end")
            && out.contains("the answer is no because the trace is not whole"),
        "{out}"
    );
    let (status, out, _) = warmset(
        &["trace", "check", "run.wtrace", "--format", "json"],
        dir.path(),
    );
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status, 1);
    assert_eq!(
        (&json["clean"], &json["whole"]),
        (&false.into(), &false.into())
    );
    assert_eq!(json["verdict"]["violations"], 0);
}

#[test]
fn what_is_made_of_a_trace_that_was_cut_off_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    let path = written(dir.path(), &header, &events);
    let bytes = std::fs::read(&path).unwrap();
    let made: [&[&str]; 4] = [
        &["trace", "export", "run.wtrace", "--to", "csv"],
        &[
            "trace",
            "export",
            "run.wtrace",
            "--to",
            "perfetto",
            "-o",
            "run.pftrace",
        ],
        &["trace", "export", "run.wtrace", "--to", "text"],
        &["trace", "stats", "run.wtrace", "--format", "json"],
    ];
    for args in made {
        std::fs::write(&path, &bytes).unwrap();
        let (status, _, err) = warmset(args, dir.path());
        assert_eq!((status, err.as_str()), (0, ""), "{args:?}");
        std::fs::write(&path, &bytes[..bytes.len() - 3000]).unwrap();
        let (status, _, err) = warmset(args, dir.path());
        assert_eq!(status, 0, "{args:?}");
        assert!(
            err.contains("run.wtrace: 33 events, cut off before its end"),
            "{args:?}: {err}"
        );
    }
    // A window that ends before the trace was cut off is whole.
    let early = [
        "trace",
        "export",
        "run.wtrace",
        "--to",
        "text",
        "--to-time",
        "1us",
    ];
    assert_eq!(warmset(&early, dir.path()).2, "");
}

#[test]
fn sums_are_printed_and_jobs_written() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    written(dir.path(), &header, &events);
    let (status, out, _) = warmset(
        &["trace", "stats", "run.wtrace", "--jobs", "jobs.csv"],
        dir.path(),
    );
    assert_eq!(status, 0);
    insta::assert_snapshot!(out);
    let jobs = std::fs::read_to_string(dir.path().join("jobs.csv")).unwrap();
    insta::assert_snapshot!(jobs.lines().take(6).collect::<Vec<_>>().join("\n"));
    let (_, out, _) = warmset(
        &["trace", "stats", "run.wtrace", "--format", "json"],
        dir.path(),
    );
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["jobs"], serde_json::json!(jobs.lines().count() - 1));
}

#[test]
fn windows_are_drawn_and_events_written() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    written(dir.path(), &header, &events);
    let export = |more: &[&str]| {
        let mut args = vec!["trace", "export", "run.wtrace", "--to"];
        args.extend(more);
        let (status, out, err) = warmset(&args, dir.path());
        assert_eq!((status, err.as_str()), (0, ""), "{more:?}");
        out
    };
    insta::assert_snapshot!(export(&["text", "--from", "6ms", "--to-time", "12ms"]));
    assert_eq!(export(&["csv"]).lines().count(), events.len() + 1);
    let window = export(&["csv", "--from", "6ms", "--to-time", "12ms"]);
    let inside = events
        .iter()
        .filter(|e| (6_000_000..=12_000_000).contains(&e.time.nanos()));
    assert_eq!(window.lines().count(), inside.count() + 1);
    let svg = export(&["svg", "--rows", "tasks"]);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("on P1"));
    assert_eq!(export(&["perfetto", "-o", "run.pftrace"]), "");
    assert!(
        std::fs::metadata(dir.path().join("run.pftrace"))
            .unwrap()
            .len()
            > 1000
    );
}

/// Tasks of 2 ms and 66 ms: eight of the longest periods hold 264 releases, which were drawn as a
/// black smear.
#[test]
fn a_picture_with_too_many_arrows_is_shortened_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let made = header(tasks(&[(1, 2), (20, 66)]), "g-edf", &[1], &[0; 2]);
    let events = schedule(&made, ms(528), at_wcet(&made));
    written(dir.path(), &made, &events);
    // Up arrows: polygons of three corners whose first one is above the others.
    let releases = |svg: &str| {
        let corner = |text: &str| -> (f64, f64) {
            let (x, y) = text.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        let mut all: Vec<f64> = svg
            .split("<polygon points=\"")
            .skip(1)
            .map(|rest| {
                rest.split('"')
                    .next()
                    .unwrap()
                    .split(' ')
                    .map(corner)
                    .collect::<Vec<_>>()
            })
            .filter(|c| c.len() == 3 && c[0].1 < c[1].1 && c[1].1 == c[2].1)
            .map(|c| c[0].0)
            .collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    };
    let export = |more: &[&str]| {
        let mut args = vec!["trace", "export", "run.wtrace", "--to", "svg"];
        args.extend(more);
        let (status, out, err) = warmset(&args, dir.path());
        assert_eq!(status, 0, "{err}");
        (out, err)
    };
    // Also where the whole window is asked for by name.
    for more in [&[][..], &["--to-time", "528ms"], &["--rows", "tasks"]] {
        let (svg, err) = export(more);
        assert!(
            err.contains("Drawn from 0 ms to ") && err.contains(" only: up to 528 ms "),
            "{err}"
        );
        assert!(
            err.contains("`--from` draws a later part, a larger `--width` more of it"),
            "{err}"
        );
        assert!(
            svg.contains("Drawn from 0 ms to "),
            "the picture says so, too"
        );
        let arrows = releases(&svg);
        assert!(arrows.len() > 30, "{}", arrows.len());
        let nearest = arrows
            .windows(2)
            .map(|p| p[1] - p[0])
            .fold(f64::INFINITY, f64::min);
        assert!(
            nearest >= 12.0,
            "{more:?}: {nearest} pixels between two arrows"
        );
    }
    // What is advised helps: the picture begins later, or holds all.
    let (svg, _) = export(&["--from", "264ms"]);
    assert!(svg.contains(">270<") && !svg.contains(">100<"));
    let (svg, err) = export(&["--width", "6000"]);
    assert_eq!((err.as_str(), svg.contains("Drawn from")), ("", false));
    assert_eq!(releases(&svg).len(), 264);
    // On rows of processors a legend tells the tasks.
    assert!(svg.contains(">T1<") && svg.contains(">T2<"));
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (header, events) = sample("g-edf");
    written(dir.path(), &header, &events);
    std::fs::write(dir.path().join("other"), "not a trace at all, but text").unwrap();
    for (args, said) in [
        (
            &["check", "none.wtrace"][..],
            "warmset: none.wtrace: cannot read the trace: no such file or directory; check the path",
        ),
        (
            &["stats", "other"],
            "warmset: other: this is not a trace file; give a file that was written as a trace, such as by `warmset simulate --trace FILE`",
        ),
        (
            &[
                "export",
                "run.wtrace",
                "--to",
                "svg",
                "--from",
                "9ms",
                "--to-time",
                "3ms",
            ],
            "warmset: --to-time: the window from 9ms to 3ms is empty; give an end after `--from`",
        ),
        (
            &["export", "run.wtrace", "--to", "svg", "--from", "9s"],
            "warmset: run.wtrace: the trace ends before 9s; choose an earlier `--from`",
        ),
    ] {
        let mut all = vec!["trace"];
        all.extend(args);
        let (status, out, err) = warmset(&all, dir.path());
        assert_eq!((status, out.as_str(), err.trim_end()), (2, "", said));
    }
}
