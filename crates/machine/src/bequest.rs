//! What a process takes away even where it ends without unwinding: when memory runs out, or at the
//! second Ctrl-C.
//!
//! What a run has changed is set right by those that watch over it from outside. A command over
//! which nobody watches leaves word here of the one file that nobody else would take away.

use rustix::fs::{AtFlags, statat, unlinkat};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A file that is taken away when the process ends without unwinding, as long as this lives. A
/// process has one at a time: a second one is not taken away.
#[derive(Debug)]
pub struct Bequest(*mut Left);

// SAFETY: the pointer is only compared with that of `LEFT`. What it points to belongs to whoever
// takes it out there, and a descriptor and a text may be dropped by any thread.
unsafe impl Send for Bequest {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Bequest {}

#[derive(Debug)]
struct Left {
    dir: OwnedFd,
    name: CString,
    /// Another file under the same name stays.
    inode: u64,
}

/// The file that is taken away, or null. Whoever takes the pointer out owns what it points to.
static LEFT: AtomicPtr<Left> = AtomicPtr::new(null_mut());

impl Bequest {
    /// The file of this name and inode in a directory.
    pub fn new(dir: OwnedFd, name: CString, inode: u64) -> Self {
        let left = Box::into_raw(Box::new(Left { dir, name, inode }));
        let (before, ordering) = (null_mut(), Ordering::AcqRel);
        match LEFT.compare_exchange(before, left, ordering, Ordering::Acquire) {
            Ok(_) => Bequest(left),
            Err(_) => {
                // SAFETY: it was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(left) });
                Bequest(null_mut())
            }
        }
    }
}

impl Drop for Bequest {
    fn drop(&mut self) {
        let (after, ordering) = (null_mut(), Ordering::AcqRel);
        let is_here = !self.0.is_null();
        if is_here
            && LEFT.compare_exchange(self.0, after, ordering, Ordering::Acquire) == Ok(self.0)
        {
            // SAFETY: it was made by `Box::into_raw`, and this has taken it out.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

/// Takes the file away that was left, if there is one. Allocates nothing, frees nothing, waits for
/// nobody: a handler of a signal may do it.
pub(crate) fn execute() {
    // Its memory ends with the process.
    carry_out();
}

/// What was left, which is the caller's now, or null.
fn carry_out() -> *mut Left {
    let taken = LEFT.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: it is null or was made by `Box::into_raw`; this has taken it out, and does not free
    // it.
    if let Some(left) = unsafe { taken.as_ref() } {
        let there = statat(&left.dir, &left.name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|there| there.st_ino == left.inode) {
            // Nothing more can be done about it here.
            let _ = unlinkat(&left.dir, &left.name, AtFlags::empty());
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    /// One test, as all of them would share the one file of the process.
    #[test]
    fn the_file_that_was_left_is_taken_away_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            let inode = File::create(&path).unwrap().metadata().unwrap().ino();
            (path, inode)
        };
        let bequest = |name: &str, inode| {
            let opened = File::open(dir.path()).unwrap();
            Bequest::new(opened.into(), CString::new(name).unwrap(), inode)
        };
        let carry_out = || {
            let left = super::carry_out();
            if !left.is_null() {
                // SAFETY: it was made by `Box::into_raw`, and is this caller's.
                drop(unsafe { Box::from_raw(left) });
            }
        };
        let (first, inode) = make("first");
        let (second, other) = make("second");
        let kept = bequest("first", inode);
        // There is one already.
        drop(bequest("second", other));
        drop(kept);
        carry_out();
        assert!(first.exists(), "whose bequest has gone stays");

        let kept = bequest("first", other);
        carry_out();
        assert!(first.exists(), "another file of that name stays");
        drop(kept);

        let kept = bequest("second", other);
        carry_out();
        assert!(!second.exists());
        drop(kept);
    }
}
