//! The watchdog ends what has lost its way. These tests come before all that raises a thread.
//!
//! A run that stands still is played by a process of its own, forked here, so that nothing can
//! reach the test's.

mod support;

use execute::kernel::{self, Thread};
use execute::watchdog::{Patience, Trip, Watchdog};
use model::Duration;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use support::Live;

/// Short, so that the tests are; long enough for a machine that has other things to do.
const PATIENCE: Patience = Patience {
    dispatcher: Duration::from_millis(400),
    ordinary: Duration::from_millis(1500),
    end: Duration::from_millis(300),
    late: Duration::from_millis(500),
};

fn watchdog() -> Watchdog {
    Watchdog::start(PATIENCE).unwrap()
}

/// Does this in a process of its own and says how it ended: an exit status, or minus the signal.
fn in_a_process(what: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `what` and ends without coming back into the test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let status = what();
        // SAFETY: as above.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    match libc::WIFSIGNALED(status) {
        true => -libc::WTERMSIG(status),
        false => libc::WEXITSTATUS(status),
    }
}

/// Keeps the processor for at most so long; true as soon as `until` holds.
fn hog(limit: Duration, until: impl Fn() -> bool) -> bool {
    let end = kernel::monotonic() + limit.nanos();
    while kernel::monotonic() < end {
        if until() {
            return true;
        }
    }
    false
}

const LIMIT: Duration = Duration::from_secs(3);

fn a_dispatcher_that_stands_still_is_lowered(_: &Live) {
    let status = in_a_process(|| {
        let Ok(watchdog) = Watchdog::start(PATIENCE) else {
            return 10;
        };
        let board = watchdog.board();
        let Ok(_entry) = board.enter() else { return 11 };
        if Thread::current().raise(kernel::DISPATCHER.get()).is_err() {
            return 12;
        }
        board.beat(5);
        if !hog(LIMIT, || board.tripped() == Some(Trip::Dispatcher(5))) {
            return 13;
        }
        match Thread::current().scheduling() {
            Ok((libc::SCHED_OTHER, 0)) => 0,
            _ => 14,
        }
    });
    assert_eq!(status, 0);
}

fn an_engine_that_does_not_end_after_that_is_killed(_: &Live) {
    let (mut said, errors) = std::io::pipe().unwrap();
    let status = in_a_process(|| {
        // SAFETY: the process is the test's own, and says nothing else.
        unsafe { libc::dup2(errors.as_raw_fd(), libc::STDERR_FILENO) };
        let Ok(watchdog) = Watchdog::start(PATIENCE) else {
            return 10;
        };
        let board = watchdog.board();
        let Ok(_entry) = board.enter() else { return 11 };
        if Thread::current().raise(kernel::RUN).is_err() {
            return 12;
        }
        board.beat(0);
        hog(LIMIT, || false);
        13
    });
    assert_eq!(status, -libc::SIGKILL);
    drop(errors);
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("the watchdog kills the run: dispatcher 0 gave no sign of life for")
            && text.ends_with("\n"),
        "{text}"
    );
}

