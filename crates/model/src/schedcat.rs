//! SchedCAT's overhead tables: comma-separated columns under a header, delays in microseconds.
//!
//! Format: what SchedCAT reads (`schedcat/overheads/model.py`): with `TASK-COUNT` in the first
//! column, overheads by number of tasks (`RELEASE`, `SCHEDULE`, `CXS`, `IPI-LATENCY`, `TICK`); with
//! `WSS` (KiB), cache delays by the nearest memory that both processors share (`L1` is a
//! preemption, `L2` and `L3` migrations through these, `MEM` through memory). Columns may be
//! padded; every row has every column.
//!
//! A table holds one statistic. What it has no place for (a timer transfer, a standard deviation,
//! sample counts) is left out on export; a column of SchedCAT that a profile has no place for is
//! named on import.

use crate::error::{Error, Result, nearest};
use crate::platform::Resumption;
use crate::profile::{
    Code, CpmdCurve, CpmdPoint, Load, OverheadCurve, OverheadKind, OverheadPoint, Profile,
    Statistic,
};
use crate::size::Bytes;
use crate::time::{Delay, Duration};
use std::collections::BTreeSet;

/// SchedCAT's names of the overheads that a profile holds.
const OVERHEADS: [(&str, OverheadKind); 5] = [
    ("RELEASE", OverheadKind::Release),
    ("SCHEDULE", OverheadKind::Scheduling),
    ("CXS", OverheadKind::ContextSwitch),
    ("IPI-LATENCY", OverheadKind::IpiLatency),
    ("TICK", OverheadKind::Tick),
];

/// SchedCAT's names of the ways to resume.
const CACHES: [(&str, Resumption); 4] = [
    ("L1", Resumption::Preemption),
    ("L2", Resumption::Migration(2)),
    ("L3", Resumption::Migration(3)),
    ("MEM", Resumption::Memory),
];

/// Columns that SchedCAT knows and a profile has no place for.
const ELSEWHERE: [&str; 7] = [
    "RELEASE-LATENCY",
    "LOCK",
    "UNLOCK",
    "READ-LOCK",
    "READ-UNLOCK",
    "SYSCALL-IN",
    "SYSCALL-OUT",
];

const TASK_COUNT: &str = "TASK-COUNT";
const WSS: &str = "WSS";

/// What a table does not say and the profile needs.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// Which number of the samples the table holds.
    pub statistic: Statistic,
    /// For cache delays: what else ran.
    pub load: Load,
    /// For cache delays: the part of the words that are written.
    pub write_ratio: f64,
    /// For overheads: the policy; empty for any.
    pub policy: String,
}

/// Reads a table into a profile: a new one for an average and a maximum is made by two calls. The
/// profile with the values added, and the names of columns that it has no place for.
///
/// # Errors
/// No table of SchedCAT (with line and column); a value that the profile already has; points that
/// do not ascend.
pub fn import(profile: &Profile, text: &str, meaning: &Meaning) -> Result<(Profile, Vec<String>)> {
    let table = Table::parse(text)?;
    let mut out = profile.clone();
    let skipped = if table.first_is(TASK_COUNT) {
        import_overheads(&mut out, &table, meaning)?
    } else if table.first_is(WSS) {
        import_cpmd(&mut out, &table, meaning)?
    } else {
        return Err(Error::new(format!(
            "the first column is `{}`",
            table.names.first().map_or("", String::as_str)
        ))
        .at("line 1")
        .remedy(
            "SchedCAT's tables start with `TASK-COUNT` (overheads) or `WSS` (cache delays, sizes in KiB)",
        ));
    };
    Ok((out, skipped))
}

