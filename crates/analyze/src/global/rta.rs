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

use crate::carries::Carries;
use crate::columns::{self, Budget, Columns, Float, Width, max, min, round, sum};
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
    carries: Carries::Sporadic,
};

/// A step goes at least this part of the way to where it could.
const CHORD: u128 = 16;

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
    let interference = bounds_in(Width::of(tasks, unit), tasks, m, unit)?;
    Ok(interference.map(|interference| {
        let response = |(t, i): (&Timing, u64)| t.wcet.saturating_add(Duration::from_nanos(i * unit));
        tasks.iter().zip(interference).map(response).collect()
    }))
}

/// The interference of every task in units.
fn bounds_in(width: Width, tasks: &[Timing], m: u32, unit: u64) -> Result<Option<Vec<u64>>, NotApplicable> {
    match width {
        Width::Single => Columns::<f32>::with(tasks, unit, |c| first_bounds(&mut Fast::new(c, m))),
        Width::Double => Columns::<f64>::with(tasks, unit, |c| first_bounds(&mut Fast::new(c, m))),
        Width::Wide => first_bounds(&mut Wide::new(tasks, m, unit)),
    }
}

/// What the rounds as published find, in units.
fn first_bounds<A: Analysis>(analysis: &mut A) -> Result<Option<Vec<u64>>, NotApplicable> {
    let mut budget = Budget::new(analysis.len());
    let least = analysis.zeros();
    let found = rounds(analysis, &least, &mut budget)?;
    Ok(found.map(|times| times.into_iter().map(A::to_whole).collect()))
}

fn decide(tasks: &[Timing], m: u32, unit: u64) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    decide_in(Width::of(tasks, unit), tasks, m, unit)
}

fn decide_in(width: Width, tasks: &[Timing], m: u32, unit: u64) -> Decision {
    match width {
        Width::Single => {
            Columns::<f32>::with(tasks, unit, |c| is_schedulable_by(&mut Fast::new(c, m), tasks))
        }
        Width::Double => {
            Columns::<f64>::with(tasks, unit, |c| is_schedulable_by(&mut Fast::new(c, m), tasks))
        }
        Width::Wide => is_schedulable_by(&mut Wide::new(tasks, m, unit), tasks),
    }
}

