//! A discrete cosine transform of n points: X_k = Σ x_i cos(π/n (i + ½) k), by Lee's recursion (001
//! §5.3, Fig. 5).
//!
//! B. G. Lee, "A new algorithm to compute the discrete cosine transform", IEEE Trans. ASSP 32(6),
//! 1984: halves are transformed on their own, n log n steps. 32 n bytes: input, output, room aside,
//! and a table of factors. [`step`] is its one description, over memory or over a recorder.

use crate::memory::Memory;
use model::Result;
use std::f64::consts::PI;

/// A transform in memory that somebody else owns.
#[derive(Debug)]
pub struct Cosine<'a> {
    /// Input, output, room aside, and factors: for each length 2, 4, … n, the factors
    /// 1 / (2 cos(π/length (i + ½))) of its half, one length after the other.
    memory: &'a mut [f64],
    points: usize,
}

/// Doubles that a transform of so many points needs.
pub const fn doubles(points: usize) -> usize {
    4 * points
}

impl<'a> Cosine<'a> {
    /// Of so many points.
    ///
    /// # Errors
    /// The number of points is no power of two, or there is less memory than [`doubles`] says.
    pub fn new(memory: &'a mut [f64], points: usize) -> Result<Self> {
        super::power_of_two(points, "a cosine transform")?;
        let memory = super::room(memory, doubles(points), "a cosine transform")?;
        memory[..points].fill(0.0);
        let factors = &mut memory[3 * points..];
        let mut length = 2;
        while length <= points {
            // Lengths before this one have 1 + 2 + … + length/4 = length/2 − 1 factors.
            for i in 0..length / 2 {
                factors[length / 2 - 1 + i] = 0.5 / (PI / length as f64 * (i as f64 + 0.5)).cos();
            }
            length *= 2;
        }
        Ok(Cosine { memory, points })
    }

    /// What is transformed.
    pub fn input(&mut self) -> &mut [f64] {
        &mut self.memory[..self.points]
    }

    /// Transforms the input, with its first point replaced; gives the first point of the result.
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        step(self.memory, self.points, sample)
    }

    /// The result.
    pub fn output(&self) -> &[f64] {
        &self.memory[self.points..2 * self.points]
    }
}

/// One transform of so many points: a power of two, in memory as [`Cosine::new`] prepares it.
#[inline(always)]
pub fn step<M: Memory + ?Sized>(memory: &mut M, points: usize, sample: f64) -> f64 {
    let (output, aside, factors) = (points, 2 * points, 3 * points);
    memory.set(0, sample);
    for i in 0..points {
        let point = memory.get(i);
        memory.set(output + i, point);
    }
    halves(memory, output, aside, points, factors);
    memory.get(output)
}

/// Transforms `length` points in place, with as much room aside.
fn halves<M: Memory + ?Sized>(
    memory: &mut M,
    points: usize,
    aside: usize,
    length: usize,
    factors: usize,
) {
    if length == 1 {
        return;
    }
    let half = length / 2;
    let own = factors + half - 1;
    for i in 0..half {
        let (x, y) = (memory.get(points + i), memory.get(points + length - 1 - i));
        let factor = memory.get(own + i);
        memory.set(aside + i, x + y);
        memory.set(aside + half + i, (x - y) * factor);
    }
    halves(memory, aside, points, half, factors);
    halves(memory, aside + half, points + half, half, factors);
    // Each sum of two neighbors of the second half; the last one has none behind it.
    let mut next = memory.get(aside + half);
    for i in 0..half {
        let this = next;
        next = match i + 1 < half {
            true => memory.get(aside + half + i + 1),
            false => 0.0,
        };
        let even = memory.get(aside + i);
        memory.set(points + 2 * i, even);
        memory.set(points + 2 * i + 1, this + next);
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
            let mut transform = Cosine::new(&mut memory, points).unwrap();
            for (i, x) in transform.input().iter_mut().enumerate() {
                *x = ((i * 31 + 7) % 17) as f64 - 8.0;
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
            let mut transform = Cosine::new(&mut memory, points).unwrap();
            for (i, x) in transform.input().iter_mut().enumerate() {
                *x = ((i * 31 + 7) % 17) as f64 - 8.0;
            }
            let x = transform.input().to_vec();
            let first = transform.step(x[0]);
            assert_eq!(first, transform.output()[0]);
            for k in 0..points {
                let wanted: f64 = (0..points)
                    .map(|i| x[i] * (PI / points as f64 * (i as f64 + 0.5) * k as f64).cos())
                    .sum();
                let got = transform.output()[k];
                assert!(
                    (got - wanted).abs() < 1e-8,
                    "{points} points, {k}: {got} instead of {wanted}"
                );
            }
            let again = transform.output().to_vec();
            transform.step(x[0]);
            assert_eq!(again, transform.output(), "the input stays");
        }
    }

    #[test]
    fn what_is_no_power_of_two_is_refused() {
        for points in [0, 3, 12] {
            assert!(Cosine::new(&mut [0.0; 100], points).is_err());
        }
    }
}
