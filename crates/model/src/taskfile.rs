//! Task sets in files: TOML for people, JSON lines for machines (DESIGN, "Task sets").

use crate::colors::Colors;
use crate::cpus::CpuSet;
use crate::error::{Error, Result};
use crate::input::{Document, Table, Value};
use crate::size::Bytes;
use crate::task::{Details, TaskSet, Timing, check_timing};
use crate::time::Duration;
use serde::Serialize;

mod best_effort;
mod by_colors;
mod id;
mod placing;
mod trigger;
mod workload;

mod batch;
pub use batch::{BatchSet, MAX_PROCESSORS, from_batch_line, to_batch_line};

const TASK_KEYS: [&str; 15] = [
    "name", "wcet", "period", "deadline", "wss", "group", "phase", "soft", "workload", "colors",
    "trigger", "cpus", "priority", "blocking", "jitter",
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
    let colors = table.get("colors").map(|v| colors_of(&v)).transpose()?;
    let wcet = table.need("wcet")?;
    let wcets = by_colors::read(&wcet)?;
    let timing = Timing {
        wcet: match &wcets {
            Some(wcets) => wcets.of(colors.as_ref()).map_err(|e| wcet.place(e))?,
            None => wcet.parsed()?,
        },
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
            "" => {
                return Err(v
                    .error("the name is empty")
                    .remedy("leave it out, or give one"));
            }
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
        workload: table
            .get("workload")
            .map(|v| workload::read(&v))
            .transpose()?,
        colors,
        wcets,
        trigger: table
            .get("trigger")
            .map(|v| trigger::read(&v))
            .transpose()?,
        cpus: table.get("cpus").map(|v| placing::cpus(&v)).transpose()?,
        priority: table
            .get("priority")
            .map(|v| placing::priority(&v))
            .transpose()?,
        extras: placing::extras(table, timing.wcet)?,
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
        wcet: toml::Value,
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
                wcet: by_colors::write(timing.wcet, d.wcets.as_ref()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Extras;

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
    fn wcets_by_colors_read_and_write_back() {
        let text = r#"
[[task]]
name = "camera"
wcet = { shared = "12ms", "2" = "9ms", "4" = "6ms" }
period = "33ms"

[[task]]
name = "radio"
wcet = { "2" = "9ms", "8" = "5500us" }
period = "20ms"
colors = "0-8"
"#;
        let ms = Duration::from_millis;
        let set = from_toml(text).unwrap();
        let wcets = |set: &TaskSet| set.timings().iter().map(|t| t.wcet).collect::<Vec<_>>();
        // Nobody gave the first one colors, the second one has nine.
        assert_eq!(wcets(&set), [ms(12), Duration::from_micros(5_500)]);
        assert_eq!(from_toml(&to_toml(&set)).unwrap(), set);
        let colors = ["0-4", "5-6"].map(|colors| colors.parse().ok());
        let colored = set.with_colors(&colors).unwrap();
        assert_eq!(wcets(&colored), [ms(6), ms(9)]);
        assert_eq!(from_toml(&to_toml(&colored)).unwrap(), colored);
        assert_eq!(
            wcets(&set.with_colors(&[None, None]).unwrap()),
            [ms(12), ms(9)]
        );
        let few = set
            .with_colors(&["0".parse().ok(), None])
            .unwrap_err()
            .to_string();
        assert!(few.starts_with("task camera: it has 1 colors"), "{few}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let one = |body: &str| {
            from_toml(&format!("[[task]]\n{body}"))
                .unwrap_err()
                .to_string()
        };
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
                "wcet = { two = \"1ms\" }\nperiod = \"2ms\"",
                "line 2, `wcet`: `two` is no number of colors; write a whole number, or `shared`",
            ),
            (
                "wcet = { \"2\" = \"1ms\", \"4\" = \"2ms\" }\nperiod = \"2ms\"",
                "line 2, `wcet`: the WCET with 4 colors (2ms) is longer than with 2 (1ms); give a task no more colors than help it: leave the longer one out",
            ),
            (
                "wcet = { \"2\" = \"1ms\" }\nperiod = \"2ms\"\ncolors = \"3\"",
                "line 2, `wcet`: it has 1 colors, and its WCET is known with 2 at least; give it more colors, or measure its WCET with fewer",
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
