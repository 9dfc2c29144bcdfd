//! Processes, as `/proc` has them: who descends from whom, and how each is scheduled.
//!
//! Source: proc(5), `stat`. The harness is a subreaper: a process that loses its parents becomes
//! its child, so that nothing a command starts leaves its descent, in whatever session, process
//! group or environment it is.

use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A process or a thread at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Its name.
    pub name: String,
    /// `R`, `S`, `D`, `T`, `t`, `Z` and others.
    pub state: char,
    /// When it began, in ticks since the machine did.
    pub began: u64,
    /// Its class: 0 for ordinary threads.
    pub class: u32,
    /// One of the kernel's own.
    pub of_kernel: bool,
}

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const PF_KTHREAD: u64 = 0x0020_0000;

impl Process {
    /// What a `stat` file says; nothing where the process has gone.
    fn of(path: &str) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        // A name may hold anything, parentheses as well.
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // Fields are counted from 3 here.
        let number = |at: usize| fields.get(at - 3)?.trim().parse::<u64>().ok();
        Some(Process {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            began: number(22)?,
            class: number(41)? as u32,
            of_kernel: number(9)? & PF_KTHREAD != 0,
        })
    }

    /// The process of this number.
    pub fn find(pid: i32) -> Option<Self> {
        Self::of(&format!("/proc/{pid}/stat"))
    }

    /// Its number for system calls.
    pub fn id(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// Is it stopped by a signal?
    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    /// Has one of its threads real-time priority?
    pub fn has_urgent_thread(&self) -> bool {
        let threads = format!("/proc/{}/task", self.pid);
        let mut classes = numbers(&threads)
            .into_iter()
            .filter_map(|thread| Some(Process::of(&format!("{threads}/{thread}/stat"))?.class));
        classes.any(|class| class == libc::SCHED_FIFO as u32 || class == libc::SCHED_RR as u32)
    }

    /// What it executes, if that can be told.
    pub fn program(&self) -> Option<std::path::PathBuf> {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).ok()
    }

    /// Where it hangs: of each thread its name, its state, what it sleeps in, and its call.
    pub fn details(&self) -> String {
        let mut text = format!(
            "process {} ({}), child of {}, state {}, class {}\n",
            self.pid, self.name, self.parent, self.state, self.class
        );
        for thread in numbers(&format!("/proc/{}/task", self.pid)) {
            let at = format!("/proc/{}/task/{thread}", self.pid);
            let read = |file: &str| {
                let text = std::fs::read_to_string(format!("{at}/{file}")).unwrap_or_default();
                text.trim().to_owned()
            };
            let Some(it) = Process::of(&format!("{at}/stat")) else {
                continue;
            };
            text += &format!(
                "    {thread} {} {} class {} in {}: {}\n",
                it.name,
                it.state,
                it.class,
                read("wchan"),
                read("syscall")
            );
        }
        text
    }
}

/// Directories whose names are numbers.
fn numbers(path: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<i32> = named.collect();
    all.sort_unstable();
    all
}

/// All processes.
pub fn everybody() -> Vec<Process> {
    numbers("/proc")
        .into_iter()
        .filter_map(Process::find)
        .collect()
}

/// Descendants of `root` but for `except` and theirs, the eldest first.
pub fn descendants(root: i32, except: &BTreeSet<i32>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in everybody() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if !except.contains(&child.pid) {
                parents.push(child.pid);
                found.push(child);
            }
        }
    }
    found.sort_by_key(|process| (process.began, process.pid));
    found
}

/// A quicker look from a process downwards, while nobody changes parents.
pub fn below(root: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for thread in numbers(&format!("/proc/{parent}/task")) {
            let path = format!("/proc/{parent}/task/{thread}/children");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let children: Vec<i32> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
            found.extend(&children);
            parents.extend(children);
        }
    }
    found
}

/// Threads of real-time priority that are not the kernel's, by number and time of birth, with
/// their names; without those of processes that execute a program with one of these names.
pub fn urgent_threads(but: &[&Path]) -> BTreeMap<(i32, u64), String> {
    let mut all = BTreeMap::new();
    for process in everybody() {
        let program = process.program();
        let name = program.as_deref().and_then(Path::file_name);
        if process.of_kernel || but.iter().any(|path| path.file_name() == name) {
            continue;
        }
        for thread in numbers(&format!("/proc/{}/task", process.pid)) {
            let at = format!("/proc/{}/task/{thread}/stat", process.pid);
            if let Some(it) = Process::of(&at)
                && it.class != 0
            {
                all.insert((it.pid, it.began), it.name);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses() {
        let rest = "S 1 2 3 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                    0 0 3 1 2 0 0";
        let process = Process::parse(&format!("12 (a) (b) {rest}")).unwrap();
        assert_eq!((process.pid, process.parent), (12, 1));
        assert_eq!(process.name, "a) (b");
        assert_eq!((process.began, process.class), (77, 2));
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let this = std::process::id() as i32;
        let parent = Process::find(this).unwrap().parent;
        assert!(
            descendants(parent, &BTreeSet::new())
                .iter()
                .any(|p| p.pid == this)
        );
        assert!(below(parent).contains(&this));
        assert!(
            !descendants(parent, &BTreeSet::from([this]))
                .iter()
                .any(|p| p.pid == this)
        );
    }
}
