//! Overheads by number of tasks, as Figs. 5.2, 5.3, B.1 to B.6 and C.1 to C.6 of 002 show them.

use ::experiment::overheads::campaign::Outcome;
use ::measure::overheads::curve::Point;
use ::measure::overheads::results::{Found, Utilization};
use ::measure::overheads::tiles::Cost;
use model::{Code, OverheadKind, Result};
use report::Figure;
use report::lines::{self, Curves};

/// A panel each, in the order of the paper's figures.
const PANELS: [(Cost, &str); 8] = [
    (Cost::Overhead(OverheadKind::Scheduling), "Scheduling"),
    (
        Cost::Overhead(OverheadKind::TimerRearming),
        "Timer re-arming",
    ),
    (Cost::Overhead(OverheadKind::Tick), "Tick"),
    (
        Cost::Overhead(OverheadKind::ContextSwitch),
        "Context switch",
    ),
    (Cost::Overhead(OverheadKind::Release), "Release"),
    (Cost::Overhead(OverheadKind::IpiLatency), "IPI latency"),
    (
        Cost::Overhead(OverheadKind::TimerTransfer),
        "Timer transfer",
    ),
    (Cost::Overhead(OverheadKind::Watch), "Watch for standstills"),
];

/// Numbers of tasks are named at most at so many places.
const TICKS: u32 = 7;

/// The charts with the names of their files: the largest and the mean without outliers.
pub(super) fn figures(outcome: &Outcome) -> Result<Vec<(&'static str, Figure)>> {
    let of = |file, title: &str, value: fn(&Point) -> u64| -> Result<Option<_>> {
        let panels: Vec<Curves> = PANELS
            .iter()
            .filter_map(|(cost, name)| panel(outcome, *cost, name, value))
            .collect();
        let legend: Vec<&str> = outcome.policies.iter().map(String::as_str).collect();
        let id = file;
        let figure = lines::figure(id, title, &caption(outcome), &legend, &panels)?;
        Ok(figure.map(|figure| (id, figure)))
    };
    let maximum = of(
        "overheads-maximum.svg",
        "Overheads by number of tasks: the largest without outliers",
        |p| p.maximum_ns,
    )?;
    let average = of(
        "overheads-average.svg",
        "Overheads by number of tasks: the average without outliers",
        |p| p.average_ns,
    )?;
    Ok(maximum.into_iter().chain(average).collect())
}

fn caption(outcome: &Outcome) -> String {
    let mut caption = String::from(match outcome.blind {
        None => "Engine and kernel together",
        Some(_) => "The engine's own part alone, as nothing is seen of the kernel here",
    });
    caption += ", task sets of light utilizations and moderate periods.";
    let scaled = outcome.curves.iter().filter(|found| found.scaled);
    let first = scaled
        .flat_map(|found| &found.curve.points)
        .map(|p| p.tasks)
        .min();
    if let Some(first) = first {
        caption += &format!(
            " From {first} tasks on utilizations are scaled down, as they would ask for more than \
             there is: curves of their own."
        );
    }
    caption
}

/// All curves of a cost; `None` where there are none.
fn panel(outcome: &Outcome, cost: Cost, name: &str, value: fn(&Point) -> u64) -> Option<Curves> {
    let of = |found: &&Found| {
        found.cost == cost && found.utilization == Utilization::Light && is_whole(found, outcome)
    };
    let found: Vec<&Found> = outcome.curves.iter().filter(of).collect();
    let place = |policy: &str| outcome.policies.iter().position(|p| p == policy);
    let curves: Vec<(usize, Vec<(f64, f64)>)> = found
        .iter()
        .filter_map(|found| {
            let points = found.curve.points.iter();
            let points = points.map(|p| (f64::from(p.tasks), value(p) as f64 / 1e3));
            Some((place(&found.policy)?, points.collect()))
        })
        .collect();
    let most = found
        .iter()
        .flat_map(|f| &f.curve.points)
        .max_by_key(|p| p.tasks)?;
    let at: Vec<String> = outcome
        .policies
        .iter()
        .filter_map(|policy| {
            let mut points = found.iter().filter(|f| f.policy == *policy);
            let point =
                points.find_map(|f| f.curve.points.iter().find(|p| p.tasks == most.tasks))?;
            Some(format!("{policy} {:.1} µs", value(point) as f64 / 1e3))
        })
        .collect();
    Some(Curves {
        title: name.to_owned(),
        description: format!("With {} tasks: {}.", most.tasks, at.join(", ")),
        x: "tasks".to_owned(),
        y: "µs".to_owned(),
        logarithmic: false,
        ticks: ticks(most.tasks),
        level: None,
        least: 0.0,
        most: None,
        curves,
    })
}

/// Is this the curve of all the code that is known?
fn is_whole(found: &Found, outcome: &Outcome) -> bool {
    let is_call = found.cost == Cost::Overhead(OverheadKind::IpiLatency);
    found.code
        == match outcome.blind.is_some() && !is_call {
            true => Code::Own,
            false => Code::Both,
        }
}

/// Round numbers up to this one.
fn ticks(most: u32) -> Vec<(f64, String)> {
    let steps = [1, 2, 5].into_iter().cycle().zip(0..30);
    let mut steps = steps.map(|(step, place)| step * 10_u32.saturating_pow(place / 3));
    let step = steps
        .find(|step| most / step <= TICKS)
        .unwrap_or(most.max(1));
    (0..=most / step)
        .map(|n| (f64::from(n * step), (n * step).to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tasks_are_named_at_round_places() {
        let names = |most| {
            ticks(most)
                .into_iter()
                .map(|t| t.1)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(350), "0 50 100 150 200 250 300 350");
        assert_eq!(names(30), "0 5 10 15 20 25 30");
        assert_eq!(names(1), "0 1");
    }
}
