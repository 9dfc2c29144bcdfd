//! Cache delay against the number of tasks, as Fig. 4 of 000 has it: a line for each way to resume
//! and each working set size, lines of one size named at their right end.

use crate::axis::Axis;
use crate::cpmd;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::sheet::text_width;
use crate::style::{Look, SMALL};
use crate::words;
use model::{Bytes, Resumption};
use std::collections::BTreeSet;

/// The delays of one size and one way to resume.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The size.
    pub wss: Bytes,
    /// The way.
    pub resumption: Resumption,
    /// Number of tasks, ascending, and delay in nanoseconds.
    pub points: Vec<(u32, f64)>,
}

/// What stands in one panel.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Stands above it.
    pub title: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

const PANEL: (f64, f64) = (560.0, 360.0);
/// What of a panel's width and height its axes take, about: for how near texts may come.
const AROUND: (f64, f64) = (110.0, 80.0);
/// Room at both ends of the x axis, as a part of what lies between.
const MARGIN: f64 = 0.04;

/// The panels with one legend; `None` where there are no points.
pub fn sketch(id: &str, title: &str, caption: &str, groups: &[Group]) -> Option<Sketch> {
    let panels: Vec<Panel> = groups.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let lines = || groups.iter().flat_map(|group| &group.lines);
    let ways: BTreeSet<Resumption> = lines()
        .filter(|line| !line.points.is_empty())
        .map(|line| line.resumption)
        .collect();
    Some(Sketch {
        id: id.to_owned(),
        title: title.to_owned(),
        description: String::new(),
        caption: caption.to_owned(),
        remark: String::new(),
        columns: panels.len().min(2),
        panel: PANEL,
        legend: ways
            .into_iter()
            .map(|way| Entry {
                look: Look::of_resumption(way),
                name: cpmd::name(way),
            })
            .collect(),
        panels,
    })
}

fn panel(group: &Group) -> Option<Panel> {
    let points = || group.lines.iter().flat_map(|line| &line.points);
    let counts: BTreeSet<u32> = points().map(|point| point.0).collect();
    let (first, last) = (*counts.first()?, *counts.last()?);
    let (low, high) = points().fold((0.0_f64, 0.0_f64), |(low, high), (_, delay)| {
        (low.min(*delay), high.max(*delay))
    });
    let span = (high - low).max(100.0);
    let y = Axis::times(
        "delay",
        low - 0.06 * span.min(-low * 20.0)..high + 0.08 * span,
    );
    let sizes: BTreeSet<Bytes> = group.lines.iter().map(|line| line.wss).collect();
    let x = x_axis(&counts, &sizes, (first, last));
    let mut layers = Vec::new();
    for line in &group.lines {
        let look = Look::of_resumption(line.resumption);
        let points: Vec<(f64, f64)> = line.points.iter().map(|p| (f64::from(p.0), p.1)).collect();
        layers.push(Layer::Curve {
            look,
            points: points.clone(),
            shift: 0.0,
        });
        layers.push(Layer::Marks {
            look,
            points,
            shift: 0.0,
        });
    }
    let step = (SMALL + 2.0) / (PANEL.1 - AROUND.1) * (y.high - y.low);
    layers.extend(names(&group.lines, f64::from(last), step, y.high));
    Some(Panel {
        title: group.title.clone(),
        description: describe(group, (first, last), counts.len()),
        x,
        y,
        layers,
    })
}

/// Numbers of tasks, each named where there is room, and room for the names of sizes behind them.
fn x_axis(counts: &BTreeSet<u32>, sizes: &BTreeSet<Bytes>, (first, last): (u32, u32)) -> Axis {
    let between = f64::from(last - first).max(1.0);
    let width = PANEL.0 - AROUND.0;
    let names = sizes
        .iter()
        .map(|wss| text_width(&words::size(*wss), SMALL));
    let behind = (names.fold(0.0, f64::max) + 14.0) / width;
    // The part of the axis that is left for the numbers.
    let scale = between / (1.0 - behind - 2.0 * MARGIN);
    let (low, high) = (
        f64::from(first) - MARGIN * scale,
        f64::from(last) + (MARGIN + behind) * scale,
    );
    let half = |count: u32| text_width(&count.to_string(), SMALL) / 2.0 + 4.0;
    let place = |count: u32| (f64::from(count) - low) / (high - low) * width;
    let mut ticks: Vec<(f64, String)> = Vec::new();
    let mut free = f64::NEG_INFINITY;
    for count in counts {
        if place(*count) - half(*count) >= free {
            free = place(*count) + half(*count);
            ticks.push((f64::from(*count), count.to_string()));
        }
    }
    Axis {
        ticks,
        ..Axis::linear("tasks", low..high, words::plain)
    }
}

/// The name of each size beside the highest of its lines' last points, none on another.
fn names(lines: &[Line], at: f64, step: f64, top: f64) -> Vec<Layer> {
    let mut highest: Vec<(f64, Bytes)> = Vec::new();
    for line in lines {
        let Some((_, delay)) = line.points.last() else {
            continue;
        };
        match highest.iter_mut().find(|(_, wss)| *wss == line.wss) {
            Some(known) => known.0 = known.0.max(*delay),
            None => highest.push((*delay, line.wss)),
        }
    }
    highest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    // From below upwards, each at least a line above the one before; from the top down again what
    // has no room there.
    let mut places: Vec<f64> = Vec::new();
    for (delay, _) in &highest {
        let least = places.last().map_or(f64::NEG_INFINITY, |last| last + step);
        places.push(delay.max(least));
    }
    let mut most = top - step / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - step;
    }
    let labels = highest.iter().zip(places);
    labels
        .map(|((_, wss), place)| Layer::Label {
            at: (at, place),
            text: words::size(*wss),
        })
        .collect()
}

fn describe(group: &Group, (first, last): (u32, u32), counts: usize) -> String {
    let ends: Vec<String> = group
        .lines
        .iter()
        .filter_map(|line| {
            let (from, to) = (line.points.first()?, line.points.last()?);
            Some(format!(
                "{}, {}: {} with {} tasks, {} with {}",
                words::size(line.wss),
                cpmd::name(line.resumption),
                words::time_f64(from.1),
                from.0,
                words::time_f64(to.1),
                to.0
            ))
        })
        .collect();
    format!(
        "{}, {counts} numbers of tasks from {first} to {last}. {}.",
        group.title,
        ends.join("; ")
    )
}

#[cfg(test)]
mod tests;
