//! Settings of the system that are changed while something runs, and restored after it: on every
//! way out.
//!
//! A [`Settings`] remembers what it changed and puts it back when dropped, last change first. What
//! the kernel restores by itself when the process dies (a held `/dev/cpu_dma_latency`) is preferred
//! over what it does not (a written file).
//!
//! A process that is killed leaves two behind who put a written file back: a guard, a small process
//! of a session of its own that sees its end at once, and a record on disk ([`crate::records`]),
//! from which the next process restores it where the guard was killed as well ([`restore_left`]).

use crate::records::{Record, Records};
use model::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Holding a latency in this file keeps processors out of deep sleep states for as long as it is
/// open.
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Changed settings, restored when this is dropped.
#[derive(Debug, Default)]
pub struct Settings {
    changes: Vec<Change>,
    /// Where it is kept what was changed; known from the first change on.
    records: Option<Records>,
    told: BTreeMap<String, String>,
}

#[derive(Debug)]
enum Change {
    /// The kernel restores it when the file is closed.
    Held(#[allow(dead_code, reason = "held open, never read")] File),
    /// We do.
    Written {
        path: PathBuf,
        before: String,
        record: Record,
        guard: Option<Guard>,
    },
}

/// A small process that puts a setting back when this one is killed.
#[derive(Debug)]
pub(crate) struct Guard(Child);

impl Guard {
    /// It waits for its input: whatever ends this process, its input ends. Where no shell is, there
    /// is no guard.
    fn post(path: &Path, before: &str, record: &Record) -> Option<Self> {
        const RESTORE: &str = r#"printf '%s' "$1" > "$2" && rm -f "$3""#;
        let arguments = [before.as_ref(), path.as_os_str(), record.path().as_os_str()];
        Guard::post_to(RESTORE, &arguments)
    }

    /// One that runs this script when this process ends without dismissing it.
    pub(crate) fn post_to(script: &str, arguments: &[&OsStr]) -> Option<Self> {
        let wait = format!("trap '' INT TERM HUP; read -r done || {{ {script}; }}");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &wait, "warmset-guard"])
            .args(arguments)
            .current_dir("/");
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Of a session of its own: neither Ctrl-C nor a signal to our group is for it, nor the end
        // of the terminal.
        // SAFETY: a system call without pointers between fork and exec.
        unsafe { shell.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
        shell.spawn().ok().map(Guard)
    }

    /// All is as it was.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // It is gone where this fails, and then there is nothing to dismiss.
            let _ = input.write_all(b"done\n");
        }
        let _ = self.0.wait();
    }
}

impl Settings {
    /// Nothing changed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps all processors out of sleep states with a wake-up latency, which may empty caches.
    ///
    /// # Errors
    /// No such device, or no right to it.
    pub fn keep_processors_awake(&mut self) -> Result<()> {
        self.hold_latency(Path::new(DMA_LATENCY))
    }

    fn hold_latency(&mut self, path: &Path) -> Result<()> {
        let held = std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(&0i32.to_ne_bytes()).map(|()| file))
            .map_err(|e| {
                Error::io(path, "keep the processors out of sleep states", &e)
                    .remedy("run as root; without it, processors that sleep may lose their caches")
            })?;
        self.changes.push(Change::Held(held));
        self.told.insert(
            path.display().to_string(),
            "0 us held open while measuring".to_owned(),
        );
        Ok(())
    }

    /// Writes a setting that the kernel keeps in a file (sysctl, sysfs), and remembers what it was.
    ///
    /// A process that is killed by force cannot restore it: a guard beside does. Prefer settings
    /// that are held.
    ///
    /// # Errors
    /// The file cannot be read or written; nothing is changed then.
    pub fn write(&mut self, path: &Path, value: &str) -> Result<()> {
        let before =
            std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the setting", &e))?;
        let before = before.trim_end().to_owned();
        if before == value {
            return Ok(());
        }
        // Before the change: whatever happens between the two is restored.
        let record = self.record(path, &before, Some(value))?;
        let guard = Guard::post(path, &before, &record);
        if let Err(e) = std::fs::write(path, value) {
            if let Some(guard) = guard {
                guard.dismiss();
            }
            record.done();
            return Err(Error::io(path, "change the setting", &e));
        }
        self.told.insert(
            path.display().to_string(),
            format!("{value} while measuring, {before} before and after"),
        );
        self.changes.push(Change::Written {
            path: path.to_owned(),
            before,
            record,
            guard,
        });
        Ok(())
    }

    /// Puts this back when dropped: for a file that does not read as it is written.
    ///
    /// # Errors
    /// No record of it can be kept.
    pub fn restore(&mut self, path: &Path, before: &str) -> Result<()> {
        let record = self.record(path, before, None)?;
        self.changes.push(Change::Written {
            path: path.to_owned(),
            before: before.to_owned(),
            guard: Guard::post(path, before, &record),
            record,
        });
        Ok(())
    }

    fn record(&mut self, path: &Path, before: &str, value: Option<&str>) -> Result<Record> {
        let records = match &self.records {
            Some(records) => records,
            None => self.records.insert(Records::of_this_user()?),
        };
        let path =
            std::path::absolute(path).map_err(|e| Error::io(path, "name the setting", &e))?;
        let path = path.display().to_string();
        records.write(
            KIND,
            &[&[path.as_str(), before][..], value.as_slice()].concat(),
        )
    }

    /// What is changed, by name, as it should be told to the user and kept with the results.
    pub fn told(&self) -> &BTreeMap<String, String> {
        &self.told
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        while let Some(change) = self.changes.pop() {
            let Change::Written {
                path,
                before,
                record,
                guard,
            } = change
            else {
                continue;
            };
            let restored = std::fs::write(&path, &before);
            if let Some(guard) = guard {
                guard.dismiss();
            }
            if restored.is_ok() {
                record.done();
            } else if let Err(e) = restored {
                // Nothing is left but to say it; a closed standard error leaves not even that.
                let _ = writeln!(
                    std::io::stderr(),
                    "warmset: {}: could not restore the setting to `{before}`: {e}",
                    path.display()
                );
            }
        }
    }
}

