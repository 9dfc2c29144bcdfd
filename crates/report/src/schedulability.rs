//! Schedulability against utilization, and weighted schedulability against what a study sweeps: a
//! cache delay (Fig. 5 of 000), a working set size (002 §6.4), or a number.

use crate::axis::Axis;
use crate::panel::{Entry, LINE, Layer, Panel, Sketch};
use crate::sheet::{BOLD, text_width, wrapped};
use crate::style::{Ink, LOOKS, Look, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{Bytes, Result};

/// The curve of one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The policy as it is named in the field: `P-EDF`, `C-EDF-L2`.
    pub policy: String,
    /// Ascending; shares in [0, 1].
    pub points: Vec<(f64, f64)>,
    /// The 95 % confidence interval around each point: x, low end, high end. It is empty where none
    /// is known.
    pub band: Vec<(f64, f64, f64)>,
}

/// What is said of a chart below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words<'a> {
    /// Beside it on a page.
    pub caption: &'a str,
    /// Within the picture, which may be shown without its caption: what is charged.
    pub charges: &'a str,
}

impl<'a> From<&'a str> for Words<'a> {
    fn from(caption: &'a str) -> Self {
        Words {
            caption,
            charges: "",
        }
    }
}

/// How a chart looks: its panel's width and what is on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Form {
    /// Width in pixels of the figure, in which small text has 12.
    pub width: f64,
    /// Does the title stand above the panel?
    pub title: bool,
    /// Are 95 % confidence intervals shaded?
    pub bands: bool,
    /// Does x lie by its logarithm? A point at 0 is left out then.
    pub log_x: bool,
    /// Does y lie by its logarithm? Shares of 0 lie at the floor.
    pub log_y: bool,
}

impl Default for Form {
    fn default() -> Self {
        Form {
            width: 470.0,
            title: true,
            bands: true,
            log_x: false,
            log_y: false,
        }
    }
}

/// The unit of what is swept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// None: a factor, or how many.
    Number,
}

impl Unit {
    /// A value as people read it.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Nanoseconds => words::time_f64(value),
            // A value between two of the grid is told in whole KiB.
            Unit::Bytes if value >= 1024.0 => {
                words::size(Bytes::from_kib((value / 1024.0).round() as u64))
            }
            Unit::Bytes => words::size(Bytes::new(value.max(0.0).round() as u64)),
            Unit::Number => words::three(value),
        }
    }
}

/// What lies along x of weighted schedulability.
#[derive(Clone, PartialEq, Debug)]
pub struct Swept {
    /// Its letter: `D`.
    pub symbol: String,
    /// What it is, in words.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
}

impl Swept {
    /// The delay D of 000 §5.
    pub fn delay() -> Swept {
        Swept {
            symbol: "D".to_owned(),
            title: "cache-related delay of one preemption or migration".to_owned(),
            unit: Unit::Nanoseconds,
        }
    }

    /// The axis of these values.
    fn axis(&self, curves: &[Curve], log: bool) -> Axis {
        let values = || curves.iter().flat_map(|c| c.points.iter().map(|p| p.0));
        let longest = values().fold(f64::MIN_POSITIVE, f64::max);
        // The letter stands behind the first words, which say what it is.
        let label = match self.title.split_once(" of ") {
            Some((what, of)) => format!("{what} {} of {of}", self.symbol),
            None => format!("{} {}", self.title, self.symbol),
        };
        let (x, name): (Axis, fn(f64) -> String) = match self.unit {
            Unit::Nanoseconds => (Axis::times(&label, 0.0..longest.max(1_000.0)), |at| {
                words::time_rounded(model::Delay::from_nanos_f64(at))
            }),
            Unit::Bytes => (Axis::linear_sizes(&label, longest), |at| {
                Unit::Bytes.text(at)
            }),
            Unit::Number => {
                let first = values().fold(longest, f64::min).min(1.0);
                (
                    Axis::linear(&label, first.min(0.0)..longest, words::plain),
                    words::plain,
                )
            }
        };
        match (least(curves).filter(|_| log), self.unit) {
            (Some(low), Unit::Bytes) => x.powers_of_two(low),
            (Some(low), _) => x.logarithmic(low, name),
            (None, _) => x,
        }
    }
}

