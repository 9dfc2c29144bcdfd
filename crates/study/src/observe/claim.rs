//! What a statement of the paper claims about curves, and what results say to it.
//!
//! A claim is asked of every scenario that it is about. Each answers yes, no, or leaves it open
//! within its confidence intervals, or is missing; all of them together decide the claim by its
//! [`Share`].

use super::asking::Tails;
use super::cases::Case;
use super::lines::Stretch;
use crate::chapter6::{Scenario, Section};
use analyze::Guarantee;
use model::{Load, Overhead};
use serde::Serialize;

/// Curves that differ by no more than this count as equal: about what can be read off a figure.
pub const SLACK: f64 = 0.01;

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// It is so.
    Yes,
    /// It is not.
    No,
    /// The results do not tell.
    Open,
}

/// What is asked of one scenario. Policies by their names in figures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Test {
    /// The first curve is nowhere below the second by more than [`SLACK`].
    NowhereBelow(&'static str, &'static str),
    /// The first curve is above the second in the mean over the axis, for sure.
    Above(&'static str, &'static str),
    /// The first curve is above the second by more than this, in the mean over the axis.
    AboveBy(&'static str, &'static str, f64),
    /// The first curve is above the second by less than this, in the mean over the axis.
    WithinOf(&'static str, &'static str, f64),
    /// The first curve at its value of the axis is not below the second one at its.
    NotBelowAt((&'static str, f64), (&'static str, f64)),
    /// The first curve falls less than the second between these values of the axis.
    FallsLess(&'static str, &'static str, (f64, f64)),
}

/// Of how many scenarios something is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// Of each.
    All,
    /// Of nine of ten: *almost always*.
    AlmostAll,
    /// Of more than half: *in most*, *usually*.
    Most,
}

/// Which scenarios a claim is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Which section.
    pub section: Section,
    /// Hard, soft, or both.
    pub guarantees: &'static [Guarantee],
    /// Names of distributions of utilizations.
    pub utilizations: &'static [&'static str],
    /// Names of distributions of periods.
    pub periods: &'static [&'static str],
    /// Idle, under load, or both; nothing where one delay stands for it.
    pub loads: &'static [Load],
}

impl Scope {
    /// Everything that it is about: a scenario, and under which load.
    pub fn wanted(&self) -> Vec<(Scenario, Option<Load>)> {
        let loads: Vec<Option<Load>> = match self.loads {
            [] => vec![None],
            loads => loads.iter().copied().map(Some).collect(),
        };
        let mut all = Vec::new();
        for guarantee in self.guarantees {
            for utilizations in self.utilizations {
                for periods in self.periods {
                    let scenario = Scenario {
                        guarantee: *guarantee,
                        utilizations,
                        periods,
                    };
                    all.extend(loads.iter().map(|load| (scenario, *load)));
                }
            }
        }
        all
    }
}

/// One sentence that results decide.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// The sentence.
    pub text: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// Of how many of them it is claimed.
    pub share: Share,
    /// What is asked of each.
    pub test: Test,
    /// Which overheads of the kernel it rests on. Where it is any, results without such overheads do
    /// not decide it, and a factor on them tells from where on it holds.
    pub rests_on: &'static [Overhead],
}

/// What one scenario says to a claim, with the figures that decide.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evidence {
    /// The scenario, such as `hard-uniform-light-short`.
    pub scenario: String,
    /// Under which load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// What it says.
    pub says: Says,
    /// The difference of W that decides: at a point, or in the mean over the axis.
    pub difference: f64,
    /// Its 95 % confidence interval.
    pub interval: (f64, f64),
    /// Where the first curve is above for sure (95 % at each point).
    pub above: Vec<Stretch>,
    /// Where it is below for sure.
    pub below: Vec<Stretch>,
    /// The least difference, and where.
    pub least: (f64, String),
    /// The greatest difference, and where.
    pub most: (f64, String),
    /// Sets for each cap.
    pub sets: u32,
    /// Are both curves compared set by set? Otherwise as if they were of different sets.
    pub paired: bool,
    /// The directory of the study.
    pub directory: String,
}

/// What results say to a claim.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Decided {
    /// The sentence.
    pub claim: &'static str,
    /// Which overheads of the kernel it rests on, if any.
    pub rests_on: &'static [Overhead],
    /// Of how many scenarios it is claimed.
    pub of: Share,
    /// What they say together.
    pub says: Says,
    /// How many scenarios it is about.
    pub wanted: usize,
    /// How many say yes.
    pub yes: usize,
    /// How many say no.
    pub no: usize,
    /// How many leave it open within their intervals.
    pub open: usize,
    /// The confidence of the interval by which a scenario says yes.
    pub yes_at: f64,
    /// That by which one says no.
    pub no_at: f64,
    /// What is missing to decide it; empty where it is decided.
    pub missing: Vec<String>,
    /// What each scenario says.
    pub evidence: Vec<Evidence>,
}