/// The equations of one set: once in floating point that is exact, once in wide integers.
///
/// A response time R is kept as the interference R − e_k, a slack as D_k − R.
trait Analysis {
    type Time: Copy + Default + PartialOrd;
    /// A time in units, and back.
    fn to_whole(time: Self::Time) -> u64;
    /// As [`Analysis::to_whole`].
    fn from_whole(whole: u64) -> Self::Time;
    /// What one step costs.
    fn cost(&self) -> u64;
    /// How many tasks.
    fn len(&self) -> usize;
    /// The processors.
    fn processors(&self) -> u32;
    /// No slack for any task, with room for as many times as the columns are padded to.
    fn zeros(&self) -> Vec<Self::Time>;
    /// D_k − e_k: the most interference, and the most slack.
    fn most(&self, k: usize) -> Self::Time;
    /// The difference of two times, the first of which is the larger.
    fn difference(a: Self::Time, b: Self::Time) -> Self::Time;
    /// Makes ready for [`Analysis::survey`] with task k: the E_i, which do not depend on R.
    fn begin(&mut self, k: usize, slacks: &[Self::Time]);
    /// Σ_{i≠k} min(E_i, V_i(R), R − e_k + 1) at R = e_k + `interference`, and by how much its terms still grow with R before
    /// their job or E_i ends; remembers that of each.
    fn survey(&mut self, interference: Self::Time) -> (u128, u128);
    /// By how much the terms that were surveyed last grow at least while R grows by `by`, which is within D_k.
    fn growth(&mut self, by: u64) -> u128;
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
    let slacks = analysis.zeros();
    for k in 0..analysis.len() {
        budget.spend(2 * analysis.cost())?;
        analysis.begin(k, &slacks);
        let most = analysis.most(k);
        let (sum, _) = analysis.survey(most);
        if sum / u128::from(analysis.processors()) > u128::from(A::to_whole(most)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The interference that every task has at least under slacks that are too large, or none if a task fails even so: most
/// rejected sets are rejected here. What is found is where the rounds may start from.
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
    let mut least = analysis.zeros();
    let mut slacks = analysis.zeros();
    for (k, slack) in slacks[..n].iter_mut().enumerate() {
        *slack = analysis.most(k);
    }
    for _ in 0..SWEEPS {
        let mut changed = false;
        for &k in &order {
            let Some(interference) = respond(analysis, k, &slacks, least[k], budget)? else {
                return Ok(None);
            };
            if interference > least[k] {
                least[k] = interference;
                slacks[k] = A::difference(analysis.most(k), interference);
                changed = true;
            }
        }
        if !changed {
            break;
        }
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
    let mut slacks = analysis.zeros();
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
    loop {
        let next = step(analysis, interference, most, budget)?;
        if next > most {
            return Ok(None);
        }
        if next <= interference {
            return Ok(Some(interference));
        }
        interference = next;
    }
}

/// A step from an interference x that is no larger than the least solution: to ⌊Σ/m⌋, or as far ahead as there is no
/// solution for certain. Where the sum grows nearly as fast as m·R, the former steps are short.
///
/// At x + d the sum is at least S(d) = sum + Σ min(d, by how much the term still grows), and there is no solution if
/// S(d) ≥ m·(x + d + 1). S is concave, so that it is above its chord from 0 to any d: there is none before the chord has
/// fallen below m·(x + d + 1).
fn step<A: Analysis>(
    analysis: &mut A,
    from: A::Time,
    most: A::Time,
    budget: &mut Budget,
) -> Result<A::Time, NotApplicable> {
    budget.spend(3 * analysis.cost())?;
    let (x, m) = (A::to_whole(from), u128::from(analysis.processors()));
    let (sum, room) = analysis.survey(from);
    let Some(ahead) = sum.checked_sub(m * (u128::from(x) + 1)) else {
        return Ok(from);
    };
    // S is at most the sum and all rooms, so that it has fallen behind at this d; beyond D_k nothing matters.
    let span = u128::from(A::to_whole(most) - x + 1);
    let mut chord = divide(ahead + room, m).min(span);
    let far = loop {
        let behind = (m * chord).saturating_sub(analysis.growth(chord as u64));
        if behind <= ahead {
            break chord;
        }
        let far = divide(ahead * chord, behind);
        // Where many terms grow for a while and then stop, a long chord is far below S.
        if far >= chord / CHORD {
            break far;
        }
        budget.spend(analysis.cost())?;
        chord /= CHORD;
    };
    let next = (u128::from(x) + far + 1).max(divide(sum, m));
    Ok(A::from_whole(u64::try_from(next).unwrap_or(u64::MAX)))
}

/// A quotient, which mostly fits into 64 bits.
fn divide(a: u128, b: u128) -> u128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(a / b),
        _ => a / b,
    }
}

struct Fast<'c, F> {
    m: u32,
    columns: &'c Columns<F>,
    /// D_i − e_i, padded.
    spare: Vec<F>,
    /// L − R + e_k = e_k + D_i − e_i − s_i for the task at hand, padded.
    offset: Vec<F>,
    /// E_i for the task at hand, padded; zero for the task itself.
    by_deadline: Vec<F>,
    /// By how much each term still grows, padded.
    room: Vec<F>,
    /// What is to be summed.
    term: Vec<F>,
}

impl<'c, F: Float> Fast<'c, F> {
    fn new(columns: &'c Columns<F>, m: u32) -> Self {
        let padded = columns.wcet.len();
        let mut spare: Vec<F> = (0..padded)
            .map(|i| columns.deadline[i] - columns.wcet[i])
            .collect();
        spare[columns.n..].fill(F::default());
        Fast {
            m,
            columns,
            spare,
            offset: vec![F::default(); padded],
            by_deadline: vec![F::default(); padded],
            room: vec![F::default(); padded],
            term: vec![F::default(); padded],
        }
    }
}

