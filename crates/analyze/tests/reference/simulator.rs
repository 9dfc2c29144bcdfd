//! Global EDF, synchronous and periodic, one time unit after the other.

use super::Task;

/// The largest response time of every task among the jobs released before `horizon`, tardy jobs delaying their successors.
///
/// Equal deadlines are broken by the earlier release, then the lower index.
pub fn g_edf(tasks: &[Task], m: usize, horizon: i128) -> Vec<i128> {
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
        pending.sort_by_key(|j| (j.release + tasks[j.task].d, j.release, j.task));
        let mut running = vec![false; tasks.len()];
        for job in &mut pending {
            // A task runs one job at a time, the oldest first; its deadlines are in the order of its releases.
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
