//! Programs that are left of runs all of whose processes were killed at once: engine, watchdog and
//! heir.
//!
//! A run with programs keeps a record ([`machine::records`]) of what its programs are known by. The
//! next run ends what is left of those whose engine has ended and who have no watchdog any more.

use crate::kernel;
use crate::programs::marks;
use crate::programs::procfs;
use machine::group::{self, Group};
use machine::records::{Record, Records};
use model::Result;
use std::path::Path;

const KIND: &str = "run";

/// What programs of this run are known by, on disk for as long as this lives.
pub(crate) struct Noted(Option<Record>);

impl Noted {
    /// `number`: that of the run's watchdog.
    ///
    /// # Errors
    /// Records cannot be kept here.
    pub fn new(number: u32, group: Option<&Group>) -> Result<Self> {
        let group = group.map_or(String::new(), |group| group.path().display().to_string());
        let record = Records::of_this_user()?.write(KIND, &[&number.to_string(), &group])?;
        Ok(Noted(Some(record)))
    }

    /// Where that is: of no use any more once the programs have been ended.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(Record::path)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(record) = self.0.take() {
            record.done();
        }
    }
}

/// Ends what is left of runs that were killed. Returns how many processes it has killed.
pub(crate) fn end() -> usize {
    Records::there().map_or(0, |records| {
        records.map_or(0, |records| end_those_of(&records))
    })
}

fn end_those_of(records: &Records) -> usize {
    let mut killed = 0;
    for left in records.left(KIND) {
        let [number, group] = &left.fields[..] else {
            left.done();
            continue;
        };
        let number = number.parse().unwrap_or(0);
        killed += kill(number);
        let is_gone = group.is_empty() || group::clear(Path::new(group));
        if is_gone {
            left.done();
        }
    }
    killed
}

/// Kills all processes that have the limits of a run, unless a run of that number lives.
fn kill(number: u32) -> usize {
    let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    if number == 0 || name.trim() == crate::watchdog::NAME {
        return 0;
    }
    let mut killed = Vec::new();
    // A process may be born while the others are killed.
    for _ in 0..100 {
        let mut found = 0;
        procfs::processes(|process| {
            if marks::owner(process).is_some_and(|owner| owner.run == number) {
                found += 1;
                if !killed.contains(&process) {
                    killed.push(process);
                }
                kernel::kill(process, libc::SIGKILL);
            }
        });
        if found == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    killed.len()
}
