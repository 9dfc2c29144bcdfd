//! What the engine asks of the kernel: priorities, affinities and clocks of its threads, futexes, signals to one thread.
//!
//! Plain calls with plain answers; what they mean together is in [`crate::domain`]. Linux 5.10 and later, any processor.
//!
//! Priorities, all of `SCHED_FIFO`: the watchdog and who notes standstills above the dispatchers, these above [`LISTENER`] and [`RUN`] (a job that was chosen), this
//! above [`SENTINEL`] and [`WAIT`] (a job that was chosen before and is not now). Below threaded interrupt handlers (50), so that
//! disks and networks live.

use machine::realtime::{self, Priority};
use model::{CpuId, Duration};
use std::io;
use std::sync::atomic::AtomicU32;

/// The priority of dispatchers.
pub const DISPATCHER: Priority = realtime::HIGHEST;
/// The priority of the listener: for a moment above jobs, whenever something releases one.
pub const LISTENER: i32 = 96;
/// The priority of a job that was chosen.
pub const RUN: i32 = 40;
/// The priority of sentinels: a sentinel runs where the program that was chosen does not want its processor.
pub const SENTINEL: i32 = 39;
/// The priority of a job that was preempted.
pub const WAIT: i32 = 38;

/// Processors that a thread may run on, a bit each, as the kernel has them.
pub type Processors = [u64; 16];

/// A thread of this process or another, as the kernel numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread(pub libc::pid_t);

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Thread {
    /// The calling thread.
    pub fn current() -> Self {
        // SAFETY: takes no argument, cannot fail.
        Thread(unsafe { libc::gettid() })
    }

    fn schedule(self, policy: libc::c_int, priority: i32) -> io::Result<()> {
        // SAFETY: an all-zero `sched_param` is valid on every C library that adds fields to it.
        let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
        param.sched_priority = priority;
        // SAFETY: `param` lives through the call.
        check(unsafe { libc::sched_setscheduler(self.0, policy, &param) })
    }

    /// Gives it a priority of `SCHED_FIFO`. What it starts does not inherit it.
    ///
    /// # Errors
    /// No right, or no such thread.
    pub fn raise(self, priority: i32) -> io::Result<()> {
        self.schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
    }

    /// Gives it a priority that what it starts inherits, and of `SCHED_RR`: threads of one program share its processor, so that
    /// one that spins for another gets what it waits for.
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
        // Without the right to it the mark "children start unprivileged" cannot be taken off again: then it stays.
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
        // SAFETY: an all-zero `sched_param` is valid; the kernel fills it in.
        let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: plain calls, `param` lives through them.
        let (policy, done) = unsafe {
            (
                libc::sched_getscheduler(self.0),
                libc::sched_getparam(self.0, &mut param),
            )
        };
        if policy < 0 || done != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((policy & !libc::SCHED_RESET_ON_FORK, param.sched_priority))
    }

    /// Lets it run on one processor only. It has left every other one when this returns.
    ///
    /// # Errors
    /// No such thread or processor.
    pub fn pin(self, cpu: CpuId) -> io::Result<()> {
        self.confine(&[cpu])
    }

    /// Lets it run on these processors only. It has left every other one when this returns. Takes no memory.
    ///
    /// # Errors
    /// No such thread or processor.
    pub fn confine(self, cpus: &[CpuId]) -> io::Result<()> {
        if cpus.iter().any(|cpu| cpu.0 >= libc::CPU_SETSIZE as u32) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: an all-zero set is an empty one; the indices are below CPU_SETSIZE.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            for cpu in cpus {
                libc::CPU_SET(cpu.index(), &mut set);
            }
            set
        };
        // SAFETY: the size is that of `set`, which lives through the call.
        check(unsafe { libc::sched_setaffinity(self.0, size_of_val(&set), &set) })
    }

    /// The processors that it may run on.
    ///
    /// # Errors
    /// No such thread, or a machine with more than 1024 processors.
    pub fn processors(self) -> io::Result<Processors> {
        let mut found = Processors::default();
        // SAFETY: the place is as large as is said, lives through the call and may hold any bits.
        check(unsafe { libc::sched_getaffinity(self.0, size_of::<Processors>(), found.as_mut_ptr().cast()) })
            .map(|()| found)
    }

    /// Lets it run on these processors. Takes no memory.
    ///
    /// # Errors
    /// No such thread, or none of these processors.
    pub fn free(self, processors: &Processors) -> io::Result<()> {
        // SAFETY: as large as is said; it lives through the call.
        check(unsafe { libc::sched_setaffinity(self.0, size_of::<Processors>(), processors.as_ptr().cast()) })
    }

    /// Sends a signal to this thread of the calling process.
    ///
    /// # Errors
    /// No such thread.
    pub fn signal(self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: a call without pointers.
        match unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.0, signal) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The processor time that it has used.
    pub fn time(self) -> Duration {
        // The clock of a thread, as `include/linux/posix-timers_types.h` builds its number: bit 2 says thread, 2 says
        // scheduler's clock.
        Duration::from_nanos(nanos(!self.0 << 3 | 6))
    }
}

/// The processor time that a process has used with all its threads, in nanoseconds; 0 where it has gone.
pub fn process_time(process: libc::pid_t) -> u64 {
    // As in `Thread::time`, without the bit for a thread.
    nanos(!process << 3 | 2)
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid place for the answer; where the call fails it stays zero.
    unsafe { libc::clock_gettime(clock, &mut t) };
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock that timers of the kernel are set by.
#[inline]
pub fn monotonic() -> u64 {
    nanos(libc::CLOCK_MONOTONIC)
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// Sleeps while the word is `seen`, until it is woken, or until a moment of [`monotonic`]. May come back early.
pub fn futex_wait(word: &AtomicU32, seen: u32, until: Option<u64>) {
    let time = until.map(timespec);
    let at = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time live through the call. Every failure (the word changed, a signal came, the time is
    // over) means the same to callers: look again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            seen,
            at,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes who sleeps on the word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Waits until one of these descriptors is ready, or for so long, in nanoseconds. May come back early.
pub fn poll(descriptors: &mut [libc::pollfd], length: Option<u64>) {
    let time = length.map(timespec);
    let at = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the list is as long as is said; it and the time live through the call. Every failure means the same to callers:
    // look again.
    unsafe {
        libc::ppoll(
            descriptors.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            at,
            std::ptr::null(),
        );
    }
}

/// Lets the timers of the calling thread fire as exactly as they can.
pub fn without_timer_slack() {
    // SAFETY: a call without pointers; a kernel that refuses it keeps its default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}
