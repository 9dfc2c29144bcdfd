//! The list of all tests: what the command line, the documentation and the test suites read.
//!
//! To add a test: its file, and one line in [`ALL`].

use crate::carries::{self, Carries};
use crate::partition::{pedf, pfp};
use crate::semi::{edf_fm, edf_wm, nps_f};
use crate::verdict::{Decision, Exactness, Guarantee};
use crate::{global, pd2, tardiness};
use model::error::nearest;
use model::{Error, Extras, Result, TaskSet, Timing};

/// A schedulability test: how it is called, what it promises, where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct TestInfo {
    /// Its name on the command line and in batch answers, such as `GFB`.
    pub name: &'static str,
    /// The policy that it is for, such as `g-edf`.
    pub policy: &'static str,
    /// What acceptance promises.
    pub guarantee: Guarantee,
    /// What rejection says.
    pub exactness: Exactness,
    /// Paper, theorem, equations.
    pub source: &'static str,
    /// What must hold of a set, as text.
    pub preconditions: &'static str,
    /// What it does, in a paragraph for the documentation.
    pub about: &'static str,
    /// Decides a set on `m` processors. `m` of zero schedules nothing.
    pub run: fn(&[Timing], u32) -> Decision,
    /// Decides a set that overheads have inflated, where that differs: a test that reasons in whole time units takes
    /// the unit of `run` from the set, but that of an inflated one is always the nanosecond, so that a longer overhead
    /// never helps by falling on a coarser unit.
    pub run_inflated: Option<fn(&[Timing], u32) -> Decision>,
    /// What it takes of blocking and release jitter, and how.
    pub carries: Carries,
}

impl TestInfo {
    /// Decides a set whose WCETs overheads have made longer.
    ///
    /// # Errors
    /// The test does not apply to the set.
    pub fn decide_inflated(&self, tasks: &[Timing], m: u32) -> Decision {
        self.run_inflated.unwrap_or(self.run)(tasks, m)
    }

    /// Decides a set with blocking and jitter, one entry a task, or none at all. WCETs may have been made longer by overheads.
    ///
    /// # Errors
    /// The test does not apply to the set, or does not take what it has of these.
    pub fn decide_with(&self, tasks: &[Timing], extras: &[Extras], m: u32) -> Decision {
        match self.carries {
            _ if extras.iter().all(Extras::is_none) => self.decide_inflated(tasks, m),
            Carries::Own(decide) => decide(tasks, extras, m),
            carries => match carries::reduced(carries, tasks, extras)? {
                Some(reduced) => self.decide_inflated(&reduced, m),
                None => Ok(false),
            },
        }
    }

    /// Decides a set as it is given: with blocking and jitter, and with its priorities where the test is for given ones.
    ///
    /// # Errors
    /// As [`TestInfo::decide_with`].
    pub fn decide_set(&self, set: &TaskSet, m: u32) -> Decision {
        let ordered = (self.policy == "g-fp" && set.has_priorities()).then(|| carries::by_priority(set));
        let (tasks, extras) = match &ordered {
            Some((tasks, extras)) => (&tasks[..], &extras[..]),
            None => (set.timings(), set.extras()),
        };
        match extras {
            [] => (self.run)(tasks, m),
            _ => self.decide_with(tasks, extras, m),
        }
    }
}

/// All tests, in the order of the documentation.
pub static ALL: &[TestInfo] = &[
    global::gfb::INFO,
    global::bak::INFO,
    global::bar::INFO,
    global::bcl::INFO,
    global::bcli::INFO,
    global::load::INFO,
    global::ffdbf::INFO,
    global::rta::INFO,
    global::any::INFO,
    global::gdm_density::INFO,
    global::gfp_rta::DEADLINE_MONOTONIC,
    global::gfp_rta::GIVEN,
    tardiness::devi_anderson::INFO,
    tardiness::cache_aware::INFO,
    pd2::INFO,
    pedf::WFD,
    pedf::FFD,
    pedf::BFD,
    pedf::NFD,
    pfp::RM,
    pfp::DM,
    edf_fm::INFO,
    edf_wm::INFO,
    nps_f::INFO,
    nps_f::CLUSTERED,
];

/// The test of a name, in any case.
///
/// # Errors
/// No test has that name; suggests the nearest, or lists them.
pub fn find(name: &str) -> Result<&'static TestInfo> {
    let wanted = name.trim();
    ALL.iter()
        .find(|t| t.name.eq_ignore_ascii_case(wanted))
        .ok_or_else(|| {
            let remedy = match nearest(wanted, ALL.iter().map(|t| t.name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "tests are {}",
                    ALL.iter().map(|t| t.name).collect::<Vec<_>>().join(", ")
                ),
            };
            Error::new(format!("unknown test `{wanted}`")).remedy(remedy)
        })
}

/// Every test of a comma-separated list, in its order, each once.
///
/// # Errors
/// An unknown name, or none at all.
pub fn find_list(names: &str) -> Result<Vec<&'static TestInfo>> {
    let mut found: Vec<&'static TestInfo> = Vec::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let test = find(name)?;
        if !found.iter().any(|t| t.name == test.name) {
            found.push(test);
        }
    }
    if found.is_empty() {
        return Err(Error::new("no test is named").remedy("give at least one, such as `GFB`"));
    }
    Ok(found)
}

/// The page of the documentation about all tests, `docs/tests.md`, in Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Tests\n\n\
         The schedulability tests of `warmset check`, as they are registered. This page is made from the registry: \
         `WARMSET_WRITE=1 cargo test -p warmset-analyze --test page` writes it anew.\n\n\
         A *hard* test promises that no deadline is missed, a *soft* one that tardiness is bounded. A *sufficient* test \
         may reject a set that is schedulable, an *exact* one does not. e is the worst-case execution time of a task, p \
         its period, D its deadline, u = e/p; m is the number of processors, U the total utilization. A test asked \
         outside its preconditions says which one fails (`null` in batch answers).\n\n\
         The column *takes* says what of `blocking` and `jitter` (see [checking](checking.md)) a test carries; it does not apply to a \
         set that has what it does not take.\n\n\
         | test | policy | guarantee | verdict | preconditions | takes |\n|---|---|---|---|---|---|\n",
    );
    for t in ALL {
        page += &format!(
            "| [{}](#{}) | `{}` | {} | {} | {} | {} |\n",
            t.name,
            t.name.to_lowercase(),
            t.policy,
            t.guarantee,
            t.exactness,
            t.preconditions,
            t.carries.words()
        );
    }
    for t in ALL {
        page += &format!("\n## {}\n\n{}\n\nSource: {}.\n", t.name, t.about, t.source);
        page += &format!("\n{}\n", t.carries.sentence());
        if t.run_inflated.is_some() {
            page += "\nInteger time: the unit is the microsecond for a set whose times are all whole microseconds, else \
                     the nanosecond; a set inflated by overheads is judged so that a longer overhead never gains by a \
                     change of unit.\n";
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_found_by_name_and_a_misspelled_one_suggested() {
        assert_eq!(find("gfb").unwrap().name, "GFB");
        assert_eq!(
            find("GBF").unwrap_err().to_string(),
            "unknown test `GBF`; did you mean `GFB`?"
        );
        assert_eq!(find_list("GFB, gfb").unwrap().len(), 1);
        assert!(find_list(" ,").is_err());
    }

    #[test]
    fn names_are_unique() {
        for (i, a) in ALL.iter().enumerate() {
            assert!(ALL[i + 1..].iter().all(|b| a.name != b.name), "{}", a.name);
        }
    }
}
