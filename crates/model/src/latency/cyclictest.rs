//! The output of cyclictest.

use super::{Thread, numbers};
use crate::error::{Error, Result};

const OF_THREAD: &str = "T:";
const HISTOGRAM: &str = "# Histogram";
const AVERAGES: &str = "# Avg Latencies:";
const MAXIMA: &str = "# Max Latencies:";
const OVERFLOWS: &str = "# Histogram Overflows:";

/// Whether a text is such an output.
pub(super) fn is_meant(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim_end() == HISTOGRAM || line.starts_with(OF_THREAD))
}

/// By thread, what it measured, in microseconds. A histogram goes before lines of threads, which
/// say the same less exactly.
pub(super) fn read(text: &str) -> Result<Vec<Thread>> {
    match text.lines().any(|line| line.trim_end() == HISTOGRAM) {
        true => histogram(text),
        false => lines(text),
    }
}

/// A histogram: rows of a latency and how often each thread had it; then averages, the largest
/// latencies, and how many lie beyond the rows. With `-H` a column more than there are threads adds
/// up the others.
fn histogram(text: &str) -> Result<Vec<Thread>> {
    let mut rows: Vec<(usize, u64, Vec<u64>)> = Vec::new();
    let (mut averages, mut maxima, mut overflows) = (None, None, None);
    let mut threads = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(rest) = line.strip_prefix(AVERAGES) {
            averages = Some(numbers(number, rest.split_whitespace(), AVERAGES)?);
        } else if let Some(rest) = line.strip_prefix(MAXIMA) {
            maxima = Some(numbers(number, rest.split_whitespace(), MAXIMA)?);
        } else if let Some(rest) = line.strip_prefix(OVERFLOWS) {
            overflows = Some(numbers(number, rest.split_whitespace(), OVERFLOWS)?);
        } else if line.starts_with("# Thread ") {
            threads += 1;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let row = numbers(number, line.split_whitespace(), HISTOGRAM)?;
            if let [latency, counts @ ..] = &row[..] {
                rows.push((number, *latency, counts.to_vec()));
            }
        }
    }
    let missing = |what: &str| {
        Error::new(format!("the line `{what}` is missing"))
            .remedy("let cyclictest run until it prints its summary")
    };
    let averages = averages.ok_or_else(|| missing(AVERAGES))?;
    let maxima = maxima.ok_or_else(|| missing(MAXIMA))?;
    let overflows = overflows.ok_or_else(|| missing(OVERFLOWS))?;
    // Older versions have no lines of threads. Averages have no column of sums, other lines may.
    let threads = match threads {
        0 => averages.len(),
        threads => threads,
    };
    if threads == 0
        || [&averages, &maxima, &overflows]
            .iter()
            .any(|row| row.len() < threads)
    {
        return Err(Error::new(format!(
            "{} averages, {} largest latencies and {} counts of overflows for {threads} threads",
            averages.len(),
            maxima.len(),
            overflows.len()
        ))
        .remedy("give what cyclictest printed, unchanged"));
    }
    let mut all: Vec<Thread> = (0..threads)
        .map(|thread| Thread {
            samples: overflows[thread],
            sum: 0,
            maximum: maxima[thread],
        })
        .collect();
    for (line, latency, counts) in rows {
        if counts.len() < threads {
            return Err(
                Error::new(format!("{} counts for {threads} threads", counts.len()))
                    .at(format!("line {line}"))
                    .remedy("give what cyclictest printed, unchanged"),
            );
        }
        for (thread, count) in all.iter_mut().zip(counts) {
            thread.samples = thread.samples.saturating_add(count);
            let more = u128::from(count) * u128::from(latency);
            thread.sum = thread.sum.saturating_add(more);
        }
    }
    // How long those beyond the rows were, only the average knows.
    for (place, thread) in all
        .iter_mut()
        .enumerate()
        .filter(|(at, _)| overflows[*at] > 0)
    {
        thread.sum = u128::from(averages[place]) * u128::from(thread.samples);
    }
    Ok(all)
}

/// Lines `T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      3 Act:    5 Avg:    6 Max:      42`. A
/// terminal shows each several times; the last one counts.
fn lines(text: &str) -> Result<Vec<Thread>> {
    let mut threads: Vec<(u64, Thread)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix(OF_THREAD) else {
            continue;
        };
        let value = |key: &str| -> Result<u64> {
            let behind = rest.find(key).map(|at| &rest[at + key.len()..]);
            let word = behind.and_then(|b| b.split_whitespace().next());
            let read = numbers(index + 1, word.into_iter(), key)?;
            read.first().copied().ok_or_else(|| {
                Error::new(format!("there is no `{key}`"))
                    .at(format!("line {}", index + 1))
                    .remedy("give what cyclictest printed, unchanged")
            })
        };
        let first = rest.split_whitespace().next().into_iter();
        let number = numbers(index + 1, first, OF_THREAD)?;
        let number = number.first().copied().unwrap_or(0);
        let samples = value("C:")?;
        let thread = Thread {
            samples,
            sum: u128::from(samples) * u128::from(value("Avg:")?),
            maximum: value("Max:")?,
        };
        match threads.iter_mut().find(|(n, _)| *n == number) {
            Some((_, known)) => *known = thread,
            None => threads.push((number, thread)),
        }
    }
    Ok(threads.into_iter().map(|(_, thread)| thread).collect())
}
