//! Partitioned fixed priorities: each task on its processor, the task of highest priority first (002 §2.2.2).
//!
//! Priorities are those that the tasks give (the larger number first, tasks without one last), ties by the order of the set;
//! `p-fp:dm` takes shorter relative deadlines first, `p-fp:rm` shorter periods.

use crate::cluster::{Cluster, Fixed};
use crate::plan::{Plan, Setup};
use crate::registry::{Info, Needs};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "p-fp",
    summary: "partitioned fixed priorities: the tasks' own, else the order of the set",
    parameters: "`p-fp:dm` for shorter deadlines first, `p-fp:rm` for shorter periods first, `quantum=1ms`",
    words: &["dm", "rm"],
    keys: &["quantum"],
    quantum_driven: false,
    needs: |_| Ok(Needs::Clusters(ClusterSpec::Partitioned)),
};

/// Its state machine.
pub type Machine = Cluster<Fixed>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let assignment = setup.clusters_given(INFO.name, true)?;
    setup.clustered(assignment, &rank(spec, setup)?, spec.duration("quantum")?)
}

/// The priorities that the parameters ask for.
pub(crate) fn rank(spec: &Spec, setup: &Setup<'_>) -> Result<Fixed> {
    let timings = setup.set.timings();
    match (spec.has("dm"), spec.has("rm")) {
        (false, false) => {
            let ranks = setup.set.ranks();
            Ok(Fixed::by(timings.len(), |task| ranks[task]))
        }
        (true, false) => Ok(Fixed::by(timings.len(), |task| timings[task].deadline)),
        (false, true) => Ok(Fixed::by(timings.len(), |task| timings[task].period)),
        (true, true) => Err(spec
            .error("`dm` and `rm` are two orders")
            .remedy("write one of them")),
    }
}
