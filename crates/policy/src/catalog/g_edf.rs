//! Global EDF: of all ready jobs, those with the m earliest deadlines run (002 §2.2.3; 003 §2).

use crate::catalog::{Info, Order, Tests};
use crate::cluster::{Cluster, Edf};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::Result;

/// What is known of it.
pub static INFO: Info = Info {
    name: "g-edf",
    summary: "global earliest deadline first",
    parameters: "`g-edf:quantum=1ms` to decide at quantum boundaries only, `g-edf:ties=index` to break equal deadlines by task index alone",
    keys: &["quantum", "ties"],
    unjudged: &["quantum", "ties"],
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Deadlines,
    soft: Tests::Utilization,
    suggested: &["g-edf"],
    tried: &["g-edf", "g-edf:ties=index", "g-edf:quantum=3us"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Edf>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    setup.global(&rank(spec, setup)?, spec.duration("quantum")?)
}

/// Earliest deadline first with the ties that the parameters ask for.
pub(crate) fn rank(spec: &Spec, setup: &Setup<'_>) -> Result<Edf> {
    match spec.value("ties") {
        None | Some("release") => Ok(Edf::new(setup.set.timings().iter().map(|t| t.deadline))),
        Some("index") => Ok(Edf::with_ties_by_index(setup.set.len())),
        Some(other) => Err(spec
            .error(format!("`ties={other}` breaks no tie"))
            .remedy("write `ties=release` or `ties=index`")),
    }
}
