//! rt-app's workloads: the periodic threads of a JSON file as tasks, and tasks as such a file.
//!
//! Format: rt-app's own description (`doc/tutorial.txt` of its sources). A thread that runs and then waits for one timer, over
//! and over, is a periodic task: its WCET is the sum of its `run` and `runtime` events, its period that of the timer, its phase
//! the `delay`, its deadline `dl-deadline` or the period. Phases of one period make one task with the largest of their WCETs. All
//! else (locks, conditions, sleeping, input and output) is no sporadic task in the sense of 002 §2.1 and is named with the reason.
//!
//! rt-app's files are less strict than JSON, and so is this reader: comments, commas before a closing bracket, and keys that come
//! more than once.

use crate::error::{Error, Result};
use crate::task::{Details, TaskSet, Timing, check_timing};
use crate::time::Duration;
use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// What came of a file of rt-app.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The periodic threads.
    pub set: TaskSet,
    /// What was left out or is different here, a sentence each, with its line and column and the thread's name.
    pub notes: Vec<String>,
}

/// More instances of one thread are a mistake.
const MOST_INSTANCES: u64 = 10_000;

/// What is no periodic thread, or is different here.
struct Remark {
    /// Where the key stands that it is about, in bytes from the begin of the file.
    at: usize,
    /// What there is to say.
    text: String,
}

type Read<T> = std::result::Result<T, Remark>;

fn remark<T>(at: usize, text: impl Into<String>) -> Read<T> {
    let text = text.into();
    Err(Remark { at, text })
}

/// Reads a file of rt-app.
///
/// # Errors
/// It is no such file, or holds no periodic thread; then all reasons are told. Each has its line and column.
pub fn from_rt_app(text: &str) -> Result<Imported> {
    let leniently = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let root = parse_to_ast(text, &CollectOptions::default(), &leniently).map_err(|e| {
        // The parser's messages are sentences of their own.
        let why = e.kind().to_string().to_lowercase();
        Error::new(format!("this is no JSON: {why}"))
            .at(format!(
                "line {}, column {}",
                e.line_display(),
                e.column_display()
            ))
            .remedy("give a file for rt-app, or a task set in TOML")
    })?;
    let places = Places::of(text);
    let threads = root.value.as_ref().and_then(Node::as_object);
    let Some(threads) = threads.and_then(|o| get(o, "tasks")?.value.as_object()) else {
        return Err(Error::new("there is no `tasks` object").remedy("give a file for rt-app"));
    };
    let (mut tasks, mut remarks) = (Vec::new(), Vec::new());
    for thread in &threads.properties {
        let name = thread.name.as_str();
        match periodic(thread, &mut remarks) {
            Ok(Thread { task, instances: 1 }) => tasks.push(task),
            Ok(Thread { task, instances }) => {
                for instance in 0..instances {
                    let name = format!("{name}-{instance}");
                    let details = task.1.clone();
                    tasks.push((task.0, Details { name, ..details }));
                }
            }
            Err(why) => remarks.push(Remark {
                text: format!("thread `{name}` is left out: {}", why.text),
                ..why
            }),
        }
    }
    remarks.sort_by_key(|r| r.at);
    let notes: Vec<String> = remarks
        .iter()
        .map(|r| format!("{}: {}", places.name(r.at), r.text))
        .collect();
    if tasks.is_empty() {
        let why = match notes.is_empty() {
            true => "there are no threads".to_owned(),
            false => notes.join("; "),
        };
        return Err(Error::new(format!("no thread is periodic: {why}"))
            .remedy("give threads `run` and `timer` events, and nothing else"));
    }
    Ok(Imported {
        set: TaskSet::new(tasks)?,
        notes,
    })
}

struct Thread {
    task: (Timing, Details),
    instances: u64,
}

