//! The hard tests for global EDF. `None` where a test does not apply.

use super::{Q, Task, is_constrained, is_feasible, total, whole};

/// The answer of a test by its name.
pub fn decide(name: &str, tasks: &[Task], m: i128) -> Option<bool> {
    let applies = match name {
        "LOAD" => true,
        "FFDBF" => is_constrained(tasks) && m >= 2,
        "BAR" => {
            is_constrained(tasks) && (total(tasks, Task::u) != whole(m) || !is_feasible(tasks))
        }
        _ => is_constrained(tasks),
    };
    if !applies {
        return None;
    }
    if !is_feasible(tasks) || total(tasks, Task::u) > whole(m) {
        return Some(false);
    }
    Some(match name {
        "GFB" => gfb(tasks, m),
        "BAK" => (0..tasks.len()).all(|k| bak(tasks, m, k)),
        "BCL" => (0..tasks.len()).all(|k| bcl(tasks, m, k)),
        "BCLI" => bcli(tasks, m, false),
        "BCLI on a grid" => bcli(tasks, m, true),
        "BAR" => bar(tasks, m),
        "LOAD" => load(tasks, m),
        "FFDBF" => ffdbf(tasks, m),
        "RTA" => rta(tasks, m, false),
        "RTA on a grid" => rta(tasks, m, true),
        _ => unreachable!("{name}"),
    })
}

fn max_density(tasks: &[Task]) -> Q {
    tasks.iter().map(Task::density).max().unwrap()
}

fn gfb(tasks: &[Task], m: i128) -> bool {
    total(tasks, Task::density) <= whole(m) - whole(m - 1) * max_density(tasks)
}

fn bak(tasks: &[Task], m: i128, k: usize) -> bool {
    let k = tasks[k];
    let lambda = Q::new(k.e, k.d);
    let beta = |i: &Task| {
        let carried = i.u() * (whole(1) + Q::new(i.p - i.d, k.d));
        let more = (whole(i.e) - lambda * whole(i.p)) / whole(k.d);
        (if i.u() <= lambda {
            carried
        } else {
            carried + more
        })
        .min(whole(1))
    };
    total(tasks, beta) <= whole(m) * (whole(1) - lambda) + lambda
}

fn bcl(tasks: &[Task], m: i128, k: usize) -> bool {
    let tk = tasks[k];
    let left = whole(1) - Q::new(tk.e, tk.d);
    let beta = |i: &Task| {
        let jobs = if i.d > tk.d {
            0
        } else {
            (tk.d - i.d) / i.p + 1
        };
        Q::new(jobs * i.e + i.e.min((tk.d - jobs * i.p).max(0)), tk.d)
    };
    let others = || {
        tasks
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != k)
            .map(|(_, t)| beta(t))
    };
    let sum: Q = others().map(|b| b.min(left)).sum();
    let bound = whole(m) * left;
    sum < bound || (sum == bound && others().any(|b| whole(0) < b && b <= left))
}

/// Releases on whole units if `grid`, else anywhere; slacks in whole units.
fn bcli(tasks: &[Task], m: i128, grid: bool) -> bool {
    let mut slack = vec![0; tasks.len()];
    loop {
        let (mut all, mut changed) = (true, false);
        for k in 0..tasks.len() {
            let tk = tasks[k];
            let (room, work) = (tk.d - tk.e, |i: usize| {
                let t = tasks[i];
                let jobs = tk.d / t.p;
                jobs * t.e + t.e.min((tk.d - slack[i] - jobs * t.p).max(0))
            });
            let others = || (0..tasks.len()).filter(|i| *i != k).map(work);
            let new = if grid {
                room - others().map(|w| w.min(room + 1)).sum::<i128>() / m
            } else if is_short(others(), room, m) {
                let share = Q::new(others().map(|w| w.min(room)).sum(), m);
                (whole(room) - share).floor().to_integer()
            } else {
                -1
            };
            all &= new >= 0;
            if new > slack[k] {
                slack[k] = new;
                changed = true;
            }
        }
        if all || !changed {
            return all;
        }
    }
}

/// Is Σ min(work, y) below m·y for every y just above `x`?
fn is_short(work: impl Iterator<Item = i128> + Clone, x: i128, m: i128) -> bool {
    let sum: i128 = work.clone().map(|w| w.min(x)).sum();
    sum < m * x || (sum == m * x && (work.filter(|w| *w > x).count() as i128) < m)
}

/// Looks at every whole A, not only at those where the demand steps.
fn bar(tasks: &[Task], m: i128) -> bool {
    let mut wcets: Vec<i128> = tasks.iter().map(|t| t.e).collect();
    wcets.sort_by(|a, b| b.cmp(a));
    let carried: i128 = wcets.iter().take(m as usize - 1).sum();
    let early = total(tasks, |t| t.u() * whole(t.p - t.d));
    let spare = whole(m) - total(tasks, Task::u);
    (0..tasks.len()).all(|k| {
        let last = (whole(carried + m * tasks[k].e) + early) / spare - whole(tasks[k].d);
        (0..=last.floor().to_integer().max(-1)).all(|a| bar_at(tasks, m, k, a))
    })
}

