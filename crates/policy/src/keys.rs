//! The order of jobs as data: for engines that carry a plan out where no state machine of this crate
//! runs, such as within the kernel.
//!
//! Of two jobs that of the lesser class goes first; of equal ones that of the earlier deadline or
//! release, where the order is by one of them ([`KeyedBy`]); then that of the lesser tie. No two
//! tasks of a set have one tie. The ready jobs of highest priority have the processors of a domain
//! as [`Cluster`](crate::cluster::Cluster) says.

use crate::{DomainId, Place, ServerId};
use model::Duration;

/// A slice of every job of a task (002 §4.2): it becomes ready in its domain at `released` after the
/// release of the job, if the one before it is used up by then, and is ordered by `due`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyedSlice {
    /// Where it runs.
    pub domain: DomainId,
    /// How long it may execute; of no meaning in the last one, which takes what is left.
    pub budget: Duration,
    /// After the release of the job.
    pub released: Duration,
    /// After the release of the job.
    pub due: Duration,
    /// In the place of the task's tie.
    pub tie: u32,
}

/// From this time on, after the beginning of the timetable, a place serves this server, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyedChange {
    /// When.
    pub offset: Duration,
    /// Where.
    pub place: Place,
    /// Whom.
    pub server: Option<ServerId>,
}

/// The servers of one domain (002 §4.3): a place runs the first ready job of the server that it
/// serves, and none where it serves none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedServers {
    /// How long the timetable is, which begins again and again from time zero on.
    pub period: Duration,
    /// By task, its server.
    pub server_of: Vec<ServerId>,
    /// The changes of all places, in order; each place has one at the beginning.
    pub changes: Vec<KeyedChange>,
}

/// What comes before the tie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyedBy {
    /// The absolute deadline: the earlier one goes first.
    Deadline,
    /// Nothing: the tie is the priority of the task.
    Priority,
    /// The release: the earlier one goes first.
    Release,
}

/// The order of the jobs of one set, by task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// What comes before the tie.
    pub by: KeyedBy,
    /// The class of the jobs of each task; empty: all are of one.
    pub class: Vec<u32>,
    /// The tie of each task; empty: its index.
    pub tie: Vec<u32>,
    /// The slices of each task whose jobs are split, none of others; empty: no job is split.
    pub slices: Vec<Vec<KeyedSlice>>,
    /// Who may run where and when, where that is not always and everywhere.
    pub servers: Option<KeyedServers>,
}

impl Keys {
    /// No order: of the tasks of a policy that decides at quanta, by itself.
    pub fn none() -> Self {
        Keys::by(KeyedBy::Deadline)
    }

    /// The order of jobs of one class, by this and the index of the task; none is split.
    pub fn by(by: KeyedBy) -> Self {
        Keys {
            by,
            class: Vec::new(),
            tie: Vec::new(),
            slices: Vec::new(),
            servers: None,
        }
    }
}
