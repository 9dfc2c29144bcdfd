//! Profiles in files: TOML, one point of a curve a line, and the built-in ones.
//!
//! What a profile file must hold is checked at the door: ascending points without doubles, one
//! curve for every way to resume, load and write ratio, ratios within [0, 1]. An unknown key is
//! refused with its line and the nearest one.

mod scheduled;

use crate::builtin;
use crate::error::{Error, Result};
use crate::files;
use crate::input::{Document, Table, Value, quoted};
use crate::profile::{
    CpmdCurve, CpmdPoint, Intervals, OverheadCurve, OverheadPoint, Profile, Statistic, Untrimmed,
};
use crate::provenance::Provenance;
use crate::time::{Delay, Duration};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The built-in profiles: name and text.
const PROFILES: [(&str, &str); 1] = [("xeon-l7455", include_str!("../data/xeon-l7455.toml"))];

const KEYS: [&str; 8] = [
    "version",
    "platform",
    "provenance",
    "tick_period",
    "watch_period",
    "cpmd",
    "cpmd_scheduled",
    "overheads",
];
const PROVENANCE_KEYS: [&str; 8] = [
    "source", "command", "time", "machine", "kernel", "seed", "warnings", "settings",
];
const CPMD_KEYS: [&str; 4] = ["resumption", "load", "write_ratio", "points"];
const CPMD_POINT_KEYS: [&str; 8] = [
    "wss",
    "samples",
    "average",
    "deviation",
    "maximum",
    "percentiles",
    "average_interval",
    "maximum_interval",
];
const OVERHEAD_KEYS: [&str; 4] = ["kind", "policy", "code", "points"];
const OVERHEAD_POINT_KEYS: [&str; 6] = [
    "tasks",
    "samples",
    "average",
    "maximum",
    "untrimmed",
    "intervals",
];
const INTERVAL_KEYS: [&str; 5] = [
    "groups",
    "average",
    "maximum",
    "untrimmed_average",
    "untrimmed_maximum",
];
const UNTRIMMED_KEYS: [&str; 3] = ["outliers", "average", "maximum"];

/// The names of the built-in profiles.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PROFILES.iter().map(|(name, _)| *name)
}

impl Profile {
    /// The built-in profile of this name.
    ///
    /// # Errors
    /// There is none: names the nearest one and all there are.
    pub fn builtin(name: &str) -> Result<Profile> {
        match PROFILES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => {
                from_toml(text).map_err(|e| e.at(format!("built-in profile `{name}`")))
            }
            None => Err(builtin::unknown(
                "profile",
                name,
                names(),
                "a file such as `profile.toml`",
            )),
        }
    }

    /// The profile that a user means: a built-in name, or else a file.
    ///
    /// # Errors
    /// Neither a built-in name nor a path; the file cannot be read or is no profile.
    pub fn find(name: &str) -> Result<Profile> {
        if builtin::is_path(name) {
            let path = Path::new(name);
            return from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()));
        }
        Profile::builtin(name)
    }
}

