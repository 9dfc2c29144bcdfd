//! What stands in a certificate: the fields of the file, as JSON has them. Times are nanoseconds.
//!
//! A field that is not listed here makes the file unreadable: nothing in a certificate goes unread.

use num_bigint::BigInt;
use num_rational::BigRational;
use serde::{Deserialize, Deserializer, de::Error};

/// All that is computed is a fraction of whole numbers of any size.
pub type Q = BigRational;

/// A number: a JSON number, or text such as `"12345678901234567890123"` or `"7/3"`.
#[derive(Clone, Debug, Default)]
pub struct Number(pub Q);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Whole(u64),
            Text(String),
        }
        let text = match Either::deserialize(from)? {
            Either::Whole(n) => return Ok(Number(Q::from(BigInt::from(n)))),
            Either::Text(text) => text,
        };
        let digits = |t: &str| {
            let is_number =
                !t.is_empty() && t.len() < 10_000 && t.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| t.parse::<BigInt>().ok()).flatten()
        };
        let (above, below) = text.split_once('/').unwrap_or((&text, "1"));
        match (digits(above), digits(below)) {
            (Some(above), Some(below)) if below != BigInt::ZERO => Ok(Number(Q::new(above, below))),
            _ => {
                Err(D::Error::custom("a number is not written as digits or as a fraction of them"))
            }
        }
    }
}

/// The whole file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub schema_version: u32,
    pub document: String,
    pub guarantee: Guarantee,
    pub rule: Rule,
    /// The processors that may be used, by number.
    pub processors: Vec<u32>,
    /// By two processors, in the order of `processors`: the way in which a job resumes that was on
    /// the first and comes to the second. Empty by the rule of one delay.
    #[serde(default)]
    pub ways: Vec<Vec<String>>,
    pub tasks: Vec<Entry>,
    pub claims: Vec<Claim>,
    /// The policies that were judged and have no certificate.
    #[serde(default)]
    pub without: Vec<Without>,
}

/// What is promised: no deadline is missed, or tardiness is bounded.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    Hard,
    Soft,
}

/// How overheads lengthen WCETs (`docs/overheads.md`).
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    OneDelay,
    ByPiece,
    AllOverheads,
    Paper,
}

/// A task as it was given.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub task: String,
    pub wcet_ns: Number,
    pub period_ns: Number,
    pub deadline_ns: Number,
    #[serde(default)]
    pub phase_ns: Number,
    #[serde(default)]
    pub jitter_ns: Number,
    #[serde(default)]
    pub blocking_ns: Number,
    /// The larger, the more urgent; for policies that go by the priorities of the set.
    pub priority: Option<u32>,
    /// Where it may run; everywhere if this is missing.
    pub processors: Option<Vec<u32>>,
}

/// What is claimed of one policy.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub policy: String,
    pub says: Says,
    #[serde(default)]
    pub costs: Costs,
    /// Yes: all tasks by place, with proofs. Not shown: places with tests that refuse them.
    #[serde(default)]
    pub places: Vec<Place>,
    /// Not shown: the task that no place takes; it is among the tasks of each place.
    pub stuck: Option<usize>,
    /// Refuted: why no schedule of the policy keeps the guarantee.
    pub refutation: Option<Refusal>,
}

/// What a claim says of the guarantee.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// It is kept.
    Yes,
    /// It cannot be kept, whatever the assignment.
    Refuted,
    /// The tests that are named refuse the places that are named; the set may hold all the same.
    NotShown,
}

/// The overheads that a claim charges.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// By the rule of one delay: the delay of any job.
    pub delay_ns: Number,
    /// By the other rules: the ways to resume, and by task the cache delay of each.
    pub ways: Vec<String>,
    pub delays_ns: Vec<Vec<Number>>,
    pub release_ns: Number,
    pub scheduling_ns: Number,
    pub context_switch_ns: Number,
    pub ipi_latency_ns: Number,
    pub tick_ns: Number,
    pub tick_period_ns: Number,
}

/// A processor or cluster with its tasks.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub processors: Vec<u32>,
    /// Places in the set, from 0, ascending.
    pub tasks: Vec<usize>,
    /// Their WCETs with overheads.
    pub inflated_ns: Vec<Number>,
    pub proof: Option<Proof>,
    #[serde(default)]
    pub refusals: Vec<Refusal>,
}

/// Why a place holds its tasks. Lists by task follow the order of [`Place::tasks`].
#[derive(Deserialize, Debug)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE", deny_unknown_fields)]
pub enum Proof {
    /// EDF on one processor: the demand at points, from a bound of the first violation down.
    Demand {
        until: Number,
        points: Vec<[Number; 2]>,
    },
    /// Fixed priorities on one processor: by task and job of its busy window, a time by which the
    /// job is complete, counted from the start of the window.
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
    /// By task: both sides of its inequality.
    Bak {
        sides: Vec<[Number; 2]>,
    },
    Bcl {
        sides: Vec<[Number; 2]>,
    },
    /// By round and task: the slack, or nothing where the task does not pass yet.
    Bcli {
        rounds: Vec<Vec<Option<Number>>>,
    },
    /// By round and task: the bound of the response time, or nothing.
    Rta {
        rounds: Vec<Vec<Option<Number>>>,
    },
    /// By task: the bound of the response time.
    GfpRta {
        responses: Vec<Number>,
    },
}

/// Why a test does not accept a place; and, of the tasks as they were given, why none can hold.
#[derive(Deserialize, Debug)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE", deny_unknown_fields)]
pub enum Refusal {
    /// The tasks ask for more processors than there are.
    Utilization,
    /// A task needs more time than its period or, for a hard guarantee, its deadline.
    Task {
        task: usize,
    },
    /// EDF on one processor: by this time more is due than fits.
    Demand {
        until: Number,
    },
    /// Fixed priorities on one processor: this job of the busy window of a task is late.
    Late {
        task: usize,
        job: u32,
    },
    Gfb,
    GdmDensity,
    /// The inequality of this task fails.
    Bak {
        task: usize,
    },
    Bcl {
        task: usize,
    },
}

/// A policy without a certificate.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Without {
    pub policy: String,
    pub why: String,
}
