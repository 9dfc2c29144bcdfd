//! What the kernel keeps of every processor for ordinary threads: real-time throttling, and the
//! fair server of Linux 6.12 and later.
//!
//! Source: the kernel's `sched-rt-group.rst` (`sched_rt_runtime_us`) and `kernel/sched/debug.c`
//! (`fair_server` in debugfs, nanoseconds a processor). A lockdown may hide debugfs: then the fair
//! server is unknown, its default is 50 ms a second.

use crate::tree::Tree;
use model::{CpuId, Duration};

/// What the kernel says of throttling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// Real-time threads are stopped after so long in every period.
    Limited {
        /// So long they run at most …
        runtime: Duration,
        /// … of this.
        period: Duration,
    },
    /// They may take all time.
    Unlimited,
    /// The kernel does not tell.
    Unknown,
}

/// The setting that holds for the whole machine.
pub fn throttle(tree: &Tree) -> Throttle {
    let read = |name: &str| tree.value::<i64>(&format!("/proc/sys/kernel/{name}"));
    match (read("sched_rt_runtime_us"), read("sched_rt_period_us")) {
        (Some(runtime), Some(period)) if runtime < 0 || runtime >= period => Throttle::Unlimited,
        (Some(runtime), Some(period)) => Throttle::Limited {
            runtime: Duration::from_micros(runtime.unsigned_abs()),
            period: Duration::from_micros(period.unsigned_abs()),
        },
        _ => Throttle::Unknown,
    }
}

/// What ordinary threads of a processor get when real-time threads would take all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairServer {
    /// The processor.
    pub cpu: CpuId,
    /// So much time …
    pub runtime: Duration,
    /// … of this.
    pub period: Duration,
}

/// Where the settings of fair servers are, below where debugfs is mounted.
pub const FAIR_SERVERS: &str = "/sys/kernel/debug/sched/fair_server";

/// The fair servers of all processors; none where the kernel has none, or does not show them.
pub fn fair_servers(tree: &Tree) -> Vec<FairServer> {
    tree.numbered(FAIR_SERVERS, "cpu")
        .into_iter()
        .filter_map(|cpu| {
            let read = |name: &str| tree.value::<u64>(&format!("{FAIR_SERVERS}/cpu{cpu}/{name}"));
            Some(FairServer {
                cpu: CpuId(cpu),
                runtime: Duration::from_nanos(read("runtime")?),
                period: Duration::from_nanos(read("period").filter(|p| *p > 0)?),
            })
        })
        .collect()
}

/// Has this kernel fair servers, by its release, such as `6.18.2`? `None` where that says nothing.
pub fn has_fair_servers(release: &str) -> Option<bool> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let (major, minor): (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some((major, minor) >= (6, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::new(dir.path());
        (dir, tree)
    }

    #[test]
    fn throttling_is_limited_unlimited_or_unknown() {
        let of = |runtime: &str| {
            let (_dir, tree) = tree(&[
                ("proc/sys/kernel/sched_rt_runtime_us", runtime),
                ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ]);
            throttle(&tree)
        };
        assert_eq!(
            of("950000\n"),
            Throttle::Limited {
                runtime: Duration::from_millis(950),
                period: Duration::from_secs(1)
            }
        );
        assert_eq!(of("-1\n"), Throttle::Unlimited);
        assert_eq!(of("1000000\n"), Throttle::Unlimited);
        assert_eq!(of("much\n"), Throttle::Unknown);
        assert_eq!(throttle(&tree(&[]).1), Throttle::Unknown);
    }

    #[test]
    fn fair_servers_are_read_where_they_are_shown() {
        let (_dir, tree) = tree(&[
            (
                "sys/kernel/debug/sched/fair_server/cpu0/runtime",
                "50000000\n",
            ),
            (
                "sys/kernel/debug/sched/fair_server/cpu0/period",
                "1000000000\n",
            ),
            ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "0\n"),
            (
                "sys/kernel/debug/sched/fair_server/cpu1/period",
                "1000000000\n",
            ),
            ("sys/kernel/debug/sched/fair_server/cpu2/runtime", "1\n"),
        ]);
        let found: Vec<(u32, u64)> = fair_servers(&tree)
            .iter()
            .map(|s| (s.cpu.0, s.runtime.nanos()))
            .collect();
        assert_eq!(found, [(0, 50_000_000), (1, 0)]);
        let by_release = [
            "6.12.0",
            "6.18.44-fc",
            "6.11.9",
            "5.10",
            "7.0-rc1",
            "unknown",
        ]
        .map(has_fair_servers);
        assert_eq!(
            by_release,
            [
                Some(true),
                Some(true),
                Some(false),
                Some(false),
                Some(true),
                None
            ]
        );
    }
}
