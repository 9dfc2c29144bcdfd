//! With which rights and limits a program runs: what happens to a new process between fork and
//! exec.
//!
//! The engine may have the rights of root; a program gets none of them unless the user says so.
//! What it runs for its own user it may do as that user, without any capability, and nothing that
//! it executes gives it one (`no_new_privs`).
//!
//! Every process that a program starts inherits a limit to the time for which it may run at
//! real-time priority without sleeping (`RLIMIT_RTTIME`): the kernel kills whoever goes on beyond
//! that, when nobody else is left to do so. The numbers of the limit are the run's own ([`Limit`]):
//! they stay where environment, session and parents do not, and tell whose process it is.

use crate::kernel;
use machine::group::Group;
use machine::user::User;
use model::{Duration, Error, Result};
use rustix::process::{Gid, Resource, Rlimit, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// With which rights a program runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Rights {
    /// Those of this process's user, without any capability.
    #[default]
    Dropped,
    /// Those of another user, without any capability.
    Of(User),
    /// All that this process has.
    Kept,
}

impl Rights {
    /// The user that a program runs as, where it is another one than that of this process.
    pub fn user(&self) -> Option<&User> {
        match self {
            Rights::Of(user) => Some(user),
            Rights::Dropped | Rights::Kept => None,
        }
    }
}

/// The limit to uninterrupted real-time execution of a program's processes, by which they are known
/// as well.
///
/// In microseconds, the hard limit is a multiple of 2^22 and the number of the run's watchdog, of
/// which there is only one at a time; the soft limit is below it by 1 and the number of the owner.
/// It is no multiple of a millisecond, as limits are that people set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    soft: u64,
    hard: u64,
}

/// Whose process is it, by its limit?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The number of the run's watchdog.
    pub run: u32,
    /// The task, or the number of tasks and the place of the best-effort work; `None` where the
    /// process has changed its limit.
    pub number: Option<u32>,
}

/// Numbers of processes are below this.
const UNIT: u64 = 1 << 22;
/// More owners than there are.
const OWNERS: u64 = 1 << 20;

impl Limit {
    /// Of at least so long, and some seconds more at most.
    pub fn new(length: Duration, owner: u32, run: u32) -> Self {
        let units = (length.nanos() / 1_000).div_ceil(UNIT).max(1);
        let of = |units: u64| units * UNIT + u64::from(run) % UNIT;
        let hard = match of(units) {
            even if even.is_multiple_of(1_000) => of(units + 1),
            hard => hard,
        };
        Limit {
            soft: hard - 1 - u64::from(owner) % OWNERS,
            hard,
        }
    }

    /// Whose limits these are, in microseconds, if they are of a run.
    pub fn owner(soft: u64, hard: u64) -> Option<Owner> {
        let is_ours = (UNIT..u64::MAX / 2).contains(&hard) && !hard.is_multiple_of(1_000);
        is_ours.then(|| Owner {
            run: (hard % UNIT) as u32,
            number: hard
                .checked_sub(soft.saturating_add(1))
                .filter(|number| *number < OWNERS)
                .map(|number| number as u32),
        })
    }
}

/// What is done to a new process before it becomes a program.
pub(crate) struct Before {
    user: Option<User>,
    /// Those of the user.
    groups: Vec<Gid>,
    drops: bool,
    /// May this process raise others whatever their limits are?
    raises: bool,
    limit: Limit,
    entrance: Option<RawFd>,
    parent: i32,
}

impl Before {
    /// `group`: what it comes into; it has to live as long as this is used.
    ///
    /// # Errors
    /// No right to become that user.
    pub fn new(rights: &Rights, limit: Limit, group: Option<&Group>) -> Result<Self> {
        let own = rustix::thread::capabilities(None)
            .map_or(CapabilitySet::empty(), |sets| sets.effective);
        let user = match rights {
            Rights::Of(user) if user.uid != rustix::process::geteuid().as_raw() => {
                Some(user.clone())
            }
            _ => None,
        };
        if let Some(user) = user.as_ref()
            && !own.contains(CapabilitySet::SETUID | CapabilitySet::SETGID)
        {
            return Err(
                Error::new(format!("no right to run programs as `{}`", user.name))
                    .remedy("run as root, or let programs run as the user that starts the run"),
            );
        }
        let groups = user.iter().flat_map(|user| &user.groups);
        Ok(Before {
            groups: groups.map(|group| Gid::from_raw(*group)).collect(),
            user,
            drops: *rights != Rights::Kept,
            raises: own.contains(CapabilitySet::SYS_NICE),
            limit,
            entrance: group.map(|group| group.entrance().as_raw_fd()),
            parent: std::process::id() as i32,
        })
    }