/// A thread as a task, or why it is none.
fn periodic(of: &ObjectProp, remarks: &mut Vec<Remark>) -> Read<Thread> {
    let (name, start) = (of.name.as_str(), of.range.start);
    let Node::Object(thread) = &of.value else {
        return remark(start, "it is no object");
    };
    let number = |key: &str| get(thread, key).map(micros).transpose();
    // With phases the events are theirs; without, the thread is its only phase.
    let phases = match get(thread, "phases").map(|p| (p, &p.value)) {
        None => vec![phase(thread, start)?],
        Some((_, Node::Object(phases))) => phases
            .properties
            .iter()
            .map(|p| match &p.value {
                Node::Object(keys) => phase(keys, p.range.start).map_err(|why| Remark {
                    text: format!("phase `{}`: {}", p.name.as_str(), why.text),
                    ..why
                }),
                _ => remark(p.range.start, format!("phase `{}` is no object", p.name.as_str())),
            })
            .collect::<Read<_>>()?,
        Some((p, _)) => return remark(p.range.start, "`phases` is no object"),
    };
    let Some((wcet, period)) = phases
        .iter()
        .copied()
        .reduce(|a, b| (a.0.max(b.0), if a.1 == b.1 { a.1 } else { Duration::ZERO }))
    else {
        return remark(start, "it has no phase");
    };
    if period.is_zero() {
        return remark(start, "its phases have different periods");
    }
    let budget = number("dl-runtime")?.unwrap_or_default();
    if wcet > budget && !budget.is_zero() {
        remarks.push(Remark {
            at: get(thread, "dl-runtime").map_or(start, |p| p.range.start),
            text: format!(
                "thread `{name}` runs for {wcet} a job, more than its dl-runtime of {budget}: the WCET is what it runs for"
            ),
        });
    }
    let timing = Timing {
        wcet: wcet.max(budget),
        period,
        deadline: number("dl-deadline")?.filter(|d| !d.is_zero()).unwrap_or(period),
    };
    if let Err(e) = check_timing(&timing) {
        return remark(start, e.to_string());
    }
    let mut differs = |key: &str, how: &dyn Fn(&Node) -> Option<String>| {
        if let Some(property) = get(thread, key)
            && let Some(how) = how(&property.value)
        {
            remarks.push(Remark {
                at: property.range.start,
                text: format!("thread `{name}` {how}"),
            });
        }
    };
    differs("loop", &|times| {
        let times = value_of(times).filter(|times| *times > 0.0)?;
        Some(format!("ends after {times} rounds there, and goes on here"))
    });
    differs("cpus", &|_| {
        Some(
            "keeps to some processors there; here the policy and its assignment say where tasks run"
                .to_owned(),
        )
    });
    differs("dl-reclaim", &|_| {
        Some(
            "says `dl-reclaim`, which takes what others leave of their budgets there; here its budget is its WCET"
                .to_owned(),
        )
    });
    let instances = match get(thread, "instance").map(|p| (p, value_of(&p.value))) {
        None => 1,
        Some((_, Some(n))) if n.fract() == 0.0 && (1.0..=MOST_INSTANCES as f64).contains(&n) => n as u64,
        Some((p, _)) => {
            return remark(
                p.range.start,
                format!("`instance` is no number from 1 to {MOST_INSTANCES}"),
            );
        }
    };
    let details = Details {
        phase: number("delay")?.unwrap_or_default(),
        ..Details::named(name)
    };
    Ok(Thread {
        task: (timing, details),
        instances,
    })
}

/// Keys of threads and phases that are no events. Who runs where and how urgently is the policy's to say here.
const ATTRIBUTES: [&str; 14] = [
    "instance",
    "loop",
    "phases",
    "policy",
    "priority",
    "cpus",
    "nodes_membind",
    "delay",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "dl-reclaim",
    "util_min",
    "util_max",
];

/// What a phase that begins at `start` runs for, and its timer's period.
fn phase(keys: &Object, start: usize) -> Read<(Duration, Duration)> {
    let (mut wcet, mut period) = (Duration::ZERO, None);
    for property in &keys.properties {
        let (key, at) = (property.name.as_str(), property.range.start);
        // Keys may be numbered to be unique.
        let event = key.trim_end_matches(|c: char| c.is_ascii_digit());
        match event {
            "run" | "runtime" => match wcet.checked_add(micros(property)?) {
                Some(sum) => wcet = sum,
                None => return remark(at, format!("`{key}` is too long")),
            },
            "timer" if period.is_some() => {
                return remark(at, format!("event `{key}`: it waits for more than one timer"));
            }
            "timer" => match property.value.as_object().and_then(|timer| get(timer, "period")) {
                Some(of) => period = Some(micros(of)?).filter(|p| !p.is_zero()),
                None => return remark(at, format!("`{key}` has no period")),
            },
            "sleep" if value_of(&property.value) == Some(0.0) => {}
            "sleep" => {
                let why = "it sleeps, and without a timer alone its period depends on how long it runs";
                return remark(at, format!("event `{key}`: {why}"));
            }
            "exec" | "period" | "deadline" => {
                return remark(at, format!("`{key}` is of a format before rt-app 1.0"));
            }
            _ if ATTRIBUTES.contains(&key) => {}
            _ => return remark(at, format!("event `{key}` is no part of a sporadic task")),
        }
    }
    match period {
        Some(period) => Ok((wcet, period)),
        None => remark(start, "it has no event `timer`"),
    }
}

/// The property of this name; of several the last one.
fn get<'o, 'a>(object: &'o Object<'a>, key: &str) -> Option<&'o ObjectProp<'a>> {
    object.properties.iter().rev().find(|p| p.name.as_str() == key)
}

