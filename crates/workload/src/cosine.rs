//! A discrete cosine transform of n points: X_k = Σ x_i cos(π/n (i + ½) k), by Lee's recursion (001
//! §5.3, Fig. 5).
//!
//! B. G. Lee, "A new algorithm to compute the discrete cosine transform", IEEE Trans. ASSP 32(6),
//! 1984: halves are transformed on their own, n log n steps. 32 n bytes: input, output, room aside,
//! and a table of factors.

use model::Result;
use std::f64::consts::PI;

/// A transform in memory that somebody else owns.
#[derive(Debug)]
pub struct Cosine<'a> {
    input: &'a mut [f64],
    output: &'a mut [f64],
    aside: &'a mut [f64],
    /// For each length 2, 4, … n, the factors 1 / (2 cos(π/length (i + ½))) of its half, one length
    /// after the other.
    factors: &'a mut [f64],
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
        let (input, rest) = memory.split_at_mut(points);
        let (output, rest) = rest.split_at_mut(points);
        let (aside, factors) = rest.split_at_mut(points);
        input.fill(0.0);
        let mut length = 2;
        while length <= points {
            // Lengths before this one have 1 + 2 + … + length/4 = length/2 − 1 factors.
            for i in 0..length / 2 {
                factors[length / 2 - 1 + i] = 0.5 / (PI / length as f64 * (i as f64 + 0.5)).cos();
            }
            length *= 2;
        }
        Ok(Cosine {
            input,
            output,
            aside,
            factors,
        })
    }

    /// What is transformed.
    pub fn input(&mut self) -> &mut [f64] {
        self.input
    }

    /// Transforms the input, with its first point replaced; gives the first point of the result.
    #[inline(never)]
    pub fn step(&mut self, sample: f64) -> f64 {
        self.input[0] = sample;
        self.output.copy_from_slice(self.input);
        halves(self.output, self.aside, self.factors);
        self.output[0]
    }

    /// The result.
    pub fn output(&self) -> &[f64] {
        self.output
    }
}

/// Transforms in place, with as much room aside.
fn halves(points: &mut [f64], aside: &mut [f64], factors: &[f64]) {
    let length = points.len();
    if length == 1 {
        return;
    }
    let half = length / 2;
    let own = &factors[half - 1..length - 1];
    for i in 0..half {
        let (x, y) = (points[i], points[length - 1 - i]);
        aside[i] = x + y;
        aside[half + i] = (x - y) * own[i];
    }
    {
        let (even, odd) = aside.split_at_mut(half);
        let (low, high) = points.split_at_mut(half);
        halves(even, low, factors);
        halves(odd, high, factors);
    }
    for i in 0..half {
        let next = if i + 1 < half {
            aside[half + i + 1]
        } else {
            0.0
        };
        points[2 * i] = aside[i];
        points[2 * i + 1] = aside[half + i] + next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
