//! What one scenario says to a claim, by intervals as wide as it takes for the claim as a whole.

use super::cases::Case;
use super::claim::{Evidence, SLACK, Says, Test};
use crate::contrast::{Contrast, Gap, TAIL};

/// The chances that are left to intervals by which one scenario says yes or no.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tails {
    pub yes: f64,
    pub no: f64,
}

impl Tails {
    /// So that a claim about so many of the scenarios, one of so many of a statement, is affirmed or
    /// refuted wrongly with a chance of at most [`TAIL`], however scenarios hang together.
    ///
    /// At least `enough` of `wanted` are affirmed wrongly only if one of the `wanted - enough + 1` that
    /// are not so says yes, and the reverse (Benjamini and Heller, *Screening for partial conjunction
    /// hypotheses*, Biometrics 64, 2008). A statement is refuted by any of its claims.
    pub fn of(enough: usize, wanted: usize, claims: usize) -> Tails {
        let part = |of: usize| TAIL / of.max(1) as f64;
        Tails {
            yes: part((wanted + 1).saturating_sub(enough)),
            no: part(enough * claims.max(1)),
        }
    }
}

impl Test {
    /// What a case says; `None` if it lacks a policy or a value of the axis.
    pub(super) fn ask(self, case: &Case<'_>, tails: Tails) -> Option<Evidence> {
        let [a, b] = self.policies();
        let (a, b) = (case.policy(a)?, case.policy(b)?);
        let curves = &case.curves;
        let gaps = curves.gaps(a, b);
        let (says, decisive) = match self {
            Test::NowhereBelow(..) => {
                let by_value =
                    |a: &&Contrast<'_>, b: &&Contrast<'_>| a.value().total_cmp(&b.value());
                let least = gaps.iter().min_by(by_value)?.gap(TAIL);
                (nowhere_below(&gaps, tails), least)
            }
            Test::Above(..) => above(&curves.mean(a, b), tails),
            Test::AboveBy(_, _, by) => by_more_than(&curves.mean(a, b), by, tails),
            Test::WithinOf(_, _, by) => within(&curves.mean(a, b), by, tails),
            Test::NotBelowAt((_, x), (_, y)) => {
                let gap = curves.sum(&[(a, curves.at(x)?, 1), (b, curves.at(y)?, -1)]);
                (not_below(&gap, tails), gap.gap(TAIL))
            }
            Test::FallsLess(_, _, (from, to)) => {
                let (from, to) = (curves.at(from)?, curves.at(to)?);
                let falls = [(b, from, 1), (b, to, -1), (a, from, -1), (a, to, 1)];
                above(&curves.sum(&falls), tails)
            }
        };
        evidence(case, says, decisive, &gaps)
    }
}

fn evidence(case: &Case<'_>, says: Says, decisive: Gap, gaps: &[Contrast<'_>]) -> Option<Evidence> {
    let all = case.curves.difference(gaps)?;
    Some(Evidence {
        scenario: case.scenario.to_string(),
        load: case.load,
        says,
        difference: decisive.value,
        interval: (decisive.low, decisive.high),
        above: all.above,
        below: all.below,
        least: (all.least.1.value, all.least.0),
        most: (all.most.1.value, all.most.0),
        sets: case.sets,
        paired: case.curves.results.has_pairs(),
        directory: case.directory.clone(),
    })
}

/// What an interval says: yes where all of it lies above a bound, no where none of it lies above
/// another one.
fn says(gap: &Contrast<'_>, (above, tail): (f64, f64), (up_to, other): (f64, f64)) -> Says {
    match () {
        () if gap.gap(tail).low > above => Says::Yes,
        () if gap.gap(other).high <= up_to => Says::No,
        () => Says::Open,
    }
}

fn not_below(gap: &Contrast<'_>, tails: Tails) -> Says {
    says(gap, (-SLACK, tails.yes), (-SLACK, tails.no))
}

/// Any point refutes it.
fn nowhere_below(gaps: &[Contrast<'_>], tails: Tails) -> Says {
    let tails = Tails {
        no: tails.no / gaps.len().max(1) as f64,
        ..tails
    };
    let each: Vec<Says> = gaps.iter().map(|gap| not_below(gap, tails)).collect();
    match () {
        () if each.contains(&Says::No) => Says::No,
        () if each.contains(&Says::Open) => Says::Open,
        () => Says::Yes,
    }
}

/// Curves that are equal within [`SLACK`] are not above each other.
fn above(gap: &Contrast<'_>, tails: Tails) -> (Says, Gap) {
    (
        says(gap, (0.0, tails.yes), (SLACK, tails.no)),
        gap.gap(TAIL),
    )
}

fn by_more_than(gap: &Contrast<'_>, by: f64, tails: Tails) -> (Says, Gap) {
    (says(gap, (by, tails.yes), (by, tails.no)), gap.gap(TAIL))
}

fn within(gap: &Contrast<'_>, by: f64, tails: Tails) -> (Says, Gap) {
    let said = says(gap, (by, tails.no), (by, tails.yes));
    (said.reversed(), gap.gap(TAIL))
}

impl Says {
    const fn reversed(self) -> Says {
        match self {
            Says::Yes => Says::No,
            Says::No => Says::Yes,
            Says::Open => Says::Open,
        }
    }
}
