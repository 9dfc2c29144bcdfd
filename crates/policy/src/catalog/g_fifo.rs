//! Global first in, first out: of all ready jobs those that were released first run.
//!
//! Equal releases: the lower task index. Tardiness is bounded where the set is not over-utilized
//! (Leontyev, Anderson 2010): the priority of a job stays on its release.

use crate::catalog::{Info, Order, Tests};
use crate::cluster::{Cluster, Rank};
use crate::plan::{Plan, Setup};
use crate::queue::key;
use crate::spec::Spec;
use crate::{Job, KeyedBy, Keys};
use model::Result;

/// What is known of it.
pub static INFO: Info = Info {
    name: "g-fifo",
    summary: "global first in, first out",
    order: |_| Ok(Order::Releases),
    soft: Tests::Utilization,
    tried: &["g-fifo"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = Cluster<Fifo>;

/// Builds it.
pub fn plan(_spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    setup.global(&Fifo, None)
}

/// Earlier releases first.
#[derive(Clone, Copy, Debug)]
pub struct Fifo;

impl Rank for Fifo {
    fn key(&self, job: &Job) -> u128 {
        key(job.release.nanos(), job.task.0, job.task)
    }

    fn keys(&self) -> Option<Keys> {
        Some(Keys::by(KeyedBy::Release))
    }
}
