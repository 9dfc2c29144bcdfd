//! The working set of one program on this machine, by the pages that it touches in windows of time.

use crate::{PROGRAM, provenance};
use ::measure::wss::{self, Ended, Plan};
use machine::touched::Pages;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Provenance, Result, time};
use serde::Serialize;

/// What is measured. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How long a window is, such as the period of its jobs. Default: 100 ms.
    pub every: Duration,
    /// For how long it is measured at most. Default: until it ends.
    pub most: Option<Duration>,
    /// For how long the program loads: windows that begin earlier are left out. Default: no time,
    /// which leaves out the first one.
    pub skip: Duration,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// The defaults for a program with its arguments.
    pub fn new(program: Vec<String>) -> Self {
        Options {
            program,
            every: Duration::from_millis(100),
            most: None,
            skip: Duration::ZERO,
            command: String::new(),
        }
    }
}

/// What was found. JSON: as `warmset measure wss --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkingSet {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How long a window is.
    #[serde(rename = "every_ns", with = "time::ns")]
    pub every: Duration,
    /// Bytes of a page: what is touched counts in whole pages.
    #[serde(rename = "page_bytes", serialize_with = "model::size::whole")]
    pub page: Bytes,
    /// The most memory of its own that the program touched in a window that is not left out.
    #[serde(rename = "wss_bytes", serialize_with = "model::size::whole")]
    pub wss: Bytes,
    /// The most in the second half of these windows.
    #[serde(rename = "later_bytes", serialize_with = "model::size::whole")]
    pub later: Bytes,
    /// The median of the same windows.
    #[serde(rename = "median_bytes", serialize_with = "model::size::whole")]
    pub median: Bytes,
    /// The most that it touched of mapped files, likewise, at most: the program and libraries.
    #[serde(rename = "files_bytes", serialize_with = "model::size::whole")]
    pub files: Bytes,
    /// So many of the first windows are left out: the program is loaded in them.
    pub loading: usize,
    /// What was touched in each complete window.
    pub windows: Vec<Pages>,
    /// With which status the program ended; `None`: by a signal, or it was made to end.
    pub status: Option<i32>,
    /// By which signal.
    pub signal: Option<i32>,
    /// Did the user stop the measurement?
    pub interrupted: bool,
    /// Where it comes from.
    pub provenance: Provenance,
}

impl WorkingSet {
    /// Is the most of the first half of the windows far above that of the second one? Then the
    /// program may still have been loaded.
    pub fn may_hold_loading(&self) -> bool {
        self.wss.get() > self.later.get() + self.later.get() / 4
    }

    /// # Errors
    /// The user stopped it: what was measured is kept.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            false => Ok(()),
            true => Err(Error::new(format!(
                "interrupted after {} windows, {} of them left out; what was measured is kept",
                self.windows.len(),
                self.loading
            ))
            .remedy("run the command again for more")),
        }
    }
}

/// Runs the program and finds its working set.
///
/// # Errors
/// There is no such program; windows of no time; the kernel does not tell what is touched; the
/// program ended before a window was over, or before one was over that is not left out.
pub fn measure(options: &Options, watch: &dyn Watch) -> Result<WorkingSet> {
    let plan = Plan {
        command: options.program.clone(),
        every: options.every,
        most: options.most,
        skip: options.skip,
    };
    let seen = wss::measure(&plan, watch)?;
    let found = seen.found();
    let (status, signal) = match seen.ended {
        Some(Ended::Status(status)) => (Some(status), None),
        Some(Ended::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    Ok(WorkingSet {
        program: options.program.clone(),
        every: options.every,
        page: wss::page(),
        wss: found.most,
        later: found.later,
        median: found.median,
        files: found.files,
        loading: seen.loading,
        windows: seen.windows,
        status,
        signal,
        interrupted: seen.interrupted,
        provenance: Provenance {
            source: format!("{PROGRAM}, pages touched in windows"),
            ..provenance(&options.command)
        },
    })
}
