//! RTA: response times by bounded interference, with slack, for global EDF.
//!
//! Source: Bertogna, Cirinei, "Response-time analysis for globally scheduled symmetric
//! multiprocessor platforms", RTSS 2007, the analysis for EDF with the iteration over slacks. In
//! the integer time of the paper the response time of task k is the least R ≥ e_k with R = e_k +
//! ⌊Σ_{i≠k} min(E_i, V_i(R), R − e_k + 1)/m⌋, where E_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod
//! p_i − s_i)) is what EDF lets task i interfere with and V_i(R) = ⌊L/p_i⌋·e_i + min(e_i, L mod
//! p_i), L = R + D_i − e_i − s_i, what fits any window of length R. If R ≤ D_k then s_k = D_k − R.
//! At most [`ROUNDS`] rounds over all tasks in their order, from slacks of zero on.
//!
//! Releases on ticks are what makes "+ 1" right: a job that is late is late by a tick. Here
//! releases may fall anywhere. Suppose that a schedule exceeds some bound R_k = D_k − s_k, and take
//! the first time t at which it does, by a job of task k released at r = t − R_k. Until t no job
//! runs beyond its bound, so task i executes at most B_i = min(E_i, V_i(R_k)) of higher priority in
//! [r, t), and the job before of task k is done (D ≤ p). The job has executed for less than e_k, so
//! it waits in [r, t) for a time I > x = R_k − e_k, with all m processors busy. A task interferes
//! at most for I and no two jobs of it at once, so that Σ min(B_i, y) ≥ m·y for every y ≤ I, among
//! them all that are just above x. That is a contradiction if Σ min(B_i, y) < m·y for all y in (x,
//! x + ε). Equality at x itself does no harm where fewer than m tasks have B_i > x.
//!
//! Any R_k with that property is a bound, so that whole ones may be looked for: R_k = e_k + x with
//! the least whole x that has Σ min(B_i, x) < m·x, or equality and fewer than m tasks with B_i > x.
//! As all B_i are whole then, equality is decided by Σ min(B_i, x + 1/2) < m·(x + 1/2).
//!
//! The unit is the nanosecond. Where all times are whole microseconds two coarser searches mostly
//! decide before, in narrower numbers: bounds in whole microseconds are larger, those for releases
//! on whole microseconds are smaller.
//!
//! Assumes: sporadic tasks, D ≤ p.

mod equations;

use crate::carries::Carries;
use crate::columns::{self, Budget, Columns, Width};
use crate::info::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, on_grid,
    tasks_are_feasible,
};
use equations::{Analysis, Clip, Fast, Wide};
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
            rounds. With B_i the most work of higher priority of task i in a window of length R_k, the bound is \
            R_k = e_k + x for the least x, in whole nanoseconds, such that Σ min(B_i, y) < m·y for all y just above x. \
            Dominates BCL and BCLI but for the limit of rounds and for less than a nanosecond. Pseudo-polynomial.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: Some(is_schedulable_on_grid),
    carries: Carries::Sporadic,
};

/// A step goes at least this part of the way to where it could.
const CHORD: u128 = 16;

/// The most rounds of slack updates.
pub const ROUNDS: usize = 25;

/// Has every task a response time within its deadline, whenever jobs are released?
///
/// # Errors
/// A deadline beyond its period; too many steps.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let coarse = columns::unit(tasks);
    if coarse > 1
        && let Some(decision) =
            decide_in(Width::of(tasks, coarse), tasks, m, coarse, Sought::Bracket)?
    {
        return Ok(decision);
    }
    Ok(decide_in(Width::of(tasks, 1), tasks, m, 1, Sought::Least)? == Some(true))
}

/// The test as published: all releases and times are multiples of `grid`.
///
/// # Errors
/// As [`is_schedulable`]; a time that is no multiple of `grid`.
pub fn is_schedulable_on_grid(tasks: &[Timing], m: u32, grid: Duration) -> Decision {
    constrained_deadlines(tasks)?;
    on_grid(tasks, grid)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let unit = grid.nanos();
    Ok(decide_in(Width::of(tasks, unit), tasks, m, unit, Sought::OnGrid)? == Some(true))
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
    let interference = bounds_in(Width::of(tasks, 1), tasks, m)?;
    Ok(interference.map(|interference| {
        let response = |(t, i): (&Timing, u64)| t.wcet.saturating_add(Duration::from_nanos(i));
        tasks.iter().zip(interference).map(response).collect()
    }))
}

