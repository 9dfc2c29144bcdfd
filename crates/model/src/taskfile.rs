//! Task sets in files: TOML for people, JSON lines for machines (DESIGN, "Task sets").

use crate::colors::Colors;
use crate::cpus::CpuSet;
use crate::error::{Error, Result, nearest};
use crate::input::{Document, Table, Value};
use crate::size::Bytes;
use crate::task::{Details, Extras, TaskId, TaskSet, Timing, check_timing};
use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

mod best_effort;
mod id;
mod placing;
mod trigger;
mod workload;

const TASK_KEYS: [&str; 15] = [
    "name", "wcet", "period", "deadline", "wss", "group", "phase", "soft", "workload", "colors", "trigger",
    "cpus", "priority", "blocking", "jitter",
];

/// Reads a task set from TOML.
///
/// # Errors
/// Anything that is not a task set, with line and key.
///
/// ```
/// let set = model::taskfile::from_toml(r#"
///     [[task]]
///     name = "camera"
///     wcet = "4ms"
///     period = "33ms"
/// "#)?;
/// assert_eq!(set.len(), 1);
/// # Ok::<(), model::Error>(())
/// ```
pub fn from_toml(text: &str) -> Result<TaskSet> {
    let document = Document::parse(text)?;
    let root = document.root();
    root.only(&["task", "best_effort"])?;
    let tables = root
        .get("task")
        .map(|v| v.list())
        .transpose()?
        .unwrap_or_default();
    let mut tasks = Vec::with_capacity(tables.len());
    let mut lines_of_names = std::collections::HashMap::new();
    for (index, value) in tables.iter().enumerate() {
        let table = value.table()?;
        let task = task_of(&table, index)?;
        if let Some(first) = lines_of_names.insert(task.1.name.clone(), table.line()) {
            return Err(Error::new(format!(
                "the name `{}` is taken by the task of line {first}",
                task.1.name
            ))
            .at(format!(
                "line {}",
                table.get("name").map_or(table.line(), |v| v.line())
            ))
            .remedy("give each task its own name"));
        }
        tasks.push(task);
    }
    let set = TaskSet::new(tasks).map_err(|e| {
        if tables.is_empty() {
            e.remedy("add a `[[task]]` table")
        } else {
            e
        }
    })?;
    match root.get("best_effort") {
        None => Ok(set),
        Some(value) => best_effort::read(set, &value),
    }
}

fn task_of(table: &Table<'_, '_>, index: usize) -> Result<(Timing, Details)> {
    table.only(&TASK_KEYS)?;
    let period: Duration = table.need("period")?.parsed()?;
    let timing = Timing {
        wcet: table.need("wcet")?.parsed()?,
        period,
        deadline: table
            .get("deadline")
            .map(|v| v.parsed())
            .transpose()?
            .unwrap_or(period),
    };
    check_timing(&timing).map_err(|e| match e.place() {
        // The key that is wrong has a line of its own, unless the deadline was left to its default.
        key if table.get(key).is_some() => e
            .clone()
            .at(format!("line {}", table.get(key).map_or(0, |v| v.line()))),
        _ => e.at(format!("line {}", table.line())),
    })?;
    let name = match table.get("name") {
        Some(v) => match v.text()? {
            "" => return Err(v.error("the name is empty").remedy("leave it out, or give one")),
            name => name.to_owned(),
        },
        None => format!("T{}", index + 1),
    };
    let details = Details {
        name,
        wss: table.get("wss").map(|v| v.parsed()).transpose()?,
        group: table
            .get("group")
            .map(|v| v.text().map(str::to_owned))
            .transpose()?,
        phase: table
            .get("phase")
            .map(|v| v.parsed())
            .transpose()?
            .unwrap_or_default(),
        soft: table
            .get("soft")
            .map(|v| v.boolean())
            .transpose()?
            .unwrap_or(false),
        workload: table.get("workload").map(|v| workload::read(&v)).transpose()?,
        colors: table.get("colors").map(|v| colors_of(&v)).transpose()?,
        trigger: table.get("trigger").map(|v| trigger::read(&v)).transpose()?,
        cpus: table.get("cpus").map(|v| placing::cpus(&v)).transpose()?,
        priority: table.get("priority").map(|v| placing::priority(&v)).transpose()?,
        extras: placing::extras(table)?,
    };
    Ok((timing, details))
}