fn value_of(node: &Node) -> Option<f64> {
    node.as_number_lit()?.value.parse().ok()
}

/// Whole microseconds.
fn micros(property: &ObjectProp) -> Read<Duration> {
    // Beyond this a double does not hold every whole number.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let (key, at) = (property.name.as_str(), property.range.start);
    match value_of(&property.value) {
        Some(us) if us.fract() == 0.0 && (0.0..MOST).contains(&us) => match (us as u64).checked_mul(1000) {
            Some(ns) => Ok(Duration::from_nanos(ns)),
            None => remark(at, format!("`{key}` is too long")),
        },
        _ => remark(at, format!("`{key}` is no number of microseconds")),
    }
}

/// Where lines begin.
struct Places<'t> {
    text: &'t str,
    lines: Vec<usize>,
}

impl<'t> Places<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Places { text, lines }
    }

    /// Line and column of a byte, as people count.
    fn name(&self, at: usize) -> String {
        let line = self.lines.partition_point(|begin| *begin <= at);
        let begin = self.lines[line - 1];
        let column = self.text[begin..at].chars().count() + 1;
        format!("line {line}, column {column}")
    }
}

/// Writes a file for rt-app: each task a thread of `SCHED_DEADLINE`, which alone has a place for deadlines.
///
/// Its budget is the WCET, rounded up to microseconds, of which a job runs for nine tenths: rt-app's calibration is about so
/// exact, and the kernel makes a job wait for the next period when its budget is used up. Releases do not shift when a job is
/// late (an absolute timer of its own for each).
/// What has no place there (working sets, groups, workloads) is named in the notes.
///
/// # Errors
/// A period, deadline or phase that is no whole number of microseconds.
pub fn to_rt_app(set: &TaskSet, duration: Duration) -> Result<(String, Vec<String>)> {
    let (mut threads, mut notes) = (Vec::new(), Vec::new());
    for id in set.ids() {
        let (timing, name) = (set.timings()[id.index()], set.name(id));
        let whole = |what: &str, time: Duration| match time.nanos() % 1000 {
            0 => Ok(time.nanos() / 1000),
            _ => Err(
                Error::new(format!("its {what} {time} is no whole number of microseconds"))
                    .at(format!("task {name}"))
                    .remedy("rt-app knows no shorter time: round it"),
            ),
        };
        let wcet = timing.wcet.nanos().div_ceil(1000);
        let mut thread = json!({
            "policy": "SCHED_DEADLINE",
            "dl-runtime": wcet,
            "dl-period": whole("period", timing.period)?,
            "dl-deadline": whole("deadline", timing.deadline)?,
            "loop": -1,
            "run": (u128::from(wcet) * 9).div_ceil(10) as u64,
            "timer": { "ref": "unique", "period": whole("period", timing.period)?, "mode": "absolute" },
        });
        if timing.deadline > timing.period {
            notes.push(format!(
                "task {name}: SCHED_DEADLINE refuses a deadline after the period; rt-app will say so"
            ));
        }
        if let Some(details) = set.details(id) {
            if !details.phase.is_zero() {
                thread["delay"] = whole("phase", details.phase)?.into();
            }
            let kept = Details {
                phase: details.phase,
                ..Details::named(name.clone())
            };
            if *details != kept {
                notes.push(format!(
                    "task {name}: only its times have a place in rt-app's format; it runs a loop of rt-app's own"
                ));
            }
        }
        threads.push((name, thread));
    }
    if !set.best_effort().is_empty() {
        notes.push("best-effort work is left out: it has no times".to_owned());
    }
    let file = File {
        global: json!({
            "duration": duration.nanos().div_ceil(1_000_000_000),
            "calibration": "CPU0",
            "default_policy": "SCHED_OTHER",
            "log_basename": "rt-app",
        }),
        tasks: InOrder(threads),
    };
    let text = serde_json::to_string_pretty(&file)
        .map_err(|e| Error::new(format!("the set cannot be written as JSON: {e}")))?;
    Ok((text + "\n", notes))
}

/// A file as it is written.
#[derive(Serialize)]
struct File {
    global: Value,
    tasks: InOrder,
}

