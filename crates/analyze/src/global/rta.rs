//! RTA: response times by bounded interference, with slack, for global EDF.
//!
//! Source: Bertogna, Cirinei, "Response-time analysis for globally scheduled symmetric multiprocessor platforms", RTSS
//! 2007, the analysis for EDF with the iteration over slacks. The response time of task k is the least
//! R ≥ e_k with R = e_k + ⌊Σ_{i≠k} min(E_i, V_i(R), R − e_k + 1)/m⌋, where
//! E_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)) is what EDF lets task i interfere with and
//! V_i(R) = ⌊L/p_i⌋·e_i + min(e_i, L mod p_i), L = R + D_i − e_i − s_i, what fits any window of length R. If R ≤ D_k then
//! s_k = D_k − R. At most [`ROUNDS`] rounds over all tasks in their order, from slacks of zero on.
//!
//! Assumes: sporadic tasks, D ≤ p; integer time, in the unit of the set (`columns::unit`).

use crate::columns::{self, Budget, Columns, LANES, max, min, round};
use crate::registry::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, tasks_are_feasible,
};
use model::{Duration, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "RTA",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, RTSS 2007",
    preconditions: "D ≤ p",
    about: "A bound of the response time of every task, each bound giving slack that lowers the others; at most 25 \
            rounds. Dominates BCL and BCLI but for the limit of rounds. Pseudo-polynomial; integer time.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_in_nanoseconds),
};

/// Every so many steps of a response time are followed by a leap.
const PLAIN_STEPS: u64 = 6;

/// The most rounds of slack updates.
pub const ROUNDS: usize = 25;

/// Has every task a response time within its deadline, in the time unit of the set?
///
/// # Errors
/// A deadline beyond its period; too many steps.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, columns::unit(tasks))
}

/// As [`is_schedulable`] with a unit of one nanosecond.
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_in_nanoseconds(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, 1)
}

/// A bound of the response time of every task, if the set is schedulable by this test.
///
/// # Errors
/// As [`is_schedulable`].
pub fn response_bounds(tasks: &[Timing], m: u32) -> Result<Option<Vec<Duration>>, NotApplicable> {
    constrained_deadlines(tasks)?;
    if m == 0 || !tasks_are_feasible(tasks) {
        return Ok(None);
    }
    let unit = columns::unit(tasks);
    let interference = Columns::with(tasks, unit, |columns| {
        let mut budget = Budget::new(tasks.len());
        if columns.are_exact {
            let mut analysis = Fast::new(columns, m);
            let none = vec![0.0; tasks.len()];
            let found = rounds(&mut analysis, &none, &mut budget)?;
            Ok(found.map(|times| times.into_iter().map(|t| t as u64).collect()))
        } else {
            let mut analysis = Wide::new(tasks, m, unit);
            rounds(&mut analysis, &vec![0; tasks.len()], &mut budget)
        }
    })?;
    Ok(interference.map(|interference: Vec<u64>| {
        let response = |(t, i): (&Timing, u64)| t.wcet.saturating_add(Duration::from_nanos(i * unit));
        tasks.iter().zip(interference).map(response).collect()
    }))
}

fn decide(tasks: &[Timing], m: u32, unit: u64) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    Columns::with(tasks, unit, |columns| {
        if columns.are_exact {
            is_schedulable_by(&mut Fast::new(columns, m), tasks)
        } else {
            is_schedulable_by(&mut Wide::new(tasks, m, unit), tasks)
        }
    })
}

