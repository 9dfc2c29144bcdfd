//! How long `advise` takes by the size of sets, and whether it finds a plan for each set that a
//! policy of `check` holds: `cargo run --release -p warmset-advise --example sizes -- 200`.
//!
//! Sets of 10 tasks on 2 processors, 40 on 8, 100 on 24, with utilizations from 0.75 to 1 of the
//! processors, every second deadline shorter than its period, and no costs.

use advise::{Asked, Ended, Options, Pace, advise};
use analyze::Guarantee;
use analyze::policies::{Costs, decide, suggested};
use model::watch::Silent;
use model::{Duration, Platform, Result, TaskSet, Timing};
use std::time::{Duration as Time, Instant};
use testing::random::Random;

/// Tasks, processors, and the time that a search is given.
const SIZES: [(usize, u32, u64); 3] = [(10, 2, 2), (40, 8, 10), (100, 24, 60)];

fn main() -> Result<()> {
    let sets = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let only = std::env::args().nth(2);
    let sets: u64 = sets.unwrap_or(20);
    println!("tasks  processors  check  more  none  lost  budget ended  median s  largest s");
    for (tasks, processors, budget) in SIZES {
        if only.as_ref().is_none_or(|only| *only == tasks.to_string()) {
            size(sets, tasks, processors, Time::from_secs(budget))?;
        }
    }
    Ok(())
}

fn size(sets: u64, tasks: usize, processors: u32, budget: Time) -> Result<()> {
    let platform = Platform::symmetric(processors);
    let policies = suggested(&platform, Guarantee::Hard)?;
    let (mut held, mut more, mut none, mut lost, mut ended) = (0, 0, 0, 0, 0);
    let mut times = Vec::new();
    for number in 0..sets {
        let share = 0.75 + 0.25 * number as f64 / sets as f64;
        let set = draw(
            &mut Random::new(number),
            tasks,
            share * f64::from(processors),
        )?;
        let mut by_check = false;
        for policy in &policies {
            let says = decide(&set, &platform, policy, Guarantee::Hard, &Costs::NONE)?;
            by_check |= says == Some(true);
        }
        let asked = Asked {
            set: &set,
            platform: &platform,
            guarantee: Guarantee::Hard,
            costs: Costs::NONE,
        };
        let begun = Instant::now();
        let over = || begun.elapsed() >= budget;
        let advice = advise(&asked, &Options::default(), &Pace::new(&Silent, &over))?;
        times.push(begun.elapsed().as_secs_f64());
        ended += u64::from(advice.ended != Ended::Complete);
        match (by_check, advice.recommendation.is_some()) {
            (true, true) => held += 1,
            (true, false) => lost += 1,
            (false, true) => more += 1,
            (false, false) => none += 1,
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let largest = times[times.len() - 1];
    println!(
        "{tasks:5}  {processors:10}  {held:5}  {more:4}  {none:4}  {lost:4}  {ended:12}  \
         {median:8.2}  {largest:9.2}"
    );
    Ok(())
}

fn draw(random: &mut Random, count: usize, load: f64) -> Result<TaskSet> {
    const PERIODS: [u64; 8] = [5, 8, 10, 16, 20, 25, 40, 50];
    let weights: Vec<f64> = (0..count).map(|_| random.among(1, 100) as f64).collect();
    let all: f64 = weights.iter().sum();
    let task = |weight: &f64| {
        let period = PERIODS[random.below(8) as usize] * 1_000_000;
        let share = (weight / all * load).min(0.98);
        let wcet = ((period as f64 * share) as u64).max(10_000);
        let deadline = match random.one_in(2) {
            true => random.among(wcet.max(period / 2), period),
            false => period,
        };
        Timing {
            wcet: Duration::from_nanos(wcet),
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
        }
    };
    TaskSet::from_timings(weights.iter().map(task).collect())
}
