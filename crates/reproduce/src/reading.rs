//! How our values are read from what the commands answered: JSON documents, and files that they
//! wrote.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the steps of an entry answered.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The JSON document of each step, in their order; `None` for a step that was left out.
    pub documents: Vec<Option<Value>>,
    /// The directory in which the steps wrote their files.
    pub dir: PathBuf,
}

impl Answers {
    /// What stands at a JSON pointer in the document of a step.
    pub fn get(&self, step: usize, pointer: &str) -> Option<&Value> {
        self.documents.get(step)?.as_ref()?.pointer(pointer)
    }

    /// The number at a JSON pointer.
    pub fn number(&self, step: usize, pointer: &str) -> Option<f64> {
        self.get(step, pointer)?.as_f64()
    }

    /// The lines of a CSV file that a step wrote, by the names of the columns.
    fn table(&self, file: &str) -> Option<Vec<BTreeMap<String, String>>> {
        let text = std::fs::read_to_string(self.dir.join(file)).ok()?;
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next()?.split(',').collect();
        let row = |line: &str| {
            let cells = line.split(',').map(str::to_owned);
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(cells)
                .collect()
        };
        Some(lines.map(row).collect())
    }
}

/// Reads the number at a JSON pointer, divided by `scale`.
pub fn number(step: usize, pointer: &str, scale: f64) -> impl Fn(&Answers) -> Option<f64> + use<> {
    let pointer = pointer.to_owned();
    move |a| Some(a.number(step, &pointer)? / scale)
}

/// The part of an answer of `simulate` that is about a task.
pub fn task<'a>(a: &'a Answers, step: usize, name: &str) -> Option<&'a Value> {
    let tasks = a.get(step, "/tasks")?.as_array()?;
    tasks.iter().find(|t| t["task"] == name)
}

/// How many deadlines a task missed, as `simulate` says.
pub fn misses(step: usize, name: &'static str) -> impl Fn(&Answers) -> Option<f64> + use<> {
    move |a| task(a, step, name)?["misses"].as_f64()
}

/// The deadlines that the jobs of a task missed, in milliseconds, from a file of `trace stats
/// --jobs`.
pub fn missed_deadlines(a: &Answers, file: &str, name: &str) -> Option<Vec<f64>> {
    let late = |row: &&BTreeMap<String, String>| row["task"] == name && row["tardiness_ns"] != "0";
    let deadline =
        |row: &BTreeMap<String, String>| Some(row["deadline_ns"].parse::<f64>().ok()? / 1e6);
    a.table(file)?.iter().filter(late).map(deadline).collect()
}

/// The processors that a job of a task ran on, in the order in which it first did, from a file of
/// `trace export --to csv`. Jobs count from 1.
pub fn processors_of(a: &Answers, file: &str, name: &str, job: &str) -> Option<Vec<u32>> {
    let mut seen = Vec::new();
    for row in a.table(file)? {
        let comes = matches!(row["event"].as_str(), "start" | "resumption" | "migration");
        if comes && row["task"] == name && row["job"] == job {
            let processor = row["processor"].parse().ok()?;
            if !seen.contains(&processor) {
                seen.push(processor);
            }
        }
    }
    Some(seen)
}

/// The policy of this name in the document of a study.
fn policy<'a>(a: &'a Answers, step: usize, name: &str) -> Option<&'a Value> {
    let policies = a.get(step, "/policies")?.as_array()?;
    policies.iter().find(|p| p["policy"] == name)
}

/// W(D) of a policy at every delay of a study, with the delays in microseconds.
pub fn weighted(a: &Answers, step: usize, name: &str) -> Option<Vec<(f64, f64)>> {
    let delays = a.get(step, "/axis/points")?.as_array()?;
    let shares = policy(a, step, name)?["weighted"].as_array()?;
    let point = |(d, w): (&Value, &Value)| Some((d.as_f64()? / 1e3, w.as_f64()?));
    delays.iter().zip(shares).map(point).collect()
}

/// W(D) of a policy at a delay in microseconds.
pub fn weighted_at(a: &Answers, step: usize, name: &str, delay: f64) -> Option<f64> {
    let curve = weighted(a, step, name)?;
    curve.iter().find(|(d, _)| *d == delay).map(|(_, w)| *w)
}

