//! Stopping a thread in the middle of its work where no other job takes its processor: a closed
//! gate that it runs into.
//!
//! Closing sets a word and sends the thread a signal; its handler sleeps on the word until the gate
//! is open. A thread that is not on a processor when the signal is sent runs into the gate before
//! its next instruction, and finds it open again if it was opened meanwhile: closing and opening
//! need no answer from the thread and cannot race with it.

use crate::kernel::{self, Thread};
use model::{Error, Result};
use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

/// The gate of one thread.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

thread_local! {
    /// The gate of this thread; null: it has none.
    static MINE: Cell<*const Gate> = const { Cell::new(std::ptr::null()) };
}

/// The signal that leads a thread to its gate: one that programs and libraries leave alone.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 9
}

extern "C" fn on_signal(_: libc::c_int) {
    sys::signal::keeping_errno(|| {
        // A thread that ends has no gate any more.
        let gate = MINE.try_with(Cell::get).unwrap_or(std::ptr::null());
        // SAFETY: null, or the gate that this thread said to be its own in `Gate::attach` and which
        // outlives its `Attached`.
        if let Some(gate) = unsafe { gate.as_ref() } {
            gate.pass();
        }
    });
}

/// Installs the signal's handler, once for the process.
///
/// # Errors
/// The kernel refuses it.
pub fn install() -> Result<()> {
    static DONE: OnceLock<std::result::Result<(), i32>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        // SAFETY: the handler makes an atomic load and a system call, and keeps `errno`.
        let done = unsafe { sys::signal::handle(signal(), on_signal) };
        done.map_err(|e| e.raw_os_error().unwrap_or(0))
    });
    done.map_err(|errno| {
        Error::new(format!(
            "cannot handle signal {}: {}",
            signal(),
            io::Error::from_raw_os_error(errno)
        ))
    })
}

/// Makes a gate the one of the calling thread for as long as this lives.
pub struct Attached<'a>(
    #[allow(dead_code, reason = "borrowed for as long as the handler may look")] &'a Gate,
);

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        MINE.set(std::ptr::null());
    }
}

impl Gate {
    /// From now on the calling thread runs into this gate.
    pub fn attach(&self) -> Attached<'_> {
        MINE.set(self);
        Attached(self)
    }

    /// Sleeps until the gate is open.
    fn pass(&self) {
        while self.0.load(Ordering::Acquire) == CLOSED {
            kernel::futex_wait(&self.0, CLOSED, None);
        }
    }

    /// Closes it, and leads the thread to it.
    ///
    /// # Errors
    /// The thread has gone.
    pub fn close(&self, thread: Thread) -> io::Result<()> {
        self.0.store(CLOSED, Ordering::Release);
        thread.signal(signal())
    }

    /// Opens it.
    pub fn open(&self) {
        if self.0.swap(OPEN, Ordering::Release) == CLOSED {
            kernel::futex_wake(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
    use std::time::Duration;

    #[test]
    fn a_closed_gate_stops_a_thread_in_the_middle_and_an_open_one_lets_it_go_on() {
        install().unwrap();
        let (gate, stop) = (Gate::default(), AtomicBool::new(false));
        let (count, tid) = (AtomicU64::new(0), AtomicI32::new(0));
        let pause = || std::thread::sleep(Duration::from_millis(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _attached = gate.attach();
                tid.store(Thread::current().0, Ordering::Release);
                while !stop.load(Ordering::Relaxed) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
            while tid.load(Ordering::Acquire) == 0 {
                pause();
            }
            let thread = Thread(tid.load(Ordering::Acquire));
            for _ in 0..5 {
                gate.close(thread).unwrap();
                // It stops at some time: two looks in a row see the same count.
                let mut seen = count.load(Ordering::Relaxed);
                for _ in 0..10_000 {
                    pause();
                    let now = count.load(Ordering::Relaxed);
                    if std::mem::replace(&mut seen, now) == now {
                        break;
                    }
                }
                pause();
                assert_eq!(count.load(Ordering::Relaxed), seen, "it stands still");
                // Opened and closed at once: whoever comes late finds what counts last.
                gate.open();
                gate.close(thread).unwrap();
                gate.open();
                while count.load(Ordering::Relaxed) == seen {
                    pause();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
