//! What a study has found so far, for people who wait: weighted schedulability from the sets that
//! were judged by now, as small curves of text.

use crate::axis::Swept;
use crate::part::{Counts, Work};
use std::collections::BTreeMap;

/// Counts by cap, and what they are of.
pub(crate) struct Tally {
    axis: Swept,
    policies: Vec<String>,
    /// By cap in thousandths: sets, and accepted by policy and point of the axis.
    caps: BTreeMap<u32, (u64, Vec<Vec<u64>>)>,
}

/// Shares from 0 to 1 in eighths.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Tally {
    /// What is counted already.
    pub fn of(work: &Work<'_>) -> Self {
        let policies = work.prepared.policies().iter();
        let mut tally = Tally {
            axis: work.study.swept(),
            policies: policies.map(|p| p.label().to_owned()).collect(),
            caps: BTreeMap::new(),
        };
        work.done().for_each(|counts| tally.add(&counts));
        tally
    }

    /// Adds the counts of a part.
    pub fn add(&mut self, counts: &Counts) {
        let (policies, points) = (self.policies.len(), self.axis.len());
        let (sets, sums) = self
            .caps
            .entry(counts.part.cap)
            .or_insert_with(|| (0, vec![vec![0; points]; policies]));
        *sets += u64::from(counts.part.sets);
        let numbers = counts.kept.numbers();
        let both = sums.iter_mut().flatten().zip(numbers.iter().flatten());
        both.for_each(|(sum, more)| *sum += u64::from(*more));
    }

    /// W of a policy at a point, by their places, over the caps of which any set is judged.
    fn weighted(&self, policy: usize, point: usize) -> f64 {
        let (mut kept, mut all) = (0.0, 0.0);
        for (cap, (sets, sums)) in &self.caps {
            let weight = f64::from(*cap);
            kept += weight * sums[policy][point] as f64 / (*sets).max(1) as f64;
            all += weight;
        }
        match all > 0.0 {
            true => kept / all,
            false => 0.0,
        }
    }

    /// A line for each policy, and one above that says what they are; within so many columns.
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let sets: u64 = self.caps.values().map(|(sets, _)| sets).sum();
        if sets == 0 || self.axis.is_empty() {
            return Vec::new();
        }
        let (symbol, last) = (self.axis.quantity.symbol(), self.axis.len() - 1);
        let names = self.policies.iter().map(|name| name.chars().count());
        let wide = names.max().unwrap_or(0);
        // Two spaces, and the shares at both ends.
        let room = columns.saturating_sub(wide + 16).clamp(1, self.axis.len());
        let place = |at: usize| match room {
            1 => 0,
            _ => at * last / (room - 1),
        };
        let mut lines = vec![format!(
            "W({symbol}) so far, {symbol} = {} to {}, {sets} sets:",
            self.axis.text(0),
            self.axis.text(last)
        )];
        for (policy, name) in self.policies.iter().enumerate() {
            let bar = |at: usize| {
                let eighths = (self.weighted(policy, place(at)) * 8.0).round();
                BARS[(eighths.clamp(0.0, 8.0)) as usize]
            };
            let curve: String = (0..room).map(bar).collect();
            lines.push(format!(
                "{name:wide$}  {:.3} {curve} {:.3}",
                self.weighted(policy, 0),
                self.weighted(policy, last)
            ));
        }
        let cut = |line: String| line.chars().take(columns).collect();
        lines.into_iter().map(cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Quantity;
    use crate::kept::Kept;
    use crate::part::Part;

    #[test]
    fn curves_so_far_weigh_the_caps_that_have_sets() {
        let mut tally = Tally {
            axis: Swept {
                quantity: Quantity::Delay,
                scaled_from: None,
                factor_on: None,
                drawn_to: None,
                points: vec![0, 1_000, 2_000],
            },
            policies: vec!["A".to_owned(), "LONG".to_owned()],
            caps: BTreeMap::new(),
        };
        assert!(tally.lines(80).is_empty());
        let part = |cap, accepted| Counts {
            part: Part {
                cap,
                first: 0,
                sets: 10,
            },
            kept: Kept::Numbers(accepted),
        };
        tally.add(&part(1_000, vec![vec![10, 10, 0], vec![5, 5, 5]]));
        tally.add(&part(3_000, vec![vec![10, 0, 0], vec![5, 5, 5]]));
        assert_eq!(
            tally.lines(80),
            [
                "W(D) so far, D = 0ms to 2us, 20 sets:",
                "A     1.000 █▂  0.000",
                "LONG  0.500 ▄▄▄ 0.500"
            ]
        );
        assert!(
            tally
                .lines(12)
                .iter()
                .all(|line| line.chars().count() <= 12)
        );
    }
}
