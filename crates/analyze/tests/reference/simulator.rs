//! Global EDF and global fixed priorities, synchronous and periodic, one time unit after the other.

use super::Task;

/// The largest response time of every task under global EDF among the jobs released before
/// `horizon`, tardy jobs delaying their successors.
///
/// Equal deadlines are broken by the earlier release, then the lower index.
pub fn g_edf(tasks: &[Task], m: usize, horizon: i128) -> Vec<i128> {
    simulate(tasks, m, horizon, |task, release| {
        (release + tasks[task].d, release, task)
    })
}

/// The same under global fixed priorities, the first task highest.
pub fn g_fp(tasks: &[Task], m: usize, horizon: i128) -> Vec<i128> {
    simulate(tasks, m, horizon, |task, release| (task, release))
}

/// The jobs with the smallest ranks (of task and release) run.
fn simulate<R: Ord>(
    tasks: &[Task],
    m: usize,
    horizon: i128,
    rank: impl Fn(usize, i128) -> R,
) -> Vec<i128> {
    struct Job {
        task: usize,
        release: i128,
        left: i128,
    }
    let mut pending: Vec<Job> = Vec::new();
    let mut worst = vec![0; tasks.len()];
    let mut now = 0;
    loop {
        if now < horizon {
            for (task, t) in tasks.iter().enumerate() {
                if now % t.p == 0 {
                    pending.push(Job {
                        task,
                        release: now,
                        left: t.e,
                    });
                }
            }
        } else if pending.is_empty() {
            return worst;
        }
        pending.sort_by_key(|j| rank(j.task, j.release));
        let mut running = vec![false; tasks.len()];
        for job in &mut pending {
            // A task runs one job at a time, the oldest first; its ranks are in the order of its
            // releases.
            if running.iter().filter(|r| **r).count() < m && !running[job.task] {
                running[job.task] = true;
                job.left -= 1;
                if job.left == 0 {
                    worst[job.task] = worst[job.task].max(now + 1 - job.release);
                }
            }
        }
        pending.retain(|j| j.left > 0);
        now += 1;
    }
}

/// Does any job miss its deadline?
pub fn misses(tasks: &[Task], worst: &[i128]) -> bool {
    tasks.iter().zip(worst).any(|(t, r)| *r > t.d)
}
