//! What stands at the head of a trace, so that it explains itself: who ran what, where, under which
//! rules.

use model::{
    Assignment, CpuId, CpuSet, Duration, Enforcement, Error, Platform, Provenance, Result, TaskSet,
    taskfile,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the events come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// An engine in virtual time: every moment is exact.
    Simulated,
    /// A real machine: decisions take effect after a while, clocks have a grain.
    Real,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Origin::Simulated => "simulated",
            Origin::Real => "real",
        })
    }
}

/// When jobs are released.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Releases {
    /// Job j at phase + j · period exactly.
    #[default]
    Periodic,
    /// At least a period apart, the first not before the phase (002 §2.1.1).
    Sporadic,
    /// As given, without any promise.
    Given,
}

/// A policy with all that it was given, as it rules a part of the trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The policy as written on the command line: `c-edf:l3`.
    pub policy: String,
    /// Who runs where; none is needed where every task may run everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// The length of a quantum, where decisions are made at multiples of it only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Duration>,
}

/// What a simulation is charged for: how long each overhead lasts (002 §2.4).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charges {
    /// Servicing a release.
    pub release: Duration,
    /// Choosing the next job.
    pub scheduling: Duration,
    /// Switching to it.
    pub context_switch: Duration,
    /// From sending an inter-processor interrupt until it arrives.
    pub ipi_latency: Duration,
    /// Programming a timer for another processor.
    pub timer_transfer: Duration,
    /// Servicing the tick.
    pub tick: Duration,
    /// The time from tick to tick.
    pub tick_period: Duration,
    /// Cache delay by task, then by the platform's ways to resume, in their order; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpmd: Vec<Vec<Duration>>,
}

/// The head of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Simulated or real.
    pub origin: Origin,
    /// Who made it, with what, when.
    pub provenance: Provenance,
    /// The tasks; events name them by their place here.
    pub tasks: TaskSet,
    /// The processors and their caches.
    pub platform: Platform,
    /// The policies, in the order in which [`crate::EventKind::PolicySwitch`] names them; the first
    /// rules from the start.
    pub stages: Vec<Stage>,
    /// When jobs are released.
    pub releases: Releases,
    /// What happens to overruns; `None`: no job executes for more than its WCET.
    pub enforcement: Option<Enforcement>,
    /// What a simulation is charged for, where it is charged at all.
    pub charges: Option<Charges>,
    /// By task, the processor that releases its jobs although they run elsewhere (002 Fig. 2.7);
    /// empty: none.
    pub release_on: Vec<Option<CpuId>>,
}

/// As it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    origin: Origin,
    provenance: Provenance,
    /// A TOML task set.
    tasks: String,
    platform: Platform,
    stages: Vec<Stage>,
    releases: Releases,
    #[serde(with = "or_none")]
    enforcement: Option<Enforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    charges: Option<Charges>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    release_on: Vec<Option<CpuId>>,
}

/// The word for a way of enforcement, or `none`.
mod or_none {
    use super::Enforcement;
    use serde::{Deserialize, Deserializer, Serializer};

    const NONE: &str = "none";

    pub fn serialize<S: Serializer>(how: &Option<Enforcement>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(how.map_or(NONE, Enforcement::word))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Enforcement>, D::Error> {
        let word = String::deserialize(from)?;
        match word.as_str() {
            NONE => Ok(None),
            _ => word.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}

impl Header {
    /// A simulated run of periodic tasks that keep their WCETs, under one policy.
    pub fn simulated(
        tasks: TaskSet,
        platform: Platform,
        stage: Stage,
        provenance: Provenance,
    ) -> Self {
        Header {
            origin: Origin::Simulated,
            provenance,
            tasks,
            platform,
            stages: vec![stage],
            releases: Releases::default(),
            enforcement: None,
            charges: None,
            release_on: Vec::new(),
        }
    }

    /// The processors on which tasks may run.
    pub fn processors(&self) -> CpuSet {
        self.platform.usable()
    }

    /// The head as one JSON document.
    ///
    /// # Errors
    /// Something in it that JSON cannot hold.
    pub fn to_json(&self) -> Result<String> {
        let tasks = taskfile::to_toml(&self.tasks);
        // What is written can be read again.
        model::input::check_size(&tasks).map_err(|e| e.at("task set of the trace"))?;
        serde_json::to_string(&Written {
            origin: self.origin,
            provenance: self.provenance.clone(),
            tasks,
            platform: self.platform.clone(),
            stages: self.stages.clone(),
            releases: self.releases,
            enforcement: self.enforcement,
            charges: self.charges.clone(),
            release_on: self.release_on.clone(),
        })
        .map_err(|e| {
            Error::new(format!(
                "the head of the trace cannot be written as JSON: {e}"
            ))
        })
    }

    /// Reads what [`Header::to_json`] wrote.
    ///
    /// # Errors
    /// Not such a document; no policy; a task set that is none.
    pub fn from_json(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|e| {
            Error::new(format!("the head of the trace does not read: {e}"))
                .remedy("make the trace again with this version")
        })?;
        if written.stages.is_empty() {
            return Err(
                Error::new("the head of the trace names no policy").remedy("make the trace again")
            );
        }
        Ok(Header {
            origin: written.origin,
            provenance: written.provenance,
            tasks: taskfile::from_toml(&written.tasks)
                .map_err(|e| e.at("task set of the trace"))?,
            platform: written.platform,
            stages: written.stages,
            releases: written.releases,
            enforcement: written.enforcement,
            charges: written.charges,
            release_on: written.release_on,
        })
    }
}