/// The interference of every task in nanoseconds.
fn bounds_in(width: Width, tasks: &[Timing], m: u32) -> Result<Option<Vec<u64>>, NotApplicable> {
    match width {
        Width::Single => Columns::<f32>::with(tasks, 1, |c| first_bounds(&mut Fast::new(c, m))),
        Width::Double => Columns::<f64>::with(tasks, 1, |c| first_bounds(&mut Fast::new(c, m))),
        Width::Wide => first_bounds(&mut Wide::new(tasks, m, 1)),
    }
}

/// What the rounds find, in units.
fn first_bounds<A: Analysis>(analysis: &mut A) -> Result<Option<Vec<u64>>, NotApplicable> {
    let mut budget = Budget::new(analysis.len());
    let least = analysis.zeros();
    let found = rounds(analysis, &least, Releases::Anywhere, &mut budget)?;
    Ok(found.map(|times| times.into_iter().map(A::to_whole).collect()))
}

/// What is to be found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sought {
    /// The verdict by bounds in whole units.
    Least,
    /// The verdict by bounds in any finer unit, as far as bounds in whole units tell.
    Bracket,
    /// The verdict for releases on whole units.
    OnGrid,
}

/// At which times jobs may be released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Releases {
    /// At any time.
    Anywhere,
    /// On whole units.
    OnGrid,
}

fn decide_in(
    width: Width,
    tasks: &[Timing],
    m: u32,
    unit: u64,
    sought: Sought,
) -> Result<Option<bool>, NotApplicable> {
    match width {
        Width::Single => {
            Columns::<f32>::with(tasks, unit, |c| search(&mut Fast::new(c, m), tasks, sought))
        }
        Width::Double => {
            Columns::<f64>::with(tasks, unit, |c| search(&mut Fast::new(c, m), tasks, sought))
        }
        Width::Wide => search(&mut Wide::new(tasks, m, unit), tasks, sought),
    }
}

/// Bounds for releases on whole units are at most those for any release, in this unit and in finer
/// ones: by [the header](self) the condition at x + 1 follows from that at y just above x, as
/// Σ min(B_i, y) − m·y is concave in y and zero at zero. So they reject for all.
fn search<A: Analysis>(
    analysis: &mut A,
    tasks: &[Timing],
    sought: Sought,
) -> Result<Option<bool>, NotApplicable> {
    let releases = match sought {
        Sought::OnGrid => Releases::OnGrid,
        Sought::Least | Sought::Bracket => Releases::Anywhere,
    };
    let mut budget = Budget::new(tasks.len());
    if passes_at_once(analysis, releases, &mut budget)? {
        return Ok(Some(true));
    }
    let Some(least) = least_interference(analysis, tasks, &mut budget)? else {
        return Ok(Some(false));
    };
    if rounds(analysis, &least, releases, &mut budget)?.is_some() {
        return Ok(Some(true));
    }
    if sought != Sought::Bracket {
        return Ok(Some(false));
    }
    let mut budget = Budget::new(tasks.len());
    let may_pass = rounds(analysis, &least, Releases::OnGrid, &mut budget)?.is_some();
    Ok((!may_pass).then_some(false))
}

