//! The studies of 002, chapter 6, in families: every scenario of §6.3 and §6.4, of Appendices B.2
//! and C.2, made from the table of scenarios.
//!
//! | family | figures | along | policies |
//! |---|---|---|---|
//! | `bastoni11-6.3` | B.7 to B.18 | D | P-EDF, G-EDF, C-EDF-L2, C-EDF-L3 |
//! | `bastoni11-6.3bf` | B.7 to B.12 | D | the same, and by brute force all but P-EDF |
//! | `bastoni11-6.4` | C.7 to C.24 | ξ | P-EDF, EDF-WM, NPS-F and C-NPS-F with δ = 1 and 4; soft: C-EDF-L3 and EDF-fm, too |
//!
//! Tasks are packed by worst fit, and clusters pass any of five tests (002 §6.3); all is charged as
//! 002 §6.1 counts it. The paper prints what caches cost (Tables A.1 to A.4) and no values of what
//! the kernel costs: without a profile that has these, they are left out, and titles say so.

use crate::axis::Axis;
use crate::chapter6::{Scenario, Section};
use crate::charged::{Charged, Judging};
use crate::definition::{Cache, Study};
use crate::grid::{Cap, Factor, Grid};
use analyze::Guarantee;
use analyze::policies::Accounting;
use generate::{Deadlines, Fill};
use model::{Bytes, Duration, Overheads, Platform, Profile, Result};

/// Studies that are run by one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    /// How names begin.
    family: &'static str,
    title: &'static str,
    section: Section,
    /// Hard scenarios only, and all but P-EDF by simulation, too.
    by_brute_force: bool,
    /// Sets for each cap.
    sets: u32,
}

/// As many sets as in the paper; by brute force as many as a machine of two processors judges in
/// hours.
const KINDS: [Kind; 3] = [
    Kind {
        family: "bastoni11-6.3",
        title: "multiprocessor EDF by cache delay, 36 scenarios",
        section: Section::Delays,
        by_brute_force: false,
        sets: 1000,
    },
    Kind {
        family: "bastoni11-6.3bf",
        title: "the 18 hard ones of them, and by brute force",
        section: Section::Delays,
        by_brute_force: true,
        sets: 20,
    },
    Kind {
        family: "bastoni11-6.4",
        title: "semi-partitioned policies by working set size, 54 scenarios",
        section: Section::WorkingSets,
        by_brute_force: false,
        sets: 100,
    },
];

/// A family of studies, as a list shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it comes from.
    pub source: String,
    /// The names of its studies.
    pub studies: Vec<String>,
}

/// Every family.
pub fn families() -> Vec<Family> {
    let family = |kind: &Kind| Family {
        name: kind.family,
        title: kind.title,
        source: kind.source(),
        studies: kind.scenarios().iter().map(|s| kind.name(s)).collect(),
    };
    KINDS.iter().map(family).collect()
}

