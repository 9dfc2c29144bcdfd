//! The computations of 001 §5 as work of jobs: each from its one description, as code that runs
//! ([`Computing`]) and as the places that it touches ([`step`] over a
//! [`Recorder`](crate::memory::Recorder)).

use crate::cosine::Cosine;
use crate::filter::Filter;
use crate::fourier::Fourier;
use crate::matrix::Product;
use crate::memory::Memory;
use crate::{Units, cosine, filter, fourier, matrix};
use machine::touched::Apart;
use model::{Bytes, Computation, Result};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Doubles that a computation needs.
pub const fn doubles(what: Computation) -> usize {
    match what {
        Computation::Filter { coefficients } => filter::words(coefficients as usize),
        Computation::Cosine { points } => cosine::doubles(points as usize),
        Computation::Fourier { points } => fourier::doubles(points as usize),
        Computation::Matrix => matrix::DOUBLES,
    }
}

/// Its memory.
pub const fn size(what: Computation) -> Bytes {
    Bytes::new((doubles(what) * size_of::<f64>()) as u64)
}

/// How many steps make it whole: a filter's output, a transform, a product.
pub const fn steps(what: Computation) -> u64 {
    match what {
        Computation::Filter { .. } | Computation::Cosine { .. } | Computation::Fourier { .. } => 1,
        Computation::Matrix => matrix::STEPS as u64,
    }
}

/// Step `number` (from 0) over any memory of as many [`doubles`], prepared or without values. Gives
/// one of its results.
pub fn step<M: Memory + ?Sized>(what: Computation, memory: &mut M, number: u64) -> f64 {
    const SAMPLE: f64 = 1.0;
    match what {
        Computation::Filter { coefficients } => {
            let taps = coefficients as usize;
            // The newest sample lies one lower each time.
            let newest = taps - 1 - (number % u64::from(coefficients)) as usize;
            filter::step(memory, taps, newest, SAMPLE)
        }
        Computation::Cosine { points } => cosine::step(memory, points as usize, SAMPLE),
        Computation::Fourier { points } => fourier::step(memory, points as usize, SAMPLE),
        Computation::Matrix => matrix::step(memory, (number % matrix::STEPS as u64) as usize),
    }
}

/// Memory of doubles that is its owner's alone.
pub trait Doubles: Send {
    /// All of it, as much every time.
    fn doubles(&mut self) -> &mut [f64];
}

impl Doubles for Vec<f64> {
    fn doubles(&mut self) -> &mut [f64] {
        self
    }
}

impl Doubles for Apart<f64> {
    fn doubles(&mut self) -> &mut [f64] {
        self.values()
    }
}

/// A computation in memory of its own; a unit is a step.
#[derive(Debug)]
pub struct Computing<M = Vec<f64>> {
    what: Computation,
    memory: M,
    number: u64,
}

impl Computing {
    /// With its memory prepared, and touched when this returns.
    ///
    /// # Errors
    /// A filter without coefficients, or a transform of points that are no power of two.
    pub fn new(what: Computation) -> Result<Self> {
        Computing::over(what, vec![1.0; doubles(what)])
    }
}

impl<M: Doubles> Computing<M> {
    /// The same over memory that the caller gives, of as many [`doubles`], all of them one.
    ///
    /// # Errors
    /// As [`Computing::new`]; memory that is too small.
    pub fn over(what: Computation, mut memory: M) -> Result<Self> {
        let all = memory.doubles();
        match what {
            Computation::Filter { coefficients } => {
                Filter::new(all, coefficients as usize)?;
            }
            Computation::Cosine { points } => {
                Cosine::new(all, points as usize)?;
            }
            Computation::Fourier { points } => {
                Fourier::new(all, points as usize)?;
            }
            Computation::Matrix => {
                Product::new(all)?;
            }
        }
        Ok(Computing {
            what,
            memory,
            number: 0,
        })
    }
}

impl<M: Doubles> Units for Computing<M> {
    fn units(&mut self, count: u64, stop: &AtomicBool) {
        for _ in 0..count {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            black_box(step(self.what, self.memory.doubles(), self.number));
            self.number = self.number.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Recorder;

    const ALL: [Computation; 4] = [
        Computation::Filter { coefficients: 9 },
        Computation::Cosine { points: 16 },
        Computation::Fourier { points: 16 },
        Computation::Matrix,
    ];

    /// A whole computation touches every place of its memory but those that it keeps free.
    #[test]
    fn a_whole_computation_touches_its_memory_and_nothing_else() {
        for what in ALL {
            let mut touched = vec![false; doubles(what)];
            for number in 0..steps(what) {
                let mut recorder = Recorder::new(8, |touch| {
                    touched[(touch.offset / 8) as usize] = true;
                });
                step(what, &mut recorder, number);
            }
            // The last factor of a cosine transform is never made.
            let spare = usize::from(matches!(what, Computation::Cosine { .. }));
            let seen = touched.iter().filter(|touched| **touched).count();
            assert_eq!(seen, doubles(what) - spare, "{what:?}");
        }
    }

    #[test]
    fn jobs_go_on_where_the_last_one_ended() {
        for what in ALL {
            let mut computing = Computing::new(what).unwrap();
            computing.units(3, &AtomicBool::new(false));
            computing.units(5, &AtomicBool::new(true));
            assert_eq!(computing.number, 3, "stopped work is not done");
            let mut alone = Computing::new(what).unwrap();
            for number in 0..3 {
                step(what, &mut alone.memory[..], number);
            }
            assert_eq!(alone.memory, computing.memory, "{what:?}");
        }
    }
}
