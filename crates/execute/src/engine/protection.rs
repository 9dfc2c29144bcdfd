//! Who sees to it that nothing of a run survives, whatever is killed.

use crate::kernel;
use crate::made::Made;
use crate::programs::leftovers::{self, Noted};
use crate::watchdog::{BoardRef, Patience, Watchdog};
use machine::Tree;
use machine::group::Group;
use model::watch::Watch;
use model::{Duration, Error, Result};

/// A program may live for so long after the horizon: until its run has ended it.
pub(crate) const AFTER: Duration = Duration::from_secs(10);

/// The watchdog, and records of what is made and started; in the order in which they go.
pub(crate) struct Protection {
    /// From here on what is made is taken away again: before the watchdog ends.
    pub made: Made,
    /// Why what is made is not on record, if so.
    missing: Option<Error>,
    /// What programs are known by.
    _noted: Option<Result<Noted>>,
    pub watchdog: Watchdog,
}

impl Protection {
    /// Ends what is left of runs that were killed, and begins. Call this before any thread is
    /// started.
    ///
    /// # Errors
    /// No right to a watchdog's priority; what is made cannot be noted.
    pub fn begin(patience: Patience, has_programs: bool, watch: &dyn Watch) -> Result<Self> {
        let killed = leftovers::end();
        if killed > 0 {
            watch.note(&format!(
                "{killed} processes were left of a run that was killed, and are ended now"
            ));
        }
        let watchdog = Watchdog::start_with(patience, has_programs.then(group).flatten())?;
        let board = watchdog.board();
        let noted = has_programs.then(|| Noted::new(board.number(), board.group()));
        if let Some(Err(e)) = &noted {
            watch.note(&format!(
                "{e}: what would be left of this run, if it were killed, would stay"
            ));
        }
        let (made, missing) = Made::new(watchdog.board())?;
        let programs = noted.as_ref().and_then(|n| n.as_ref().ok()?.path());
        for path in programs.into_iter().chain(board.group().map(Group::path)) {
            made.goes_with_the_watchdog(path)
                .map_err(|e| Error::new(format!("it cannot be noted: {e}")).at(path.display()))?;
        }
        Ok(Protection {
            made,
            missing,
            _noted: noted,
            watchdog,
        })
    }

    /// All is made: says so where none of it is on record.
    pub fn tell_missing(&self, watch: &dyn Watch) {
        if let Some(e) = self.missing.as_ref().filter(|_| !self.made.is_empty()) {
            watch.note(&format!(
                "{e}: what this run makes would stay if it were killed together with its watchdog"
            ));
        }
    }

    /// What the run and its watchdog share.
    pub fn board(&self) -> BoardRef {
        self.watchdog.board()
    }
}

/// A control group for the programs of a run, where there can be one.
fn group() -> Option<Group> {
    let name = format!("warmset-{}-{}", std::process::id(), kernel::monotonic());
    Group::new(&Tree::new("/".as_ref()), &name)
}
