//! Lines of a batch: a set a line, in JSON.

use super::id;
use crate::error::{Error, Result, nearest};
use crate::size::Bytes;
use crate::task::{Details, Extras, TaskId, TaskSet, Timing};
use crate::time::Duration;
use serde::Deserialize;
use std::borrow::Cow;

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
/// Keys of a line other than the known ones are let through: result files carry their own next to
/// the set. Keys of a task are not. A WCET above its deadline is let through too: the set is
/// judged, and the answer is no.
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
        us.checked_mul(1_000)
            .map(Duration::from_nanos)
            .ok_or_else(|| {
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
        _ => Err(
            Error::new(format!("{d} is not a whole number of microseconds"))
                .remedy("write the set as TOML, or generate it with whole microseconds"),
        ),
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
