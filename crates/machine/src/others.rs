//! Real-time threads of other programs on this machine: who they are, how high they run, and where
//! they may.
//!
//! Source: proc(5), fields 4 (parent), 9 (flags), 40 and 41 of `stat`; `PF_KTHREAD` of the kernel's
//! `include/linux/sched.h`.

use crate::tree::Tree;
use model::CpuSet;

/// A class of the scheduler above ordinary threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// `SCHED_FIFO`, with its priority.
    Fifo(u32),
    /// `SCHED_RR`, with its priority.
    RoundRobin(u32),
    /// `SCHED_DEADLINE`: above all priorities.
    Deadline,
}

impl Class {
    /// Does a thread of this class take the processor from one of `SCHED_FIFO` with this priority,
    /// or share it?
    pub fn disturbs(self, priority: u32) -> bool {
        match self {
            Class::Fifo(own) | Class::RoundRobin(own) => own >= priority,
            Class::Deadline => true,
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Class::Fifo(priority) => write!(f, "SCHED_FIFO at {priority}"),
            Class::RoundRobin(priority) => write!(f, "SCHED_RR at {priority}"),
            Class::Deadline => f.write_str("SCHED_DEADLINE"),
        }
    }
}

/// A thread of that kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Other {
    /// Its process.
    pub process: u32,
    /// The process that started that one, or has adopted it.
    pub parent: u32,
    /// Its own number.
    pub thread: u32,
    /// What it is called.
    pub name: String,
    /// How it is scheduled.
    pub class: Class,
    /// Where it may run, if that is told.
    pub cpus: Option<CpuSet>,
}

/// The kernel's own threads have this flag.
const PF_KTHREAD: u64 = 0x0020_0000;

/// All real-time threads but those of the kernel and of the process `this`.
pub fn others(tree: &Tree, this: u32) -> Vec<Other> {
    let mut all = Vec::new();
    for process in tree
        .numbered("/proc", "")
        .into_iter()
        .filter(|p| *p != this)
    {
        for thread in tree.numbered(&format!("/proc/{process}/task"), "") {
            let at = format!("/proc/{process}/task/{thread}");
            // What has gone meanwhile disturbs nobody.
            let stat = tree.text(&format!("{at}/stat")).unwrap_or_default();
            let Some((name, parent, class)) = of_stat(&stat) else {
                continue;
            };
            let status = tree.text(&format!("{at}/status"));
            let list = status.as_deref().and_then(|text| {
                let line = text
                    .lines()
                    .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
                line.trim().parse().ok()
            });
            all.push(Other {
                process,
                parent,
                thread,
                name: name.to_owned(),
                class,
                cpus: list,
            });
        }
    }
    all
}

/// Name, parent and class of a real-time thread that is not the kernel's.
fn of_stat(text: &str) -> Option<(&str, u32, Class)> {
    // The name, in parentheses, may hold anything.
    let (head, fields) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let field = |number: usize| {
        fields
            .split_whitespace()
            .nth(number - 3)?
            .parse::<u64>()
            .ok()
    };
    if field(9)? & PF_KTHREAD != 0 {
        return None;
    }
    let (parent, priority) = (field(4)? as u32, field(40)? as u32);
    let class = match field(41)? {
        1 => Class::Fifo(priority),
        2 => Class::RoundRobin(priority),
        6 => Class::Deadline,
        _ => return None,
    };
    Some((name, parent, class))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, flags: u64, priority: u32, policy: u32) -> String {
        let zeros = |n: usize| vec!["0"; n].join(" ");
        format!(
            "71 ({name}) S 1 71 71 0 -1 {flags} {} {priority} {policy} {}",
            zeros(30),
            zeros(11)
        )
    }

    #[test]
    fn threads_are_told_by_class_and_the_kernels_are_left_out() {
        for (text, expected) in [
            (
                stat("jackd", 0x40_0100, 70, 1),
                Some(("jackd", 1, Class::Fifo(70))),
            ),
            (
                stat("a) b (c", 0, 5, 2),
                Some(("a) b (c", 1, Class::RoundRobin(5))),
            ),
            (stat("dl", 0, 0, 6), Some(("dl", 1, Class::Deadline))),
            (stat("sh", 0, 0, 0), None),
            (stat("migration/0", 0x0420_8040, 99, 1), None),
            (String::new(), None),
        ] {
            assert_eq!(of_stat(&text), expected, "{text}");
        }
        assert!(Class::Deadline.disturbs(99) && Class::Fifo(40).disturbs(40));
        assert!(!Class::RoundRobin(39).disturbs(40));
    }

    #[test]
    fn whoever_runs_here_is_found_with_its_processors() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/71/task/71/stat", &stat("sh", 0, 0, 0));
        write("proc/71/task/72/stat", &stat("audio", 0, 80, 1));
        write(
            "proc/71/task/72/status",
            "Name:\taudio\nCpus_allowed:\t2\nCpus_allowed_list:\t1,3\n",
        );
        write("proc/90/task/90/stat", &stat("us", 0, 97, 1));
        write("proc/self", "");
        let found = others(&Tree::new(dir.path()), 90);
        assert_eq!(
            found,
            [Other {
                process: 71,
                parent: 1,
                thread: 72,
                name: "audio".to_owned(),
                class: Class::Fifo(80),
                cpus: "1,3".parse().ok(),
            }]
        );
    }
}
