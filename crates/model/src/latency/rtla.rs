//! The output of `rtla timerlat hist`.

use super::{Thread, numbers};
use crate::error::{Error, Result};
use crate::time::Duration;

const TITLE: &str = "# RTLA timerlat histogram";
const UNIT: &str = "# Time unit is ";

/// Whether a text is such an output.
pub(super) fn is_meant(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == TITLE)
}

/// The unit of time, and what each thread measured in it.
///
/// The summary has what is needed for every column: `count:`, `avg:` and `max:`. A thread whose
/// column is `Thr-CPU` is the one of that processor.
pub(super) fn read(text: &str) -> Result<(Duration, Vec<Thread>)> {
    let incomplete = |what: &str| {
        Error::new(format!("the line `{what}` is missing")).remedy(
            "let rtla print it: without --no-header, --no-index, --no-thread and --no-summary",
        )
    };
    let mut unit = None;
    let mut columns = None;
    let mut rows: [Option<Vec<Option<u64>>>; 3] = [None, None, None];
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(name) = line.strip_prefix(UNIT) {
            unit = Some(match name {
                name if name.contains("(us)") => Duration::from_micros(1),
                name if name.contains("(ns)") => Duration::from_nanos(1),
                name => {
                    return Err(Error::new(format!("`{name}` is no unit of rtla"))
                        .at(format!("line {number}"))
                        .remedy("give what rtla printed, unchanged"));
                }
            });
        }
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Index") => columns = Some(words.collect::<Vec<&str>>()),
            // Sums over all processors, which follow in newer versions, say nothing more.
            Some("ALL:") => break,
            Some(key @ ("count:" | "avg:" | "max:")) => {
                let place = ["count:", "avg:", "max:"].iter().position(|k| *k == key);
                let values = words.map(|word| match word {
                    // A column without samples.
                    "-" => Ok(None),
                    word => numbers(number, std::iter::once(word), key).map(|n| n.first().copied()),
                });
                rows[place.unwrap_or(0)] = Some(values.collect::<Result<_>>()?);
            }
            _ => {}
        }
    }
    let unit = unit.ok_or_else(|| incomplete(UNIT.trim()))?;
    let columns = columns.ok_or_else(|| incomplete("Index"))?;
    let [counts, averages, maxima] = rows;
    let counts = counts.ok_or_else(|| incomplete("count:"))?;
    let averages = averages.ok_or_else(|| incomplete("avg:"))?;
    let maxima = maxima.ok_or_else(|| incomplete("max:"))?;
    if [&counts, &averages, &maxima]
        .iter()
        .any(|row| row.len() != columns.len())
    {
        return Err(Error::new(format!(
            "{} columns, and {} counts, {} averages and {} maxima",
            columns.len(),
            counts.len(),
            averages.len(),
            maxima.len()
        ))
        .remedy("give what rtla printed, unchanged"));
    }
    let mut threads = Vec::new();
    for (place, _) in columns
        .iter()
        .enumerate()
        .filter(|(_, c)| c.starts_with("Thr-"))
    {
        if let (Some(samples), Some(average), Some(maximum)) =
            (counts[place], averages[place], maxima[place])
        {
            threads.push(Thread {
                samples,
                sum: u128::from(samples) * u128::from(average),
                maximum,
            });
        }
    }
    match threads.is_empty() {
        true => Err(incomplete("Thr-")),
        false => Ok((unit, threads)),
    }
}
