//! A control group of its own for what a run starts (version 2): the kernel knows everybody who is
//! in it, whatever its session and environment are, and kills all of them at once (`cgroup.kill`,
//! Linux 5.14 and later).
//!
//! No controller is turned on in it, so that nobody in it gets another share of anything. Source:
//! the kernel's `cgroup-v2.rst`.

use crate::cgroup;
use crate::tree::Tree;
use rustix::fs::Access;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A control group; gone when this is, once nobody is in it.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    procs: File,
    kill: File,
}

impl Group {
    /// Makes one below the group of this process. `None`: there is no version 2 here, this process
    /// may not write to it, or the kernel cannot kill a group.
    pub fn new(tree: &Tree, name: &str) -> Option<Self> {
        let above = PathBuf::from(cgroup::unified(tree)?);
        // Whoever moves a process has to have a right to the group that both groups lie in.
        rustix::fs::access(above.join("cgroup.procs"), Access::WRITE_OK).ok()?;
        let path = above.join(name);
        std::fs::create_dir(&path).ok()?;
        let open = |file: &str| {
            OpenOptions::new()
                .read(file == PROCS)
                .write(true)
                .open(path.join(file))
        };
        match (open(PROCS), open("cgroup.kill")) {
            (Ok(procs), Ok(kill)) => Some(Group { path, procs, kill }),
            _ => {
                // A group of nobody; where it stays, it does no harm.
                let _ = std::fs::remove_dir(&path);
                None
            }
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who writes `0` here comes in, with all that it starts from then on.
    pub fn entrance(&self) -> BorrowedFd<'_> {
        self.procs.as_fd()
    }

    /// Who writes `1` here kills all of them. Needs no memory, and may be done by a forked process.
    pub fn executioner(&self) -> BorrowedFd<'_> {
        self.kill.as_fd()
    }

    /// The processes that are in it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        let (mut file, mut text) = (&self.procs, String::new());
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Takes it away, if nobody is in it.
    pub fn remove(&self) {
        // It may be gone already, or hold a process that the kernel cannot end.
        let _ = std::fs::remove_dir(&self.path);
    }

    /// Kills everybody who is in it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn kill(&self) -> io::Result<()> {
        (&self.kill).write_all(b"1")
    }
}

const PROCS: &str = "cgroup.procs";

/// Kills whoever is in the group at this path, which somebody else has made, and takes it away.
/// True: it is gone.
pub fn clear(path: &Path) -> bool {
    for _ in 0..200 {
        match std::fs::remove_dir(path) {
            Ok(()) => return true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return true,
            // Somebody is in it; whether killing works shows at the next turn.
            Err(_) => drop(std::fs::write(path.join("cgroup.kill"), "1")),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove();
    }
}
