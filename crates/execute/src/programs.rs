//! Programs from outside in the place of threads: started or let in, held, moved, raised, ended.
//!
//! [`keeper`] looks after the programs of a run, [`launch`] starts one and [`joining`] lets one in
//! that somebody else has started; [`program`] is what dispatchers do to one, by way of its
//! [`family`] of threads; [`sentinel`] finds out that one sleeps; [`pages`] are shared with those
//! that were written for it. A [`run`] is what they belong to: that of the engine of this crate, or
//! one that is carried out [`elsewhere`], where others tell programs that are [`asking`] of their
//! jobs. By [`marks`], [`rights`] and [`leftovers`] nothing survives a run.

pub(crate) mod asking;
pub(crate) mod elsewhere;
pub(crate) mod ends;
pub(crate) mod family;
pub(crate) mod joining;
pub(crate) mod keeper;
pub(crate) mod launch;
pub(crate) mod leftovers;
pub(crate) mod marks;
pub(crate) mod pages;
pub(crate) mod program;
pub(crate) mod rights;
pub(crate) mod run;
pub(crate) mod sentinel;
pub(crate) mod watched;

pub(crate) use machine::procfs;
