//! The journal of a measurement: one line for every part of it that is finished, so that an
//! interrupted one can go on.
//!
//! JSON lines in a file beside the results. The first line says what is measured, and where; a
//! journal of another measurement is refused. A line that was cut off by a crash is dropped, its
//! part is measured again.

use model::watch::Watch;
use model::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What the first line says: what follows fits together only if all of it is the same.
pub trait Head: Serialize + DeserializeOwned + PartialEq {
    /// What is different in an interrupted measurement, with its options, for people.
    fn difference(&self, interrupted: &Self) -> &'static str;
}

/// A journal that is open for more blocks.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Up to where the file is whole.
    good: u64,
}

impl Journal {
    /// Starts a journal in this directory, which is made if it is not there, or goes on with one;
    /// with the records that it already has.
    ///
    /// # Errors
    /// The directory is not writable; there is an interrupted measurement and this does not
    /// `resume`; there is none and it does; it has another head; another process measures there.
    pub fn open<R: DeserializeOwned>(
        dir: &Path,
        name: &str,
        head: &impl Head,
        resume: bool,
    ) -> Result<(Self, Vec<R>)> {
        let path = dir.join(name);
        model::files::make_dir(dir)?;
        match (path.symlink_metadata().is_ok(), resume) {
            (false, true) => Err(
                Error::new("there is no interrupted measurement to go on with")
                    .at(dir.display())
                    .remedy("leave out `--resume` to begin one"),
            ),
            (true, false) if lock(&open(&path)?).is_ok() => Err(Error::new(
                "an interrupted measurement is in this directory",
            )
            .at(path.display())
            .remedy("go on with it with `--resume`, or remove the file to begin anew")),
            (true, _) => Journal::resume(path, head),
            (false, false) => Journal::begin(path, head).map(|journal| (journal, Vec::new())),
        }
    }

    fn begin(path: PathBuf, head: &impl Head) -> Result<Self> {
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io(&path, "write the journal of the measurement", &e))?;
        let mut journal = Journal {
            path,
            file,
            good: 0,
        };
        journal.lock()?;
        if let Err(e) = journal.append(head) {
            // An empty journal is of no use to anyone; if it cannot be removed, the error to tell
            // is the first.
            let _ = std::fs::remove_file(&journal.path);
            return Err(e);
        }
        Ok(journal)
    }

    fn resume<H: Head, R: DeserializeOwned>(path: PathBuf, head: &H) -> Result<(Self, Vec<R>)> {
        let mut journal = Journal {
            file: open(&path)?,
            path,
            good: 0,
        };
        journal.lock()?;
        let io = |e: &std::io::Error| Error::io(&journal.path, "read the journal", e);
        let mut reader = BufReader::new(&journal.file);
        let mut line = String::new();
        let (mut good, mut number, mut records) = (0u64, 0, Vec::new());
        loop {
            line.clear();
            let length = reader
                .by_ref()
                .take(model::files::MAX_FILE)
                .read_line(&mut line)
                .map_err(|e| io(&e))?;
            // A line without its end was cut off.
            if length == 0 || !line.ends_with('\n') {
                break;
            }
            number += 1;
            let bad = |e: serde_json::Error| {
                Error::new(format!("this is no journal of a measurement: {e}"))
                    .at(format!("line {number}"))
                    .at(journal.path.display())
                    .remedy("remove the file to begin anew")
            };
            if number == 1 {
                let theirs: H = serde_json::from_str(&line).map_err(bad)?;
                if theirs != *head {
                    return Err(Error::new(format!(
                        "the interrupted measurement has another {}",
                        head.difference(&theirs)
                    ))
                    .at(journal.path.display())
                    .remedy(
                        "give the same options to go on with it, or remove the file to begin anew",
                    ));
                }
            } else {
                records.push(serde_json::from_str(&line).map_err(bad)?);
            }
            good += length as u64;
        }
        if number == 0 {
            return Err(Error::new("the journal of the measurement is empty")
                .at(journal.path.display())
                .remedy("remove the file to begin anew"));
        }
        journal.good = good;
        journal.cut()?;
        Ok((journal, records))
    }

    fn lock(&self) -> Result<()> {
        lock(&self.file).map_err(|_| {
            Error::new("another measurement writes to this directory")
                .at(self.path.display())
                .remedy("wait for it, or choose another directory")
        })
    }

    /// Drops what is behind the last whole line.
    fn cut(&mut self) -> Result<()> {
        self.file
            .set_len(self.good)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.good)))
            .map(|_| ())
            .map_err(|e| Error::io(&self.path, "write the journal of the measurement", &e))
    }

    fn append(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)
            .map_err(|e| Error::new(format!("the journal cannot be written: {e}")))?;
        line.push(b'\n');
        if let Err(e) = self.file.write_all(&line) {
            // What was whole stays whole.
            self.cut()?;
            return Err(Error::io(
                &self.path,
                "write the journal of the measurement",
                &e,
            ));
        }
        self.good += line.len() as u64;
        Ok(())
    }

    /// Adds a record of what was measured.
    ///
    /// # Errors
    /// The disk is full or failed; the records before stay, and the measurement can be resumed.
    pub fn add(&mut self, record: &impl Serialize) -> Result<()> {
        self.append(record).map_err(|e| {
            e.remedy("free space, then go on with `--resume`: what was measured is kept")
        })
    }

    /// Measures those parts of a plan that have no record yet, one after the other, and adds a
    /// record of each; ends early when the watch says so, or `one` does by `None`. The journal
    /// stays, with at least one record. `parts`: what they are, such as `run`.
    ///
    /// # Errors
    /// There are more records than parts, or `is_of` says that one is of another; those of `one`;
    /// a record cannot be added; it ended before the first part was done, of which nothing is kept.
    pub fn go_through<P, R: Serialize>(
        mut self,
        (parts, plan): (&str, &[P]),
        mut records: Vec<R>,
        is_of: impl Fn(&R, &P) -> bool,
        (title, watch): (&str, &dyn Watch),
        mut one: impl FnMut(&P) -> Result<Option<R>>,
    ) -> Result<(Self, Vec<R>)> {
        let fit = records.len() <= plan.len() && records.iter().zip(plan).all(|(r, p)| is_of(r, p));
        if !fit {
            return Err(
                Error::new(format!("the journal has {parts}s that the plan has not"))
                    .at(self.path.display())
                    .remedy("remove the journal to begin anew"),
            );
        }
        watch.begin(title, plan.len() as u64);
        watch.advance(records.len() as u64);
        for part in &plan[records.len()..] {
            if watch.stopped() {
                break;
            }
            let record = match one(part) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                // A journal without records is of no use; the error to tell is this one.
                Err(e) if records.is_empty() => return self.remove().and(Err(e)),
                Err(e) => return Err(e),
            };
            self.add(&record)?;
            records.push(record);
            watch.advance(1);
        }
        if records.is_empty() {
            self.remove()?;
            return Err(
                Error::new(format!("stopped before the first {parts} was done"))
                    .remedy("nothing was kept; begin again"),
            );
        }
        Ok((self, records))
    }

    /// Removes it: the results are complete.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path)
            .map_err(|e| Error::io(&self.path, "remove the journal", &e))
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        // A link is not ours: a journal is begun as a new file.
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(|e| Error::io(path, "read the journal", &e))
}

/// Takes the file for this process alone, until it is closed.
fn lock(file: &File) -> std::io::Result<()> {
    file.try_lock().map_err(std::io::Error::from)
}
