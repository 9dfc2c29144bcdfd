//! Utilizations of a fixed number of tasks that add up to a given total.
//!
//! - UUniFast (Bini and Buttazzo, Real-Time Systems 30, 2005): uniform over the simplex, one
//!   uniform number per task.
//! - UUniFast-Discard (Davis and Burns, RTSS 2009): vectors with a utilization above 1 are drawn
//!   anew.
//! - RandFixedSum (Stafford; Emberson, Stafford and Davis, WATERS 2010): uniform over the part of
//!   the simplex in which every utilization lies in one common range, at the same cost for every
//!   total.
//!
//! The convolutional fixed sum (Griffin and Davis) extends the last to a range of each task's own
//! and replaces the Dirichlet-rescale algorithm, which is not uniform. With one common range, as
//! here, both sample the same uniform distribution; RandFixedSum does it without numerical
//! convolution. The tests compare its marginals with the exact ones.

use crate::random::Random;
use crate::utilization::Range;
use model::{Error, Result};

/// The most tasks for which RandFixedSum makes its table (n²/2 probabilities).
pub const MAX_TASKS: u32 = 4_000;
/// How many vectors UUniFast-Discard throws away before it gives up.
const PATIENCE: u32 = 10_000;

/// UUniFast: `total` split among `out`, uniform over all ways to split it.
pub fn uunifast(random: &mut Random, total: f64, out: &mut [f64]) {
    let n = out.len();
    let mut rest = total;
    for (i, u) in out.iter_mut().enumerate() {
        let left = n - i - 1;
        // What remains for `left` more tasks; the minimum of that many uniform points leaves this
        // root of one.
        let next = match left {
            0 => 0.0,
            _ => rest * libm::pow(random.positive_unit(), 1.0 / left as f64),
        };
        *u = rest - next;
        rest = next;
    }
}

/// UUniFast-Discard: [`uunifast`] until no utilization is above 1.
///
/// # Errors
/// After ten thousand vectors none would do: the total is too near to the number of tasks.
pub fn uunifast_discard(random: &mut Random, total: f64, out: &mut [f64]) -> Result<()> {
    for _ in 0..PATIENCE {
        uunifast(random, total, out);
        if out.iter().all(|u| *u <= 1.0) {
            return Ok(());
        }
    }
    Err(Error::new(format!(
        "UUniFast-Discard found no {} tasks with a total utilization of {total} among {PATIENCE} draws",
        out.len()
    ))
    .remedy("use the method `randfixedsum`, or more tasks"))
}

/// RandFixedSum for one number of tasks and one total, prepared for many draws.
///
/// The vectors x in [0, 1]ⁱ with sum σ form a polytope. It is the union of cones from its center,
/// one over each facet x_k = 0 and one over each facet x_k = 1, which are such polytopes with one
/// dimension less and the sums σ and σ − 1. With f_i the density of the sum of i uniform numbers
/// (Irwin–Hall), the cones over facets of value 1 have the part (i − σ) f_{i−1}(σ − 1) of the
/// volume, those of value 0 the part σ f_{i−1}(σ). So a point is drawn by choosing a kind of facet
/// with that probability, a point of the facet in the same way, and a distance from the center; a
/// random order of the coordinates at the end stands for the choice among facets of a kind.
#[derive(Clone, Debug)]
pub struct FixedSum {
    range: Range,
    /// The sum after scaling the range to [0, 1], as whole + fraction with the fraction in (0, 1].
    whole: usize,
    fraction: f64,
    /// By dimension from 2, then by whole part: the probability of a facet of value 1.
    to_one: Vec<Vec<f64>>,
    tasks: usize,
}