/// The equations of one set: once in floating point that is exact, once in wide integers.
///
/// A response time R is kept as the interference R − e_k, a slack as D_k − R.
trait Analysis {
    type Time: Copy + Default + PartialOrd;
    /// What one step costs.
    fn cost(&self) -> u64;
    /// How many tasks.
    fn len(&self) -> usize;
    /// D_k − e_k: the most interference, and the most slack.
    fn most(&self, k: usize) -> Self::Time;
    /// The difference of two times, the first of which is the larger.
    fn difference(a: Self::Time, b: Self::Time) -> Self::Time;
    /// Makes ready for [`Analysis::step`] with task k: the E_i, which do not depend on R.
    fn begin(&mut self, k: usize, slacks: &[Self::Time]);
    /// ⌊Σ_{i≠k} min(E_i, V_i(R), R − e_k + 1)/m⌋ at R = e_k + `interference`.
    fn step(&self, k: usize, slacks: &[Self::Time], interference: Self::Time) -> Self::Time;
    /// As [`Analysis::step`], but as far as there is no solution for certain; see [`leap`].
    fn leap(&self, k: usize, slacks: &[Self::Time], interference: Self::Time) -> Self::Time;
}

/// A task in the equation: e_i, p_i, L and E_i.
type Row = (u64, u64, u128, u128);

/// How far the least solution is at least, from an interference `x` that is no larger: where the sum grows as fast as
/// m·R, plain steps go unit by unit. The sum grows by one a unit for each of `growing` terms, up to the first bend, and
/// there is no solution before it has fallen behind.
fn leap(m: u32, x: u64, rows: impl Iterator<Item = Row>) -> u64 {
    let most = u128::from(x) + 1;
    let (mut sum, mut growing, mut bend) = (0_u128, 0_u128, u128::MAX);
    for (wcet, period, window, by_deadline) in rows {
        let (wcet, period) = (u128::from(wcet), u128::from(period.max(1)));
        let rest = window % period;
        let any = (window / period) * wcet + wcet.min(rest);
        let cap = any.min(by_deadline);
        sum += cap.min(most);
        if most < cap {
            growing += 1;
            bend = bend.min(cap - most);
        } else if rest < wcet && any < by_deadline {
            growing += 1;
            bend = bend.min((wcet - rest).min(by_deadline - any));
        }
    }
    let m = u128::from(m);
    let Some(ahead) = sum.checked_sub(m * most) else {
        return x;
    };
    let far = match m.checked_sub(growing) {
        _ if growing == 0 => 0,
        None | Some(0) => bend,
        Some(gap) => bend.min(ahead / gap + 1),
    };
    let next = (u128::from(x) + far).max(sum / m);
    u64::try_from(next).unwrap_or(u64::MAX)
}

fn is_schedulable_by<A: Analysis>(analysis: &mut A, tasks: &[Timing]) -> Decision {
    let mut budget = Budget::new(tasks.len());
    if passes_at_once(analysis, &mut budget)? {
        return Ok(true);
    }
    match least_interference(analysis, tasks, &mut budget)? {
        None => Ok(false),
        Some(least) => Ok(rounds(analysis, &least, &mut budget)?.is_some()),
    }
}

