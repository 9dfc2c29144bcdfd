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
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;

/// What came of a file of rt-app.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The periodic threads.
    pub set: TaskSet,
    /// What was left out or is different here, a sentence each, with the thread's name.
    pub notes: Vec<String>,
}

/// More instances of one thread are a mistake.
const MOST_INSTANCES: u64 = 10_000;

/// Reads a file of rt-app.
///
/// # Errors
/// It is no such file, or holds no periodic thread; then all reasons are told.
pub fn from_rt_app(text: &str) -> Result<Imported> {
    let root: Json = serde_json::from_str(&strict(text)).map_err(|e| {
        Error::new(format!("this is no JSON: {e}"))
            .at(format!("line {}", e.line()))
            .remedy("give a file for rt-app, or a task set in TOML")
    })?;
    let Some(Json::Object(threads)) = root.get("tasks") else {
        return Err(Error::new("there is no `tasks` object").remedy("give a file for rt-app"));
    };
    let (mut tasks, mut notes) = (Vec::new(), Vec::new());
    for (name, thread) in threads {
        match periodic(name, thread, &mut notes) {
            Ok(Thread { task, instances: 1 }) => tasks.push(task),
            Ok(Thread { task, instances }) => {
                for instance in 0..instances {
                    let name = format!("{name}-{instance}");
                    let details = task.1.clone();
                    tasks.push((task.0, Details { name, ..details }));
                }
            }
            Err(why) => notes.push(format!("thread `{name}` is left out: {why}")),
        }
    }
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
fn periodic(name: &str, thread: &Json, notes: &mut Vec<String>) -> std::result::Result<Thread, String> {
    let Json::Object(keys) = thread else {
        return Err("it is no object".to_owned());
    };
    let number = |key: &str| thread.get(key).map(|v| micros(key, v)).transpose();
    // With phases the events are theirs; without, the thread is its only phase.
    let phases = match thread.get("phases") {
        None => vec![phase(keys)?],
        Some(Json::Object(phases)) => phases
            .iter()
            .map(|(name, keys)| match keys {
                Json::Object(keys) => phase(keys).map_err(|why| format!("phase `{name}`: {why}")),
                _ => Err(format!("phase `{name}` is no object")),
            })
            .collect::<std::result::Result<_, String>>()?,
        Some(_) => return Err("`phases` is no object".to_owned()),
    };
    let (wcet, period) = phases
        .iter()
        .copied()
        .reduce(|a, b| (a.0.max(b.0), if a.1 == b.1 { a.1 } else { Duration::ZERO }))
        .ok_or("it has no phase")?;
    if period.is_zero() {
        return Err("its phases have different periods".to_owned());
    }
    let budget = number("dl-runtime")?.unwrap_or_default();
    if wcet > budget && !budget.is_zero() {
        notes.push(format!(
            "thread `{name}` runs for {wcet} a job, more than its dl-runtime of {budget}: the WCET is what it runs for"
        ));
    }
    let timing = Timing {
        wcet: wcet.max(budget),
        period,
        deadline: number("dl-deadline")?.filter(|d| !d.is_zero()).unwrap_or(period),
    };
    check_timing(&timing).map_err(|e| e.to_string())?;
    if let Some(Json::Number(times)) = thread.get("loop")
        && *times > 0.0
    {
        notes.push(format!(
            "thread `{name}` ends after {times} rounds there, and goes on here"
        ));
    }
    if thread.get("cpus").is_some() {
        notes.push(format!(
            "thread `{name}` keeps to some processors there; here the policy and its assignment say where tasks run"
        ));
    }
    if thread.get("dl-reclaim").is_some() {
        notes.push(format!(
            "thread `{name}` says `dl-reclaim`, which takes what others leave of their budgets there; here its budget is its WCET"
        ));
    }
    let instances = match thread.get("instance") {
        None => 1,
        Some(Json::Number(n)) if n.fract() == 0.0 && (1.0..=MOST_INSTANCES as f64).contains(n) => *n as u64,
        Some(_) => return Err(format!("`instance` is no number from 1 to {MOST_INSTANCES}")),
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

/// What a phase runs for and its timer's period.
fn phase(keys: &[(String, Json)]) -> std::result::Result<(Duration, Duration), String> {
    let (mut wcet, mut period) = (Duration::ZERO, None);
    for (key, value) in keys {
        // Keys may be numbered to be unique.
        let event = key.trim_end_matches(|c: char| c.is_ascii_digit());
        match event {
            "run" | "runtime" => {
                wcet = wcet
                    .checked_add(micros(key, value)?)
                    .ok_or_else(|| format!("`{key}` is too long"))?;
            }
            "timer" if period.is_some() => {
                return Err(format!("event `{key}`: it waits for more than one timer"));
            }
            "timer" => {
                let of = value
                    .get("period")
                    .ok_or_else(|| format!("`{key}` has no period"))?;
                period = Some(micros(key, of)?).filter(|p| !p.is_zero());
            }
            "sleep" if matches!(value, Json::Number(n) if *n == 0.0) => {}
            "sleep" => {
                return Err(format!(
                    "event `{key}`: it sleeps, and without a timer alone its period depends on how long it runs"
                ));
            }
            "exec" | "period" | "deadline" => {
                return Err(format!("`{key}` is of a format before rt-app 1.0"));
            }
            _ if ATTRIBUTES.contains(&key.as_str()) => {}
            _ => return Err(format!("event `{key}` is no part of a sporadic task")),
        }
    }
    let period = period.ok_or("it has no event `timer`")?;
    Ok((wcet, period))
}

/// Whole microseconds.
fn micros(key: &str, value: &Json) -> std::result::Result<Duration, String> {
    // Beyond this a double does not hold every whole number.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        Json::Number(us) if us.fract() == 0.0 && (0.0..MOST).contains(us) => {
            let ns = (*us as u64).checked_mul(1000);
            ns.map(Duration::from_nanos)
                .ok_or_else(|| format!("`{key}` is too long"))
        }
        _ => Err(format!("`{key}` is no number of microseconds")),
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

/// Without comments, and without commas before closing brackets; everything else where it was, for line numbers.
fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // Where the latest comma stands, if nothing but white space has come since.
    let mut comma = None;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('"', _) => {
                comma = None;
                out.push(c);
                let mut escaped = false;
                for c in rest.by_ref() {
                    out.push(c);
                    if c == '"' && !escaped {
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
            }
            ('/', Some('/')) => {
                while rest.peek().is_some_and(|c| *c != '\n') {
                    rest.next();
                }
            }
            ('/', Some('*')) => {
                rest.next();
                let mut before = ' ';
                for c in rest.by_ref() {
                    if c == '\n' {
                        out.push(c);
                    }
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out
}

/// JSON whose objects keep all of their keys, in order.
#[derive(Clone, PartialEq, Debug)]
enum Json {
    Object(Vec<(String, Json)>),
    Number(f64),
    /// Nothing that is looked at.
    Other,
}

impl Json {
    /// The value of a key; of several the last one.
    fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(keys) => keys.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Json, A::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    keys.push(entry);
                }
                Ok(Json::Object(keys))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Json, A::Error> {
                while seq.next_element::<Json>()?.is_some() {}
                Ok(Json::Other)
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> std::result::Result<Json, E> {
                self.visit_f64(n as f64)
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> std::result::Result<Json, E> {
                self.visit_f64(n as f64)
            }
            fn visit_f64<E: serde::de::Error>(self, n: f64) -> std::result::Result<Json, E> {
                match n.is_finite() {
                    true => Ok(Json::Number(n)),
                    false => Err(E::custom("a number is too large")),
                }
            }
            fn visit_str<E>(self, _: &str) -> std::result::Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_bool<E>(self, _: bool) -> std::result::Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_unit<E>(self) -> std::result::Result<Json, E> {
                Ok(Json::Other)
            }
        }
        deserializer.deserialize_any(Any).map_err(D::Error::custom)
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
        assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
        assert!(imported.notes[0].contains("ends after 1 rounds"));
        let e = from_rt_app(&phases(40_000)).unwrap_err().to_string();
        assert!(e.contains("thread `t`") && e.contains("different periods"), "{e}");
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
    fn what_is_no_file_of_rt_app_is_an_error_with_its_line() {
        let e = from_rt_app("{\n\n\"tasks\" 1}").unwrap_err().to_string();
        assert!(e.contains("line 3"), "{e}");
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
