//! Curves of an experiment: values over sizes, lengths or rates, one panel a group of curves.

use crate::axis::{Axis, Scale};
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::{Ink, Look};
use crate::svg::Figure;
use crate::words;
use model::Result;

/// One pair of axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Curves {
    /// Stands above it.
    pub title: String,
    /// What one sees, in a sentence.
    pub description: String,
    /// What x is.
    pub x: String,
    /// What y is.
    pub y: String,
    /// Do values of x lie by their logarithm?
    pub logarithmic: bool,
    /// Where values of x are named; the powers of two among the points where it is empty.
    pub ticks: Vec<(f64, String)>,
    /// A value of y that matters, with its meaning.
    pub level: Option<(f64, String)>,
    /// The y axis begins here.
    pub least: f64,
    /// It reaches up to here at least, where that is given.
    pub most: Option<f64>,
    /// Curves by the place of their name in the legend: points by ascending x.
    pub curves: Vec<(usize, Vec<(f64, f64)>)>,
}

/// Draws the panels with one legend; `None` where there are no points.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(
    id: &str,
    title: &str,
    caption: &str,
    legend: &[&str],
    panels: &[Curves],
) -> Result<Option<Figure>> {
    let panels: Vec<Panel> = panels
        .iter()
        .filter(|p| p.curves.iter().any(|c| !c.1.is_empty()))
        .map(panel)
        .collect();
    if panels.is_empty() {
        return Ok(None);
    }
    Sketch {
        id: id.to_owned(),
        title: title.to_owned(),
        description: String::new(),
        caption: caption.to_owned(),
        remark: String::new(),
        columns: panels.len().min(2),
        panel: (560.0, 360.0),
        legend: legend
            .iter()
            .enumerate()
            .map(|(place, name)| Entry {
                look: Look::nth(place),
                name: (*name).to_owned(),
            })
            .collect(),
        panels,
    }
    .draw()
    .map(Some)
}

fn panel(curves: &Curves) -> Panel {
    let points = || curves.curves.iter().flat_map(|c| &c.1);
    let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| {
        (low.min(p.0), high.max(p.0))
    });
    let top = points()
        .map(|p| p.1)
        .fold(curves.most.unwrap_or(curves.least), f64::max);
    let x = match curves.logarithmic {
        true => Axis {
            label: curves.x.clone(),
            scale: Scale::Logarithmic,
            low: low / 1.3,
            high: high * 1.3,
            ticks: curves.ticks.clone(),
        },
        false => Axis {
            ticks: curves.ticks.clone(),
            ..Axis::linear(&curves.x, 0.0..high * 1.05, words::plain)
        },
    };
    let mut layers = Vec::new();
    if let Some((at, label)) = &curves.level {
        layers.push(Layer::Level {
            at: *at,
            label: label.clone(),
            ink: Ink::Gray,
        });
    }
    for (place, points) in &curves.curves {
        let look = Look::nth(*place);
        layers.push(Layer::Curve {
            look,
            points: points.clone(),
            shift: 0.0,
        });
        layers.push(Layer::Marks {
            look,
            points: points.clone(),
            shift: 0.0,
        });
    }
    Panel {
        title: curves.title.clone(),
        description: curves.description.clone(),
        x,
        y: Axis::linear(
            &curves.y,
            curves.least..curves.least + (top - curves.least).max(0.1) * 1.12,
            words::plain,
        ),
        layers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_drawn_with_their_names() {
        let curves = Curves {
            title: "filter".to_owned(),
            description: "It rises.".to_owned(),
            x: "coefficients".to_owned(),
            y: "c_max / c_min".to_owned(),
            logarithmic: true,
            ticks: vec![(4.0, "4".to_owned()), (64.0, "64".to_owned())],
            level: Some((1.15, "isolated".to_owned())),
            least: 1.0,
            most: None,
            curves: vec![
                (0, vec![(4.0, 1.0), (64.0, 1.1)]),
                (1, vec![(4.0, 3.0), (64.0, 2.0)]),
            ],
        };
        let figure = figure("a", "b", "c", &["alone", "flooded"], &[curves])
            .unwrap()
            .unwrap();
        let svg = figure.to_svg();
        for text in ["alone", "flooded", "coefficients", "isolated", ">64<"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(figure.description, "It rises.");
        assert_eq!(super::figure("a", "b", "c", &[], &[]).unwrap(), None);
    }
}