impl FixedSum {
    /// Prepares `tasks` utilizations in `range` with sum `total`.
    ///
    /// # Errors
    /// No tasks, more than [`MAX_TASKS`], or a total that so many tasks in the range cannot have.
    pub fn new(tasks: u32, total: f64, range: Range) -> Result<Self> {
        if tasks == 0 || tasks > MAX_TASKS {
            return Err(Error::new(format!(
                "{tasks} tasks are not possible with `randfixedsum`"
            ))
            .remedy(format!("give 1 to {MAX_TASKS} tasks")));
        }
        let n = f64::from(tasks);
        if !(total > 0.0 && total >= n * range.low() && total <= n * range.high()) {
            return Err(Error::new(format!(
                "{tasks} tasks with utilizations from {} to {} cannot have a total of {total}",
                range.low(),
                range.high()
            ))
            .remedy(format!(
                "give a total from {} to {}, or another number of tasks",
                n * range.low(),
                n * range.high()
            )));
        }
        let width = range.high() - range.low();
        let sum = if width > 0.0 {
            (total - n * range.low()) / width
        } else {
            0.0
        };
        let tasks = tasks as usize;
        let whole = (libm::ceil(sum).max(1.0) as usize - 1).min(tasks - 1);
        let fraction = (sum - whole as f64).clamp(0.0, 1.0);
        Ok(FixedSum {
            range,
            whole,
            fraction,
            to_one: facet_probabilities(tasks, whole, fraction),
            tasks,
        })
    }

    /// Draws one vector; `out` must have the prepared length.
    pub fn draw(&self, random: &mut Random, out: &mut [f64]) {
        debug_assert_eq!(out.len(), self.tasks);
        let width = self.range.high() - self.range.low();
        // `base` is what every remaining coordinate has already from the centers, `scale` the part
        // that is left.
        let (mut base, mut scale, mut whole) = (0.0, 1.0, self.whole);
        for (place, x) in out.iter_mut().enumerate() {
            let dimension = self.tasks - place;
            let sum = whole as f64 + self.fraction;
            if dimension == 1 {
                *x = base + scale * sum;
                break;
            }
            let one = random.unit() < self.to_one[dimension - 2][whole];
            let shrink = libm::pow(random.positive_unit(), 1.0 / (dimension - 1) as f64);
            base += (1.0 - shrink) * scale * sum / dimension as f64;
            scale *= shrink;
            *x = base;
            if one {
                *x += scale;
                whole -= 1;
            }
        }
        random.shuffle(out);
        for x in out {
            *x = (self.range.low() + width * *x).clamp(self.range.low(), self.range.high());
        }
    }
}

/// The probability of a facet of value 1 in every dimension from 2 to `n`, for sums j + fraction, j
/// = 0..=whole.
///
/// Logarithms, because densities far from the middle are smaller than any floating-point number.
fn facet_probabilities(n: usize, whole: usize, fraction: f64) -> Vec<Vec<f64>> {
    let nothing = f64::NEG_INFINITY;
    // ln f_1: the sum of one uniform number has density 1 in (0, 1].
    let mut density = vec![nothing; whole + 1];
    density[0] = 0.0;
    let mut table = Vec::with_capacity(n.saturating_sub(1));
    for dimension in 2..=n {
        let columns = whole.min(dimension - 1) + 1;
        let mut row = vec![0.0; columns];
        // Downwards: a column needs the previous dimension's values of itself and of the one below.
        for j in (0..columns).rev() {
            let sum = j as f64 + fraction;
            let zero = libm::log(sum) + density[j];
            let one = match j {
                0 => nothing,
                _ => libm::log((dimension as f64 - sum).max(0.0)) + density[j - 1],
            };
            let larger = zero.max(one);
            if larger == nothing {
                // A sum that cannot be; at the very corners of the range it stands for the one
                // point there is.
                row[j] = if j > 0 { 1.0 } else { 0.0 };
                density[j] = nothing;
            } else {
                row[j] = 1.0 / (1.0 + libm::exp(zero - one));
                density[j] = larger + libm::log1p(libm::exp(zero.min(one) - larger))
                    - libm::log((dimension - 1) as f64);
            }
        }
        table.push(row);
    }
    table
}
