//! What was found, in plain sentences, made from the data.
//!
//! A sentence is there only if its data is; what was not measured is said. Means of two kinds count
//! as equal where their intervals overlap, or, without intervals, where they differ by at most a
//! tenth.

use crate::cpmd::{curve, middle_size, name, resumptions};
use crate::page::Numbers;
use crate::words::{count, list, plain, size, three, time};
use model::{Bytes, CpmdPoint, Delay, Load, Profile, Resumption, Statistic};

mod verdicts;
pub use verdicts::{Verdict, extrapolated, global_or_partitioned, verdicts};

/// Differences of means up to this part of the larger one count as none where no interval is known.
const SAME: f64 = 0.10;

const LOADS: [Load; 2] = [Load::Idle, Load::Load];

fn under(load: Load) -> &'static str {
    match load {
        Load::Idle => "in an idle system",
        Load::Load => "under load",
    }
}

/// The point of a curve at a size.
fn point(profile: &Profile, kind: Resumption, load: Load, wss: Bytes) -> Option<&CpmdPoint> {
    curve(profile, kind, load)?
        .points
        .iter()
        .find(|p| p.wss == wss)
}

/// What a profile says about losing a warm cache; `place` names the machine as the subject of a
/// sentence would, such as `this machine`.
pub fn cpmd(profile: &Profile, place: &str) -> Vec<String> {
    let kinds = resumptions(profile);
    let Some(wss) = middle_size(profile) else {
        return vec![format!("No cache delays are known of {place}.")];
    };
    let mut all = Vec::new();
    let measured: Vec<Load> = LOADS
        .into_iter()
        .filter(|load| {
            profile
                .cpmd
                .iter()
                .any(|c| c.load == *load && !c.points.is_empty())
        })
        .collect();
    all.extend(preemption(profile, place, wss, &measured));
    if measured.len() == 1 {
        all.push(match measured[0] {
            Load::Idle => {
                "Nothing was measured under load: expect more where other programs use the caches."
                    .to_owned()
            }
            Load::Load => "Nothing was measured in an idle system.".to_owned(),
        });
    }
    for kind in kinds.iter().filter(|k| **k != Resumption::Preemption) {
        all.extend(migration(profile, *kind, wss, &measured));
    }
    if kinds == [Resumption::Preemption] {
        all.push(
            "Only preemptions were measured: a task has no other processor to migrate to."
                .to_owned(),
        );
    }
    all.extend(where_it_resumes(profile, &kinds));
    all.extend(largest(profile, wss, &measured));
    all.extend(unpredictable(profile, &kinds));
    all.extend(negative(profile));
    all
}

/// What losing a warm cache costs at one size, in one sentence; `None` where nothing is known.
pub fn answer(profile: &Profile, place: &str) -> Option<String> {
    let wss = middle_size(profile)?;
    let cost = |load: Load| {
        let p = point(profile, Resumption::Preemption, load, wss)?;
        let value = match p.average {
            Some(average) if average <= Delay::ZERO => "nothing that can be measured".to_owned(),
            Some(average) => format!("{} on average", time(average)),
            None => format!("up to {}", time(p.maximum?)),
        };
        Some(format!("{value} {}", under(load)))
    };
    let costs: Vec<String> = LOADS.into_iter().filter_map(cost).collect();
    (!costs.is_empty()).then(|| {
        format!(
            "On {place} a task with a working set of {} loses {} when it is preempted.",
            size(wss),
            list(&costs)
        )
    })
}