/// The names of the studies whose names begin with this one, word by word: `bastoni11-6.3`,
/// `bastoni11-6.4-soft`, `bastoni11-6.3-hard-bimodal`. Nothing where it is no such beginning.
pub fn members(name: &str) -> Vec<String> {
    let named = |study: &String| {
        let rest = study.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let of = |kind: &Kind| match name.starts_with(kind.family) {
        true => kind
            .scenarios()
            .iter()
            .map(|s| kind.name(s))
            .filter(named)
            .collect(),
        false => Vec::new(),
    };
    KINDS.iter().flat_map(of).collect()
}

/// The study of a scenario by its name, or by the figure that shows it (`bastoni11-figB.7a`). `None`
/// where there is none.
pub(crate) fn find(name: &str) -> Option<Result<Study>> {
    let is_named = |kind: &Kind, scenario: &Scenario| {
        let figure = kind.section.figure(scenario).replace([' ', '(', ')'], "");
        let names_figure = name.strip_prefix("bastoni11-fig") == Some(figure.as_str());
        kind.name(scenario) == name || (!kind.by_brute_force && names_figure)
    };
    KINDS.iter().find_map(|kind| {
        let scenarios = kind.scenarios();
        let found = scenarios.iter().find(|scenario| is_named(kind, scenario))?;
        Some(kind.study(found))
    })
}

impl Kind {
    fn scenarios(&self) -> Vec<Scenario> {
        let mut all = self.section.scenarios();
        if self.by_brute_force {
            all.retain(|scenario| scenario.guarantee == Guarantee::Hard);
        }
        all
    }

    fn source(&self) -> String {
        let figures = match (self.section, self.by_brute_force) {
            (Section::Delays, false) => "App. B.2, Figs. B.7 to B.18",
            (Section::Delays, true) => "App. B.2, Figs. B.7 to B.12",
            (Section::WorkingSets, _) => "App. C.2, Figs. C.7 to C.24",
        };
        format!("002 §{}; {figures}", self.section.name())
    }

    fn name(&self, scenario: &Scenario) -> String {
        match self.by_brute_force {
            // All are hard.
            true => format!(
                "{}-{}-{}",
                self.family, scenario.utilizations, scenario.periods
            ),
            false => format!("{}-{scenario}", self.family),
        }
    }

    fn policies(&self, guarantee: Guarantee) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match (self.section, self.by_brute_force) {
            (Section::Delays, false) => owned(&EDF),
            (Section::Delays, true) => {
                let simulated = EDF[1..].iter().map(|name| format!("brute-force:{name}"));
                EDF.iter()
                    .map(|name| (*name).to_owned())
                    .chain(simulated)
                    .collect()
            }
            (Section::WorkingSets, _) => {
                let soft = guarantee == Guarantee::Soft;
                let names = SPLIT.iter().filter(|(_, only_soft)| soft || !only_soft);
                let names: Vec<&str> = names.map(|(name, _)| *name).collect();
                under_both_loads(&names)
            }
        }
    }

    fn title(&self, scenario: &Scenario) -> String {
        let guarantee = match scenario.guarantee {
            Guarantee::Hard => "Hard",
            Guarantee::Soft => "Soft",
        };
        let what = match self.by_brute_force {
            true => ", brute force",
            false => "",
        };
        format!(
            "{guarantee}, {}, {} periods, {}{what}",
            scenario.utilizations.replace('-', " "),
            scenario.periods,
            crate::presets::WITHOUT
        )
    }

    fn study(&self, scenario: &Scenario) -> Result<Study> {
        let study = Study {
            name: self.name(scenario),
            title: self.title(scenario),
            source: format!(
                "002 §{}, Fig. {}",
                self.section.name(),
                self.section.figure(scenario)
            ),
            policies: self.policies(scenario.guarantee),
            guarantee: scenario.guarantee,
            utilizations: scenario.utilizations.parse()?,
            periods: scenario.periods.parse()?,
            sets: self.sets,
            ..blank()?
        };
        match self.section {
            Section::Delays => Ok(study),
            Section::WorkingSets => along_working_sets(study),
        }
    }
}

/// §6.3 (Sec. 4 has the policies): P-EDF first, which brute force has no need of.
const EDF: [&str; 4] = ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"];

/// §6.4, and whether it is for soft guarantees only.
const SPLIT: [(&str, bool); 8] = [
    ("p-edf", false),
    ("c-edf:l3", true),
    ("edf-fm", true),
    ("edf-wm", false),
    ("nps-f:delta=1", false),
    ("nps-f:delta=4", false),
    ("c-nps-f:l3,delta=1", false),
    ("c-nps-f:l3,delta=4", false),
];

/// Every policy in an idle system and under load.
pub(crate) fn under_both_loads(names: &[&str]) -> Vec<String> {
    let of = |load| names.iter().map(move |name| format!("{name}@{load}"));
    of("idle").chain(of("load")).collect()
}

/// What the studies of chapter 6 have in common: 24 processors, caps by 0.25, D by 100 µs up to 2 ms
/// (§6.3), worst fit and five tests, all charged as §6.1 counts it.
pub(crate) fn blank() -> Result<Study> {
    let cap = Cap::from_thousandths;
    let us = Duration::from_micros;
    Ok(Study {
        name: String::new(),
        title: String::new(),
        source: String::new(),
        platform: Platform::builtin("xeon-l7455")?,
        policies: Vec::new(),
        guarantee: Guarantee::Hard,
        utilizations: "uniform-light".parse()?,
        periods: "moderate".parse()?,
        deadlines: Deadlines::Implicit,
        fill: Fill::Drop,
        caps: Grid::new(cap(1_000), cap(24_000), cap(250))?,
        axis: Axis::Delays(Grid::new(us(0), us(2000), us(100))?),
        drawn_to: None,
        cache: Cache::NOTHING,
        overhead_factor: Factor::ONE,
        factor_on: Overheads::ALL,
        sets: 100,
        until_ci: None,
        seed: 1,
        charge: 1,
        overhead: Duration::ZERO,
        charged: Charged {
            profile: Some(Profile::builtin("xeon-l7455")?),
            accounting: Some(Accounting::Paper),
            judging: Some(Judging::Paper),
            ..Charged::default()
        },
    })
}

