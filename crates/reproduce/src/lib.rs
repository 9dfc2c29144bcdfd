//! The index of what is reproduced: every table, figure, example and numbered observation of the
//! five papers, with its state, the commands that make it and the values that the paper prints.
//!
//! One file a paper in [`papers`]. This crate runs nothing: the command line runs the words of an
//! entry's [`Step`]s and hands their JSON documents to [`compare`], which puts the paper's values
//! beside ours. `docs/reproduced.md` is [`page`].

mod entry;
pub mod files;
mod index;
mod outcome;
mod page;
mod papers;
pub mod reading;

pub use entry::{Entry, Ours, PaperValue, Role, State, Step, Value};
pub use index::{PAPERS, Paper, all, find};
pub use outcome::{Bound, Row, Verdict, compare};
pub use page::page;
pub use reading::Answers;
