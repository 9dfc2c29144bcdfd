//! The list of all tests: what the command line, the documentation and the test suites read.
//!
//! To add a test: its file, and one line in [`ALL`].

pub use crate::info::{OnGrid, TestInfo};

use crate::partition::{pedf, pfp};
use crate::semi::{edf_fm, edf_wm, nps_f};
use crate::{global, pd2, tardiness};
use model::error::nearest;
use model::{Error, Result};

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

/// A section of the page: which releases a yes is for.
const RELEASES: &str = r#"
## Releases at any time

A yes holds for jobs that are released at any time, also between two ticks of the unit in which the
times of the set are given. BCLI and RTA are published for integer time, where all releases are
whole units: a job that waits for longer than x then waits for x + 1 at least. That is false for
other releases: (e, D, p) = (1, 5, 5), (1, 2, 6), (1, 5, 6), (4, 5, 5) on two processors pass the
published RTA and miss a deadline where the second task is released at 0.5. Here both are for any
releases. The difference: let B_i be the most work of task i that can delay a job, and x the time
that the job may wait and still meet its bound. A job that is late has waited for longer than x
while all m processors were busy, so that Σ min(B_i, y) ≥ m·y for every y up to that time, also for
those just above x. So x is safe if Σ min(B_i, x) < m·x, or if both are equal and fewer than m tasks
have B_i > x. Integer time asks for Σ min(B_i, x + 1) < m·(x + 1), which is weaker. GFP-RTA and
GDM-RTA are published for integer time as well and are changed in the same way. BAR's condition is
stricter than needed (it clips at L − e_k + 1 and compares with m·(L − e_k)), so that it holds for
releases at any time as published. All other tests do not depend on a unit. Bounds and slacks are
rounded to whole nanoseconds, to the safe side.

`warmset check --batch FILE --grid 1us` asks for integer time: it takes for granted that every job
is released at a multiple of the grid (execution times may be shorter than the WCET by any amount).
Every time of the sets has to be a multiple of it. The answers then say so (`"grid_ns":1000`). This
is what other tools compute, and what their verdicts are compared with. It accepts more: BCLI, RTA
and GEDF_ANY; the other tests are the same.
"#;

/// The page of the documentation about all tests, `docs/tests.md`, in Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Tests\n\n\
         The schedulability tests of `warmset check`, as they are registered. This page is made from the registry: \
         `WARMSET_WRITE=1 cargo test -p warmset-analyze --test all page::` writes it anew.\n\n\
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
    page += RELEASES;
    for t in ALL {
        page += &format!("\n## {}\n\n{}\n\nSource: {}.\n", t.name, t.about, t.source);
        page += &format!("\n{}\n", t.carries.sentence());
        if t.on_grid.is_some() {
            page += "\nWith `--grid`: the test in integer time, as published. See \"Releases at any time\".\n";
        }
        if t.run_inflated.is_some() {
            page += "\nRounding: BAR counts in whole microseconds where all times of a set are, else in nanoseconds. A set \
                     that overheads have inflated is rounded to whole microseconds, so that a longer overhead never \
                     gains by a change of unit. The coarser unit accepts less.\n";
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
