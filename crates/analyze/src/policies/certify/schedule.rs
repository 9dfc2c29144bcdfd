//! Schedules of given releases, event by event: the first miss, and what leads to it.
//!
//! The m most urgent of the pending jobs run; jobs of one task run in their order. Equal urgency
//! goes by the earlier release, then by the order of the tasks, as the policies do. Every job
//! executes for its WCET.

/// The most jobs of a witness of which each is tried to be left out.
const MOST_SHORTENED: usize = 100;
/// The most jobs of a schedule.
const MOST_JOBS: u64 = 20_000;

/// A task in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Task {
    pub wcet: u64,
    pub period: u64,
    pub deadline: u64,
}

/// Tasks that share processors.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub tasks: Vec<Task>,
    /// By task its rank, 0 the most urgent; `None`: earliest deadline first.
    pub ranks: Option<Vec<usize>>,
    /// How many processors.
    pub m: usize,
}

/// A part of a schedule in which no job is released or complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub until: u64,
    /// Which tasks run, ascending.
    pub runs: Vec<usize>,
}

/// Releases that lead to a miss. The schedule begins at 0 and ends at the missed deadline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Miss {
    /// By task.
    pub releases: Vec<Vec<u64>>,
    pub schedule: Vec<Piece>,
    /// The task whose job is not complete.
    pub task: usize,
    /// When that job was released.
    pub released: u64,
}

/// How urgent a pending job is (the smaller, the more), when it was released, and its task.
type Pending = (u64, u64, usize);

impl Model {
    /// What a task's job has to go by, with the smaller value first.
    fn urgency(&self, task: usize, release: u64) -> u64 {
        match &self.ranks {
            Some(ranks) => ranks[task] as u64,
            None => release + self.tasks[task].deadline,
        }
    }

    /// Of each task its first job that is not complete, if it has been released; the most urgent
    /// first.
    fn pending(&self, releases: &[Vec<u64>], done: &[usize], now: u64) -> Vec<Pending> {
        let first = |task: usize| {
            let release = *releases[task].get(done[task])?;
            (release <= now).then(|| (self.urgency(task, release), release, task))
        };
        let mut all: Vec<Pending> = (0..self.tasks.len()).filter_map(first).collect();
        all.sort_unstable();
        all
    }

    /// The first miss if jobs are released at these times; `None`: there is none.
    pub fn first_miss(&self, releases: &[Vec<u64>]) -> Option<Miss> {
        let mut done = vec![0; self.tasks.len()];
        let mut left: Vec<u64> = self.tasks.iter().map(|t| t.wcet).collect();
        let mut schedule = Vec::new();
        let mut now = 0;
        loop {
            let pending = self.pending(releases, &done, now);
            let mut runs: Vec<usize> = pending.iter().map(|p| p.2).take(self.m).collect();
            runs.sort_unstable();
            let later = |times: &Vec<u64>| times.get(times.partition_point(|r| *r <= now)).copied();
            let released = releases.iter().filter_map(later);
            let complete = runs.iter().map(|k| now + left[*k]);
            let next = released.chain(complete).min();
            // A deadline before the next event, at which the job is not complete.
            let due = |(_, release, task): &Pending| (release + self.tasks[*task].deadline, *task);
            let is_late = |(by, task): &(u64, usize)| {
                *by <= now
                    || next.is_some_and(|next| *by < next)
                        && (!runs.contains(task) || now + left[*task] > *by)
            };
            if let Some((by, task)) = pending.iter().map(due).filter(is_late).min() {
                if by > now {
                    schedule.push(Piece { until: by, runs });
                }
                return Some(Miss {
                    released: by - self.tasks[task].deadline,
                    releases: before(releases, by),
                    schedule,
                    task,
                });
            }
            let next = next?;
            for task in &runs {
                left[*task] -= next - now;
                if left[*task] == 0 {
                    done[*task] += 1;
                    left[*task] = self.tasks[*task].wcet;
                }
            }
            schedule.push(Piece { until: next, runs });
            now = next;
        }
    }

    /// A miss if every task releases at 0 and then once a period, some `jobs` in all.
    pub fn synchronous_miss(&self, jobs: u64) -> Option<Miss> {
        let per_tick: f64 = self.tasks.iter().map(|t| 1.0 / t.period as f64).sum();
        self.synchronous_miss_by((jobs as f64 / per_tick) as u64)
    }

