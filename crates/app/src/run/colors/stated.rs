//! What a run says of the colors that it gave.

use model::Bytes;
use partition::Colors;
use partition::plan::{Scheme, Share};
use serde::Serialize;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    /// Which task got which colors.
    pub scheme: Scheme,
    /// The cache that is partitioned.
    pub cache: String,
    /// By task.
    pub tasks: Vec<Stated>,
    /// The colors of what runs the tasks; empty: any.
    pub system: Colors,
    /// What has no colors of its own.
    pub not_colored: &'static str,
}

/// The colors of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Stated {
    /// The name of the task.
    pub task: String,
    /// Its colors.
    #[serde(flatten)]
    pub share: Share,
    /// The size of its working set.
    pub wss: Bytes,
    /// Of so many pages that were asked again by the end of the run…
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// … so many have another color than they had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<usize>,
}
