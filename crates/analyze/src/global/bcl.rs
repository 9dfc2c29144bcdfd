//! BCL: bounded interference by deadline, for global EDF.
//!
//! Source: Bertogna, Cirinei, Lipari, "Improved schedulability analysis of EDF on multiprocessor
//! platforms", ECRTS 2005, the test for EDF. With N_i = ⌊(D_k − D_i)/p_i⌋ + 1 jobs of task i whose
//! release and deadline lie in the window of a job of task k, W_i = N_i·e_i + min(e_i, max(0, D_k −
//! N_i·p_i)) and S_k = D_k − e_k, every task k must have Σ_{i≠k} min(W_i, S_k) < m·S_k, or equality
//! and some i with 0 < W_i ≤ S_k.
//!
//! Assumes: sporadic tasks, D ≤ p, released at any time: a job that misses waits for longer than
//! S_k, and that Σ min(W_i, y) ≥ m·y for all y just above S_k is what both conditions exclude. All
//! quantities are whole nanoseconds: the test needs no fractions.

use crate::carries::Carries;
use crate::columns::{Budget, Columns, LANES, max, min, round};
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, constrained_deadlines, tasks_are_feasible};
use model::Timing;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BCL",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, Lipari, ECRTS 2005",
    preconditions: "D ≤ p",
    about: "No task can be interfered with long enough to miss: the work of every other task within a window as long \
            as the deadline is bounded, each counted at most as long as the slack. Quadratic; strong when a few tasks \
            are heavy.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Deadlines,
};

/// Σ_{i≠k} min(W_i, S_k) < m·S_k for every task k.
///
/// # Errors
/// A deadline beyond its period; too many pairs of tasks.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    Columns::<f64>::with(tasks, 1, |columns| decide(tasks, m, columns))
}

fn decide(tasks: &[Timing], m: u32, columns: &Columns) -> Decision {
    let mut budget = Budget::new(tasks.len());
    let filter = Filter::new(columns);
    // A short deadline is the likeliest to be missed: a rejected set is mostly rejected there.
    let shortest = (0..columns.n)
        .min_by(|a, b| columns.deadline[*a].total_cmp(&columns.deadline[*b]))
        .unwrap_or(0);
    for k in std::iter::once(shortest).chain((0..columns.n).filter(|k| *k != shortest)) {
        if filter.passes(columns, k, m) {
            continue;
        }
        budget.spend(columns.n as u64)?;
        if !keeps_deadline(tasks, m, columns, k) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A bound of the interference that costs no loop: W_i ≤ u_i·D_k + e_i·(1 − u_i), as W_i in a
/// window of length L is largest against u_i·L where a job has just completed.
struct Filter {
    utilization: f64,
    carried: f64,
}

impl Filter {
    fn new(columns: &Columns) -> Self {
        let (mut utilization, mut carried) = (0.0, 0.0);
        for i in 0..columns.n {
            let u = columns.wcet[i] * columns.inverse_period[i];
            utilization += u;
            carried += columns.wcet[i] * (1.0 - u);
        }
        Filter {
            utilization,
            carried,
        }
    }

    /// Does task k keep its deadline for certain? The margin is far above any rounding.
    fn passes(&self, columns: &Columns, k: usize, m: u32) -> bool {
        const MARGIN: f64 = 1.0 - 1e-6;
        let (wcet, deadline) = (columns.wcet[k], columns.deadline[k]);
        let u = wcet * columns.inverse_period[k];
        let work = (self.utilization - u) * deadline + self.carried - wcet * (1.0 - u);
        work < MARGIN * f64::from(m) * (deadline - wcet)
    }
}

fn keeps_deadline(tasks: &[Timing], m: u32, columns: &Columns, k: usize) -> bool {
    let deadline = columns.deadline[k];
    let slack = deadline - columns.wcet[k];
    let interference = interference(columns, deadline, slack) - min(columns.wcet[k], slack);
    let bound = f64::from(m) * slack;
    // Beyond, every W_i is within a few parts in 2^50 of the window, also where rounding moved a
    // job count by one: W_i is continuous in the length of the window.
    let error = if columns.are_exact {
        0.0
    } else {
        (columns.n as f64 + f64::from(m)) * deadline * 2.0_f64.powi(-45)
    };
    if interference + error < bound {
        true
    } else if interference - error > bound {
        false
    } else {
        keeps_deadline_exactly(tasks, m, k)
    }
}

/// Σ_i min(W_i, S_k) over all tasks, k itself with e_k.
#[inline]
fn interference(columns: &Columns, window: f64, slack: f64) -> f64 {
    let mut sums = [0.0; LANES];
    let rows = columns
        .wcet
        .chunks_exact(LANES)
        .zip(columns.period.chunks_exact(LANES));
    let more = columns
        .deadline
        .chunks_exact(LANES)
        .zip(columns.inverse_period.chunks_exact(LANES));
    for ((wcet, period), (deadline, inverse)) in rows.zip(more) {
        for lane in 0..LANES {
            let jobs = round((window - deadline[lane]) * inverse[lane] + 0.5);
            let rest = max(0.0, window - jobs * period[lane]);
            let work = jobs * wcet[lane] + min(wcet[lane], rest);
            sums[lane] += min(work, slack);
        }
    }
    sums.iter().sum()
}

/// The condition for one task in integers, with the rule for equality.
#[cold]
fn keeps_deadline_exactly(tasks: &[Timing], m: u32, k: usize) -> bool {
    let window = tasks[k].deadline.nanos();
    let slack = u128::from(window - tasks[k].wcet.nanos());
    let (mut sum, mut some_fits) = (0_u128, false);
    for (i, t) in tasks.iter().enumerate() {
        if i != k {
            let work = work_in(t, window);
            sum += work.min(slack);
            some_fits |= 0 < work && work <= slack;
        }
    }
    let bound = u128::from(m) * slack;
    sum < bound || (sum == bound && some_fits)
}

/// W_i: the most work of a task in a window that ends at a deadline of task k and of one of its own
/// jobs.
fn work_in(t: &Timing, window: u64) -> u128 {
    let (wcet, period, deadline) = (t.wcet.nanos(), t.period.nanos(), t.deadline.nanos());
    let jobs = match window.checked_sub(deadline) {
        Some(rest) => u128::from(rest / period) + 1,
        None => 0,
    };
    let rest = u128::from(window).saturating_sub(jobs * u128::from(period));
    jobs * u128::from(wcet) + rest.min(u128::from(wcet))
}