/// Reads a profile from TOML.
///
/// # Errors
/// Anything that is not a profile of this version, with line and key.
pub fn from_toml(text: &str) -> Result<Profile> {
    let document =
        Document::parse(text).map_err(|e| e.remedy("see `docs/profiles.md` for the format"))?;
    let root = document.root();
    // The version comes first: another one may well have other keys.
    let version = root.need("version")?;
    let number = version.whole()?;
    if number != u64::from(Profile::VERSION) {
        return Err(version
            .error(format!("this is version {number} of the format"))
            .remedy(format!("this program reads version {}", Profile::VERSION)));
    }
    root.only(&KEYS)?;
    let mut profile = Profile::new(
        root.need("platform")?.text()?,
        match root.get("provenance") {
            Some(value) => provenance_of(&value.table()?)?,
            None => Provenance::default(),
        },
    );
    profile.tick_period = period_of(&root, "tick_period", "two ticks")?;
    profile.watch_period = period_of(&root, "watch_period", "two looks for standstills")?;
    for value in list(&root, "cpmd")? {
        let curve = cpmd_of(&value.table()?)?;
        if profile.cpmd.iter().any(|c| {
            (c.resumption, c.load) == (curve.resumption, curve.load)
                && c.write_ratio == curve.write_ratio
        }) {
            return Err(value
                .error(format!(
                    "a second curve for a {} ({}, write ratio {})",
                    curve.resumption, curve.load, curve.write_ratio
                ))
                .remedy("keep one of them"));
        }
        profile.cpmd.push(curve);
    }
    profile.cpmd_scheduled = scheduled::curves_of(&root)?;
    for value in list(&root, "overheads")? {
        let curve = overhead_of(&value.table()?)?;
        if profile
            .overheads
            .iter()
            .any(|c| (c.kind, &c.policy, c.code) == (curve.kind, &curve.policy, curve.code))
        {
            return Err(value
                .error(format!(
                    "a second curve for `{}` under this policy, of the same code",
                    curve.kind.name()
                ))
                .remedy("keep one of them"));
        }
        profile.overheads.push(curve);
    }
    Ok(profile)
}

fn list<'d, 'i>(table: &Table<'d, 'i>, key: &str) -> Result<Vec<Value<'d, 'i>>> {
    table.get(key).map_or(Ok(Vec::new()), |v| v.list())
}

fn provenance_of(table: &Table<'_, '_>) -> Result<Provenance> {
    table.only(&PROVENANCE_KEYS)?;
    let text = |key: &str| -> Result<String> {
        table
            .get(key)
            .map_or(Ok(String::new()), |v| v.text().map(str::to_owned))
    };
    let mut settings = BTreeMap::new();
    if let Some(value) = table.get("settings") {
        for (name, value) in value.table()?.entries() {
            settings.insert(name, value.text()?.to_owned());
        }
    }
    Ok(Provenance {
        source: text("source")?,
        command: text("command")?,
        time: text("time")?,
        machine: text("machine")?,
        kernel: text("kernel")?,
        seed: table.get("seed").map(|v| v.whole()).transpose()?,
        warnings: list(table, "warnings")?
            .iter()
            .map(|v| v.text().map(str::to_owned))
            .collect::<Result<_>>()?,
        settings,
    })
}

fn cpmd_of(table: &Table<'_, '_>) -> Result<CpmdCurve> {
    table.only(&CPMD_KEYS)?;
    curve_of(table)
}

fn curve_of(table: &Table<'_, '_>) -> Result<CpmdCurve> {
    let ratio = table.need("write_ratio")?;
    let write_ratio = ratio.number()?;
    if !(0.0..=1.0).contains(&write_ratio) {
        return Err(ratio
            .error(format!("{write_ratio} is not a ratio"))
            .remedy("give a number from 0 to 1"));
    }
    let mut points: Vec<CpmdPoint> = Vec::new();
    for value in table.need("points")?.list()? {
        let point = cpmd_point_of(&value, &value.table()?)?;
        if points.last().is_some_and(|last| last.wss >= point.wss) {
            return Err(value
                .error(format!(
                    "{} does not come after the size before it",
                    point.wss
                ))
                .remedy("give the points in ascending order, each size once"));
        }
        points.push(point);
    }
    Ok(CpmdCurve {
        resumption: table.need("resumption")?.parsed()?,
        load: table.need("load")?.parsed()?,
        write_ratio,
        points,
    })
}

