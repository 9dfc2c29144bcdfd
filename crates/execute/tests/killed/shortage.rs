//! Little of what a run needs: descriptors, processes, memory.

use std::path::{Path, PathBuf};

fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    let most = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: the limit lives through the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &most) }, 0);
}

/// From now on only so many more descriptors can be opened.
pub fn few_files(more: u64) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    limit(libc::RLIMIT_NOFILE, open + more);
}

/// A user who has no other processes.
pub const POOR: u32 = 65_123;

/// From now on this process is of a user that may have only so many.
pub fn few_processes(most: u64) {
    use rustix::thread::{CapabilitySet, CapabilitySets};
    limit(libc::RLIMIT_NPROC, most);
    rustix::thread::set_keep_capabilities(true).unwrap();
    // SAFETY: calls without pointers that matter; the right to look at itself is lost with the
    // user.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(POOR), 0);
        assert_eq!(libc::setuid(POOR), 0);
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1), 0);
    }
    let kept = CapabilitySets {
        effective: CapabilitySet::SYS_NICE,
        permitted: CapabilitySet::SYS_NICE,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, kept).unwrap();
}

/// A control group of memory, below that of this process; gone when dropped.
pub struct Group(pub PathBuf);

impl Group {
    /// One of so many bytes, or why there can be none.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
        let of = |prefix: &str, mount: &str, file: &'static str| {
            let path = groups
                .lines()
                .find_map(|l| l.split_once(prefix).map(|(_, path)| path))?;
            let mount = Path::new(mount).join(path.trim_start_matches('/'));
            Some((
                mount.join(format!("warmset-test-{}", std::process::id())),
                file,
            ))
        };
        let (path, file) = of(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            .or_else(|| of("0::", "/sys/fs/cgroup", "memory.max"))
            .ok_or("no control group")?;
        let failed = |e: std::io::Error| format!("no control group of memory can be made: {e}");
        std::fs::create_dir(&path).map_err(failed)?;
        let group = Group(path);
        std::fs::write(group.0.join(file), bytes.to_string()).map_err(failed)?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is busy for as long as anybody is in it: then it stays, and a failed test says why.
        let _ = std::fs::remove_dir(&self.0);
    }
}