fn colors_of(value: &Value<'_, '_>) -> Result<Colors> {
    let colors: Colors = value.parsed()?;
    if colors.is_empty() {
        return Err(value
            .error("no colors are named")
            .remedy("leave it out, or name some, such as `0-3`"));
    }
    Ok(colors)
}

/// Writes a task set as TOML that [`from_toml`] reads back to an equal one.
pub fn to_toml(set: &TaskSet) -> String {
    #[derive(Serialize)]
    struct Out {
        name: String,
        wcet: Duration,
        period: Duration,
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Duration>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wss: Option<Bytes>,
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Duration>,
        #[serde(skip_serializing_if = "Option::is_none")]
        soft: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        workload: Option<toml::Table>,
        #[serde(skip_serializing_if = "Option::is_none")]
        colors: Option<Colors>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<toml::Table>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cpus: Option<CpuSet>,
        #[serde(skip_serializing_if = "Option::is_none")]
        priority: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        blocking: Option<Duration>,
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter: Option<Duration>,
    }
    #[derive(Serialize)]
    struct File {
        task: Vec<Out>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        best_effort: Vec<toml::Table>,
    }
    let task = set
        .ids()
        .map(|id| {
            let timing = set.timings()[id.index()];
            let d = set
                .details(id)
                .cloned()
                .unwrap_or_else(|| Details::named(set.name(id)));
            Out {
                name: d.name,
                wcet: timing.wcet,
                period: timing.period,
                deadline: (!timing.has_implicit_deadline()).then_some(timing.deadline),
                wss: d.wss,
                group: d.group,
                phase: (!d.phase.is_zero()).then_some(d.phase),
                soft: d.soft.then_some(true),
                workload: d.workload.map(|w| workload::write(&w)),
                colors: d.colors,
                trigger: d.trigger.map(|t| trigger::write(&t)),
                cpus: d.cpus,
                priority: d.priority,
                blocking: Some(d.extras.blocking).filter(|b| !b.is_zero()),
                jitter: Some(d.extras.jitter).filter(|j| !j.is_zero()),
            }
        })
        .collect();
    // Plain strings, numbers and tables: there is nothing in it that TOML cannot hold.
    let best_effort = set.best_effort().iter().map(best_effort::write).collect();
    toml::to_string(&File { task, best_effort }).unwrap_or_default()
}

/// One line of a batch file.
#[derive(Clone, PartialEq, Debug)]
pub struct BatchSet {
    /// Whatever identifies the set; answered as it came.
    pub id: serde_json::Value,
    /// Number of processors.
    pub m: u32,
    /// The tasks.
    pub set: TaskSet,
    /// For simulation: how long, instead of one hyperperiod.
    pub horizon: Option<Duration>,
    /// For simulation under `p-edf`: the processor of every task.
    pub assign: Option<Vec<u32>>,
}

/// The most processors that a batch line may ask for.
pub const MAX_PROCESSORS: u32 = 8192;

#[derive(Deserialize)]
struct BatchLine<'a> {
    #[serde(default, deserialize_with = "id::read")]
    id: serde_json::Value,
    m: u32,
    #[serde(borrow)]
    tasks: Vec<BatchTask<'a>>,
    #[serde(default)]
    horizon_us: Option<u64>,
    #[serde(default)]
    assign: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchTask<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    wcet: u64,
    period: u64,
    deadline: Option<u64>,
    #[serde(default)]
    phase: u64,
    #[serde(default)]
    wss: Option<u64>,
    #[serde(default)]
    priority: Option<u32>,
    #[serde(default)]
    blocking: u64,
    #[serde(default)]
    jitter: u64,
}

impl BatchTask<'_> {
    fn has_no_extras(&self) -> bool {
        self.priority.is_none() && self.blocking == 0 && self.jitter == 0
    }
}

/// The error of an unknown key with the nearest known one, from what the JSON reader says of it.
fn meant(cause: &str) -> Option<Error> {
    let names: Vec<&str> = cause
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2)
        .collect();
    let (written, known) = names.split_first()?;
    Some(Error::new(format!("unknown key `{written}`")).remedy(
        match nearest(written, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known keys are {}", known.join(", ")),
        },
    ))
}

