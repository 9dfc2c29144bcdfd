//! Do two measurements of the same thing agree? Figure by figure: where the intervals of both
//! ([`crate::interval`], [`crate::statistics`]) overlap, they do.
//!
//! Of many figures some lie apart by chance. Together two profiles agree if both hold:
//!
//! - No figure differs beyond doubt: by the test of Welch ("The generalization of `Student's'
//!   problem when several different population variances are involved", 1947) on the standard
//!   errors behind the intervals, at 5 % for all figures together (each at 5 % over their number).
//!   Figures whose intervals rest on ranks, the largest of all, have no such test.
//! - No more figures lie apart than chance explains: at most as many as of so many figures, each of
//!   which lies apart in one case of twenty, do but in one case of a hundred. Intervals of 95 % that
//!   do not touch are rarer than that, so that the rule also bears figures that hang together.
//!
//! Points of a curve that have the same figure in both, as where no trend is conclusive, are one.

use crate::interval::{beyond, student};
use model::profile::{Code, CpmdCurve, OverheadCurve};
use model::{Delay, Duration, Error, Profile, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One of twenty: the part of figures that may lie apart by chance; and all tests together.
const CHANCE: f64 = 0.05;
/// One of a hundred: more than this by chance are not believed.
const DOUBT: f64 = 0.01;
/// Of intervals that do not say from how many groups they are.
const MANY: u32 = 1_000;

/// A figure with its interval, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Stated {
    /// The figure.
    pub value_ns: i64,
    /// The lower end of its interval.
    pub low_ns: i64,
    /// The upper end.
    pub high_ns: i64,
    /// From how many groups of samples the interval is; none: it rests on ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
}

/// Which figure of a curve.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// The mean; of overheads without outliers.
    Average,
    /// The largest that is no outlier.
    Maximum,
    /// The mean of all, outliers among them.
    UntrimmedAverage,
    /// The largest of all.
    Largest,
    /// A period, which is known exactly.
    Period,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Figure::Average => "average",
            Figure::Maximum => "maximum",
            Figure::UntrimmedAverage => "average of all",
            Figure::Largest => "largest of all",
            Figure::Period => "period",
        })
    }
}

/// What is said of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The intervals overlap.
    Agree,
    /// They do not; that may be chance among so many.
    Apart,
    /// They do not, and it is beyond doubt among so many.
    Differ,
}

/// A figure of both.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Quantity {
    /// The curve, such as `release, g-edf, engine and kernel`.
    pub curve: String,
    /// Where on it, such as `4-30 tasks`.
    pub at: String,
    /// Which figure.
    pub figure: Figure,
    /// In the first profile.
    pub first: Stated,
    /// In the second one.
    pub second: Stated,
    /// How likely such a difference is by chance; none where ranks alone count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// What is said of it.
    pub verdict: Verdict,
}

/// What is said of two profiles. JSON: as `warmset profile compare A B --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Do they agree?
    pub agree: bool,
    /// Figure by figure.
    pub quantities: Vec<Quantity>,
    /// How many figures lie apart.
    pub apart: u64,
    /// How many may by chance.
    pub allowed: u64,
    /// How many of them differ beyond doubt.
    pub differ: u64,
    /// Figures of which one of the two states no interval.
    pub without_interval: u64,
    /// Curves that only the first has.
    pub only_first: Vec<String>,
    /// Curves that only the second has.
    pub only_second: Vec<String>,
}

/// A figure at a place of a curve; the interval may be missing.
type Known = (i64, Option<Stated>);
/// By curve: by figure and place.
type Curves = BTreeMap<String, BTreeMap<(Figure, u64), Known>>;

