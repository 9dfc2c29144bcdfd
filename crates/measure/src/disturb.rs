//! Which samples were disturbed, and by what: decided for a whole block of samples at once, without
//! favoring fast ones.
//!
//! 000 §3.3 measures with interrupts off. Here they stay on, and what they did is found afterwards:
//!
//! - the kernel counts involuntary switches, and the clock names its processor: exact, whatever a
//!   sample took;
//! - a witness tells which blocks of lines were interrupted: exact, and compared with the typical
//!   walk of the block of samples, not with the sample itself;
//! - a gap is a block of lines that took longer than memory can explain: [`SLACK`] times the larger
//!   of what nine in ten blocks took in the same phase and what a block of uncached lines takes. It
//!   scales with the number of lines, and a sample that is slow because all of its lines come from
//!   memory, or from a contended one, stays far below it.
//!
//! `docs/measuring.md` has the argument, the tests below hold the rule to it.

use crate::samples::Discard;
use crate::statistics::{median, quantile};

/// How many times slower than ordinary a block of lines may be and still count.
pub const SLACK: u64 = 8;
/// An interrupt matters when it took more than one part in so many of a typical walk.
pub const MATTERS: u64 = 100;
/// A gap from which on the machine stood still, in nanoseconds: throttling and the fair server take
/// 50 ms.
pub const STALL: u64 = 5_000_000;

/// One walk: nanoseconds for each block of lines, and which of them were interrupted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pass {
    /// Nanoseconds of each block of lines.
    pub blocks: Vec<u64>,
    /// Bit i: block i was interrupted.
    pub interrupted: u64,
}

impl Pass {
    /// Nanoseconds of the whole walk.
    pub fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }
    fn was_interrupted(&self, block: usize) -> bool {
        self.interrupted >> block & 1 == 1
    }
}

/// What is known of one sample when it is judged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Evidence {
    /// The first walk.
    pub cold: Pass,
    /// The second.
    pub warm: Pass,
    /// The one after resuming.
    pub post: Pass,
    /// By how much the thread came back later than asked, in nanoseconds.
    pub late: u64,
    /// Was the thread on the right processor at both ends of the warm walk and of the last one?
    pub on_processor: bool,
    /// Did something take the processor from it during the walks?
    pub switched: bool,
}

/// The typical values of a phase within a block of samples.
struct Phase {
    /// Nanoseconds for a typical line of a typical block, in parts of 1024 so that small blocks
    /// keep their digits.
    line: u64,
    /// From which on what an interrupt took matters, in nanoseconds of a whole walk: a hundredth of
    /// a typical one.
    matters: u64,
    /// By how much a line differs from a typical one without any reason, same unit as `line`.
    spread: u64,
    /// From which on a line is too slow, same unit as `line`.
    limit: u64,
}

fn per_line(ns: u64, lines: u64) -> u64 {
    ns.saturating_mul(1024) / lines.max(1)
}

impl Phase {
    fn of<'a>(
        passes: impl Iterator<Item = &'a Pass> + Clone,
        lines: &[u64],
        uncached_line: u64,
    ) -> Self {
        let mut each: Vec<u64> = passes
            .clone()
            .flat_map(|p| {
                p.blocks
                    .iter()
                    .zip(lines)
                    .map(|(ns, lines)| per_line(*ns, *lines))
            })
            .collect();
        let mut walks: Vec<u64> = passes.map(Pass::total).collect();
        let (high, line) = (quantile(&mut each, 0.9), median(&mut each));
        Phase {
            limit: SLACK * high.max(uncached_line),
            line,
            spread: 3 * (high - line),
            matters: median(&mut walks) / MATTERS,
        }
    }

    /// Nanoseconds that interrupts took from a walk: what interrupted blocks took beyond the others
    /// of the same walk (beyond the typical block where the walk has too few others) and beyond the
    /// ordinary spread of blocks, so that a slow block that happened to be interrupted is not taken
    /// for a disturbed one.
    fn lost(&self, pass: &Pass, lines: &[u64]) -> u64 {
        let mut others: Vec<u64> = pass
            .blocks
            .iter()
            .zip(lines)
            .enumerate()
            .filter(|(i, _)| !pass.was_interrupted(*i))
            .map(|(_, (ns, lines))| per_line(*ns, *lines))
            .collect();
        let typical = if others.len() >= 4 {
            median(&mut others)
        } else {
            self.line
        };
        let part = |line: u64, lines: u64| line.saturating_mul(lines) / 1024;
        pass.blocks
            .iter()
            .zip(lines)
            .enumerate()
            .filter(|(i, _)| pass.was_interrupted(*i))
            .map(|(_, (ns, lines))| {
                (
                    ns.saturating_sub(part(typical, *lines)),
                    part(self.spread, *lines),
                )
            })
            .filter(|(excess, spread)| excess > spread)
            .map(|(excess, _)| excess)
            .sum()
    }

    fn cause(&self, pass: &Pass, lines: &[u64]) -> Option<Discard> {
        let over = |limit: u64| {
            pass.blocks
                .iter()
                .zip(lines)
                .any(|(ns, lines)| per_line(*ns, *lines) > self.limit && *ns > limit)
        };
        if over(STALL) {
            Some(Discard::Stalled)
        } else if self.lost(pass, lines) > self.matters {
            Some(Discard::Interrupted)
        } else if over(0) {
            Some(Discard::Gap)
        } else {
            None
        }
    }
}