/// Does every task pass in the first round? The right side grows with R: if it is within R at R = D_k, there is a
/// solution below.
fn passes_at_once<A: Analysis>(analysis: &mut A, budget: &mut Budget) -> Decision {
    let slacks = vec![A::Time::default(); analysis.len()];
    for k in 0..analysis.len() {
        budget.spend(2 * analysis.cost())?;
        analysis.begin(k, &slacks);
        let most = analysis.most(k);
        if analysis.step(k, &slacks, most) > most {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The least interference of every task under slacks that are too large, or none if a task fails even so: most rejected
/// sets are rejected here. What is found is where the rounds may start from.
fn least_interference<A: Analysis>(
    analysis: &mut A,
    tasks: &[Timing],
    budget: &mut Budget,
) -> Result<Option<Vec<A::Time>>, NotApplicable> {
    const SWEEPS: usize = 8;
    let n = analysis.len();
    // Long deadlines first: short ones fail by them.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by_key(|k| std::cmp::Reverse(tasks[*k].deadline));
    let mut slacks: Vec<A::Time> = (0..n).map(|k| analysis.most(k)).collect();
    let mut least = vec![A::Time::default(); n];
    for _ in 0..SWEEPS {
        let mut changed = false;
        for k in &order {
            match respond(analysis, *k, &slacks, least[*k], budget)? {
                None => return Ok(None),
                Some(interference) if interference > least[*k] => {
                    least[*k] = interference;
                    slacks[*k] = A::difference(analysis.most(*k), interference);
                    changed = true;
                }
                Some(_) => {}
            }
        }
        if !changed {
            break;
        }
        order.reverse();
    }
    Ok(Some(least))
}

/// The rounds as published, each task from an interference that it has at least; the interference of every task, if
/// one round passes them all.
fn rounds<A: Analysis>(
    analysis: &mut A,
    least: &[A::Time],
    budget: &mut Budget,
) -> Result<Option<Vec<A::Time>>, NotApplicable> {
    let n = analysis.len();
    let mut slacks = vec![A::Time::default(); n];
    let mut found = vec![A::Time::default(); n];
    for _ in 0..ROUNDS {
        let (mut all, mut changed) = (true, false);
        for k in 0..n {
            let Some(interference) = respond(analysis, k, &slacks, least[k], budget)? else {
                all = false;
                continue;
            };
            found[k] = interference;
            let slack = A::difference(analysis.most(k), interference);
            if slack > slacks[k] {
                slacks[k] = slack;
                changed = true;
            }
        }
        if all {
            return Ok(Some(found));
        }
        if !changed {
            break;
        }
    }
    Ok(None)
}

/// The least interference that solves the equation of task k, from one that is no larger; none beyond D_k − e_k.
fn respond<A: Analysis>(
    analysis: &mut A,
    k: usize,
    slacks: &[A::Time],
    from: A::Time,
    budget: &mut Budget,
) -> Result<Option<A::Time>, NotApplicable> {
    budget.spend(analysis.cost())?;
    analysis.begin(k, slacks);
    let most = analysis.most(k);
    let mut interference = from;
    for step in 1_u64.. {
        budget.spend(analysis.cost())?;
        let next = if step % PLAIN_STEPS == 0 {
            budget.spend(15 * analysis.cost())?;
            analysis.leap(k, slacks, interference)
        } else {
            analysis.step(k, slacks, interference)
        };
        if next > most {
            return Ok(None);
        }
        if next <= interference {
            return Ok(Some(interference));
        }
        interference = next;
    }
    Ok(None)
}

struct Fast<'c> {
    m: f64,
    columns: &'c Columns,
    /// D_i − e_i, padded.
    spare: Vec<f64>,
    /// E_i for the task at hand, padded; zero for the task itself.
    by_deadline: Vec<f64>,
    /// Slacks, padded.
    slacks: Vec<f64>,
}

impl<'c> Fast<'c> {
    fn new(columns: &'c Columns, m: u32) -> Self {
        let padded = columns.wcet.len();
        let mut spare: Vec<f64> = (0..padded)
            .map(|i| columns.deadline[i] - columns.wcet[i])
            .collect();
        spare[columns.n..].fill(0.0);
        Fast {
            m: f64::from(m),
            columns,
            spare,
            by_deadline: vec![0.0; padded],
            slacks: vec![0.0; padded],
        }
    }
}

impl Analysis for Fast<'_> {
    type Time = f64;

    fn cost(&self) -> u64 {
        self.columns.n as u64
    }
    fn len(&self) -> usize {
        self.columns.n
    }
    fn most(&self, k: usize) -> f64 {
        self.spare[k]
    }
    fn difference(a: f64, b: f64) -> f64 {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[f64]) {
        let c = self.columns;
        self.slacks[..c.n].copy_from_slice(slacks);
        let window = c.deadline[k];
        for i in 0..c.wcet.len() {
            let jobs = round(window * c.inverse_period[i] - 0.5);
            let rest = max(0.0, window - self.slacks[i] - jobs * c.period[i]);
            self.by_deadline[i] = jobs * c.wcet[i] + min(c.wcet[i], rest);
        }
        self.by_deadline[k] = 0.0;
    }

    fn step(&self, k: usize, _: &[f64], interference: f64) -> f64 {
        let c = self.columns;
        let response = c.wcet[k] + interference;
        let most = interference + 1.0;
        let mut sums = [0.0; LANES];
        let rows = c.wcet.chunks_exact(LANES).zip(c.period.chunks_exact(LANES));
        let more = self
            .spare
            .chunks_exact(LANES)
            .zip(c.inverse_period.chunks_exact(LANES));
        let bounds = self
            .slacks
            .chunks_exact(LANES)
            .zip(self.by_deadline.chunks_exact(LANES));
        for (((wcet, period), (spare, inverse)), (slack, by_deadline)) in rows.zip(more).zip(bounds) {
            for lane in 0..LANES {
                let window = response + spare[lane] - slack[lane];
                let jobs = round(window * inverse[lane] - 0.5);
                let work = jobs * wcet[lane] + min(wcet[lane], window - jobs * period[lane]);
                sums[lane] += min(min(work, by_deadline[lane]), most);
            }
        }
        // Below 2^53: a quotient that is not whole stays below the next whole number.
        (sums.iter().sum::<f64>() / self.m) as u64 as f64
    }

    fn leap(&self, k: usize, _: &[f64], interference: f64) -> f64 {
        let c = self.columns;
        let rows = (0..c.n).map(|i| {
            let window = c.wcet[k] + interference + self.spare[i] - self.slacks[i];
            (
                c.wcet[i] as u64,
                c.period[i] as u64,
                window as u128,
                self.by_deadline[i] as u128,
            )
        });
        leap(self.m as u32, interference as u64, rows) as f64
    }
}

struct Wide<'t> {
    tasks: &'t [Timing],
    m: u32,
    unit: u64,
    by_deadline: Vec<u128>,
}