/// The delay in microseconds at which W of a policy falls below what another one has without delay,
/// between two points of the grid by a straight line; `None` where it never does.
pub fn crossing(a: &Answers, step: usize, falling: &str, reference: &str) -> Option<f64> {
    crossing_of(a, step, falling, weighted_at(a, step, reference, 0.0)?)
}

/// The same for a level that is given.
pub fn crossing_of(a: &Answers, step: usize, falling: &str, level: f64) -> Option<f64> {
    let curve = weighted(a, step, falling)?;
    let below = curve.iter().position(|(_, w)| *w < level)?;
    let (d1, w1) = curve[below];
    let Some((d0, w0)) = below.checked_sub(1).map(|at| curve[at]) else {
        return Some(d1);
    };
    Some(d0 + (d1 - d0) * (w0 - level) / (w0 - w1))
}

/// Whether W of a policy is at least that of another one at every delay, but for `slack`.
pub fn dominates(a: &Answers, step: usize, upper: &str, lower: &str, slack: f64) -> Option<bool> {
    let upper = weighted(a, step, upper)?;
    let lower = weighted(a, step, lower)?;
    let mut both = upper.iter().zip(&lower);
    Some(both.all(|((_, u), (_, l))| u + slack >= *l))
}

/// The mean of W over all delays.
pub fn mean_weighted(a: &Answers, step: usize, name: &str) -> Option<f64> {
    let curve = weighted(a, step, name)?;
    Some(curve.iter().map(|(_, w)| w).sum::<f64>() / curve.len() as f64)
}

/// The share of sets that a policy keeps at the caps from `from` on, at the first delay.
pub fn kept_from(a: &Answers, step: usize, name: &str, from: f64) -> Option<f64> {
    let caps = a.get(step, "/caps")?.as_array()?;
    let sets = a.get(step, "/sets_by_cap")?.as_array()?;
    let accepted = policy(a, step, name)?["accepted"].as_array()?;
    let shares: Option<Vec<f64>> = caps
        .iter()
        .zip(accepted.iter().zip(sets))
        .filter(|(cap, _)| cap.as_f64().is_some_and(|cap| cap >= from))
        .map(|(_, (row, sets))| Some(row[0].as_f64()? / sets.as_f64()?))
        .collect();
    let shares = shares?;
    Some(shares.iter().sum::<f64>() / shares.len() as f64)
}

/// A cache delay in microseconds, from the answer of `measure cpmd` (`/profile/cpmd`) or `profile
/// show` (`/cpmd`).
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    /// How the job resumes, such as `preemption` or `L2-migration`.
    pub resumption: &'static str,
    /// `load` or `idle`.
    pub load: &'static str,
    /// The working set size in KiB.
    pub kib: u64,
    /// `average_ns`, `deviation_ns` or `maximum_ns`.
    pub statistic: &'static str,
}

impl Delay {
    /// Reads it from the curves at a JSON pointer.
    pub fn read(self, a: &Answers, step: usize, curves: &str) -> Option<f64> {
        let curves = a.get(step, curves)?.as_array()?;
        let curve = curves
            .iter()
            .find(|c| c["resumption"] == self.resumption && c["load"] == self.load)?;
        let points = curve["points"].as_array()?;
        let point = points
            .iter()
            .find(|p| p["wss"].as_str().and_then(kibibytes) == Some(self.kib))?;
        Some(point[self.statistic].as_f64()? / 1e3)
    }
}

/// `64KiB` and `3MiB` in KiB; `None` for sizes that are no whole number of them.
fn kibibytes(size: &str) -> Option<u64> {
    match size.strip_suffix("MiB") {
        Some(whole) => Some(whole.parse::<u64>().ok()? * 1024),
        None => size.strip_suffix("KiB")?.parse().ok(),
    }
}

/// The row of an experiment whose `key` is `value`.
pub fn row<'a>(a: &'a Answers, step: usize, key: &str, value: f64) -> Option<&'a Value> {
    let rows = a.get(step, "/seen/rows")?.as_array()?;
    rows.iter().find(|r| r[key].as_f64() == Some(value))
}

