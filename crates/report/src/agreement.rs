//! What was predicted against what was observed: a mark a task, and the line on which both agree.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::{Ink, Look};
use crate::svg::Figure;
use model::Result;

/// Marks that look alike; times in nanoseconds, predicted and observed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Group {
    /// Their name in the legend.
    pub name: String,
    /// Bounds of analysis.
    pub bounds: Vec<(f64, f64)>,
    /// Values of the simulator.
    pub simulated: Vec<(f64, f64)>,
}

/// Draws both comparisons; `None` where there are no marks.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, caption: &str, groups: &[Group]) -> Result<Option<Figure>> {
    let values = || {
        let marks = groups
            .iter()
            .flat_map(|g| g.bounds.iter().chain(&g.simulated));
        marks.flat_map(|(predicted, observed)| [*predicted, *observed])
    };
    let positive = || values().filter(|value| *value > 0.0);
    let (low, high) = (
        positive().fold(f64::INFINITY, f64::min),
        positive().fold(0.0, f64::max),
    );
    if high <= 0.0 {
        return Ok(None);
    }
    let panel = |title: &str, x: &str, marks: fn(&Group) -> &Vec<(f64, f64)>| {
        let all = || groups.iter().flat_map(marks);
        let above = all()
            .filter(|(predicted, observed)| observed > predicted)
            .count();
        let x = Axis::delays(x, low, high);
        let y = Axis::delays("longest response observed", low, high);
        let ends = [(x.low, x.low), (x.high, x.high)];
        let line = Look {
            ink: Ink::Gray,
            ..Look::nth(0)
        };
        let mut layers = vec![Layer::Curve {
            look: line,
            points: ends.to_vec(),
            shift: 0.0,
        }];
        layers.extend(groups.iter().enumerate().map(|(place, group)| {
            let mut points = marks(group).clone();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Layer::Marks {
                look: Look::nth(place),
                points,
                shift: 0.0,
            }
        }));
        Panel {
            title: title.to_owned(),
            description: format!("{above} of {} tasks lie above the line.", all().count()),
            x,
            y,
            layers,
        }
    };
    Sketch {
        id: id.to_owned(),
        title: "Predicted and observed response times".to_owned(),
        description: String::new(),
        caption: caption.to_owned(),
        remark: String::new(),
        columns: 2,
        panel: (470.0, 400.0),
        legend: groups
            .iter()
            .enumerate()
            .map(|(place, group)| Entry {
                look: Look::nth(place),
                name: group.name.clone(),
            })
            .collect(),
        panels: vec![
            panel("(a) Analysis", "bound of analysis", |g| &g.bounds),
            panel("(b) Simulator", "longest response simulated", |g| {
                &g.simulated
            }),
        ],
    }
    .draw()
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_above_the_line_are_counted() {
        let group = Group {
            name: "p-edf".to_owned(),
            bounds: vec![(10e6, 9e6), (20e6, 21e6)],
            simulated: vec![(8e6, 9e6), (20e6, 21e6)],
        };
        let figure = figure("validation", "c", &[group]).unwrap().unwrap();
        assert!(
            figure.description.contains("1 of 2 tasks"),
            "{}",
            figure.description
        );
        assert!(figure.description.contains("2 of 2 tasks"));
        assert!(figure.to_svg().contains("p-edf"));
        assert_eq!(super::figure("validation", "c", &[]).unwrap(), None);
    }
}
