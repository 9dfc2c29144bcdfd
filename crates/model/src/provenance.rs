//! Where a number comes from: machine, kernel, settings, version, seed, command (DESIGN, principle
//! 5).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What has to be known to trust a result, or to make it again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What produced it: `warmset 0.1.0`, or a paper with its table.
    pub source: String,
    /// The command line that makes it again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// When, in RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time: String,
    /// The machine's model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Kernel release and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// The seed of every random choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whatever could spoil the numbers: disturbances, missing rights. Shown wherever the numbers
    /// are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Settings that matter, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}