/// The delays at the size that the sentences speak of, as a table: caption, header, and a row for
/// each way to resume. It is empty where nothing is known.
pub fn numbers(profile: &Profile) -> Numbers {
    let Some(wss) = middle_size(profile) else {
        return Numbers::default();
    };
    let known = |load: &Load| {
        profile
            .cpmd
            .iter()
            .any(|c| c.load == *load && !c.points.is_empty())
    };
    let loads: Vec<Load> = LOADS.into_iter().filter(known).collect();
    let cell = |p: Option<&CpmdPoint>, statistic: Statistic| {
        let Some(value) = p.and_then(|p| p.value(statistic)) else {
            return "–".to_owned();
        };
        match p.and_then(|p| p.average_interval) {
            Some((low, high)) if statistic == Statistic::Average => {
                format!("{} ({} to {})", time(value), time(low), time(high))
            }
            _ => time(value),
        }
    };
    let mut header = vec!["a job comes back after a".to_owned()];
    for load in &loads {
        header.push(format!("average {}", under(*load)));
        header.push(format!("largest {}", under(*load)));
    }
    let rows = resumptions(profile).into_iter().map(|kind| {
        let mut row = vec![name(kind)];
        for load in &loads {
            let p = point(profile, kind, *load, wss);
            row.extend([cell(p, Statistic::Average), cell(p, Statistic::Maximum)]);
        }
        row
    });
    let intervals = profile
        .cpmd
        .iter()
        .flat_map(|c| &c.points)
        .any(|p| p.average_interval.is_some());
    Numbers {
        caption: format!(
            "What it costs to lose a working set of {}{}",
            size(wss),
            if intervals {
                " (in brackets: the 95 % interval of the average)"
            } else {
                ""
            }
        ),
        header,
        rows: rows.collect(),
    }
}

/// The cost of one cell as the object of `costs`.
fn cost(p: &CpmdPoint) -> Option<String> {
    let interval = p
        .average_interval
        .map(|(low, high)| format!(" (95 % interval {} to {})", time(low), time(high)))
        .unwrap_or_default();
    match (p.average, p.maximum) {
        (Some(average), _) if average <= Delay::ZERO => Some(format!(
            "nothing that can be measured (the average is {})",
            time(average)
        )),
        (Some(average), _) => Some(format!("{} on average{interval}", time(average))),
        (None, Some(maximum)) => Some(format!("up to {}", time(maximum))),
        (None, None) => None,
    }
}

fn preemption(profile: &Profile, place: &str, wss: Bytes, measured: &[Load]) -> Option<String> {
    let costs: Vec<String> = measured
        .iter()
        .filter_map(|load| {
            let cost = cost(point(profile, Resumption::Preemption, *load, wss)?)?;
            Some(format!("{cost} {}", under(*load)))
        })
        .collect();
    (!costs.is_empty()).then(|| {
        format!(
            "On {place} a preemption of a task with a working set of {} costs {}.",
            size(wss),
            list(&costs)
        )
    })
}

