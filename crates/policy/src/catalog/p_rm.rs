//! Partitioned rate-monotonic scheduling: each task on its processor, shorter periods first (002
//! §2.2.1).

use crate::catalog::{Info, Needs, Order, Priority, Tests};
use crate::cluster::{Cluster, Fixed};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "p-rm",
    summary: "partitioned rate-monotonic",
    parameters: "`p-rm:quantum=1ms` to decide at quantum boundaries only",
    keys: &["quantum"],
    needs: |_| Ok(Needs::Clusters(ClusterSpec::Partitioned)),
    unjudged: &["quantum"],
    order: |_| Ok(Order::Fixed(Priority::RateMonotonic)),
    hard: Tests::Priorities,
    soft: Tests::Priorities,
    suggested: &["p-rm"],
    tried: &["p-rm"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Fixed>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let assignment = setup.clusters_given(INFO.name, true)?;
    let timings = setup.set.timings();
    let rank = Fixed::by(timings.len(), |task| timings[task].period);
    setup.clustered(assignment, &rank, spec.duration("quantum")?)
}