    /// The same, with all jobs that are released by `horizon`. `None` also: these are too many.
    pub fn synchronous_miss_by(&self, horizon: u64) -> Option<Miss> {
        let jobs = self.tasks.iter().map(|t| horizon / t.period + 1);
        if jobs.fold(0_u64, u64::saturating_add) > MOST_JOBS {
            return None;
        }
        let times = |t: &Task| (0..=horizon / t.period).map(|q| q * t.period).collect();
        let releases: Vec<Vec<u64>> = self.tasks.iter().map(times).collect();
        self.first_miss(&releases)
    }

    /// The same miss or another one, from fewer releases: from where no job is pending, and without
    /// jobs that do not matter.
    pub fn shortened(&self, miss: Miss) -> Miss {
        let idle = miss.schedule.iter().filter(|piece| piece.runs.is_empty());
        let start = idle.map(|piece| piece.until).max().unwrap_or(0);
        let later = |times: &Vec<u64>| {
            let later = times.iter().filter(|time| **time >= start);
            later.map(|time| time - start).collect()
        };
        let releases: Vec<Vec<u64>> = miss.releases.iter().map(later).collect();
        let mut best = self.first_miss(&releases).unwrap_or(miss);
        if best.releases.iter().map(Vec::len).sum::<usize>() > MOST_SHORTENED {
            return best;
        }
        for task in 0..self.tasks.len() {
            let mut at = best.releases[task].len();
            while at > 0 {
                at = (at - 1).min(best.releases[task].len());
                let mut fewer = best.releases.clone();
                if at < fewer[task].len() {
                    fewer[task].remove(at);
                    best = self.first_miss(&fewer).unwrap_or(best);
                }
            }
        }
        best
    }
}

/// The releases before a time.
fn before(releases: &[Vec<u64>], end: u64) -> Vec<Vec<u64>> {
    let earlier = |times: &Vec<u64>| times.iter().copied().filter(|time| *time < end).collect();
    releases.iter().map(earlier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(m: usize, tasks: &[(u64, u64)], ranks: Option<Vec<usize>>) -> Model {
        let task = |&(wcet, period): &(u64, u64)| Task {
            wcet,
            period,
            deadline: period,
        };
        let tasks = tasks.iter().map(task).collect();
        Model { tasks, ranks, m }
    }

    /// Dhall, Liu 1978: m short jobs with earlier deadlines hold up a long one.
    #[test]
    fn the_effect_of_dhall_is_found_from_a_synchronous_release() {
        let set = model(2, &[(2, 10), (2, 10), (10, 11)], None);
        let miss = set.synchronous_miss(100).expect("it misses");
        assert_eq!((miss.task, miss.released), (2, 0));
        let piece = |until, runs: &[usize]| Piece {
            until,
            runs: runs.to_vec(),
        };
        assert_eq!(miss.releases, [vec![0, 10], vec![0, 10], vec![0]]);
        assert_eq!(
            miss.schedule,
            [piece(2, &[0, 1]), piece(10, &[2]), piece(11, &[0, 2])]
        );
        let short = set.shortened(miss);
        assert_eq!(short.releases, [vec![0], vec![0], vec![0]]);
        assert_eq!(
            short.schedule,
            [piece(2, &[0, 1]), piece(11, &[2])],
            "the second jobs do not matter"
        );
    }

    #[test]
    fn what_came_before_an_idle_time_is_left_out() {
        let set = model(1, &[(2, 10), (9, 10)], Some(vec![0, 1]));
        let miss = set.first_miss(&[vec![0, 30], vec![30]]).expect("it misses");
        assert_eq!((miss.task, miss.released), (1, 30));
        let short = set.shortened(miss);
        assert_eq!(short.releases, [vec![0], vec![0]]);
        assert_eq!(set.first_miss(&[vec![0], vec![2]]), None);
    }

    #[test]
    fn a_job_that_completes_at_its_deadline_is_in_time() {
        let set = model(1, &[(5, 10), (5, 10)], None);
        assert_eq!(set.synchronous_miss(100), None);
        let set = model(1, &[(5, 10), (6, 10)], None);
        assert_eq!(set.synchronous_miss(100).map(|m| m.task), Some(1));
    }
}
