//! A fast Fourier transform of n complex points: X_k = Σ x_i e^(−2πi ik/n), radix 2, by Cooley and
//! Tukey (001 §5.3, Fig. 5).
//!
//! 40 n bytes: input and output as pairs of doubles, and a table of n/2 roots of unity. The input
//! is copied in bit-reversed order and stays.

use model::Result;
use std::f64::consts::TAU;

/// A transform in memory that somebody else owns.
#[derive(Debug)]
pub struct Fourier<'a> {
    input: &'a mut [f64],
    output: &'a mut [f64],
    /// e^(−2πi k/n) for k below n/2, as pairs.
    roots: &'a mut [f64],
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
        let (input, rest) = memory.split_at_mut(2 * points);
        let (output, roots) = rest.split_at_mut(2 * points);
        input.fill(0.0);
        for (k, root) in roots.chunks_exact_mut(2).enumerate() {
            let angle = -TAU * k as f64 / points as f64;
            root.copy_from_slice(&[angle.cos(), angle.sin()]);
        }
        Ok(Fourier {
            input,
            output,
            roots,
        })
    }

    /// What is transformed: real and imaginary parts in turn.
    pub fn input(&mut self) -> &mut [f64] {
        self.input
    }

    /// Transforms the input, with the real part of its first point replaced; gives the same of the
    /// result.
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        self.input[0] = sample;
        let points = self.input.len() / 2;
        let bits = points.trailing_zeros();
        for (i, place) in self.output.chunks_exact_mut(2).enumerate() {
            let from = if bits == 0 {
                0
            } else {
                i.reverse_bits() >> (usize::BITS - bits)
            };
            place.copy_from_slice(&self.input[2 * from..2 * from + 2]);
        }
        let mut half = 1;
        while half < points {
            let stride = points / (2 * half);
            for group in self.output.chunks_exact_mut(4 * half) {
                let (low, high) = group.split_at_mut(2 * half);
                for (k, (a, b)) in low
                    .chunks_exact_mut(2)
                    .zip(high.chunks_exact_mut(2))
                    .enumerate()
                {
                    let root = &self.roots[2 * k * stride..2 * k * stride + 2];
                    let (re, im) = (
                        b[0] * root[0] - b[1] * root[1],
                        b[0] * root[1] + b[1] * root[0],
                    );
                    b[0] = a[0] - re;
                    b[1] = a[1] - im;
                    a[0] += re;
                    a[1] += im;
                }
            }
            half *= 2;
        }
        self.output[0]
    }

    /// The result: real and imaginary parts in turn.
    pub fn output(&self) -> &[f64] {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
