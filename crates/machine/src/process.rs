//! A process among all that this machine has had: its number alone is given again.
//!
//! For what outlives a process and names it: records on disk, buffers of the kernel. Source:
//! proc(5), pid_namespaces(7).

use crate::procfs::Identity;
use model::Duration;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

/// Number space, number and birth of a process, as `SPACE-NUMBER-BIRTH`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    /// The namespace of its number.
    pub space: u64,
    /// Its number there, and when it was born.
    pub identity: Identity,
}

impl Process {
    /// The calling one; none where `/proc` is not mounted.
    pub fn this() -> Option<Self> {
        Some(Process {
            space: space()?,
            identity: Identity::of(std::process::id() as i32)?,
        })
    }

    /// Has it ended? One that nobody has waited for yet has. Of another number space nothing is
    /// known: then the answer is no.
    pub fn has_ended(self) -> bool {
        space() == Some(self.space)
            && Identity::of_living(self.identity.process) != Some(self.identity)
    }
}

/// The number space of the calling process.
fn space() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|space| space.ino())
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { process, born } = self.identity;
        write!(f, "{}-{process}-{born}", self.space)
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text
            .split('-')
            .map(|part| part.parse::<u64>().map_err(drop));
        let mut number = || parts.next().ok_or(())?;
        let process = Process {
            space: number()?,
            identity: Identity {
                process: number()?.try_into().map_err(drop)?,
                born: number()?,
            },
        };
        match parts.next() {
            None => Ok(process),
            Some(_) => Err(()),
        }
    }
}

/// The processor time that all children have used that were waited for, with those that they have
/// waited for, and how often they lost their processor.
pub fn of_children() -> (Duration, u64) {
    let (nanos, lost) = sys::process::children();
    (Duration::from_nanos(nanos), lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_others_of_its_number() {
        let this = Process::this().unwrap();
        assert!(!this.has_ended());
        assert_eq!(this.to_string().parse(), Ok(this));
        let earlier = Process {
            identity: Identity {
                born: this.identity.born - 1,
                ..this.identity
            },
            ..this
        };
        let elsewhere = Process {
            space: this.space + 1,
            ..earlier
        };
        assert!(earlier.has_ended() && !elsewhere.has_ended());
        for text in ["", "1-2", "1-2-3-4", "1-x-3", "1-99999999999-3"] {
            assert_eq!(text.parse::<Process>(), Err(()), "{text}");
        }
    }

    #[test]
    fn one_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let child_now = || {
            Some(Process {
                identity: Identity::of(child.id() as i32)?,
                ..Process::this()?
            })
        };
        while !child_now().unwrap().has_ended() {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
    }
}
