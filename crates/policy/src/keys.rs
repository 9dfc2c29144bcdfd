//! The order of jobs as data: for engines that carry a plan out where no state machine of this crate
//! runs, such as within the kernel.
//!
//! Of two jobs that of the lesser class goes first; of equal ones, where the order is by deadline,
//! that of the earlier absolute deadline; then that of the lesser tie. No two tasks of a set have
//! one tie. The ready jobs of highest priority have the processors of a domain as
//! [`Cluster`](crate::cluster::Cluster) says.

/// The order of the jobs of one set, by task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// Does the deadline come before the tie?
    pub by_deadline: bool,
    /// The class of the jobs of each task; empty: all are of one.
    pub class: Vec<u32>,
    /// The tie of each task.
    pub tie: Vec<u32>,
}
