//! Who runs where: what `analyze` makes, `report` draws and `policy` runs. Plain data.

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::task::{TaskId, TaskSet, Timing};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// The placement of a task set on processors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Assignment {
    /// Each task stays within one cluster; a cluster of one processor is a partition (000 §2), one
    /// of all is global.
    Clustered(Clustered),
    /// Some tasks take turns on two processors, job by job: EDF-fm (002 §4.1).
    Turns(Turns),
    /// Some tasks' jobs are cut into slices on several processors: EDF-WM (002 §4.2).
    Slices(Slices),
    /// Tasks in servers, servers in the slots of processors: NPS-F and C-NPS-F (002 §4.3).
    Slots(Slots),
    /// All tasks on all processors, quantum by quantum, each with reserved quanta: PD² (002
    /// §2.2.2), ca-edf (003 §3.1).
    Quanta(Quanta),
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

/// Tasks on single processors, but for some whose jobs take turns on two (002 §4.1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Turns {
    /// The processors.
    pub cpus: Vec<CpuId>,
    /// For every task of the set, in order.
    pub tasks: Vec<Turn>,
}

/// Where the jobs of one task run: of any `whole` jobs in a row `part` run on `first`, the others
/// on `second`.
///
/// `part` / `whole` is the share of `first` in the task's utilization. A fixed task has
/// `first == second`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The processor with the lower place.
    pub first: CpuId,
    /// The other one.
    pub second: CpuId,
    /// Jobs on `first` …
    pub part: u64,
    /// … of this many; not zero.
    pub whole: u64,
}

impl Turn {
    /// All jobs on one processor.
    pub const fn fixed(cpu: CpuId) -> Self {
        Turn {
            first: cpu,
            second: cpu,
            part: 1,
            whole: 1,
        }
    }
    /// Do jobs take turns?
    pub fn is_migratory(&self) -> bool {
        self.first != self.second
    }
}

/// Tasks on single processors, but for some whose jobs are cut into slices (002 §4.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slices {
    /// The processors.
    pub cpus: Vec<CpuId>,
    /// For every task of the set, in order, its slices in the order in which a job goes through
    /// them; one for a fixed task.
    pub tasks: Vec<Vec<Slice>>,
}

/// A part of every job of a task, on one processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slice {
    /// Where.
    pub cpu: CpuId,
    /// How long a job executes there; the last slice takes what is left.
    #[serde(rename = "budget_ns", with = "crate::time::ns")]
    pub budget: Duration,
    /// How long after its release the slice is due; the next one is released then.
    #[serde(rename = "window_ns", with = "crate::time::ns")]
    pub window: Duration,
}

/// Tasks in servers; processors serve them by turns in every slot (002 §4.3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slots {
    /// The length of a slot, S.
    #[serde(rename = "slot_ns", with = "crate::time::ns")]
    pub slot: Duration,
    /// For every task of the set, in order, the index of its server.
    pub server_of: Vec<u32>,
    /// What each processor does in a slot.
    pub timetables: Vec<Timetable>,
}

/// What one processor does in every slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timetable {
    /// The processor.
    pub cpu: CpuId,
    /// In ascending order, apart from each other; in between it serves nobody.
    pub turns: Vec<Serve>,
}

/// A server is served from `start` to `end` of every slot. No server is served by two processors at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Serve {
    /// After the beginning of the slot.
    #[serde(rename = "start_ns", with = "crate::time::ns")]
    pub start: Duration,
    /// After the beginning of the slot, at most its length.
    #[serde(rename = "end_ns", with = "crate::time::ns")]
    pub end: Duration,
    /// The index of the server.
    pub server: u32,
}

/// All tasks on all processors, quantum by quantum.
///
/// The policy is built from the reserved times, while jobs execute for as long as they do: what a
/// job leaves of its reservation holds the overheads of its quanta.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quanta {
    /// The processors.
    pub cpus: CpuSet,
    /// The length of a quantum; not zero.
    #[serde(rename = "quantum_ns", with = "crate::time::ns")]
    pub quantum: Duration,
    /// For every task of the set, in order, the time that is reserved for each job, in whole
    /// quanta.
    #[serde(rename = "reserved_ns", with = "crate::time::ns")]
    pub reserved: Vec<Duration>,
}

impl Quanta {
    /// The timings of a set with the reserved times as WCETs.
    ///
    /// # Errors
    /// There is not one reservation for each task, or one that is shorter than the WCET, longer
    /// than the period or not a whole number of quanta.
    pub fn timings(&self, set: &TaskSet) -> Result<Vec<Timing>> {
        if self.reserved.len() != set.len() {
            return Err(Error::new(format!(
                "the assignment reserves quanta for {} tasks, and the set has {}",
                self.reserved.len(),
                set.len()
            ))
            .remedy("make the assignment for this set"));
        }
        if self.quantum.is_zero() {
            return Err(Error::new("the quanta of the assignment have no length")
                .remedy("give `quantum_ns` a positive number"));
        }
        let reserve = |(id, reserved): (TaskId, &Duration)| {
            let timing = set.timings()[id.index()];
            let refuse = |why: String| {
                let name = set.name(id);
                Err(Error::new(format!(
                    "the assignment reserves {reserved} for {name}, {why}"
                ))
                .remedy("make the assignment for this set"))
            };
            if *reserved < timing.wcet {
                return refuse(format!("and its WCET is {}", timing.wcet));
            }
            if *reserved > timing.period {
                return refuse(format!("and its period is {}", timing.period));
            }
            if !reserved.nanos().is_multiple_of(self.quantum.nanos()) {
                return refuse(format!(
                    "which is no whole number of quanta of {}",
                    self.quantum
                ));
            }
            Ok(Timing {
                wcet: *reserved,
                ..timing
            })
        };
        set.ids().zip(&self.reserved).map(reserve).collect()
    }
}