/// An object whose keys stay in their order: tasks keep their places, by which ties are broken.
struct InOrder(Vec<(String, Value)>);

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskId;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn timings(imported: &Imported) -> Vec<(String, u64, u64, u64)> {
        let of = |id: TaskId| {
            let t = imported.set.timings()[id.index()];
            let us = |d: Duration| d.nanos() / 1000;
            (imported.set.name(id), us(t.wcet), us(t.period), us(t.deadline))
        };
        imported.set.ids().map(of).collect()
    }

    #[test]
    fn threads_that_run_and_wait_for_a_timer_are_tasks() {
        let imported = from_rt_app(
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
        let imported = from_rt_app(&phases(30_000)).unwrap();
        assert_eq!(timings(&imported), [("t".to_owned(), 27_000, 30_000, 30_000)]);
        assert_eq!(
            imported.notes,
            [
                "line 1, column 18: thread `t` ends after 1 rounds there, and goes on here",
                "line 1, column 29: thread `t` keeps to some processors there; here the policy and its assignment say \
                 where tasks run",
            ]
        );
        let e = from_rt_app(&phases(40_000)).unwrap_err().to_string();
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
            (format!(r#""run": 10, "lock": "m", {timer}"#), "event `lock`"),
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
            (format!(r#""run": 2000, "instance": 0, {timer}"#), "`instance`"),
            (r#""exec": 10, "period": 100"#.to_owned(), "before rt-app 1.0"),
            (timer.to_owned(), "WCET"),
        ] {
            let alone = from_rt_app(&format!(r#"{{"tasks": {{"odd": {{{events}}} }} }}"#));
            let e = alone.unwrap_err().to_string();
            assert!(
                e.contains("thread `odd`") && e.to_lowercase().contains(&why.to_lowercase()),
                "{why}: {e}"
            );
            let good = r#""good": {"run": 10, "timer": {"ref": "x", "period": 100}}"#;
            let imported =
                from_rt_app(&format!(r#"{{"tasks": {{"odd": {{{events}}}, {good} }} }}"#)).unwrap();
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
                    "lock": "m", "timer": { "ref": "x", "period": 1000 } },
                "twice": { "loop": 3, "dl-runtime": 5, "run": 10,
                    "timer": { "ref": "x", "period": 1000 } },
                "ünder": { "phases": { "ä": { "run": 1, "timer": { "ref": "y", "period": 0.5 } } } },
                "odd": 7, "none": { "run": 10 },
                "many": { "run": 10, "timer": { "ref": "x", "period": 100 }, "instance": 0 }
            }
        }"#;
        insta::assert_snapshot!(from_rt_app(text).unwrap().notes.join("\n"), @r"
        line 4, column 21: thread `wäit` is left out: event `lock` is no part of a sporadic task
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
            let e = from_rt_app(text).unwrap_err().to_string();
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
        let e = from_rt_app(&deep).unwrap_err().to_string();
        assert!(e.contains("nesting"), "{e}");
        for text in [
            "",
            "{}",
            "[]",
            r#"{"tasks": []}"#,
            r#"{"tasks": {}}"#,
            r#"{"tasks": {"a": 1}}"#,
        ] {
            assert!(from_rt_app(text).is_err(), "{text}");
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
            (timing(9_000, 33_000, 30_000), details("b \"quoted\"", us(0))),
        ];
        let set = TaskSet::new(tasks).unwrap();
        let (text, notes) = to_rt_app(&set, Duration::from_secs(2)).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let again = from_rt_app(&text).unwrap();
        assert!(again.notes.is_empty(), "{:?}", again.notes);
        assert_eq!(again.set, set);
    }

    #[test]
    fn tasks_keep_their_places() {
        let text = r#"{"tasks": {"t": {"instance": 12, "run": 10, "timer": {"ref": "x", "period": 100}},
            "a": {"run": 10, "timer": {"ref": "x", "period": 100}}}}"#;
        let read = from_rt_app(text).unwrap().set;
        assert_eq!(
            (read.name(crate::TaskId(10)), read.name(crate::TaskId(12))),
            ("t-10".to_owned(), "a".to_owned())
        );
        let (written, _) = to_rt_app(&read, Duration::from_secs(1)).unwrap();
        assert_eq!(from_rt_app(&written).unwrap().set, read);
    }

    #[test]
    fn what_has_no_place_is_named_and_what_cannot_be_is_refused() {
        let soft = Details {
            soft: true,
            ..Details::named("soft")
        };
        let set = TaskSet::new(vec![(Timing::implicit(Duration::from_nanos(1500), us(10)), soft)]).unwrap();
        let (text, notes) = to_rt_app(&set, Duration::from_secs(1)).unwrap();
        assert!(text.contains("\"dl-runtime\": 2"), "rounded up: {text}");
        assert!(notes[0].contains("task soft"), "{notes:?}");
        let odd = TaskSet::from_timings(vec![Timing::implicit(us(1), Duration::from_nanos(10_500))]).unwrap();
        let e = to_rt_app(&odd, Duration::from_secs(1)).unwrap_err().to_string();
        assert!(e.contains("period") && e.contains("microseconds"), "{e}");
    }
}