/// The same along working set sizes, at the prices of the platform's tables: 0 to 3072 KiB, by 16
/// up to 256, by 64 up to 1024, by 256 above, drawn to 1024 (§6.4).
pub(crate) fn along_working_sets(study: Study) -> Result<Study> {
    let kib = Bytes::from_kib;
    let spans = [(0, 256, 16), (320, 1024, 64), (1280, 3072, 256)];
    let span = |(from, to, step)| Grid::new(kib(from), kib(to), kib(step));
    let sizes = spans.into_iter().map(span).collect::<Result<Vec<_>>>()?;
    Ok(Study {
        axis: Axis::WorkingSets(Grid::joined(sizes)?),
        drawn_to: Some(kib(1024).get()),
        ..study
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 002 §6.3: 36 scenarios; §6.4: 54 graphs.
    #[test]
    fn the_families_have_the_scenarios_of_the_paper() {
        let count = |name: &str| members(name).len();
        assert_eq!(count("bastoni11-6.3"), 36);
        assert_eq!(count("bastoni11-6.3bf"), 18);
        assert_eq!(count("bastoni11-6.4"), 54);
        assert_eq!(count("bastoni11-6.4-soft"), 27);
        assert_eq!(count("bastoni11-6.3-hard-bimodal"), 9);
        assert_eq!(count("bastoni11-6.3-hard-bimodal-light"), 3);
        // Whole words only, and no study is a family of itself.
        assert_eq!(count("bastoni11-6.3-hard-bi") + count("bastoni11"), 0);
        assert_eq!(count("bastoni11-6.3-hard-bimodal-light-short"), 0);
        for family in families() {
            assert_eq!(family.studies, members(family.name));
        }
    }

    #[test]
    fn every_study_of_a_family_is_sound() {
        for name in families().iter().flat_map(|family| &family.studies) {
            let study = find(name).unwrap().unwrap();
            assert_eq!(&study.name, name);
            study.check().unwrap();
        }
    }

    /// 002 §6.4: "steps of 16 KB for ξ ≤ 256 KB, of 64 KB up to 1024 KB, of 256 KB for higher
    /// values" to 3072 KB.
    #[test]
    fn working_sets_are_spaced_as_in_the_paper() {
        let study = find("bastoni11-6.4-soft-exponential-medium-moderate")
            .unwrap()
            .unwrap();
        let sizes: Vec<u64> = study.axis.numbers().iter().map(|b| b / 1024).collect();
        assert_eq!(sizes.len(), 17 + 12 + 8);
        assert_eq!(sizes[..3], [0, 16, 32]);
        assert_eq!(sizes[15..19], [240, 256, 320, 384]);
        assert_eq!(sizes[27..31], [960, 1024, 1280, 1536]);
        assert_eq!(sizes.last(), Some(&3072));
        assert_eq!(study.drawn_to, Some(1 << 20));
        assert_eq!((study.policies.len(), study.sets), (16, 100));
        let hard = find("bastoni11-6.4-hard-uniform-light-long")
            .unwrap()
            .unwrap();
        assert_eq!(hard.policies.len(), 12);
    }

    #[test]
    fn a_figure_names_the_scenario_that_it_shows() {
        let figure = |name: &str| find(name).unwrap().unwrap();
        let study = figure("bastoni11-figB.18c");
        assert_eq!(study.name, "bastoni11-6.3-soft-bimodal-heavy-long");
        assert_eq!(study.source, "002 §6.3, Fig. B.18 (c)");
        assert_eq!((study.sets, study.caps.values().len()), (1000, 93));
        assert_eq!(study.charged.accounting(), Accounting::Paper);
        assert_eq!(
            figure("bastoni11-figC.14b").name,
            "bastoni11-6.4-hard-exponential-medium-moderate"
        );
        assert!(find("bastoni11-figB.19a").is_none());
    }
}
