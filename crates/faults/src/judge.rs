//! What a command owes, however it was disturbed: a status that it documents, words, no panic.

use crate::fault::{Fault, Limit, Target};
use crate::life::Lived;
use crate::scenario::Scenario;

/// How it ended, for tables.
pub fn outcome(lived: &Lived, stderr: &str) -> String {
    let Some(status) = lived.status else {
        return if lived.not_begun.is_some() {
            "not begun"
        } else {
            "hung"
        }
        .to_owned();
    };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0 | 1), _) => "ran".to_owned(),
        (Some(2), _) => "refused".to_owned(),
        (Some(129..=143), _) => "interrupted".to_owned(),
        (Some(code), _) => format!("status {code}"),
        (_, Some(libc::SIGABRT)) if is_out_of_memory(stderr) => "out of memory".to_owned(),
        (_, Some(libc::SIGKILL)) if stderr.contains(WATCHDOG) => "ended by watchdog".to_owned(),
        (_, Some(_)) => "killed".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// The standard library gives up so where there is no memory: for an object, for the stack on which
/// a thread learns that its own is used up, for its own. It asks nobody before.
const NO_MEMORY: [&str; 4] = [
    "memory allocation of ",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack guard page",
    "has overflowed its stack",
];
/// The watchdog says so before it kills.
const WATCHDOG: &str = "the watchdog";
/// The command says so where a dispatcher did not get to run.
const STANDSTILL: &str = "the watchdog ended the run: the dispatcher of processor ";
/// The command says so where a setting stays as it is, and its record with it.
const NOT_RESTORED: &str = "could not restore the setting";
/// The loader ends a program so, before any of it runs.
const LOADER: &str = "error while loading shared libraries";

/// What of status and words is not as promised: the kind, and what exactly.
pub fn words(
    scenario: &Scenario,
    fault: &Fault,
    lived: &Lived,
    stderr: &str,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut lines = stderr.lines();
    let panics = lines.find(|line| line.contains("panicked") || line.contains("fatal runtime"));
    if let Some(line) = panics.filter(|_| !(is_of_memory(fault) && is_out_of_memory(stderr))) {
        // Place and message stand on lines of their own.
        let message = lines.next().unwrap_or_default();
        let place = line.rsplit('/').next().unwrap_or(line);
        wrong.push(("panic", format!("{message} at {place}")));
    }
    let Some(status) = lived.status else {
        if let (Some(why), false) = (&lived.not_begun, matches!(fault, Fault::Limit(..))) {
            wrong.push(("harness", why.clone()));
        }
        return wrong;
    };
    if let Some(code) = status.exit_status() {
        wrong.extend(of_code(scenario, fault, lived, stderr, code));
    }
    if let Some(signal) = status.terminating_signal()
        && !may_die(fault, lived, stderr, signal)
    {
        wrong.push((
            "status",
            format!("it died of signal {signal}, which was not sent"),
        ));
    }
    wrong
}

fn of_code(
    scenario: &Scenario,
    fault: &Fault,
    lived: &Lived,
    stderr: &str,
    code: i32,
) -> Option<(&'static str, String)> {
    let to_engine = |signal: i32| {
        let to = [Target::Engine, Target::Group];
        to.iter().any(|to| lived.sent.contains(&(signal, *to)))
    };
    let unfit = |what: &str| Some(("status", format!("{what}: {code}")));
    match code {
        0 | 1 => None,
        2 if lived.silenced => None,
        // A machine that stands still ends a run to which nothing was done, which says so.
        2 if *fault == Fault::None && !stderr.contains(STANDSTILL) => {
            unfit("nothing was done to it")
        }
        2 if stderr.lines().any(|line| line.starts_with("warmset: ")) => None,
        2 => Some(("no sentence", "status 2 without a word".to_owned())),
        130 if to_engine(libc::SIGINT) => None,
        143 if to_engine(libc::SIGTERM) => None,
        127 if stderr.contains(LOADER) => None,
        // The status of the program that was run in its place.
        _ if *scenario == Scenario::ColorExec => None,
        _ => unfit("no status that is documented"),
    }
}

/// May a record of a setting stay, for the next command to restore it? Where the command could not,
/// and was killed or has said so.
pub fn may_leave_setting(lived: &Lived, stderr: &str) -> bool {
    let killed = lived
        .status
        .is_some_and(|s| s.terminating_signal().is_some());
    killed || stderr.contains(NOT_RESTORED)
}

fn is_out_of_memory(stderr: &str) -> bool {
    NO_MEMORY.iter().any(|words| stderr.contains(words))
}

/// Does the fault take memory away?
fn is_of_memory(fault: &Fault) -> bool {
    match fault {
        Fault::Call(call) => call.kind.name == "memory",
        Fault::Limit(limit, _) => matches!(limit, Limit::AddressSpace | Limit::Stack),
        _ => false,
    }
}

fn may_die(fault: &Fault, lived: &Lived, stderr: &str, signal: i32) -> bool {
    let to_engine = [Target::Engine, Target::Group];
    if to_engine
        .iter()
        .any(|to| lived.sent.contains(&(signal, *to)))
    {
        return true;
    }
    let of_memory = is_of_memory(fault);
    match signal {
        libc::SIGKILL if stderr.contains(WATCHDOG) => true,
        // The kernel, while it makes room for the program.
        libc::SIGKILL | libc::SIGSEGV => of_memory && stderr.is_empty(),
        libc::SIGABRT => of_memory && is_out_of_memory(stderr),
        libc::SIGXFSZ => matches!(fault, Fault::Limit(Limit::FileSize, _)),
        _ => false,
    }
}
