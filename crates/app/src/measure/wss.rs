//! The working set of one program on this machine, by the pages that it touches in windows of time.

use crate::{PROGRAM, provenance};
use ::measure::wss::{self, Ended, Plan};
use machine::touched::Pages;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Provenance, Result, time};
use serde::{Serialize, Serializer};

/// What is measured. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How long a window is, such as the period of its jobs. Default: 100 ms.
    pub every: Duration,
    /// For how long it is measured at most. Default: until it ends.
    pub most: Option<Duration>,
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
    #[serde(rename = "page_bytes", serialize_with = "bytes")]
    pub page: Bytes,
    /// The most memory of its own that the program touched in a window but the first, in which it is
    /// loaded; in the first one where it is the only one.
    #[serde(rename = "wss_bytes", serialize_with = "bytes")]
    pub wss: Bytes,
    /// The median of the same windows.
    #[serde(rename = "median_bytes", serialize_with = "bytes")]
    pub median: Bytes,
    /// The most that it touched of mapped files, likewise, at most: the program and libraries.
    #[serde(rename = "files_bytes", serialize_with = "bytes")]
    pub files: Bytes,
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

fn bytes<S: Serializer>(size: &Bytes, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_u64(size.get())
}

impl WorkingSet {
    /// # Errors
    /// The user stopped it: what was measured is kept.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            false => Ok(()),
            true => Err(Error::new(format!(
                "interrupted after {} windows; what was measured is kept",
                self.windows.len()
            ))
            .remedy("run the command again for more")),
        }
    }
}

/// Runs the program and finds its working set.
///
/// # Errors
/// There is no such program; windows of no time; the kernel does not tell what is touched; the
/// program ended before a window was over.
pub fn measure(options: &Options, watch: &dyn Watch) -> Result<WorkingSet> {
    let plan = Plan {
        command: options.program.clone(),
        every: options.every,
        most: options.most,
    };
    let seen = wss::measure(&plan, watch)?;
    let later = seen.windows.get(1..).filter(|later| !later.is_empty());
    let windows = later.unwrap_or(&seen.windows);
    let sorted = |of: fn(&Pages) -> Bytes| {
        let mut sizes: Vec<Bytes> = windows.iter().map(of).collect();
        sizes.sort_unstable();
        sizes
    };
    let (own, files) = (sorted(|pages| pages.own), sorted(|pages| pages.files));
    let none = Bytes::new(0);
    let (status, signal) = match seen.ended {
        Some(Ended::Status(status)) => (Some(status), None),
        Some(Ended::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    Ok(WorkingSet {
        program: options.program.clone(),
        every: options.every,
        page: wss::page(),
        wss: own.last().copied().unwrap_or(none),
        median: own.get(own.len() / 2).copied().unwrap_or(none),
        files: files.last().copied().unwrap_or(none),
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
