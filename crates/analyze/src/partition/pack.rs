//! Packing by utilization: a bin takes a task as long as the sum of utilizations is at most its
//! number of processors.
//!
//! 000 §5 and 002 §6.3 use worst fit in decreasing utilization. Exact: a bin is never
//! over-utilized, not by one nanosecond, and never refuses a task that fits. Tasks with a
//! utilization above one fit nowhere.

use super::loads::{Loads, scaled};
use super::{Fit, Order};
use model::Timing;

/// What packing needs besides its input; kept between calls, it makes them free of allocations but
/// for sorting.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    order: Vec<u32>,
    keys: Vec<u128>,
    bin_of: Vec<u32>,
    loads: Loads,
}

/// A task that is in no bin (yet).
pub const NOWHERE: u32 = u32::MAX;

impl Scratch {
    /// A scratch for any number of calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bin of every task, in the order of `tasks`; bins hold `sizes` processors each.
    ///
    /// # Errors
    /// The index of the first task, in the order of placement, that fits nowhere.
    pub fn pack(
        &mut self,
        tasks: &[Timing],
        sizes: &[u32],
        order: Order,
        fit: Fit,
    ) -> Result<&[u32], u32> {
        if let Some(heavy) = tasks.iter().position(|t| t.wcet > t.period) {
            return Err(heavy as u32);
        }
        self.keys.clear();
        self.keys.extend(tasks.iter().map(scaled));
        self.sort(tasks, order);
        self.loads.reset(sizes);
        self.bin_of.clear();
        self.bin_of.resize(tasks.len(), NOWHERE);
        let mut current = 0;
        for at in 0..self.order.len() {
            let index = self.order[at];
            let Some(bin) = self.choose(tasks, index as usize, fit, current) else {
                return Err(index);
            };
            if fit == Fit::Next {
                current = bin;
            }
            self.loads.add(bin, self.keys[index as usize]);
            self.bin_of[index as usize] = bin as u32;
        }
        Ok(&self.bin_of)
    }

    fn sort(&mut self, tasks: &[Timing], order: Order) {
        if order != Order::DecreasingUtilization {
            return order.sort(tasks, &mut self.order);
        }
        self.order.clear();
        self.order.extend(0..tasks.len() as u32);
        // Most utilizations differ in fixed point; only the rest is compared as ratios.
        let keys = &self.keys;
        self.order.sort_by(|a, b| {
            let (a, b) = (*a as usize, *b as usize);
            keys[b]
                .cmp(&keys[a])
                .then_with(|| tasks[b].utilization().cmp(&tasks[a].utilization()))
        });
    }

    /// The bin for a task; first and next fit look from bin `from` on.
    fn choose(&mut self, tasks: &[Timing], index: usize, fit: Fit, from: usize) -> Option<usize> {
        let key = self.keys[index];
        let mut from = from;
        // Bins that fixed point lets through and exact addition does not: seldom any.
        let mut refused: Vec<usize> = Vec::new();
        loop {
            let bin = match fit {
                Fit::First | Fit::Next => self.loads.first(from, key),
                Fit::Worst => self.loads.emptiest(key, &refused),
                Fit::Best => self.loads.fullest(key, &refused),
            }?;
            let bin_of = &self.bin_of;
            let fits = self.loads.fits(bin, &tasks[index], key, || {
                bin_of
                    .iter()
                    .zip(tasks)
                    .filter(move |(b, _)| **b as usize == bin)
                    .map(|(_, t)| t.utilization())
            });
            if fits {
                return Some(bin);
            }
            from = bin + 1;
            refused.push(bin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    fn task(e: u64, p: u64) -> Timing {
        Timing::implicit(Duration::from_nanos(e), Duration::from_nanos(p))
    }
    fn pack(tasks: &[Timing], m: u32, fit: Fit) -> Result<Vec<u32>, u32> {
        let sizes = vec![1; m as usize];
        Scratch::new()
            .pack(tasks, &sizes, Order::DecreasingUtilization, fit)
            .map(<[u32]>::to_vec)
    }

    /// Seven items of 0.6, 0.5, 0.4, 0.3, 0.2, …: each heuristic does what its name says.
    #[test]
    fn each_heuristic_places_as_its_name_says() {
        let set = [
            task(6, 10),
            task(5, 10),
            task(3, 10),
            task(2, 10),
            task(1, 10),
        ];
        assert_eq!(pack(&set, 3, Fit::Worst), Ok(vec![0, 1, 2, 2, 1]));
        assert_eq!(pack(&set, 3, Fit::First), Ok(vec![0, 1, 0, 1, 0]));
        assert_eq!(pack(&set, 3, Fit::Best), Ok(vec![0, 1, 0, 1, 0]));
        assert_eq!(pack(&set, 3, Fit::Next), Ok(vec![0, 1, 1, 1, 2]));
    }

    #[test]
    fn three_thirds_fill_a_processor_to_the_last_nanosecond() {
        assert_eq!(pack(&[task(1, 3); 3], 1, Fit::First), Ok(vec![0, 0, 0]));
        assert_eq!(
            pack(
                &[task(1, 3), task(1, 3), task(1, 3), task(1, 1_000_000)],
                1,
                Fit::First
            ),
            Err(3)
        );
        let p = 3_000_000_000;
        assert_eq!(
            pack(&[task(1, 3), task(1, 3), task(p / 3 + 1, p)], 1, Fit::First),
            Err(1)
        );
    }

    /// No partition of Fig. 2.6 of 002 on two processors exists.
    #[test]
    fn fig_2_6_cannot_be_partitioned() {
        let set = [task(2, 3), task(3, 8), task(1, 7), task(5, 7)];
        for fit in Fit::ALL {
            assert!(pack(&set, 2, fit).is_err(), "{fit}");
            assert!(pack(&set, 3, fit).is_ok(), "{fit}");
        }
    }

    #[test]
    fn a_cluster_holds_as_much_as_its_processors() {
        let set = [task(2, 3), task(2, 3), task(2, 3)];
        let mut scratch = Scratch::new();
        assert_eq!(
            scratch.pack(&set, &[2], Order::Given, Fit::Worst),
            Ok(&[0, 0, 0][..])
        );
        // Worst fit on clusters of different sizes looks at what is left, not at what is used.
        assert_eq!(
            scratch.pack(&set, &[1, 4], Order::Given, Fit::Worst),
            Ok(&[1, 1, 1][..])
        );
        assert_eq!(
            scratch.pack(&[task(2, 1)], &[4], Order::Given, Fit::First),
            Err(0)
        );
    }
}
