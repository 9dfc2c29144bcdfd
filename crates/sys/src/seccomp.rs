//! System calls of a process about which the kernel asks another one (seccomp(2),
//! seccomp_unotify(2); Linux 5.5).

use crate::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

pub use libc::{
    seccomp_notif as Question, seccomp_notif_resp as Answer, sock_filter as Instruction,
};

/// Puts a filter on the calling thread and all that it starts. Returns the listener that the
/// questions come to.
///
/// # Errors
/// No right to it (`EACCES`): neither `no_new_privs` nor `CAP_SYS_ADMIN`; the program is not valid
/// (`EINVAL`).
pub fn listen(program: &[Instruction]) -> io::Result<OwnedFd> {
    let count =
        u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog {
        len: count,
        filter: program.as_ptr().cast_mut(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program is as long as is said and lives through the call, which only reads
        // it.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        RawFd::try_from(listener).ok().filter(|fd| *fd >= 0)
    };
    // Linux 5.19 or later: a signal does not make the kernel ask twice.
    let patient =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listener = install(patient)
        .or_else(|| install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER))
        .ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel made the descriptor in this call, so that nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Receives a question; waits until there is one.
///
/// # Errors
/// Whoever made the call has gone (`ENOENT`), a signal came (`EINTR`), or it is no listener.
pub fn receive(listener: impl AsFd) -> io::Result<Question> {
    // SAFETY: plain numbers, for which zeros are valid; the kernel demands zeros.
    let mut question: Question = unsafe { std::mem::zeroed() };
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the structure is the one of this request and lives through the call.
    check(unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question) } != 0)?;
    Ok(question)
}

/// Answers a question.
///
/// # Errors
/// Whoever made the call has gone (`ENOENT`), or the question was answered (`EINPROGRESS`).
pub fn send(listener: impl AsFd, mut answer: Answer) -> io::Result<()> {
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the structure is the one of this request and lives through the call.
    check(unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) } != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread whose `getppid` another thread answers.
    #[test]
    fn a_call_is_asked_about_and_answered() {
        let load = |k: u32| Instruction {
            code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
            jt: 0,
            jf: 0,
            k,
        };
        let program = [
            load(std::mem::offset_of!(libc::seccomp_data, nr) as u32),
            Instruction {
                code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
                jt: 0,
                jf: 1,
                k: libc::SYS_getppid as u32,
            },
            Instruction {
                code: (libc::BPF_RET | libc::BPF_K) as u16,
                jt: 0,
                jf: 0,
                k: libc::SECCOMP_RET_USER_NOTIF,
            },
            Instruction {
                code: (libc::BPF_RET | libc::BPF_K) as u16,
                jt: 0,
                jf: 0,
                k: libc::SECCOMP_RET_ALLOW,
            },
        ];
        let (hand, take) = std::sync::mpsc::channel();
        let asked = std::thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            hand.send(listen(&program).unwrap()).unwrap();
            rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get())
        });
        let listener = take.recv().unwrap();
        let question = receive(&listener).unwrap();
        assert_eq!(libc::c_long::from(question.data.nr), libc::SYS_getppid);
        let answer = Answer {
            id: question.id,
            val: 4711,
            error: 0,
            flags: 0,
        };
        send(&listener, answer).unwrap();
        assert_eq!(asked.join().unwrap(), Some(4711));
        let e = send(&listener, answer).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOENT));
        assert!(listen(&[]).is_err());
    }
}
