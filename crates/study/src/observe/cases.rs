//! Results as the statements of chapter 6 look at them: cases of a setting.
//!
//! A *setting* is where and by what is charged: platform, profile, accounting. Statements are
//! decided within one, since curves of two do not compare. A *case* is one scenario in it, under
//! one load, with one factor on overheads.

use super::lines::Curves;
use crate::axis::Quantity;
use crate::chapter6::{Scenario, Section};
use crate::definition::Study;
use crate::grid::Factor;
use crate::results::Results;
use model::{Load, Overheads, Profile};

/// The largest working set that statements look at, in bytes: all major trends lie below (002 §6.4).
const LARGEST: f64 = (1024 * 1024) as f64;

/// A study that was run, and where it lies.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What was asked.
    pub study: Study,
    /// What was found.
    pub results: Results,
    /// The directory, for people.
    pub directory: String,
}

/// Where and by what is charged.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The name of the platform.
    pub platform: String,
    /// The profile, as it was measured.
    pub profile: Option<Profile>,
    /// In words: how overheads are charged, and which are.
    pub words: String,
    /// Are overheads of the kernel charged?
    pub has_overheads: bool,
}

/// One scenario in a setting.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    /// Along what the curves lie.
    pub section: Section,
    /// The scenario.
    pub scenario: Scenario,
    /// Under which load cache delays are read; `None` where one delay stands for them.
    pub load: Option<Load>,
    /// The factor on overheads, in thousandths.
    pub factor: u32,
    /// Sets for each cap.
    pub sets: u32,
    /// The curves.
    pub curves: Curves<'a>,
    /// Which curve is of which policy: its name in figures, without the load, and its place.
    pub policies: Vec<(String, usize)>,
    /// Where the study lies.
    pub directory: String,
}

impl Case<'_> {
    /// The place of a policy by its name in figures.
    pub fn policy(&self, name: &str) -> Option<usize> {
        let mut policies = self.policies.iter();
        policies.find(|(known, _)| known == name).map(|(_, at)| *at)
    }
}

impl Observed {
    /// The setting.
    pub fn setting(&self) -> Setting {
        let (study, charged) = (&self.study, &self.study.charged);
        let statistic = match charged.statistic {
            Some(statistic) => statistic.to_string(),
            None => "maximum for hard, average for soft".to_owned(),
        };
        let has_overheads = charged.overheads().is_some() || !study.overhead.is_zero();
        let mut words = format!("accounting {}", charged.accounting());
        if study.charge != 1 {
            words += &format!(", {} delays a job", study.charge);
        }
        match &charged.profile {
            Some(profile) => words += &format!(", profile {} ({statistic})", profile.platform),
            None => words += ", no profile",
        }
        if !study.overhead.is_zero() {
            words += &format!(", {} a job", study.overhead);
        }
        if !has_overheads {
            words += ", no kernel overheads";
        }
        Setting {
            platform: study.platform.name.clone(),
            profile: charged.profile.clone(),
            words,
            has_overheads,
        }
    }

    /// Which overheads a factor is on, if the study has one, swept or not.
    pub(super) fn factor_on(&self) -> Option<Overheads> {
        let study = &self.study;
        let swept = study.axis.quantity() == Quantity::OverheadFactor;
        (swept || study.overhead_factor != Factor::ONE).then_some(study.factor_on)
    }

    /// The cases that it holds; none where it is of no scenario of chapter 6, or another quantity is
    /// swept.
    pub(crate) fn cases(&self) -> Vec<Case<'_>> {
        let (study, results) = (&self.study, &self.results);
        let Some(scenario) = Scenario::of(study) else {
            return Vec::new();
        };
        let sized = study.has_working_sets();
        let section = match sized {
            true => Section::WorkingSets,
            false => Section::Delays,
        };
        let loads: Vec<Option<Load>> = match sized {
            false => vec![None],
            true => vec![Some(Load::Idle), Some(Load::Load)],
        };
        let case = |load: Option<Load>, points: Vec<usize>, factor: u32| Case {
            section,
            scenario,
            load,
            factor,
            sets: results.sets,
            curves: Curves { results, points },
            policies: self.policies(load),
            directory: self.directory.clone(),
        };
        let points: Vec<usize> = (0..results.axis.len())
            .filter(|at| !sized || results.axis.value(*at) <= LARGEST)
            .collect();
        let cases: Vec<Case<'_>> = match study.axis.quantity() {
            Quantity::Delay | Quantity::WorkingSet => {
                let factor = study.overhead_factor.thousandths();
                let of = |load| case(load, points.clone(), factor);
                loads.into_iter().map(of).collect()
            }
            // Each point is a case of its own, whose curves have one point.
            Quantity::OverheadFactor => {
                let of = |load: &Option<Load>| {
                    let load = *load;
                    let factors = study.axis.numbers().into_iter().enumerate();
                    let at = |(at, factor): (usize, u64)| {
                        Some(case(load, vec![at], u32::try_from(factor).ok()?))
                    };
                    factors.filter_map(at).collect::<Vec<_>>()
                };
                loads.iter().flat_map(of).collect()
            }
            Quantity::Processors => Vec::new(),
        };
        let any = |case: &Case<'_>| !case.policies.is_empty();
        cases.into_iter().filter(any).collect()
    }

    /// The policies that are under this load.
    fn policies(&self, load: Option<Load>) -> Vec<(String, usize)> {
        let (study, results) = (&self.study, &self.results);
        let name = |policy: &str| match (load, under_load(policy)) {
            (None, _) => Some(policy.to_owned()),
            (Some(load), Some((name, of))) => (of == load).then(|| name.to_owned()),
            (Some(load), None) => (study.charged.load == load).then(|| policy.to_owned()),
        };
        let policies = results.policies.iter().enumerate();
        let known = policies.filter_map(|(place, policy)| Some((name(policy)?, place)));
        known.collect()
    }
}

/// The name of a policy and the load under which it was judged, where its name says so.
fn under_load(label: &str) -> Option<(&str, Load)> {
    [Load::Idle, Load::Load].into_iter().find_map(|load| {
        let name = label.strip_suffix(load.name())?.strip_suffix(' ')?;
        Some((name, load))
    })
}
