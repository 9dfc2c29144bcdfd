//! Schedulability against utilization, and weighted schedulability against cache delay: Fig. 5 of
//! 000.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::{Ink, Look};
use crate::svg::Figure;
use crate::words;
use model::{Duration, Result};

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

/// Where one policy falls below what another one reaches without any delay.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossing {
    /// The policy that falls.
    pub falling: String,
    /// The policy that it falls below.
    pub reference: String,
    /// What the other one reaches at no delay.
    pub level: f64,
    /// At which delay.
    pub at: Duration,
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
        at: Duration::from_nanos(at.max(0.0).round() as u64),
    })
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
    by_utilization_as(&Form::default(), id, title, m, curves, caption)
}

/// The same in another form.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn by_utilization_as(
    form: &Form,
    id: &str,
    title: &str,
    m: u32,
    curves: &[Curve],
    caption: &str,
) -> Result<Figure> {
    let x = Axis::linear(
        "total utilization U",
        0.0..f64::from(m.max(1)),
        words::plain,
    );
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
            caption,
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
    weighted_as(&Form::default(), id, title, curves, crossing, caption)
}

/// The same in another form.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn weighted_as(
    form: &Form,
    id: &str,
    title: &str,
    curves: &[Curve],
    crossing: Option<&Crossing>,
    caption: &str,
) -> Result<Figure> {
    let longest = curves
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.0))
        .fold(1_000.0, f64::max);
    let mut marks = Vec::new();
    if let Some(c) = crossing {
        let at = c.at.nanos() as f64;
        marks.push(Layer::Level {
            at: c.level,
            label: format!("{}'s W(0)", c.reference),
            ink: Ink::Gray,
        });
        marks.push(Layer::Note {
            at: (at, c.level),
            lines: vec![
                format!("{} falls below", c.falling),
                format!("{}'s W(0) at {}", c.reference, words::time_f64(at)),
            ],
        });
    }
    let mut description = describe(curves, |curve| {
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        Some(format!(
            "goes from {} without delay to {} at {}",
            words::three(first.1),
            words::three(last.1),
            words::time_f64(last.0)
        ))
    });
    if let Some(c) = crossing {
        description += &format!(
            " {} falls below what {} reaches without delay at {}.",
            c.falling,
            c.reference,
            words::time_f64(c.at.nanos() as f64)
        );
    }
    let x = Axis::times(
        "cache-related delay D of one preemption or migration",
        0.0..longest,
    );
    let x = match least(curves).filter(|_| form.log_x) {
        Some(low) => x.logarithmic(low, |at| {
            words::time_rounded(model::Delay::from_nanos_f64(at))
        }),
        None => x,
    };
    chart(
        form,
        id,
        title,
        x,
        "weighted schedulability W(D)",
        curves,
        marks,
        description,
        (
            caption,
            "Shaded: 95 % confidence intervals of W(D), from the Wilson intervals of all caps.",
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

/// The axis of shares, with room for these marks.
fn shares(form: &Form, label: &str, marks: &[Layer], curves: &[Curve]) -> Axis {
    if form.log_y {
        let ys = curves.iter().flat_map(|c| c.points.iter().map(|p| p.1));
        let low = ys.filter(|y| *y > 0.0).fold(0.1, f64::min);
        let mut y = Axis::linear(label, 0.0..1.02, words::plain);
        y.high = match marks.is_empty() {
            true => 1.05,
            false => 2.0,
        };
        let mut y = y.logarithmic(low / 1.2, words::plain);
        y.ticks.retain(|(at, _)| *at <= 1.0 + 1e-9);
        return y;
    }
    // A note on a point near the top needs room above it.
    let crowded = marks
        .iter()
        .any(|m| matches!(m, Layer::Note { at, .. } if at.1 > 0.8));
    let mut y = Axis::linear(label, 0.0..if crowded { 1.25 } else { 1.02 }, words::plain);
    y.ticks.retain(|(at, _)| *at <= 1.0);
    y
}

/// How the curve of this index is drawn. Two policies of one family must not look alike.
fn look_of(curves: &[Curve], index: usize) -> Look {
    let look = Look::of_policy(&curves[index].policy);
    match curves[..index]
        .iter()
        .any(|c| Look::of_policy(&c.policy) == look)
    {
        true => Look::nth(index + 4),
        false => look,
    }
}

/// The layers of all curves: bands below all lines, marks above them.
fn curve_layers(curves: &[Curve]) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, curve) in curves
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.band.is_empty())
    {
        layers.push(Layer::Band {
            look: look_of(curves, index),
            ends: curve.band.clone(),
        });
    }
    for (index, curve) in curves.iter().enumerate() {
        layers.push(Layer::Curve {
            look: look_of(curves, index),
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
            look: look_of(curves, index),
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
    (caption, bands): (&str, &str),
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
    let y = shares(form, label, &marks, curves);
    let said: Vec<&str> = [bands, zero]
        .into_iter()
        .filter(|s| !s.is_empty())
        .collect();
    let remark = said.join(" ");
    // A wide figure grows less in height, and a narrow one stays high enough for its axes.
    let height = 350.0 * (form.width / 470.0).clamp(0.7, 1.4);
    layers.extend(marks);
    Sketch {
        id: id.to_owned(),
        title: title.to_owned(),
        description,
        caption: format!("{caption} {remark}").trim_end().to_owned(),
        remark,
        columns: 1,
        panel: (form.width, height),
        legend: curves
            .iter()
            .enumerate()
            .map(|(index, curve)| Entry {
                look: look_of(curves, index),
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
        assert_eq!((c.at, c.level), (Duration::from_micros(750), 0.55));
        assert!(crossing(&p, &g).is_none(), "below from the start");
        let never = curve("G-EDF", &[(0.0, 1.0), (1e6, 0.9)]);
        assert!(crossing(&never, &p).is_none());
        assert!(crossing(&curve("G-EDF", &[]), &p).is_none());
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
