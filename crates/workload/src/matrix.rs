//! The product of two 64×64 matrices of doubles in submatrices of 8×8, the second one stored by
//! columns (001 §5.4, Fig. 6).
//!
//! 96 KiB: a by rows, b by columns, c by rows. Eight rows of a and eight columns of b are one page
//! of 4 KiB each, where the memory begins at a page. Cut into [`STEPS`] steps, so that it can be
//! interrupted anywhere and go on. [`step`] is its one description, over memory or over a recorder.

use crate::memory::Memory;
use model::Result;

/// Rows and columns.
pub const SIDE: usize = 64;
/// Rows and columns of a submatrix.
pub const BLOCK: usize = 8;
/// Doubles of the three matrices.
pub const DOUBLES: usize = 3 * SIDE * SIDE;
/// Steps of a product: each is a row of a submatrix.
pub const STEPS: usize = SIDE * SIDE / BLOCK;

/// A product in memory that somebody else owns.
#[derive(Debug)]
pub struct Product<'a> {
    memory: &'a mut [f64],
}

impl<'a> Product<'a> {
    /// Of two matrices full of small numbers.
    ///
    /// # Errors
    /// Less than [`DOUBLES`] of memory.
    pub fn new(memory: &'a mut [f64]) -> Result<Self> {
        let memory = super::room(memory, DOUBLES, "a product of matrices")?;
        let (a, rest) = memory.split_at_mut(SIDE * SIDE);
        let (b, c) = rest.split_at_mut(SIDE * SIDE);
        for (i, (a, b)) in a.iter_mut().zip(b.iter_mut()).enumerate() {
            *a = (i % 13) as f64 - 6.0;
            *b = (i % 7) as f64 - 3.0;
        }
        c.fill(0.0);
        Ok(Product { memory })
    }

    /// Computes row `number` modulo [`STEPS`], submatrix by submatrix. Gives one of its elements.
    #[inline(never)]
    pub fn step(&mut self, number: usize) -> f64 {
        step(self.memory, number)
    }
}

/// Computes row `number` modulo [`STEPS`], submatrix by submatrix: a row of a with eight columns of
/// b. Gives the first of its elements.
#[inline(always)]
pub fn step<M: Memory + ?Sized>(memory: &mut M, number: usize) -> f64 {
    let number = number % STEPS;
    let (submatrix, row) = (number / BLOCK, number % BLOCK);
    let i = submatrix / (SIDE / BLOCK) * BLOCK + row;
    let first = submatrix % (SIDE / BLOCK) * BLOCK;
    let (b, c) = (SIDE * SIDE, 2 * SIDE * SIDE);
    let mut given = 0.0;
    for j in first..first + BLOCK {
        let element = memory.dot(i * SIDE, b + j * SIDE, SIDE);
        memory.set(c + i * SIDE + j, element);
        if j == first {
            given = element;
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Recorder;
    use crate::memory::tests::hold_together;

    #[test]
    fn what_it_touches_is_what_a_recorder_tells() {
        let mut memory = vec![0.0; DOUBLES];
        Product::new(&mut memory).unwrap();
        for number in [0, 9, STEPS - 1] {
            hold_together(
                &memory,
                |memory| step(memory, number),
                |memory| step(memory, number),
                |touches| {
                    step(&mut Recorder::new(8, |t| touches.push(t)), number);
                    // Two reads a product, one write an element.
                    assert_eq!(touches.len(), BLOCK * (2 * SIDE + 1));
                },
            );
        }
    }

    #[test]
    fn all_steps_in_any_order_are_the_product() {
        let mut memory = vec![1.0; DOUBLES];
        let mut product = Product::new(&mut memory).unwrap();
        for number in 0..STEPS {
            product.step(number * 37 % STEPS);
        }
        for i in 0..SIDE {
            for j in 0..SIDE {
                // b is stored by columns.
                let wanted: f64 = (0..SIDE)
                    .map(|k| memory[i * SIDE + k] * memory[(SIDE + j) * SIDE + k])
                    .sum();
                assert_eq!(
                    memory[(2 * SIDE + i) * SIDE + j],
                    wanted,
                    "row {i}, column {j}"
                );
            }
        }
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert!(Product::new(&mut [0.0; DOUBLES - 1]).is_err());
    }
}
