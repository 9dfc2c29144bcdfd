//! Leases on files (fcntl(2), `F_SETLEASE`).

use std::os::fd::{AsFd, AsRawFd};

/// Whether this is the only open file description of its file, and no mapping holds another one.
///
/// The kernel grants a lease for writing in exactly that case. The lease is given back at once.
/// Whoever opens the file between the two calls waits for as long, and the holder of the lease gets
/// `SIGIO`: a process that calls this should ignore that signal ([`crate::signal::ignore`]).
pub fn is_alone(file: impl AsFd) -> bool {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: calls without pointers, on a descriptor that is borrowed and so stays open.
    unsafe {
        let alone = libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if alone {
            libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK);
        }
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_file_that_is_open_twice_is_not_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let first = File::create(&path).unwrap();
        assert!(is_alone(&first));
        let second = File::open(&path).unwrap();
        assert!(!is_alone(&first));
        drop(second);
        assert!(is_alone(&first));
    }
}
