//! A fast Fourier transform of n complex points: X_k = Σ x_i e^(−2πi ik/n), radix 2, by Cooley and
//! Tukey (001 §5.3, Fig. 5).
//!
//! 40 n bytes: input and output as pairs of doubles, and a table of n/2 roots of unity. The input
//! is copied in bit-reversed order and stays. [`step`] is its one description, over memory or over a
//! recorder.

use crate::memory::Memory;
use model::Result;
use std::f64::consts::TAU;

/// A transform in memory that somebody else owns.
#[derive(Debug)]
pub struct Fourier<'a> {
    /// Input and output as pairs, then e^(−2πi k/n) for k below n/2, as pairs.
    memory: &'a mut [f64],
    points: usize,
}

/// Doubles that a transform of so many points needs.
pub const fn doubles(points: usize) -> usize {
    5 * points
}

impl<'a> Fourier<'a> {
    /// Of so many points.
    ///
    /// # Errors
    /// The number of points is no power of two, or there is less memory than [`doubles`] says.
    pub fn new(memory: &'a mut [f64], points: usize) -> Result<Self> {
        super::power_of_two(points, "a Fourier transform")?;
        let memory = super::room(memory, doubles(points), "a Fourier transform")?;
        memory[..2 * points].fill(0.0);
        for (k, root) in memory[4 * points..].chunks_exact_mut(2).enumerate() {
            let angle = -TAU * k as f64 / points as f64;
            root.copy_from_slice(&[angle.cos(), angle.sin()]);
        }
        Ok(Fourier { memory, points })
    }

    /// What is transformed: real and imaginary parts in turn.
    pub fn input(&mut self) -> &mut [f64] {
        &mut self.memory[..2 * self.points]
    }

    /// Transforms the input, with the real part of its first point replaced; gives the same of the
    /// result.
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        step(self.memory, self.points, sample)
    }

    /// The result: real and imaginary parts in turn.
    pub fn output(&self) -> &[f64] {
        &self.memory[2 * self.points..4 * self.points]
    }
}

/// One transform of so many points: a power of two, in memory as [`Fourier::new`] prepares it.
#[inline(always)]
pub fn step<M: Memory + ?Sized>(memory: &mut M, points: usize, sample: f64) -> f64 {
    let output = 2 * points;
    memory.set(0, sample);
    let bits = points.trailing_zeros();
    for i in 0..points {
        let from = match bits {
            0 => 0,
            bits => i.reverse_bits() >> (usize::BITS - bits),
        };
        for part in 0..2 {
            let value = memory.get(2 * from + part);
            memory.set(output + 2 * i + part, value);
        }
    }
    let mut half = 1;
    while half < points {
        for group in (0..points).step_by(2 * half) {
            butterflies(memory, points, group, half);
        }
        half *= 2;
    }
    memory.get(output)
}

/// Joins two neighbors of transforms of `half` points, the first of which begins at point `group`.
#[inline(always)]
fn butterflies<M: Memory + ?Sized>(memory: &mut M, points: usize, group: usize, half: usize) {
    let (output, roots) = (2 * points, 4 * points);
    let stride = points / (2 * half);
    for k in 0..half {
        let low = output + 2 * (group + k);
        let high = low + 2 * half;
        let root = roots + 2 * k * stride;
        let a = [memory.get(low), memory.get(low + 1)];
        let b = [memory.get(high), memory.get(high + 1)];
        let root = [memory.get(root), memory.get(root + 1)];
        let (re, im) = (
            b[0] * root[0] - b[1] * root[1],
            b[0] * root[1] + b[1] * root[0],
        );
        memory.set(high, a[0] - re);
        memory.set(high + 1, a[1] - im);
        memory.set(low, a[0] + re);
        memory.set(low + 1, a[1] + im);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Recorder;
    use crate::memory::tests::hold_together;

    #[test]
    fn what_it_touches_is_what_a_recorder_tells() {
        for points in [1, 2, 8, 128] {
            let mut memory = vec![0.0; doubles(points)];
            let mut transform = Fourier::new(&mut memory, points).unwrap();
            for (i, x) in transform.input().iter_mut().enumerate() {
                *x = ((i * 29 + 5) % 19) as f64 - 9.0;
            }
            hold_together(
                &memory,
                |memory| step(memory, points, 3.0),
                |memory| step(memory, points, 3.0),
                |touches| {
                    step(&mut Recorder::new(8, |t| touches.push(t)), points, 3.0);
                },
            );
        }
    }

    #[test]
    fn it_is_the_sum_of_its_definition() {
        for points in [1, 2, 4, 8, 64, 256] {
            let mut memory = vec![5.0; doubles(points)];
            let mut transform = Fourier::new(&mut memory, points).unwrap();
            for (i, x) in transform.input().iter_mut().enumerate() {
                *x = ((i * 29 + 5) % 19) as f64 - 9.0;
            }
            let x = transform.input().to_vec();
            transform.step(x[0]);
            for k in 0..points {
                let (mut re, mut im) = (0.0, 0.0);
                for i in 0..points {
                    let angle = -TAU * (i * k % points) as f64 / points as f64;
                    re += x[2 * i] * angle.cos() - x[2 * i + 1] * angle.sin();
                    im += x[2 * i] * angle.sin() + x[2 * i + 1] * angle.cos();
                }
                let got = &transform.output()[2 * k..2 * k + 2];
                assert!(
                    (got[0] - re).abs() < 1e-8 && (got[1] - im).abs() < 1e-8,
                    "{points} points, {k}: {got:?} instead of {re} {im}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_power_of_two_is_refused() {
        for points in [0, 3, 12] {
            assert!(Fourier::new(&mut [0.0; 100], points).is_err());
        }
    }
}
