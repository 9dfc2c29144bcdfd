//! The tests for global fixed priorities.

use super::{Q, Task, is_constrained, is_feasible, total, whole};

/// Response bounds by trying every response time and every choice of tasks that carry work in; `None` if the test does not
/// apply, `Some(None)` if it rejects. The tasks are in the order of priority.
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
        let response =
            (task.e..=task.d).find(|r| *r == task.e + interference(*r, task, &tasks[..k], &found, m) / m);
        match response {
            Some(r) => found.push(r),
            None => return Some(None),
        }
    }
    Some(Some(found))
}

fn interference(x: i128, task: &Task, higher: &[Task], responses: &[i128], m: i128) -> i128 {
    let most = x - task.e + 1;
    let mut worst = 0;
    for carrying in 0_u32..1 << higher.len() {
        if i128::from(carrying.count_ones()) > m - 1 {
            continue;
        }
        let sum: i128 = (0..higher.len())
            .map(|i| {
                let (t, r) = (&higher[i], responses[i]);
                let work = if carrying >> i & 1 == 0 {
                    (x / t.p) * t.e + t.e.min(x % t.p)
                } else {
                    let y = (x - t.e).max(0);
                    (y / t.p) * t.e + t.e + (y % t.p - (t.p - r)).clamp(0, t.e - 1)
                };
                work.min(most)
            })
            .sum();
        worst = worst.max(sum);
    }
    worst
}

/// The density bound for deadline-monotonic priorities on at least two processors.
pub fn density(tasks: &[Task], m: i128) -> Option<bool> {
    if !is_constrained(tasks) || m < 2 {
        return None;
    }
    // A WCET above its deadline: the density is above 1.
    let max = tasks.iter().map(|t| Q::new(t.e, t.d)).max().unwrap_or(whole(0));
    let sum = total(tasks, |t| Q::new(t.e, t.d));
    Some(sum <= Q::new(m, 2) * (whole(1) - max) + max)
}