/// Compares two profiles.
///
/// # Errors
/// They have no figure in common of which both state an interval.
pub fn compare(first: &Profile, second: &Profile) -> Result<Comparison> {
    let (a, b) = (curves(first), curves(second));
    let only = |one: &Curves, other: &Curves| -> Vec<String> {
        let names = one.keys().filter(|name| !other.contains_key(*name));
        names.cloned().collect()
    };
    let mut quantities = Vec::new();
    let mut without_interval = 0;
    for (curve, figures) in &a {
        let Some(others) = b.get(curve) else { continue };
        let mut last: Option<(Figure, u64)> = None;
        for ((figure, place), first) in figures {
            let Some(second) = others.get(&(*figure, *place)) else {
                continue;
            };
            let (Some(first), Some(second)) = (first.1, second.1) else {
                without_interval += 1;
                continue;
            };
            let is_same = |q: &Quantity| (q.figure, q.first, q.second) == (*figure, first, second);
            match (quantities.last_mut(), last) {
                (Some(before), Some((f, from))) if f == *figure && is_same(before) => {
                    before.at = at(curve, from, *place);
                }
                _ => {
                    last = Some((*figure, *place));
                    quantities.push(Quantity {
                        curve: curve.clone(),
                        at: at(curve, *place, *place),
                        figure: *figure,
                        first,
                        second,
                        p: chance(&first, &second),
                        verdict: Verdict::Agree,
                    });
                }
            }
        }
    }
    if quantities.iter().all(|q| q.figure == Figure::Period) {
        return Err(Error::new(
            "the two profiles have no figure in common of which both state an interval",
        )
        .remedy(
            "compare profiles of the same platform that `warmset measure` of this version wrote",
        ));
    }
    let (apart, differ) = judge(&mut quantities);
    let allowed = allowed(quantities.len() as u64);
    Ok(Comparison {
        agree: differ == 0 && apart <= allowed,
        quantities,
        apart,
        allowed,
        differ,
        without_interval,
        only_first: only(&a, &b),
        only_second: only(&b, &a),
    })
}

/// Says of each figure whether it agrees. Returns how many lie apart, and how many of them beyond
/// doubt.
fn judge(quantities: &mut [Quantity]) -> (u64, u64) {
    let all = quantities.len() as f64;
    let (mut apart, mut differ) = (0, 0);
    for q in quantities {
        // Figures are rounded to a nanosecond.
        let overlap = q.first.low_ns <= q.second.high_ns.saturating_add(1)
            && q.second.low_ns <= q.first.high_ns.saturating_add(1);
        q.verdict = match overlap {
            true => continue,
            false if q.p.is_some_and(|p| p * all < CHANCE) => Verdict::Differ,
            false => Verdict::Apart,
        };
        apart += 1;
        differ += u64::from(q.verdict == Verdict::Differ);
    }
    (apart, differ)
}

/// How likely so large a difference is, by the test of Welch; `None` for intervals by ranks.
fn chance(first: &Stated, second: &Stated) -> Option<f64> {
    let (lower, upper) = match first.value_ns <= second.value_ns {
        true => (first, second),
        false => (second, first),
    };
    let difference = upper.value_ns.abs_diff(lower.value_ns) as f64;
    // The ends that face each other.
    let error = |reach: u64, groups: u32| {
        let freedom = groups.max(2) as usize - 1;
        ((reach as f64 / student(freedom)).powi(2), freedom as f64)
    };
    let (a, m) = error(lower.high_ns.abs_diff(lower.value_ns), lower.groups?);
    let (b, n) = error(upper.value_ns.abs_diff(upper.low_ns), upper.groups?);
    if a + b == 0.0 {
        return Some(if difference <= 1.0 { 1.0 } else { 0.0 });
    }
    let freedom = (a + b).powi(2) / (a.powi(2) / m + b.powi(2) / n);
    Some(beyond(difference / (a + b).sqrt(), freedom as usize))
}

/// Of so many figures, each of which lies apart with [`CHANCE`], no more than this do but in
/// [`DOUBT`] of all cases.
fn allowed(figures: u64) -> u64 {
    let n = figures as f64;
    // The logarithm of the probability that none does; then one, two, ….
    let mut log = n * (1.0 - CHANCE).ln();
    let mut within = log.exp();
    let mut count = 0;
    while 1.0 - within >= DOUBT && count < figures {
        let k = count as f64;
        log += ((n - k) / (k + 1.0) * CHANCE / (1.0 - CHANCE)).ln();
        within += log.exp();
        count += 1;
    }
    count
}

/// `10 tasks`, `4-30 tasks`, `64KiB`.
fn at(curve: &str, from: u64, to: u64) -> String {
    let is_delay = curve.starts_with(DELAY);
    let one = |place: u64| match is_delay {
        true => model::Bytes::new(place).to_string(),
        false => place.to_string(),
    };
    match (is_delay, from == to) {
        (_, _) if curve.ends_with(PERIOD) => String::new(),
        (true, true) => one(from),
        (true, false) => format!("{}-{}", one(from), one(to)),
        (false, true) => format!("{from} tasks"),
        (false, false) => format!("{from}-{to} tasks"),
    }
}

