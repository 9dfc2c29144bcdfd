//! rt-app's workloads: the periodic threads of a JSON file as tasks, and tasks as such a file.
//!
//! Format: rt-app's own description (`doc/tutorial.txt` of its sources). A thread that runs and
//! then waits for one timer, over and over, is a periodic task: its WCET is the sum of its `run`
//! and `runtime` events, its period that of the timer, its phase the `delay`, its deadline
//! `dl-deadline` or the period. Phases of one period make one task with the largest of their WCETs.
//! All else (locks, conditions, sleeping, input and output) is no sporadic task in the sense of 002
//! §2.1 and is named with the reason. A thread that sleeps instead of waiting for a timer is taken
//! only if that is asked for: its period is its run and its sleep, which is the shortest time
//! between two of its jobs, as every delay of one moves all later ones.
//!
//! rt-app's files are less strict than JSON, and so is this reader: comments, commas before a
//! closing bracket, keys that come more than once, and keys without a value.

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::imported::Imported;
use crate::task::{Details, TaskSet, Timing, check_timing};
use crate::time::Duration;
use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

mod lenient;
mod steps;
mod written;
use written::Places;
pub use written::to_rt_app;

/// How a file of rt-app is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Take threads that sleep, with their run and sleep as the period.
    pub sleep_as_period: bool,
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
pub fn from_rt_app(text: &str, how: Reading) -> Result<Imported> {
    crate::input::check_size(text)?;
    let completed = lenient::complete(text);
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
    let places = Places::of(text);
    let parsed = parse_to_ast(&completed.text, &CollectOptions::default(), &leniently);
    let root = parsed.map_err(|e| {
        // The parser's messages are sentences of their own.
        let why = e.kind().to_string().to_lowercase();
        Error::new(format!("this is no JSON: {why}"))
            .at(places.name(completed.original(e.range().start)))
            .remedy("give a file for rt-app, or a task set in TOML")
    })?;
    let file = root.value.as_ref().and_then(Node::as_object);
    let Some(threads) = file.and_then(|o| get(o, "tasks")?.value.as_object()) else {
        return Err(Error::new("there is no `tasks` object").remedy("give a file for rt-app"));
    };
    let global = file.and_then(|o| get(o, "global")?.value.as_object());
    let defaults = Defaults {
        how,
        policy: global.and_then(|g| text_of(get(g, "default_policy")?)),
    };
    let (mut tasks, mut remarks) = (Vec::new(), Vec::new());
    let mut by_deadline = Vec::new();
    for thread in &threads.properties {
        let name = thread.name.as_str();
        let read = periodic(thread, &defaults, &mut remarks);
        if read.as_ref().is_ok_and(|thread| thread.is_by_deadline) {
            by_deadline.push((thread.range.start, name));
        }
        match read {
            Ok(Thread {
                task, instances: 1, ..
            }) => tasks.push(task),
            Ok(Thread {
                task, instances, ..
            }) => {
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
    if tasks.iter().any(|(_, details)| details.priority.is_some()) {
        remarks.extend(by_deadline.into_iter().map(|(at, name)| Remark {
            at,
            text: format!(
                "thread `{name}` is of SCHED_DEADLINE, which Linux runs before all priorities; here it has no priority, and fixed priorities put it behind tasks that have one"
            ),
        }));
    }
    remarks.sort_by_key(|r| r.at);
    let notes: Vec<String> = remarks
        .iter()
        .map(|r| format!("{}: {}", places.name(completed.original(r.at)), r.text))
        .collect();
    if tasks.is_empty() {
        let why = match notes.is_empty() {
            true => "there are no threads".to_owned(),
            false => notes.join("; "),
        };
        return Err(Error::new(format!("no thread is periodic: {why}"))
            .remedy("give threads `run` and `timer` events"));
    }
    Ok(Imported {
        set: TaskSet::new(tasks)?,
        notes,
    })
}

/// What holds for all threads.
struct Defaults<'a> {
    how: Reading,
    /// The policy of threads that name none; `None`: SCHED_OTHER.
    policy: Option<&'a str>,
}

struct Thread {
    task: (Timing, Details),
    instances: u64,
    /// It is of SCHED_DEADLINE.
    is_by_deadline: bool,
}

/// A thread as a task, or why it is none.
fn periodic(of: &ObjectProp, defaults: &Defaults, remarks: &mut Vec<Remark>) -> Read<Thread> {
    let (name, start) = (of.name.as_str(), of.range.start);
    let Node::Object(thread) = &of.value else {
        return remark(start, "it is no object");
    };
    let number = |key: &str| get(thread, key).map(micros).transpose();
    let cycle = steps::cycle(name, thread, start, defaults.how.sleep_as_period)?;
    let (wcet, period) = (cycle.wcet, cycle.period);
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
        deadline: [number("dl-deadline")?, number("deadline")?]
            .into_iter()
            .flatten()
            .find(|d| !d.is_zero())
            .unwrap_or(period),
    };
    if let Err(e) = check_timing(&timing) {
        return remark(start, e.to_string());
    }
    let instances = instances(thread)?;
    remarks.extend(cycle.remarks);
    if cycle.sleeps {
        remarks.push(Remark {
            at: start,
            text: format!(
                "thread `{name}` sleeps: its period is taken as {period}, its run and its sleep, the shortest time between its jobs; a job that is delayed delays all later ones there"
            ),
        });
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
    let details = Details {
        phase: number("delay")?.unwrap_or_default(),
        cpus: affinity(thread, name, remarks)?,
        priority: urgency(thread, name, defaults, remarks)?,
        ..Details::named(name)
    };
    Ok(Thread {
        task: (timing, details),
        instances,
        is_by_deadline: policy_of(thread, defaults) == Some("SCHED_DEADLINE"),
    })
}

/// How many threads are made of one.
fn instances(thread: &Object) -> Read<u64> {
    match get(thread, "instance").map(|p| (p, value_of(&p.value))) {
        None => Ok(1),
        Some((_, Some(n))) if n.fract() == 0.0 && (1.0..=MOST_INSTANCES as f64).contains(&n) => {
            Ok(n as u64)
        }
        Some((p, _)) => remark(
            p.range.start,
            format!("`instance` is no number from 1 to {MOST_INSTANCES}"),
        ),
    }
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

/// The priority that rt-app gives to threads of SCHED_FIFO and SCHED_RR that name none
/// (`doc/tutorial.txt`).
const DEFAULT_PRIORITY: u32 = 10;

/// The policy of a thread, as it says or as all of them have it; `None`: SCHED_OTHER.
fn policy_of<'a>(thread: &'a Object, defaults: &Defaults<'a>) -> Option<&'a str> {
    get(thread, "policy").and_then(text_of).or(defaults.policy)
}

/// The priority of a thread of SCHED_FIFO or SCHED_RR. What it says elsewhere is a nice value, or
/// means nothing.
fn urgency(
    thread: &Object,
    name: &str,
    defaults: &Defaults,
    remarks: &mut Vec<Remark>,
) -> Read<Option<u32>> {
    let policy = policy_of(thread, defaults);
    let is_real_time = matches!(policy, Some("SCHED_FIFO" | "SCHED_RR"));
    if let Some(Node::Object(phases)) = get(thread, "phases").map(|p| &p.value) {
        let keys = phases.properties.iter().filter_map(|p| p.value.as_object());
        let changes = keys.filter_map(|k| get(k, "policy").or_else(|| get(k, "priority")));
        if let Some(property) = changes.into_iter().next() {
            remarks.push(Remark {
                at: property.range.start,
                text: format!(
                    "thread `{name}` has another policy or priority in a phase; here a task has one, that of the thread"
                ),
            });
        }
    }
    let Some(property) = get(thread, "priority") else {
        return Ok(is_real_time.then_some(DEFAULT_PRIORITY));
    };
    let at = property.range.start;
    match (is_real_time, value_of(&property.value)) {
        (true, Some(n)) if n.fract() == 0.0 && (1.0..=99.0).contains(&n) => Ok(Some(n as u32)),
        (true, _) => remark(at, "`priority` is no number from 1 to 99"),
        (false, _) => {
            let policy = policy.unwrap_or("the default policy");
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

/// The text of a property.
fn text_of<'o>(property: &'o ObjectProp) -> Option<&'o str> {
    property.value.as_string_lit().map(|t| t.value.as_ref())
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
