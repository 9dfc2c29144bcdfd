//! Taking away what a run has made in the file system. Takes no memory: for the watchdog after its
//! fork.

use crate::kernel;

/// Device and inode in front of a path, as 16 digits of base 16 each.
pub(super) const IDENTITY: usize = 32;

/// Takes away what such a text, which ends with a zero, names: if it is still that file, or
/// whatever is there where device and inode are zero. False: it is still there. Takes no memory.
pub(crate) fn remove(text: &[u8]) -> bool {
    let Some((identity, path)) = text.split_at_checked(IDENTITY) else {
        return true;
    };
    let number = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok()
    };
    let (Some(device), Some(inode)) = (number(&identity[..16]), number(&identity[16..])) else {
        return true;
    };
    if path.last() != Some(&0) || path.len() < 2 {
        return true;
    }
    // SAFETY: an all-zero `stat` is valid, and the kernel fills it in; the path ends with a zero
    // and lives through the calls.
    unsafe {
        let mut there: libc::stat = std::mem::zeroed();
        let found = libc::lstat(path.as_ptr().cast(), &mut there) == 0;
        let is_it =
            (device, inode) == (0, 0) || (device, inode) == (there.st_dev as u64, there.st_ino as u64);
        if !found || !is_it {
            return true;
        }
        if there.st_mode & libc::S_IFMT != libc::S_IFDIR {
            return libc::unlink(path.as_ptr().cast()) == 0;
        }
        // Buffers of the kernel are in use until the last reader has let go of them, and a control
        // group until all have ended in it.
        libc::rmdir(path.as_ptr().cast()) == 0 || *libc::__errno_location() != libc::EBUSY
    }
}

/// Does something until it is done, for a second at most. Takes no memory.
pub(crate) fn patiently(is_done: impl Fn() -> bool) -> bool {
    for _ in 0..1_000 {
        if is_done() {
            return true;
        }
        sleep_until(kernel::monotonic() + 1_000_000);
    }
    is_done()
}

/// Sleeps until a reading of the clock.
pub(super) fn sleep_until(reading: u64) {
    let at = libc::timespec {
        tv_sec: (reading / 1_000_000_000) as libc::time_t,
        tv_nsec: (reading % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `at` lives through the call. Signals are blocked; where it comes back early the next
    // look comes early.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &at,
            std::ptr::null_mut(),
        )
    };
}
