//! The working set of a program by the pages that it touches in windows of time.
//!
//! Hardware counters would count the misses of a cache (003 §3.2); where a machine has none, pages
//! are what the kernel can tell of. A page counts in whole whatever part of it is used, so that this
//! is an upper bound of the lines, and close where data lie densely. Memory of its own (heap, stacks)
//! is told exactly, of mapped files (the program, libraries) an upper bound. What the kernel does for
//! the program, and other processes that it starts, do not count. The program gets no large pages
//! meanwhile, of which the touched part could not be told.

use machine::touched::{Pages, Touched};
use model::watch::Watch;
use model::{Bytes, Duration, Error, Result};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration as StdDuration, Instant};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long a window is: such as the period of its jobs.
    pub every: Duration,
    /// For how long it is measured at most; then it is told to end. `None`: until it ends.
    pub most: Option<Duration>,
}

/// What was seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// What was touched in each complete window; the program is loaded in the first one.
    pub windows: Vec<Pages>,
    /// How the program ended by itself; `None`: it was made to.
    pub ended: Option<Ended>,
    /// Did the user stop the measurement?
    pub interrupted: bool,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// Windows are cut into so short sleeps, so that Ctrl-C and the end of the program are noticed.
const LOOK: StdDuration = StdDuration::from_millis(10);
/// A program that is told to end has this long.
const GRACE: StdDuration = StdDuration::from_secs(1);

/// Runs the program and measures it. What it prints goes to standard error.
///
/// # Errors
/// There is no such program; windows of no time; the kernel does not tell what is touched; the
/// program ended before a window was over.
pub fn measure(plan: &Plan, watch: &dyn Watch) -> Result<Seen> {
    if plan.every.is_zero() {
        return Err(Error::new("a window takes time")
            .at("--every")
            .remedy("give such as 100ms"));
    }
    let mut running = Running(start(&plan.command)?);
    watch.begin("windows of the program", 0);
    let seen = windows(plan, &mut running.0, watch);
    watch.finish();
    drop(running);
    let seen = seen?;
    if seen.windows.is_empty() && !seen.interrupted {
        return Err(Error::new(format!(
            "the program ended before a window of {} was over",
            plan.every
        ))
        .at(plan.command.join(" "))
        .remedy("give shorter windows (`--every`), or let it work for longer"));
    }
    Ok(seen)
}

/// The size of a page: what is touched of one counts as all of it.
pub fn page() -> Bytes {
    Bytes::new(rustix::param::page_size() as u64)
}

/// A program that does not outlive the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if has_ended(&mut self.0) {
            return;
        }
        if let Ok(pid) = i32::try_from(self.0.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !has_ended(&mut self.0) {
            std::thread::sleep(LOOK);
        }
        // As above; it is waited for in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program, without large pages.
fn start(command: &[String]) -> Result<Child> {
    let [program, arguments @ ..] = command else {
        return Err(Error::new("no program is named").remedy("name one, with its arguments"));
    };
    let before = rustix::thread::transparent_huge_pages_are_disabled();
    let large = |disabled: bool| {
        rustix::thread::disable_transparent_huge_pages(disabled).map_err(|e| {
            Error::new(format!("cannot turn large pages off for the program: {e}"))
                .remedy("this needs Linux 3.15 or later")
        })
    };
    // A child starts as its parent is.
    large(true)?;
    let child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::from(std::io::stderr()))
        .spawn();
    large(before.unwrap_or(false))?;
    child.map_err(|e| {
        Error::new(format!("cannot start it: {e}"))
            .at(program.clone())
            .remedy("name a program, by its path or one of the PATH, and its arguments")
    })
}

fn windows(plan: &Plan, child: &mut Child, watch: &dyn Watch) -> Result<Seen> {
    let touched = Touched::of(child.id());
    let every = StdDuration::from_nanos(plan.every.nanos());
    let begin = Instant::now();
    let mut seen = Seen {
        windows: Vec::new(),
        ended: None,
        interrupted: false,
    };
    loop {
        if !touched.forget()? {
            break;
        }
        let window = Instant::now();
        while window.elapsed() < every {
            std::thread::sleep(LOOK.min(every.saturating_sub(window.elapsed())));
            if watch.stopped() {
                seen.interrupted = true;
                return Ok(seen);
            }
            if let Some(status) = status(child)? {
                seen.ended = Some(ended(status));
                return Ok(seen);
            }
        }
        let Some(pages) = touched.since()? else { break };
        seen.windows.push(pages);
        watch.advance(1);
        let most = plan.most.map(|most| StdDuration::from_nanos(most.nanos()));
        if most.is_some_and(|most| begin.elapsed() >= most) {
            return Ok(seen);
        }
    }
    // It has no memory any more: it ends.
    let status = child.wait().map_err(|e| cannot_wait(&e))?;
    seen.ended = Some(ended(status));
    Ok(seen)
}

fn status(child: &mut Child) -> Result<Option<ExitStatus>> {
    child.try_wait().map_err(|e| cannot_wait(&e))
}

fn cannot_wait(e: &std::io::Error) -> Error {
    Error::new(format!("cannot wait for the program: {e}"))
        .remedy("let nobody else wait for the children of this process")
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}
