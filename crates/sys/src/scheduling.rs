//! Scheduling policies and priorities of threads (sched(7)).

use crate::check;
use std::io;

/// Gives a thread a policy (`SCHED_…`, with `SCHED_RESET_ON_FORK` or without) and a priority within
/// it. `thread`: its number; 0 is the calling one.
///
/// # Errors
/// No right to it (`EPERM`), no such thread (`ESRCH`), no such policy or priority (`EINVAL`).
pub fn set(thread: i32, policy: i32, priority: i32) -> io::Result<()> {
    // SAFETY: all zero is a valid `sched_param`, also of C libraries that add fields to it.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: `param` lives through the call, which only reads it.
    check(unsafe { libc::sched_setscheduler(thread, policy, &param) } != 0)
}

/// `SCHED_DEADLINE` of the kernel, which not every C library names.
const DEADLINE: i32 = 6;

/// `struct sched_attr` of the kernel, in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Makes the calling thread one of `SCHED_DEADLINE`, which goes before all fixed priorities: so much
/// of each period, all in nanoseconds. What it starts is ordinary.
///
/// # Errors
/// No right to it, or an affinity of its own (`EPERM`); processors are promised to others (`EBUSY`);
/// no such times (`EINVAL`).
pub fn set_deadline(runtime: u64, period: u64) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: DEADLINE as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: 0,
        priority: 0,
        runtime,
        deadline: period,
        period,
    };
    // SAFETY: `attributes` has the size that it names and lives through the call, which only reads it.
    let failed = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(failed != 0)
}

/// Policy and priority of a thread, the policy as [`set`] takes it. 0 is the calling thread.
///
/// # Errors
/// No such thread (`ESRCH`).
pub fn get(thread: i32) -> io::Result<(i32, i32)> {
    // SAFETY: all zero is a valid `sched_param`.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `param` is a place for the answer that lives through the calls.
    let (policy, failed) = unsafe {
        (
            libc::sched_getscheduler(thread),
            libc::sched_getparam(thread, &mut param),
        )
    };
    check(policy < 0 || failed != 0)?;
    Ok((policy, param.sched_priority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_taken_or_refused_with_a_reason() {
        std::thread::spawn(|| {
            // A runtime that does not fit is never taken, whatever the rights are.
            assert!(set_deadline(2_000_000, 1_000_000).is_err());
            match set_deadline(200_000, 10_000_000) {
                Ok(()) => assert_eq!(get(0).unwrap().0 & 0xff, DEADLINE),
                Err(e) => assert!(
                    matches!(e.raw_os_error(), Some(libc::EPERM | libc::EBUSY)),
                    "{e}"
                ),
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_policy_that_was_set_is_told() {
        std::thread::spawn(|| {
            assert_eq!(get(0).unwrap(), (libc::SCHED_OTHER, 0));
            set(0, libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK, 0).unwrap();
            let (policy, priority) = get(0).unwrap();
            assert_eq!(
                (policy, priority),
                (libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK, 0)
            );
            let e = set(0, libc::SCHED_BATCH, 1).unwrap_err();
            assert_eq!(e.raw_os_error(), Some(libc::EINVAL));
        })
        .join()
        .unwrap();
        assert!(get(i32::MAX).is_err());
    }
}