/// Reads one line of a batch file: all times in integer microseconds, `wss` in bytes.
///
/// Keys of a line other than the known ones are let through: result files carry their own next to the set. Keys of a
/// task are not. A WCET above its deadline is let through too: the set is judged, and the answer is no.
///
/// # Errors
/// Not JSON, not a set; names the column or the task, not the line, which the caller knows.
pub fn from_batch_line(line: &str) -> Result<BatchSet> {
    if let Some(at) = line.find('\0') {
        return Err(Error::new("the line holds a NUL byte")
            .at(format!("column {}", at + 1))
            .remedy("give a text file"));
    }
    let parsed: BatchLine<'_> = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        let cause = text.split(" at line ").next().unwrap_or(&text);
        if let Some(near) = meant(cause) {
            return near.at(format!("column {}", e.column()));
        }
        let cause = cause
            .replace("expected struct BatchLine", "expected a task set")
            .replace("expected struct BatchTask", "expected a task")
            .replace("expected u64", "expected a whole number of at least 0")
            .replace("expected u32", "expected a whole number of at least 0");
        Error::new(cause)
            .at(format!("column {}", e.column()))
            .remedy("a line is {\"id\": …, \"m\": …, \"tasks\": [{\"wcet\": …, \"period\": …, \"deadline\": …}, …]}, times in integer microseconds")
    })?;
    if parsed.m == 0 || parsed.m > MAX_PROCESSORS {
        return Err(Error::new(format!("{} processors", parsed.m))
            .at("`m`")
            .remedy(format!("give a number from 1 to {MAX_PROCESSORS}")));
    }
    let micros = |us: u64, key: &str, task: usize| {
        us.checked_mul(1_000).map(Duration::from_nanos).ok_or_else(|| {
            Error::new(format!("{us} us is too long"))
                .at(format!("task {}, `{key}`", task + 1))
                .remedy("times must stay below 584 years")
        })
    };
    let plain = parsed
        .tasks
        .iter()
        .all(|t| t.name.is_none() && t.phase == 0 && t.wss.is_none() && t.has_no_extras());
    let mut timings = Vec::with_capacity(parsed.tasks.len());
    for (index, t) in parsed.tasks.iter().enumerate() {
        timings.push(Timing {
            wcet: micros(t.wcet, "wcet", index)?,
            period: micros(t.period, "period", index)?,
            deadline: micros(t.deadline.unwrap_or(t.period), "deadline", index)?,
        });
    }
    let set = TaskSet::to_judge(timings)?;
    let set = if plain {
        set
    } else {
        let details = parsed.tasks.iter().enumerate().map(|(index, t)| {
            Ok(Details {
                wss: t.wss.map(Bytes::new),
                phase: micros(t.phase, "phase", index)?,
                priority: t.priority,
                extras: Extras {
                    blocking: micros(t.blocking, "blocking", index)?,
                    jitter: micros(t.jitter, "jitter", index)?,
                },
                ..Details::named(
                    t.name
                        .clone()
                        .map_or_else(|| format!("T{}", index + 1), Cow::into_owned),
                )
            })
        });
        set.with_details(details.collect::<Result<Vec<_>>>()?)?
    };
    Ok(BatchSet {
        id: parsed.id,
        m: parsed.m,
        set,
        horizon: parsed
            .horizon_us
            .map(|us| micros(us, "horizon_us", 0))
            .transpose()?,
        assign: parsed.assign,
    })
}

/// Writes a set as one line of a batch file, without the newline; times must be whole microseconds.
///
/// # Errors
/// A time that is not a whole number of microseconds.
pub fn to_batch_line(id: &serde_json::Value, m: u32, set: &TaskSet) -> Result<String> {
    use std::fmt::Write;
    let mut line = format!("{{\"id\":{id},\"m\":{m},\"tasks\":[");
    let micros = |d: Duration| match d.nanos() % 1_000 {
        0 => Ok(d.nanos() / 1_000),
        _ => Err(Error::new(format!("{d} is not a whole number of microseconds"))
            .remedy("write the set as TOML, or generate it with whole microseconds")),
    };
    for (index, t) in set.timings().iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "{comma}{{\"wcet\":{},\"period\":{},\"deadline\":{}",
            micros(t.wcet)?,
            micros(t.period)?,
            micros(t.deadline)?
        );
        let details = set.details(TaskId(index as u32));
        if let Some(priority) = details.and_then(|d| d.priority) {
            let _ = write!(line, ",\"priority\":{priority}");
        }
        let extras = details.map_or(Extras::NONE, |d| d.extras);
        for (key, time) in [("blocking", extras.blocking), ("jitter", extras.jitter)] {
            if !time.is_zero() {
                let _ = write!(line, ",\"{key}\":{}", micros(time)?);
            }
        }
        line.push('}');
    }
    line.push_str("]}");
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMERA: &str = r#"
[[task]]
name = "camera"
wcet = "4ms"
period = "33ms"
wss = "256KiB"
group = "video"
workload = { kind = "walk", write_ratio = 0.25, pattern = "random" }

