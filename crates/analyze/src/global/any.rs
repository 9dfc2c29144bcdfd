//! GEDF_ANY: any of the hard tests for global EDF, the fast ones first.
//!
//! Source: 002 §6.2.2: a set counts as schedulable under G-EDF if one of the known sufficient tests
//! accepts it.
//!
//! Assumes: what the tests assume; one that does not apply is passed over.

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee};
use model::{Duration, Extras, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "GEDF_ANY",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "the tests that it asks; 002 §6.2.2 for judging so",
    preconditions: "those of at least one of its tests",
    about: "Accepts what any of GFB, BAK, LOAD, FFDBF, BCL, BCLI, BAR and RTA accepts.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_inflated),
    on_grid: Some(is_schedulable_on_grid),
    carries: Carries::Own(is_schedulable_with),
};

/// The tests in the order in which they are asked: cheap and strong first.
pub const TESTS: [&TestInfo; 8] = [
    &super::gfb::INFO,
    &super::bak::INFO,
    &super::load::INFO,
    &super::ffdbf::INFO,
    &super::bcl::INFO,
    &super::bcli::INFO,
    &super::bar::INFO,
    &super::rta::INFO,
];

/// Does any test accept?
///
/// # Errors
/// No test accepts, and none that rejects applies: the first one's reason.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    first(|test| (test.run)(tasks, m))
}

/// Does any test accept a set that overheads have inflated?
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_inflated(tasks: &[Timing], m: u32) -> Decision {
    first(|test| test.decide_inflated(tasks, m))
}

/// Does any test accept a set whose releases and times are all multiples of `grid`?
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_on_grid(tasks: &[Timing], m: u32, grid: Duration) -> Decision {
    first(|test| test.decide_on_grid(tasks, m, grid))
}

/// Does any test accept a set with blocking and jitter?
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_with(tasks: &[Timing], extras: &[Extras], m: u32) -> Decision {
    first(|test| test.decide_with(tasks, extras, m))
}

fn first(decide: impl Fn(&TestInfo) -> Decision) -> Decision {
    let mut answer = None;
    for test in TESTS {
        match decide(test) {
            Ok(true) => return Ok(true),
            Ok(false) => answer = Some(Ok(false)),
            Err(reason) => {
                answer.get_or_insert(Err(reason));
            }
        }
    }
    answer.unwrap_or(Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    #[test]
    fn a_test_that_does_not_apply_is_passed_over() {
        let late = Timing {
            wcet: Duration::from_millis(1),
            period: Duration::from_millis(10),
            deadline: Duration::from_millis(20),
        };
        assert_eq!(is_schedulable(&[late, late], 2), Ok(true));
        assert_eq!(is_schedulable(&[late; 21], 2), Ok(false));
    }
}
