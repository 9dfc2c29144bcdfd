//! Runs an unmodified program with its memory in colors.

use super::alone::{Sorted, alone};
use heap::exec::{self, Plan, Ran};
use heap::inspect::Report;
use model::watch::Watch;
use model::{Bytes, Error, Result, document, files};
use partition::client::{Connection, usual_socket};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is run, and where its memory comes from.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which colors, and of what.
    pub plan: Plan,
    /// The memory server's socket; `None`: at the usual place, or no server at all: then memory is
    /// sorted for this run alone.
    pub socket: Option<PathBuf>,
    /// How much memory to sort where there is no server; `None`: 64 MiB, up to 256 MiB where the
    /// program's code and data are known to need it.
    pub memory: Option<Bytes>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Tell `watch` where much memory is sorted.
    pub is_told: bool,
}

/// A program that ended.
pub struct Ended {
    /// How it ended, and which of its pages were colored.
    pub ran: Ran,
    /// The memory that was sorted for it alone.
    pub sorted: Option<Sorted>,
}

/// What was colored, process by process. JSON: as `warmset color exec -o FILE`.
#[derive(Serialize)]
struct Reported<'a> {
    processes: &'a [Report],
}

impl Ended {
    /// Writes what was colored as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let reported = Reported {
            processes: &self.ran.reports,
        };
        files::write(path, document::pretty(&reported)?)
    }
}

/// Looks whether a program can be run in colors; returns it without its arguments.
///
/// # Errors
/// No program is named; it cannot be found, or no library can be loaded into it.
pub fn check(program: &[OsString]) -> Result<&Path> {
    let Some(program) = program.first() else {
        return Err(Error::new("no program is named").remedy("name it after the options"));
    };
    exec::check(Path::new(program))?;
    Ok(Path::new(program))
}

/// Runs a program until it ends.
///
/// # Errors
/// As [`check`]; colors that are not granted, cannot be told or not be had; the program cannot be
/// started.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Ended> {
    // Before memory is sorted for it.
    let program = check(&options.program)?;
    let arguments = &options.program[1..];
    let socket = options.socket.clone().unwrap_or_else(usual_socket);
    if options.socket.is_some() || Connection::open(&socket).is_ok() {
        let ran = exec::run(&socket, &options.plan, program, arguments)?;
        return Ok(Ended { ran, sorted: None });
    }
    let (ran, sorted) = alone(
        options.memory,
        &options.plan,
        program,
        arguments,
        options.is_told,
        watch,
    )?;
    Ok(Ended {
        ran,
        sorted: Some(sorted),
    })
}
