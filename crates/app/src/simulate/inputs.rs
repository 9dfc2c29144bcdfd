//! Reads the words for releases and execution times: parts, distributions, files.

use crate::Choice;
use model::{CpuId, Duration, Error, Platform, Ratio, Result, TaskSet, files};
use simulate::chance::MOST;
use simulate::{Chance, Execution, Releases};
use std::path::Path;

/// When jobs are released, as chosen.
///
/// # Errors
/// As [`releases`].
pub fn releases_of(choice: &Choice<Releases>, set: Option<&TaskSet>) -> Result<Releases> {
    match choice {
        Choice::Named(text) => releases(text, set),
        Choice::Value(releases) => Ok(releases.clone()),
    }
}

/// How long jobs execute, as chosen.
///
/// # Errors
/// As [`execution`].
pub fn execution_of(choice: &Choice<Execution>, set: Option<&TaskSet>) -> Result<Execution> {
    match choice {
        Choice::Named(text) => execution(text, set),
        Choice::Value(execution) => Ok(execution.clone()),
    }
}

/// When jobs are released.
///
/// # Errors
/// Not such a text; a file that does not fit the set.
pub fn releases(text: &str, set: Option<&TaskSet>) -> Result<Releases> {
    let at = |e: Error| e.at("--releases");
    match (text, text.strip_prefix("sporadic:")) {
        ("periodic", _) => Ok(Releases::Periodic),
        ("sporadic", _) => Ok(Releases::Sporadic(Ratio::ONE)),
        (_, Some(how)) if how.contains(':') => Chance::parse(how, MOST)
            .map(Releases::SporadicBy)
            .map_err(at),
        (_, Some(part)) => part_of(part).map(Releases::Sporadic).map_err(at),
        _ => lists(text, set).map(Releases::Given).map_err(at),
    }
}

/// Which processor releases the jobs of each task: one for all, or `TASK=CPU` for some.
///
/// # Errors
/// Not such a text; a task or a processor that is not there.
pub fn release_on(text: &str, set: &TaskSet, platform: &Platform) -> Result<Vec<Option<CpuId>>> {
    let at = |e: Error| e.at("--release-on");
    let processor = |text: &str| {
        let cpu = text.trim().parse().map(CpuId).ok();
        cpu.filter(|cpu| platform.usable().contains(*cpu))
            .ok_or_else(|| {
                at(
                    Error::new(format!("`{text}` is no processor that can be used"))
                        .remedy(format!("choose among {}", platform.usable())),
                )
            })
    };
    if !text.contains('=') {
        return Ok(vec![Some(processor(text)?); set.len()]);
    }
    let mut all = vec![None; set.len()];
    for item in text.split(',') {
        let (name, cpu) = item.rsplit_once('=').ok_or_else(|| {
            at(Error::new(format!("`{item}` is not TASK=CPU"))
                .remedy("write such as `camera=0,radar=1`"))
        })?;
        let task = set
            .ids()
            .find(|id| set.name(*id) == name.trim())
            .ok_or_else(|| {
                at(Error::new(format!("the set has no task `{}`", name.trim()))
                    .remedy("name one of its tasks"))
            })?;
        all[task.index()] = Some(processor(cpu)?);
    }
    Ok(all)
}

/// How long jobs execute.
///
/// # Errors
/// Not such a text; a file that does not fit the set.
pub fn execution(text: &str, set: Option<&TaskSet>) -> Result<Execution> {
    let at = |e: Error| e.at("--execution");
    let numeric = |t: &str| t.starts_with(|c: char| c.is_ascii_digit());
    if let Some(parts) = text.strip_prefix("discrete:") {
        return discrete(parts).map(Execution::Discrete).map_err(at);
    }
    if let Some(file) = text.strip_prefix("sample:") {
        return samples(file, set).map(Execution::Sampled).map_err(at);
    }
    if Chance::is_meant(text) {
        return text.parse().map(Execution::Drawn).map_err(at);
    }
    match text.split_once("..") {
        Some((low, high)) if numeric(low) && numeric(high) => {
            let low = part_of(low).map_err(at)?;
            Ok(Execution::Uniform(low, part_of(high).map_err(at)?))
        }
        None if numeric(text) && !Path::new(text).exists() => {
            part_of(text).map(Execution::Fraction).map_err(at)
        }
        _ => lists(text, set).map(Execution::Given).map_err(at),
    }
}

/// A decimal number as an exact ratio.
///
/// # Errors
/// Not such a number, or one with more than twelve decimals.
pub fn part_of(text: &str) -> Result<Ratio> {
    let bad =
        || Error::new(format!("`{text}` is not a part")).remedy("write a number such as `0.8`");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|d| *d <= 12)
        .ok_or_else(bad)?;
    let number = format!("{whole}{fraction}");
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    Ratio::new(number.parse().map_err(|_| bad())?, 10u64.pow(digits)).ok_or_else(bad)
}

/// Parts with weights.
fn discrete(text: &str) -> Result<Vec<(Ratio, u64)>> {
    let weighed = |item: &str| {
        let bad = || {
            Error::new(format!("`{item}` is not PART=WEIGHT")).remedy(
                "write parts of the WCET with whole weights, such as `discrete:0.5=90,1=10`",
            )
        };
        let (part, weight) = item.split_once('=').ok_or_else(bad)?;
        Ok((
            part_of(part.trim())?,
            weight.trim().parse().map_err(|_| bad())?,
        ))
    };
    text.split(',').map(|item| weighed(item.trim())).collect()
}

/// The lines of a file, one for each task, each word read by `read`; `#` starts a remark.
fn lines<T>(
    path: &str,
    set: Option<&TaskSet>,
    read: impl Fn(&str) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let Some(set) = set else {
        return Err(
            Error::new("a batch has no times from a file").remedy("give a number, or leave it out")
        );
    };
    let text = files::read_text(Path::new(path))?;
    let mut lists = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let words: Result<Vec<T>> = line.split_whitespace().map(&read).collect();
        lists.push(words.map_err(|e| e.at(format!("{path}:{}", index + 1)))?);
    }
    if lists.len() != set.len() {
        return Err(Error::new(format!(
            "{} lines of times for {} tasks",
            lists.len(),
            set.len()
        ))
        .at(path)
        .remedy("give one line for each task, in the order of the set"));
    }
    Ok(lists)
}

/// Times, in the order of the jobs.
fn lists(path: &str, set: Option<&TaskSet>) -> Result<Vec<Vec<u64>>> {
    lines(path, set, |word| {
        word.parse::<Duration>().map(Duration::nanos)
    })
}

/// Times with how often each was measured.
fn samples(path: &str, set: Option<&TaskSet>) -> Result<Vec<Vec<(u64, u64)>>> {
    lines(path, set, |word| {
        let (time, count) = word.split_once('*').unwrap_or((word, "1"));
        let count = count.parse().map_err(|_| {
            Error::new(format!("`{word}` is not TIME*COUNT"))
                .remedy("write `12ms`, or `12ms*30` for thirty of them")
        })?;
        Ok((time.parse::<Duration>()?.nanos(), count))
    })
}
