//! The observations and principles of 002, chapter 6, held against results: reproduced, not, from
//! which factor on overheads on, or not to be told, with the figures that decide.
//!
//! ```text
//! results ─► cases of a setting and a factor ─► claims ─► statements
//! ```
//!
//! Statements are sentences about curves ([`statements`]). They are decided by confidence intervals
//! of differences, set by set, so that each answer holds at 95 %: what a sample leaves open stays
//! open. A statement that speaks of all scenarios is not reproduced by some of them.

mod asking;
mod cases;
mod claim;
mod delays;
mod lines;
mod principles;
mod statements;

pub use cases::{Observed, Setting};
pub use claim::{Decided, Evidence, SLACK, Says, Share};
pub(crate) use lines::Curves;
pub use lines::Stretch;
pub use statements::{Statement, statements};

use crate::grid::Factor;
use cases::Case;
use claim::Claim;
use model::{Overhead, Overheads};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What results say to a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It holds.
    Reproduced,
    /// It does not.
    NotReproduced,
    /// It holds from this factor on overheads on, and not below.
    FromFactor,
    /// It holds up to this factor on overheads, and not above.
    UpToFactor,
    /// The results do not tell.
    CannotTell,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Answer::Reproduced => "reproduced",
            Answer::NotReproduced => "not reproduced",
            Answer::FromFactor => "from a factor on",
            Answer::UpToFactor => "up to a factor",
            Answer::CannotTell => "cannot tell",
        })
    }
}

/// What a statement's claims say with one factor on overheads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AtFactor {
    /// The factor.
    pub factor: f64,
    /// What the claims say together: the worst of them.
    pub says: Says,
    /// What each of them says.
    pub claims: Vec<Decided>,
}

/// A statement and its answer in a setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answered {
    /// The number of the statement in 002, such as `6.3.1`.
    pub statement: String,
    /// What it says.
    pub text: &'static str,
    /// The answer.
    pub answer: Answer,
    /// The factor from which on, or up to which, it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The next factor that was tried, at which it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_at: Option<f64>,
    /// What is missing to tell; empty where it is told.
    pub missing: Vec<String>,
    /// What was found with each factor, ascending.
    pub factors: Vec<AtFactor>,
}

/// The answers in a setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answers {
    /// The name of the platform.
    pub platform: String,
    /// By what is charged, in words.
    pub charged: String,
    /// Are overheads of the kernel charged?
    pub kernel_overheads: bool,
    /// Which overheads the factors are on.
    pub factors_on: Vec<Overhead>,
    /// How many studies were looked at.
    pub studies: usize,
    /// Each statement.
    pub statements: Vec<Answered>,
}

/// Answers every statement in every setting of the studies, in their order; where factors are on
/// different overheads, for each of these. What has no factor counts for all of them.
pub fn observe(observed: &[Observed]) -> Vec<Answers> {
    let mut settings: Vec<(Setting, Vec<&Observed>)> = Vec::new();
    for one in observed {
        let setting = one.setting();
        match settings.iter_mut().find(|(known, _)| *known == setting) {
            Some((_, all)) => all.push(one),
            None => settings.push((setting, vec![one])),
        }
    }
    let by_factors = |(setting, all): &(Setting, Vec<&Observed>)| {
        let mut kinds: Vec<Overheads> = Vec::new();
        for on in all.iter().filter_map(|one| one.factor_on()) {
            if !kinds.contains(&on) {
                kinds.push(on);
            }
        }
        if kinds.is_empty() {
            kinds.push(Overheads::ALL);
        }
        let of = |on| answers(setting, all, on);
        kinds.into_iter().map(of).collect::<Vec<_>>()
    };
    settings.iter().flat_map(by_factors).collect()
}

/// Answers every statement in a setting, by factors on these overheads.
fn answers(setting: &Setting, all: &[&Observed], on: Overheads) -> Answers {
    let is_one = |one: &&&Observed| one.factor_on().is_none_or(|of| of == on);
    let all: Vec<&&Observed> = all.iter().filter(is_one).collect();
    let mut by_factor: BTreeMap<u32, Vec<Case<'_>>> = BTreeMap::new();
    for case in all.iter().flat_map(|one| one.cases()) {
        by_factor.entry(case.factor).or_default().push(case);
    }
    let statements = statements();
    let statements = statements.iter();
    Answers {
        platform: setting.platform.clone(),
        charged: setting.words.clone(),
        kernel_overheads: setting.has_overheads,
        factors_on: on.iter().collect(),
        studies: all.len(),
        statements: statements
            .map(|statement| statement.answer(&by_factor, setting.has_overheads))
            .collect(),
    }
}

impl Statement {
    /// Answers the statement by the cases of a setting, by factor.
    fn answer(&self, by_factor: &BTreeMap<u32, Vec<Case<'_>>>, has_overheads: bool) -> Answered {
        let at = |(factor, cases): (&u32, &Vec<Case<'_>>)| {
            let count = self.claims.len();
            let decide = |claim: &Claim| claim.decide(cases, has_overheads, count);
            let claims: Vec<Decided> = self.claims.iter().map(decide).collect();
            AtFactor {
                factor: Factor::from_thousandths(*factor).to_f64(),
                says: together(&claims),
                claims,
            }
        };
        let factors: Vec<AtFactor> = match self.undecidable {
            Some(_) => Vec::new(),
            None => by_factor.iter().map(at).collect(),
        };
        let (answer, factor, not_at) = threshold(&factors);
        let mut missing: Vec<String> = self.undecidable.iter().map(|w| (*w).to_owned()).collect();
        if answer == Answer::CannotTell && self.undecidable.is_none() {
            missing.extend(self.missing(&factors));
        }
        Answered {
            statement: self.id.clone(),
            text: self.text,
            answer,
            factor,
            not_at,
            missing,
            factors,
        }
    }

