//! The control groups of this process: its cpuset and its budget for real-time threads, of version 1 and 2.
//!
//! Source: the kernel's `cgroup-v1/cpusets.rst`, `cgroup-v2.rst` and `sched-rt-group.rst`; proc_pid_mountinfo(5).

use crate::tree::Tree;
use model::CpuSet;

/// The cpuset of this process: its path and the processors that it allows; `None` without cpusets.
pub fn cpuset(tree: &Tree) -> Option<(String, CpuSet)> {
    for file in ["cpuset.effective_cpus", "cpuset.cpus"] {
        if let Some(dir) = directory(tree, Some("cpuset")) {
            let path = format!("{}/{file}", dir.full());
            if let Some(cpus) = tree.cpus(&path).filter(|cpus| !cpus.is_empty()) {
                return Some((dir.full(), cpus));
            }
        }
    }
    // In version 2 a group without the controller is bound by the nearest one above it that has it.
    let mut dir = directory(tree, None)?;
    loop {
        let path = format!("{}/cpuset.cpus.effective", dir.full());
        if let Some(cpus) = tree.cpus(&path).filter(|cpus| !cpus.is_empty()) {
            return Some((dir.full(), cpus));
        }
        let (above, _) = dir.below.rsplit_once('/')?;
        dir.below.truncate(above.len());
    }
}

/// What version 1 grants the real-time threads of this group: the file and its microseconds a period; 0 forbids them.
pub fn realtime_budget(tree: &Tree) -> Option<(String, i64)> {
    let path = format!("{}/cpu.rt_runtime_us", directory(tree, Some("cpu"))?.full());
    let budget = tree.value(&path)?;
    Some((path, budget))
}

/// A group's directory: where its hierarchy is mounted, and the path below that, `` or `/a/b`.
struct Directory {
    mount: String,
    below: String,
}

impl Directory {
    fn full(&self) -> String {
        format!("{}{}", self.mount, self.below)
    }
}

/// The directory of this process's group: of a controller of version 1, or of version 2.
fn directory(tree: &Tree, controller: Option<&str>) -> Option<Directory> {
    let groups = tree.text("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match controller {
            Some(name) => controllers.split(',').any(|c| c == name),
            None => number == "0" && controllers.is_empty(),
        };
        is_it.then_some(path)
    })?;
    let mounts = tree.text("/proc/self/mountinfo")?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1).unwrap_or(""));
        let is_it = match controller {
            Some(name) => kind == "cgroup" && options.split(',').any(|o| o == name),
            None => kind == "cgroup2",
        };
        if !is_it {
            return None;
        }
        let mut left = left.split(' ').skip(3);
        let (root, mount) = (left.next()?, left.next()?);
        // A mount may show a part of the hierarchy only; a group outside of it has no directory here.
        let below = match root {
            "/" => group,
            _ => group.strip_prefix(root)?,
        };
        Some(Directory {
            mount: mount.to_owned(),
            below: below.trim_end_matches('/').to_owned(),
        })
    })
}