impl<F: Float> Analysis for Fast<'_, F> {
    type Time = F;

    fn to_whole(time: F) -> u64 {
        time.whole()
    }
    fn from_whole(whole: u64) -> F {
        F::of(whole)
    }
    fn cost(&self) -> u64 {
        self.columns.n as u64
    }
    fn len(&self) -> usize {
        self.columns.n
    }
    fn processors(&self) -> u32 {
        self.m
    }
    fn zeros(&self) -> Vec<F> {
        vec![F::default(); self.columns.wcet.len()]
    }
    fn most(&self, k: usize) -> F {
        self.spare[k]
    }
    fn difference(a: F, b: F) -> F {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[F]) {
        let row = Row::of(self.columns, &self.spare, slacks);
        let window = self.columns.deadline[k];
        row.offset_and_bound(
            window,
            self.columns.wcet[k],
            &mut self.offset,
            &mut self.by_deadline,
        );
        self.by_deadline[k] = F::default();
    }

    fn survey(&mut self, interference: F) -> (u128, u128) {
        let row = Row::of(self.columns, &self.offset, &self.by_deadline);
        row.terms_and_rooms(interference, &mut self.term, &mut self.room);
        // By way of 64 bits, which is an instruction.
        let whole = |column| u128::from(sum(column) as u64);
        (whole(&self.term), whole(&self.room))
    }

    fn growth(&mut self, by: u64) -> u128 {
        let by = F::of(by);
        for (term, room) in self.term.iter_mut().zip(&self.room) {
            *term = min(*room, by);
        }
        u128::from(sum(&self.term) as u64)
    }
}

/// The columns of one loop, all of the same length: e, p, 1/p and two of its own.
struct Row<'c, F> {
    wcet: &'c [F],
    period: &'c [F],
    inverse: &'c [F],
    first: &'c [F],
    second: &'c [F],
}

impl<'c, F: Float> Row<'c, F> {
    fn of(columns: &'c Columns<F>, first: &'c [F], second: &'c [F]) -> Self {
        let n = columns.wcet.len();
        Row {
            wcet: &columns.wcet,
            period: &columns.period[..n],
            inverse: &columns.inverse_period[..n],
            first: &first[..n],
            second: &second[..n],
        }
    }

    /// From D_i − e_i and s_i.
    fn offset_and_bound(&self, window: F, own: F, offset: &mut [F], bound: &mut [F]) {
        let Row {
            wcet,
            period,
            inverse,
            first: spare,
            second: slack,
        } = *self;
        let n = wcet.len();
        let (offset, bound) = (&mut offset[..n], &mut bound[..n]);
        for i in 0..n {
            let jobs = round(window * inverse[i] - F::HALF);
            let rest = max(F::default(), window - slack[i] - jobs * period[i]);
            bound[i] = jobs * wcet[i] + min(wcet[i], rest);
            offset[i] = own + spare[i] - slack[i];
        }
    }

    /// min(E_i, V_i(R), R − e_k + 1), and by how much it still grows, from the offsets and E_i.
    fn terms_and_rooms(&self, interference: F, term: &mut [F], room: &mut [F]) {
        let Row {
            wcet,
            period,
            inverse,
            first: offset,
            second: bound,
        } = *self;
        let n = wcet.len();
        let (term, room) = (&mut term[..n], &mut room[..n]);
        let most = interference + F::ONE;
        for i in 0..n {
            let window = interference + offset[i];
            let jobs = round(window * inverse[i] - F::HALF);
            let rest = window - jobs * period[i];
            let whole = jobs * wcet[i];
            term[i] = min(min(whole + min(wcet[i], rest), bound[i]), most);
            // R − e_k + 1 grows, and work while its last job executes.
            room[i] = min(whole + wcet[i], bound[i]) - term[i];
        }
    }
}