/// What the names of curves of cache delays begin with.
const DELAY: &str = "delay, ";
/// What the names of periods end with.
const PERIOD: &str = " period";

fn curves(profile: &Profile) -> Curves {
    let mut curves = Curves::new();
    for curve in &profile.cpmd {
        let name = format!("{DELAY}{}", kind(curve));
        curves.insert(name, delays(curve));
    }
    for of in &profile.cpmd_scheduled {
        let name = format!(
            "{DELAY}{}, {} with {} tasks",
            kind(&of.curve),
            of.policy,
            of.tasks
        );
        curves.insert(name, delays(&of.curve));
    }
    // Curves of any policy are the largest of those of all policies.
    let named = |kind| {
        profile
            .overheads
            .iter()
            .any(|c| c.kind == kind && !c.policy.is_empty())
    };
    for curve in &profile.overheads {
        if !curve.policy.is_empty() || !named(curve.kind) {
            curves.insert(overhead_name(curve), overheads(curve));
        }
    }
    let periods = [
        ("tick", profile.tick_period),
        ("watch", profile.watch_period),
    ];
    for (name, period) in periods {
        if let Some(period) = period {
            let exact = stated(period, Some((period, period)), Some(MANY));
            let places = BTreeMap::from([((Figure::Period, 0), exact)]);
            curves.insert(format!("{name}{PERIOD}"), places);
        }
    }
    curves
}

fn kind(curve: &CpmdCurve) -> String {
    format!(
        "{}, {}, write ratio {}",
        curve.resumption, curve.load, curve.write_ratio
    )
}

fn overhead_name(curve: &OverheadCurve) -> String {
    let mut name = curve.kind.words().to_owned();
    if !curve.policy.is_empty() {
        name += ", ";
        name += &curve.policy;
    }
    name += match curve.code {
        None => "",
        Some(Code::Own) => ", engine",
        Some(Code::Kernel) => ", kernel",
        Some(Code::Both) => ", engine and kernel",
    };
    name
}

fn stated(value: Duration, ends: Option<(Duration, Duration)>, groups: Option<u32>) -> Known {
    let delays = ends.map(|(low, high)| (Delay::from(low), Delay::from(high)));
    of_delay(Delay::from(value), delays, groups)
}

fn of_delay(value: Delay, ends: Option<(Delay, Delay)>, groups: Option<u32>) -> Known {
    let stated = ends.map(|(low, high)| Stated {
        value_ns: value.nanos(),
        low_ns: low.nanos(),
        high_ns: high.nanos(),
        groups,
    });
    (value.nanos(), stated)
}

fn delays(curve: &CpmdCurve) -> BTreeMap<(Figure, u64), Known> {
    let mut all = BTreeMap::new();
    for p in &curve.points {
        let place = p.wss.get();
        if let Some(average) = p.average {
            let known = of_delay(average, p.average_interval, Some(MANY));
            all.insert((Figure::Average, place), known);
        }
        if let Some(largest) = p.maximum {
            let known = of_delay(largest, p.maximum_interval, None);
            all.insert((Figure::Largest, place), known);
        }
    }
    all
}

fn overheads(curve: &OverheadCurve) -> BTreeMap<(Figure, u64), Known> {
    let mut all = BTreeMap::new();
    for p in &curve.points {
        let (i, groups) = (&p.intervals, Some(p.intervals.groups));
        let mut add = |figure, value: Option<Duration>, ends, groups| {
            if let Some(value) = value {
                all.insert((figure, u64::from(p.tasks)), stated(value, ends, groups));
            }
        };
        add(Figure::Average, p.average, i.average, groups);
        add(Figure::Maximum, p.maximum, i.maximum, groups);
        let untrimmed = p.untrimmed.as_ref();
        let average = untrimmed.map(|u| u.average);
        add(
            Figure::UntrimmedAverage,
            average,
            i.untrimmed_average,
            groups,
        );
        let largest = untrimmed.map(|u| u.maximum);
        add(Figure::Largest, largest, i.untrimmed_maximum, None);
    }
    all
}

#[cfg(test)]
mod tests;