/// Where one policy falls below what another one reaches at the first value of the axis: for a delay
/// that is usually none.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossing {
    /// The policy that falls.
    pub falling: String,
    /// The policy that it falls below.
    pub reference: String,
    /// What the other one reaches at the first value.
    pub level: f64,
    /// At which value of the axis, in its unit.
    pub at: f64,
}

/// Finds where `falling` falls below what `reference` reaches at its first point, on straight lines
/// between points.
///
/// `None` when it never does, or lies below from the start.
pub fn crossing(falling: &Curve, reference: &Curve) -> Option<Crossing> {
    let level = reference.points.first()?.1;
    falling.points.first().filter(|first| first.1 >= level)?;
    let (a, b) = falling
        .points
        .windows(2)
        .map(|w| (w[0], w[1]))
        .find(|(_, b)| b.1 < level)?;
    let at = a.0 + (b.0 - a.0) * (a.1 - level) / (a.1 - b.1);
    Some(Crossing {
        falling: falling.policy.clone(),
        reference: reference.policy.clone(),
        level,
        at: at.max(0.0),
    })
}

/// The caps on the total utilization along x.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Utilization {
    /// Of this many processors.
    Of(u32),
    /// As a share of the processors.
    Share,
}

/// The share of task sets that pass, by total utilization. `title` stands above the panel.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn by_utilization(
    id: &str,
    title: &str,
    m: u32,
    curves: &[Curve],
    caption: &str,
) -> Result<Figure> {
    let form = Form::default();
    by_utilization_as(&form, id, title, &Utilization::Of(m), curves, caption)
}

/// The same in another form.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn by_utilization_as<'a>(
    form: &Form,
    id: &str,
    title: &str,
    utilization: &Utilization,
    curves: &[Curve],
    said: impl Into<Words<'a>>,
) -> Result<Figure> {
    let (label, m) = match utilization {
        Utilization::Of(m) => ("total utilization U", (*m).max(1)),
        Utilization::Share => ("total utilization U, as a share of all processors", 1),
    };
    let x = Axis::linear(label, 0.0..f64::from(m), words::plain);
    let x = match least(curves).filter(|_| form.log_x) {
        Some(low) => x.logarithmic(low, words::plain),
        None => x,
    };
    let description = describe(curves, |curve| {
        let half = curve
            .points
            .windows(2)
            .find(|w| w[0].1 >= 0.5 && w[1].1 < 0.5)?;
        Some(format!(
            "falls below one half at a utilization of about {}",
            words::three(half[1].0)
        ))
    });
    chart(
        form,
        id,
        title,
        x,
        "schedulable task sets",
        curves,
        Vec::new(),
        description,
        (
            said.into(),
            "Shaded: 95 % confidence intervals of the shares (Wilson score).",
        ),
    )
    .draw()
}

/// Weighted schedulability W(D) by cache delay D, with the crossing marked if there is one.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn weighted(
    id: &str,
    title: &str,
    curves: &[Curve],
    crossing: Option<&Crossing>,
    caption: &str,
) -> Result<Figure> {
    let form = Form::default();
    weighted_as(&form, id, title, &Swept::delay(), curves, crossing, caption)
}

