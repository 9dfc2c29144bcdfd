//! Clustered EDF: each task in its cluster of processors, global EDF there (002 §2.2.3).
//!
//! Clusters lie around a level of cache (`c-edf:l2`, `c-edf:l3`) or have a size (`c-edf:size=4`).

use crate::cluster::{Cluster, Edf};
use crate::plan::{Plan, Setup};
use crate::registry::{Info, Needs};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "c-edf",
    summary: "clustered earliest deadline first, clusters around a cache level or of a size",
    parameters: "`c-edf:l2`, `c-edf:l3` or `c-edf:size=4`; `quantum=1ms` and `ties=index` as for `g-edf`",
    words: &["l#"],
    keys: &["size", "quantum", "ties"],
    quantum_driven: false,
    needs: |spec| clusters(spec).map(Needs::Clusters),
};

/// Its state machine.
pub type Machine = Cluster<Edf>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    clusters(spec)?;
    let assignment = setup.clusters_given(INFO.name, false)?;
    setup.clustered(
        assignment,
        &crate::g_edf::rank(spec, setup)?,
        spec.duration("quantum")?,
    )
}

/// Which clusters the parameters ask for.
fn clusters(spec: &Spec) -> Result<ClusterSpec> {
    let level = spec
        .words()
        .find_map(|w| w.strip_prefix('l'))
        .map(str::parse::<u8>);
    match (level, spec.parsed::<u32>("size")?) {
        (Some(Ok(level)), None) => Ok(ClusterSpec::Level(level)),
        (None, Some(size)) => Ok(ClusterSpec::Size(size)),
        (None, None) => Err(spec
            .error("`c-edf` does not say which clusters")
            .remedy("write `c-edf:l2`, `c-edf:l3` or `c-edf:size=4`")),
        _ => Err(spec
            .error("the clusters are not clear")
            .remedy("write either one cache level or a size")),
    }
}
