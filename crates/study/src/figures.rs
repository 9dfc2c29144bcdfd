//! Single figures of 002, chapter 6, that are not a scenario of the appendices as it stands: fewer
//! policies, one working set size, another reading of what is charged.

use crate::axis::Axis;
use crate::charged::Charged;
use crate::definition::Study;
use crate::families::{along_working_sets, blank, under_both_loads};
use crate::grid::Grid;
use crate::presets::WITHOUT;
use analyze::Guarantee;
use model::{Bytes, Duration, Result};

/// A figure by working set size.
struct Figure {
    name: &'static str,
    source: &'static str,
    guarantee: Guarantee,
    utilizations: &'static str,
    periods: &'static str,
    policies: &'static [&'static str],
    /// The only working set, in KiB; else all.
    only: Option<u64>,
}

/// Fig. 6.6: which δ, and C-NPS-F or not.
const CHOICES: &[&str] = &[
    "nps-f:delta=1",
    "nps-f:delta=4",
    "c-nps-f:l3,delta=1",
    "c-nps-f:l3,delta=4",
];
/// Figs. 6.7 and 6.9: with δ = 1 and without C-NPS-F, as §6.4.1 concludes.
const HARD: &[&str] = &["p-edf", "edf-wm", "nps-f:delta=1"];
/// Fig. 6.8.
const SOFT: &[&str] = &["p-edf", "c-edf:l3", "edf-fm", "edf-wm", "nps-f:delta=1"];

const fn figure(
    name: &'static str,
    source: &'static str,
    (guarantee, policies): (Guarantee, &'static [&'static str]),
    (utilizations, periods): (&'static str, &'static str),
) -> Figure {
    Figure {
        name,
        source,
        guarantee,
        utilizations,
        periods,
        policies,
        only: None,
    }
}

use Guarantee::{Hard, Soft};

const FIGURES: [Figure; 7] = [
    figure(
        "bastoni11-fig6.6a",
        "002 §6.4.1, Fig. 6.6 (a)",
        (Hard, CHOICES),
        ("exponential-medium", "moderate"),
    ),
    figure(
        "bastoni11-fig6.6b",
        "002 §6.4.1, Fig. 6.6 (b)",
        (Hard, CHOICES),
        ("uniform-light", "long"),
    ),
    figure(
        "bastoni11-fig6.7a",
        "002 §6.4.2, Fig. 6.7 (a)",
        (Hard, HARD),
        ("exponential-medium", "moderate"),
    ),
    figure(
        "bastoni11-fig6.7b",
        "002 §6.4.2, Fig. 6.7 (b)",
        (Hard, HARD),
        ("bimodal-heavy", "moderate"),
    ),
    figure(
        "bastoni11-fig6.8a",
        "002 §6.4.2, Fig. 6.8 (a)",
        (Soft, SOFT),
        ("exponential-medium", "moderate"),
    ),
    figure(
        "bastoni11-fig6.8b",
        "002 §6.4.2, Fig. 6.8 (b)",
        (Soft, SOFT),
        ("uniform-heavy", "short"),
    ),
    Figure {
        only: Some(32),
        ..figure(
            "bastoni11-fig6.9",
            "002 §6.4.2, Fig. 6.9",
            (Hard, HARD),
            ("uniform-light", "moderate"),
        )
    },
];

/// Fig. 6.1 by the other reading of §6.1, which charges a job two delays: for its own lost affinity,
/// and for that of the job it preempts. Its text on the figure fits one.
const TWO_DELAYS: [(&str, &str, Option<u64>); 2] = [
    (
        "bastoni11-fig6.1a-two-delays",
        "002 §6.2.2, Fig. 6.1 (a)",
        Some(500),
    ),
    (
        "bastoni11-fig6.1b-two-delays",
        "002 §6.2.2, Fig. 6.1 (b)",
        None,
    ),
];

/// The names of all.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let two = TWO_DELAYS.iter().map(|(name, _, _)| *name);
    two.chain(FIGURES.iter().map(|figure| figure.name))
}

/// The study of a figure; `None` if it has another name.
pub(crate) fn find(name: &str) -> Option<Result<Study>> {
    let two = TWO_DELAYS.iter().find(|row| row.0 == name);
    let figure = FIGURES.iter().find(|figure| figure.name == name);
    two.map(|(name, source, delay)| two_delays(name, source, *delay))
        .or_else(|| figure.map(Figure::study))
}

fn two_delays(name: &str, source: &str, delay: Option<u64>) -> Result<Study> {
    let blank = blank()?;
    let us = Duration::from_micros;
    Ok(Study {
        name: name.to_owned(),
        title: format!("Soft, uniform heavy, short periods, two delays a job, {WITHOUT}"),
        source: source.to_owned(),
        policies: ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"]
            .map(str::to_owned)
            .to_vec(),
        guarantee: Soft,
        utilizations: "uniform-heavy".parse()?,
        periods: "short".parse()?,
        axis: match delay {
            Some(delay) => Axis::Delays(Grid::single(us(delay))?),
            None => blank.axis.clone(),
        },
        sets: 1000,
        charge: 2,
        charged: Charged::default(),
        ..blank
    })
}

impl Figure {
    fn study(&self) -> Result<Study> {
        let guarantee = match self.guarantee {
            Hard => "Hard",
            Soft => "Soft",
        };
        let only = match self.only {
            Some(kib) => format!(", working set {kib} KiB"),
            None => String::new(),
        };
        let study = along_working_sets(Study {
            name: self.name.to_owned(),
            title: format!(
                "{guarantee}, {}, {} periods{only}, {WITHOUT}",
                self.utilizations.replace('-', " "),
                self.periods
            ),
            source: self.source.to_owned(),
            policies: under_both_loads(self.policies),
            guarantee: self.guarantee,
            utilizations: self.utilizations.parse()?,
            periods: self.periods.parse()?,
            ..blank()?
        })?;
        match self.only {
            None => Ok(study),
            Some(kib) => Ok(Study {
                axis: Axis::WorkingSets(Grid::single(Bytes::from_kib(kib))?),
                drawn_to: None,
                ..study
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_sound_and_says_where_it_is_from() {
        for name in names() {
            let study = find(name).unwrap().unwrap();
            study.check().unwrap();
            let figure = name
                .trim_start_matches("bastoni11-fig")
                .trim_end_matches("-two-delays");
            let (number, inset) = figure.split_at(3);
            assert!(
                study.source.contains(number) && study.source.contains(inset),
                "{name}"
            );
        }
    }

    /// 002 Fig. 6.9: "standard (not weighted)", uniform light utilizations, 32 KB.
    #[test]
    fn fig_6_9_has_one_working_set_and_two_loads() {
        let study = find("bastoni11-fig6.9").unwrap().unwrap();
        assert_eq!(study.axis.swept().texts(), ["32KiB"]);
        assert_eq!(study.policies[..2], ["p-edf@idle", "edf-wm@idle"]);
        assert_eq!(study.policies.len(), 6);
    }

    /// 002 §6.1: one for the job, one for the job that it preempts.
    #[test]
    fn the_other_reading_charges_two_delays() {
        let study = find("bastoni11-fig6.1a-two-delays").unwrap().unwrap();
        assert_eq!(
            (study.charge, study.axis.swept().texts()),
            (2, vec!["500us".to_owned()])
        );
        let one = crate::presets::find("bastoni11-fig6.1a").unwrap();
        let same = Study {
            name: one.name.clone(),
            title: one.title.clone(),
            charge: 1,
            ..study
        };
        assert_eq!(same, one);
    }
}
