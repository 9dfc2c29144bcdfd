//! Memory that processes share, futexes in it, and descriptors that are handed over.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// What other processes may do to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

/// A page, or some, of memory that other processes see: words that change at any time.
#[derive(Debug)]
pub struct Shared<T> {
    at: NonNull<T>,
    kind: PhantomData<T>,
}

// SAFETY: what lies there are atomic words; it is unmapped when nobody refers to it any more.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Memory for a `T`, all zero, and its descriptor, which may be handed to other processes. `T` is
    /// made of atomic integers. The size is sealed: a process that has the descriptor cannot cut the
    /// memory off below a process that reads it, which would end that one by SIGBUS.
    ///
    /// # Errors
    /// The kernel has no memory, or, for [`Others::Read`], is older than Linux 5.1.
    pub fn create(others: Others) -> io::Result<(Self, OwnedFd)> {
        // SAFETY: the name ends with a zero; the answer is a new descriptor that nobody else owns.
        let file = unsafe {
            let fd = libc::memfd_create(c"warmset".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: calls without pointers.
        if unsafe { libc::ftruncate(file.as_raw_fd(), size_of::<T>() as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // A sealed page cannot be mapped to write any more: this mapping comes first.
        let shared = Self::map(&file, true)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let seals = match others {
            Others::Write => seals,
            Others::Read => seals | libc::F_SEAL_FUTURE_WRITE,
        };
        // SAFETY: a call without pointers.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
            0 => Ok((shared, file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Maps what another process created.
    ///
    /// # Errors
    /// No such memory, or too little of it.
    pub fn map(file: &OwnedFd, writable: bool) -> io::Result<Self> {
        // SAFETY: an all-zero `stat` is valid; the kernel fills it in.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `stat` lives through the call.
        if unsafe { libc::fstat(file.as_raw_fd(), &mut stat) } != 0 {
            return Err(io::Error::last_os_error());
        }
        if (stat.st_size as u64) < size_of::<T>() as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the shared memory is too small",
            ));
        }
        let write = if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping of memory that is as large as is asked for.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | write,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast::<T>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => Ok(Shared {
                at,
                kind: PhantomData,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped for as long as this lives, large enough, aligned to a page; any bytes are valid atomic integers.
        unsafe { self.at.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this size, and nobody refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), size_of::<T>()) };
    }
}

/// Sleeps while the word, which may lie in memory of several processes, is `seen`. May come back early.
pub fn futex_wait(word: &AtomicU32, seen: u32) {
    // SAFETY: the word lives through the call; every failure means the same to callers: look again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// The same, for so long at most.
pub fn futex_wait_for(word: &AtomicU32, seen: u32, length: std::time::Duration) {
    let time = libc::timespec {
        tv_sec: length.as_secs() as libc::time_t,
        tv_nsec: length.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the word and the time live through the call; every failure means the same to callers: look again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &time) };
}

/// Has the other side of a stream gone?
pub fn is_closed(stream: &UnixStream) -> bool {
    let mut poll = libc::pollfd {
        fd: stream.as_raw_fd(),
        events: libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: one descriptor, which lives through the call; it does not wait.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & (libc::POLLRDHUP | libc::POLLHUP) != 0 }
}

/// Wakes who sleeps on the word, in whichever process.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}

/// The most descriptors that are handed over at once.
const MOST: usize = 4;

/// Room for the control message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Room([u8; 64]);

/// Sends descriptors, with one byte.
///
/// # Errors
/// The other side has gone.
pub fn send(stream: &UnixStream, files: &[&OwnedFd]) -> io::Result<()> {
    let mut byte = [1u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut room = Room([0; 64]);
    let size = size_of::<i32>() * files.len().min(MOST);
    // SAFETY: an all-zero `msghdr` is an empty message; the parts that it points to live through the call, and the room is
    // large enough for so many descriptors.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size as u32) as _;
        let head = libc::CMSG_FIRSTHDR(&message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(size as u32) as _;
        for (index, file) in files.iter().take(MOST).enumerate() {
            libc::CMSG_DATA(head)
                .cast::<i32>()
                .add(index)
                .write_unaligned(file.as_raw_fd());
        }
        match libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Receives descriptors; none where the other side closed.
///
/// # Errors
/// Nothing can be received.
pub fn receive(stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut room = Room([0; 64]);
    let mut files = Vec::new();
    // SAFETY: as in `send`; what the kernel has put into the room are new descriptors that nobody else owns.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = room.0.len() as _;
        if libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let head = libc::CMSG_FIRSTHDR(&message);
        if !head.is_null() && (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS
        {
            let size = (*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            for index in 0..size / size_of::<i32>() {
                let fd = libc::CMSG_DATA(head).cast::<i32>().add(index).read_unaligned();
                files.push(OwnedFd::from_raw_fd(fd));
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Bells, Control};
    use std::sync::atomic::Ordering;

    #[test]
    fn sealed_pages_are_read_and_not_written() {
        let (control, file) = Shared::<Control>::create(Others::Read).unwrap();
        control.told.store(7, Ordering::Release);
        let theirs = Shared::<Control>::map(&file, false).unwrap();
        assert_eq!(theirs.told.load(Ordering::Acquire), 7);
        assert!(Shared::<Control>::map(&file, true).is_err());
        assert!(Shared::<Bells>::map(&file, false).is_err(), "too small");
    }

    /// A process that has a descriptor cannot take the memory away below the run, or unseal it.
    #[test]
    fn the_size_of_shared_memory_is_fixed() {
        for others in [Others::Read, Others::Write] {
            let (page, file) = Shared::<Bells>::create(others).unwrap();
            let size = size_of::<Bells>() as libc::off_t;
            for length in [0, size / 2, 2 * size] {
                // SAFETY: a call without pointers.
                let done = unsafe { libc::ftruncate(file.as_raw_fd(), length) };
                let why = io::Error::last_os_error().raw_os_error();
                assert_eq!((done, why), (-1, Some(libc::EPERM)), "{others:?} {length}");
            }
            // SAFETY: as above.
            let more = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
            assert_eq!(more, -1, "{others:?}");
            page.ring(1023);
            assert_eq!(page.bell(1023).unwrap().load(Ordering::Acquire), 1);
        }
    }

    #[test]
    fn descriptors_are_handed_over() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (page, file) = Shared::<Control>::create(Others::Write).unwrap();
        send(&ours, &[&file, &file, &file]).unwrap();
        let got = receive(&theirs).unwrap();
        assert_eq!(got.len(), 3);
        page.over.store(1, Ordering::Release);
        let mapped = Shared::<Control>::map(&got[2], false).unwrap();
        assert_eq!(mapped.over.load(Ordering::Acquire), 1);
        drop(ours);
        assert!(receive(&theirs).unwrap().is_empty());
    }
}
