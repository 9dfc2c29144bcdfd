//! Long work, called from Python: the interpreter's lock is free meanwhile, Ctrl-C ends it, and
//! progress is told.

use crate::error::{class, raise};
use model::watch::Watch;
use model::{Error, Result};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::ffi::CString;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How often the calling thread looks for signals and tells progress.
const LOOK: Duration = Duration::from_millis(50);

/// As much as the main thread of a program has.
const STACK: usize = 8 << 20;

/// What long work reports to: the calling thread hands it on to Python.
#[derive(Default)]
pub(crate) struct Asked {
    stopped: AtomicBool,
    done: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    stage: Option<(String, u64)>,
    notes: VecDeque<String>,
}

impl Asked {
    fn told<T>(&self, with: impl FnOnce(&mut Told) -> T) -> T {
        with(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `progress(what, done, total)`.
    fn progress(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let stage = self.told(|told| told.stage.clone());
        if let (Some(progress), Some((what, total))) = (progress, stage) {
            let done = self.done.load(Ordering::Relaxed).min(total);
            progress.call1(py, (what, done, total))?;
        }
        Ok(())
    }

    /// Remarks become warnings, which name the line that called the function of the package.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        while let Some(note) = self.told(|told| told.notes.pop_front()) {
            let text = CString::new(note.replace('\0', " "))?;
            PyErr::warn(py, class(py, "Remark")?.as_any(), &text, 2)?;
        }
        Ok(())
    }
}

impl Watch for Asked {
    fn begin(&self, what: &str, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.told(|told| told.stage = Some((what.to_owned(), total)));
    }
    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
    fn note(&self, text: &str) {
        self.told(|told| told.notes.push_back(text.to_owned()));
    }
    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Does `job` on another thread. This one, which alone may run Python's signal handlers, waits:
/// Ctrl-C, or an error of `progress`, asks the job to stop, and is raised when it has.
///
/// # Errors
/// Those of the job, as `warmset.Error`; what a signal handler or `progress` raised.
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    job: impl FnOnce(&Asked) -> Result<T> + Send,
) -> PyResult<T> {
    same_process().map_err(raise)?;
    let asked = Asked::default();
    let mut raised: Option<PyErr> = None;
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel(1);
            let watch = &asked;
            let work = move || {
                // The receiver waits for it.
                let _ = send.send(job(watch));
            };
            let builder = std::thread::Builder::new().stack_size(STACK);
            let thread = match builder.spawn_scoped(scope, work) {
                Ok(thread) => thread,
                Err(e) => return Err(Error::io("", "start a thread for the work", &e)),
            };
            loop {
                match receive.recv_timeout(LOOK) {
                    Ok(done) => return done,
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        let look = Python::attach(|py| {
                            py.check_signals()?;
                            asked.progress(py, progress.as_ref())
                        });
                        raised = look.err();
                        asked.stopped.store(raised.is_some(), Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    // It sent nothing: a panic, which Python shows as one.
                    Err(RecvTimeoutError::Disconnected) => match thread.join() {
                        Err(panic) => resume_unwind(panic),
                        Ok(()) => return Err(Error::new("the work ended without an answer")),
                    },
                }
            }
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    let done = done.map_err(raise)?;
    asked.progress(py, progress.as_ref())?;
    asked.warn(py)?;
    Ok(done)
}

/// Threads do not live on in a process that was forked: work that waits for them would hang.
fn same_process() -> Result<()> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let now = std::process::id();
    match *FIRST.get_or_init(|| now) == now {
        true => Ok(()),
        false => Err(Error::new(
            "this process was forked from one that has worked already: its threads are not here",
        )
        .remedy("start processes by `multiprocessing.get_context(\"spawn\")`")),
    }
}
