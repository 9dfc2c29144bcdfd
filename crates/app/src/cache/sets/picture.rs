//! Figs. 4 to 6 of 003 as a picture: the profiler's error by working set, and how much lower miss
//! rates are than under G-EDF.

use super::{Compared, Distribution, Mtt, Row};
use model::Result;
use report::axis::Axis;
use report::panel::{Entry, Layer, Panel, Sketch};
use report::style::{Ink, Look};
use report::{Figure, words};

/// What is drawn of each multithreaded task.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Points {
    /// Working sets in MiB and estimates by working sets: walked at random, and in order.
    accuracy: [Vec<(f64, f64)>; 2],
    /// By distribution, decreases of the rate of all jobs, ascending.
    average: Vec<Vec<f64>>,
    /// The same of the worst job.
    worst: Vec<Vec<f64>>,
}

impl Points {
    pub(super) fn of(rows: &[Row]) -> Self {
        let accuracy = [false, true].map(|sequential| {
            let rows = rows.iter().filter(|row| row.sequential == sequential);
            let point = |mtt: &Mtt| {
                let size = mtt.wss.max(1) as f64;
                (size / f64::from(1 << 20), mtt.estimate as f64 / size)
            };
            rows.flat_map(|row| row.mtts.iter().map(point)).collect()
        });
        let decreases = |of: fn(&(f64, f64)) -> f64| {
            let one = |distribution: &Distribution| {
                let rows = rows
                    .iter()
                    .filter(|row| row.distribution == distribution.name());
                let rates = rows.flat_map(|row| &row.mtts);
                let mut all: Vec<f64> = rates
                    .filter_map(|mtt| Some(of(&mtt.g_edf?) - of(&mtt.ca_edf?)))
                    .collect();
                all.sort_by(f64::total_cmp);
                all
            };
            Distribution::ALL.iter().map(one).collect()
        };
        Points {
            accuracy,
            average: decreases(|rates| rates.0),
            worst: decreases(|rates| rates.1),
        }
    }
}

/// The first series of the legend; the distributions follow. There are no more looks: what is
/// walked in order has crosses.
const AT_RANDOM: &str = "at random";

impl Compared {
    /// The profiler's accuracy (Fig. 4), and distributions of how much lower the miss rates of
    /// tasks are than under G-EDF (Figs. 5 and 6). `None` where no set was run.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        let points = &self.points;
        let names = std::iter::once(AT_RANDOM).chain(Distribution::ALL.iter().map(|d| d.range()));
        let mut panels = Vec::new();
        if points.accuracy.iter().any(|all| !all.is_empty()) {
            panels.push(accuracy(&points.accuracy));
        }
        for (title, of) in [
            ("Miss rate of all jobs (003 Fig. 5)", &points.average),
            ("Miss rate of the worst job (003 Fig. 6)", &points.worst),
        ] {
            if of.iter().any(|all| !all.is_empty()) {
                panels.push(decreases(title, of));
            }
        }
        if panels.is_empty() {
            return Ok(None);
        }
        Sketch {
            id: "sets".to_owned(),
            title: "The cache-aware scheduler and its profiler".to_owned(),
            description: String::new(),
            caption: format!(
                "Random sets of multithreaded tasks in the caches of {}, after 003 Figs. 4 to 6.",
                self.platform
            ),
            remark: String::new(),
            columns: panels.len().min(2),
            panel: (560.0, 360.0),
            legend: (0..)
                .zip(names)
                .map(|(place, name)| Entry {
                    look: Look::nth(place),
                    name: name.to_owned(),
                })
                .collect(),
            panels,
        }
        .draw()
        .map(Some)
    }
}