fn bar_at(tasks: &[Task], m: i128, k: usize, a: i128) -> bool {
    let window = a + tasks[k].d;
    let room = window - tasks[k].e;
    let mut sum = 0;
    let mut differences = Vec::new();
    for (i, t) in tasks.iter().enumerate() {
        let with = (window / t.p) * t.e + t.e.min(window % t.p);
        let (one, two) = if i == k {
            ((t.dbf(window) - t.e).min(a), (with - t.e).min(a))
        } else {
            (t.dbf(window).min(room + 1), with.min(room + 1))
        };
        sum += one;
        differences.push(two - one);
    }
    differences.sort_by(|a, b| b.cmp(a));
    sum + differences.iter().take(m as usize - 1).sum::<i128>() <= m * room
}

fn load(tasks: &[Task], m: i128) -> bool {
    let max = max_density(tasks);
    let mu = whole(m) - whole(m - 1) * max;
    let ceil = mu.ceil();
    let one = mu - (ceil - whole(1)) * max;
    let two = (ceil - whole(1)) - (ceil - whole(2)) * max;
    approximate_load(tasks) <= one.max(two)
}

fn approximate_load(tasks: &[Task]) -> Q {
    let u = total(tasks, Task::u);
    if total(tasks, Task::density) <= u {
        return u;
    }
    let epsilon = Q::new(1, 10);
    let steps = |t: &Task| {
        let k = t.u() * whole(tasks.len() as i128) / epsilon - Q::new(t.d, t.p);
        k.ceil().to_integer().max(0)
    };
    let mut load = u + epsilon;
    for i in tasks {
        for j in 0..=steps(i) {
            let at = i.d + j * i.p;
            let demand = total(tasks, |t| {
                if at < t.d + steps(t) * t.p {
                    whole(t.dbf(at))
                } else {
                    whole(t.e) + t.u() * whole(at - t.d)
                }
            });
            load = load.max(demand / whole(at));
        }
    }
    load
}

fn ffdbf(tasks: &[Task], m: i128) -> bool {
    let epsilon = Q::new(1, 10);
    let spare = (whole(m) - total(tasks, Task::u)) / whole(m - 1) - epsilon;
    let bound = spare.min(whole(1));
    let max = max_density(tasks);
    let steps = (1..=50).map(|s| Q::new(s, 50)).filter(|s| *s > max);
    std::iter::once(max)
        .chain(steps)
        .filter(|sigma| *sigma <= bound)
        .any(|sigma| ffdbf_fits(tasks, m, sigma, epsilon))
}

/// At every corner of the demand, also where it begins to rise, up to Σe/ε.
fn ffdbf_fits(tasks: &[Task], m: i128, sigma: Q, epsilon: Q) -> bool {
    let last = total(tasks, |t| whole(t.e)) / epsilon;
    tasks.iter().all(|i| {
        let mut base = whole(i.d);
        let mut fits = true;
        while fits && base - whole(i.e) / sigma <= last {
            for at in [base - whole(i.e) / sigma, base] {
                let demand = total(tasks, |t| forced_forward(t, at, sigma));
                fits &= at <= whole(0) || demand <= (whole(m) - whole(m - 1) * sigma) * at;
            }
            base += whole(i.p);
        }
        fits
    })
}

fn forced_forward(t: &Task, at: Q, sigma: Q) -> Q {
    if at < whole(0) {
        return whole(0);
    }
    let jobs = (at / whole(t.p)).floor();
    let rest = at - jobs * whole(t.p);
    let (deadline, wcet) = (whole(t.d), whole(t.e));
    let more = if rest >= deadline {
        wcet
    } else if rest >= deadline - wcet / sigma {
        wcet - (deadline - rest) * sigma
    } else {
        whole(0)
    };
    jobs * wcet + more
}

fn rta(tasks: &[Task], m: i128, grid: bool) -> bool {
    let mut slack = vec![0; tasks.len()];
    for _ in 0..25 {
        let (mut all, mut changed) = (true, false);
        for k in 0..tasks.len() {
            match response(tasks, m, k, &slack, grid) {
                Some(r) => {
                    let new = tasks[k].d - r;
                    changed |= new != slack[k];
                    slack[k] = new;
                }
                None => all = false,
            }
        }
        if all || !changed {
            return all;
        }
    }
    false
}

/// The least R by trying every one that is not below what the one before asks for.
fn response(tasks: &[Task], m: i128, k: usize, slack: &[i128], grid: bool) -> Option<i128> {
    let tk = tasks[k];
    let mut r = tk.e;
    while r <= tk.d {
        let work = |i: usize| {
            let t = tasks[i];
            let by_deadline = (tk.d / t.p) * t.e + t.e.min((tk.d % t.p - slack[i]).max(0));
            let window = r + t.d - t.e - slack[i];
            let any = (window / t.p) * t.e + t.e.min(window % t.p);
            by_deadline.min(any)
        };
        let others = (0..tasks.len()).filter(|i| *i != k).map(work);
        let x = r - tk.e;
        let sum: i128 = others.clone().map(|w| w.min(x + i128::from(grid))).sum();
        let is_bound = if grid {
            x == sum / m
        } else {
            is_short(others, x, m)
        };
        if is_bound {
            return Some(r);
        }
        // The work does not fall as R grows.
        r = (r + 1).max(tk.e + sum / m);
    }
    None
}
