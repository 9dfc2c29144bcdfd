//! What stands in a certificate: the fields of the file, as `docs/certificates.md` explains them.
//!
//! A field that is not listed here makes the file unreadable: nothing in a certificate goes unread.

use num_bigint::BigInt;
use num_rational::BigRational;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

/// All that is computed is a fraction of whole numbers of any size.
pub type Q = BigRational;

/// A number: a JSON number, or text such as `"12345678901234567890123"` or `"7/3"`.
#[derive(Default)]
pub struct Number(pub Q);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(from)? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text,
            _ => String::new(),
        };
        let is_number = |t: &str| t.len() < 10_000 && t.bytes().all(|b| b.is_ascii_digit());
        let digits = |t: &str| is_number(t).then(|| t.parse::<BigInt>().ok()).flatten();
        let (above, below) = text.split_once('/').unwrap_or((&text, "1"));
        match (digits(above), digits(below)) {
            (Some(above), Some(below)) if below != BigInt::ZERO => Ok(Number(Q::new(above, below))),
            _ => Err(D::Error::custom("a number is not written in digits or as a fraction")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub schema_version: u32,
    pub document: String,
    pub guarantee: Guarantee,
    pub rule: Rule,
    pub processors: Vec<u32>,
    #[serde(default)]
    pub ways: Vec<Vec<String>>,
    pub tasks: Vec<Entry>,
    pub claims: Vec<Claim>,
    #[serde(default)]
    pub without: Vec<Without>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    Hard,
    Soft,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    OneDelay,
    ByPiece,
    AllOverheads,
    Paper,
}

#[derive(Deserialize)]
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
    pub priority: Option<u32>,
    pub processors: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub policy: String,
    pub says: Says,
    #[serde(default)]
    pub with: With,
    #[serde(default)]
    pub costs: Costs,
    #[serde(default)]
    pub places: Vec<Place>,
    /// Not shown: the task that no place takes; it is among the tasks of each place.
    pub stuck: Option<usize>,
    pub refutation: Option<Refusal>,
}

/// What a claim is about instead of the set and the delays as they were given: longer or shorter
/// WCETs, rounded up, and one cache delay of every job.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct With {
    pub thousandths: Option<Number>,
    pub cpmd_ns: Option<Number>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    Yes,
    Refuted,
    NotShown,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    pub delay_ns: Number,
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
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Place {
    pub processors: Vec<u32>,
    /// Places in the set, from 0, ascending.
    pub tasks: Vec<usize>,
    /// Their WCETs with overheads; of EDF-WM the budgets of their slices there.
    pub inflated_ns: Vec<Number>,
    /// EDF-WM: the windows of the slices.
    pub windows_ns: Vec<Number>,
    /// EDF-fm: which part of the jobs of each runs there.
    pub parts: Vec<Number>,
    pub proof: Option<Proof>,
    pub refusals: Vec<Refusal>,
}

/// Why a place holds its tasks. Lists by task follow the order of [`Place::tasks`].
#[derive(Deserialize)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE", deny_unknown_fields)]
pub enum Proof {
    Demand { until: Number, points: Vec<[Number; 2]> },
    Responses { jobs: Vec<Vec<Number>> },
    Utilization { total: Number },
    Gfb { total: Number, largest: Number },
    GdmDensity { total: Number, largest: Number },
    Bak { sides: Vec<[Number; 2]> },
    Bcl { sides: Vec<[Number; 2]> },
    Bcli { rounds: Vec<Vec<Option<Number>>> },
    Rta { rounds: Vec<Vec<Option<Number>>> },
    GfpRta { responses: Vec<Number> },
}

/// Why a test does not accept a place; and, of the tasks as they were given, why none can hold.
///
/// All variants have braces: without, serde passes over fields that they do not have.
#[derive(Deserialize)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE", deny_unknown_fields)]
pub enum Refusal {
    Utilization {},
    Task { task: usize },
    Demand { until: Number },
    Gfb {},
    GdmDensity {},
    Bak { task: usize },
    Bcl { task: usize },
    Miss { task: usize, releases_ns: Vec<Vec<Number>>, schedule: Vec<Piece> },
}

/// A part of a schedule: it begins where the one before ends, and these tasks run until its end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    pub until_ns: Number,
    pub runs: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    pub policy: String,
    #[serde(default)]
    pub with: With,
    pub why: String,
}
