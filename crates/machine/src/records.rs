//! Records on disk of what a process has changed or started that may outlive it, so that the next
//! process can put it right.
//!
//! A record is a file whose name says what kind it is of and which process has written it, by
//! number and birth. It appears complete or not at all, and is of use until that process has ended
//! by itself; what is found of processes that are dead was left behind. Root keeps records in
//! `/run/warmset`, others below `XDG_RUNTIME_DIR`, or in a directory of their own in `/tmp`. A
//! record of an earlier boot is of no use: the kernel has forgotten what it is about.

use crate::procfs::Identity;
use model::{Error, Result};
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// A directory of records.
#[derive(Clone, Debug)]
pub struct Records(PathBuf);

/// A record of this process.
#[derive(Debug)]
pub struct Record(PathBuf);

/// A record that a process has left behind.
#[derive(Debug)]
pub struct Left {
    path: PathBuf,
    /// What it says, as it was given.
    pub fields: Vec<String>,
}

/// The directory of this process's user.
fn own() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if uid == 0 => PathBuf::from("/run/warmset"),
        Some(dir) if Path::new(&dir).is_absolute() => Path::new(&dir).join("warmset"),
        _ => PathBuf::from(format!("/tmp/warmset-{uid}")),
    }
}

fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

impl Records {
    /// Those of this process's user.
    ///
    /// # Errors
    /// There is no directory that is this user's alone, and none can be made.
    pub fn of_this_user() -> Result<Self> {
        Self::at(own())
    }

    /// As [`Records::of_this_user`], where there are any already.
    ///
    /// # Errors
    /// The directory is not this user's alone.
    pub fn there() -> Result<Option<Self>> {
        let dir = own();
        match std::fs::symlink_metadata(&dir).is_ok() {
            true => Self::at(dir).map(Some),
            false => Ok(None),
        }
    }

    /// Those in this directory, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, belongs to somebody else, or others may write to it.
    pub fn at(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let failed = |e: io::Error| {
            Error::io(&dir, "make a directory for records of what is changed", &e)
                .remedy("see to it that this user may write there")
        };
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
        let there = std::fs::symlink_metadata(&dir).map_err(failed)?;
        let is_own = there.is_dir()
            && there.uid() == rustix::process::geteuid().as_raw()
            && there.mode() & 0o022 == 0;
        match is_own {
            true => Ok(Records(dir)),
            false => Err(
                Error::new("records of what is changed would not be safe here")
                    .at(dir.display())
                    .remedy("let it be a directory of this user that nobody else may write to"),
            ),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a record of this process. `kind`: letters only.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, kind: &str, fields: &[&str]) -> Result<Record> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let born = Identity::of_living(process as i32).map_or(0, |this| this.born);
        let name = format!("{kind}-{process}-{born}-{count:06}");
        let (path, part) = (self.0.join(&name), self.0.join(format!("part-{name}")));
        let mut text = boot().unwrap_or_default();
        for field in fields {
            text.push('\n');
            text.push_str(&field.replace('\\', "\\\\").replace('\n', "\\n"));
        }
        text.push('\n');
        let written = std::fs::File::create(&part)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&part, &path));
        written.map_err(|e| {
            // It was not there before, and may not be now.
            let _ = std::fs::remove_file(&part);
            Error::io(&path, "write a record of what is changed", &e)
        })?;
        Ok(Record(path))
    }

    /// All of a kind that processes have left behind, the newest first.
    pub fn left(&self, kind: &str) -> Vec<Left> {
        let mut all: Vec<((SystemTime, String), Left)> = Vec::new();
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !has_ended(&name, kind) {
                continue;
            }
            // One that goes meanwhile has been put right by somebody else.
            let Ok(text) = std::fs::read_to_string(entry.path()) else {
                continue;
            };
            let mut lines = text.lines();
            if lines.next().map(str::to_owned) != boot() {
                let _ = std::fs::remove_file(entry.path());
                continue;
            }
            let modified = entry.metadata().and_then(|m| m.modified());
            let left = Left {
                path: entry.path(),
                fields: lines.map(unescaped).collect(),
            };
            all.push(((modified.unwrap_or(SystemTime::UNIX_EPOCH), name), left));
        }
        all.sort_by(|a, b| b.0.cmp(&a.0));
        all.into_iter().map(|(_, left)| left).collect()
    }
}

/// Is this the name of a record of that kind, by a process that has ended?
fn has_ended(name: &str, kind: &str) -> bool {
    let mut parts = name.split('-');
    let mut number = || parts.next()?.parse::<u64>().ok();
    if name.split('-').next() != Some(kind) {
        return false;
    }
    number();
    match (number(), number()) {
        (Some(process), Some(born)) => {
            let process = process as i32;
            Identity::of_living(process) != Some(Identity { process, born })
        }
        _ => false,
    }
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            (c, false) => text.push(c),
        }
    }
    text
}

impl Record {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// All has been put right.
    pub fn done(self) {
        // It is gone already where somebody else has seen to it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Left {
    /// All has been put right.
    pub fn done(self) {
        // It is gone already where somebody else has seen to it.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn what_a_dead_process_has_left_is_found_and_what_a_living_one_needs_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::at(dir.path().join("records")).unwrap();
        let fields = ["/a path", "two\nlines, a \\n and a \\", ""];
        let own = records.write("settings", &fields).unwrap();
        assert!(records.left("settings").is_empty(), "this process lives");
        // The same, of a process that has ended, and of one that had the number of this one before.
        let mut child = Command::new("true").spawn().unwrap();
        let (dead, this) = (child.id(), std::process::id());
        child.wait().unwrap();
        let earlier = Identity::of(this as i32).unwrap().born - 1;
        for (index, (process, birth)) in [(dead, 7), (this, earlier)].into_iter().enumerate() {
            let name = format!("settings-{process}-{birth}-{index:06}");
            std::fs::copy(own.path(), dir.path().join("records").join(name)).unwrap();
        }
        let left = records.left("settings");
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|l| l.fields == fields), "{left:?}");
        assert!(records.left("run").is_empty());
        left.into_iter().for_each(Left::done);
        assert!(records.left("settings").is_empty() && own.path().exists());
        own.done();
        // Another boot's.
        let name = dir.path().join(format!("records/settings-{dead}-7-000009"));
        std::fs::write(&name, "another boot\n/a\n0\n").unwrap();
        assert!(records.left("settings").is_empty() && !name.exists());
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        for path in [open, link] {
            let e = Records::at(path).unwrap_err().to_string();
            assert!(e.contains("would not be safe"), "{e}");
        }
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let own = Records::at(dir.path().join("own")).unwrap();
        assert_eq!(mode(&own.0), 0o700);
    }
}
