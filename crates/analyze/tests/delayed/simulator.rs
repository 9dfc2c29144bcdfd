//! A slow simulator, tick by tick: arrivals, releases, deadlines that count from arrivals, and
//! sections of jobs that nobody preempts.

use testing::random::Random;

/// A task in ticks. Its job runs for `before`, then for `section` without being preempted, then for
/// the rest of `wcet`.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub wcet: u64,
    pub period: u64,
    pub deadline: u64,
    pub jitter: u64,
    pub before: u64,
    pub section: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    Edf,
    /// The order of the set.
    Fixed,
    /// Shorter deadlines first.
    Monotonic,
}

/// How arrivals and releases come.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// All first jobs are released at once after all of their jitter, the others as early and as
    /// densely as they may.
    Dense,
    /// Periodic from random phases or sporadic, with random jitter.
    Random(u64),
    /// The same, and jitter is none or all.
    Extreme(u64),
}

/// Arrivals and releases, in ticks from an origin far enough for all jitter.
fn releases(tasks: &[Task], pattern: Pattern, horizon: u64) -> Vec<Vec<(u64, u64)>> {
    let origin = tasks.iter().map(|t| t.jitter).max().unwrap_or(0);
    let of = |index: usize, t: &Task| {
        let mut random = match pattern {
            Pattern::Dense => Random::new(0),
            Pattern::Random(seed) | Pattern::Extreme(seed) => {
                Random::new(seed.wrapping_mul(977) + index as u64)
            }
        };
        let mut arrival = match pattern {
            Pattern::Dense => origin - t.jitter,
            _ => random.among(0, t.period),
        };
        let sporadic = !matches!(pattern, Pattern::Dense) && random.one_in(2);
        let mut list: Vec<(u64, u64)> = Vec::new();
        while arrival < horizon {
            let late = match pattern {
                Pattern::Dense if list.is_empty() => t.jitter,
                // As early as at the origin.
                Pattern::Dense => origin.saturating_sub(arrival),
                Pattern::Random(_) => random.among(0, t.jitter),
                Pattern::Extreme(_) => t.jitter * random.among(0, 1),
            };
            let before = list.last().map_or(0, |(_, release)| *release);
            list.push((arrival, (arrival + late).max(before)));
            arrival += t.period
                + if sporadic && random.one_in(3) {
                    random.among(0, t.period)
                } else {
                    0
                };
        }
        list
    };
    tasks.iter().enumerate().map(|(i, t)| of(i, t)).collect()
}

/// What came of a simulation.
pub struct Outcome {
    pub missed: bool,
    /// By task, the longest time from arrival to completion.
    pub responses: Vec<u64>,
    /// By task, the longest time for which a released job was among the m most urgent ones and did
    /// not run.
    pub blocked: Vec<u64>,
}

/// The job of a task that is next to run.
#[derive(Clone, Copy, Default)]
struct Current {
    number: usize,
    executed: u64,
    blocked: u64,
}

pub fn simulate(tasks: &[Task], m: usize, rule: Rule, pattern: Pattern) -> Outcome {
    let horizon = 40 * tasks.iter().map(|t| t.period).max().unwrap_or(1);
    let jobs = releases(tasks, pattern, horizon);
    let mut current = vec![Current::default(); tasks.len()];
    let mut outcome = Outcome {
        missed: false,
        responses: vec![0; tasks.len()],
        blocked: vec![0; tasks.len()],
    };
    let key = |task: usize, number: usize| match rule {
        Rule::Edf => (jobs[task][number].0 + tasks[task].deadline, task),
        Rule::Fixed => (0, task),
        Rule::Monotonic => (tasks[task].deadline, task),
    };
    for now in 0..horizon {
        let mut ready: Vec<usize> = (0..tasks.len())
            .filter(|t| {
                jobs[*t]
                    .get(current[*t].number)
                    .is_some_and(|(_, release)| *release <= now)
            })
            .collect();
        ready.sort_by_key(|t| key(*t, current[*t].number));
        let in_section = |t: &usize| {
            let (task, job) = (tasks[*t], current[*t]);
            job.executed > task.before && job.executed < task.before + task.section
        };
        let mut running: Vec<usize> = ready.iter().copied().filter(in_section).collect();
        for task in &ready {
            if running.len() < m && !running.contains(task) {
                running.push(*task);
            }
        }
        for task in ready.iter().take(m).filter(|t| !running.contains(t)) {
            current[*task].blocked += 1;
            outcome.blocked[*task] = outcome.blocked[*task].max(current[*task].blocked);
        }
        for task in running {
            let job = &mut current[task];
            job.executed += 1;
            if job.executed == tasks[task].wcet {
                let (arrival, _) = jobs[task][job.number];
                let response = now + 1 - arrival;
                outcome.responses[task] = outcome.responses[task].max(response);
                outcome.missed |= response > tasks[task].deadline;
                *job = Current {
                    number: job.number + 1,
                    ..Current::default()
                };
            }
        }
    }
    for (task, job) in current.iter().enumerate() {
        let open = jobs[task].get(job.number);
        outcome.missed |=
            open.is_some_and(|(arrival, _)| arrival + tasks[task].deadline <= horizon);
    }
    outcome
}