fn cpmd_point_of(value: &Value<'_, '_>, table: &Table<'_, '_>) -> Result<CpmdPoint> {
    table.only(&CPMD_POINT_KEYS)?;
    let mut percentiles: Vec<(f64, Delay)> = Vec::new();
    for pair in list(table, "percentiles")? {
        let [percent, delay] = &pair.list()?[..] else {
            return Err(pair
                .error("a percentile has two parts")
                .remedy("write such as `[99.0, \"12us\"]`"));
        };
        let percent = percent.number()?;
        if !(0.0..=100.0).contains(&percent)
            || percentiles.last().is_some_and(|(p, _)| *p >= percent)
        {
            return Err(pair
                .error("percentiles must ascend from 0 to 100")
                .remedy("write such as `[[50.0, \"3us\"], [99.0, \"12us\"]]`"));
        }
        percentiles.push((percent, delay.parsed()?));
    }
    let point = CpmdPoint {
        wss: table.need("wss")?.parsed()?,
        samples: samples_of(table)?,
        average: parsed(table, "average")?,
        deviation: parsed(table, "deviation")?,
        maximum: parsed(table, "maximum")?,
        percentiles,
        average_interval: interval_of(table, "average_interval")?,
        maximum_interval: interval_of(table, "maximum_interval")?,
    };
    check_statistics(value, point.average, point.maximum)?;
    Ok(point)
}

fn overhead_of(table: &Table<'_, '_>) -> Result<OverheadCurve> {
    table.only(&OVERHEAD_KEYS)?;
    let kind = table.need("kind")?;
    let mut points: Vec<OverheadPoint> = Vec::new();
    for value in table.need("points")?.list()? {
        let point_table = value.table()?;
        point_table.only(&OVERHEAD_POINT_KEYS)?;
        let tasks = point_table.need("tasks")?;
        let average: Option<Duration> = parsed(&point_table, "average")?;
        let maximum: Option<Duration> = parsed(&point_table, "maximum")?;
        let point = OverheadPoint {
            tasks: u32::try_from(tasks.whole()?).map_err(|_| {
                tasks
                    .error("too many tasks")
                    .remedy("give a number below 2^32")
            })?,
            samples: samples_of(&point_table)?,
            average,
            maximum,
            untrimmed: match point_table.get("untrimmed") {
                Some(value) => Some(untrimmed_of(&value.table()?, &value)?),
                None => None,
            },
            intervals: match point_table.get("intervals") {
                Some(value) => intervals_of(&value.table()?)?,
                None => Intervals::default(),
            },
        };
        check_statistics(&value, average.map(Delay::from), maximum.map(Delay::from))?;
        if points.last().is_some_and(|last| last.tasks >= point.tasks) {
            return Err(tasks
                .error(format!(
                    "{} does not come after the number before it",
                    point.tasks
                ))
                .remedy("give the points in ascending order, each number of tasks once"));
        }
        points.push(point);
    }
    Ok(OverheadCurve {
        kind: kind.text()?.parse().map_err(|e| kind.place(e))?,
        policy: table
            .get("policy")
            .map_or(Ok(String::new()), |v| v.text().map(str::to_owned))?,
        code: parsed(table, "code")?,
        points,
    })
}

fn untrimmed_of(table: &Table<'_, '_>, value: &Value<'_, '_>) -> Result<Untrimmed> {
    table.only(&UNTRIMMED_KEYS)?;
    let untrimmed = Untrimmed {
        outliers: table.need("outliers")?.whole()?,
        average: table.need("average")?.parsed()?,
        maximum: table.need("maximum")?.parsed()?,
    };
    let (average, maximum) = (untrimmed.average.into(), untrimmed.maximum.into());
    check_statistics(value, Some(average), Some(maximum))?;
    Ok(untrimmed)
}

fn intervals_of(table: &Table<'_, '_>) -> Result<Intervals> {
    table.only(&INTERVAL_KEYS)?;
    let groups = table.need("groups")?;
    Ok(Intervals {
        groups: u32::try_from(groups.whole()?).map_err(|_| {
            groups
                .error("too many groups")
                .remedy("give a number below 2^32")
        })?,
        average: interval_of(table, "average")?,
        maximum: interval_of(table, "maximum")?,
        untrimmed_average: interval_of(table, "untrimmed_average")?,
        untrimmed_maximum: interval_of(table, "untrimmed_maximum")?,
    })
}