/// Weighted schedulability by what is swept, in another form.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn weighted_as<'a>(
    form: &Form,
    id: &str,
    title: &str,
    swept: &Swept,
    curves: &[Curve],
    crossing: Option<&Crossing>,
    said: impl Into<Words<'a>>,
) -> Result<Figure> {
    let symbol = &swept.symbol;
    let text = |value| swept.unit.text(value);
    let first = curves
        .iter()
        .find_map(|c| c.points.first())
        .map_or(0.0, |p| p.0);
    let level = match first == 0.0 {
        true => "W(0)".to_owned(),
        false => format!("W({})", text(first)),
    };
    let mut marks = Vec::new();
    if let Some(c) = crossing {
        marks.push(Layer::Level {
            at: c.level,
            label: format!("{}'s {level}", c.reference),
            ink: Ink::Gray,
        });
        marks.push(Layer::Note {
            at: (c.at, c.level),
            lines: vec![
                format!("{} falls below", c.falling),
                format!("{}'s {level} at {}", c.reference, text(c.at)),
            ],
        });
    }
    let start = match (first == 0.0, swept.unit) {
        (true, Unit::Nanoseconds) => "without delay".to_owned(),
        (true, _) => format!("at {symbol} = 0"),
        (false, _) => format!("at {}", text(first)),
    };
    let mut description = describe(curves, |curve| {
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        Some(format!(
            "goes from {} {start} to {} at {}",
            words::three(first.1),
            words::three(last.1),
            text(last.0)
        ))
    });
    if let Some(c) = crossing {
        description += &format!(
            " {} falls below what {} reaches {start} at {}.",
            c.falling,
            c.reference,
            text(c.at)
        );
    }
    chart(
        form,
        id,
        title,
        swept.axis(curves, form.log_x),
        &format!("weighted schedulability W({symbol})"),
        curves,
        marks,
        description,
        (
            said.into(),
            &format!(
                "Shaded: 95 % confidence intervals of W({symbol}), from the Wilson intervals of all caps."
            ),
        ),
    )
    .draw()
}

/// The least x above zero: where a logarithmic axis begins.
fn least(curves: &[Curve]) -> Option<f64> {
    let xs = curves.iter().flat_map(|c| c.points.iter().map(|p| p.0));
    xs.filter(|x| *x > 0.0).min_by(f64::total_cmp)
}

/// The curves as they are drawn in this form.
fn formed(form: &Form, curves: &[Curve]) -> Vec<Curve> {
    let inside = |x: f64| !form.log_x || x > 0.0;
    let curve = |c: &Curve| Curve {
        policy: c.policy.clone(),
        points: c.points.iter().filter(|p| inside(p.0)).copied().collect(),
        band: match form.bands {
            true => c.band.iter().filter(|b| inside(b.0)).copied().collect(),
            false => Vec::new(),
        },
    };
    curves.iter().map(curve).collect()
}

fn describe(curves: &[Curve], what: impl Fn(&Curve) -> Option<String>) -> String {
    let parts: Vec<String> = curves
        .iter()
        .filter_map(|c| Some(format!("{} {}", c.policy, what(c)?)))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        parts.join("; ") + "."
    }
}

/// The axis of shares, with room for these marks; `room` is its length in pixels.
fn shares(form: &Form, label: &str, marks: &[Layer], curves: &[Curve], room: f64) -> Axis {
    // A note on a point near the top needs room above it: its lines, and how far away they stand.
    let note = marks.iter().find_map(|m| match m {
        Layer::Note { at, lines } => Some((at.1, lines)),
        _ => None,
    });
    let note = note.map(|(level, lines): (f64, &Vec<String>)| {
        let width = form.width - 90.0;
        let lines = lines.iter().map(|line| wrapped(line, SMALL, width).len());
        let needed = 13.0 + (SMALL + 3.0) * lines.sum::<usize>() as f64;
        (level.max(1e-9), (needed / room).clamp(0.0, 0.6))
    });
    if form.log_y {
        let ys = curves.iter().flat_map(|c| c.points.iter().map(|p| p.1));
        let low = ys.filter(|y| *y > 0.0).fold(0.1, f64::min) / 1.2;
        let mut y = Axis::linear(label, 0.0..1.02, words::plain);
        y.high = note.map_or(1.05, |(level, part)| {
            ((level.ln() - part * low.ln()) / (1.0 - part))
                .exp()
                .max(1.05)
        });
        let mut y = y.logarithmic(low, words::plain);
        y.ticks.retain(|(at, _)| *at <= 1.0 + 1e-9);
        return y;
    }
    let least: f64 = match note {
        Some((level, _)) if level > 0.8 => 1.25,
        _ => 1.02,
    };
    let high = note.map_or(least, |(level, part)| least.max(level / (1.0 - part)));
    let mut y = Axis::linear(label, 0.0..high, words::plain);
    y.ticks.retain(|(at, _)| *at <= 1.0);
    y
}

/// A policy and the load under which it was judged, where its name says so: `EDF-WM idle`.
fn under_load(name: &str) -> Option<(&str, bool)> {
    let idle = name.strip_suffix(" idle").map(|name| (name, true));
    idle.or_else(|| Some((name.strip_suffix(" load")?, false)))
}

