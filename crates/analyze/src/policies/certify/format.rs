//! The document: what stands in a certificate (`docs/certificates.md`).
//!
//! `warmset-verify` reads the same fields with types of its own.

use super::super::costs::Rule;
use crate::verdict::Guarantee;
use model::{Duration, TaskId, TaskSet};
use num_rational::BigRational;
use num_traits::ToPrimitive as _;
use serde::{Serialize, Serializer};

/// A number of a certificate: a JSON number where it is whole and below 2^64, else text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Number(BigRational);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self
            .0
            .is_integer()
            .then(|| self.0.to_integer().to_u64())
            .flatten()
        {
            Some(whole) => to.serialize_u64(whole),
            None => to.collect_str(&self.0),
        }
    }
}

impl From<i128> for Number {
    fn from(n: i128) -> Self {
        Number(BigRational::from_integer(n.into()))
    }
}
impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Number::from(i128::from(n))
    }
}
impl From<Duration> for Number {
    fn from(d: Duration) -> Self {
        Number::from(d.nanos())
    }
}
impl From<BigRational> for Number {
    fn from(q: BigRational) -> Self {
        Number(q)
    }
}

/// A certificate: one set, and a claim about each policy.
#[derive(Clone, Debug, Serialize)]
pub struct Certificate {
    /// 1.
    pub schema_version: u32,
    /// `warmset certificate`.
    pub document: &'static str,
    /// What is promised.
    pub guarantee: Guarantee,
    /// How overheads lengthen WCETs.
    pub rule: Rule,
    /// The processors that may be used, by number.
    pub processors: Vec<u32>,
    /// By two processors the way in which a job resumes; empty by the rule of one delay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Vec<String>>,
    /// The set as it was given.
    pub tasks: Vec<Entry>,
    /// One a policy.
    pub claims: Vec<Claim>,
    /// The policies that have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Without>,
}

/// A task as it was given.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    task: String,
    wcet_ns: Number,
    period_ns: Number,
    deadline_ns: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_ns: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_ns: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocking_ns: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Vec<u32>>,
}

impl Entry {
    /// Every task of a set.
    pub(super) fn all(set: &TaskSet) -> Vec<Self> {
        set.ids().map(|id| Entry::of(set, id)).collect()
    }

    fn of(set: &TaskSet, id: TaskId) -> Self {
        let timing = &set.timings()[id.index()];
        let details = set.details(id);
        let if_any = |d: Duration| (!d.is_zero()).then(|| Number::from(d));
        let extras = set.extras().get(id.index()).copied().unwrap_or_default();
        Entry {
            task: set.name(id),
            wcet_ns: timing.wcet.into(),
            period_ns: timing.period.into(),
            deadline_ns: timing.deadline.into(),
            phase_ns: details.and_then(|d| if_any(d.phase)),
            jitter_ns: if_any(extras.jitter),
            blocking_ns: if_any(extras.blocking),
            priority: details.and_then(|d| d.priority),
            processors: set
                .cpus(id)
                .map(|cpus| cpus.iter().map(|cpu| cpu.0).collect()),
        }
    }
}

/// What a claim says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// The guarantee is kept.
    Yes,
    /// It cannot be kept.
    Refuted,
    /// Tests refuse; the set may hold all the same.
    NotShown,
}

/// What is claimed of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// Its name.
    pub policy: String,
    /// Yes or no.
    pub says: Says,
    /// What it is about, if not the set and the costs as they were given.
    #[serde(rename = "with", skip_serializing_if = "With::is_given")]
    pub with: With,
    /// What is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// The processors and clusters that it rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// The task that no place takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<usize>,
    /// Why no schedule of the policy keeps the guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refutation: Option<Refusal>,
}

/// A point at which the set holds: a margin of the verdict.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct With {
    /// WCETs in thousandths of those given, rounded up to nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thousandths: Option<u64>,
    /// The cache delay of every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpmd_ns: Option<Number>,
}

impl With {
    /// Is the claim about the set and the costs as they were given?
    pub fn is_given(&self) -> bool {
        *self == With::default()
    }
}

