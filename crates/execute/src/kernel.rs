//! What the engine asks of the kernel: priorities, affinities and clocks of its threads, futexes,
//! signals to one thread.
//!
//! Plain calls with plain answers; what they mean together is in [`crate::domain`]. Linux 5.10 and
//! later, any processor.
//!
//! Priorities, all of `SCHED_FIFO`: the watchdog and who notes standstills above the dispatchers,
//! these above [`LISTENER`] and [`RUN`] (a job that was chosen), this above [`SENTINEL`] and
//! [`WAIT`] (a job that was chosen before and is not now). Below threaded interrupt handlers (50),
//! so that disks and networks live.

use machine::realtime::{self, Priority};
use model::{CpuId, Duration};
use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use rustix::thread::futex::{self, Flags};
use rustix::thread::{ClockId, CpuSet};
use rustix::time::{Timespec, clock_gettime};
use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::AtomicU32;

/// The priority of dispatchers.
pub const DISPATCHER: Priority = realtime::HIGHEST;
/// The priority of the listener: for a moment above jobs, whenever something releases one.
pub const LISTENER: i32 = 96;
/// The priority of a job that was chosen.
pub const RUN: i32 = 40;
/// The priority of sentinels: a sentinel runs where the program that was chosen does not want its
/// processor.
pub const SENTINEL: i32 = 39;
/// The priority of a job that was preempted.
pub const WAIT: i32 = 38;

/// Processors that a thread may run on, a bit each.
pub type Processors = [u64; CpuSet::MAX_CPU / 64];

/// A thread of this process or another, as the kernel numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread(pub i32);

impl Thread {
    /// The calling thread.
    pub fn current() -> Self {
        Thread(rustix::thread::gettid().as_raw_nonzero().get())
    }

    fn schedule(self, policy: libc::c_int, priority: i32) -> io::Result<()> {
        sys::scheduling::set(self.0, policy, priority)
    }

    /// Gives it a priority of `SCHED_FIFO`. What it starts does not inherit it.
    ///
    /// # Errors
    /// No right, or no such thread.
    pub fn raise(self, priority: i32) -> io::Result<()> {
        self.schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
    }

    /// Gives it a priority that what it starts inherits, and of `SCHED_RR`: threads of one program
    /// share its processor, so that one that spins for another gets what it waits for.
    ///
    /// # Errors
    /// No right, or no such thread.
    pub fn raise_with_heirs(self, priority: i32) -> io::Result<()> {
        self.schedule(libc::SCHED_RR, priority)
    }

    /// Makes it an ordinary thread.
    ///
    /// # Errors
    /// No such thread.
    pub fn lower(self) -> io::Result<()> {
        // Without the right to it the mark "children start unprivileged" cannot be taken off again:
        // then it stays.
        self.schedule(libc::SCHED_OTHER, 0)
            .or_else(|_| self.schedule(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0))
    }

    /// Lets it run only where no other thread wants to.
    ///
    /// # Errors
    /// No such thread.
    pub fn idle(self) -> io::Result<()> {
        self.schedule(libc::SCHED_IDLE, 0)
            .or_else(|_| self.schedule(libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK, 0))
    }

    /// Its policy and priority as the kernel numbers them.
    ///
    /// # Errors
    /// No such thread.
    pub fn scheduling(self) -> io::Result<(i32, i32)> {
        let (policy, priority) = sys::scheduling::get(self.0)?;
        Ok((policy & !libc::SCHED_RESET_ON_FORK, priority))
    }

    /// Lets it run on one processor only. It has left every other one when this returns.
    ///
    /// # Errors
    /// No such thread or processor.
    pub fn pin(self, cpu: CpuId) -> io::Result<()> {
        self.confine(&[cpu])
    }

    /// Lets it run on these processors only. It has left every other one when this returns. Takes
    /// no memory.
    ///
    /// # Errors
    /// No such thread or processor.
    pub fn confine(self, cpus: &[CpuId]) -> io::Result<()> {
        let mut set = CpuSet::new();
        for cpu in cpus {
            if cpu.index() >= CpuSet::MAX_CPU {
                return Err(Errno::INVAL.into());
            }
            set.set(cpu.index());
        }
        Ok(rustix::thread::sched_setaffinity(self.pid(), &set)?)
    }

