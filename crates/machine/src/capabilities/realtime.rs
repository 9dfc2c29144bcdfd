//! What real-time threads need: a priority, time, and memory that stays.

use super::{CAP_IPC_LOCK, CAP_SYS_NICE, Capability, Rights, State, errno};
use crate::cgroup;
use crate::probe::{Outcome, Probes};
use crate::tree::Tree;

pub(super) fn realtime(tree: &Tree, probes: &Probes, rights: &Rights) -> Capability {
    let name = "real-time priority";
    let limit = rights.limit("Max realtime priority");
    let nice = rights.has(CAP_SYS_NICE);
    let budget = cgroup::realtime_budget(tree);
    let right = match (nice, limit) {
        (true, _) => "CAP_SYS_NICE".to_owned(),
        (false, Some(limit)) => format!("no CAP_SYS_NICE, RLIMIT_RTPRIO {limit}"),
        (false, None) => "no CAP_SYS_NICE".to_owned(),
    };
    let grant = "run as root, give the program CAP_SYS_NICE (`setcap cap_sys_nice+ep warmset`), or set `rtprio 99` for this user in /etc/security/limits.conf and log in again";
    match probes.realtime {
        Outcome::Worked => {
            let share = share_of_time(tree);
            let seen = format!("SCHED_FIFO works ({right}); {}", share.text);
            match limit {
                Some(limit) if !nice && limit < 98 => Capability::new(
                    name,
                    State::Limited,
                    format!("up to priority {limit} only; {seen}"),
                    grant,
                ),
                _ => Capability::new(name, State::Yes, seen, share.remedy),
            }
        }
        Outcome::Refused(number) => {
            let seen = format!("SCHED_FIFO is refused ({}); {right}", errno(number));
            match budget {
                Some((file, 0)) if nice => Capability::new(
                    name,
                    State::No,
                    format!("{seen}; the control group grants no time: {file} is 0"),
                    format!("as root, `echo 400000 > {file}`, or move to the root group"),
                ),
                _ => Capability::new(name, State::No, seen, grant),
            }
        }
        Outcome::Untried => {
            Capability::new(name, State::Unknown, format!("not tried; {right}"), "")
        }
    }
}

/// What part of a second real-time threads may take.
struct Share {
    text: String,
    remedy: String,
}

fn share_of_time(tree: &Tree) -> Share {
    let runtime: Option<i64> = tree.value("/proc/sys/kernel/sched_rt_runtime_us");
    let period: Option<i64> = tree.value("/proc/sys/kernel/sched_rt_period_us");
    match (runtime, period) {
        (Some(runtime), Some(period)) if runtime >= 0 && period > 0 && runtime < period => Share {
            text: format!(
                "{runtime} of every {period} us for real-time threads (sched_rt_runtime_us)"
            ),
            remedy: String::new(),
        },
        (Some(_), Some(_)) => Share {
            text: "all time for real-time threads: a runaway one locks the machine up".to_owned(),
            remedy: "as root, `sysctl kernel.sched_rt_runtime_us=950000`".to_owned(),
        },
        _ => Share {
            text: "the share of time for real-time threads is unknown".to_owned(),
            remedy: String::new(),
        },
    }
}

pub(super) fn locking(tree: &Tree, probes: &Probes, rights: &Rights) -> Capability {
    let name = "memory locking";
    let limit = rights.limit("Max locked memory");
    let unlimited = rights.has(CAP_IPC_LOCK) || limit == Some(u64::MAX);
    let grant = "run as root, give the program CAP_IPC_LOCK, or set `memlock unlimited` for this user in /etc/security/limits.conf and log in again";
    let right = match (rights.has(CAP_IPC_LOCK), limit) {
        (true, _) => "CAP_IPC_LOCK".to_owned(),
        (false, Some(u64::MAX)) => "RLIMIT_MEMLOCK unlimited".to_owned(),
        (false, Some(limit)) => format!("RLIMIT_MEMLOCK {} KiB", limit / 1024),
        (false, None) => "no CAP_IPC_LOCK".to_owned(),
    };
    match probes.lock {
        Outcome::Worked if !unlimited => Capability::new(
            name,
            State::Limited,
            format!("mlock works up to a limit ({right})"),
            grant,
        ),
        Outcome::Worked => {
            let seen = format!("mlock works ({right})");
            // A locked page stays in memory but may be moved within it.
            match tree
                .text("/proc/sys/vm/compact_unevictable_allowed")
                .as_deref()
            {
                Some("0") => Capability::new(name, State::Yes, seen, ""),
                Some(_) => Capability::new(
                    name,
                    State::Yes,
                    format!("{seen}; locked pages may still be moved"),
                    "for page coloring: as root, `sysctl vm.compact_unevictable_allowed=0`",
                ),
                None => Capability::new(name, State::Yes, seen, ""),
            }
        }
        Outcome::Refused(number) => Capability::new(
            name,
            State::No,
            format!("mlock is refused ({}); {right}", errno(number)),
            grant,
        ),
        Outcome::Untried => {
            Capability::new(name, State::Unknown, format!("not tried; {right}"), "")
        }
    }
}