fn accuracy(of: &[Vec<(f64, f64)>; 2]) -> Panel {
    let all = || of.iter().flatten();
    let most = all().map(|p| p.0).fold(1.0, f64::max);
    let top = all().map(|p| p.1).fold(1.0, f64::max);
    let layers = vec![
        Layer::Level {
            at: 1.0,
            label: String::new(),
            ink: Ink::Gray,
        },
        Layer::Marks {
            look: Look::nth(0),
            points: of[0].clone(),
            shift: 0.0,
        },
        Layer::Cloud {
            ink: Ink::Blue,
            points: of[1].clone(),
            crosses: true,
        },
    ];
    Panel {
        title: "Accuracy of the profiler (003 Fig. 4); crosses: walked in order".to_owned(),
        description: format!(
            "Of {} tasks walked at random {} are off by less than a tenth.",
            of[0].len(),
            of[0].iter().filter(|p| (p.1 - 1.0).abs() < 0.1).count()
        ),
        x: Axis::linear("working set, MiB", 0.0..most * 1.05, words::plain),
        y: Axis::linear("estimate / working set", 0.0..top * 1.12, words::plain),
        layers,
    }
}

/// The part of tasks with at most so much of a decrease, a line a distribution.
fn decreases(title: &str, of: &[Vec<f64>]) -> Panel {
    let all = || of.iter().flatten().copied();
    let least = all().fold(-0.1, f64::min);
    let most = all().fold(0.1, f64::max);
    let curve = |decreases: &[f64]| -> Vec<(f64, f64)> {
        let count = decreases.len() as f64;
        let mut points = Vec::new();
        for (at, decrease) in decreases.iter().enumerate() {
            points.push((*decrease, 100.0 * at as f64 / count));
            points.push((*decrease, 100.0 * (at + 1) as f64 / count));
        }
        points
    };
    let mut layers = vec![Layer::Upright {
        at: 0.0,
        label: "as under g-edf".to_owned(),
    }];
    layers.extend(
        (1..)
            .zip(of)
            .filter(|(_, all)| !all.is_empty())
            .map(|(place, all)| Layer::Curve {
                look: Look::nth(place),
                points: curve(all),
                shift: 0.0,
            }),
    );
    let lower = all().filter(|x| *x > super::told::SAME).count();
    Panel {
        title: title.to_owned(),
        description: format!("Lower for {lower} of {} tasks.", all().count()),
        x: Axis::linear(
            "lower than under g-edf by",
            least * 1.05..most * 1.05,
            words::plain,
        ),
        y: Axis::linear("tasks up to there, %", 0.0..114.0, words::plain),
        layers,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Late, Options};
    use super::*;
    use crate::{Choice, On};

    fn row(sequential: bool, mtts: &[(u64, u64, f64)]) -> Row {
        let mtt = |(wss, estimate, decrease): &(u64, u64, f64)| Mtt {
            wss: *wss,
            estimate: *estimate,
            converged: true,
            ca_edf: Some((0.5 - decrease, 0.5)),
            g_edf: (!sequential).then_some((0.5, 0.5)),
            settled: None,
        };
        Row {
            distribution: "heavy".to_owned(),
            sequential,
            set: 0,
            mtts: mtts.iter().map(mtt).collect(),
            ca_edf: Late::default(),
            g_edf: (!sequential).then(Late::default),
        }
    }

    #[test]
    fn the_picture_says_how_near_estimates_are_and_where_rates_are_lower() {
        const MIB: u64 = 1 << 20;
        let rows = [
            row(
                false,
                &[(MIB, MIB, 0.2), (4 * MIB, 8 * MIB, -0.1), (MIB, MIB, 0.005)],
            ),
            row(true, &[(MIB, 0, 0.0)]),
        ];
        let options = Options::new(On::Platform(Choice::Named("core-i7".to_owned())));
        let compared = Compared::of(&rows, &options, false);
        let figure = compared.figure().unwrap().unwrap();
        for said in [
            "Of 3 tasks walked at random 2 are off by less than a tenth.",
            "Lower for 1 of 3 tasks.",
            "Lower for 0 of 3 tasks.",
        ] {
            assert!(figure.description.contains(said), "{}", figure.description);
        }
        let svg = figure.to_svg();
        assert!(
            svg.contains("bimodal") && svg.contains("walked in order"),
            "{svg}"
        );
        let none = Compared::of(&[], &options, false);
        assert_eq!(none.figure().unwrap(), None);
        // Rates are compared where both schedulers were run.
        let alone = Compared::of(&rows[1..], &options, false);
        let figure = alone.figure().unwrap().unwrap();
        assert!(
            !figure.description.contains("Lower"),
            "{}",
            figure.description
        );
    }
}