/// Do the means differ by more than chance or a tenth?
fn same(a: &CpmdPoint, b: &CpmdPoint) -> Option<bool> {
    let (x, y) = (a.average?.nanos() as f64, b.average?.nanos() as f64);
    Some(match (a.average_interval, b.average_interval) {
        (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
        _ => (x - y).abs() <= SAME * x.abs().max(y.abs()),
    })
}

fn migration(profile: &Profile, kind: Resumption, wss: Bytes, measured: &[Load]) -> Option<String> {
    let parts: Vec<String> = measured
        .iter()
        .filter_map(|load| {
            let moved = point(profile, kind, *load, wss)?;
            let stayed = point(profile, Resumption::Preemption, *load, wss);
            let Some((stayed, same)) = stayed.and_then(|s| Some((s, same(moved, s)?))) else {
                return Some(format!("{} {}", cost(moved)?, under(*load)));
            };
            let more = moved.average?.nanos() - stayed.average?.nanos();
            Some(if same {
                format!(
                    "about as much as a preemption {} ({})",
                    under(*load),
                    time(moved.average?)
                )
            } else if more > 0 {
                format!(
                    "{} more than a preemption {}",
                    time(Delay::from_nanos(more)),
                    under(*load)
                )
            } else {
                format!(
                    "{} less than a preemption {}",
                    time(Delay::from_nanos(-more)),
                    under(*load)
                )
            })
        })
        .collect();
    (!parts.is_empty()).then(|| format!("A {} costs {}.", name(kind), list(&parts)))
}

/// Does it matter under load where a task resumes? Over all sizes at which the delay is
/// predictable.
fn where_it_resumes(profile: &Profile, kinds: &[Resumption]) -> Option<String> {
    let stayed = curve(profile, Resumption::Preemption, Load::Load)?;
    let mut dearest: Option<(f64, Resumption, Bytes)> = None;
    for base in &stayed.points {
        let average = base.average.filter(|a| *a > Delay::ZERO)?.nanos() as f64;
        if base.deviation.is_some_and(|d| d.nanos() as f64 > average) {
            continue;
        }
        for kind in kinds.iter().filter(|k| **k != Resumption::Preemption) {
            let Some(moved) = point(profile, *kind, Load::Load, base.wss).and_then(|p| p.average)
            else {
                continue;
            };
            let excess = moved.nanos() as f64 / average - 1.0;
            if dearest.is_none_or(|(e, _, _)| excess > e) {
                dearest = Some((excess, *kind, base.wss));
            }
        }
    }
    let (excess, kind, wss) = dearest?;
    // Rounded up: the sentence sets a limit.
    let percent = (excess * 1_000.0 - 1e-6).ceil() / 10.0;
    Some(if excess <= 0.15 {
        format!(
            "Under load it hardly matters where a task resumes: where delays are predictable, no migration costs more than \
             {} % above a preemption on average.",
            plain(percent.max(0.0))
        )
    } else if excess < 1.0 {
        format!(
            "Under load it matters where a task resumes: a {} costs up to {} % more than a preemption (at {}).",
            name(kind),
            plain(percent),
            size(wss)
        )
    } else {
        format!(
            "Under load it matters where a task resumes: a {} costs up to {} times as much as a preemption (at {}).",
            name(kind),
            three(excess + 1.0),
            size(wss)
        )
    })
}

fn largest(profile: &Profile, wss: Bytes, measured: &[Load]) -> Option<String> {
    let mut samples = None;
    let parts: Vec<String> = measured
        .iter()
        .filter_map(|load| {
            let p = point(profile, Resumption::Preemption, *load, wss)?;
            samples = samples.max(Some(p.samples).filter(|n| *n > 0));
            Some(format!("{} {}", time(p.maximum?), under(*load)))
        })
        .collect();
    let of = samples.map_or_else(String::new, |n| format!(" of {}", count(n, "preemption")));
    (!parts.is_empty()).then(|| {
        format!(
            "The largest delay{of} at {} was {}; a largest delay that was seen is no proof that none is larger.",
            size(wss),
            list(&parts)
        )
    })
}

/// From which size on the delay under load varies more than its mean says (000, Observation 1).
fn unpredictable(profile: &Profile, kinds: &[Resumption]) -> Option<String> {
    let wild = |wss: Bytes| {
        kinds.iter().any(|kind| {
            point(profile, *kind, Load::Load, wss).is_some_and(|p| match (p.average, p.deviation) {
                (Some(average), Some(deviation)) => Delay::from(deviation) > average,
                _ => false,
            })
        })
    };
    let sizes: Vec<Bytes> = curve(profile, *kinds.first()?, Load::Load)?
        .points
        .iter()
        .map(|p| p.wss)
        .collect();
    let from = sizes.iter().rev().take_while(|wss| wild(**wss)).last()?;
    Some(format!(
        "From {} on, delays under load vary by more than their own average: no single number stands for them, and a safe \
         WCET has to cover the interference anyway (000, Observation 1).",
        size(*from)
    ))
}

fn negative(profile: &Profile) -> Option<String> {
    let averages: Vec<Delay> = profile
        .cpmd
        .iter()
        .flat_map(|c| c.points.iter().filter_map(|p| p.average))
        .collect();
    let below = averages.iter().filter(|a| **a < Delay::ZERO).count();
    (below > 0).then(|| {
        format!(
            "{below} of {} negative: there the walk before the preemption was the slower one, and the delay is too small to \
             be told from noise.",
            if averages.len() == 1 { "1 average is".to_owned() } else { format!("{} averages {}", averages.len(), if below == 1 { "is" } else { "are" }) }
        )
    })
}