impl Claim {
    /// Decides the claim, one of so many of a statement, by cases of one setting and one factor.
    pub(super) fn decide(&self, cases: &[Case<'_>], has_overheads: bool, claims: usize) -> Decided {
        let wanted = self.scope.wanted();
        let tails = Tails::of(self.share.enough(wanted.len()), wanted.len(), claims);
        let mut evidence = Vec::new();
        let mut absent = Vec::new();
        for (scenario, load) in &wanted {
            // Of equally many sets the first study counts.
            let found = cases
                .iter()
                .rev()
                .filter(|case| case.section == self.scope.section)
                .filter(|case| case.scenario == *scenario && case.load == *load)
                .filter_map(|case| self.test.ask(case, tails))
                .max_by_key(|evidence| evidence.sets);
            match found {
                Some(found) => evidence.push(found),
                None => absent.push(*scenario),
            }
        }
        let count = |says| evidence.iter().filter(|e| e.says == says).count();
        let (yes, no, open) = (count(Says::Yes), count(Says::No), count(Says::Open));
        let mut says = self.share.of(yes, no, wanted.len());
        let mut missing = match says {
            Says::Open => self.missing(&absent, &evidence),
            _ => Vec::new(),
        };
        if !self.rests_on.is_empty() && !has_overheads {
            says = Says::Open;
            missing.push(
                "it rests on what the scheduler costs, and no kernel overheads are charged: run the \
                 studies with `--profile` of a machine that was measured"
                    .to_owned(),
            );
        }
        Decided {
            claim: self.text,
            rests_on: self.rests_on,
            of: self.share,
            says,
            wanted: wanted.len(),
            yes,
            no,
            open,
            yes_at: 1.0 - 2.0 * tails.yes,
            no_at: 1.0 - 2.0 * tails.no,
            missing,
            evidence,
        }
    }

    /// Why it is open.
    fn missing(&self, absent: &[Scenario], evidence: &[Evidence]) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(first) = absent.first() {
            let policies = self.test.policies().join(" and ");
            missing.push(format!(
                "{} of {} scenarios with {policies}, such as `{}{}`",
                absent.len(),
                self.scope.wanted().len(),
                self.test.family(self.scope.section, first),
                scenario_of(self.test, first),
            ));
        }
        let open = || evidence.iter().filter(|e| e.says == Says::Open);
        if open().count() > 0 {
            missing.push(format!(
                "more sets: intervals leave it open in {} of {} scenarios",
                open().count(),
                self.scope.wanted().len()
            ));
        }
        let unpaired = open().filter(|e| !e.paired).count();
        if unpaired > 0 {
            missing.push(format!(
                "pairs: counts of {unpaired} of {} scenarios do not say which sets were kept, as they \
                 are of an earlier version; run their studies again into other directories",
                self.scope.wanted().len()
            ));
        }
        missing
    }
}

/// The part of a preset's name behind its family.
fn scenario_of(test: Test, scenario: &Scenario) -> String {
    match test.is_by_brute_force() {
        true => format!("{}-{}", scenario.utilizations, scenario.periods),
        false => scenario.to_string(),
    }
}

impl Share {
    /// The fewest yes that suffice.
    fn enough(self, wanted: usize) -> usize {
        match self {
            Share::All => wanted,
            Share::AlmostAll => (9 * wanted).div_ceil(10),
            Share::Most => wanted / 2 + 1,
        }
    }

    /// What so many yes and no of so many say; the rest is not known.
    fn of(self, yes: usize, no: usize, wanted: usize) -> Says {
        let enough = self.enough(wanted);
        match () {
            () if wanted == 0 => Says::Open,
            () if yes >= enough => Says::Yes,
            () if wanted - no < enough => Says::No,
            () => Says::Open,
        }
    }
}

impl Test {
    /// The policies that it asks about.
    pub fn policies(self) -> [&'static str; 2] {
        match self {
            Test::NowhereBelow(a, b)
            | Test::Above(a, b)
            | Test::AboveBy(a, b, _)
            | Test::WithinOf(a, b, _)
            | Test::NotBelowAt((a, _), (b, _))
            | Test::FallsLess(a, b, _) => [a, b],
        }
    }

    fn is_by_brute_force(self) -> bool {
        self.policies().iter().any(|name| name.ends_with("-BF"))
    }

    /// The family of presets that answers it, with a hyphen behind.
    fn family(self, section: Section, _: &Scenario) -> String {
        match self.is_by_brute_force() {
            true => format!("bastoni11-{}bf-", section.name()),
            false => format!("bastoni11-{}-", section.name()),
        }
    }
}
