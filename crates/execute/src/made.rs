//! What a run makes in the file system, FIFOs, sockets and the buffers of a witness, and that it
//! goes whatever happens to the run.
//!
//! It is noted in two places before it is made: on the watchdog's board, and in a record on disk.
//! Who takes it away: the run at its end; the watchdog of a run that was killed; where both were
//! killed, the next run, which knows the record by the number and the birth of a process that is
//! there no more.
//!
//! A thing is made under a name that nobody else gives, which has the process in it, and then gets
//! its own name if nothing is there (`link`, which never replaces). So it is known at every moment
//! what is this run's: what has such a name, and what is the same file as was made under it.
//!
//! Whoever takes away what others have made holds the lock of their record, and the record goes
//! last: nobody takes a file for one that was there before it.

use crate::watchdog::{BoardRef, patiently, remove};
use machine::process::Process;
use machine::records::Records;
use model::{Error, Result};
use rustix::fs::{CWD, FileType};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// How the names of records begin.
const PREFIX: &str = "made-";

/// What a run has made so far; taken away when dropped.
pub(crate) struct Made {
    board: BoardRef,
    /// The record, and where it is; none where there is no directory for it.
    record: Option<(File, PathBuf)>,
    things: Mutex<Vec<Thing>>,
    /// What sets this process apart from all that were before it.
    name: String,
}

/// A file by its place and by what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Thing {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Thing {
    fn at(path: &Path) -> io::Result<Self> {
        std::fs::symlink_metadata(path).map(|there| Thing {
            path: path.to_owned(),
            device: there.dev(),
            inode: there.ino(),
        })
    }

    /// Whatever is there: nobody else makes something of this name.
    fn named(path: &Path) -> Self {
        Thing {
            path: path.to_owned(),
            device: 0,
            inode: 0,
        }
    }

    /// As it stands on the board and in the record.
    fn text(&self) -> Vec<u8> {
        let mut text = format!("{:016x}{:016x}", self.device, self.inode).into_bytes();
        text.extend_from_slice(self.path.as_os_str().as_bytes());
        text.push(0);
        text
    }
}

/// Takes away what runs have left that were killed together with their watchdogs.
pub(crate) fn take_away_leftovers() {
    if let Ok(Some(records)) = Records::there() {
        take_away_leftovers_in(records.path());
    }
    // Those of recordings have the process in their names.
    machine::tracefs::take_away_what_is_left();
}

fn take_away_leftovers_in(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        let process = process.and_then(|p| p.parse::<Process>().ok());
        if process.is_some_and(Process::has_ended) {
            // It fails where somebody else does the same at this moment.
            let _ = take_away(&entry.path());
        }
    }
}

/// Takes away what a record names, and the record.
fn take_away(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    // Whoever has it takes everything away, and the record last.
    file.lock()?;
    if file.metadata()?.nlink() == 0 {
        return Ok(());
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut file, &mut text)?;
    // What has no end was being written when its process was killed, and not made yet.
    for thing in text.split_inclusive(|byte| *byte == 0) {
        patiently(|| remove(thing));
    }
    std::fs::remove_file(path)
}

impl Made {
    /// Nothing yet. What killed runs have left is taken away. Second: why there is no record, if
    /// so.
    ///
    /// # Errors
    /// This process cannot be told from others.
    pub fn new(board: BoardRef) -> Result<(Self, Option<Error>)> {
        take_away_leftovers();
        let name = Process::this()
            .ok_or_else(|| Error::new("this process is not in /proc").remedy("mount it there"))?
            .to_string();
        let opened = Records::of_this_user().and_then(|records| {
            let path = records.path().join(format!("{PREFIX}{name}"));
            let mut options = File::options();
            let options = options.append(true).create(true).mode(0o600);
            match options.open(&path) {
                Ok(file) => Ok((file, path)),
                Err(e) => Err(Error::io(&path, "note what this run makes", &e)),
            }
        });
        let (record, missing) = match opened {
            Ok(record) => (Some(record), None),
            Err(e) => (None, Some(e)),
        };
        if let Some((_, path)) = &record {
            board.has_record(path);
        }
        let made = Made {
            board,
            record,
            things: Mutex::default(),
            name,
        };
        Ok((made, missing))
    }

    /// Is nothing made?
    pub fn is_empty(&self) -> bool {
        self.things.lock().is_ok_and(|things| things.is_empty())
    }

    /// This is this run's from now on, wherever it is noted.
    fn note(&self, thing: Thing) -> io::Result<()> {
        let text = thing.text();
        if let Some((record, _)) = &self.record {
            let mut record: &File = record;
            record.write_all(&text)?;
        }
        if !self.board.made(&text) {
            return Err(full());
        }
        self.things
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(thing);
        Ok(())
    }