fn import_overheads(out: &mut Profile, table: &Table, meaning: &Meaning) -> Result<Vec<String>> {
    let tasks: Vec<u32> = table.arguments(|text| text.parse().ok())?;
    let mut skipped = Vec::new();
    for (column, name) in table.names.iter().enumerate().skip(1) {
        let Some((_, kind)) = OVERHEADS.iter().find(|(known, _)| known == name) else {
            table.refuse_unknown(name, OVERHEADS.iter().map(|(known, _)| *known))?;
            skipped.push(name.clone());
            continue;
        };
        let index = match out
            .overheads
            .iter()
            .position(|c| c.kind == *kind && c.policy == meaning.policy && c.code.is_none())
        {
            Some(index) => index,
            None => {
                out.overheads.push(OverheadCurve {
                    kind: *kind,
                    policy: meaning.policy.clone(),
                    code: None,
                    points: Vec::new(),
                });
                out.overheads.len() - 1
            }
        };
        let points = &mut out.overheads[index].points;
        for (row, tasks) in tasks.iter().enumerate() {
            let value = table.value(row, column)?;
            let value = Duration::from_nanos(u64::try_from(value).map_err(|_| {
                Error::new(format!("the overhead `{name}` is negative"))
                    .at(format!("line {}", table.rows[row].line))
                    .remedy("give times of at least zero")
            })?);
            let at = points.partition_point(|p| p.tasks < *tasks);
            if points.get(at).is_none_or(|p| p.tasks != *tasks) {
                points.insert(
                    at,
                    OverheadPoint {
                        tasks: *tasks,
                        samples: 0,
                        average: None,
                        maximum: None,
                        untrimmed: None,
                        intervals: crate::profile::Intervals::default(),
                    },
                );
            }
            let place = match meaning.statistic {
                Statistic::Average => &mut points[at].average,
                Statistic::Maximum | Statistic::Untrimmed => &mut points[at].maximum,
            };
            fill(place, value, table.rows[row].line, name)?;
        }
    }
    Ok(skipped)
}

fn import_cpmd(out: &mut Profile, table: &Table, meaning: &Meaning) -> Result<Vec<String>> {
    let sizes: Vec<Bytes> = table.arguments(|text| {
        let kib: u64 = text.parse().ok()?;
        kib.checked_mul(1024).map(Bytes::new)
    })?;
    for (column, name) in table.names.iter().enumerate().skip(1) {
        let Some((_, resumption)) = CACHES.iter().find(|(known, _)| known == name) else {
            table.refuse_unknown(name, CACHES.iter().map(|(known, _)| *known))?;
            continue;
        };
        let index = match out.cpmd.iter().position(|c| {
            c.resumption == *resumption
                && c.load == meaning.load
                && c.write_ratio == meaning.write_ratio
        }) {
            Some(index) => index,
            None => {
                out.cpmd.push(CpmdCurve {
                    resumption: *resumption,
                    load: meaning.load,
                    write_ratio: meaning.write_ratio,
                    points: Vec::new(),
                });
                out.cpmd.len() - 1
            }
        };
        let points = &mut out.cpmd[index].points;
        for (row, wss) in sizes.iter().enumerate() {
            let value = Delay::from_nanos(table.value(row, column)?);
            let at = points.partition_point(|p| p.wss < *wss);
            if points.get(at).is_none_or(|p| p.wss != *wss) {
                points.insert(
                    at,
                    CpmdPoint {
                        wss: *wss,
                        samples: 0,
                        average: None,
                        deviation: None,
                        maximum: None,
                        percentiles: Vec::new(),
                        average_interval: None,
                        maximum_interval: None,
                    },
                );
            }
            let place = match meaning.statistic {
                Statistic::Average => &mut points[at].average,
                Statistic::Maximum | Statistic::Untrimmed => &mut points[at].maximum,
            };
            fill(place, value, table.rows[row].line, name)?;
        }
    }
    Ok(Vec::new())
}

fn fill<T>(place: &mut Option<T>, value: T, line: usize, column: &str) -> Result<()> {
    if place.is_some() {
        return Err(
            Error::new(format!("the profile has this value of `{column}` already"))
                .at(format!("line {line}"))
                .remedy(
                    "import into another profile, or say which statistic, load or policy the table holds",
                ),
        );
    }
    *place = Some(value);
    Ok(())
}

