//! Signals: masks, dispositions, and signals to one thread. `rustix` leaves them to the C library,
//! which keeps some for itself.

use crate::check;
use std::ffi::{c_int, c_void};
use std::io;

/// A handler that is told the number of the signal.
pub type Handler = extern "C" fn(c_int);
/// A handler that is told about a fault as well. [`fault_address`] reads it.
pub type FaultHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What a signal does to this process.
pub struct Disposition(libc::sigaction);

impl Disposition {
    /// What a signal does now.
    ///
    /// # Errors
    /// There is no such signal (`EINVAL`).
    pub fn of(signal: i32) -> io::Result<Self> {
        // SAFETY: all zero is a valid `sigaction`: the default.
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a place for the answer that lives through the call; nothing is changed.
        check(unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) } != 0)?;
        Ok(Disposition(now))
    }

    /// Lets the signal do this again. May be called from a handler.
    ///
    /// # Errors
    /// There is no such signal (`EINVAL`).
    pub fn restore(&self, signal: i32) -> io::Result<()> {
        // SAFETY: the disposition was in force in this process, so that whoever set it has promised
        // that its handler may run; it lives through the call.
        check(unsafe { libc::sigaction(signal, &self.0, std::ptr::null_mut()) } != 0)
    }
}

fn set(signal: i32, handler: usize, flags: c_int) -> io::Result<()> {
    // SAFETY: all zero is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the action lives through the call. The handler is one for as many arguments as the
    // flags say, or a constant of the C library: only the functions below call this.
    check(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0)
}

/// Has a signal handled from now on. System calls that it interrupts are begun again.
///
/// # Safety
/// The handler does only what signal-safety(7) allows at any point of any thread, does not unwind,
/// and leaves `errno` as it was ([`keeping_errno`]).
///
/// # Errors
/// The signal cannot be handled (`EINVAL`).
pub unsafe fn handle(signal: i32, handler: Handler) -> io::Result<()> {
    set(signal, handler as usize, libc::SA_RESTART)
}

/// Has a fault (`SIGSEGV`, `SIGBUS`) handled from now on, on the thread's other stack where it has
/// one.
///
/// # Safety
/// As [`handle`].
///
/// # Errors
/// The signal cannot be handled (`EINVAL`).
pub unsafe fn handle_fault(signal: i32, handler: FaultHandler) -> io::Result<()> {
    set(
        signal,
        handler as usize,
        libc::SA_SIGINFO | libc::SA_ONSTACK,
    )
}

/// Where a fault happened.
///
/// # Safety
/// `info` is what the kernel has passed to a handler of `SIGSEGV` or `SIGBUS` that is running.
pub unsafe fn fault_address(info: *const libc::siginfo_t) -> usize {
    // SAFETY: valid while the handler runs, and of a signal that has an address: the caller's
    // promise.
    unsafe { (*info).si_addr() as usize }
}

/// Lets a signal do nothing.
pub fn ignore(signal: i32) {
    // It fails for a number that is no signal or that cannot be ignored: then nothing is changed.
    let _ = set(signal, libc::SIG_IGN, 0);
}

/// Calls a function and leaves this thread's `errno` as it was before: for handlers.
pub fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    let errno = errno();
    let done = body();
    set_errno(errno);
    done
}

/// This thread's `errno`.
fn errno() -> c_int {
    // SAFETY: the C library's place for this thread, valid for as long as the thread runs.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's `errno`: for functions that C programs call.
pub fn set_errno(errno: c_int) {
    // SAFETY: as in `errno`; no other thread has this place.
    unsafe { *libc::__errno_location() = errno };
}

/// Blocks all signals that can be blocked, for the calling thread.
pub fn block_all() {
    // SAFETY: all zero is a valid set, which is filled before it is read and lives through the
    // calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// Blocks and ignores no signal, and handles none: what a program expects that was just started.
/// For a child between fork and exec.
pub fn take_all() {
    // SAFETY: all zero is a valid set, which is emptied before it is read and lives through the
    // calls; the default is fit for any signal, and those that cannot be changed stay.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        for number in 1..=64 {
            libc::signal(number, libc::SIG_DFL);
        }
    }
}

/// Sends a signal to one thread of this process (tgkill(2)).
///
/// # Errors
/// No such thread in this process (`ESRCH`), or no such signal (`EINVAL`).
pub fn send_to_thread(thread: i32, signal: i32) -> io::Result<()> {
    // SAFETY: a call without pointers. A signal whose default ends the process is no matter of
    // memory safety.
    check(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) } != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI32, Ordering};

    static GOT: AtomicI32 = AtomicI32::new(0);

    extern "C" fn note(signal: c_int) {
        keeping_errno(|| {
            set_errno(libc::EBADF);
            GOT.store(signal, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_handler_is_called_in_its_thread_until_it_is_taken_away() {
        let signal = libc::SIGRTMIN() + 3;
        let before = Disposition::of(signal).unwrap();
        // SAFETY: the handler stores to an atomic word and keeps `errno`.
        unsafe { handle(signal, note) }.unwrap();
        let this = rustix::thread::gettid().as_raw_nonzero().get();
        set_errno(libc::ENOTTY);
        send_to_thread(this, signal).unwrap();
        assert_eq!(GOT.swap(0, Ordering::Relaxed), signal);
        assert_eq!(errno(), libc::ENOTTY);
        ignore(signal);
        send_to_thread(this, signal).unwrap();
        assert_eq!(GOT.load(Ordering::Relaxed), 0);
        before.restore(signal).unwrap();
        assert_eq!(
            Disposition::of(signal).unwrap().0.sa_sigaction,
            libc::SIG_DFL
        );
        let e = send_to_thread(i32::MAX, signal).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ESRCH));
        // SAFETY: as above.
        assert!(unsafe { handle(libc::SIGKILL, note) }.is_err());
    }

    #[test]
    fn blocked_signals_wait() {
        std::thread::spawn(|| {
            block_all();
            let this = rustix::thread::gettid().as_raw_nonzero().get();
            // Its default ends the process.
            send_to_thread(this, libc::SIGUSR2).unwrap();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
            let pending = u64::from_str_radix(pending.unwrap().trim(), 16).unwrap();
            assert_eq!(pending, 1 << (libc::SIGUSR2 - 1));
            // It goes with this thread.
        })
        .join()
        .unwrap();
    }
}
