//! Several of this program side by side: a trial that changes settings of the machine is alone.
//!
//! Namespaces hide files and sockets of one from the other, not what the kernel has once for all.
//! The locks are on the two programs (flock(2)), which all who try the same command have in common:
//! no file has to be made, and the kernel lets go of them however a process ends.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::Path;

/// The locks, open.
#[derive(Debug)]
pub struct Turns {
    /// Held for a moment by each who comes: who wants to be alone keeps the others from coming.
    gate: File,
    settings: File,
}

/// A turn; dropping it ends it.
#[derive(Debug)]
pub struct Turn<'a>(&'a Turns);

impl Turns {
    /// For trials of this command.
    ///
    /// # Errors
    /// The command, or this program, cannot be read.
    pub fn open(warmset: &Path) -> io::Result<Self> {
        Ok(Turns {
            gate: File::open(std::env::current_exe()?)?,
            settings: File::open(warmset)?,
        })
    }

    /// Waits for a turn, `alone` or with others.
    ///
    /// # Errors
    /// The kernel has no memory for a lock.
    pub fn take(&self, alone: bool) -> io::Result<Turn<'_>> {
        lock(&self.gate, FlockOperation::LockExclusive)?;
        let how = match alone {
            true => FlockOperation::LockExclusive,
            false => FlockOperation::LockShared,
        };
        lock(&self.settings, how)?;
        flock(&self.gate, FlockOperation::Unlock)?;
        Ok(Turn(self))
    }
}

/// Ctrl-C does not end the wait, which is as long as the others' trials.
fn lock(file: &File, how: FlockOperation) -> rustix::io::Result<()> {
    loop {
        match flock(file, how) {
            Err(rustix::io::Errno::INTR) => {}
            done => return done,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Where it is not let go of the next turn of this process begins with it.
        let _ = flock(&self.0.settings, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn others_share_a_turn_and_wait_for_one_who_is_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Turns::open(file.path()).unwrap();
        let (one, two) = (open(), open());
        let shared = one.take(false).unwrap();
        drop(two.take(false).unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let alone = two.take(true).unwrap();
                tell.send(()).unwrap();
                drop(alone);
            });
            assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
            drop(shared);
            told.recv().unwrap();
        });
        drop(one.take(false).unwrap());
    }
}
