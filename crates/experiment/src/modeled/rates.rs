//! Short tasks of 001 that are activated at a rate, with the flooder as a task of low priority in
//! between (001 §5.1): how long an activation takes at most, and how often it takes that.
//!
//! The flooder goes on where it was preempted; each of its lines takes a step beside what it waits.
//! At the paper's rate of 12.5 Hz it uses all of its lines between two activations, so that each of
//! them is the worst case.

use super::lab::{Flooded, Flooder};
use super::short::{Runs, Scene};
use cache::Case;
use model::strategy::Price;
use model::{Duration, Error, Result};
use serde::Serialize;

/// Activations at one rate, in the best case and in the worst; `None`: one is not over when the
/// next one is due.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rated {
    /// Activations a second.
    #[serde(rename = "rate_hz")]
    pub rate: f64,
    /// With the flooder in all colors.
    pub unpartitioned: [Option<Activations>; 2],
    /// With the flooder in those that the task has not.
    pub partitioned: [Option<Activations>; 2],
}

/// What activations take.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Activations {
    /// The longest, by what one takes alone: c_max / c_min (001 §2.1).
    pub most: f64,
    /// Their mean, likewise.
    pub mean: f64,
    /// The share of those that lose at least 0.99 of what is lost after a whole flood; `None` where
    /// that is below a hundredth of what one takes alone.
    pub worst: Option<f64>,
    /// How many there were.
    pub number: u32,
}

/// Activations a second, at least: so many periods as are counted fit into the model's clock.
const LEAST: f64 = 0.001;
/// Activations before those that count, and the fewest that count.
const BEFORE: u32 = 3;
const FEWEST: u32 = 20;
/// The most that count: a flooder may never come around where hardly any time is left to it.
const MOST: u32 = 4000;
/// How often the flooder comes around while activations are counted, where it can.
const ROUNDS: u64 = 3;
/// Lines that were used so many times over are as many as any: time alone passes then.
const ENOUGH: u64 = 2;

/// Runs the task with this many coefficients or points at each rate of the plan. `whole`: what it
/// takes after a whole flood, without a partition and with one.
///
/// # Errors
/// A rate below one in a thousand seconds, or whose period is below a nanosecond.
pub(super) fn run(
    runs: &Runs<'_>,
    size: u32,
    alone: Price,
    whole: [Price; 2],
) -> Result<Vec<Rated>> {
    let rated = |rate: &f64| {
        if !(LEAST..=1e9).contains(rate) {
            return Err(
                Error::new(format!("{rate} activations a second are no rate"))
                    .at("--rates")
                    .remedy(format!(
                        "give rates from {LEAST} to 1000000000, such as 12.5,1000"
                    )),
            );
        }
        let period = Duration::from_nanos((1e9 / rate).round() as u64);
        let of = |flood: Flooded, whole: Price| -> Result<[Option<Activations>; 2]> {
            Ok([
                at(
                    runs,
                    size,
                    flood,
                    period,
                    (Case::Best, alone.optimistic, whole.optimistic),
                )?,
                at(
                    runs,
                    size,
                    flood,
                    period,
                    (Case::Worst, alone.pessimistic, whole.pessimistic),
                )?,
            ])
        };
        Ok(Rated {
            rate: *rate,
            unpartitioned: of(Flooded::Written, whole[0])?,
            partitioned: of(Flooded::Spared, whole[1])?,
        })
    };
    runs.plan.rates.iter().map(rated).collect()
}

/// Activations with this period, by the prices of one case.
fn at(
    runs: &Runs<'_>,
    size: u32,
    flood: Flooded,
    period: Duration,
    (case, alone, whole): (Case, Duration, Duration),
) -> Result<Option<Activations>> {
    let mut scene = runs.scene(size, Some(flood))?;
    let Some(flooder) = scene.flooder.take() else {
        return Ok(None);
    };
    let lines = runs.lab.lines(&flooder);
    let lost_whole = whole.saturating_sub(alone).nanos();
    let mut flooding = Flooding {
        runs,
        flooder,
        lines,
        used: 0,
    };
    let (mut took, mut worst, mut from) = (Vec::new(), 0_u32, 0);
    let mut due = scene.machine.elapsed(case);
    for number in 0..BEFORE + MOST {
        if number == BEFORE {
            from = flooding.used;
        }
        let begin = scene.machine.elapsed(case);
        runs.one(&mut scene, size, number as usize)?;
        let now = scene.machine.elapsed(case);
        due += period;
        if now > due {
            return Ok(None);
        }
        if number >= BEFORE {
            let time = now.saturating_sub(begin);
            let lost = time.saturating_sub(alone).nanos();
            worst += u32::from(lost * 100 >= lost_whole * 99);
            took.push(time.nanos());
        }
        flooding.until(&mut scene, case, due)?;
        let enough = took.len() >= FEWEST as usize;
        if enough && flooding.used - from >= ROUNDS * lines {
            break;
        }
    }
    let ratio = |nanos: f64| nanos / alone.nanos() as f64;
    let number = took.len() as f64;
    Ok(Some(Activations {
        most: ratio(took.iter().copied().max().unwrap_or(0) as f64),
        mean: ratio(took.iter().sum::<u64>() as f64 / number),
        worst: (lost_whole * 100 >= alone.nanos()).then(|| f64::from(worst) / number),
        number: took.len() as u32,
    }))
}

