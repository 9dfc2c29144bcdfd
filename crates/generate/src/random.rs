//! Random numbers that are the same on every machine: ChaCha8, one stream for each task set.
//!
//! Nothing here depends on the system's mathematics library, on the number of threads or on the
//! order of the sets: the key is the seed, the stream is the number of the set, and every
//! transformation is IEEE arithmetic or `libm`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Written behind the seed in the key, so that another use of the same seed draws other numbers.
/// Changing how sets are drawn changes this text too.
const PURPOSE: &[u8; 24] = b"warmset task sets, v1\0\0\0";

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of this number under this seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(PURPOSE);
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(stream);
        Random(rng)
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in (0, 1]: for logarithms and roots.
    pub fn positive_unit(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform between two numbers.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform among 0, 1, …, `count` - 1, without bias; 0 when `count` is 0.
    pub fn below(&mut self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        // The high half of a product is uniform once the low halves that would favor some values
        // are drawn anew.
        let favored = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(count);
            if product as u64 >= favored {
                return (product >> 64) as u64;
            }
        }
    }

    /// Puts a slice into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