/// Two ends, the lower one first.
fn interval_of<T>(table: &Table<'_, '_>, key: &str) -> Result<Option<(T, T)>>
where
    T: std::str::FromStr<Err = Error> + PartialOrd,
{
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let [low, high] = &value.list()?[..] else {
        return Err(value
            .error("an interval has two ends")
            .remedy("write such as `[\"11us\", \"13us\"]`"));
    };
    let (low, high): (T, T) = (low.parsed()?, high.parsed()?);
    match low > high {
        true => Err(value
            .error("the interval is empty")
            .remedy("write the lower end first")),
        false => Ok(Some((low, high))),
    }
}

fn samples_of(table: &Table<'_, '_>) -> Result<u64> {
    table.get("samples").map_or(Ok(0), |v| v.whole())
}

fn parsed<T: std::str::FromStr<Err = Error>>(
    table: &Table<'_, '_>,
    key: &str,
) -> Result<Option<T>> {
    table.get(key).map(|v| v.parsed()).transpose()
}

fn check_statistics(
    value: &Value<'_, '_>,
    average: Option<Delay>,
    maximum: Option<Delay>,
) -> Result<()> {
    match (average, maximum) {
        (None, None) => Err(value.error("a point without a value").remedy(format!(
            "give `{}`, `{}` or both",
            Statistic::Average,
            Statistic::Maximum
        ))),
        (Some(average), Some(maximum)) if average > maximum => Err(value
            .error(format!(
                "the average {average} is above the maximum {maximum}"
            ))
            .remedy("correct one of them")),
        _ => Ok(()),
    }
}

/// A time between two things of a kind, which is not zero.
fn period_of(root: &Table<'_, '_>, key: &str, between: &str) -> Result<Option<Duration>> {
    let Some(value) = root.get(key) else {
        return Ok(None);
    };
    let period: Duration = value.parsed()?;
    if period.is_zero() {
        return Err(value
            .error(format!("the time between {between} is zero"))
            .remedy("write such as `4ms` for 250 Hz, or leave the key out"));
    }
    Ok(Some(period))
}

/// Writes a profile as TOML that [`from_toml`] reads back to an equal one.
pub fn to_toml(profile: &Profile) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_profile(&mut out, profile);
    out
}

fn write_profile(out: &mut String, profile: &Profile) -> std::fmt::Result {
    writeln!(out, "version = {}", profile.version)?;
    writeln!(out, "platform = {}", quoted(&profile.platform))?;
    if let Some(period) = profile.tick_period {
        writeln!(out, "tick_period = \"{period}\"")?;
    }
    if let Some(period) = profile.watch_period {
        writeln!(out, "watch_period = \"{period}\"")?;
    }
    write_provenance(out, &profile.provenance)?;
    for curve in &profile.cpmd {
        writeln!(out, "\n[[cpmd]]")?;
        write_cpmd_curve(out, curve)?;
    }
    scheduled::write(out, &profile.cpmd_scheduled)?;
    for curve in &profile.overheads {
        write_overhead_curve(out, curve)?;
    }
    Ok(())
}

fn write_provenance(out: &mut String, provenance: &Provenance) -> std::fmt::Result {
    writeln!(out, "\n[provenance]")?;
    for (key, text) in [
        ("source", &provenance.source),
        ("command", &provenance.command),
        ("time", &provenance.time),
        ("machine", &provenance.machine),
        ("kernel", &provenance.kernel),
    ] {
        if !text.is_empty() {
            writeln!(out, "{key} = {}", quoted(text))?;
        }
    }
    if let Some(seed) = provenance.seed {
        writeln!(out, "seed = {}", whole(seed))?;
    }
    if !provenance.warnings.is_empty() {
        writeln!(out, "warnings = [")?;
        for warning in &provenance.warnings {
            writeln!(out, "    {},", quoted(warning))?;
        }
        writeln!(out, "]")?;
    }
    if !provenance.settings.is_empty() {
        writeln!(out, "\n[provenance.settings]")?;
        for (key, text) in &provenance.settings {
            writeln!(out, "{} = {}", quoted(key), quoted(text))?;
        }
    }
    Ok(())
}