/// Does every task pass in the first round? If R = D_k has the property, there is a least R that
/// has it.
fn passes_at_once<A: Analysis>(
    analysis: &mut A,
    releases: Releases,
    budget: &mut Budget,
) -> Decision {
    let slacks = analysis.zeros();
    for k in 0..analysis.len() {
        budget.spend(2 * analysis.cost())?;
        analysis.begin(k, &slacks);
        let most = analysis.most(k);
        if obstacle(analysis, most, releases).is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Why an interference is no solution, in half units.
struct Obstacle {
    /// By how much the sum is beyond what would be none: no solution is where it stays so.
    ahead: u128,
    /// Σ − what is added to m·x to be compared with it.
    sum: u128,
    /// By how much the terms still grow.
    room: u128,
}

/// What keeps the interference x from solving the equation of the task at hand, if anything does:
/// Σ min(B_i, x + c) ≥ m·(x + c), with c = 1 for releases on whole units. For any releases it is
/// Σ min(B_i, x) > m·x; or equality there, and with c = 1/2.
fn obstacle<A: Analysis>(
    analysis: &mut A,
    interference: A::Time,
    releases: Releases,
) -> Option<Obstacle> {
    let m = u128::from(analysis.processors());
    let bound = 2 * m * u128::from(A::to_whole(interference));
    let mut at = |clip: Clip, beyond: u128| {
        let (sum, room) = analysis.survey(interference, clip);
        let ahead = sum.checked_sub(bound + beyond);
        (
            sum == bound,
            ahead.map(|ahead| Obstacle {
                ahead,
                sum: sum - beyond,
                room,
            }),
        )
    };
    if releases == Releases::OnGrid {
        return at(Clip::UnitAbove, 2 * m).1;
    }
    // The sum is whole: more is two halves more.
    match at(Clip::At, 2) {
        (true, _) => at(Clip::HalfAbove, m).1,
        (false, obstacle) => obstacle,
    }
}

/// The interference that every task has at least under slacks that are too large and releases on
/// whole units, or none if a task fails even so: most rejected sets are rejected here. What is
/// found is where the rounds may start from.
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
            let on_grid = Releases::OnGrid;
            let Some(interference) = respond(analysis, k, &slacks, least[k], on_grid, budget)?
            else {
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

/// The rounds as published, each task from an interference that it has at least; the interference
/// of every task, if one round passes them all.
fn rounds<A: Analysis>(
    analysis: &mut A,
    least: &[A::Time],
    releases: Releases,
    budget: &mut Budget,
) -> Result<Option<Vec<A::Time>>, NotApplicable> {
    let n = analysis.len();
    let mut slacks = analysis.zeros();
    let mut found = vec![A::Time::default(); n];
    for _ in 0..ROUNDS {
        let (mut all, mut changed) = (true, false);
        for k in 0..n {
            let Some(interference) = respond(analysis, k, &slacks, least[k], releases, budget)?
            else {
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

/// The least interference that solves the equation of task k, from one that is no larger; none
/// beyond D_k − e_k.
fn respond<A: Analysis>(
    analysis: &mut A,
    k: usize,
    slacks: &[A::Time],
    from: A::Time,
    releases: Releases,
    budget: &mut Budget,
) -> Result<Option<A::Time>, NotApplicable> {
    budget.spend(analysis.cost())?;
    analysis.begin(k, slacks);
    let most = analysis.most(k);
    let mut interference = from;
    loop {
        let next = step(analysis, interference, most, releases, budget)?;
        if next > most {
            return Ok(None);
        }
        if next <= interference {
            return Ok(Some(interference));
        }
        interference = next;
    }
}

/// A step from an interference x that is no larger than the least solution: x itself if it is one,
/// else as far ahead as there is none for certain.
///
/// An [`obstacle`] is that a sum reaches m·x + b for some b. The sum does not fall as x grows, so
/// that no solution is below (sum − b)/m. Where the sum grows nearly as fast as m·x that is a short
/// step. At x + d the sum is at least S(d) = sum + Σ min(d, by how much the term still grows), and
/// there is no solution if S(d) ≥ m·(x + d) + b. S is concave, so that it is above its chord from 0
/// to any d: there is none before the chord has fallen below m·(x + d) + b.
fn step<A: Analysis>(
    analysis: &mut A,
    from: A::Time,
    most: A::Time,
    releases: Releases,
    budget: &mut Budget,
) -> Result<A::Time, NotApplicable> {
    budget.spend(3 * analysis.cost())?;
    let (x, m) = (A::to_whole(from), u128::from(analysis.processors()));
    // All that follows is in half units but x, chords and steps.
    let Some(Obstacle { ahead, sum, room }) = obstacle(analysis, from, releases) else {
        return Ok(from);
    };
    // S is at most the sum and all rooms, so that it has fallen behind at this d; beyond D_k
    // nothing matters.
    let span = u128::from(A::to_whole(most) - x + 1);
    let mut chord = divide(ahead + room, 2 * m).min(span);
    let far = loop {
        let behind = (2 * m * chord).saturating_sub(analysis.growth(chord as u64));
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
    let next = (u128::from(x) + far + 1).max(divide(sum, 2 * m));
    Ok(A::from_whole(u64::try_from(next).unwrap_or(u64::MAX)))
}

/// A quotient, which mostly fits into 64 bits.
fn divide(a: u128, b: u128) -> u128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(a / b),
        _ => a / b,
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
            for sought in [Sought::Least, Sought::Bracket, Sought::OnGrid] {
                let [single, double, wide] =
                    widths.map(|width| decide_in(width, &tasks, m, 1, sought));
                assert_eq!(single, double, "{tasks:?} on {m}");
                // Wide numbers come to the limit earlier.
                if wide.is_ok() {
                    assert_eq!(single, wide, "{tasks:?} on {m}");
                }
                verdicts[usize::from(wide == Ok(Some(true)))] += 1;
            }
            let [single, double, wide] = widths.map(|width| bounds_in(width, &tasks, m));
            assert_eq!(single, double, "{tasks:?} on {m}");
            if wide.is_ok() {
                assert_eq!(single, wide, "{tasks:?} on {m}");
            }
        }
        assert!(verdicts.iter().all(|count| *count > 15), "{verdicts:?}");
    }
}
