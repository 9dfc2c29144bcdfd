//! The engine in virtual time: drives any policy, with or without overheads, exactly and fast.
//!
//! [`ideal`] schedules without overheads, there with jobs in a model of caches ([`cached`]) as well,
//! [`costly`] with those of [`costs`]; [`scenario`] says
//! when jobs come and how long they take, [`chance`] from which distributions; [`observe`] watches;
//! [`summary`] is what is counted; [`run`] is how other rooms ask for it. Time is in nanoseconds;
//! the same input gives the same schedule.

#![forbid(unsafe_code)]

pub mod cached;
pub mod chance;
pub mod costly;
pub mod costs;
mod course;
pub mod ideal;
mod jobs;
mod kernel;
pub mod observe;
pub mod pace;
mod random;
pub mod run;
pub mod scenario;
mod show;
pub mod summary;

pub use cached::{Accesses, Cached, Tally};
pub use chance::Chance;
pub use costs::Costs;
pub use observe::{Distributions, Observer, Responses, Traced};
pub use run::{Run, Watcher};
pub use scenario::{Execution, Lateness, Releases, Scenario};
pub use summary::{Ending, Miss, Summary, TaskSummary};

use model::watch::Watch;
use model::{Platform, Result, TaskSet};
pub use pace::Pace;
use policy::{AnyPlan, Plan, Policy, Visit};

/// Simulates a plan of any policy, with overheads if `costs` are given and not free.
///
/// # Errors
/// A scenario or costs out of range for the set.
pub fn simulate<O: Observer>(
    plan: AnyPlan,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    costs: Option<&Costs>,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    struct Run<'a, W, O> {
        set: &'a TaskSet,
        platform: &'a Platform,
        scenario: &'a Scenario,
        costs: Option<&'a Costs>,
        watch: &'a W,
        observer: O,
    }
    impl<W: Watch, O: Observer> Visit for Run<'_, W, O> {
        type Out = Result<(Summary, O)>;
        fn visit<P: Policy>(self, plan: Plan<P>) -> Self::Out {
            let Run {
                set,
                platform,
                scenario,
                watch,
                observer,
                ..
            } = self;
            match self.costs.filter(|costs| !costs.are_free()) {
                Some(costs) => costly::run(plan, set, platform, scenario, costs, watch, observer),
                None => ideal::run(plan, set, platform, scenario, watch, observer),
            }
        }
    }
    plan.visit(Run {
        set,
        platform,
        scenario,
        costs,
        watch,
        observer,
    })
}

/// Simulates a plan of any policy without overheads, with jobs that get on as `pace` says.
///
/// # Errors
/// A scenario out of range for the set; a policy that splits jobs, or budgets that are enforced;
/// what `pace` could not do.
pub fn simulate_paced<O: Observer, G: Pace>(
    plan: AnyPlan,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    watch: &impl Watch,
    observer: O,
    pace: &mut G,
) -> Result<(Summary, O)> {
    struct Run<'a, W, O, G> {
        set: &'a TaskSet,
        platform: &'a Platform,
        scenario: &'a Scenario,
        watch: &'a W,
        observer: O,
        pace: &'a mut G,
    }
    impl<W: Watch, O: Observer, G: Pace> Visit for Run<'_, W, O, G> {
        type Out = Result<(Summary, O)>;
        fn visit<P: Policy>(self, plan: Plan<P>) -> Self::Out {
            let Run {
                set,
                platform,
                scenario,
                watch,
                observer,
                pace,
            } = self;
            ideal::run_paced(plan, set, platform, scenario, watch, observer, pace)
        }
    }
    plan.visit(Run {
        set,
        platform,
        scenario,
        watch,
        observer,
        pace,
    })
}