/// Writes one statistic of the cache delays of a profile as SchedCAT reads it.
///
/// Returns the text and what was left out: curves that SchedCAT has no column for, sizes that not
/// every curve has.
///
/// # Errors
/// No curve for this load, write ratio and statistic; a size that is no whole number of KiB.
pub fn export_cpmd(profile: &Profile, meaning: &Meaning) -> Result<(String, Vec<String>)> {
    let curves: Vec<&CpmdCurve> = profile
        .cpmd
        .iter()
        .filter(|c| c.load == meaning.load && c.write_ratio == meaning.write_ratio)
        .collect();
    let mut left_out: Vec<String> = curves
        .iter()
        .filter(|c| CACHES.iter().all(|(_, known)| *known != c.resumption))
        .map(|c| format!("{}: SchedCAT has no column for it", c.resumption))
        .collect();
    let columns: Vec<(&str, Vec<(u64, i64)>)> = CACHES
        .iter()
        .filter_map(|(name, resumption)| {
            let curve = curves.iter().find(|c| c.resumption == *resumption)?;
            let known = curve.points.iter();
            Some((
                *name,
                known
                    .filter_map(|p| Some((p.wss.get(), p.value(meaning.statistic)?.nanos())))
                    .collect(),
            ))
        })
        .collect();
    let text = write_table(WSS, &columns, &mut left_out, |bytes| match bytes % 1024 {
        0 => Ok((bytes / 1024).to_string()),
        _ => Err(Error::new(format!(
            "the working set size {} is no whole number of KiB",
            Bytes::new(bytes)
        ))
        .remedy("SchedCAT's tables count in KiB: leave that point out of the profile")),
    })?;
    match text {
        Some(text) => Ok((text, left_out)),
        None => Err(Error::new(format!(
            "the profile of `{}` has no {} cache delays ({}, write ratio {})",
            profile.platform, meaning.statistic, meaning.load, meaning.write_ratio
        ))
        .remedy(
            "choose another load, statistic or write ratio: `warmset profile show` lists them",
        )),
    }
}

/// Writes one statistic of the overheads of a profile as SchedCAT reads it; as [`export_cpmd`].
///
/// # Errors
/// No curve for this policy and statistic.
pub fn export_overheads(profile: &Profile, meaning: &Meaning) -> Result<(String, Vec<String>)> {
    let curves: Vec<&OverheadCurve> = profile
        .overheads
        .iter()
        .filter(|c| c.policy == meaning.policy && c.code != Some(Code::Kernel))
        .collect();
    let mut left_out: Vec<String> = curves
        .iter()
        .filter(|c| OVERHEADS.iter().all(|(_, known)| *known != c.kind))
        .map(|c| format!("{}: SchedCAT has no column for it", c.kind.name()))
        .collect();
    let columns: Vec<(&str, Vec<(u64, i64)>)> = OVERHEADS
        .iter()
        .filter_map(|(name, kind)| {
            let known = curves.iter().filter(|c| c.kind == *kind);
            let curve = known.min_by_key(|c| c.code == Some(Code::Own))?;
            let known = curve.points.iter();
            Some((
                *name,
                known
                    .filter_map(|p| {
                        let value = Delay::from(p.value(meaning.statistic)?);
                        Some((u64::from(p.tasks), value.nanos()))
                    })
                    .collect(),
            ))
        })
        .collect();
    let text = write_table(TASK_COUNT, &columns, &mut left_out, |tasks| {
        Ok(tasks.to_string())
    })?;
    match text {
        Some(text) => Ok((text, left_out)),
        None => Err(Error::new(format!(
            "the profile of `{}` has no {} overheads for the policy `{}`",
            profile.platform, meaning.statistic, meaning.policy
        ))
        .remedy("choose another policy or statistic: `warmset profile show` lists them")),
    }
}

/// The rows that every column has; `None` without any.
fn write_table(
    first: &str,
    columns: &[(&str, Vec<(u64, i64)>)],
    left_out: &mut Vec<String>,
    argument: impl Fn(u64) -> Result<String>,
) -> Result<Option<String>> {
    let columns: Vec<_> = columns
        .iter()
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let all: BTreeSet<u64> = columns
        .iter()
        .flat_map(|(_, points)| points.iter().map(|p| p.0))
        .collect();
    let mut text = std::iter::once(first)
        .chain(columns.iter().map(|(name, _)| *name))
        .collect::<Vec<_>>()
        .join(",");
    text.push('\n');
    let mut rows = 0;
    for x in all {
        let values: Vec<i64> = columns
            .iter()
            .filter_map(|(_, points)| points.iter().find(|p| p.0 == x).map(|p| p.1))
            .collect();
        let argument = argument(x)?;
        if values.len() < columns.len() {
            left_out.push(format!("{first} {argument}: not every curve has it"));
            continue;
        }
        rows += 1;
        text.push_str(&argument);
        for ns in values {
            text.push(',');
            text.push_str(&micros(ns));
        }
        text.push('\n');
    }
    Ok((rows > 0).then_some(text))
}

