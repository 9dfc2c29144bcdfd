//! What takes the events of a run while it goes on.

use super::Planned;
use ::trace::check::Options as Checks;
use ::trace::{Checker, Event, FileSink, Sink, Statistics};
use execute::witness::Told;
use model::Result;
use std::fs::File;

/// Everything that takes the events of a run.
pub(super) struct Recorders<S> {
    pub file: Option<FileSink<File>>,
    /// The caller's.
    pub observer: S,
    pub checker: Checker,
    pub statistics: Statistics,
    /// For the witness.
    pub told: Option<Told>,
}

impl<S: Sink> Sink for Recorders<S> {
    fn record(&mut self, event: Event) {
        if let Some(file) = &mut self.file {
            file.record(event);
        }
        self.observer.record(event);
        self.checker.record(event);
        self.statistics.record(event);
        if let Some(told) = &mut self.told {
            told.record(event);
        }
    }
}

impl<S> Recorders<S> {
    /// Writes what the file has been told.
    pub fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.flush();
        }
    }
}

impl Planned<'_> {
    /// # Errors
    /// The file of the trace cannot be created; a rule cannot be checked.
    pub(super) fn recorders<S: Sink>(&self, observer: S) -> Result<Recorders<S>> {
        let checks = Checks {
            tolerance: self.options.tolerance,
            ..Checks::for_trace(&self.header)
        };
        let file = match &self.options.trace {
            Some(path) => Some(FileSink::create(path, &self.header)?),
            None => None,
        };
        Ok(Recorders {
            file,
            observer,
            checker: Checker::new(self.header.clone(), checks)?,
            statistics: Statistics::new(&self.header, false),
            told: self.options.witness.then(|| Told::new(self.set.len())),
        })
    }
}
