//! The tardiness bounds for global EDF.

use super::{Q, Task, total, whole};

/// Tardiness bounds of Devi and Anderson: x + e, as they are before rounding up.
pub fn devi_anderson(tasks: &[Task], m: i128) -> Vec<Q> {
    if m == 1 {
        return vec![whole(0); tasks.len()];
    }
    let lambda = (total(tasks, Task::u).ceil().to_integer() - 1).max(0) as usize;
    let mut wcets: Vec<i128> = tasks.iter().map(|t| t.e).collect();
    wcets.sort_by(|a, b| b.cmp(a));
    let mut shares: Vec<Q> = tasks.iter().map(Task::u).collect();
    shares.sort_by(|a, b| b.cmp(a));
    let cost = wcets.iter().take(lambda).sum::<i128>() - wcets.last().unwrap();
    let heavy: Q = shares.iter().take(lambda.saturating_sub(1)).sum();
    let x = whole(cost.max(0)) / (whole(m) - heavy);
    tasks.iter().map(|t| x + whole(t.e)).collect()
}

/// Response bounds of compliant vectors: s is the largest that any choice of ⌈U⌉ − 1 tasks gives.
pub fn compliant_vector(tasks: &[Task], m: i128) -> Vec<Q> {
    let shortest = tasks.iter().map(|t| t.d).min().unwrap();
    let chosen = (total(tasks, Task::u).ceil().to_integer() - 1).max(0) as u32;
    let carried = |t: &Task| whole(t.e) * (whole(1) - Q::new(t.d - shortest, t.p)).max(whole(0));
    let all: Q = tasks.iter().map(carried).sum();
    let mut s = whole(0);
    for choice in 0_u32..1 << tasks.len() {
        if choice.count_ones() != chosen {
            continue;
        }
        let (mut height, mut slope) = (all, whole(m));
        for (i, t) in tasks.iter().enumerate() {
            if choice >> i & 1 == 1 {
                height += whole(t.e) - whole(t.e) * t.u() / whole(m) - carried(t);
                slope -= t.u();
            }
        }
        s = s.max(height / slope);
    }
    tasks
        .iter()
        .map(|t| whole(t.d - shortest) + s - Q::new(t.e, m) + whole(t.e))
        .collect()
}
