//! Cache delay against working set size: Fig. 2 of 000, for any profile.
//!
//! Four panels, largest and average delay, under load and idle, on logarithmic axes that all panels
//! share, so that a height means the same delay everywhere. What a profile does not hold is left
//! out.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::Look;
use crate::svg::Figure;
use crate::words;
use model::{Bytes, CpmdCurve, Delay, Load, Platform, Profile, Result, Resumption, Statistic};

/// What one panel shows.
pub type Cell = (Statistic, Load);

/// The panels of Fig. 2, in its order.
pub const FIG2: [Cell; 4] = [
    (Statistic::Maximum, Load::Load),
    (Statistic::Maximum, Load::Idle),
    (Statistic::Average, Load::Load),
    (Statistic::Average, Load::Idle),
];

/// No value below this is told from zero: single digits of nanoseconds are the clock's, not the
/// cache's.
const FLOOR: f64 = 10.0;

/// How far apart two kinds of resumption at one size are drawn, in pixels.
const APART: f64 = 3.0;

/// The kinds of resumption that a profile knows, in order.
pub fn resumptions(profile: &Profile) -> Vec<Resumption> {
    let mut kinds: Vec<Resumption> = profile.cpmd.iter().map(|c| c.resumption).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// What a way to resume is called in figures and sentences.
pub fn name(resumption: Resumption) -> String {
    match resumption {
        Resumption::Preemption => "preemption".to_owned(),
        Resumption::Migration(level) => format!("migration through L{level}"),
        Resumption::Memory => "migration through memory".to_owned(),
    }
}

/// The curve at the write ratio that stands for all.
pub fn curve(profile: &Profile, resumption: Resumption, load: Load) -> Option<&CpmdCurve> {
    profile.cpmd_curve(resumption, load, Profile::DEFAULT_WRITE_RATIO)
}

/// The points of a curve that have a statistic: size, value, standard deviation (of averages only).
fn values(curve: &CpmdCurve, statistic: Statistic) -> Vec<(f64, f64, Option<f64>)> {
    curve
        .points
        .iter()
        .filter_map(|p| {
            let value = p.value(statistic)?.nanos() as f64;
            let deviation = p.deviation.filter(|_| statistic == Statistic::Average);
            Some((
                p.wss.get() as f64,
                value,
                deviation.map(|d| d.nanos() as f64),
            ))
        })
        .collect()
}

/// The data caches of a platform as marks on the axis of sizes; one a level where all are alike.
pub fn cache_marks(platform: &Platform) -> Vec<(Bytes, String)> {
    let mut marks: Vec<(Bytes, String)> = Vec::new();
    for level in platform.data_levels() {
        for cpu in platform.usable().iter() {
            let Some(size) = platform.data_cache(level, cpu).and_then(|c| c.size) else {
                continue;
            };
            let label = format!("L{level}");
            if !marks.contains(&(size, label.clone())) {
                marks.push((size, label));
            }
        }
    }
    marks
}

/// Draws the panels for which the profile has data, two side by side; `None` when it has none.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(
    id: &str,
    profile: &Profile,
    caches: &[(Bytes, String)],
    cells: &[Cell],
) -> Result<Option<Figure>> {
    sketch(id, profile, caches, cells)
        .map(|s| s.draw())
        .transpose()
}

/// The kind of a curve, by its place among all, and its points: size, delay, half of the interval.
type Series = (usize, Resumption, Vec<(f64, f64, Option<f64>)>);

/// The curves of one panel that have points.
fn series(profile: &Profile, kinds: &[Resumption], (statistic, load): Cell) -> Vec<Series> {
    kinds
        .iter()
        .enumerate()
        .filter_map(|(index, kind)| {
            let points = values(curve(profile, *kind, load)?, statistic);
            (!points.is_empty()).then_some((index, *kind, points))
        })
        .collect()
}

/// A line at the size of each data cache that lies on the axis.
fn cache_layers(caches: &[(Bytes, String)], x: &Axis) -> Vec<Layer> {
    caches
        .iter()
        .filter(|(size, _)| (x.low..=x.high).contains(&(size.get() as f64)))
        .map(|(size, label)| Layer::Upright {
            at: size.get() as f64,
            label: label.clone(),
        })
        .collect()
}

/// Adds the layers of these curves: whiskers below all curves, marks above them.
fn add_series(layers: &mut Vec<Layer>, series: &[Series], kinds: usize) {
    let spread = |index: usize| APART * (index as f64 - (kinds as f64 - 1.0) / 2.0);
    layers.extend(series.iter().map(|(index, kind, points)| {
        Layer::Whiskers {
            look: Look::of_resumption(*kind),
            bars: points
                .iter()
                .filter_map(|p| Some((p.0, p.1 - p.2?, p.1 + p.2?)))
                .collect(),
            shift: spread(*index),
        }
    }));
    layers.extend(series.iter().map(|(index, kind, points)| Layer::Curve {
        look: Look::of_resumption(*kind),
        points: points.iter().map(|p| (p.0, p.1)).collect(),
        shift: spread(*index),
    }));
    layers.extend(series.iter().map(|(index, kind, points)| Layer::Marks {
        look: Look::of_resumption(*kind),
        points: points.iter().map(|p| (p.0, p.1)).collect(),
        shift: spread(*index),
    }));
}