/// The look of a policy that is drawn under both loads: the same ink and marker, dashes in an idle
/// system.
fn look_under_load(curves: &[Curve], policy: &str, idle: bool) -> Look {
    let mut known: Vec<&str> = Vec::new();
    for (name, _) in curves.iter().filter_map(|c| under_load(&c.policy)) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let place = known.iter().position(|name| *name == policy).unwrap_or(0);
    let more = [Ink::Sky, Ink::Gray];
    let ink = match place.checked_sub(LOOKS.len()) {
        None => LOOKS[place].ink,
        Some(beyond) => more[beyond % more.len()],
    };
    // Markers come again where there are more policies than shapes; their dashes are others then.
    let dash = match (place < LOOKS.len(), idle) {
        (true, false) => "",
        (true, true) => "6 3",
        (false, false) => "9 3 2 3",
        (false, true) => "2 2.5",
    };
    Look {
        ink,
        dash,
        marker: LOOKS[place % LOOKS.len()].marker,
    }
}

/// How curves are drawn. Two policies of one family must not look alike.
fn looks_of(curves: &[Curve]) -> Vec<Look> {
    let looks = Look::of_policies(curves.iter().map(|c| c.policy.as_str()));
    let look = |(curve, look): (&Curve, Look)| match under_load(&curve.policy) {
        Some((policy, idle)) => look_under_load(curves, policy, idle),
        None => look,
    };
    curves.iter().zip(looks).map(look).collect()
}

/// The layers of all curves: bands below all lines, marks above them.
fn curve_layers(curves: &[Curve]) -> Vec<Layer> {
    let mut layers = Vec::new();
    let looks = looks_of(curves);
    let bands = curves.iter().zip(&looks);
    for (curve, look) in bands.filter(|(c, _)| !c.band.is_empty()) {
        layers.push(Layer::Band {
            look: *look,
            ends: curve.band.clone(),
        });
    }
    for (curve, look) in curves.iter().zip(&looks) {
        layers.push(Layer::Curve {
            look: *look,
            points: curve.points.clone(),
            shift: 0.0,
        });
    }
    for (index, curve) in curves.iter().enumerate() {
        // Few enough marks to see the curve: about a dozen, offset from series to series.
        let every = curve.points.len().div_ceil(12).max(1);
        let points = curve
            .points
            .iter()
            .skip(index % every)
            .step_by(every)
            .copied();
        layers.push(Layer::Marks {
            look: looks[index],
            points: points.collect(),
            shift: 0.0,
        });
    }
    layers
}

