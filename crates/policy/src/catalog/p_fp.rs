//! Partitioned fixed priorities: each task on its processor, the task of highest priority first
//! (002 §2.2.2).
//!
//! Priorities are those that the tasks give (the larger number first, tasks without one last), ties
//! by the order of the set; `p-fp:dm` takes shorter relative deadlines first, `p-fp:rm` shorter
//! periods.

use crate::catalog::{Info, Needs, Order, Priority, Tests};
use crate::cluster::{Cluster, Fixed};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "p-fp",
    summary: "partitioned fixed priorities: the tasks' own, else the order of the set",
    parameters: "`p-fp:dm` for shorter deadlines first, `p-fp:rm` for shorter periods first, `quantum=1ms`",
    words: &["dm", "rm"],
    keys: &["quantum"],
    needs: |_| Ok(Needs::Clusters(ClusterSpec::Partitioned)),
    unjudged: &["quantum"],
    order,
    hard: Tests::Priorities,
    soft: Tests::Priorities,
    canonical: |spec| match order(spec)? {
        Order::Fixed(Priority::RateMonotonic) => Ok(super::p_rm::INFO.name.to_owned()),
        _ => Ok(spec.to_string()),
    },
    suggested: &["p-fp:dm"],
    tried: &["p-fp", "p-fp:dm", "p-fp:rm"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Fixed>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let assignment = setup.clusters_given(INFO.name, true)?;
    setup.clustered(assignment, &rank(spec, setup)?, spec.duration("quantum")?)
}

/// The order that the parameters name.
pub(super) fn order(spec: &Spec) -> Result<Order> {
    match (spec.has("dm"), spec.has("rm")) {
        (false, false) => Ok(Order::Fixed(Priority::Given)),
        (true, false) => Ok(Order::Fixed(Priority::DeadlineMonotonic)),
        (false, true) => Ok(Order::Fixed(Priority::RateMonotonic)),
        (true, true) => Err(spec
            .error("`dm` and `rm` are two orders")
            .remedy("write one of them")),
    }
}

/// The priorities that the parameters ask for.
pub(super) fn rank(spec: &Spec, setup: &Setup<'_>) -> Result<Fixed> {
    let timings = setup.set.timings();
    Ok(match order(spec)? {
        Order::Fixed(Priority::DeadlineMonotonic) => {
            Fixed::by(timings.len(), |task| timings[task].deadline)
        }
        Order::Fixed(Priority::RateMonotonic) => {
            Fixed::by(timings.len(), |task| timings[task].period)
        }
        _ => {
            let ranks = setup.set.ranks();
            Fixed::by(timings.len(), |task| ranks[task])
        }
    })
}
