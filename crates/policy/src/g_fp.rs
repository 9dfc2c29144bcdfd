//! Global fixed priorities: of all ready jobs, those of the m highest tasks run (002 §2.2.3).
//!
//! Priorities as for `p-fp`: those of the tasks, or `g-fp:dm`, `g-fp:rm`.

use crate::cluster::{Cluster, Fixed};
use crate::plan::{Plan, Setup};
use crate::registry::{Info, Needs};
use crate::spec::Spec;
use model::Result;

/// What is known of it.
pub static INFO: Info = Info {
    name: "g-fp",
    summary: "global fixed priorities: the tasks' own, else the order of the set",
    parameters: "`g-fp:dm` for shorter deadlines first, `g-fp:rm` for shorter periods first, `quantum=1ms`",
    words: &["dm", "rm"],
    keys: &["quantum"],
    quantum_driven: false,
    needs: |_| Ok(Needs::Nothing),
};

/// Its state machine.
pub type Machine = Cluster<Fixed>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    setup.global(&crate::p_fp::rank(spec, setup)?, spec.duration("quantum")?)
}