    /// What is missing at the factor that is answered for.
    fn missing(&self, factors: &[AtFactor]) -> Vec<String> {
        let Some(at) = as_charged(factors) else {
            return vec![
                "results of chapter 6: `warmset study run bastoni11-6.3 -o DIR`, or 6.4".to_owned(),
            ];
        };
        let mut all: Vec<String> = Vec::new();
        for what in factors[at].claims.iter().flat_map(|claim| &claim.missing) {
            if !all.contains(what) {
                all.push(what.clone());
            }
        }
        if all.is_empty() {
            all.push(
                "factors between those at which it holds: it comes and goes, `--factors` tries others"
                    .to_owned(),
            );
        }
        all
    }
}

/// What claims say together: no if one says no, yes if all say yes.
fn together(claims: &[Decided]) -> Says {
    match () {
        () if claims.iter().any(|c| c.says == Says::No) => Says::No,
        () if claims.iter().any(|c| c.says == Says::Open) => Says::Open,
        () => Says::Yes,
    }
}

/// The place of the factor 1, at which overheads are as they were measured; else of the largest.
fn as_charged(factors: &[AtFactor]) -> Option<usize> {
    let one = factors.iter().position(|at| at.factor == 1.0);
    one.or(factors.len().checked_sub(1))
}

/// The answer, with the factor that bounds it and the nearest one beyond.
fn threshold(factors: &[AtFactor]) -> (Answer, Option<f64>, Option<f64>) {
    let Some(charged) = as_charged(factors) else {
        return (Answer::CannotTell, None, None);
    };
    let says: Vec<Says> = factors.iter().map(|at| at.says).collect();
    let yes = |says: &Says| *says == Says::Yes;
    let no = |says: &Says| *says == Says::No;
    let (first, last) = (says.iter().position(yes), says.iter().rposition(yes));
    match (first, last) {
        (Some(first), Some(last)) if says[first..=last].iter().all(yes) => {
            let at = |place: usize| Some(factors[place].factor);
            if first == 0 && last + 1 == says.len() {
                return (Answer::Reproduced, None, None);
            }
            match (
                says[..first].iter().all(no),
                says[last + 1..].iter().all(no),
            ) {
                (true, _) if last + 1 == says.len() => {
                    (Answer::FromFactor, at(first), at(first - 1))
                }
                (_, true) if first == 0 => (Answer::UpToFactor, at(last), at(last + 1)),
                // It holds around the factor 1 and not far from it, or what is beyond is open.
                _ if (first..=last).contains(&charged) => (Answer::Reproduced, None, None),
                _ if says[charged] == Says::No => (Answer::NotReproduced, None, None),
                _ => (Answer::CannotTell, None, None),
            }
        }
        _ if says[charged] == Says::No => (Answer::NotReproduced, None, None),
        _ => (Answer::CannotTell, None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(says: &[(f64, Says)]) -> (Answer, Option<f64>, Option<f64>) {
        let factors = says.iter().map(|(factor, says)| AtFactor {
            factor: *factor,
            says: *says,
            claims: Vec::new(),
        });
        threshold(&factors.collect::<Vec<_>>())
    }

    #[test]
    fn a_threshold_is_where_an_answer_turns_for_good() {
        use Answer::{CannotTell, FromFactor, NotReproduced, Reproduced, UpToFactor};
        use Says::{No, Open, Yes};
        for (says, answer, factor, not_at) in [
            (vec![], CannotTell, None, None),
            (vec![(1.0, Yes)], Reproduced, None, None),
            (vec![(1.0, No)], NotReproduced, None, None),
            (vec![(1.0, Open)], CannotTell, None, None),
            (
                vec![(0.0, No), (1.0, No), (4.0, Yes)],
                FromFactor,
                Some(4.0),
                Some(1.0),
            ),
            (
                vec![(0.0, No), (1.0, Yes), (4.0, Yes)],
                FromFactor,
                Some(1.0),
                Some(0.0),
            ),
            (
                vec![(0.0, Yes), (1.0, Yes), (4.0, No)],
                UpToFactor,
                Some(1.0),
                Some(4.0),
            ),
            (vec![(0.0, Yes), (1.0, Yes)], Reproduced, None, None),
            // Below the first yes it is open: no threshold is claimed.
            (
                vec![(0.0, Open), (1.0, Yes), (2.0, Yes)],
                Reproduced,
                None,
                None,
            ),
            (
                vec![(0.0, Open), (1.0, No), (2.0, Yes)],
                NotReproduced,
                None,
                None,
            ),
            // It comes and goes.
            (
                vec![(0.0, Yes), (1.0, No), (2.0, Yes)],
                NotReproduced,
                None,
                None,
            ),
            (
                vec![(0.0, Yes), (1.0, Open), (2.0, Yes)],
                CannotTell,
                None,
                None,
            ),
            (vec![(0.5, No), (1.0, No)], NotReproduced, None, None),
        ] {
            assert_eq!(at(&says), (answer, factor, not_at), "{says:?}");
        }
    }
}
