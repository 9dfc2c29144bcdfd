//! Files of rt-app: what is read, what is left out and where it stood, what is written.

use super::*;
use crate::task::TaskId;
use serde_json::{Value, json};

mod threads;

fn read(text: &str) -> Result<Imported> {
    from_rt_app(text, Reading::default())
}

fn sleeping(text: &str) -> Result<Imported> {
    let how = Reading {
        sleep_as_period: true,
    };
    from_rt_app(text, how)
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn timings(imported: &Imported) -> Vec<(String, u64, u64, u64)> {
    let of = |id: TaskId| {
        let t = imported.set.timings()[id.index()];
        let us = |d: Duration| d.nanos() / 1000;
        (
            imported.set.name(id),
            us(t.wcet),
            us(t.period),
            us(t.deadline),
        )
    };
    imported.set.ids().map(of).collect()
}

#[test]
fn threads_that_run_and_wait_for_a_timer_are_tasks() {
    let imported = read(
            r#"{
                /* comments, a "key": 1, and
                   commas, } everywhere */
                "tasks": { // here too
                    "audio": { "loop": -1, "run": 275, "run": 25, "timer": { "ref": "unique", "period": 6000 }, },
                    "video": { "delay": 40, "instance": 2, "policy": "SCHED_DEADLINE", "dl-deadline": 30000,
                               "run0": 9000, "sleep": 0, "runtime": 100, "timer0": { "ref": "a//b", "period": 33000 } },
                },
                "global": { "duration": 2, "list": [1, 2,], }
            }"#,
        )
        .unwrap();
    let expected = [
        ("audio".to_owned(), 300, 6000, 6000),
        ("video-0".to_owned(), 9100, 33000, 30000),
        ("video-1".to_owned(), 9100, 33000, 30000),
    ];
    assert_eq!(timings(&imported), expected);
    assert_eq!(imported.set.details(TaskId(2)).unwrap().phase, us(40));
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
}

#[test]
fn phases_of_one_period_are_a_task_with_the_longest_wcet() {
    let phases = |second: u64| {
        format!(
            r#"{{"tasks": {{"t": {{"loop": 1, "cpus": [0], "phases": {{
                    "light": {{"loop": 10, "run": 3000, "timer": {{"ref": "unique", "period": 30000}}}},
                    "heavy": {{"loop": 10, "run": 27000, "timer": {{"ref": "unique", "period": {second}}}}}
                }} }} }} }}"#
        )
    };
    let imported = read(&phases(30_000)).unwrap();
    assert_eq!(
        timings(&imported),
        [("t".to_owned(), 27_000, 30_000, 30_000)]
    );
    assert_eq!(
        imported.notes,
        ["line 1, column 18: thread `t` ends after 1 rounds there, and goes on here"]
    );
    let cpus = imported.set.cpus(TaskId(0)).map(ToString::to_string);
    assert_eq!(cpus.as_deref(), Some("0"));
    let e = read(&phases(40_000)).unwrap_err().to_string();
    assert!(
        e.contains("line 1, column 12: thread `t`") && e.contains("different periods"),
        "{e}"
    );
}

