//! Clustered EDF: each task in its cluster of processors, global EDF there (002 §2.2.3).
//!
//! Clusters lie around a level of cache (`c-edf:l2`, `c-edf:l3`) or have a size (`c-edf:size=4`).

use crate::catalog::{Info, Needs, Order, Tests};
use crate::cluster::{Cluster, Edf};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::Result;

/// What is known of it.
pub static INFO: Info = Info {
    name: "c-edf",
    summary: "clustered earliest deadline first, clusters around a cache level or of a size",
    parameters: "`c-edf:l2`, `c-edf:l3` or `c-edf:size=4`; `quantum=1ms` and `ties=index` as for `g-edf`",
    words: &["l#"],
    keys: &["size", "quantum", "ties"],
    needs: |spec| spec.needed_clusters().map(Needs::Clusters),
    unjudged: &["quantum", "ties"],
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Deadlines,
    soft: Tests::Utilization,
    suggested: &["c-edf:l#"],
    tried: &["c-edf:size=2"],
    live: "c-edf:l3",
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Edf>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    spec.needed_clusters()?;
    let assignment = setup.clusters_given(INFO.name, false)?;
    setup.clustered(
        assignment,
        &super::g_edf::rank(spec, setup)?,
        spec.duration("quantum")?,
    )
}
