//! Settings of the system that are changed while something runs, and restored after it: on every way out.
//!
//! A [`Settings`] remembers what it changed and puts it back when dropped, last change first. What the kernel restores
//! by itself when the process dies (a held `/dev/cpu_dma_latency`) is preferred over what it does not (a written file).

use model::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Holding a latency in this file keeps processors out of deep sleep states for as long as it is open.
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Changed settings, restored when this is dropped.
#[derive(Debug, Default)]
pub struct Settings {
    changes: Vec<Change>,
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
        guard: Option<Guard>,
    },
}

/// A small process that puts a setting back when this one is killed.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    /// It waits for its input: whatever ends this process, its input ends. Where no shell is, there is no guard.
    fn post(path: &Path, before: &str) -> Option<Self> {
        const WAIT: &str = "trap '' INT TERM HUP; read -r done || printf '%s' \"$1\" > \"$2\"";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WAIT, "warmset-guard", before]).arg(path);
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Not in our group: Ctrl-C is for us.
        shell.process_group(0).spawn().ok().map(Guard)
    }

    /// All is as it was.
    fn dismiss(mut self) {
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
    /// A process that is killed by force cannot restore it: a guard beside does. Prefer settings that are held.
    ///
    /// # Errors
    /// The file cannot be read or written; nothing is changed then.
    pub fn write(&mut self, path: &Path, value: &str) -> Result<()> {
        let before = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the setting", &e))?;
        let before = before.trim_end().to_owned();
        if before == value {
            return Ok(());
        }
        // Before the change: whatever happens between the two is restored.
        let guard = Guard::post(path, &before);
        if let Err(e) = std::fs::write(path, value) {
            if let Some(guard) = guard {
                guard.dismiss();
            }
            return Err(Error::io(path, "change the setting", &e));
        }
        self.told.insert(
            path.display().to_string(),
            format!("{value} while measuring, {before} before and after"),
        );
        self.changes.push(Change::Written {
            path: path.to_owned(),
            before,
            guard,
        });
        Ok(())
    }

    /// Puts this back when dropped: for a file that does not read as it is written.
    pub fn restore(&mut self, path: &Path, before: &str) {
        self.changes.push(Change::Written {
            path: path.to_owned(),
            before: before.to_owned(),
            guard: Guard::post(path, before),
        });
    }

    /// What is changed, by name, as it should be told to the user and kept with the results.
    pub fn told(&self) -> &BTreeMap<String, String> {
        &self.told
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        while let Some(change) = self.changes.pop() {
            let Change::Written { path, before, guard } = change else {
                continue;
            };
            let restored = std::fs::write(&path, &before);
            if let Some(guard) = guard {
                guard.dismiss();
            }
            if let Err(e) = restored {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_was_changed_is_restored_in_reverse_order() {
        let dir = scratch();
        let file = dir.path().join("governor");
        std::fs::write(&file, "powersave\n").unwrap();
        let mut settings = Settings::new();
        settings.write(&file, "performance").unwrap();
        settings.write(&file, "userspace").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "userspace");
        assert_eq!(settings.told().len(), 1);
        drop(settings);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "powersave");
    }

    #[test]
    fn what_is_killed_is_restored_by_its_guard() {
        const FILE: &str = "WARMSET_TEST_SETTINGS";
        if let Some(file) = std::env::var_os(FILE) {
            let mut settings = Settings::new();
            settings.write(Path::new(&file), "0").unwrap();
            println!("changed");
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        let dir = scratch();
        let file = dir.path().join("value");
        std::fs::write(&file, "1\n").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "settings::tests::what_is_killed_is_restored_by_its_guard",
                "--exact",
                "--nocapture",
            ])
            .env(FILE, &file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(
            lines
                .map_while(std::result::Result::ok)
                .any(|line| line.contains("changed"))
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
        child.kill().unwrap();
        child.wait().unwrap();
        let restored = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            std::fs::read_to_string(&file).unwrap() == "1"
        });
        assert!(restored, "{:?}", std::fs::read_to_string(&file));
    }

    #[test]
    fn a_panic_restores_too() {
        let dir = scratch();
        let file = dir.path().join("value");
        std::fs::write(&file, "1").unwrap();
        let result = std::panic::catch_unwind(|| {
            let mut settings = Settings::new();
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
        let mut settings = Settings::new();
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
        let mut settings = Settings::new();
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
