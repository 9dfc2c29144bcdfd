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
    /// For how long it loads: windows that begin earlier tell nothing of its working set. The first
    /// one tells nothing in any case, if there are others.
    pub skip: Duration,
}

/// What was seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// What was touched in each complete window.
    pub windows: Vec<Pages>,
    /// So many of the first of them belong to the loading of the program ([`Plan::skip`]).
    pub loading: usize,
    /// How the program ended by itself; `None`: it was made to.
    pub ended: Option<Ended>,
    /// Did the user stop the measurement?
    pub interrupted: bool,
}

/// The working set of a program, from what it touched in windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The most memory of its own in a window.
    pub most: Bytes,
    /// Likewise, of the second half of the windows alone: what loading may still have touched is
    /// not in it.
    pub later: Bytes,
    /// The median window.
    pub median: Bytes,
    /// The most of mapped files in a window, at most.
    pub files: Bytes,
}

impl Seen {
    /// What the windows say in which the program was not loaded. Nothing, where there is none.
    pub fn found(&self) -> Found {
        let windows = self.windows.get(self.loading..).unwrap_or_default();
        let own = |windows: &[Pages]| -> Vec<Bytes> {
            let mut sizes: Vec<Bytes> = windows.iter().map(|pages| pages.own).collect();
            sizes.sort_unstable();
            sizes
        };
        let sizes = own(windows);
        let later = own(&windows[windows.len() / 2..]);
        Found {
            most: sizes.last().copied().unwrap_or_default(),
            later: later.last().copied().unwrap_or_default(),
            median: sizes.get(sizes.len() / 2).copied().unwrap_or_default(),
            files: windows
                .iter()
                .map(|pages| pages.files)
                .max()
                .unwrap_or_default(),
        }
    }
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
/// program ended before a window was over, or before one was over that is not left out.
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
    let mut seen = seen?;
    if seen.windows.len() == 1 && plan.skip.is_zero() {
        seen.loading = 0;
    }
    let program = plan.command.join(" ");
    let refused = |cause: String, remedy: &str| Err(Error::new(cause).at(program).remedy(remedy));
    if seen.windows.is_empty() && !seen.interrupted {
        return refused(
            format!(
                "the program ended before a window of {} was over",
                plan.every
            ),
            "give shorter windows (`--every`), or let it work for longer",
        );
    }
    if seen.loading == seen.windows.len() && !seen.interrupted {
        return refused(
            format!(
                "no window of {} began after the first {} of the program",
                plan.every, plan.skip
            ),
            "leave less out (`--skip`), give shorter windows, or let it work for longer",
        );
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
    let skip = StdDuration::from_nanos(plan.skip.nanos());
    let mut seen = Seen {
        windows: Vec::new(),
        loading: 0,
        ended: None,
        interrupted: false,
    };
    loop {
        if !touched.forget()? {
            break;
        }
        let window = Instant::now();
        let is_loading = seen.windows.is_empty() || window - begin < skip;
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
        seen.loading += usize::from(is_loading);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(own: &[u64], loading: usize) -> Seen {
        let pages = |kib: &u64| Pages {
            own: Bytes::from_kib(*kib),
            files: Bytes::from_kib(1000 - kib),
        };
        Seen {
            windows: own.iter().map(pages).collect(),
            loading,
            ended: None,
            interrupted: false,
        }
    }

    #[test]
    fn what_loading_touched_is_not_in_the_working_set() {
        let windows = [900, 500, 100, 120, 80, 90];
        let found = seen(&windows, 2).found();
        assert_eq!(found.most, Bytes::from_kib(120));
        assert_eq!(found.later, Bytes::from_kib(90));
        assert_eq!(found.median, Bytes::from_kib(100));
        assert_eq!(found.files, Bytes::from_kib(920));
        // Where less is left out, the second half still is without it.
        let found = seen(&windows, 1).found();
        assert_eq!(found.most, Bytes::from_kib(500));
        assert_eq!(found.later, Bytes::from_kib(120));
        assert_eq!(seen(&windows, 6).found(), Found::default());
        assert_eq!(seen(&[70], 0).found().later, Bytes::from_kib(70));
    }
}
