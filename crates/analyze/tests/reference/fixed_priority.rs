//! The tests for global fixed priorities.

use super::{Q, Task, is_constrained, is_feasible, total, whole};

/// Response bounds in whole units, for releases at any time, by trying every response time and
/// every choice of tasks that carry work in; `None` if the test does not apply, `Some(None)` if it
/// rejects. The tasks are in the order of priority.
#[allow(clippy::option_option)]
pub fn response_bounds(tasks: &[Task], m: i128) -> Option<Option<Vec<i128>>> {
    if !is_constrained(tasks) {
        return None;
    }
    if !is_feasible(tasks) {
        return Some(None);
    }
    let mut found: Vec<i128> = Vec::new();
    for (k, task) in tasks.iter().enumerate() {
        let response = (task.e..=task.d).find(|r| is_bound(*r, task, &tasks[..k], &found, m));
        match response {
            Some(r) => found.push(r),
            None => return Some(None),
        }
    }
    Some(Some(found))
}

/// Is Σ min(work, y) below m·y for every y just above x = R − e, whoever carries work in?
fn is_bound(r: i128, task: &Task, higher: &[Task], responses: &[i128], m: i128) -> bool {
    let x = r - task.e;
    (0_u32..1 << higher.len()).all(|carrying| {
        let work = |i: usize| {
            let (t, response) = (&higher[i], responses[i]);
            if carrying >> i & 1 == 0 {
                (r / t.p) * t.e + t.e.min(r % t.p)
            } else {
                // e_i at the end of the first period, then periods that begin with e_i.
                let rest = (r - t.e - (t.p - response)).max(0);
                t.e + (rest / t.p) * t.e + t.e.min(rest % t.p)
            }
        };
        let sum: i128 = (0..higher.len()).map(|i| work(i).min(x)).sum();
        let clipped = (0..higher.len()).filter(|i| work(*i) > x).count() as i128;
        i128::from(carrying.count_ones()) > m - 1 || sum < m * x || (sum == m * x && clipped < m)
    })
}

/// The density bound for deadline-monotonic priorities on at least two processors.
pub fn density(tasks: &[Task], m: i128) -> Option<bool> {
    if !is_constrained(tasks) || m < 2 {
        return None;
    }
    // A WCET above its deadline: the density is above 1.
    let max = tasks
        .iter()
        .map(|t| Q::new(t.e, t.d))
        .max()
        .unwrap_or(whole(0));
    let sum = total(tasks, |t| Q::new(t.e, t.d));
    Some(sum <= Q::new(m, 2) * (whole(1) - max) + max)
}
