//! Real-time rights: priorities that are lowered again, pinning, locked memory, and a watchdog over
//! it all.
//!
//! The highest priority that lets the system live: Linux's own per-processor threads (stop,
//! migration) run above every priority; threaded interrupt handlers run at 50; 99 is left to the
//! system. [`WATCHDOG`] is 98, and what is watched runs at [`HIGHEST`], 97 (000 §4.1 runs its
//! measuring task at the highest priority). Assumes that the caller sleeps now and then: without it
//! the kernel stops real-time threads for 50 ms of each second (`sched_rt_runtime_us`, or the fair
//! server of newer kernels), see [`crate::throttle`]. A process that is killed takes all of its
//! threads with it, so that no priority outlives it.

use model::{CpuId, CpuSet, Duration, Error, Result};
use rustix::mm::MlockAllFlags;
use rustix::thread::{ClockId, NanosleepRelativeResult, Timespec, clock_nanosleep_relative};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The priority of the watchdog.
pub const WATCHDOG: Priority = Priority(98);
/// The priority of what only has to come before ordinary programs.
pub const LOWEST: Priority = Priority(1);
/// The highest priority for work.
pub const HIGHEST: Priority = Priority(97);

/// A priority of `SCHED_FIFO`, 1 to 99.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(i32);

impl Priority {
    /// `None` outside of 1 to 99.
    pub fn new(priority: i32) -> Option<Self> {
        (1..=99).contains(&priority).then_some(Priority(priority))
    }
    /// As a number.
    pub fn get(self) -> i32 {
        self.0
    }
}

/// A thread of this process, as the kernel numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ThreadId(i32);

impl ThreadId {
    /// The calling thread.
    pub fn current() -> Self {
        ThreadId(rustix::thread::gettid().as_raw_nonzero().get())
    }
}

/// A thread that runs at a real-time priority for as long as this value lives.
///
/// Dropping it, also while a panic unwinds, gives the thread back the scheduling that it had.
#[derive(Debug)]
pub struct Raised {
    thread: ThreadId,
    before: (i32, i32),
    // Raising and lowering belong to one thread.
    not_send: PhantomData<*const ()>,
}

/// Raises the calling thread to `SCHED_FIFO`. Threads that it starts meanwhile do not inherit the
/// priority.
///
/// # Errors
/// No right to do so; the remedy says how to get it.
pub fn raise(priority: Priority) -> Result<Raised> {
    raise_as(priority, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK)
}

/// As [`raise`], and threads that it starts meanwhile begin with the same priority, so that they
/// begin at once.
///
/// # Errors
/// No right to do so; the remedy says how to get it.
pub fn raise_with_threads(priority: Priority) -> Result<Raised> {
    raise_as(priority, libc::SCHED_FIFO)
}

fn raise_as(priority: Priority, policy: i32) -> Result<Raised> {
    let thread = ThreadId::current();
    let before = sys::scheduling::get(thread.0)
        .map_err(|e| Error::new(format!("cannot ask for the scheduling of this thread: {e}")))?;
    sys::scheduling::set(thread.0, policy, priority.get()).map_err(|e| {
        let cause = format!("no right to real-time priority {}", priority.get());
        match e.raw_os_error() {
            Some(libc::EPERM) => Error::new(cause).remedy(format!(
                "run as root, or `sudo setcap cap_sys_nice+ep` on the program, or allow `rtprio {}` in /etc/security/limits.conf",
                WATCHDOG.get()
            )),
            _ => Error::new(format!("{cause}: {e}"))
                .remedy("a container without real-time budget refuses it: see cpu.rt_runtime_us of its cgroup"),
        }
    })?;
    Ok(Raised {
        thread,
        before,
        not_send: PhantomData,
    })
}

impl Drop for Raised {
    fn drop(&mut self) {
        let (policy, priority) = self.before;
        // Without the right to it the mark "children start unprivileged" cannot be taken off again:
        // then it stays.
        let done = sys::scheduling::set(self.thread.0, policy, priority).or_else(|_| {
            sys::scheduling::set(self.thread.0, policy | libc::SCHED_RESET_ON_FORK, priority)
        });
        debug_assert!(done.is_ok(), "lowering a priority needs no right");
    }
}

/// The processors that the calling thread may run on.
///
/// # Errors
/// The kernel knows more processors than this program can name.
pub fn affinity() -> Result<CpuSet> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|e| {
        Error::new(format!(
            "cannot ask for the processors of this process: {e}"
        ))
    })?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .map(|cpu| CpuId(cpu as u32))
        .collect())
}

/// Lets the calling thread run on these processors only; it runs on one of them when this returns.
///
/// # Errors
/// None of them is online and permitted by the cpuset.
pub fn pin(cpus: &CpuSet) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus
        .iter()
        .filter(|c| c.index() < rustix::thread::CpuSet::MAX_CPU)
    {
        set.set(cpu.index());
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
        Error::new(format!("cannot run on processor {cpus}: {e}"))
            .remedy("choose processors that are online and in this process's cpuset")
    })
}

