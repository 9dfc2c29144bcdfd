//! Clocks of processor time of other threads and processes (clock_getcpuclockid(3)), for which
//! `rustix` has no name.

/// The processor time that a thread of this process has used, in nanoseconds; 0 where it has gone.
pub fn of_thread(thread: i32) -> u64 {
    // The number of such a clock, as `include/linux/posix-timers_types.h` builds it: bit 2 says
    // thread, the value 2 in the lowest two bits says the scheduler's clock.
    nanos(!thread << 3 | 6)
}

/// The processor time that a process has used with all its threads, in nanoseconds; 0 where it has
/// gone.
pub fn of_process(process: i32) -> u64 {
    // As in `of_thread`, without the bit for a thread.
    nanos(!process << 3 | 2)
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a place for the answer that lives through the call; it stays zero where the
    // call fails.
    unsafe { libc::clock_gettime(clock, &mut t) };
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_used_is_counted_and_what_has_gone_has_none() {
        let this = rustix::thread::gettid().as_raw_nonzero().get();
        let before = of_thread(this);
        while of_thread(this) < before + 1_000_000 {}
        assert!(of_process(std::process::id() as i32) >= of_thread(this));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(of_process(child.id() as i32), 0);
    }
}