/// What a claim charges.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // there is one a claim
pub enum Costs {
    /// One delay of any job.
    One {
        /// It.
        delay_ns: Number,
    },
    /// Cache delays by task and way to resume, and the other six overheads.
    All {
        /// The ways to resume.
        ways: Vec<String>,
        /// By task and way.
        delays_ns: Vec<Vec<Number>>,
        /// The interrupt of a release.
        release_ns: Number,
        /// A scheduling decision.
        scheduling_ns: Number,
        /// A context switch.
        context_switch_ns: Number,
        /// An interrupt between processors.
        ipi_latency_ns: Number,
        /// A timer that is transferred to another processor.
        timer_transfer_ns: Number,
        /// A tick.
        tick_ns: Number,
        /// The time between two ticks.
        tick_period_ns: Number,
    },
}

/// A processor or cluster with its tasks.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// By number.
    pub processors: Vec<u32>,
    /// Places in the set, from 0, ascending.
    pub tasks: Vec<usize>,
    /// Their WCETs with overheads, of PD2 in whole quanta.
    pub inflated_ns: Vec<Number>,
    /// EDF-WM: the windows of the slices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows_ns: Vec<Number>,
    /// EDF-WM: what of a WCET each slice executes; by the rule of one delay with a part of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets_ns: Vec<Number>,
    /// EDF-WM: which slice of its job each is, from 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<usize>,
    /// EDF-fm: which part of the jobs of each runs there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Number>,
    /// Why it holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Why tests refuse them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// Why a place holds its tasks. Lists by task follow the order of [`Place::tasks`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE")]
#[allow(missing_docs)] // docs/certificates.md has each field
pub enum Proof {
    Demand {
        until: Number,
        points: Vec<[Number; 2]>,
    },
    Responses {
        jobs: Vec<Vec<Number>>,
    },
    Utilization {
        total: Number,
    },
    Gfb {
        total: Number,
        largest: Number,
    },
    GdmDensity {
        total: Number,
        largest: Number,
    },
    Bak {
        sides: Vec<[Number; 2]>,
    },
    Bcli {
        rounds: Vec<Vec<Option<Number>>>,
    },
    Rta {
        rounds: Vec<Vec<Option<Number>>>,
    },
    GfpRta {
        responses: Vec<Number>,
    },
    Load {
        until: Number,
        points: Vec<[Number; 2]>,
    },
    Ffdbf {
        speed: Number,
        until: Number,
        points: Vec<[Number; 2]>,
    },
    Bar {
        until: Number,
        windows: Vec<Vec<[Number; 2]>>,
    },
    Pd2 {
        quanta: Vec<Number>,
        total: Number,
    },
    NpsF {
        slot_ns: Number,
        servers: Vec<u32>,
        turns: Vec<Turn>,
    },
}

/// A processor serves a server between these times of every slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Turn {
    /// By number.
    pub cpu: u32,
    /// By number.
    pub server: u32,
    /// After the beginning of the slot.
    pub from_ns: Number,
    /// The same.
    pub until_ns: Number,
}

/// Why a test refuses a place, or why no schedule can hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE")]
#[allow(missing_docs)] // docs/certificates.md has each field
pub enum Refusal {
    Utilization,
    Task {
        index: usize,
    },
    Demand {
        until: Number,
    },
    Gfb,
    GdmDensity,
    Bak {
        index: usize,
    },
    Load {
        until: Number,
    },
    Miss {
        index: usize,
        releases_ns: Vec<Vec<Number>>,
        schedule: Vec<Piece>,
    },
}

/// A part of a schedule in which the same jobs run, and none is released or complete.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Piece {
    /// Its end; it begins where the one before ends.
    pub until_ns: Number,
    /// The tasks that run, by their places in the set.
    pub runs: Vec<usize>,
}

/// A policy without a certificate.
#[derive(Clone, Debug, Serialize)]
pub struct Without {
    /// Its name.
    pub policy: String,
    /// The margin of which it has none.
    #[serde(skip_serializing_if = "With::is_given")]
    pub with: With,
    /// Why there is none, in a sentence.
    pub why: String,
}
