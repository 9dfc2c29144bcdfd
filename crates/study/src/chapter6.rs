//! The scenarios of 002, chapter 6: distributions of utilizations under short, moderate and long
//! periods, hard and soft, and the figures of Appendices B.2 and C.2 that show them.
//!
//! §6.2.1 has the distributions. §6.3 compares 6 × 3 × 2 scenarios along the delay D, §6.4 has 9 × 3
//! × 2 along the working set size ξ.

use crate::definition::Study;
use analyze::Guarantee;
use generate::{Periods, Utilizations};
use serde::Serialize;
use std::fmt;

/// The distributions of utilizations, in the order of the figures.
pub const UTILIZATIONS: [&str; 9] = [
    "uniform-light",
    "uniform-medium",
    "uniform-heavy",
    "bimodal-light",
    "bimodal-medium",
    "bimodal-heavy",
    "exponential-light",
    "exponential-medium",
    "exponential-heavy",
];

/// The distributions of periods, in the order of the insets (a), (b), (c).
pub const PERIODS: [&str; 3] = ["short", "moderate", "long"];

/// A section of chapter 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Section {
    /// §6.3: W(D).
    #[serde(rename = "6.3")]
    Delays,
    /// §6.4: W(ξ).
    #[serde(rename = "6.4")]
    WorkingSets,
}

impl Section {
    /// Its distributions of utilizations: §6.3 has none of the exponential ones.
    pub fn utilizations(self) -> &'static [&'static str] {
        match self {
            Section::Delays => &UTILIZATIONS[..6],
            Section::WorkingSets => &UTILIZATIONS,
        }
    }

    /// Its scenarios, in the order of the figures.
    pub fn scenarios(self) -> Vec<Scenario> {
        let mut all = Vec::new();
        for guarantee in [Guarantee::Hard, Guarantee::Soft] {
            for utilizations in self.utilizations() {
                for periods in PERIODS {
                    all.push(Scenario {
                        guarantee,
                        utilizations,
                        periods,
                    });
                }
            }
        }
        all
    }

    /// As it is named.
    pub const fn name(self) -> &'static str {
        match self {
            Section::Delays => "6.3",
            Section::WorkingSets => "6.4",
        }
    }

    /// The figure that shows a scenario, such as `B.7 (a)`.
    pub fn figure(self, scenario: &Scenario) -> String {
        let figures = self.utilizations();
        let at = figures.iter().position(|u| *u == scenario.utilizations);
        let soft = match scenario.guarantee {
            Guarantee::Hard => 0,
            Guarantee::Soft => figures.len(),
        };
        let appendix = match self {
            Section::Delays => "B",
            Section::WorkingSets => "C",
        };
        let number = 7 + soft + at.unwrap_or(0);
        format!("{appendix}.{number} ({})", scenario.inset())
    }
}

/// A scenario: what is drawn, and what is asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// A name of [`UTILIZATIONS`].
    pub utilizations: &'static str,
    /// A name of [`PERIODS`].
    pub periods: &'static str,
}

impl Scenario {
    /// The scenario of a study, if it is one of chapter 6.
    pub fn of(study: &Study) -> Option<Scenario> {
        Some(Scenario {
            guarantee: study.guarantee,
            utilizations: name_of_utilizations(&study.utilizations)?,
            periods: name_of_periods(&study.periods)?,
        })
    }

    /// The inset of its figure.
    pub fn inset(&self) -> &'static str {
        let at = PERIODS.iter().position(|p| *p == self.periods);
        ["a", "b", "c"][at.unwrap_or(0)]
    }
}

/// As it is named: `hard-uniform-light-short`.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{}-{}-{}",
            self.guarantee, self.utilizations, self.periods
        ))
    }
}

/// The name of a distribution of utilizations, where it is one of chapter 6.
pub fn name_of_utilizations(utilizations: &Utilizations) -> Option<&'static str> {
    let is = |name: &&str| name.parse::<Utilizations>().ok().as_ref() == Some(utilizations);
    UTILIZATIONS.into_iter().find(is)
}

/// The name of a distribution of periods, where it is one of chapter 6.
pub fn name_of_periods(periods: &Periods) -> Option<&'static str> {
    let is = |name: &&str| name.parse::<Periods>().ok().as_ref() == Some(periods);
    PERIODS.into_iter().find(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 002 §6.3 and §6.4: 36 and 54 scenarios; Appendices B.2 and C.2: which figure shows which.
    #[test]
    fn the_scenarios_are_those_of_the_appendices() {
        let (first, second) = (Section::Delays, Section::WorkingSets);
        assert_eq!(
            (first.scenarios().len(), second.scenarios().len()),
            (36, 54)
        );
        let of = |guarantee, utilizations, periods| Scenario {
            guarantee,
            utilizations,
            periods,
        };
        use Guarantee::{Hard, Soft};
        for (section, scenario, figure) in [
            (first, of(Hard, "uniform-light", "short"), "B.7 (a)"),
            (first, of(Hard, "bimodal-heavy", "long"), "B.12 (c)"),
            (first, of(Soft, "uniform-light", "moderate"), "B.13 (b)"),
            (first, of(Soft, "bimodal-heavy", "short"), "B.18 (a)"),
            (second, of(Hard, "exponential-heavy", "long"), "C.15 (c)"),
            (second, of(Soft, "uniform-light", "short"), "C.16 (a)"),
            (second, of(Soft, "exponential-heavy", "long"), "C.24 (c)"),
        ] {
            assert_eq!(section.figure(&scenario), figure);
        }
        assert_eq!(
            of(Hard, "uniform-light", "short").to_string(),
            "hard-uniform-light-short"
        );
    }
}
