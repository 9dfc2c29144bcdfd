//! EDF-fm: most tasks stay on one processor; at most two a processor take turns, job by job, with a
//! neighbor (002 §4.1).
//!
//! On each processor jobs of migratory tasks go before jobs of fixed ones; within a class earliest
//! deadline first. A job never leaves the processor on which it was released. For soft real time:
//! only fixed tasks may be tardy.
//!
//! Assumes an assignment in which the migratory shares of a processor do not exceed one; it is not
//! checked here.

use crate::catalog::{Info, Needs, Order, Tests};
use crate::cluster::{Cluster, Edf, Rank};
use crate::place::Nearness;
use crate::plan::{Plan, Route, Setup, Turns, each_alone};
use crate::spec::Spec;
use crate::{DomainId, Job, Keys};
use model::{Assignment, Error, Result};
use std::sync::Arc;

/// What is known of it.
pub static INFO: Info = Info {
    name: "edf-fm",
    summary: "semi-partitioned EDF: jobs of a few tasks take turns on two processors",
    parameters: "`edf-fm:fill=spread`: processors are filled evenly, not one after the other",
    keys: &["fill"],
    needs: |spec| {
        let spread = spreads(spec)?;
        Ok(Needs::Turns { spread })
    },
    order: |_| Ok(Order::Deadlines),
    soft: Tests::Named("EDF-FM"),
    canonical: |spec| {
        Ok(match spreads(spec)? {
            false => spec.info().name.to_owned(),
            true => format!("{}:fill=spread", spec.info().name),
        })
    },
    suggested: &["edf-fm"],
    tried: &["edf-fm"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<MigratoryFirst>;

/// Builds it.
pub fn plan(_spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let Some(Assignment::Turns(assignment)) = setup.assignment else {
        return Err(
            Error::new("`edf-fm` needs an assignment in turns").remedy("assign the set first")
        );
    };
    let tasks = setup.set.len();
    let domain = |cpu| {
        assignment
            .cpus
            .iter()
            .position(|c| *c == cpu)
            .map(|at| DomainId(at as u32))
    };
    let turns: Option<Vec<Turns>> = assignment
        .tasks
        .iter()
        .map(|turn| {
            (turn.whole > 0).then_some(Turns {
                first: domain(turn.first)?,
                second: domain(turn.second)?,
                part: turn.part,
                whole: turn.whole,
            })
        })
        .collect();
    let Some(turns) = turns.filter(|t| t.len() == tasks) else {
        return Err(
            Error::new("the assignment does not fit the set and its own processors")
                .at("policy `edf-fm`")
                .remedy("make the assignment for this set"),
        );
    };
    let rank = MigratoryFirst {
        edf: Edf::new(setup.set.timings().iter().map(|t| t.deadline)),
        migratory: assignment.tasks.iter().map(|t| t.is_migratory()).collect(),
    };
    let domains = setup.domains(&each_alone(&assignment.cpus), |_, cpus| {
        let near = Nearness::of(setup.platform, cpus);
        Ok(Cluster::new(rank.clone(), near, cpus.len(), tasks, None))
    })?;
    Ok(Plan {
        domains,
        route: Route::Alternating(turns),
    })
}

/// Are processors filled evenly (002 §4.1, light systems)? By itself one is full before the next
/// one has tasks, and a full one leaves no time for anything else.
fn spreads(spec: &Spec) -> Result<bool> {
    match spec.value("fill") {
        None | Some("full") => Ok(false),
        Some("spread") => Ok(true),
        Some(_) => Err(spec
            .error("`fill` is `full` or `spread`")
            .remedy("write `edf-fm` or `edf-fm:fill=spread`")),
    }
}

/// Migratory tasks first, then EDF.
#[derive(Clone, Debug)]
pub struct MigratoryFirst {
    edf: Edf,
    migratory: Arc<[bool]>,
}

impl Rank for MigratoryFirst {
    #[inline]
    fn key(&self, job: &Job) -> u128 {
        // Deadlines stay below 2^63 ns: the highest bit is free to tell the classes apart.
        let fixed = !self.migratory[job.task.index()];
        self.edf.key(job) | u128::from(fixed) << 127
    }

    fn keys(&self) -> Option<Keys> {
        Some(Keys {
            class: self.migratory.iter().map(|m| u32::from(!m)).collect(),
            ..self.edf.keys()?
        })
    }
}
