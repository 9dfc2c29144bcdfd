//! A program as best-effort work: there and held before the first release, let go with it, ended
//! with the run.
//!
//! A fork keeps the memory of its process locked and has every page of it written to anew. It is
//! over before the first release: by a thread that jobs go before, it would take as long as they
//! leave it no time, and jobs that come to a page meanwhile would wait for it.

use super::{Beside, await_release};
use crate::kernel::{self, Thread};
use crate::programs::ends::How;
use crate::programs::launch::{failed, give_up, spawn_held, to_standard_error};
use crate::programs::marks::{self, MARK, Mark};
use crate::programs::rights::{Before, Limit, Owner, Rights};
use crate::programs::run::Run;
use model::{CpuId, Duration, Error, Result};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError};

/// How often it is looked whether a program has ended.
const LOOK: std::time::Duration = std::time::Duration::from_millis(5);
/// How long it has to end when it is told to.
const GRACE: u64 = 1_000_000_000;

/// What a program works for, and under which terms.
pub(super) struct Employment<'a> {
    pub run: &'a dyn Run,
    pub beside: &'a dyn Beside,
    /// Its number among the run's programs: behind those of tasks.
    pub number: u32,
    /// What it and its descendants carry in their environments; each has its own, as what is left
    /// of one that has ended is killed.
    pub mark: &'a str,
    /// The processors that it is kept on.
    pub cpus: &'a [CpuId],
}

impl Employment<'_> {
    /// Starts a program and holds it before its first instruction. Its number. It is of the class
    /// of the calling thread, which has to stay and to wait for it ([`Employment::see_to`]).
    ///
    /// # Errors
    /// It cannot be started.
    pub fn hire(&self, words: &[String], rights: &Rights) -> Result<i32> {
        let (first, arguments) = words
            .split_first()
            .ok_or_else(|| Error::new("no program is named"))?;
        let failed = |doing: &str, e: &io::Error| failed(doing, words, e);
        let out = to_standard_error().map_err(|e| failed("redirect the output of", &e))?;
        let board = self.run.board();
        // It is never at real-time priority: its limits only say whose it is.
        let limit = Limit::new(Duration::ZERO, self.number, board.number());
        let before = Before::new(rights, limit, board.group())?;
        let mut command = Command::new(first);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out)
            .env(MARK, self.mark)
            .process_group(0);
        let cpus = self.cpus.to_vec();
        before.apply(&mut command, move || {
            Thread::current().confine(&cpus)?;
            sys::process::trace_me()
        });
        let mut hired = self.hired();
        // Another one may have taken its time, and the run have ended for that.
        if self.beside.is_over() {
            return Err(Error::new("the run is over before it begins"));
        }
        let process = spawn_held(&mut command, words)?;
        hired.push(process);
        Ok(process)
    }

    fn hired(&self) -> MutexGuard<'_, Vec<i32>> {
        (self.run.hired().lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a program that is held go on with the first release, waits until it ends or the run
    /// does, and ends it then. Its processor time within the run, and how it ended before that did.
    pub fn see_to(&self, process: i32) -> (Duration, Option<How>) {
        let came = match await_release(self.beside) {
            true => self.let_go(process),
            false => {
                give_up(process);
                (Duration::ZERO, None)
            }
        };
        self.hired().retain(|other| *other != process);
        came
    }

    fn let_go(&self, process: i32) -> (Duration, Option<How>) {
        let before = Duration::from_nanos(sys::clock::of_process(process));
        kernel::kill_group(process, libc::SIGCONT);
        let (time, how) = self.until_its_end(process);
        (time.saturating_sub(before), how)
    }

    /// The processor time of a program, and how it ended before the run did.
    fn until_its_end(&self, process: i32) -> (Duration, Option<How>) {
        while !self.beside.is_over() {
            if let Some((status, time)) = ended(process) {
                let how = match libc::WIFEXITED(status) {
                    true => How::Exited(libc::WEXITSTATUS(status)),
                    false => How::Signal(libc::WTERMSIG(status)),
                };
                self.kill_rest();
                return (time, Some(how));
            }
            std::thread::sleep(LOOK);
        }
        let until = kernel::monotonic() + GRACE;
        let mut signal = libc::SIGTERM;
        // What it used up to here counts, not what its end takes.
        let used = sys::clock::of_process(process);
        let mut told = 0;
        loop {
            // Once to end; to be killed as long as anybody is there.
            if signal != std::mem::replace(&mut told, signal) || signal == libc::SIGKILL {
                // A group of our own making, whose first process is not waited for yet.
                kernel::kill_group(process, signal);
            }
            if let Some((_, time)) = ended(process) {
                self.kill_rest();
                return (time.max(Duration::from_nanos(used)), None);
            }
            if kernel::monotonic() >= until {
                signal = libc::SIGKILL;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Kills what a program has left behind.
    fn kill_rest(&self) {
        let text = format!("{MARK}={}\0", self.mark);
        let mark = Mark {
            text: text.as_bytes(),
            owner: Owner {
                run: self.run.board().number(),
                number: Some(self.number),
            },
        };
        marks::signal_marked(mark, None, libc::SIGKILL, |_| ());
    }
}

/// Has a child ended? Its status and its processor time, if so; it is waited for then.
fn ended(process: i32) -> Option<(i32, Duration)> {
    sys::process::ended(process).map(|(status, nanos)| (status, Duration::from_nanos(nanos)))
}