/// Moves the calling thread to one processor. As [`pin`], and cheap enough to do between two
/// samples.
///
/// # Errors
/// The processor is not online or not permitted.
pub fn pin_to(cpu: CpuId) -> std::io::Result<()> {
    if cpu.index() >= rustix::thread::CpuSet::MAX_CPU {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.index());
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// All memory of the process that exists now stays in memory for as long as this lives.
#[derive(Debug)]
pub struct LockedMemory(());

/// Locks the code, stacks and heaps that exist now; what is mapped later is locked by who maps it.
///
/// # Errors
/// The limit is too low; the remedy says how to raise it.
pub fn lock_memory() -> Result<LockedMemory> {
    match rustix::mm::mlockall(MlockAllFlags::CURRENT) {
        Ok(()) => Ok(LockedMemory(())),
        Err(e) => Err(Error::new(format!("cannot lock memory: {e}"))
            .remedy("run as root, or raise the limit with `ulimit -l unlimited`")),
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // Memory that others lock is locked by their own guards, page by page, which this would
        // undo: so it is taken once, by the one who measures. It fails only for want of a right
        // that locking needed too.
        let _ = rustix::mm::munlockall();
    }
}

/// How often the calling thread lost or gave away the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// It waited for something.
    pub voluntary: u64,
    /// Something took the processor from it.
    pub involuntary: u64,
}

/// The counts of the calling thread since it began.
pub fn switches() -> Switches {
    let (voluntary, involuntary) = sys::thread::switches();
    Switches {
        voluntary,
        involuntary,
    }
}

/// Sleeps for at least this long: the thread gives the processor away, also for a length of zero.
pub fn sleep(length: Duration) {
    let mut left = Timespec {
        tv_sec: (length.nanos() / 1_000_000_000) as i64,
        tv_nsec: (length.nanos() % 1_000_000_000).max(1) as _,
    };
    while let NanosleepRelativeResult::Interrupted(rest) =
        clock_nanosleep_relative(ClockId::Monotonic, &left)
    {
        left = rest;
    }
}

/// Watches over a real-time thread: without a heartbeat for too long it loses its priority, and the
/// system lives.
///
/// Runs as a thread of the same process at [`WATCHDOG`], so that it ends with it.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    beats: AtomicU64,
    end: AtomicBool,
    tripped: AtomicBool,
}

impl Watchdog {
    /// Starts to watch over the calling thread, which must then call [`Watchdog::beat`] at least
    /// every `limit`.
    ///
    /// # Errors
    /// No right to the watchdog's priority, or no thread to be had.
    pub fn over_this_thread(limit: Duration) -> Result<Self> {
        let watched = ThreadId::current();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let (report, ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                let raised = raise(WATCHDOG);
                let failed = raised.is_err();
                // The starter waits for this; it has gone only if it panicked, and then the answer
                // matters to nobody.
                let _ = report.send(raised.as_ref().map(|_| ()).map_err(Clone::clone));
                if !failed {
                    watch(&theirs, watched, limit);
                }
            })
            .map_err(|e| Error::new(format!("cannot start the watchdog: {e}")))?;
        let started = ready
            .recv()
            .unwrap_or_else(|_| Err(Error::new("the watchdog ended early")));
        let watchdog = Watchdog {
            shared,
            thread: Some(thread),
        };
        started.map(|()| watchdog)
    }

    /// The watched thread is alive and well.
    #[inline]
    pub fn beat(&self) {
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Was the thread taken for a runaway, and lowered?
    pub fn tripped(&self) -> bool {
        self.shared.tripped.load(Ordering::Relaxed)
    }
}

fn watch(shared: &Shared, watched: ThreadId, limit: Duration) {
    let step = std::time::Duration::from_nanos((limit.nanos() / 4).max(1));
    let (mut seen, mut missed) = (shared.beats.load(Ordering::Relaxed), 0);
    while !shared.end.load(Ordering::Relaxed) {
        std::thread::park_timeout(step);
        let beats = shared.beats.load(Ordering::Relaxed);
        missed = if beats == seen { missed + 1 } else { 0 };
        seen = beats;
        if missed >= 4 && !shared.end.load(Ordering::Relaxed) {
            shared.tripped.store(true, Ordering::Relaxed);
            // It fails only where the thread is gone.
            let _ = sys::scheduling::set(watched.0, libc::SCHED_OTHER, 0);
            return;
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A watchdog that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        std::thread::spawn(|| {
            let all = affinity().unwrap();
            for cpu in all.iter() {
                pin_to(cpu).unwrap();
                assert_eq!(affinity().unwrap(), [cpu].into_iter().collect());
                assert_eq!(crate::clock::current_cpu(), cpu);
            }
            pin(&all).unwrap();
            assert_eq!(affinity().unwrap(), all);
            assert!(pin(&CpuSet::new()).is_err());
            assert!(pin_to(CpuId(CpuSet::MAX_CPU)).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_sleep_gives_the_processor_away() {
        std::thread::spawn(|| {
            let before = switches().voluntary;
            sleep(Duration::ZERO);
            sleep(Duration::from_micros(100));
            assert!(switches().voluntary > before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn priorities_stay_within_what_linux_has() {
        assert_eq!(Priority::new(97), Some(HIGHEST));
        assert!(Priority::new(0).is_none() && Priority::new(100).is_none());
        assert!(HIGHEST < WATCHDOG);
    }
}
