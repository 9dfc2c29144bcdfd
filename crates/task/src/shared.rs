//! Memory that processes share, futexes in it, and descriptors that are handed over.

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::thread::futex::{self, Flags};
use rustix::time::{ClockId, Timespec};
use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;
use sys::memory::{Mapping, Use};

/// What other processes may do to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

/// What can lie in memory that other processes write to.
///
/// # Safety
/// It is made of atomic integers alone, and needs no more than a page's alignment: any bytes are a
/// valid value, which may change at any time.
pub unsafe trait Words: Sync {}

/// A page, or some, of memory that other processes see: words that change at any time.
#[derive(Debug)]
pub struct Shared<T> {
    map: Mapping,
    kind: PhantomData<T>,
}

impl<T: Words> Shared<T> {
    /// Memory for a `T`, all zero, and its descriptor, which may be handed to other processes. The
    /// size is sealed: a process that has the descriptor cannot cut the memory off below a process
    /// that reads it, which would end that one by SIGBUS.
    ///
    /// # Errors
    /// The kernel has no memory, or, for [`Others::Read`], is older than Linux 5.1.
    pub fn create(others: Others) -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"warmset", flags)?;
        rustix::fs::ftruncate(&file, size_of::<T>() as u64)?;
        // A sealed page cannot be mapped to write any more: this mapping comes first.
        let shared = Self::map(&file, true)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let seals = match others {
            Others::Write => seals,
            Others::Read => seals | SealFlags::FUTURE_WRITE,
        };
        rustix::fs::fcntl_add_seals(&file, seals)?;
        Ok((shared, file))
    }

    /// Maps what another process created.
    ///
    /// # Errors
    /// No such memory, or too little of it.
    pub fn map(file: &OwnedFd, writable: bool) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        if (stat.st_size as u64) < size_of::<T>() as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the shared memory is too small",
            ));
        }
        let what = if writable { Use::Write } else { Use::Read };
        Ok(Shared {
            map: Mapping::file(file, size_of::<T>(), what, true)?,
            kind: PhantomData,
        })
    }
}

impl<T: Words> std::ops::Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped for as long as this lives, large enough, aligned to a page; any bytes are
        // a valid value.
        unsafe { &*self.map.base().cast() }
    }
}

/// Sleeps while the word, which may lie in memory of several processes, is `seen`. May come back
/// early.
pub fn futex_wait(word: &AtomicU32, seen: u32) {
    // Every failure means the same to callers: look again.
    let _ = futex::wait(word, Flags::empty(), seen, None);
}

/// The same, for so long at most.
pub fn futex_wait_for(word: &AtomicU32, seen: u32, length: std::time::Duration) {
    let time = Timespec {
        tv_sec: length.as_secs() as i64,
        tv_nsec: length.subsec_nanos() as _,
    };
    // Every failure means the same to callers: look again.
    let _ = futex::wait(word, Flags::empty(), seen, Some(&time));
}

/// Has the other side of a stream gone?
pub fn is_closed(stream: &UnixStream) -> bool {
    let mut asked = [PollFd::new(stream, PollFlags::RDHUP)];
    let found = rustix::event::poll(&mut asked, Some(&Timespec::default()));
    found == Ok(1)
        && asked[0]
            .revents()
            .intersects(PollFlags::RDHUP | PollFlags::HUP)
}

/// Wakes who sleeps on the word, in whichever process.
pub fn futex_wake(word: &AtomicU32) {
    // It fails for a word that cannot be read, which a reference can.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic() -> u64 {
    let t = rustix::time::clock_gettime(ClockId::Monotonic);
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}

/// The most descriptors that are handed over at once.
const MOST: usize = 4;

/// Sends descriptors, with one byte.
///
/// # Errors
/// The other side has gone.
pub fn send(stream: &UnixStream, files: &[&OwnedFd]) -> io::Result<()> {
    let files: Vec<BorrowedFd<'_>> = files.iter().take(MOST).map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    // There is room for the most.
    message.push(SendAncillaryMessage::ScmRights(&files));
    rustix::net::sendmsg(
        stream,
        &[IoSlice::new(&[1])],
        &mut message,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives descriptors; none where the other side closed.
///
/// # Errors
/// Nothing can be received.
pub fn receive(stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0u8];
    // For more than are sent: they are received, and refused by whoever counts them.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3 * MOST))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(stream, &mut parts, &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            files.extend(received);
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
            let size = size_of::<Bells>() as u64;
            for length in [0, size / 2, 2 * size] {
                let done = rustix::fs::ftruncate(&file, length);
                assert_eq!(done, Err(rustix::io::Errno::PERM), "{others:?} {length}");
            }
            let more = rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE);
            assert!(more.is_err(), "{others:?}");
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
