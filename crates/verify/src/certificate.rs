//! What stands in a certificate: the fields of the file, as `docs/certificates.md` explains them.
//! A field that is not listed here makes the file unreadable: nothing in a certificate goes unread.

use num_rational::BigRational;
use serde::Deserialize;
use serde_json::Value;

/// All that is computed is a fraction of whole numbers of any size.
pub type Q = BigRational;

/// A number: a JSON number, or text such as `"12345678901234567890123"` or `"7/3"`.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
pub struct Number(pub Q);

impl TryFrom<Value> for Number {
    type Error = &'static str;
    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_short = text.len() < 10_000 && text.bytes().all(|b| b.is_ascii_digit() || b == b'/');
        let read = is_short.then(|| text.parse().ok()).flatten();
        read.map(Number).ok_or("a number is not written in digits or as a fraction")
    }
}

/// The objects of the file, field by field.
macro_rules! objects {
    ($($(#[$on:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty),+ $(,)? })+) => { $(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        $(#[$on])*
        pub struct $name { $($(#[$of])* pub $field: $type),+ }
    )+ }
}

/// Its words, such as `one-delay`.
macro_rules! words {
    ($($name:ident { $($word:ident),+ })+) => { $(
        #[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($word),+ }
    )+ }
}

words! {
    Guarantee { Hard, Soft }
    Rule { OneDelay, ByPiece, AllOverheads, Paper }
    Says { Yes, Refuted, NotShown }
}

objects! {
    Certificate {
        schema_version: u32, document: String, guarantee: Guarantee, rule: Rule,
        processors: Vec<u32>,
        #[serde(default)] ways: Vec<Vec<String>>,
        tasks: Vec<Entry>,
        claims: Vec<Claim>,
        #[serde(default)] without: Vec<Without>,
    }

    Entry {
        task: String, wcet_ns: Number, period_ns: Number, deadline_ns: Number,
        #[serde(default)] phase_ns: Number,
        #[serde(default)] jitter_ns: Number,
        #[serde(default)] blocking_ns: Number,
        priority: Option<u32>, processors: Option<Vec<u32>>,
    }

    Claim {
        policy: String, says: Says,
        #[serde(default)] with: With,
        #[serde(default)] costs: Costs,
        #[serde(default)] places: Vec<Place>,
        /// Not shown: the task that no place takes; it is among the tasks of each place.
        stuck: Option<usize>,
        refutation: Option<Refusal>,
    }

    /// What a claim is about instead of the set and the delays as they were given: longer or
    /// shorter WCETs, rounded up, and one cache delay of every job.
    #[derive(Default)]
    With { thousandths: Option<Number>, cpmd_ns: Option<Number> }

    #[derive(Default)] #[serde(default)]
    Costs {
        delay_ns: Number, ways: Vec<String>, delays_ns: Vec<Vec<Number>>,
        release_ns: Number, scheduling_ns: Number, context_switch_ns: Number,
        ipi_latency_ns: Number, timer_transfer_ns: Number,
        tick_ns: Number, tick_period_ns: Number,
    }

    /// A processor or cluster with its tasks.
    #[derive(Default)] #[serde(default)]
    Place {
        processors: Vec<u32>,
        /// Places in the set, from 0, ascending.
        tasks: Vec<usize>,
        /// Their WCETs with overheads, of PD2 in whole quanta.
        inflated_ns: Vec<Number>,
        /// EDF-WM: the windows of the slices; what of a WCET each executes, with one delay in it;
        /// and which slice of its job it is, from 0.
        windows_ns: Vec<Number>, budgets_ns: Vec<Number>, slices: Vec<usize>,
        /// EDF-fm: which part of the jobs of each runs there.
        parts: Vec<Number>,
        proof: Option<Proof>, refusals: Vec<Refusal>,
    }

    /// Between these times of every slot a processor serves a server of NPS-F.
    Turn { cpu: u32, server: usize, from_ns: Number, until_ns: Number }
    /// A part of a schedule: from the end of the one before these tasks run.
    Piece { until_ns: Number, runs: Vec<usize> }
    Without { policy: String, #[serde(default)] with: With, why: String }
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
    Bcli { rounds: Vec<Vec<Option<Number>>> },
    Rta { rounds: Vec<Vec<Option<Number>>> },
    GfpRta { responses: Vec<Number> },
    Bar { until: Number, windows: Vec<Vec<[Number; 2]>> },
    Load { until: Number, points: Vec<[Number; 2]> },
    Ffdbf { speed: Number, until: Number, points: Vec<[Number; 2]> },
    Pd2 { quanta: Vec<Number>, total: Number },
    NpsF { slot_ns: Number, servers: Vec<usize>, turns: Vec<Turn> },
}

/// Why a test does not accept a place; and, of the tasks as they were given, why none can hold.
/// All variants have braces: without, serde passes over fields that they do not have.
#[derive(Deserialize)]
#[serde(tag = "by", rename_all = "SCREAMING-KEBAB-CASE", deny_unknown_fields)]
pub enum Refusal {
    Utilization {},
    Task { index: usize },
    Demand { until: Number },
    Gfb {},
    GdmDensity {},
    Bak { index: usize },
    Load { until: Number },
    Miss { index: usize, releases_ns: Vec<Vec<Number>>, schedule: Vec<Piece> },
}