    /// The processors that it may run on.
    ///
    /// # Errors
    /// No such thread, or a machine with more than 1024 processors.
    pub fn processors(self) -> io::Result<Processors> {
        let set = rustix::thread::sched_getaffinity(self.pid())?;
        let bit = |cpu: usize| u64::from(set.is_set(cpu)) << (cpu % 64);
        Ok(std::array::from_fn(|word| {
            (word * 64..(word + 1) * 64).map(bit).sum()
        }))
    }

    /// Lets it run on these processors. Takes no memory.
    ///
    /// # Errors
    /// No such thread, or none of these processors.
    pub fn free(self, processors: &Processors) -> io::Result<()> {
        let mut set = CpuSet::new();
        for cpu in 0..CpuSet::MAX_CPU {
            if processors[cpu / 64] >> (cpu % 64) & 1 == 1 {
                set.set(cpu);
            }
        }
        Ok(rustix::thread::sched_setaffinity(self.pid(), &set)?)
    }

    /// Sends a signal to this thread of the calling process.
    ///
    /// # Errors
    /// No such thread.
    pub fn signal(self, signal: i32) -> io::Result<()> {
        sys::signal::send_to_thread(self.0, signal)
    }

    /// As `rustix` has it; the number 0 is the calling thread.
    fn pid(self) -> Option<Pid> {
        Pid::from_raw(self.0)
    }

    /// The processor time that it has used.
    pub fn time(self) -> Duration {
        Duration::from_nanos(sys::clock::of_thread(self.0))
    }
}

/// Sends a signal to a process. It fails only where the process has gone or is somebody else's:
/// then nobody is told. A signal of 0, or a number that is no process's, sends nothing.
pub fn kill(process: i32, signal: i32) {
    if let (Some(process), Some(signal)) = (
        Pid::from_raw(process.max(0)),
        Signal::from_named_raw(signal),
    ) {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// As [`kill`], to all processes of a group.
pub fn kill_group(group: i32, signal: i32) {
    if let (Some(group), Some(signal)) =
        (Pid::from_raw(group.max(0)), Signal::from_named_raw(signal))
    {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Waits for the end of a child. Its status is nobody's concern.
pub fn wait_for(child: i32) {
    // Without a number any child would do.
    if let Some(child) = Pid::from_raw(child.max(0)) {
        let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
    }
}

/// The parent of this process; 0 where it is of a number space that this process does not see.
pub fn parent() -> i32 {
    Pid::as_raw(rustix::process::getppid())
}

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock that timers of the kernel are set by.
#[inline]
pub fn monotonic() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// Sleeps while the word is `seen`, until it is woken, or until a moment of [`monotonic`]. May come
/// back early.
pub fn futex_wait(word: &AtomicU32, seen: u32, until: Option<u64>) {
    let time = until.map(timespec);
    // Every failure (the word changed, a signal came, the time is over) means the same to callers:
    // look again.
    let _ = futex::wait_bitset(word, Flags::PRIVATE, seen, time.as_ref(), NonZeroU32::MAX);
}

/// Wakes who sleeps on the word.
pub fn futex_wake(word: &AtomicU32) {
    // It fails for a word that cannot be read, which a reference can.
    let _ = futex::wake(word, Flags::PRIVATE, i32::MAX as u32);
}

/// Waits until one of these descriptors is ready, or for so long, in nanoseconds. May come back
/// early.
pub fn poll(descriptors: &mut [PollFd<'_>], length: Option<u64>) {
    let time = length.map(timespec);
    // Every failure means the same to callers: look again.
    let _ = rustix::event::poll(descriptors, time.as_ref());
}

/// Sleeps until a moment of [`monotonic`]. May come back early.
pub fn sleep_until(reading: u64) {
    // A signal that interrupts it only lets the caller look early.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(reading));
}

/// Lets the timers of the calling thread fire as exactly as they can.
pub fn without_timer_slack() {
    // A kernel that refuses it keeps its default.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