fn write_cpmd_curve(out: &mut String, curve: &CpmdCurve) -> std::fmt::Result {
    let resumption = quoted(&curve.resumption.to_string());
    writeln!(out, "resumption = {resumption}")?;
    writeln!(out, "load = {}", quoted(&curve.load.to_string()))?;
    writeln!(out, "write_ratio = {}", float(curve.write_ratio))?;
    writeln!(out, "points = [")?;
    for point in &curve.points {
        let mut parts = vec![format!("wss = \"{}\"", point.wss)];
        push_samples(&mut parts, point.samples);
        push(&mut parts, "average", point.average);
        push(&mut parts, "deviation", point.deviation);
        push(&mut parts, "maximum", point.maximum);
        if !point.percentiles.is_empty() {
            let pairs: Vec<String> = point
                .percentiles
                .iter()
                .map(|(percent, delay)| format!("[{}, \"{delay}\"]", float(*percent)))
                .collect();
            parts.push(format!("percentiles = [{}]", pairs.join(", ")));
        }
        push_interval(&mut parts, "average_interval", point.average_interval);
        push_interval(&mut parts, "maximum_interval", point.maximum_interval);
        writeln!(out, "    {{ {} }},", parts.join(", "))?;
    }
    writeln!(out, "]")
}

fn write_overhead_curve(out: &mut String, curve: &OverheadCurve) -> std::fmt::Result {
    writeln!(out, "\n[[overheads]]")?;
    writeln!(out, "kind = {}", quoted(curve.kind.name()))?;
    if !curve.policy.is_empty() {
        writeln!(out, "policy = {}", quoted(&curve.policy))?;
    }
    if let Some(code) = curve.code {
        writeln!(out, "code = {}", quoted(code.name()))?;
    }
    writeln!(out, "points = [")?;
    for point in &curve.points {
        let mut parts = vec![format!("tasks = {}", point.tasks)];
        push_samples(&mut parts, point.samples);
        push(&mut parts, "average", point.average);
        push(&mut parts, "maximum", point.maximum);
        if let Some(all) = point.untrimmed {
            parts.push(format!(
                "untrimmed = {{ outliers = {}, average = \"{}\", maximum = \"{}\" }}",
                whole(all.outliers),
                all.average,
                all.maximum
            ));
        }
        let i = &point.intervals;
        if !i.are_none() {
            let mut ends = vec![format!("groups = {}", i.groups)];
            push_interval(&mut ends, "average", i.average);
            push_interval(&mut ends, "maximum", i.maximum);
            push_interval(&mut ends, "untrimmed_average", i.untrimmed_average);
            push_interval(&mut ends, "untrimmed_maximum", i.untrimmed_maximum);
            parts.push(format!("intervals = {{ {} }}", ends.join(", ")));
        }
        writeln!(out, "    {{ {} }},", parts.join(", "))?;
    }
    writeln!(out, "]")
}

fn push(parts: &mut Vec<String>, key: &str, value: Option<impl std::fmt::Display>) {
    parts.extend(value.map(|v| format!("{key} = \"{v}\"")));
}

fn push_interval<T: std::fmt::Display>(parts: &mut Vec<String>, key: &str, ends: Option<(T, T)>) {
    if let Some((low, high)) = ends {
        parts.push(format!("{key} = [\"{low}\", \"{high}\"]"));
    }
}

fn push_samples(parts: &mut Vec<String>, samples: u64) {
    if samples > 0 {
        parts.push(format!("samples = {}", whole(samples)));
    }
}

/// A number with a decimal point, so that TOML reads a floating-point number.
fn float(x: f64) -> String {
    toml::Value::Float(x).to_string()
}

/// TOML's integers are signed: a seed above 2^63 goes as text.
fn whole(n: u64) -> String {
    i64::try_from(n).map_or_else(|_| format!("\"{n}\""), |n| n.to_string())
}