/// The flooder under way.
struct Flooding<'a> {
    runs: &'a Runs<'a>,
    flooder: Flooder,
    lines: u64,
    /// Lines that it has used, one after the other and around.
    used: u64,
}

impl Flooding<'_> {
    /// It runs until then.
    fn until(&mut self, scene: &mut Scene, case: Case, due: Duration) -> Result<()> {
        let first = self.used;
        while scene.machine.elapsed(case) < due && self.used - first < ENOUGH * self.lines {
            scene.machine.compute(self.runs.plan.step, 1);
            let line = self.used % self.lines;
            self.runs
                .lab
                .flood_line(&mut scene.machine, &self.flooder, line)?;
            self.used += 1;
        }
        let left = due.saturating_sub(scene.machine.elapsed(case));
        scene.machine.compute(left, 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::lab::Lab;
    use super::super::short::{self, Plan, Row, Task};
    use super::*;
    use model::Platform;

    fn rows(sizes: &[u32], rates: &[f64]) -> Result<Vec<Row>> {
        let lab = Lab::of(Platform::builtin("pentium-90")?, None)?;
        let plan = Plan {
            task: Task::Filter,
            sizes: sizes.to_vec(),
            step: Duration::from_nanos(150),
            code: 100,
            rates: rates.to_vec(),
        };
        short::run(&lab, &plan)
    }

    /// 001 §5.1: at 12.5 Hz every activation is the worst case.
    #[test]
    fn at_the_lowest_rate_each_activation_follows_a_whole_flood() {
        for row in rows(&[16, 256, 1024], &[12.5]).unwrap() {
            let seen = row.rates[0];
            for case in 0..2 {
                let whole = row.unpredictability;
                for (of, whole) in [
                    (seen.unpartitioned, whole.unpartitioned),
                    (seen.partitioned, whole.partitioned),
                ] {
                    let of = of[case].unwrap();
                    assert!((of.most - whole[case]).abs() < 1e-9, "{of:?} {whole:?}");
                    assert!((of.worst.unwrap() - 1.0).abs() < 1e-9, "{of:?}");
                }
            }
        }
    }

    /// 001 §5.1: higher rates show the same worst cases, less often. By hand: four coefficients
    /// take 0.6 us, so that at 100 kHz the flooder has nearly all of a period for itself, and comes
    /// around in some hundred of them.
    #[test]
    fn at_high_rates_worst_cases_are_rarer() {
        let row = &rows(&[4], &[12.5, 10_000.0, 100_000.0]).unwrap()[0];
        let shares: Vec<f64> = row
            .rates
            .iter()
            .map(|r| r.unpartitioned[0].unwrap().worst.unwrap())
            .collect();
        assert!(shares[0] > shares[1] && shares[1] > shares[2], "{shares:?}");
        for seen in &row.rates {
            let of = seen.unpartitioned[0].unwrap();
            assert!(of.most <= row.unpredictability.unpartitioned[0] + 1e-9);
            assert!(of.mean <= of.most && of.mean >= 1.0);
        }
    }

    /// In a partition the second level keeps the lines of a large filter, which the first misses in
    /// any case: a flood costs next to nothing.
    #[test]
    fn where_a_flood_costs_nothing_no_activation_is_the_worst() {
        let row = &rows(&[2048], &[12.5]).unwrap()[0];
        let [apart, _] = row.rates[0].partitioned.map(Option::unwrap);
        assert!(apart.most < 1.01 && apart.worst.is_none(), "{apart:?}");
        let [all, _] = row.rates[0].unpartitioned.map(Option::unwrap);
        assert_eq!(all.worst, Some(1.0));
    }

    /// 1024 coefficients take 153.6 us.
    #[test]
    fn a_task_that_is_not_over_when_it_is_due_again_has_no_figures() {
        let row = &rows(&[1024], &[10_000.0, 1000.0]).unwrap()[0];
        assert_eq!(row.rates[0].unpartitioned, [None, None]);
        assert!(row.rates[1].unpartitioned.iter().all(Option::is_some));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for rate in [0.0, -1.0, 1e-4, f64::NAN, 2e9] {
            let e = rows(&[4], &[rate]).unwrap_err().to_string();
            assert!(e.contains("--rates"), "{e}");
        }
    }
}
