//! Cache delays by the schedule-sensitive method (000 §3.1): on line, while the engine schedules a
//! task set under the policy of interest and does not change the schedule for it.
//!
//! [`rule`] says which jobs went as in Fig. 1 and why the others did not, [`job`] is such a job,
//! [`file`](mod@file) its samples on disk. [`results`] compares equal counts over the numbers of tasks,
//! [`trend`] tests whether delays depend on that number, [`compare`] holds policies and methods
//! against each other, [`example`] picks the sample that is drawn, and [`observations`] are those of
//! 000 §4.2.
//!
//! Assumes an engine that tells each job of its preemptions (000 §3.3).

pub mod compare;
pub mod example;
pub mod file;
pub mod job;
pub mod observations;
pub mod results;
pub mod rule;
pub mod trend;
