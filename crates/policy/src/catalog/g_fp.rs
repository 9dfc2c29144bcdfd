//! Global fixed priorities: of all ready jobs, those of the m highest tasks run (002 §2.2.3).
//!
//! Priorities as for `p-fp`: those of the tasks, or `g-fp:dm`, `g-fp:rm`.

use crate::catalog::{Info, Tests};
use crate::cluster::{Cluster, Fixed};
use crate::plan::{Plan, Setup};
use crate::spec::Spec;
use model::Result;

/// What is known of it.
pub static INFO: Info = Info {
    name: "g-fp",
    summary: "global fixed priorities: the tasks' own, else the order of the set",
    parameters: "`g-fp:dm` for shorter deadlines first, `g-fp:rm` for shorter periods first, `quantum=1ms`",
    words: &["dm", "rm"],
    keys: &["quantum"],
    unjudged: &["quantum"],
    order: super::p_fp::order,
    hard: Tests::Priorities,
    soft: Tests::Priorities,
    suggested: &["g-fp:dm"],
    tried: &["g-fp", "g-fp:dm", "g-fp:rm"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Fixed>;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    setup.global(&super::p_fp::rank(spec, setup)?, spec.duration("quantum")?)
}
