//! C-NPS-F: NPS-F in which no server, and so no task, leaves its cluster of processors (002 §4.3).
//!
//! It runs as NPS-F does; what differs is the assignment. Clusters lie around a cache level, the third by default.

use crate::plan::{Plan, Setup};
use crate::registry::Info;
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "c-nps-f",
    summary: "NPS-F whose servers stay within a cluster around a cache level",
    parameters: "`c-nps-f:delta=1`, `c-nps-f:l2` or `c-nps-f:l3` (the default), `c-nps-f:size=4`",
    words: &["l#"],
    keys: &["delta", "size"],
    quantum_driven: false,
    needs: |spec| {
        let clusters = spec.clusters()?.unwrap_or(ClusterSpec::Level(3));
        crate::nps_f::needs(spec, Some(clusters))
    },
};

/// Its state machine.
pub type Machine = crate::nps_f::NpsF;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    crate::nps_f::plan(spec, setup)
}