[[task]]
wcet = "250us"
period = "5ms"
deadline = "4ms"
phase = "1ms"
colors = "0-3,8"
workload = { exec = ["./decode", "clip.mkv"] }
cpus = "0-3,8"
priority = 80
blocking = "40us"
jitter = "1ms"
"#;

    #[test]
    fn a_set_reads_and_writes_back() {
        let set = from_toml(CAMERA).unwrap();
        assert_eq!(set.len(), 2);
        assert_eq!(
            set.timings()[0],
            Timing::implicit(Duration::from_millis(4), Duration::from_millis(33))
        );
        assert_eq!(set.name(crate::TaskId(1)), "T2");
        assert_eq!(
            set.details(crate::TaskId(1)).unwrap().colors,
            "0x10f".parse().ok()
        );
        assert_eq!(set.name(set.by_priority()[0]), "T2");
        assert_eq!(set.extras()[0], Extras::NONE);
        assert_eq!(set.extras()[1].blocking, Duration::from_micros(40));
        assert_eq!(set.extras()[1].jitter, Duration::from_millis(1));
        assert_eq!(set.cpus(crate::TaskId(1)).unwrap().to_string(), "0-3,8");
        assert_eq!(from_toml(&to_toml(&set)).unwrap(), set);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let one = |body: &str| from_toml(&format!("[[task]]\n{body}")).unwrap_err().to_string();
        for (body, message) in [
            (
                "wcett = \"1ms\"\nperiod = \"2ms\"",
                "line 2: unknown key `wcett`; did you mean `wcet`?",
            ),
            (
                "wcet = \"1ms\"\n\nperiod = \"0ms\"",
                "line 4: period: the period is zero; give a positive period",
            ),
            (
                "wcet = \"-1ms\"\nperiod = \"2ms\"",
                "line 2, `wcet`: `-1ms` is negative; give a time of at least zero",
            ),
            (
                "wcet = 4\nperiod = \"2ms\"",
                "line 2, `wcet`: `4` has no unit; write `ns`, `us`, `ms`, `s`, `min` or `h` behind the number",
            ),
            (
                "wcet = \"3ms\"\nperiod = \"2ms\"",
                "line 2: wcet: the WCET 3ms is above the deadline 2ms; no scheduler can meet that: shorten the WCET or lengthen the deadline",
            ),
            (
                "wcet = \"9999999999999s\"\nperiod = \"2ms\"",
                "line 2, `wcet`: `9999999999999s` is too long; times must stay below 584 years (2^64 ns)",
            ),
            (
                "wcet = \"1ms\"\nperiod = \"2ms\"\ncolors = \"3-1\"",
                "line 4, `colors`: `3-1` is not a set of colors; write numbers and ranges up to 4095, such as `0-3,8`, or a bitmap, such as `0x10f`",
            ),
            (
                "wcet = \"1ms\"\nperiod = \"2ms\"\ncolors = \"\"",
                "line 4, `colors`: no colors are named; leave it out, or name some, such as `0-3`",
            ),
            (
                "wcet = \"1ms\"\nperiod = \"2ms\"\ncpus = \"\"",
                "line 4, `cpus`: no processors are named; leave it out, or name some, such as `0-3,8`",
            ),
            (
                "wcet = \"1ms\"\nperiod = \"2ms\"\npriority = -1",
                "line 4, `priority`: `-1` is not a priority; give a whole number up to 4294967295, the larger the more urgent",
            ),
            (
                "wcet = \"1ms\"\nperiod = \"2ms\"\njitter = \"1001us\"",
                "line 4, `jitter`: a job that is released 1.001ms after its arrival and runs for 1ms ends after its deadline 2ms; shorten the jitter or the WCET, or lengthen the deadline",
            ),
            (
                "period = \"2ms\"",
                "line 1: the key `wcet` is missing; add `wcet = …`",
            ),
            (
                "name = \"a\"\nwcet = \"1ms\"\nperiod = \"2ms\"\n[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"2ms\"",
                "line 6: the name `a` is taken by the task of line 1; give each task its own name",
            ),
        ] {
            assert_eq!(one(body), message);
        }
        let e = from_toml("[[task]\n").unwrap_err().to_string();
        assert!(e.starts_with("line 1: "), "{e}");
    }

    #[test]
    fn batch_lines_read_and_write_back() {
        let line = r#"{"id":7,"m":4,"tasks":[{"wcet":4000,"period":33000,"deadline":33000},{"wcet":1,"period":5,"deadline":4}]}"#;
        let more = r#"{"id":7,"m":4,"tasks":[{"wcet":1,"period":5,"deadline":4,"priority":3,"blocking":2,"jitter":1}]}"#;
        for (line, tasks) in [(line, 2), (more, 1)] {
            let b = from_batch_line(line).unwrap();
            assert_eq!((b.m, b.set.len()), (4, tasks));
            assert_eq!(to_batch_line(&b.id, b.m, &b.set).unwrap(), line);
        }
    }

    /// Each value of an `id` takes a hundred times its text in memory.
    #[test]
    fn an_id_may_be_anything_small() {
        let line = |id: &str| format!(r#"{{"id":{id},"m":1,"tasks":[{{"wcet":1,"period":2}}]}}"#);
        for id in [
            "null",
            "-7",
            "18446744073709551615",
            "0.5",
            "true",
            r#""a b""#,
            r#"{"a":[1,{"b":null}]}"#,
        ] {
            let read = from_batch_line(&line(id)).unwrap().id;
            assert_eq!(read, serde_json::from_str::<serde_json::Value>(id).unwrap());
        }
        let many = format!("[{}1]", r#"{"a":1},"#.repeat(id::MOST_VALUES));
        let e = from_batch_line(&line(&many)).unwrap_err().to_string();
        assert!(e.contains("the `id` has more than 1000 values"), "{e}");
    }

    /// A set of so many tasks would take gigabytes.
    #[test]
    fn a_text_that_is_too_large_is_refused_before_it_is_parsed() {
        let text = "[[task]]\n".repeat(crate::input::MAX_DOCUMENT / 9 + 1);
        assert_eq!(
            from_toml(&text).unwrap_err().to_string(),
            "the text is larger than 8 MiB; split it; `check` and `simulate` take task sets of any number in a batch, \
             one a line of JSON"
        );
    }

    #[test]
    fn batch_lines_that_are_no_sets_are_refused() {
        for (line, cause) in [
            ("{", "EOF"),
            (
                r#"{"id":1,"m":0,"tasks":[{"wcet":1,"period":2}]}"#,
                "`m`: 0 processors",
            ),
            (r#"{"id":1,"m":2,"tasks":[]}"#, "no tasks"),
            (
                r#"{"id":1,"m":2,"tasks":[{"wcet":1,"period":0}]}"#,
                "task 1: period: the period is zero",
            ),
            (
                r#"{"id":1,"m":2,"tasks":[{"wcet":1.5,"period":3}]}"#,
                "invalid type: floating point",
            ),
            (
                r#"{"id":1,"m":2,"tasks":[{"wcet":-1,"period":3}]}"#,
                "invalid value: integer `-1`",
            ),
            (
                r#"{"id":1,"m":2,"tasks":[{"wcet":1,"period":3,"dedline":3}]}"#,
                "unknown key `dedline`; did you mean `deadline`?",
            ),
            ("null", "expected a task set"),
            ("{\"id\":1,\0", "column 9: the line holds a NUL byte"),
            (
                r#"{"id":1,"m":2,"tasks":[{"wcet":1,"period":18446744073709551615}]}"#,
                "too long",
            ),
        ] {
            let e = from_batch_line(line).unwrap_err().to_string();
            assert!(e.contains(cause), "{line}: {e}");
        }
    }
}