/// The axes of working sets and delays for these points; how many lie below them.
fn axes(all: &[(f64, f64, Option<f64>)]) -> (Axis, Axis, usize) {
    let sizes = all.iter().map(|p| p.0);
    let (low, high) = (
        sizes.clone().fold(f64::INFINITY, f64::min),
        sizes.fold(0.0, f64::max),
    );
    let positive = all
        .iter()
        .map(|p| p.1)
        .filter(|v| *v > 0.0)
        .fold(f64::INFINITY, f64::min);
    let largest = all
        .iter()
        .map(|p| p.1 + p.2.unwrap_or(0.0))
        .fold(FLOOR * 10.0, f64::max);
    let floor = if positive.is_finite() {
        positive.max(FLOOR)
    } else {
        FLOOR
    };
    let x = Axis::sizes(
        "working set size",
        Bytes::new(low as u64),
        Bytes::new(high as u64),
    );
    let y = Axis::delays("cache-related delay", floor, largest);
    let at_floor = all.iter().filter(|p| p.1 <= y.low).count();
    (x, y, at_floor)
}

/// The figure as data.
pub fn sketch(
    id: &str,
    profile: &Profile,
    caches: &[(Bytes, String)],
    cells: &[Cell],
) -> Option<Sketch> {
    let kinds = resumptions(profile);
    let data = |cell: Cell| series(profile, &kinds, cell);
    let cells: Vec<Cell> = cells
        .iter()
        .copied()
        .filter(|c| !data(*c).is_empty())
        .collect();
    let all: Vec<(f64, f64, Option<f64>)> = cells
        .iter()
        .flat_map(|c| data(*c))
        .flat_map(|d| d.2)
        .collect();
    if all.is_empty() {
        return None;
    }
    let (x, y, at_floor) = axes(&all);
    let several = cells.len() > 1;
    let panels = cells
        .iter()
        .zip('a'..)
        .map(|(cell, letter)| {
            let mut layers = cache_layers(caches, &x);
            add_series(&mut layers, &data(*cell), kinds.len());
            let title = words::capital(&cell_name(*cell));
            Panel {
                title: if several {
                    format!("({letter}) {title}")
                } else {
                    title
                },
                description: describe(profile, *cell, &kinds),
                x: x.clone(),
                y: y.clone(),
                layers,
            }
        })
        .collect::<Vec<_>>();
    let caption = caption(
        &cells,
        kinds.len(),
        at_floor,
        all.len(),
        y.low,
        !caches.is_empty(),
    );
    Some(Sketch {
        id: id.to_owned(),
        title: format!(
            "Cache-related delay by working set size: {}",
            profile.platform
        ),
        description: String::new(),
        caption,
        remark: String::new(),
        columns: if several { 2 } else { 1 },
        panel: (470.0, 330.0),
        legend: kinds
            .iter()
            .map(|kind| Entry {
                look: Look::of_resumption(*kind),
                name: name(*kind),
            })
            .collect(),
        panels,
    })
}

/// `average delay under load`, `largest delay, idle`.
pub fn cell_name((statistic, load): Cell) -> String {
    let statistic = match statistic {
        Statistic::Average => "average",
        Statistic::Maximum | Statistic::Untrimmed => "largest",
    };
    match load {
        Load::Idle => format!("{statistic} delay, idle system"),
        Load::Load => format!("{statistic} delay under load"),
    }
}

fn caption(
    cells: &[Cell],
    kinds: usize,
    at_floor: usize,
    all: usize,
    floor: f64,
    caches: bool,
) -> String {
    let mut caption = String::from("Both axes are logarithmic");
    if cells.len() > 1 {
        caption += " and the same in all panels";
    }
    caption += ".";
    if cells.iter().any(|c| c.0 == Statistic::Average) {
        caption += " Error bars: one standard deviation.";
    }
    if kinds > 1 {
        caption += " Marks of one size are set side by side to keep them apart.";
    }
    if caches {
        caption += " Dotted lines: the sizes of the data caches.";
    }
    if at_floor > 0 {
        let floor = words::time_rounded(Delay::from_nanos_f64(floor));
        caption += &format!(
            " {at_floor} of the {all} values {} at or below {floor}, or negative: hollow triangles on the axis stand for them.",
            if at_floor == 1 { "is" } else { "are" }
        );
    }
    caption
}

/// What one sees in a panel: the values at one size that all curves have.
fn describe(profile: &Profile, cell: Cell, kinds: &[Resumption]) -> String {
    let Some(wss) = middle_size(profile) else {
        return String::new();
    };
    let values: Vec<String> = kinds
        .iter()
        .filter_map(|kind| {
            let curve = curve(profile, *kind, cell.1)?;
            let point = curve.points.iter().find(|p| p.wss == wss)?;
            Some(format!(
                "{} {}",
                name(*kind),
                words::time(point.value(cell.0)?)
            ))
        })
        .collect();
    if values.is_empty() {
        return String::new();
    }
    format!(
        "{} at {}: {}.",
        words::capital(&cell_name(cell)),
        words::size(wss),
        words::list(&values)
    )
}

/// The size to speak of: 256 KiB if every curve has it, otherwise the middle one of those that
/// every curve has.
pub fn middle_size(profile: &Profile) -> Option<Bytes> {
    let (first, rest) = profile.cpmd.split_first()?;
    let common: Vec<Bytes> = first
        .points
        .iter()
        .map(|p| p.wss)
        .filter(|wss| rest.iter().all(|c| c.points.iter().any(|p| p.wss == *wss)))
        .collect();
    let usual = Bytes::from_kib(256);
    if common.contains(&usual) {
        Some(usual)
    } else {
        common.get(common.len() / 2).copied()
    }
}
