//! A lock that sleeps (futex, three states): usable in a process whose allocator it guards, and
//! across `fork`.

use super::sys;
use core::sync::atomic::{AtomicU32, Ordering};

/// A lock without data.
#[derive(Debug)]
pub struct Lock(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

impl Lock {
    /// Nobody's.
    pub const fn new() -> Self {
        Lock(AtomicU32::new(FREE))
    }

    /// Takes it, sleeping until it can be had. Not by who has it already.
    pub fn take(&self) {
        if self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            sys::wait(&self.0, AWAITED);
        }
    }

    /// Gives it back.
    pub fn give(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            sys::wake(&self.0);
        }
    }

    /// Has nobody got it, at this moment?
    pub fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
    }

    /// Runs a body with it.
    pub fn with<T>(&self, body: impl FnOnce() -> T) -> T {
        self.take();
        let result = body();
        self.give();
        result
    }
}