/// The kind of records of settings: the file, what it held before, and what was written to it,
/// where it reads as it is written.
const KIND: &str = "settings";

/// Puts back what processes that were killed have changed and nobody has restored. Returns a line
/// for each of them.
///
/// # Errors
/// What is there is not safe to be believed: others could have written it.
pub fn restore_left() -> Result<Vec<String>> {
    Ok(Records::there()?.map_or(Vec::new(), |records| {
        let mut told = restore_from(&records);
        told.extend(crate::prefetchers::restore_from(&records));
        told
    }))
}

fn restore_from(records: &Records) -> Vec<String> {
    let mut told = Vec::new();
    for left in records.left(KIND) {
        let (path, before, value) = match &left.fields[..] {
            [path, before] => (path, before, None),
            [path, before, value] => (path, before, Some(value)),
            _ => {
                left.done();
                continue;
            }
        };
        // Somebody has restored it, or given it a value of his own.
        let is_other = value.is_some_and(|value| {
            std::fs::read_to_string(path).is_ok_and(|now| now.trim_end() != value.trim_end())
        });
        if is_other {
            left.done();
            continue;
        }
        match std::fs::write(path, before) {
            Ok(()) => {
                told.push(format!(
                    "{path}: put back to `{}`, which a process that was killed had changed",
                    before.trim_end()
                ));
                left.done();
            }
            // The next one tries again.
            Err(e) => told.push(format!(
                "{path}: a process that was killed had changed it, and it cannot be put back to `{}`: {e}",
                before.trim_end()
            )),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal};

    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_was_changed_is_restored_in_reverse_order() {
        let dir = scratch();
        let file = dir.path().join("governor");
        std::fs::write(&file, "powersave\n").unwrap();
        let mut settings = recorded(dir.path());
        settings.write(&file, "performance").unwrap();
        settings.write(&file, "userspace").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "userspace");
        assert_eq!(settings.told().len(), 1);
        drop(settings);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "powersave");
    }

    const FILE: &str = "WARMSET_TEST_SETTINGS";

    /// Settings that keep their records in this directory.
    fn recorded(dir: &Path) -> Settings {
        let mut settings = Settings::new();
        settings.records = Some(Records::at(dir.join("records")).unwrap());
        settings
    }

    /// Another process, of a group of its own, that has changed a setting from 1 to 0: this test
    /// again, by its name.
    fn changed_by_another(test: &str, file: &Path) -> Child {
        if let Some(file) = std::env::var_os(FILE) {
            let file = Path::new(&file);
            let mut settings = recorded(file.parent().unwrap());
            settings.write(file, "0").unwrap();
            println!("changed");
            std::thread::sleep(std::time::Duration::from_secs(60));
            std::process::exit(0);
        }
        std::fs::write(file, "1\n").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                &format!("settings::tests::{test}"),
                "--exact",
                "--nocapture",
            ])
            .env(FILE, file)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(
            lines
                .map_while(std::result::Result::ok)
                .any(|line| line.contains("changed"))
        );
        assert_eq!(std::fs::read_to_string(file).unwrap(), "0");
        child
    }

    /// The guard that a process has posted.
    fn guard_of(child: &Child) -> Pid {
        // It was started by the thread of the test, which is not the first one.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let children = tasks
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default())
            .collect::<String>();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    /// Does a process ignore this signal within ten seconds?
    fn ignores(process: Pid, signal: Signal) -> bool {
        (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let path = format!("/proc/{}/status", process.as_raw_nonzero());
            let status = std::fs::read_to_string(path).unwrap_or_default();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
            let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
        })
    }

    /// With its group, which it leads.
    fn kill_group(child: &mut Child) {
        rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    /// The guard is not of the group that is killed.
    #[test]
    fn what_is_killed_with_its_group_is_restored_by_its_guard() {
        let dir = scratch();
        let file = dir.path().join("value");
        let mut child = changed_by_another(
            "what_is_killed_with_its_group_is_restored_by_its_guard",
            &file,
        );
        // Nor does it end by what ends programs one by one.
        let guard = guard_of(&child);
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let is_ignored = ignores(guard, signal);
            if !is_ignored {
                kill_group(&mut child);
            }
            assert!(is_ignored, "{signal:?}");
            rustix::process::kill_process(guard, signal).unwrap();
        }
        kill_group(&mut child);
        let records = Records::at(dir.path().join("records")).unwrap();
        let restored = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            std::fs::read_to_string(&file).unwrap() == "1" && records.left(KIND).is_empty()
        });
        assert!(restored, "{:?}", std::fs::read_to_string(&file));
    }

    /// The guard is killed first: whoever comes next restores it, once, and only what nobody has
    /// changed since.
    #[test]
    fn what_is_killed_with_its_guard_is_restored_by_whoever_comes_next() {
        let dir = scratch();
        let file = dir.path().join("value");
        for changed in [false, true] {
            let mut child = changed_by_another(
                "what_is_killed_with_its_guard_is_restored_by_whoever_comes_next",
                &file,
            );
            let records = Records::at(dir.path().join("records")).unwrap();
            assert!(restore_from(&records).is_empty(), "its process lives");
            let guard = guard_of(&child);
            let session = rustix::process::getsid(Some(guard)).ok();
            assert_eq!(session, Some(guard), "it is of a session of its own");
            rustix::process::kill_process(guard, Signal::KILL).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
            if changed {
                std::fs::write(&file, "2").unwrap();
            }
            let told = restore_from(&records);
            let now = std::fs::read_to_string(&file).unwrap();
            match changed {
                false => {
                    assert_eq!((now.as_str(), told.len()), ("1", 1));
                    assert!(told[0].contains("put back to `1`"), "{told:?}");
                }
                true => assert_eq!((now.as_str(), told.len()), ("2", 0)),
            }
            assert!(restore_from(&records).is_empty(), "once is enough");
        }
    }

    /// A file that does not read as it is written is put back as it was noted.
    #[test]
    fn what_does_not_read_as_it_is_written_is_restored_too() {
        let dir = scratch();
        let file = dir.path().join("schemata");
        std::fs::write(&file, "changed").unwrap();
        let mut settings = recorded(dir.path());
        settings.restore(&file, "L3:0=ff\nMB:0=100\n").unwrap();
        drop(settings);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "L3:0=ff\nMB:0=100\n"
        );
        let records = Records::at(dir.path().join("records")).unwrap();
        assert!(
            std::fs::read_dir(dir.path().join("records"))
                .unwrap()
                .next()
                .is_none()
        );
        assert!(restore_from(&records).is_empty());
    }

    #[test]
    fn a_panic_restores_too() {
        let dir = scratch();
        let file = dir.path().join("value");
        std::fs::write(&file, "1").unwrap();
        let result = std::panic::catch_unwind(|| {
            let mut settings = recorded(dir.path());
            settings.write(&file, "0").unwrap();
            panic!("on purpose");
        });
        assert!(result.is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
    }

    #[test]
    fn what_has_the_value_already_is_left_alone() {
        let dir = scratch();
        let file = dir.path().join("value");
        std::fs::write(&file, "1\n").unwrap();
        let mut settings = recorded(dir.path());
        settings.write(&file, "1").unwrap();
        assert!(settings.told().is_empty());
        drop(settings);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n");
    }

    #[test]
    fn a_latency_is_held_as_a_binary_zero_and_told() {
        let dir = scratch();
        let file = dir.path().join("latency");
        std::fs::write(&file, "").unwrap();
        let mut settings = recorded(dir.path());
        settings.hold_latency(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), [0, 0, 0, 0]);
        assert_eq!(settings.told().len(), 1);
        let e = settings
            .hold_latency(&dir.path().join("missing"))
            .unwrap_err()
            .to_string();
        assert!(e.contains("missing") && e.contains("sleep"), "{e}");
    }
}