    /// Has it done to whatever this command starts, and `more` after it.
    pub fn apply(
        self,
        command: &mut Command,
        mut more: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) {
        if let Some(user) = &self.user {
            command.env("HOME", &user.home);
            command.env("USER", &user.name);
            command.env("LOGNAME", &user.name);
        }
        // SAFETY: between fork and exec: system calls on memory that is there already.
        unsafe {
            command.pre_exec(move || {
                self.enter()?;
                more()
            });
        }
    }

    /// Takes no memory and no locks.
    fn enter(&self) -> io::Result<()> {
        if let Some(entrance) = self.entrance {
            // SAFETY: the group outlives this value, as `Before::new` demands, and its descriptor
            // is open in the process that was forked.
            let entrance = unsafe { BorrowedFd::borrow_raw(entrance) };
            rustix::io::write(entrance, b"0")?;
        }
        self.bound()?;
        if self.drops {
            self.drop_rights()?;
        }
        // A change of rights takes this mark away: it comes last. A parent that has died before it
        // was there is noticed.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        match kernel::parent() == self.parent {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    fn bound(&self) -> io::Result<()> {
        let rttime = Resource::Rttime;
        // A run within a run keeps the tighter limit of the outer one.
        let is_tighter = |most: Option<u64>| most.is_some_and(|most| most < self.limit.hard);
        if !is_tighter(rustix::process::getrlimit(rttime).maximum) {
            let limit = Rlimit {
                current: Some(self.limit.soft),
                maximum: Some(self.limit.hard),
            };
            rustix::process::setrlimit(rttime, limit)?;
        }
        Ok(())
    }

    fn drop_rights(&self) -> io::Result<()> {
        // Where the engine itself has no more than this limit, programs need it to be raised.
        let most = match self.raises {
            true => 0,
            false => kernel::RUN as u64,
        };
        for (resource, most) in [(Resource::Rtprio, most), (Resource::Nice, 0)] {
            let before = rustix::process::getrlimit(resource);
            let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
            let limit = Rlimit {
                current: least(before.current),
                maximum: least(before.maximum),
            };
            rustix::process::setrlimit(resource, limit)?;
        }
        for bit in 0..u64::BITS {
            // Without the right to it, or beyond the last one: `no_new_privs` below keeps it out of
            // reach all the same.
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
        if let Some(user) = &self.user {
            // The forked process has one thread, which these calls are for.
            rustix::thread::set_thread_groups(&self.groups)?;
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        rustix::thread::clear_ambient_capability_set()?;
        rustix::thread::set_capabilities(None, none)?;
        rustix::thread::set_no_new_privs(true)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_tells_its_run_and_its_owner_and_is_long_enough() {
        for run in [1, 2, 1_000, 4_194_303] {
            for owner in [0, 1, 70_000] {
                for ms in [0, 1, 4_194, 4_195, 3_600_000] {
                    let limit = Limit::new(Duration::from_millis(ms), owner, run);
                    let number = Some(owner);
                    assert_eq!(
                        Limit::owner(limit.soft, limit.hard),
                        Some(Owner { run, number })
                    );
                    assert!(limit.hard >= ms * 1_000 && limit.hard <= ms * 1_000 + 3 * UNIT);
                }
            }
        }
        let limit = Limit::new(Duration::ZERO, 3, 7);
        // It lowers its soft limit, or the kernel has raised that: it is of this run still.
        for soft in [0, limit.hard, limit.hard + 1_000_000] {
            let owner = Limit::owner(soft, limit.hard).unwrap();
            assert_eq!((owner.run, owner.number), (7, None));
        }
        // Nobody's: no limit, those that sound servers set, and any other round one.
        for hard in [u64::MAX, 200_000, 5_000_000, 3_600_000_000] {
            assert_eq!(Limit::owner(hard, hard), None, "{hard}");
        }
    }
}