struct Wide<'t> {
    tasks: &'t [Timing],
    m: u32,
    unit: u64,
    offset: Vec<u128>,
    by_deadline: Vec<u128>,
    room: Vec<u128>,
}

impl<'t> Wide<'t> {
    fn new(tasks: &'t [Timing], m: u32, unit: u64) -> Self {
        Wide {
            tasks,
            m,
            unit,
            offset: vec![0; tasks.len()],
            by_deadline: vec![0; tasks.len()],
            room: vec![0; tasks.len()],
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

    fn to_whole(time: u64) -> u64 {
        time
    }
    fn from_whole(whole: u64) -> u64 {
        whole
    }
    fn cost(&self) -> u64 {
        16 * self.tasks.len() as u64
    }
    fn len(&self) -> usize {
        self.tasks.len()
    }
    fn processors(&self) -> u32 {
        self.m
    }
    fn zeros(&self) -> Vec<u64> {
        vec![0; self.tasks.len()]
    }
    fn most(&self, k: usize) -> u64 {
        let (wcet, _, deadline) = self.times(k);
        deadline - wcet
    }
    fn difference(a: u64, b: u64) -> u64 {
        a - b
    }

    fn begin(&mut self, k: usize, slacks: &[u64]) {
        let (own, _, window) = self.times(k);
        for (i, slack) in slacks.iter().enumerate() {
            let (wcet, period, deadline) = self.times(i);
            let rest = (window % period).saturating_sub(*slack);
            self.by_deadline[i] = u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
            self.offset[i] = u128::from(own) + u128::from(deadline - wcet - slack);
        }
        self.by_deadline[k] = 0;
    }

    fn survey(&mut self, interference: u64) -> (u128, u128) {
        let most = u128::from(interference) + 1;
        let (mut sum, mut rooms) = (0, 0);
        for i in 0..self.tasks.len() {
            let (work, unfinished) = self.work(i, interference);
            let term = work.min(self.by_deadline[i]).min(most);
            let room = (work + unfinished).min(self.by_deadline[i]) - term;
            sum += term;
            rooms += room;
            self.room[i] = room;
        }
        (sum, rooms)
    }

    fn growth(&mut self, by: u64) -> u128 {
        self.room.iter().map(|room| (*room).min(u128::from(by))).sum()
    }
}

impl Wide<'_> {
    /// V_i, and what its last job still lacks.
    fn work(&self, i: usize, interference: u64) -> (u128, u128) {
        let (wcet, period, _) = self.times(i);
        let (wcet, period) = (u128::from(wcet), u128::from(period));
        let window = u128::from(interference) + self.offset[i];
        let rest = window % period;
        (
            (window / period) * wcet + wcet.min(rest),
            wcet.saturating_sub(rest),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_numbers_give_the_same_verdicts_and_bounds() {
        let mut verdicts = [0; 2];
        for seed in 0..60 {
            // Up to the longest times that single precision takes.
            let (tasks, m) = crate::columns::tests::random_set(seed);
            assert_eq!(Width::of(&tasks, 1), Width::Single);
            let widths = [Width::Single, Width::Double, Width::Wide];
            let [single, double, wide] = widths.map(|width| decide_in(width, &tasks, m, 1));
            assert_eq!(single, double, "{tasks:?} on {m}");
            // Wide numbers come to the limit earlier.
            if wide.is_ok() {
                assert_eq!(single, wide, "{tasks:?} on {m}");
            }
            verdicts[usize::from(wide == Ok(true))] += 1;
            let [single, double, wide] = widths.map(|width| bounds_in(width, &tasks, m, 1));
            assert_eq!(single, double, "{tasks:?} on {m}");
            if wide.is_ok() {
                assert_eq!(single, wide, "{tasks:?} on {m}");
            }
        }
        assert!(verdicts.iter().all(|count| *count > 5), "{verdicts:?}");
    }
}
