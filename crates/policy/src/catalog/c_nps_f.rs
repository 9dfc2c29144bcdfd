//! C-NPS-F: NPS-F in which no server, and so no task, leaves its cluster of processors (002 §4.3).
//!
//! It runs as NPS-F does; what differs is the assignment. Clusters lie around a cache level, the
//! third by default.

use crate::catalog::{Info, Order, Tests};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::{ClusterSpec, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "c-nps-f",
    summary: "NPS-F whose servers stay within a cluster around a cache level",
    parameters: "`c-nps-f:delta=1`, `c-nps-f:l2` or `c-nps-f:l3` (the default), `c-nps-f:size=4`",
    words: &["l#"],
    keys: &["delta", "size"],
    needs: |spec| super::nps_f::needs(spec, Some(clusters(spec)?)),
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Named("C-NPS-F"),
    soft: Tests::Named("C-NPS-F"),
    canonical: |spec| super::nps_f::canonical(spec, Some(clusters(spec)?)),
    suggested: &["c-nps-f:l#"],
    tried: &["c-nps-f:size=1"],
    ..Info::DEFAULT
};

/// The clusters that no server leaves.
fn clusters(spec: &Spec) -> Result<ClusterSpec> {
    Ok(spec.clusters()?.unwrap_or(ClusterSpec::Level(3)))
}

/// Its state machine.
pub type Machine = super::nps_f::NpsF;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    super::nps_f::plan(spec, setup)
}
