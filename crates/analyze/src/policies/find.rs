//! Finding an assignment that holds, and asking whether one still does.
//!
//! Everything that is searched (the largest cache delay, the growth of WCETs) asks here, so that it
//! means what the verdict means.

use super::charged::Case;
use super::costs::Rule;
use super::place::{self, Packing};
use super::question::Question;
use super::split;
use crate::overheads;
use model::Assignment;

/// An assignment that holds.
pub(super) struct Found {
    pub assignment: Assignment,
    pub packing: Option<Packing>,
    /// What one delay a job does not cover.
    pub uncovered: Option<String>,
}

impl Question<'_> {
    /// The first assignment that holds.
    pub fn find(&self, case: &Case) -> Option<Found> {
        match self.given {
            Some(given) => self.given_holds(case, given).then(|| Found {
                assignment: given.clone(),
                packing: None,
                uncovered: split::uncovered(self, given),
            }),
            None if self.policy.is_packed() => {
                let (assignment, packing) = place::find(self, case)?;
                Some(Found {
                    assignment,
                    packing: (self.site.clusters.len() > 1).then_some(packing),
                    uncovered: None,
                })
            }
            None => {
                let assignment = split::assign(self, case).ok()?;
                Some(Found {
                    uncovered: split::uncovered(self, &assignment),
                    assignment,
                    packing: None,
                })
            }
        }
    }

    /// Does the given assignment hold, as it is?
    fn given_holds(&self, case: &Case, given: &Assignment) -> bool {
        if matches!(given, Assignment::Clustered(_)) {
            return self.places_hold(case, given);
        }
        if let Assignment::Quanta(quanta) = given {
            return split::quanta_hold(self, case, quanta);
        }
        overheads::holds(&case.tasks, given, &self.system(case))
    }

    /// Does this assignment still hold? Monotone: never with longer WCETs or delays if not with
    /// shorter ones.
    pub fn holds(&self, case: &Case, assignment: &Assignment) -> bool {
        match (assignment, self.bill.rule) {
            _ if self.given.is_some() => return self.given_holds(case, assignment),
            _ if self.policy.quantum().is_some() => return self.find(case).is_some(),
            (Assignment::Clustered(_), _) => {}
            // What becomes longer is assigned anew: budgets and reserves are part of the
            // assignment, and leave no room.
            (_, Rule::OneDelay | Rule::ByPiece) => return self.find(case).is_some(),
            (Assignment::Slices(_), Rule::AllOverheads | Rule::Paper) => {
                return self.find(case).is_some();
            }
            (_, Rule::AllOverheads | Rule::Paper) => {
                return overheads::holds(&case.tasks, assignment, &self.system(case));
            }
        }
        self.places_hold(case, assignment)
    }

    /// Why no assignment was found, in a clause.
    pub fn refusal(&self, case: &Case) -> String {
        if self.policy.is_packed() {
            return place::refusal(self, case);
        }
        if self.given.is_some() {
            return "the given assignment does not keep the guarantee with what is charged; another may"
                .to_owned();
        }
        split::assign(self, case).err().unwrap_or_default()
    }
}
