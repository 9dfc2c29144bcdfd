//! Seeing interrupts from user space, without the kernel's help: was this stretch of code
//! interrupted?
//!
//! On x86-64 a return to a less privileged level clears a data segment register that holds a null
//! selector (Intel SDM vol. 2, IRET: "return to outer privilege level"; AMD APM vol. 3, IRET). A
//! null selector with a non-zero privilege field, put into ES, which 64-bit code does not use,
//! therefore disappears with the first interrupt. Assumes a kernel that does not save and restore
//! ES around interrupts (Linux does not) and no FRED. [`Witness::new`] tries it before it is
//! trusted. What the hypervisor does without telling the guest stays unseen.

use crate::clock::monotonic_raw;

/// Tells whether the calling thread was interrupted since it was armed.
#[derive(Clone, Copy, Debug)]
pub struct Witness {
    works: bool,
}

/// A null selector that differs from the one that an interrupt leaves.
#[cfg(target_arch = "x86_64")]
const ARMED: u16 = 1;

impl Witness {
    /// Tries out whether this machine shows interrupts: armed, they must stay unseen for a moment
    /// and be seen when the thread sleeps or spins through some ticks. Takes up to 50 ms.
    pub fn new() -> Self {
        let witness = Witness { works: true };
        let quiet = (0..100).any(|_| {
            witness.arm();
            !witness.interrupted()
        });
        witness.arm();
        let end = monotonic_raw() + 50_000_000;
        let mut seen = false;
        while !seen && monotonic_raw() < end {
            seen = witness.interrupted();
        }
        witness.disarm();
        Witness {
            works: quiet && seen,
        }
    }

    /// A witness that sees nothing.
    pub fn blind() -> Self {
        Witness { works: false }
    }

    /// Does this machine show interrupts?
    pub fn works(&self) -> bool {
        self.works
    }

    /// From here on an interrupt is seen.
    #[inline(always)]
    pub fn arm(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.works {
            // SAFETY: null selectors 0 to 3 may be loaded into ES at any privilege level, and
            // 64-bit code uses neither base nor limit of ES.
            unsafe {
                core::arch::asm!("mov es, {0:x}", in(reg) ARMED, options(nostack, preserves_flags));
            }
        }
    }

    /// Was the thread interrupted since it was armed?
    #[inline(always)]
    pub fn interrupted(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.works {
            let selector: u16;
            // SAFETY: reads a segment register.
            unsafe {
                core::arch::asm!("mov {0:x}, es", out(reg) selector, options(nomem, nostack, preserves_flags));
            }
            return selector != ARMED;
        }
        false
    }

    /// Leaves the register as the system set it up.
    #[inline(always)]
    pub fn disarm(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.works {
            // SAFETY: as in `arm`; zero is what Linux starts programs with.
            unsafe {
                core::arch::asm!("mov es, {0:x}", in(reg) 0u16, options(nostack, preserves_flags));
            }
        }
    }
}

impl Default for Witness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blind_witness_sees_nothing() {
        let witness = Witness::blind();
        witness.arm();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(!witness.interrupted());
    }
}
