//! One description of a computation for two uses: over memory of doubles it runs, over a
//! [`Recorder`] it tells which places it touches.
//!
//! The computations of this room ([`filter`](crate::filter), [`cosine`](crate::cosine),
//! [`fourier`](crate::fourier), [`matrix`](crate::matrix)) are functions over any [`Memory`]. Where
//! they go next never depends on a value that they read: so a recorder need not have the values.

use crate::Touch;

/// What memory is made of: numbers of 8 bytes, or of 4. A computation adds up in doubles.
pub trait Word: Copy {
    /// As a double.
    fn value(self) -> f64;

    /// The one nearest to a number.
    fn nearest(value: f64) -> Self;
}

impl Word for f64 {
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value
    }
}

impl Word for f32 {
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value as f32
    }
}

/// Memory of words that a computation reads and writes by place, from 0.
pub trait Memory {
    /// Reads a place.
    fn get(&mut self, place: usize) -> f64;

    /// Writes a place.
    fn set(&mut self, place: usize, value: f64);

    /// The inner product of `count` words from place `a` on and as many from `b` on, in four sums
    /// side by side. Reads both in ascending order, the one from `a` first.
    ///
    /// An implementation that does it faster has to give the same number to the last bit.
    #[inline]
    fn dot(&mut self, a: usize, b: usize, count: usize) -> f64 {
        let mut sums = [0.0; LANES];
        let mut rest = 0.0;
        let fours = count / LANES * LANES;
        for i in 0..count {
            let product = self.get(a + i) * self.get(b + i);
            match i < fours {
                true => sums[i % LANES] += product,
                false => rest += product,
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// Sums side by side in an inner product.
const LANES: usize = 4;

impl<W: Word> Memory for [W] {
    #[inline(always)]
    fn get(&mut self, place: usize) -> f64 {
        self[place].value()
    }

    #[inline(always)]
    fn set(&mut self, place: usize, value: f64) {
        self[place] = W::nearest(value);
    }

    /// By slices, which lets the compiler use instructions for several words.
    #[inline(always)]
    fn dot(&mut self, a: usize, b: usize, count: usize) -> f64 {
        let (a, b) = (&self[a..a + count], &self[b..b + count]);
        let mut sums = [0.0; LANES];
        let (fours, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let last = fours.remainder().iter().zip(others.remainder());
        let product = |a: W, b: W| a.value() * b.value();
        let rest = last.fold(0.0, |sum, (a, b)| sum + product(*a, *b));
        for (a, b) in fours.zip(others) {
            for lane in 0..LANES {
                sums[lane] += product(a[lane], b[lane]);
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// Memory that has no values: what a computation over it touches is told, in its order.
#[derive(Debug)]
pub struct Recorder<F> {
    word: u32,
    touch: F,
}

impl<F: FnMut(Touch)> Recorder<F> {
    /// With words of so many bytes: 8 for the doubles that computations run with, 4 for those of the
    /// filter of 001 §5.2.
    pub fn new(word: u32, touch: F) -> Self {
        Recorder { word, touch }
    }

    #[inline]
    fn tell(&mut self, place: usize, write: bool) {
        (self.touch)(Touch {
            offset: place as u64 * u64::from(self.word),
            bytes: self.word,
            write,
        });
    }
}

impl<F: FnMut(Touch)> Memory for Recorder<F> {
    #[inline]
    fn get(&mut self, place: usize) -> f64 {
        self.tell(place, false);
        0.0
    }

    #[inline]
    fn set(&mut self, place: usize, _value: f64) {
        self.tell(place, true);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Memory with values that also notes what is touched, by the plain way of every operation.
    pub(crate) struct Both {
        pub(crate) values: Vec<f64>,
        pub(crate) touches: Vec<Touch>,
    }

    impl Memory for Both {
        fn get(&mut self, place: usize) -> f64 {
            self.touches.push(Touch {
                offset: 8 * place as u64,
                bytes: 8,
                write: false,
            });
            self.values[place]
        }

        fn set(&mut self, place: usize, value: f64) {
            self.touches.push(Touch {
                offset: 8 * place as u64,
                bytes: 8,
                write: true,
            });
            self.values[place] = value;
        }
    }

    /// What a recorder tells of a computation is what the computation does to memory: to the last
    /// bit it leaves the same there and gives the same, over plain doubles and over memory that
    /// notes every access; and what is noted is what the recorder tells.
    pub(crate) fn hold_together(
        values: &[f64],
        mut plain: impl FnMut(&mut [f64]) -> f64,
        mut noted: impl FnMut(&mut Both) -> f64,
        told: impl FnOnce(&mut Vec<Touch>),
    ) {
        let mut alone = values.to_vec();
        let mut both = Both {
            values: values.to_vec(),
            touches: Vec::new(),
        };
        assert_eq!(plain(&mut alone).to_bits(), noted(&mut both).to_bits());
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&alone), bits(&both.values));
        let mut touches = Vec::new();
        told(&mut touches);
        assert!(!touches.is_empty());
        assert_eq!(touches, both.touches);
    }

    #[test]
    fn an_inner_product_is_the_same_by_slices_and_one_by_one() {
        for count in [0, 1, 3, 4, 7, 64, 101] {
            let values: Vec<f64> = (0..2 * count + 3)
                .map(|i| 1.0 / (i + 1) as f64 - 0.01 * (i % 7) as f64)
                .collect();
            let mut both = Both {
                values: values.clone(),
                touches: Vec::new(),
            };
            let mut plain = values.clone();
            let one_by_one = both.dot(1, count + 2, count);
            assert_eq!(
                plain[..].dot(1, count + 2, count).to_bits(),
                one_by_one.to_bits()
            );
            let places: Vec<u64> = both.touches.iter().map(|t| t.offset / 8).collect();
            let wanted: Vec<u64> = (0..count as u64)
                .flat_map(|i| [1 + i, count as u64 + 2 + i])
                .collect();
            assert_eq!(places, wanted);
        }
    }

    #[test]
    fn words_of_four_bytes_are_added_up_in_doubles() {
        let mut words: Vec<f32> = (0..14).map(|i| 1.0 / (i + 1) as f32).collect();
        let mut doubles: Vec<f64> = words.iter().map(|word| f64::from(*word)).collect();
        let sum = words[..].dot(0, 7, 7);
        assert_eq!(sum.to_bits(), doubles[..].dot(0, 7, 7).to_bits());
        words[..].set(3, 0.1);
        assert_eq!(Memory::get(&mut words[..], 3), f64::from(0.1_f32));
    }

    #[test]
    fn a_recorder_tells_words_of_its_size() {
        let mut seen = Vec::new();
        let mut recorder = Recorder::new(4, |touch| seen.push(touch));
        recorder.set(3, 1.0);
        assert_eq!(recorder.get(2), 0.0);
        let touch = |offset, write| Touch {
            offset,
            bytes: 4,
            write,
        };
        assert_eq!(seen, [touch(12, true), touch(8, false)]);
    }
}