/// The mean of a number over the rows of an experiment.
pub fn mean_of_rows(a: &Answers, step: usize, of: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
    let rows = a.get(step, "/seen/rows")?.as_array()?;
    let numbers: Vec<f64> = rows.iter().filter_map(of).collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The first cache of a level that holds data, in an answer of `platform`.
fn cache(a: &Answers, step: usize, level: u64) -> Option<&Value> {
    let caches = a.get(step, "/platform/caches")?.as_array()?;
    caches
        .iter()
        .find(|c| c["level"] == level && c["kind"] != "instruction")
}

/// The size of a cache in KiB.
pub fn cache_size(a: &Answers, step: usize, level: u64) -> Option<f64> {
    kibibytes(cache(a, step, level)?["size"].as_str()?).map(|kib| kib as f64)
}

/// The ways of a cache.
pub fn cache_ways(a: &Answers, step: usize, level: u64) -> Option<f64> {
    cache(a, step, level)?["ways"].as_f64()
}

/// The line of a cache in bytes.
pub fn cache_line(a: &Answers, step: usize, level: u64) -> Option<f64> {
    cache(a, step, level)?["line"].as_f64()
}

/// The page colors of a cache: its size by its ways by pages of 4 KiB, at least one.
pub fn cache_colors(a: &Answers, step: usize, level: u64) -> Option<f64> {
    Some((cache_size(a, step, level)? / cache_ways(a, step, level)? / 4.0).max(1.0))
}

/// How many processors share a cache: its list is of numbers and ranges.
pub fn cache_sharers(a: &Answers, step: usize, level: u64) -> Option<f64> {
    let list = cache(a, step, level)?["shared_by"].as_str()?;
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(last.parse::<u32>().ok()? - first.parse::<u32>().ok()? + 1),
        None => part.parse::<u32>().ok().map(|_| 1),
    };
    let counts: Option<Vec<u32>> = list.split(',').map(count).collect();
    Some(f64::from(counts?.into_iter().sum::<u32>()))
}

/// How many processors the platform has.
pub fn processors(a: &Answers, step: usize) -> Option<f64> {
    Some(a.get(step, "/platform/processors")?.as_array()?.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answers(document: Value) -> Answers {
        Answers {
            documents: vec![Some(document)],
            dir: PathBuf::new(),
        }
    }

    #[test]
    fn a_crossing_lies_between_two_points_of_the_grid() {
        let a = answers(json!({
            "axis": {"name": "delay", "unit": "ns", "points": [0, 100_000, 200_000]},
            "policies": [
                {"policy": "P-EDF", "weighted": [0.5, 0.4, 0.3]},
                {"policy": "G-EDF", "weighted": [1.0, 0.6, 0.2]},
            ],
        }));
        let at = crossing(&a, 0, "G-EDF", "P-EDF").unwrap();
        assert!((at - 125.0).abs() < 1e-9, "{at}");
        assert_eq!(crossing_of(&a, 0, "G-EDF", 0.1), None);
        assert_eq!(dominates(&a, 0, "G-EDF", "P-EDF", 0.0), Some(false));
        assert_eq!(dominates(&a, 0, "G-EDF", "P-EDF", 0.1), Some(true));
        assert_eq!(weighted_at(&a, 0, "G-EDF", 150.0), None);
    }

    #[test]
    fn a_step_that_was_left_out_answers_nothing() {
        let a = Answers {
            documents: vec![None],
            ..Answers::default()
        };
        assert_eq!(number(0, "/misses", 1.0)(&a), None);
        assert_eq!(number(7, "/misses", 1.0)(&a), None);
    }

    #[test]
    fn delays_are_found_by_size_in_either_unit() {
        let a = answers(
            json!({"cpmd": [{"resumption": "preemption", "load": "load", "points": [
                {"wss": "64KiB", "average_ns": 65_050}, {"wss": "3MiB", "average_ns": 355_760},
            ]}]}),
        );
        let read = |kib| {
            let delay = Delay {
                resumption: "preemption",
                load: "load",
                kib,
                statistic: "average_ns",
            };
            delay.read(&a, 0, "/cpmd")
        };
        assert_eq!(
            (read(64), read(3072), read(128)),
            (Some(65.05), Some(355.76), None)
        );
    }
}
