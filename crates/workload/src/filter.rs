//! A digital filter: the sum of n coefficients times the last n samples (001 §5.2).
//!
//! 2 n words: the coefficients, then the samples as a ring. Both are read in ascending order, one
//! sample is written. Words have 4 bytes in the paper, and 8 where nothing else is said. [`step`] is
//! its one description, over memory or over a recorder.

use crate::memory::{Memory, Word};
use model::{Error, Result};

/// A filter in memory that somebody else owns.
#[derive(Debug)]
pub struct Filter<'a, W = f64> {
    memory: &'a mut [W],
    taps: usize,
    newest: usize,
}

/// Words that a filter of so many coefficients needs.
pub const fn words(coefficients: usize) -> usize {
    2 * coefficients
}

impl<'a, W: Word> Filter<'a, W> {
    /// With the coefficients 1, 1/2, 1/3, … and samples of zero.
    ///
    /// # Errors
    /// No coefficients, or less memory than [`words`] says.
    pub fn new(memory: &'a mut [W], coefficients: usize) -> Result<Self> {
        let memory = super::room(memory, words(coefficients), "a filter")?;
        if coefficients == 0 {
            return Err(Error::new("a filter without coefficients").remedy("give it at least one"));
        }
        let (first, samples) = memory.split_at_mut(coefficients);
        for (i, c) in first.iter_mut().enumerate() {
            *c = W::nearest(1.0 / (i + 1) as f64);
        }
        samples.fill(W::nearest(0.0));
        Ok(Filter {
            memory,
            taps: coefficients,
            newest: 0,
        })
    }

    /// Takes a sample in and gives Σ c_i x_(t−i).
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        self.newest = before(self.newest, self.taps);
        step(self.memory, self.taps, self.newest, sample)
    }
}

/// The place in the ring of the sample that comes after the one at `newest`: one lower, so that both
/// arrays are walked upwards.
pub const fn before(newest: usize, taps: usize) -> usize {
    (newest + taps - 1) % taps
}

/// One step: the sample that comes in is written at place `newest` of the ring, below `taps`; then
/// each coefficient is read with its sample.
#[inline(always)]
pub fn step<M: Memory + ?Sized>(memory: &mut M, taps: usize, newest: usize, sample: f64) -> f64 {
    memory.set(taps + newest, sample);
    let recent = taps - newest;
    memory.dot(0, taps + newest, recent) + memory.dot(recent, taps, newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Recorder;
    use crate::memory::tests::hold_together;

    #[test]
    fn it_sums_coefficients_times_the_last_samples() {
        for taps in [1, 4, 7, 512, 700] {
            let mut memory = vec![9.0_f64; words(taps) + 3];
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

    #[test]
    fn with_words_of_four_bytes_it_sums_the_same() {
        let (mut short, mut long) = (vec![0.0_f32; words(5)], vec![0.0_f64; words(5)]);
        let mut small = Filter::new(&mut short, 5).unwrap();
        let mut large = Filter::new(&mut long, 5).unwrap();
        for t in 0..12 {
            let (a, b) = (small.step(f64::from(t)), large.step(f64::from(t)));
            assert!((a - b).abs() <= 1e-6 * b.abs(), "{a} {b}");
        }
    }

    #[test]
    fn what_it_touches_is_what_a_recorder_tells() {
        for (taps, newest) in [(1, 0), (5, 3), (64, 0), (64, 63), (512, 17)] {
            let values: Vec<f64> = (0..words(taps)).map(|i| 1.0 / (i + 2) as f64).collect();
            hold_together(
                &values,
                |memory| step(memory, taps, newest, 3.0),
                |memory| step(memory, taps, newest, 3.0),
                |touches| {
                    step(
                        &mut Recorder::new(8, |t| touches.push(t)),
                        taps,
                        newest,
                        3.0,
                    );
                    assert_eq!(touches.len(), 2 * taps + 1);
                },
            );
        }
    }

    #[test]
    fn too_little_memory_is_refused() {
        let e = Filter::new(&mut [0.0_f64; 7], 4).unwrap_err().to_string();
        assert!(e.contains("64B") && e.contains("56B"), "{e}");
        let e = Filter::new(&mut [0.0_f32; 7], 4).unwrap_err().to_string();
        assert!(e.contains("32B") && e.contains("28B"), "{e}");
        assert!(Filter::<f64>::new(&mut [], 0).is_err());
    }
}
