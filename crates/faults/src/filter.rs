//! System calls that fail: the kernel asks the harness about each of them.
//!
//! A seccomp filter with user notification (seccomp(2), seccomp_unotify(2); Linux 5.5 or later) is
//! put on the command before it begins, and all that it starts inherits it. Nothing of the command
//! has to be changed, and calls that go around the C library are seen as well.

use crate::call::{self, On};
use crate::fault::Call;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, offset_of};
use std::path::{Path, PathBuf};
use sys::seccomp::{Instruction, Question};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// A filter that asks about some calls, and the sockets over which its listener is handed to the
/// harness.
#[derive(Debug)]
pub struct Filter {
    program: Vec<Instruction>,
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Filter {
    /// Asks about these calls.
    pub fn new(calls: &[libc::c_long]) -> io::Result<Self> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Filter {
            program: program(calls),
            ours,
            theirs,
        })
    }

    /// Puts the filter on this thread, and hands the listener over. For a child between fork and
    /// exec: takes no memory and no lock.
    pub fn put_on(&self) -> io::Result<()> {
        let listener = sys::seccomp::listen(&self.program)?;
        let fds = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        message.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(
            &self.theirs,
            &[IoSlice::new(b"l")],
            &mut message,
            SendFlags::empty(),
        )?;
        Ok(())
    }

    /// The listener, once the child has begun.
    pub fn listener(self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(
            &self.ours,
            &mut [IoSliceMut::new(&mut byte)],
            &mut message,
            RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
        )?;
        for part in message.drain() {
            if let RecvAncillaryMessage::ScmRights(mut fds) = part
                && let Some(fd) = fds.next()
            {
                return Ok(fd);
            }
        }
        Err(io::Error::other("the filter was not put on"))
    }
}

/// Looks at architecture and number of a call. `sendmsg` is never asked about: it hands the
/// listener over.
fn program(calls: &[libc::c_long]) -> Vec<Instruction> {
    let statement = |code: u32, k: u32| Instruction {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let load = |at: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at as u32);
    let unless = |k: u32, skip: u8| Instruction {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: skip,
        k,
    };
    let answer = |what: u32| statement(libc::BPF_RET | libc::BPF_K, what);
    let mut program = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        Instruction {
            jt: 1,
            jf: 0,
            ..unless(ARCHITECTURE, 0)
        },
        answer(libc::SECCOMP_RET_ALLOW),
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for call in calls {
        program.push(unless(*call as u32, 1));
        program.push(answer(libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

/// Answers the kernel: which call fails.
#[derive(Debug)]
pub struct Answers {
    listener: OwnedFd,
    fault: Call,
    /// Calls of this program count.
    program: PathBuf,
    /// How many of them were made.
    pub made: u32,
    /// How many were failed.
    pub failed: u32,
    /// One of them was on standard error: what it would have said is lost.
    pub silenced: bool,
    /// Which failed, for a report.
    pub which: Vec<String>,
}

impl Answers {
    /// By this listener, for calls of `program`.
    pub fn new(listener: OwnedFd, fault: Call, program: &Path) -> Self {
        Answers {
            listener,
            fault,
            program: program.to_owned(),
            made: 0,
            failed: 0,
            silenced: false,
            which: Vec::new(),
        }
    }

    /// To be polled.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one question, which has to be there: `fd` was readable.
    pub fn answer(&mut self) -> io::Result<()> {
        let asked = match sys::seccomp::receive(&self.listener) {
            Ok(asked) => asked,
            Err(e) => return unless_gone(e),
        };
        let fails = self.fails(&asked);
        // This call says that it has failed by an end of memory below the one that was asked for.
        let by_value = libc::c_long::from(asked.data.nr) == libc::SYS_brk;
        let said = sys::seccomp::Answer {
            id: asked.id,
            val: 0,
            error: if fails && !by_value {
                -self.fault.error.1
            } else {
                0
            },
            flags: if fails {
                0
            } else {
                libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32
            },
        };
        sys::seccomp::send(&self.listener, said).or_else(unless_gone)
    }

    fn fails(&mut self, asked: &Question) -> bool {
        let thread = asked.pid;
        let link = |what: &str| std::fs::read_link(format!("/proc/{thread}/{what}")).ok();
        if link("exe").as_ref() != Some(&self.program) {
            return false;
        }
        let number = libc::c_long::from(asked.data.nr);
        let descriptor = asked.data.args[0] as i32;
        let file = match call::takes_descriptor(number) {
            true => link(&format!("fd/{descriptor}")),
            false => None,
        };
        if let Some(file) = &file {
            let text = file.to_string_lossy();
            let is_setting = ["/proc/", "/sys/", "/dev/"]
                .iter()
                .any(|d| text.starts_with(d));
            let fit = match self.fault.kind.on {
                On::Anything => true,
                On::File => text.starts_with('/') && !is_setting,
                On::Setting => is_setting && text != "/dev/null",
            };
            if !fit {
                return false;
            }
        }
        self.made += 1;
        let nth = self.fault.nth;
        let fails = self.made == nth || (self.fault.onwards && self.made > nth);
        if fails {
            self.failed += 1;
            self.silenced |= file.is_some() && descriptor == 2;
            if self.which.len() < 20 {
                let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
                self.which.push(format!(
                    "call {number} of thread {thread} ({}){}",
                    name.unwrap_or_default().trim(),
                    file.map_or(String::new(), |f| format!(" on {}", f.display()))
                ));
            }
        }
        fails
    }
}

/// Whoever made the call may have been killed meanwhile, which is no failure.
fn unless_gone(e: io::Error) -> io::Result<()> {
    match e.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR | libc::EINPROGRESS) => Ok(()),
        _ => Err(e),
    }
}
