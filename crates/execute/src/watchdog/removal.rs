//! Taking away what a run has made in the file system. Takes no memory: for the watchdog after its
//! fork.

use crate::kernel;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::CStr;

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
    let Ok(path) = CStr::from_bytes_until_nul(path) else {
        return true;
    };
    let Ok(there) = rustix::fs::lstat(path) else {
        return true;
    };
    if (device, inode) != (0, 0) && (device, inode) != (there.st_dev, there.st_ino) {
        return true;
    }
    if FileType::from_raw_mode(there.st_mode) != FileType::Directory {
        return rustix::fs::unlink(path).is_ok();
    }
    // Buffers of the kernel are in use until the last reader has let go of them, and a control
    // group until all have ended in it.
    rustix::fs::rmdir(path) != Err(Errno::BUSY)
}

/// Does something until it is done, for a second at most. Takes no memory.
pub(crate) fn patiently(is_done: impl Fn() -> bool) -> bool {
    for _ in 0..1_000 {
        if is_done() {
            return true;
        }
        kernel::sleep_until(kernel::monotonic() + 1_000_000);
    }
    is_done()
}