impl<'t> Wide<'t> {
    fn new(tasks: &'t [Timing], m: u32, unit: u64) -> Self {
        Wide {
            tasks,
            m,
            unit,
            by_deadline: vec![0; tasks.len()],
        }
    }

    /// e, p, D in units.
    fn times(&self, i: usize) -> (u64, u64, u64) {
        let t = &self.tasks[i];
        (
            t.wcet.nanos() / self.unit,
            t.period.nanos() / self.unit,
            t.deadline.nanos() / self.unit,
        )
    }
}

impl Analysis for Wide<'_> {
    type Time = u64;

    fn cost(&self) -> u64 {
        16 * self.tasks.len() as u64
    }
    fn len(&self) -> usize {
        self.tasks.len()
    }
    fn most(&self, k: usize) -> u64 {
        let (wcet, _, deadline) = self.times(k);
        deadline - wcet
    }
    fn difference(a: u64, b: u64) -> u64 {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[u64]) {
        let (_, _, window) = self.times(k);
        for (i, slack) in slacks.iter().enumerate() {
            let (wcet, period, _) = self.times(i);
            let rest = (window % period).saturating_sub(*slack);
            self.by_deadline[i] = u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
        }
        self.by_deadline[k] = 0;
    }

    fn step(&self, k: usize, slacks: &[u64], interference: u64) -> u64 {
        let response = u128::from(self.times(k).0) + u128::from(interference);
        let most = u128::from(interference) + 1;
        let mut sum = 0_u128;
        for (i, slack) in slacks.iter().enumerate() {
            let (wcet, period, deadline) = self.times(i);
            let (wcet, period) = (u128::from(wcet), u128::from(period));
            let window = response + u128::from(deadline) - wcet - u128::from(*slack);
            let work = (window / period) * wcet + wcet.min(window % period);
            sum += work.min(self.by_deadline[i]).min(most);
        }
        u64::try_from(sum / u128::from(self.m)).unwrap_or(u64::MAX)
    }

    fn leap(&self, k: usize, slacks: &[u64], interference: u64) -> u64 {
        let response = u128::from(self.times(k).0) + u128::from(interference);
        let rows = slacks.iter().enumerate().map(|(i, slack)| {
            let (wcet, period, deadline) = self.times(i);
            let window = response + u128::from(deadline) - u128::from(wcet) - u128::from(*slack);
            (wcet, period, window, self.by_deadline[i])
        });
        leap(self.m, interference, rows)
    }
}
