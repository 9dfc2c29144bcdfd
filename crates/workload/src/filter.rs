//! A digital filter: the sum of n coefficients times the last n samples (001 §5.2).
//!
//! 16 n bytes: the coefficients, then the samples as a ring. Both are read in ascending order, one
//! sample is written.

use crate::Touch;
use model::{Error, Result};

/// A filter in memory that somebody else owns.
#[derive(Debug)]
pub struct Filter<'a> {
    coefficients: &'a mut [f64],
    samples: &'a mut [f64],
    newest: usize,
}

/// Doubles that a filter of so many coefficients needs.
pub const fn doubles(coefficients: usize) -> usize {
    2 * coefficients
}

impl<'a> Filter<'a> {
    /// With the coefficients 1, 1/2, 1/3, … and samples of zero.
    ///
    /// # Errors
    /// No coefficients, or less memory than [`doubles`] says.
    pub fn new(memory: &'a mut [f64], coefficients: usize) -> Result<Self> {
        let memory = super::room(memory, doubles(coefficients), "a filter")?;
        if coefficients == 0 {
            return Err(Error::new("a filter without coefficients").remedy("give it at least one"));
        }
        let (first, samples) = memory.split_at_mut(coefficients);
        for (i, c) in first.iter_mut().enumerate() {
            *c = 1.0 / (i + 1) as f64;
        }
        samples.fill(0.0);
        Ok(Filter {
            coefficients: first,
            samples,
            newest: 0,
        })
    }

    /// Takes a sample in and gives Σ c_i x_(t−i).
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        let taps = self.samples.len();
        // The newest sample lies lowest, so that both arrays are walked upwards.
        self.newest = (self.newest + taps - 1) % taps;
        self.samples[self.newest] = sample;
        let (wrapped, recent) = self.samples.split_at(self.newest);
        let (head, tail) = self.coefficients.split_at(recent.len());
        dot(head, recent) + dot(tail, wrapped)
    }
}

/// The accesses of a step to its memory, in words of `word` bytes: the sample that comes in, at
/// place `newest` of the ring, then each coefficient with its sample.
pub fn touches(coefficients: usize, newest: usize, word: u32, mut touch: impl FnMut(Touch)) {
    let at = |place: usize, write: bool| Touch {
        offset: place as u64 * u64::from(word),
        bytes: word,
        write,
    };
    touch(at(coefficients + newest, true));
    for i in 0..coefficients {
        touch(at(i, false));
        touch(at(coefficients + (newest + i) % coefficients, false));
    }
}

/// The inner product, in four sums side by side.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, others) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = fours
        .remainder()
        .iter()
        .zip(others.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in fours.zip(others) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sums_coefficients_times_the_last_samples() {
        for taps in [1, 4, 7, 512, 700] {
            let mut memory = vec![9.0; doubles(taps) + 3];
            let mut filter = Filter::new(&mut memory, taps).unwrap();
            let mut past: Vec<f64> = Vec::new();
            for t in 0..2 * taps.min(40) + taps {
                let sample = (t * 7 % 11) as f64;
                past.insert(0, sample);
                past.truncate(taps);
                let wanted: f64 = past
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x / (i + 1) as f64)
                    .sum();
                let got = filter.step(sample);
                assert!(
                    (got - wanted).abs() < 1e-9 * wanted.abs().max(1.0),
                    "{taps} taps, step {t}: {got} instead of {wanted}"
                );
            }
        }
    }

    /// What the accesses read is what the step adds up.
    #[test]
    fn its_accesses_give_its_result() {
        for taps in [1, 5, 64] {
            let mut memory = vec![0.0; doubles(taps)];
            let mut model = vec![0.0; doubles(taps)];
            let mut filter = Filter::new(&mut memory, taps).unwrap();
            model[..taps].copy_from_slice(filter.coefficients);
            for t in 0..3 * taps {
                let sample = (t * 7 % 11) as f64;
                let got = filter.step(sample);
                let mut read = Vec::new();
                touches(taps, filter.newest, 8, |touch| {
                    let place = (touch.offset / 8) as usize;
                    if touch.write {
                        model[place] = sample;
                    } else {
                        read.push(model[place]);
                    }
                });
                assert_eq!(read.len(), 2 * taps);
                let sum: f64 = read.chunks(2).map(|pair| pair[0] * pair[1]).sum();
                assert!((got - sum).abs() < 1e-9 * sum.abs().max(1.0));
            }
        }
    }

    #[test]
    fn too_little_memory_is_refused() {
        let e = Filter::new(&mut [0.0; 7], 4).unwrap_err().to_string();
        assert!(e.contains("64B") && e.contains("56B"), "{e}");
        assert!(Filter::new(&mut [], 0).is_err());
    }
}