#[allow(clippy::too_many_arguments)] // one caller for each of two figures
fn chart(
    form: &Form,
    id: &str,
    title: &str,
    x: Axis,
    label: &str,
    curves: &[Curve],
    marks: Vec<Layer>,
    description: String,
    (said, bands): (Words<'_>, &str),
) -> Sketch {
    let zero = |c: &Curve| c.points.iter().any(|p| p.0 <= 0.0);
    let zero = match form.log_x && curves.iter().any(zero) {
        true => "0 has no place on the logarithmic x axis.",
        false => "",
    };
    let curves = &formed(form, curves)[..];
    let bands = match curves.iter().any(|c| !c.band.is_empty()) {
        true => bands,
        false => "",
    };
    let mut layers = curve_layers(curves);
    // A wide figure grows less in height, and a narrow one stays high enough for its axes, also
    // below a title of several lines.
    let titles = match form.title {
        true => wrapped(title, TEXT * BOLD, form.width - 16.0).len(),
        false => 0,
    };
    // The title, the labels of the x axis, and their edges; the rest is as long as the y axis,
    // which has room for its label.
    let around = 60.0 + LINE * titles as f64;
    let height =
        350.0 * (form.width / 470.0).clamp(0.7, 1.4) + LINE * titles.saturating_sub(1) as f64;
    let height = height.max(around + text_width(label, TEXT));
    let room = height - around;
    let y = shares(form, label, &marks, curves, room);
    let joined = |parts: &[&str]| {
        let some: Vec<&str> = parts.iter().copied().filter(|s| !s.is_empty()).collect();
        some.join(" ")
    };
    let remark = joined(&[said.charges, bands, zero]);
    layers.extend(marks);
    Sketch {
        id: id.to_owned(),
        title: title.to_owned(),
        description,
        caption: joined(&[said.caption, bands, zero]),
        remark,
        columns: 1,
        panel: (form.width, height),
        legend: curves
            .iter()
            .zip(looks_of(curves))
            .map(|(curve, look)| Entry {
                look,
                name: curve.policy.clone(),
            })
            .collect(),
        panels: vec![Panel {
            title: match form.title {
                true => title.to_owned(),
                false => String::new(),
            },
            description: String::new(),
            x,
            y,
            layers,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::Shape;

    fn curve(policy: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            policy: policy.to_owned(),
            points: points.to_vec(),
            band: Vec::new(),
        }
    }

    #[test]
    fn bands_are_drawn_below_the_curves_and_told() {
        let mut curve = curve("P-EDF", &[(1.0, 1.0), (2.0, 0.5)]);
        let without = by_utilization("u", "t", 2, std::slice::from_ref(&curve), "Sets.").unwrap();
        assert!(!without.caption.contains("95 %"));
        curve.band = vec![(1.0, 0.9, 1.0), (2.0, 0.4, 0.6)];
        let figure = by_utilization("u", "t", 2, std::slice::from_ref(&curve), "Sets.").unwrap();
        assert!(
            figure.caption.contains("Sets. Shaded: 95 % confidence"),
            "{}",
            figure.caption
        );
        let light = |s: &Shape| match s {
            Shape::Polygon { points, paint } => (paint.opacity < 1.0).then_some(points.len()),
            _ => None,
        };
        assert_eq!(
            figure.shapes.iter().filter_map(light).collect::<Vec<_>>(),
            [4]
        );
        let said = |s: &Shape| matches!(s, Shape::Text { text, .. } if text.contains("95 %"));
        assert!(
            figure.shapes.iter().any(said),
            "a file is shown without its caption"
        );
    }

    #[test]
    fn the_crossing_is_read_on_straight_lines() {
        let p = curve("P-EDF", &[(0.0, 0.55), (1e6, 0.3)]);
        let g = curve("G-EDF", &[(0.0, 1.0), (5e5, 0.7), (1e6, 0.4)]);
        let c = crossing(&g, &p).unwrap();
        assert_eq!((c.at.round(), c.level), (750_000.0, 0.55));
        assert!(crossing(&p, &g).is_none(), "below from the start");
        let never = curve("G-EDF", &[(0.0, 1.0), (1e6, 0.9)]);
        assert!(crossing(&never, &p).is_none());
        assert!(crossing(&curve("G-EDF", &[]), &p).is_none());
    }

    #[test]
    fn each_quantity_has_ticks_that_read_well() {
        let kib = 1024.0;
        for (symbol, title, unit, longest, ticks, label) in [
            (
                "ξ",
                "working set size of every task",
                Unit::Bytes,
                3072.0 * kib,
                vec![
                    "0", "512 KiB", "1 MiB", "1536 KiB", "2 MiB", "2560 KiB", "3 MiB",
                ],
                "working set size ξ of every task",
            ),
            (
                "f",
                "factor on all overheads",
                Unit::Number,
                2.0,
                vec!["0", "0.5", "1", "1.5", "2"],
                "factor on all overheads f",
            ),
        ] {
            let swept = Swept {
                symbol: symbol.to_owned(),
                title: title.to_owned(),
                unit,
            };
            let curves = [curve("P-EDF", &[(0.0, 1.0), (longest, 0.5)])];
            let axis = swept.axis(&curves, false);
            let names: Vec<&str> = axis.ticks.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!((names, axis.label.as_str()), (ticks, label));
        }
    }

    #[test]
    fn odd_curves_are_drawn_without_a_panic() {
        for points in [&[][..], &[(0.0, 1.0)], &[(0.0, f64::NAN), (1.0, 0.5)]] {
            let curves = [curve("P-EDF", points), curve("P-RM", points)];
            weighted("w", "t", &curves, None, "").unwrap();
            by_utilization("u", "t", 0, &curves, "").unwrap();
        }
    }
}
