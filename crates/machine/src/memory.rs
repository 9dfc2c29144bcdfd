//! Memory that is really there: mapped in small pages, written once, locked if allowed.

use crate::cgroup;
use crate::tree::Tree;
use model::{Bytes, Error, Result};
use std::path::Path;
use sys::memory::{Mapping, Use};

/// A mapped area of memory, aligned to pages, all of it present.
#[derive(Debug)]
pub struct Area {
    map: Mapping,
    locked: bool,
    /// Flushes need not wait for each other: twenty times faster where written lines are flushed.
    #[cfg(target_arch = "x86_64")]
    flush_at_once: bool,
}

/// The bytes that share a cache line on the machines that this runs on, or divide one.
pub const LINE: usize = 64;
/// Bytes of a large page on most machines.
pub const LARGE: usize = 2 << 20;
/// Words of a cache line (000 §4.1).
pub const WORDS_OF_LINE: usize = LINE / size_of::<u64>();

/// Below this it is not asked whether there is as much memory.
const WORTH_ASKING: Bytes = Bytes::from_mib(4);

/// Is there as much memory for this process? Asked before it is taken: the kernel ends who takes
/// more than there is.
///
/// # Errors
/// There is not: on the machine, or for the control group that this process is in.
pub fn check_free(size: Bytes) -> Result<()> {
    check_free_in(&Tree::new(Path::new("/")), size)
}

fn check_free_in(tree: &Tree, size: Bytes) -> Result<()> {
    if size < WORTH_ASKING {
        return Ok(());
    }
    let refused = |left: Bytes, of: String| {
        let left = Bytes::from_kib(left.get() >> 10);
        Err(
            Error::new(format!("cannot map {size} of memory: {left} are left {of}"))
                .remedy("free memory, or ask for less"),
        )
    };
    if let Some((group, left)) = cgroup::memory_left(tree)
        && left < size
    {
        return refused(left, format!("for the control group {group}"));
    }
    let info = tree.text("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| {
        let kib = line
            .strip_prefix("MemAvailable:")?
            .trim()
            .strip_suffix("kB")?;
        kib.trim().parse().ok().map(Bytes::from_kib)
    });
    match available {
        Some(left) if left < size => refused(left, "on this machine".to_owned()),
        _ => Ok(()),
    }
}

impl Area {
    /// Maps memory and touches every page. Small pages: what a real-time task gets without asking
    /// for anything.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn map(size: Bytes) -> Result<Self> {
        let bytes = usize::try_from(size.get()).unwrap_or(usize::MAX);
        check_free(size)?;
        let map = Mapping::private(bytes, Use::Write).map_err(|e| cannot_map(size, &e))?;
        map.prefer_large_pages(false);
        Ok(Self::present(map))
    }

    /// Locks a mapping, as far as that is permitted, and touches all of it.
    fn present(map: Mapping) -> Self {
        let locked = map.lock().is_ok();
        for page in (0..map.size()).step_by(4096) {
            map.store(page, 1);
        }
        Area {
            map,
            locked,
            #[cfg(target_arch = "x86_64")]
            flush_at_once: has_clflushopt(),
        }
    }

    /// Maps memory in large pages where the system gives some, and touches all of it. The size is
    /// rounded up to whole ones.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn map_large(size: Bytes) -> Result<Self> {
        let bytes = usize::try_from(size.get())
            .unwrap_or(usize::MAX / 2)
            .div_ceil(LARGE)
            .saturating_mul(LARGE);
        let map = Mapping::aligned(bytes, LARGE).map_err(|e| cannot_map(size, &e))?;
        map.prefer_large_pages(true);
        Ok(Self::present(map))
    }

    /// How much of it is in large pages, as the system says; nothing where it does not say.
    pub fn in_large_pages(&self) -> Bytes {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let range = self.base() as usize..self.base() as usize + self.size();
        let (mut within, mut kib) = (false, 0);
        for line in text.lines() {
            if let Some(start) = line
                .split_once('-')
                .and_then(|(start, _)| usize::from_str_radix(start, 16).ok())
            {
                within = range.contains(&start);
            } else if within && let Some(rest) = line.strip_prefix("AnonHugePages:") {
                kib += rest
                    .trim()
                    .trim_end_matches(" kB")
                    .parse::<u64>()
                    .unwrap_or(0);
            }
        }
        Bytes::from_kib(kib)
    }

    /// The first word.
    pub fn base(&self) -> *mut u64 {
        self.map.base().cast()
    }
    /// In bytes.
    pub fn size(&self) -> usize {
        self.map.size()
    }
    /// Lets the system move and swap its pages.
    pub fn unlock(&mut self) {
        self.map.unlock();
        self.locked = false;
    }
    /// Its pages stay where they are when this process forks: children do not get it.
    pub fn keep_from_children(&self) {
        self.map.keep_from_children();
    }
    /// Takes the right to write away, for good.
    ///
    /// # Errors
    /// The system refuses.
    pub fn protect(&mut self) -> std::io::Result<()> {
        self.map.protect()
    }
    /// Can the system not swap it out?
    pub fn locked(&self) -> bool {
        self.locked
    }

    /// Empties all caches of it, if this processor allows programs to do so; says whether it does.
    pub fn flush(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_mm_clflush, _mm_mfence};
            for line in (0..self.size()).step_by(LINE) {
                // SAFETY: `line` is within the mapping, and the instruction exists where it is
                // used.
                unsafe {
                    let place = self.base().byte_add(line);
                    if self.flush_at_once {
                        core::arch::asm!("clflushopt [{}]", in(reg) place, options(nostack, preserves_flags));
                    } else {
                        _mm_clflush(place.cast());
                    }
                }
            }
            // SAFETY: part of x86-64.
            unsafe { _mm_mfence() };
            true
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// Does this processor flush lines without waiting for each other (CPUID leaf 7, EBX bit 23)?
#[cfg(target_arch = "x86_64")]
fn has_clflushopt() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    // SAFETY: every x86-64 has CPUID; leaf 7 is asked for only where there is one.
    #[allow(unused_unsafe, reason = "these became safe functions in a later Rust")]
    unsafe {
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 23 & 1 == 1
    }
}

