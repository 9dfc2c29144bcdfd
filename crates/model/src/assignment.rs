//! Who runs where: what `analyze` makes, `report` draws and `policy` runs. Plain data.

use crate::cpus::CpuSet;
use crate::task::TaskId;
use serde::{Deserialize, Serialize};

/// The placement of a task set on processors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Assignment {
    /// Each task stays within one cluster; a cluster of one processor is a partition (000 §2), one of all is global.
    Clustered(Clustered),
}

/// Tasks on disjoint sets of processors, each scheduled on its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Clustered {
    /// The processors of each cluster.
    pub clusters: Vec<CpuSet>,
    /// For every task of the set, in order, the index of its cluster.
    pub cluster_of: Vec<u32>,
}

impl Clustered {
    /// The tasks of one cluster, in the order of the set.
    pub fn tasks_of(&self, cluster: usize) -> impl Iterator<Item = TaskId> + '_ {
        self.cluster_of
            .iter()
            .enumerate()
            .filter(move |(_, c)| **c as usize == cluster)
            .map(|(task, _)| TaskId(task as u32))
    }
}