    /// What is at this path is this run's from now on; nothing, where nothing is.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn has_made(&self, path: &Path) -> io::Result<()> {
        match Thing::at(&std::path::absolute(path)?) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            thing => self.note(thing?),
        }
    }

    /// What is at this path goes with the watchdog of a run that was killed, or its heir: those end
    /// programs before they take anything away. It is not in the record, as the next run needs it
    /// to end what is left of all of them.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn goes_with_the_watchdog(&self, path: &Path) -> io::Result<()> {
        match self.board.made(&Thing::at(path)?.text()) {
            true => Ok(()),
            false => Err(full()),
        }
    }

    /// Something of this name is about to be made, which nobody else makes.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn will_make(&self, path: &Path) -> io::Result<()> {
        self.note(Thing::named(path))
    }

    /// Makes something at a path where nothing is, with `make`, for this user alone.
    ///
    /// # Errors
    /// Something is there, or nothing can be.
    pub fn make<T>(&self, path: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = std::path::absolute(path)?;
        let count = self.things.lock().map_or(0, |things| things.len());
        let parent = path.parent().unwrap_or(Path::new("/"));
        let first = parent.join(format!(".warmset-{}-{count}", self.name));
        self.will_make(&first)?;
        // By way of the directory: a socket has room for short paths only.
        let dir = File::open(parent)?;
        let short = format!(
            "/proc/self/fd/{}/{}",
            dir.as_raw_fd(),
            name_in(&first).display()
        );
        let made = make(Path::new(&short)).and_then(|made| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o600))?;
            let thing = Thing::at(&first)?;
            self.note(Thing {
                path: path.clone(),
                ..thing
            })?;
            std::fs::hard_link(&first, &path)?;
            Ok(made)
        });
        // Nothing may be there.
        let _ = std::fs::remove_file(&first);
        made
    }
}

fn full() -> io::Error {
    io::Error::other("there are too many to take away again")
}

fn name_in(path: &Path) -> &Path {
    Path::new(path.file_name().unwrap_or_default())
}

impl Drop for Made {
    fn drop(&mut self) {
        let things = self
            .things
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for thing in things.iter() {
            let text = thing.text();
            patiently(|| remove(&text));
        }
        if let Some((_, path)) = &self.record {
            // Where it stays, the next run finds nothing of what it names.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes a FIFO for this user alone.
///
/// # Errors
/// Something is there, or the file system has none.
pub(crate) fn fifo(path: &Path) -> io::Result<()> {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::procfs::Identity;
    use std::os::unix::net::UnixDatagram;

    /// One with a record in this directory, in the name of this process.
    fn made_in(dir: &Path, name: &str) -> Made {
        let path = dir.join(format!("{PREFIX}{name}"));
        let mut options = File::options();
        Made {
            board: BoardRef::alone().unwrap(),
            record: Some((options.append(true).create(true).open(&path).unwrap(), path)),
            things: Mutex::default(),
            name: name.to_owned(),
        }
    }

    /// The name of a process that had the number of this one before it.
    fn gone() -> String {
        let this = Process::this().unwrap();
        let identity = Identity {
            born: this.identity.born - 1,
            ..this.identity
        };
        Process { identity, ..this }.to_string()
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_made_goes_with_the_run_and_nothing_else() {
        let (records, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = made_in(records.path(), &Process::this().unwrap().to_string());
        let path = |name: &str| dir.path().join(name);
        made.make(&path("fifo"), fifo).unwrap();
        let socket = made
            .make(&path("socket"), |path| UnixDatagram::bind(path))
            .unwrap();
        UnixDatagram::unbound()
            .unwrap()
            .send_to(b"now", path("socket"))
            .unwrap();
        assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 3);
        // Where something is, nothing is made, and what is there stays.
        std::fs::write(path("file"), "").unwrap();
        let e = made.make(&path("file"), fifo).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(dir.path()), ["fifo", "file", "socket"]);
        // A run that is there keeps what it has, also from others.
        take_away_leftovers_in(records.path());
        assert_eq!(
            (names(dir.path()).len(), names(records.path()).len()),
            (3, 1)
        );
        drop(made);
        assert_eq!(names(dir.path()), ["file"]);
        assert!(names(records.path()).is_empty());
    }

    /// Killed at every moment: before the thing is made, under its first name, under both, under
    /// its own.
    #[test]
    fn what_a_killed_run_has_left_is_taken_away_by_the_next_one() {
        for step in 0..4 {
            let (records, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let made = made_in(records.path(), &gone());
            let (first, own) = (dir.path().join(".warmset-x"), dir.path().join("fifo"));
            made.will_make(&first).unwrap();
            if step > 0 {
                fifo(&first).unwrap();
            }
            if step > 1 {
                let thing = Thing::at(&first).unwrap();
                made.note(Thing {
                    path: own.clone(),
                    ..thing
                })
                .unwrap();
                std::fs::hard_link(&first, &own).unwrap();
            }
            if step > 2 {
                std::fs::remove_file(&first).unwrap();
            }
            // Who is killed drops nothing.
            std::mem::forget(made);
            assert_eq!(names(dir.path()).len(), [0, 1, 2, 1][step]);
            take_away_leftovers_in(records.path());
            assert!(names(dir.path()).is_empty(), "step {step}");
            assert!(names(records.path()).is_empty(), "step {step}");
        }
    }

    #[test]
    fn what_somebody_else_has_made_in_its_place_stays() {
        let (records, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = made_in(records.path(), &gone());
        let own = dir.path().join("fifo");
        made.make(&own, fifo).unwrap();
        std::mem::forget(made);
        std::fs::rename(&own, dir.path().join("kept")).unwrap();
        fifo(&own).unwrap();
        // Of another number space nothing is known.
        std::fs::write(records.path().join(format!("{PREFIX}1-2-3")), "").unwrap();
        std::fs::write(records.path().join("other"), "").unwrap();
        take_away_leftovers_in(records.path());
        assert_eq!(names(dir.path()), ["fifo", "kept"]);
        assert_eq!(
            names(records.path()),
            [format!("{PREFIX}1-2-3"), "other".to_owned()]
        );
    }
}
