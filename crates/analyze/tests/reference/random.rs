//! Random small sets, the same for the same seed.

use super::Task;
use testing::random::Random as Numbers;

/// How many sets are tried: as many as `WARMSET_RANDOM_SETS` says, or this many.
pub fn count(default: u64) -> u64 {
    std::env::var("WARMSET_RANDOM_SETS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

/// Numbers in the type that the references calculate in.
pub struct Random(Numbers);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Numbers::new(seed))
    }
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> i128 {
        i128::from(self.0.below(n))
    }
}

/// Up to seven tasks on up to four processors, from hopeless to light, with ties and full
/// utilizations.
pub fn random_set(seed: u64) -> (Vec<Task>, i128) {
    let mut r = Random::new(seed);
    let m = 1 + r.below(4);
    let n = 1 + r.below(7);
    // Equal or harmonic periods make the conditions meet with equality.
    let periods: &[i128] = match r.below(3) {
        0 => &[6, 12],
        1 => &[4, 5, 6, 8, 10, 12, 15, 20],
        _ => &[7, 9, 11, 13, 16, 17, 19, 23],
    };
    let (implicit, late) = (r.below(2) == 0, r.below(8) == 0);
    let tasks = (0..n)
        .map(|_| {
            let p = periods[r.below(periods.len() as u64) as usize];
            let d = match (implicit, late) {
                (true, _) => p,
                (_, true) => 1 + r.below(2 * p as u64),
                _ => 1 + r.below(p as u64),
            };
            let most = if r.below(3) == 0 { d } else { (d / 2).max(1) };
            // Now and then a WCET above its deadline, as overheads make it.
            let e = 1 + r.below(most as u64) + i128::from(r.below(40) == 0);
            Task { e, p, d }
        })
        .collect();
    (tasks, m)
}

/// Tasks of implicit deadlines that fill `m` processors, or all but a little of the last one if
/// `light`.
pub fn full_set(r: &mut Random, m: i128, light: bool) -> Vec<Task> {
    // All utilizations in twelfths.
    let mut left = 12 * m - i128::from(light) * r.below(12);
    let mut tasks = Vec::new();
    while left > 0 {
        let p = [2, 3, 4, 6, 12][r.below(5) as usize];
        let most = (left * p / 12).min(p);
        let heavy = r.below(3) == 0;
        let e = match most {
            0 => {
                // Less than one unit in this period is left.
                tasks.push(Task {
                    e: left.min(12),
                    p: 12,
                    d: 12,
                });
                left -= left.min(12);
                continue;
            }
            _ if heavy => most,
            _ => 1 + r.below(most as u64),
        };
        tasks.push(Task { e, p, d: p });
        left -= e * 12 / p;
    }
    tasks
}