/// Nanoseconds as microseconds, exactly.
fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000);
    match rest {
        0 => format!("{sign}{whole}"),
        _ => {
            let fraction = format!("{rest:03}");
            format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
        }
    }
}

/// Microseconds with any number of decimals as nanoseconds, rounded up: a cost is not understated.
fn nanos(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !plain(whole) || !plain(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let (kept, cut) = fraction.split_at(fraction.len().min(3));
    let thousandths: i64 = format!("{kept:0<3}").parse().ok()?;
    let more = i64::from(!negative && cut.bytes().any(|b| b != b'0'));
    let ns = whole
        .checked_mul(1_000)?
        .checked_add(thousandths)?
        .checked_add(more)?;
    Some(if negative { -ns } else { ns })
}

/// A table of text cells.
struct Table {
    names: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    line: usize,
    cells: Vec<String>,
}

impl Table {
    fn parse(text: &str) -> Result<Table> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| Row {
                line: index + 1,
                cells: line.split(',').map(|cell| cell.trim().to_owned()).collect(),
            })
            .filter(|row| row.cells.iter().any(|cell| !cell.is_empty()));
        let Some(header) = lines.next() else {
            return Err(
                Error::new("the table is empty").remedy("give a header and at least one row")
            );
        };
        let names = header.cells;
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(Error::new(format!("the column `{name}` is there twice"))
                    .at(format!("line {}", header.line))
                    .remedy("keep one of them"));
            }
        }
        let rows: Vec<Row> = lines.collect();
        if rows.is_empty() {
            return Err(
                Error::new("the table has no rows").remedy("give at least one below the header")
            );
        }
        for row in &rows {
            if row.cells.len() != names.len() {
                return Err(Error::new(format!(
                    "{} cells under {} columns",
                    row.cells.len(),
                    names.len()
                ))
                .at(format!("line {}", row.line))
                .remedy("give every row one cell a column"));
            }
        }
        Ok(Table { names, rows })
    }

    fn first_is(&self, name: &str) -> bool {
        self.names.first().is_some_and(|first| first == name)
    }

    /// The first column; must ascend.
    fn arguments<T: Ord>(&self, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let text = row.cells.first().map_or("", String::as_str);
            // Whole numbers only, but `4.0` is one.
            let value = read(text.strip_suffix(".0").unwrap_or(text)).ok_or_else(|| {
                Error::new(format!("`{text}` is not a whole number that fits"))
                    .at(format!("line {}, `{}`", row.line, self.names[0]))
                    .remedy("give a number of tasks, or a working set size in KiB")
            })?;
            if out.last().is_some_and(|last| *last >= value) {
                return Err(
                    Error::new(format!("{text} does not come after the row before it"))
                        .at(format!("line {}, `{}`", row.line, self.names[0]))
                        .remedy("sort the rows in ascending order, each value once"),
                );
            }
            out.push(value);
        }
        Ok(out)
    }

    /// A cell as nanoseconds.
    fn value(&self, row: usize, column: usize) -> Result<i64> {
        let row = &self.rows[row];
        let text = &row.cells[column];
        nanos(text).ok_or_else(|| {
            Error::new(format!("`{text}` is not a number of microseconds"))
                .at(format!("line {}, `{}`", row.line, self.names[column]))
                .remedy("write such as `17.52`")
        })
    }

    /// Lets the columns pass that SchedCAT knows; another one is a slip.
    fn refuse_unknown(&self, name: &str, known: impl Iterator<Item = &'static str>) -> Result<()> {
        if ELSEWHERE.contains(&name) && self.first_is(TASK_COUNT) {
            return Ok(());
        }
        let known: Vec<&str> = known.collect();
        let remedy = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        Err(Error::new(format!("unknown column `{name}`"))
            .at("line 1")
            .remedy(remedy))
    }
}
