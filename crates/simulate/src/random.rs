//! Random numbers by job: a hash of seed, stream, task and job number.
//!
//! Counter-based, so that any draw can be made again at any time: a backlog of jobs is never
//! stored, and the result does not depend on the order of events. The mixing function is the
//! finalizer of SplitMix64.

use model::TaskId;

/// What a number is drawn for; different streams are independent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Stream {
    /// Gaps between releases.
    Gap = 1,
    /// Execution times.
    Execution = 2,
    /// Times from arrival to release.
    Jitter = 3,
}

/// 64 random bits for a job of a task.
#[inline]
pub fn draw(seed: u64, stream: Stream, task: TaskId, job: u64) -> u64 {
    let a = mix(seed ^ (stream as u64) << 32 ^ u64::from(task.0));
    mix(a ^ mix(job))
}

/// A number from 0 to `most`, both included. Biased by less than `most` / 2^64.
#[inline]
pub fn up_to(bits: u64, most: u64) -> u64 {
    ((u128::from(bits) * (u128::from(most) + 1)) >> 64) as u64
}

/// More numbers from the bits of one draw, for what needs several: SplitMix64 from there on.
#[derive(Clone, Debug)]
pub struct Sequence(u64);

impl Sequence {
    /// The one that begins with these bits.
    pub const fn new(bits: u64) -> Self {
        Sequence(bits)
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

#[inline]
const fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_streams_differ() {
        let mut counts = [0u32; 10];
        for job in 0..10_000 {
            counts[up_to(draw(1, Stream::Gap, TaskId(3), job), 9) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
        assert_ne!(
            draw(1, Stream::Gap, TaskId(3), 0),
            draw(1, Stream::Execution, TaskId(3), 0)
        );
        assert_ne!(
            draw(1, Stream::Gap, TaskId(3), 0),
            draw(2, Stream::Gap, TaskId(3), 0)
        );
        assert_eq!(up_to(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(up_to(u64::MAX, 0), 0);
    }
}
