//! rt-app's workloads: the periodic threads of a JSON file as tasks, and tasks as such a file.
//!
//! Format: rt-app's own description (`doc/tutorial.txt` of its sources). A thread that runs and
//! then waits for one timer, over and over, is a periodic task: its WCET is the sum of its `run`
//! and `runtime` events, its period that of the timer, its phase the `delay`, its deadline
//! `dl-deadline` or the period. Phases of one period make one task with the largest of their WCETs.
//! All else (locks, conditions, sleeping, input and output) is no sporadic task in the sense of 002
//! §2.1 and is named with the reason.
//!
//! rt-app's files are less strict than JSON, and so is this reader: comments, commas before a
//! closing bracket, and keys that come more than once.

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::task::{Details, TaskSet, Timing, check_timing};
use crate::time::Duration;
use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

mod written;
use written::Places;
pub use written::to_rt_app;

/// What came of a file of rt-app.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The periodic threads.
    pub set: TaskSet,
    /// What was left out or is different here, a sentence each, with its line and column and the
    /// thread's name.
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
/// It is too large or no such file, or holds no periodic thread; then all reasons are told. Each
/// has its line and column.
pub fn from_rt_app(text: &str) -> Result<Imported> {
    crate::input::check_size(text)?;
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

/// By phase, for how long a thread runs, and its period.
fn phases_of(thread: &Object, start: usize) -> Read<Vec<(Duration, Duration)>> {
    // With phases the events are theirs; without, the thread is its only phase.
    Ok(match get(thread, "phases").map(|p| (p, &p.value)) {
        None => vec![phase(thread, start)?],
        Some((_, Node::Object(phases))) => phases
            .properties
            .iter()
            .map(|p| match &p.value {
                Node::Object(keys) => phase(keys, p.range.start).map_err(|why| Remark {
                    text: format!("phase `{}`: {}", p.name.as_str(), why.text),
                    ..why
                }),
                _ => remark(
                    p.range.start,
                    format!("phase `{}` is no object", p.name.as_str()),
                ),
            })
            .collect::<Read<_>>()?,
        Some((p, _)) => return remark(p.range.start, "`phases` is no object"),
    })
}

/// A thread as a task, or why it is none.
fn periodic(of: &ObjectProp, remarks: &mut Vec<Remark>) -> Read<Thread> {
    let (name, start) = (of.name.as_str(), of.range.start);
    let Node::Object(thread) = &of.value else {
        return remark(start, "it is no object");
    };
    let number = |key: &str| get(thread, key).map(micros).transpose();
    let phases = phases_of(thread, start)?;
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
        deadline: number("dl-deadline")?
            .filter(|d| !d.is_zero())
            .unwrap_or(period),
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
    differs("dl-reclaim", &|_| {
        Some(
            "says `dl-reclaim`, which takes what others leave of their budgets there; here its budget is its WCET"
                .to_owned(),
        )
    });
    let instances = match get(thread, "instance").map(|p| (p, value_of(&p.value))) {
        None => 1,
        Some((_, Some(n))) if n.fract() == 0.0 && (1.0..=MOST_INSTANCES as f64).contains(&n) => {
            n as u64
        }
        Some((p, _)) => {
            return remark(
                p.range.start,
                format!("`instance` is no number from 1 to {MOST_INSTANCES}"),
            );
        }
    };
    let details = Details {
        phase: number("delay")?.unwrap_or_default(),
        cpus: affinity(thread, name, remarks)?,
        priority: urgency(thread, name, remarks)?,
        ..Details::named(name)
    };
    Ok(Thread {
        task: (timing, details),
        instances,
    })
}

/// The processors of a thread, as it says or as all of its phases say.
fn affinity(thread: &Object, name: &str, remarks: &mut Vec<Remark>) -> Read<Option<CpuSet>> {
    let own = get(thread, "cpus").map(cpus_of).transpose()?.flatten();
    let Some(Node::Object(phases)) = get(thread, "phases").map(|p| &p.value) else {
        return Ok(own);
    };
    let mut homes = Vec::with_capacity(phases.properties.len());
    let mut moves = None;
    for phase in &phases.properties {
        let property = phase.value.as_object().and_then(|keys| get(keys, "cpus"));
        moves = moves.or(property);
        let home = property.map(cpus_of).transpose()?.flatten();
        homes.push(home.or_else(|| own.clone()));
    }
    match (moves, &homes[..]) {
        (Some(property), [first, others @ ..]) if others.iter().any(|home| home != first) => {
            remarks.push(Remark {
                at: property.range.start,
                text: format!(
                    "thread `{name}` keeps to other processors in other phases; here a task has one `cpus`, which is left out"
                ),
            });
            Ok(None)
        }
        (_, [first, ..]) => Ok(first.clone()),
        (_, []) => Ok(own),
    }
}

/// The list of processors of a property; an empty one means all.
fn cpus_of(property: &ObjectProp) -> Read<Option<CpuSet>> {
    let wrong = || Remark {
        at: property.range.start,
        text: "`cpus` is no list of processors".to_owned(),
    };
    let of = |node: &Node| {
        let number = value_of(node).filter(|n| n.fract() == 0.0)?;
        // A whole number in the range that is read.
        (0.0..=f64::from(CpuSet::MAX_CPU))
            .contains(&number)
            .then_some(CpuId(number as u32))
    };
    let list = property.value.as_array().ok_or_else(wrong)?;
    let cpus: Option<CpuSet> = list.elements.iter().map(of).collect();
    let cpus = cpus.ok_or_else(wrong)?;
    Ok((!cpus.is_empty()).then_some(cpus))
}

/// The priority of a thread of SCHED_FIFO or SCHED_RR. What it says elsewhere is a nice value, or
/// means nothing.
fn urgency(thread: &Object, name: &str, remarks: &mut Vec<Remark>) -> Read<Option<u32>> {
    let Some(property) = get(thread, "priority") else {
        return Ok(None);
    };
    let at = property.range.start;
    let policy = get(thread, "policy").and_then(|p| p.value.as_string_lit());
    let policy = policy.map_or("the default policy", |p| p.value.as_ref());
    let number = value_of(&property.value);
    match (policy, number) {
        ("SCHED_FIFO" | "SCHED_RR", Some(n)) if n.fract() == 0.0 && (1.0..=99.0).contains(&n) => {
            Ok(Some(n as u32))
        }
        ("SCHED_FIFO" | "SCHED_RR", _) => remark(at, "`priority` is no number from 1 to 99"),
        _ => {
            remarks.push(Remark {
                at,
                text: format!(
                    "thread `{name}` has a priority under {policy}, where it ranks no real-time threads: it is left out"
                ),
            });
            Ok(None)
        }
    }
}

/// Keys of threads and phases that are no events.
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
                return remark(
                    at,
                    format!("event `{key}`: it waits for more than one timer"),
                );
            }
            "timer" => match property
                .value
                .as_object()
                .and_then(|timer| get(timer, "period"))
            {
                Some(of) => period = Some(micros(of)?).filter(|p| !p.is_zero()),
                None => return remark(at, format!("`{key}` has no period")),
            },
            "sleep" if value_of(&property.value) == Some(0.0) => {}
            "sleep" => {
                let why =
                    "it sleeps, and without a timer alone its period depends on how long it runs";
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
    object
        .properties
        .iter()
        .rev()
        .find(|p| p.name.as_str() == key)
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
        Some(us) if us.fract() == 0.0 && (0.0..MOST).contains(&us) => {
            match (us as u64).checked_mul(1000) {
                Some(ns) => Ok(Duration::from_nanos(ns)),
                None => remark(at, format!("`{key}` is too long")),
            }
        }
        _ => remark(at, format!("`{key}` is no number of microseconds")),
    }
}

#[cfg(test)]
mod tests;
