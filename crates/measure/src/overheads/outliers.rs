//! Which samples are outliers: those more than 1.5 interquartile ranges below the first quartile
//! or above the third (002 §5.1).
//!
//! Quartiles as NIST's handbook of statistics defines them (§7.2.6.2 there, which 002 cites): of n
//! samples in order, the one with rank (n + 1) / 4 or 3 (n + 1) / 4, linear between two. Nothing is
//! rounded.

/// Samples from `least` to `most`, both included, are none; in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fences {
    /// Less is an outlier.
    pub least: u64,
    /// More is an outlier.
    pub most: u64,
}

impl Fences {
    /// Of these samples, in nanoseconds; `None` for fewer than four, which have no quartiles.
    pub fn of(samples: &[u32]) -> Option<Fences> {
        if samples.len() < 4 {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let (first, third) = (fourfold(&sorted, 1), fourfold(&sorted, 3));
        // Eight times the fences: quartiles are in quarters, and the range counts by halves.
        let reach = 3 * (third - first);
        let (least, most) = (2 * first - reach, 2 * third + reach);
        Some(Fences {
            least: u64::try_from(least.max(0)).unwrap_or(0).div_ceil(8),
            most: u64::try_from(most / 8).unwrap_or(0),
        })
    }

    /// Is this sample none?
    pub fn hold(&self, sample: u32) -> bool {
        (self.least..=self.most).contains(&u64::from(sample))
    }
}

/// Four times a quartile of at least four numbers in order.
fn fourfold(sorted: &[u32], quartile: usize) -> i64 {
    let rank = quartile * (sorted.len() + 1);
    let (below, part) = (rank / 4, (rank % 4) as i64);
    let at = |rank: usize| i64::from(sorted[rank.clamp(1, sorted.len()) - 1]);
    4 * at(below) + part * (at(below + 1) - at(below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fences_are_those_of_a_set_computed_by_hand() {
        // Ranks 3 and 9: quartiles 6 and 18, range 12, fences -12 and 36.
        let samples = [4, 5, 6, 7, 9, 12, 14, 16, 18, 20, 37];
        let fences = Fences::of(&samples).unwrap();
        assert_eq!(fences, Fences { least: 0, most: 36 });
        assert!(fences.hold(36) && !fences.hold(37));
    }

    #[test]
    fn quartiles_between_two_samples_are_not_rounded() {
        // n = 4, ranks 1.25 and 3.75: 10 + 0.25 × 1 = 10.25 and 12 + 0.75 × 1 = 12.75; range 2.5,
        // fences 6.5 and 16.5.
        let fences = Fences::of(&[10, 11, 12, 13]).unwrap();
        assert_eq!(fences, Fences { least: 7, most: 16 });
    }

    #[test]
    fn fewer_than_four_have_none() {
        assert_eq!(Fences::of(&[1, 2, 3]), None);
    }

    proptest! {
        #[test]
        fn at_least_half_of_all_samples_are_kept(
            samples in prop::collection::vec(any::<u32>(), 4..200)
        ) {
            let fences = Fences::of(&samples).unwrap();
            let kept = samples.iter().filter(|s| fences.hold(**s)).count();
            prop_assert!(2 * kept >= samples.len(), "{kept} of {}", samples.len());
        }

        #[test]
        fn a_definition_in_floating_point_agrees(
            samples in prop::collection::vec(0u32..100_000, 4..100)
        ) {
            let mut sorted: Vec<f64> = samples.iter().map(|s| f64::from(*s)).collect();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len();
            let quartile = |p: f64| {
                let rank = p * (n + 1) as f64;
                let below = rank.floor().max(1.0);
                let low = sorted[below as usize - 1];
                let high = sorted[(below as usize).min(n - 1)];
                low + (rank - below).max(0.0) * (high - low)
            };
            let (first, third) = (quartile(0.25), quartile(0.75));
            let reach = 1.5 * (third - first);
            let fences = Fences::of(&samples).unwrap();
            for sample in &samples {
                let value = f64::from(*sample);
                // Quarters and halves are exact in floating point.
                let holds = value >= first - reach && value <= third + reach;
                prop_assert_eq!(fences.hold(*sample), holds, "{}", sample);
            }
        }
    }
}
