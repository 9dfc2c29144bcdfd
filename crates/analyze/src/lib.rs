//! Schedulability and tardiness tests: one file a test, each with its paper, theorem, equations and
//! assumptions.
//!
//! A test is a pure function of the timing of a set and the number of processors. It answers
//! exactly: floating point decides only what it can prove. A test outside its preconditions says
//! which one fails ([`NotApplicable`]); a set whose overheads have pushed a WCET above its deadline
//! is simply not schedulable. No test panics or overflows.
//!
//! [`registry::ALL`] lists the tests for the command line, the documentation and the test suites.

#![forbid(unsafe_code)]

pub mod assign;
pub mod carries;
pub mod clustered;
mod columns;
pub mod global;
pub mod info;
pub mod overheads;
pub mod partition;
pub mod pd2;
pub mod policies;
pub mod registry;
pub mod semi;
pub mod tardiness;
pub mod uniprocessor;
pub mod verdict;

pub use registry::TestInfo;
pub use verdict::{Decision, Exactness, Guarantee, NotApplicable};
