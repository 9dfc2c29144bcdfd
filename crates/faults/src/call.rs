//! System calls that are made to fail: which belong together, and how they may fail.
//!
//! Errors are those that the manual pages name for a machine that has run out of something, or for
//! a container that forbids something: nothing is answered that a kernel would never answer.

use libc::c_long;

/// What a call must work on for its failure to be one that occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// Anything.
    Anything,
    /// A file of a disk, where the call is given a descriptor. Pipes, sockets and counters of
    /// events (`eventfd`) do not run full in this way.
    File,
    /// A file of the kernel below `/proc`, `/sys` or `/dev`.
    Setting,
}

/// System calls that fail for the same reasons.
#[derive(Debug)]
pub struct Kind {
    /// As it is written in a trial.
    pub name: &'static str,
    /// Numbers of the calls.
    pub calls: &'static [c_long],
    /// What they may answer, by name.
    pub errors: &'static [&'static str],
    /// What the descriptor that they are given must be.
    pub on: On,
    /// May all calls from some time on fail? Who cannot send signals any more cannot end anybody.
    pub onwards: bool,
    /// About how many of them a run makes at most: numbers of calls are drawn up to this.
    pub most: u32,
}

/// All kinds.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "memory",
        calls: &[
            libc::SYS_mmap,
            libc::SYS_brk,
            libc::SYS_mremap,
            libc::SYS_mprotect,
            libc::SYS_mlock,
            libc::SYS_mlock2,
            libc::SYS_mlockall,
        ],
        errors: &["ENOMEM", "EAGAIN"],
        on: On::Anything,
        onwards: true,
        most: 250,
    },
    Kind {
        name: "descriptor",
        calls: &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open,
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_accept4,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pipe,
            libc::SYS_pipe2,
            libc::SYS_eventfd2,
            libc::SYS_memfd_create,
            libc::SYS_epoll_create1,
            libc::SYS_timerfd_create,
            libc::SYS_signalfd4,
            libc::SYS_inotify_init1,
            libc::SYS_pidfd_open,
            libc::SYS_dup,
        ],
        errors: &["EMFILE", "ENFILE", "ENOMEM"],
        on: On::Anything,
        onwards: true,
        most: 800,
    },
    Kind {
        name: "thread",
        calls: &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork,
            libc::SYS_clone,
            libc::SYS_clone3,
        ],
        errors: &["EAGAIN", "ENOMEM"],
        on: On::Anything,
        onwards: true,
        most: 30,
    },
    Kind {
        name: "write",
        calls: &[
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_pwrite64,
            libc::SYS_ftruncate,
            libc::SYS_fallocate,
            libc::SYS_fsync,
            libc::SYS_fdatasync,
        ],
        errors: &["ENOSPC", "EIO", "EDQUOT"],
        on: On::File,
        onwards: true,
        most: 12,
    },
    Kind {
        name: "name",
        calls: &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_mkdirat,
            libc::SYS_mknodat,
            libc::SYS_linkat,
            libc::SYS_bind,
        ],
        errors: &["ENOSPC", "EACCES", "EROFS"],
        on: On::Anything,
        onwards: true,
        most: 8,
    },
    Kind {
        name: "read",
        calls: &[libc::SYS_read, libc::SYS_pread64, libc::SYS_getdents64],
        errors: &["EIO"],
        on: On::File,
        onwards: false,
        most: 60,
    },
    Kind {
        name: "setting",
        calls: &[libc::SYS_write],
        errors: &["EPERM", "EINVAL", "EBUSY"],
        on: On::Setting,
        onwards: true,
        most: 8,
    },
    Kind {
        name: "priority",
        calls: &[
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setattr,
        ],
        errors: &["EPERM", "EINVAL"],
        on: On::Anything,
        onwards: false,
        most: 300,
    },
    Kind {
        name: "affinity",
        calls: &[libc::SYS_sched_setaffinity],
        errors: &["EPERM", "EINVAL"],
        on: On::Anything,
        onwards: false,
        most: 300,
    },
    Kind {
        name: "kill",
        calls: &[
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_pidfd_send_signal,
        ],
        errors: &["EPERM"],
        on: On::Anything,
        onwards: false,
        most: 60,
    },
    Kind {
        name: "trace",
        calls: &[libc::SYS_ptrace],
        errors: &["EPERM"],
        on: On::Anything,
        onwards: true,
        most: 4,
    },
    Kind {
        name: "connect",
        calls: &[libc::SYS_connect, libc::SYS_listen, libc::SYS_sendto],
        errors: &["ECONNREFUSED", "ENOBUFS"],
        on: On::Anything,
        onwards: false,
        most: 6,
    },
];

/// The kind of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

const ERRORS: &[(&str, i32)] = &[
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EBUSY", libc::EBUSY),
    ("ECONNREFUSED", libc::ECONNREFUSED),
    ("EDQUOT", libc::EDQUOT),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EMFILE", libc::EMFILE),
    ("ENFILE", libc::ENFILE),
    ("ENOBUFS", libc::ENOBUFS),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
    ("EPERM", libc::EPERM),
    ("EROFS", libc::EROFS),
];

/// An error by its name, with its number.
pub fn error(name: &str) -> Option<(&'static str, i32)> {
    ERRORS.iter().find(|(known, _)| *known == name).copied()
}

/// Is the first argument of this call a descriptor?
pub fn takes_descriptor(call: c_long) -> bool {
    [
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pwrite64,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_getdents64,
    ]
    .contains(&call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_every_kind_has_a_number() {
        for kind in KINDS {
            assert!(
                kind.errors.iter().all(|name| error(name).is_some()),
                "{kind:?}"
            );
            assert_eq!(find(kind.name).map(|k| k.name), Some(kind.name));
        }
    }
}
