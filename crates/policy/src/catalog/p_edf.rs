//! Partitioned EDF: each task on its processor, earliest deadline first there (002 §2.2.3).

use crate::catalog::{Info, Needs, Order, Tests};
use crate::cluster::{Cluster, Edf};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "p-edf",
    summary: "partitioned earliest deadline first",
    parameters: "`p-edf:quantum=1ms` to decide at quantum boundaries only, `p-edf:ties=index` to break equal deadlines by task index alone",
    keys: &["quantum", "ties"],
    needs: |_| Ok(Needs::Clusters(ClusterSpec::Partitioned)),
    unjudged: &["quantum", "ties"],
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Deadlines,
    soft: Tests::Utilization,
    suggested: &["p-edf"],
    tried: &["p-edf"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Edf>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let assignment = setup.clusters_given(INFO.name, true)?;
    setup.clustered(
        assignment,
        &super::g_edf::rank(spec, setup)?,
        spec.duration("quantum")?,
    )
}