fn cannot_map(size: Bytes, e: &std::io::Error) -> Error {
    Error::new(format!("cannot map {size} of memory: {e}")).remedy("free memory, or ask for less")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_there_and_writable_to_its_end() {
        let area = Area::map(Bytes::from_kib(20)).unwrap();
        let words = area.size() / 8;
        // SAFETY: within the mapping.
        unsafe {
            area.base().add(words - 1).write_volatile(7);
            area.flush();
            assert_eq!(area.base().add(words - 1).read_volatile(), 7);
        }
    }

    #[test]
    fn large_memory_is_aligned_there_and_told() {
        let area = Area::map_large(Bytes::from_kib(100)).unwrap();
        assert_eq!((area.size(), area.base() as usize % LARGE), (LARGE, 0));
        // SAFETY: within the mapping.
        unsafe { area.base().add(LARGE / 8 - 1).write_volatile(7) };
        let large = area.in_large_pages();
        assert!(
            large == Bytes::new(0) || large == Bytes::from_mib(2),
            "{large}"
        );
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        assert!(Area::map(Bytes::new(0)).is_err());
        let e = Area::map(Bytes::new(1 << 60)).unwrap_err().to_string();
        assert!(e.contains("cannot map"), "{e}");
    }
    #[test]
    fn more_than_a_group_may_take_is_refused_before_it_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "0::/a/b\n");
        write(
            "proc/self/mountinfo",
            "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
        );
        write(
            "proc/meminfo",
            "MemTotal: 999999 kB\nMemAvailable:   204800 kB\n",
        );
        write("sys/fs/cgroup/a/memory.max", "67108864\n");
        write("sys/fs/cgroup/a/memory.current", "33554432\n");
        write(
            "sys/fs/cgroup/a/memory.stat",
            "anon 1\ninactive_file 16777216\n",
        );
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        let tree = Tree::new(root.path());
        assert!(check_free_in(&tree, Bytes::from_mib(48)).is_ok());
        let e = check_free_in(&tree, Bytes::from_mib(49))
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("48MiB are left for the control group") && e.contains("/a"),
            "{e}"
        );
        write("sys/fs/cgroup/a/memory.max", "max\n");
        assert!(check_free_in(&tree, Bytes::from_mib(200)).is_ok());
        let e = check_free_in(&tree, Bytes::from_mib(201))
            .unwrap_err()
            .to_string();
        assert!(e.contains("200MiB are left on this machine"), "{e}");
    }
}