fn ordinary_threads_that_are_kept_from_running_end_the_run(_: &Live) {
    let watchdog = watchdog();
    let board = watchdog.board();
    board.ordinary();
    let end = kernel::monotonic() + LIMIT.nanos();
    while board.tripped().is_none() && kernel::monotonic() < end {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(board.tripped(), Some(Trip::Ordinary));
}

/// What it trips for within [`LIMIT`], while signs of life are given.
fn trip_of(watchdog: &Watchdog) -> Option<Trip> {
    let board = watchdog.board();
    let end = kernel::monotonic() + LIMIT.nanos();
    while board.tripped().is_none() && kernel::monotonic() < end {
        board.beat(0);
        board.ordinary();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    board.tripped()
}

fn a_decision_that_is_overdue_ends_the_run_though_everybody_lives(_: &Live) {
    let watchdog = watchdog();
    let now = kernel::monotonic();
    // What is due later, or nowhere, is not missed.
    watchdog.board().due(0, Some(now + 3600 * 1_000_000_000));
    watchdog.board().due(1, None);
    watchdog.board().due(3, Some(now));
    assert_eq!(trip_of(&watchdog), Some(Trip::Overdue(3)));
}

fn a_run_that_is_not_over_in_time_is_ended(_: &Live) {
    let one = watchdog();
    one.board().latest(kernel::monotonic());
    assert_eq!(trip_of(&one), Some(Trip::Late));
    drop(one);
    // Nor may its end take for ever; nobody has to decide then.
    let other = watchdog();
    other.board().due(3, Some(kernel::monotonic()));
    other.board().ends(Duration::from_millis(2000));
    assert_eq!(trip_of(&other), Some(Trip::Late));
}

/// Where no processor has any for a whole window; one that has is enough.
fn missing_slack_ends_the_run(_: &Live) {
    for (has_some, trip) in [(false, Some(Trip::Slackless)), (true, None)] {
        let watchdog = watchdog();
        let board = watchdog.board();
        board.watch_slack(2, Duration::from_millis(400));
        let end = kernel::monotonic() + LIMIT.nanos() / 2;
        while board.tripped().is_none() && kernel::monotonic() < end {
            if has_some {
                board.slack(1);
            }
            board.ordinary();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(board.tripped(), trip);
    }
}

/// The signs come from an ordinary thread, which others may keep from running for longer than the
/// watchdog waits: that says nothing about the watchdog, and it is tried again.
fn who_gives_signs_of_life_is_left_alone(_: &Live) {
    for _ in 0..10 {
        let watchdog = watchdog();
        let board = watchdog.board();
        let (mut last, mut longest) = (kernel::monotonic(), 0);
        for _ in 0..60 {
            board.beat(0);
            board.ordinary();
            let now = kernel::monotonic();
            longest = longest.max(now - std::mem::replace(&mut last, now));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        board.rest(0);
        board.unsupervised();
        longest = longest.max(kernel::monotonic() - last);
        std::thread::sleep(std::time::Duration::from_millis(600));
        if board.tripped().is_none() {
            assert!(!watchdog.has_died(), "who has ended is not missed");
            return;
        }
        assert!(
            longest > PATIENCE.dispatcher.nanos() / 2,
            "a sign of life at least every {longest} ns was missed: {:?}",
            board.tripped()
        );
    }
    panic!("this thread never gave signs of life in time");
}

fn a_watchdog_that_was_killed_is_missed_and_one_whose_engine_was_killed_ends(_: &Live) {
    let watchdog = watchdog();
    // SAFETY: the watchdog is our own child and not yet waited for.
    unsafe { libc::kill(watchdog.process(), libc::SIGKILL) };
    let end = kernel::monotonic() + LIMIT.nanos();
    while !watchdog.has_died() && kernel::monotonic() < end {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(watchdog.has_died());

    // It is this process's to bury.
    // SAFETY: a call without pointers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    let (mut said, mut number) = std::io::pipe().unwrap();
    let status = in_a_process(|| {
        let Ok(watchdog) = Watchdog::start(PATIENCE) else {
            return 10;
        };
        if number.write_all(&watchdog.process().to_ne_bytes()).is_err() {
            return 11;
        }
        // SAFETY: ends this process, not the watchdog's, as somebody else might.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        i32::from(watchdog.has_died())
    });
    assert_eq!(status, -libc::SIGKILL);
    drop(number);
    // What its engine had open, the watchdog does not hold: this ends before the watchdog does.
    let mut text = Vec::new();
    said.read_to_end(&mut text).unwrap();
    let process = i32::from_ne_bytes(text.try_into().unwrap());
    let end = kernel::monotonic() + LIMIT.nanos();
    // SAFETY: asks for the end of that process, without waiting for it.
    let has_ended =
        || unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) == process };
    while !has_ended() {
        assert!(kernel::monotonic() < end, "the watchdog lives on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A watchdog that is asleep, as it is most of the time, holds nothing that its engine had open.
fn a_watchdog_holds_nothing_open_of_its_engine(_: &Live) {
    let (mut ours, theirs) = std::io::pipe().unwrap();
    let watchdog = watchdog();
    drop(theirs);
    assert_eq!(ours.read(&mut [0]).unwrap(), 0);
    assert!(!watchdog.has_died());
}

live_tests!(
    a_dispatcher_that_stands_still_is_lowered,
    an_engine_that_does_not_end_after_that_is_killed,
    ordinary_threads_that_are_kept_from_running_end_the_run,
    a_decision_that_is_overdue_ends_the_run_though_everybody_lives,
    a_run_that_is_not_over_in_time_is_ended,
    missing_slack_ends_the_run,
    who_gives_signs_of_life_is_left_alone,
    a_watchdog_that_was_killed_is_missed_and_one_whose_engine_was_killed_ends,
    a_watchdog_holds_nothing_open_of_its_engine
);