/// For each sample of a block of samples, why it does not count. `lines` are those of each block of
/// lines.
pub fn judge(samples: &[Evidence], lines: &[u64]) -> Vec<Option<Discard>> {
    let mut cold: Vec<u64> = samples
        .iter()
        .flat_map(|s| {
            s.cold
                .blocks
                .iter()
                .zip(lines)
                .map(|(ns, lines)| per_line(*ns, *lines))
        })
        .collect();
    let uncached = median(&mut cold);
    let warm = Phase::of(samples.iter().map(|s| &s.warm), lines, uncached);
    let post = Phase::of(samples.iter().map(|s| &s.post), lines, uncached);
    samples
        .iter()
        .map(|sample| {
            let walks = [
                warm.cause(&sample.warm, lines),
                post.cause(&sample.post, lines),
            ];
            if !sample.on_processor {
                Some(Discard::Processor)
            } else if sample.switched {
                Some(Discard::Switched)
            } else if sample.late > STALL {
                Some(Discard::Late)
            } else {
                walks.into_iter().flatten().min()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const BLOCKS: usize = 16;
    const LINES: [u64; BLOCKS] = [64; BLOCKS];

    /// A walk whose blocks take `ns` each, give or take a fifth.
    fn pass(ns: u64, rng: &mut impl Rng) -> Pass {
        Pass {
            blocks: (0..BLOCKS)
                .map(|_| rng.random_range(ns - ns / 5..=ns + ns / 5))
                .collect(),
            interrupted: 0,
        }
    }

    /// A sample as it is without disturbance: cached blocks 200 ns, uncached ones 1000 ns.
    fn calm(post: u64, rng: &mut impl Rng) -> Evidence {
        Evidence {
            cold: pass(1000, rng),
            warm: pass(200, rng),
            post: pass(post, rng),
            late: 20_000,
            on_processor: true,
            switched: false,
        }
    }

    fn delay(e: &Evidence) -> f64 {
        e.post.total() as f64 - e.warm.total() as f64
    }

    fn kept_mean(samples: &[Evidence], causes: &[Option<Discard>]) -> f64 {
        let kept: Vec<f64> = samples
            .iter()
            .zip(causes)
            .filter(|(_, cause)| cause.is_none())
            .map(|(e, _)| delay(e))
            .collect();
        kept.iter().sum::<f64>() / kept.len() as f64
    }

    #[test]
    fn nothing_undisturbed_is_discarded_however_slow() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        // One in twenty lost all of its cache and met a contended memory bus: five times a plain
        // uncached block.
        let samples: Vec<Evidence> = (0..400)
            .map(|i| calm(if i % 20 == 0 { 5000 } else { 250 }, &mut rng))
            .collect();
        assert!(judge(&samples, &LINES).iter().all(Option::is_none));
    }

    #[test]
    fn a_slow_first_block_after_a_migration_is_a_delay_and_no_gap() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let samples: Vec<Evidence> = (0..200)
            .map(|_| {
                let mut sample = calm(600, &mut rng);
                sample.post.blocks[0] += 4000; // page walks, the first misses
                sample
            })
            .collect();
        assert!(judge(&samples, &LINES).iter().all(Option::is_none));
    }

    #[test]
    fn injected_gaps_are_found_and_the_mean_stays() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        // A wide distribution: delays from none at all to everything uncached.
        let clean: Vec<Evidence> = (0..2000)
            .map(|_| {
                let post = rng.random_range(200..=1500);
                calm(post, &mut rng)
            })
            .collect();
        let undisturbed = clean.iter().map(delay).sum::<f64>() / clean.len() as f64;
        let mut samples = clean.clone();
        let mut injected = vec![false; samples.len()];
        for (sample, hit) in samples.iter_mut().zip(&mut injected) {
            // The chance of a gap grows with the time that a walk takes, as that of a real one.
            if rng.random_bool((sample.post.total() as f64 / 400_000.0).min(1.0)) {
                let block = rng.random_range(0..BLOCKS);
                sample.post.blocks[block] += rng.random_range(20_000..200_000);
                *hit = true;
            }
        }
        assert!(injected.iter().filter(|hit| **hit).count() > 40);
        let causes = judge(&samples, &LINES);
        for (cause, hit) in causes.iter().zip(&injected) {
            assert_eq!(*cause, hit.then_some(Discard::Gap));
        }
        let bias = (kept_mean(&samples, &causes) - undisturbed) / undisturbed;
        assert!(bias.abs() < 0.03, "bias of the mean: {bias}");
    }

    #[test]
    fn an_interrupt_counts_by_what_it_took_of_a_typical_walk() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut samples: Vec<Evidence> = (0..200).map(|_| calm(250, &mut rng)).collect();
        // A walk takes 4000 ns: a tick of 2500 ns matters, in the warm walk too.
        for (i, block) in [(10, 3), (20, 15)] {
            samples[i].post.interrupted |= 1 << block;
            samples[i].post.blocks[block] += 2500;
            samples[i + 1].warm.interrupted |= 1 << block;
            samples[i + 1].warm.blocks[block] += 2500;
        }
        // One that took nothing is no reason.
        samples[30].post.interrupted |= 1;
        samples[30].post.blocks[0] = 200;
        let causes = judge(&samples, &LINES);
        for (i, cause) in causes.iter().enumerate() {
            let hit = [10, 11, 20, 21].contains(&i);
            assert_eq!(*cause, hit.then_some(Discard::Interrupted), "sample {i}");
        }
        // In a walk a thousand times longer the same tick is nothing.
        let long: Vec<Evidence> = (0..200)
            .map(|_| {
                let mut sample = calm(250_000, &mut rng);
                sample.post.interrupted |= 1;
                sample.post.blocks[0] += 2500;
                sample
            })
            .collect();
        assert!(judge(&long, &[65_536; BLOCKS]).iter().all(Option::is_none));
    }

    #[test]
    fn what_the_kernel_and_the_clock_say_needs_no_threshold() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut samples: Vec<Evidence> = (0..100).map(|_| calm(250, &mut rng)).collect();
        samples[1].switched = true;
        samples[2].on_processor = false;
        samples[3].late = STALL + 1;
        samples[4].warm.blocks[7] += 50_000_000;
        // A cold walk that was disturbed says nothing about the delay.
        samples[5].cold.blocks[7] += 50_000_000;
        let causes = judge(&samples, &LINES);
        assert_eq!(
            causes[..6],
            [
                None,
                Some(Discard::Switched),
                Some(Discard::Processor),
                Some(Discard::Late),
                Some(Discard::Stalled),
                None
            ]
        );
        assert!(causes[6..].iter().all(Option::is_none));
        assert!(judge(&[], &LINES).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The verdict on a sample is never harsher for a uniformly faster one, nor milder: as long
        /// as all its blocks stay below eight times an uncached block, its speed does not matter.
        #[test]
        fn speed_alone_never_discards(
            seed in any::<u64>(),
            speeds in prop::collection::vec(150u64..6000, 20..100),
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let samples: Vec<Evidence> = speeds.iter().map(|ns| calm(*ns, &mut rng)).collect();
            prop_assert!(judge(&samples, &LINES).iter().all(Option::is_none));
        }
    }
}