#[test]
fn what_is_not_periodic_is_named_with_the_reason() {
    let timer = r#""timer": {"ref": "x", "period": 10000}"#;
    for (events, why) in [
        (
            r#""run": 20000, "sleep": 80000"#.to_owned(),
            "event `sleep`: it sleeps",
        ),
        (r#""run": 10000"#.to_owned(), "it has no event `timer`"),
        (
            format!(r#""run": 10, "wait": {{"ref": "q", "mutex": "m"}}, {timer}"#),
            "event `wait`",
        ),
        (
            format!(r#""run": 10, "sleep": 5, {timer}"#),
            "it both sleeps and waits for a timer",
        ),
        (format!(r#""run": 10, "mem": 10, {timer}"#), "event `mem`"),
        (
            format!(r#""run": 10, {timer}, "timer1": {{"ref": "y", "period": 5}}"#),
            "event `timer1`: it waits for more than one timer",
        ),
        (
            r#""run": 30000, "dl-reclaim": true, "dl-period": 30000"#.to_owned(),
            "it has no event `timer`",
        ),
        (
            format!(r#""run": 0.5, {timer}"#),
            "`run` is no number of microseconds",
        ),
        (
            format!(r#""run": 2000, "instance": 0, {timer}"#),
            "`instance`",
        ),
        (
            r#""run": 10, "period": 100"#.to_owned(),
            "before rt-app 1.0",
        ),
        (timer.to_owned(), "WCET"),
    ] {
        let alone = read(&format!(r#"{{"tasks": {{"odd": {{{events}}} }} }}"#));
        let e = alone.unwrap_err().to_string();
        assert!(
            e.contains("thread `odd`") && e.to_lowercase().contains(&why.to_lowercase()),
            "{why}: {e}"
        );
        let good = r#""good": {"run": 10, "timer": {"ref": "x", "period": 100}}"#;
        let imported = read(&format!(
            r#"{{"tasks": {{"odd": {{{events}}}, {good} }} }}"#
        ))
        .unwrap();
        assert_eq!(
            (imported.set.len(), imported.notes.len()),
            (1, 1),
            "{:?}",
            imported.notes
        );
    }
}

#[test]
fn every_reason_comes_with_line_and_column_of_the_key_that_it_is_about() {
    let text = r#"{ /* one
            two */ "tasks": {
                "wäit": { "run": 10,
                    "suspend": "m", "timer": { "ref": "x", "period": 1000 } },
                "twice": { "loop": 3, "dl-runtime": 5, "run": 10,
                    "timer": { "ref": "x", "period": 1000 } },
                "ünder": { "phases": { "ä": { "run": 1, "timer": { "ref": "y", "period": 0.5 } } } },
                "odd": 7, "none": { "run": 10 },
                "many": { "run": 10, "timer": { "ref": "x", "period": 100 }, "instance": 0 }
            }
        }"#;
    insta::assert_snapshot!(read(text).unwrap().notes.join("\n"), @r"
        line 4, column 21: thread `wäit` is left out: event `suspend` is no part of a sporadic task
        line 5, column 28: thread `twice` ends after 3 rounds there, and goes on here
        line 5, column 39: thread `twice` runs for 10us a job, more than its dl-runtime of 5us: the WCET is what it runs for
        line 7, column 80: thread `ünder` is left out: phase `ä`: `period` is no number of microseconds
        line 8, column 17: thread `odd` is left out: it is no object
        line 8, column 27: thread `none` is left out: it has no event `timer`
        line 9, column 78: thread `many` is left out: `instance` is no number from 1 to 10000
        ");
}

#[test]
fn what_is_no_file_of_rt_app_is_an_error_with_its_place() {
    let told = [
        "{\n\n\"tasks\" 1}",
        "{\"tasks\": {\"a\": {,}}}",
        "{\"tasks\": {\"a\": 1 \"b\": 2}}",
        "{\"tasks\": {\n  'a': 1}}",
        "{\"tasks\": 1",
        "{\"tasks\": \"\\x41\"}",
        "{\"tasks\": {}} {}",
        "{\n\"tasks\": 1 /*",
    ]
    .map(|text| {
        let e = read(text).unwrap_err().to_string();
        e.split_once(';').unwrap().0.to_owned()
    });
    insta::assert_snapshot!(told.join("\n"), @r"
        line 3, column 9: this is no JSON: expected colon after the string or word in object property
        line 1, column 18: this is no JSON: unexpected token in object
        line 1, column 18: this is no JSON: expected comma
        line 2, column 3: this is no JSON: single-quoted strings are not allowed
        line 1, column 1: this is no JSON: unterminated object
        line 1, column 12: this is no JSON: invalid escape
        line 1, column 15: this is no JSON: text cannot contain more than one json value
        line 2, column 12: this is no JSON: unterminated comment block
        ");
    // Deeper than anybody writes, and not to overflow.
    let deep = format!("{{\"tasks\": {}", "[".repeat(100_000));
    let e = read(&deep).unwrap_err().to_string();
    assert!(e.contains("nesting"), "{e}");
    for text in [
        "",
        "{}",
        "[]",
        r#"{"tasks": []}"#,
        r#"{"tasks": {}}"#,
        r#"{"tasks": {"a": 1}}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_written_reads_back() {
    let details = |name: &str, phase| Details {
        phase,
        ..Details::named(name)
    };
    let timing = |wcet, period, deadline| Timing {
        wcet: us(wcet),
        period: us(period),
        deadline: us(deadline),
    };
    let tasks = vec![
        (timing(250, 1000, 1000), details("a", us(7))),
        (
            timing(9_000, 33_000, 30_000),
            details("b \"quoted\"", us(0)),
        ),
    ];
    let set = TaskSet::new(tasks).unwrap();
    let (text, notes) = to_rt_app(&set, Duration::from_secs(2)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let again = read(&text).unwrap();
    assert!(again.notes.is_empty(), "{:?}", again.notes);
    assert_eq!(again.set, set);
}

#[test]
fn tasks_keep_their_places() {
    let text = r#"{"tasks": {"t": {"instance": 12, "run": 10, "timer": {"ref": "x", "period": 100}},
            "a": {"run": 10, "timer": {"ref": "x", "period": 100}}}}"#;
    let set = read(text).unwrap().set;
    assert_eq!(
        (set.name(crate::TaskId(10)), set.name(crate::TaskId(12))),
        ("t-10".to_owned(), "a".to_owned())
    );
    let (written, _) = to_rt_app(&set, Duration::from_secs(1)).unwrap();
    assert_eq!(read(&written).unwrap().set, set);
}

#[test]
fn what_has_no_place_is_named_and_what_cannot_be_is_refused() {
    let soft = Details {
        soft: true,
        ..Details::named("soft")
    };
    let set = TaskSet::new(vec![(
        Timing::implicit(Duration::from_nanos(1500), us(10)),
        soft,
    )])
    .unwrap();
    let (text, notes) = to_rt_app(&set, Duration::from_secs(1)).unwrap();
    assert!(text.contains("\"dl-runtime\": 2"), "rounded up: {text}");
    assert!(notes[0].contains("task soft"), "{notes:?}");
    let odd =
        TaskSet::from_timings(vec![Timing::implicit(us(1), Duration::from_nanos(10_500))]).unwrap();
    let e = to_rt_app(&odd, Duration::from_secs(1))
        .unwrap_err()
        .to_string();
    assert!(e.contains("period") && e.contains("microseconds"), "{e}");
}

#[test]
fn priorities_and_processors_go_both_ways() {
    let thread = |name: &str, keys: &str| {
        format!(r#""{name}": {{{keys} "run": 10, "timer": {{"ref": "unique", "period": 100}}}}"#)
    };
    let text = format!(
        r#"{{"tasks": {{{}, {}, {}, {}}}}}"#,
        thread(
            "low",
            r#""policy": "SCHED_FIFO", "priority": 10, "cpus": [1, 3],"#
        ),
        thread("high", r#""policy": "SCHED_RR", "priority": 80,"#),
        thread("nice", r#""policy": "SCHED_OTHER", "priority": -5,"#),
        thread("plain", r#""cpus": [],"#),
    );
    let imported = read(&text).unwrap();
    let set = &imported.set;
    // The file's order is not the order of urgency.
    let names: Vec<String> = set
        .by_priority()
        .into_iter()
        .map(|id| set.name(id))
        .collect();
    assert_eq!(names, ["high", "low", "nice", "plain"]);
    assert_eq!(set.cpus(TaskId(0)).unwrap().to_string(), "1,3");
    assert_eq!(set.cpus(TaskId(3)), None);
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    assert!(
        imported.notes[0].ends_with(
            "thread `nice` has a priority under SCHED_OTHER, where it ranks no real-time threads: it is left out"
        ),
        "{:?}",
        imported.notes
    );
    let (written, notes) = to_rt_app(set, Duration::from_secs(1)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["tasks"]["low"]["policy"], "SCHED_FIFO");
    assert_eq!(value["tasks"]["low"]["cpus"], json!([1, 3]));
    assert_eq!(value["tasks"]["nice"]["policy"], "SCHED_DEADLINE");
    assert_eq!(read(&written).unwrap().set, *set);
}

#[test]
fn phases_on_different_processors_have_none_and_what_is_lost_is_named() {
    let phases = |second: &str| {
        let phase = |cpu: &str| {
            format!(r#"{{"cpus": [{cpu}], "run": 1, "timer": {{"ref": "x", "period": 9}}}}"#)
        };
        let text = format!(
            r#"{{"tasks": {{"t": {{"phases": {{"a": {}, "b": {}}}}}}}}}"#,
            phase("2"),
            phase(second)
        );
        let imported = read(&text).unwrap();
        let cpus = imported.set.cpus(TaskId(0)).map(ToString::to_string);
        (cpus, imported.notes.len())
    };
    assert_eq!(phases("2"), (Some("2".to_owned()), 0));
    assert_eq!(phases("3"), (None, 1));
    let details = Details {
        priority: Some(100),
        cpus: Some("0".parse().unwrap()),
        extras: crate::Extras {
            blocking: us(1),
            jitter: us(2),
        },
        ..Details::named("t")
    };
    let set = TaskSet::new(vec![(Timing::implicit(us(10), us(100)), details)]).unwrap();
    let (_, notes) = to_rt_app(&set, Duration::from_secs(1)).unwrap();
    let all = notes.join("; ");
    for part in [
        "priority 100 is left out",
        "refuses SCHED_DEADLINE",
        "`blocking`, `jitter` are left out",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
}
