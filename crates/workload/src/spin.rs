//! Computing without touching memory: a chain of dependent multiplications.

use crate::Units;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Links of the chain in a unit.
const LINKS: u32 = 64;
/// Units between two looks at whether to stop.
const LOOK_EVERY: u64 = 256;

/// Spins.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    value: u64,
}

impl Spin {
    /// From some value.
    pub fn new(seed: u64) -> Self {
        Spin { value: seed | 1 }
    }
}

impl Units for Spin {
    fn units(&mut self, count: u64, stop: &AtomicBool) {
        let mut left = count;
        let mut value = self.value;
        while left > 0 && !stop.load(Ordering::Relaxed) {
            let now = left.min(LOOK_EVERY);
            for _ in 0..now {
                for _ in 0..LINKS {
                    // Each depends on the one before it, and none can be left out.
                    value = black_box(
                        value
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1),
                    );
                }
            }
            left -= now;
        }
        self.value = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_computes_and_stops_when_told() {
        let mut spin = Spin::new(3);
        spin.units(10, &AtomicBool::new(false));
        let mut again = Spin::new(3);
        again.units(4, &AtomicBool::new(false));
        again.units(6, &AtomicBool::new(false));
        assert_eq!(spin.value, again.value, "work can be cut anywhere");
        let before = spin.value;
        spin.units(u64::MAX, &AtomicBool::new(true));
        assert_eq!(spin.value, before);
    }
}
