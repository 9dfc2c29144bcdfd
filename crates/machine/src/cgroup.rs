//! The control groups of this process: its cpuset and its budget for real-time threads, of version
//! 1 and 2.
//!
//! Source: the kernel's `cgroup-v1/cpusets.rst`, `cgroup-v2.rst` and `sched-rt-group.rst`;
//! proc_pid_mountinfo(5).

use crate::tree::Tree;
use model::{Bytes, CpuSet, Duration};

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

/// The directory of this process's group of version 2, if it is mounted.
pub fn unified(tree: &Tree) -> Option<String> {
    directory(tree, None).map(|dir| dir.full())
}

/// What version 1 grants the real-time threads of this group: the file and its microseconds a
/// period; 0 forbids them.
pub fn realtime_budget(tree: &Tree) -> Option<(String, i64)> {
    let path = format!("{}/cpu.rt_runtime_us", directory(tree, Some("cpu"))?.full());
    let budget = tree.value(&path)?;
    Some((path, budget))
}

/// How long the real-time threads of this group may run within which period, where version 1 limits
/// them.
pub fn realtime_share(tree: &Tree) -> Option<(String, Duration, Duration)> {
    let (file, budget) = realtime_budget(tree)?;
    let period: u64 = tree.value(&file.replace("cpu.rt_runtime_us", "cpu.rt_period_us"))?;
    Some((
        file,
        Duration::from_micros(u64::try_from(budget).ok()?),
        Duration::from_micros(period),
    ))
}

/// The tightest limit to the time of ordinary threads, of this group or one above it: the file, the
/// time, the period.
pub fn bandwidth(tree: &Tree) -> Option<(String, Duration, Duration)> {
    let of = |dir: &str| -> Option<(String, i64, u64)> {
        let file = format!("{dir}/cpu.max");
        if let Some(text) = tree.text(&file) {
            let (quota, period) = text.split_once(' ')?;
            return Some((file, quota.parse().ok()?, period.trim().parse().ok()?));
        }
        let file = format!("{dir}/cpu.cfs_quota_us");
        let (quota, period) = (
            tree.value(&file)?,
            tree.value(&format!("{dir}/cpu.cfs_period_us"))?,
        );
        Some((file, quota, period))
    };
    tightest(tree, "cpu", of)
        .filter(|(_, _, period)| *period > 0)
        .map(|(file, quota, period)| {
            let quota = u64::try_from(quota).unwrap_or(u64::MAX);
            (
                file,
                Duration::from_micros(quota),
                Duration::from_micros(period),
            )
        })
}

/// The tightest limit to the memory of this group or one above it: the file and the limit.
pub fn memory_limit(tree: &Tree) -> Option<(String, Bytes)> {
    // Version 1 says "no limit" as the largest number of whole pages.
    const NONE: u64 = 1 << 62;
    let of = |dir: &str| -> Option<(String, i64, u64)> {
        let files = ["memory.max", "memory.limit_in_bytes"];
        let mut read = files.iter().map(|name| format!("{dir}/{name}"));
        let (file, limit) =
            read.find_map(|file| Some((file.clone(), tree.value::<u64>(&file)?)))?;
        let limit = i64::try_from(limit.min(NONE)).ok()?;
        (limit.unsigned_abs() < NONE).then_some((file, limit, 1))
    };
    tightest(tree, "memory", of).map(|(file, limit, _)| (file, Bytes::new(limit.unsigned_abs())))
}

/// What this group, or one above it, may still take of memory: the directory of the group that has
/// least left, and how much. What is kept of files and not in use is given up first, and counts as
/// free.
pub fn memory_left(tree: &Tree) -> Option<(String, Bytes)> {
    let of = |dir: &str| -> Option<(String, i64, u64)> {
        let first = |names: [&str; 2]| -> Option<u64> {
            names
                .iter()
                .find_map(|name| tree.value(&format!("{dir}/{name}")))
        };
        let limit = first(["memory.max", "memory.limit_in_bytes"])?;
        let used = first(["memory.current", "memory.usage_in_bytes"])?;
        let stat = tree.text(&format!("{dir}/memory.stat")).unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            stat.lines().find_map(|line| {
                line.strip_prefix(name)?
                    .strip_prefix(' ')?
                    .trim()
                    .parse()
                    .ok()
            })
        };
        let files = field("total_inactive_file")
            .or_else(|| field("inactive_file"))
            .unwrap_or(0);
        let left = limit.saturating_sub(used.saturating_sub(files));
        Some((dir.to_owned(), i64::try_from(left).ok()?, 1))
    };
    tightest(tree, "memory", of).map(|(dir, left, _)| (dir, Bytes::new(left.unsigned_abs())))
}

/// The smallest part of a whole, positive, that any group from this one up says for a controller.
fn tightest(
    tree: &Tree,
    controller: &str,
    of: impl Fn(&str) -> Option<(String, i64, u64)>,
) -> Option<(String, i64, u64)> {
    let mut found = None;
    for mut dir in [directory(tree, Some(controller)), directory(tree, None)]
        .into_iter()
        .flatten()
    {
        loop {
            let limit = of(&dir.full()).filter(|(_, part, whole)| *part >= 0 && *whole > 0);
            if let Some(new) = limit {
                let is_tighter = |old: &(String, i64, u64)| {
                    i128::from(new.1) * i128::from(old.2) < i128::from(old.1) * i128::from(new.2)
                };
                if found.as_ref().is_none_or(is_tighter) {
                    found = Some(new);
                }
            }
            let Some((above, _)) = dir.below.rsplit_once('/') else {
                break;
            };
            dir.below.truncate(above.len());
        }
    }
    found
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
        // A mount may show a part of the hierarchy only; a group outside of it has no directory
        // here.
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
