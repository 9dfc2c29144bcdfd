//! The semi-partitioned algorithms, from their definitions (002 §4.1 to §4.3). Times are
//! nanoseconds.

use super::{Q, Task, total, whole};

/// The processors of a task under EDF-fm: one, or two with the time a period that the first one
/// takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Fixed(usize),
    Migratory(usize, i128),
}

/// In the order of the set; where that fails, from the largest to the smallest, the smallest split.
pub fn edf_fm(tasks: &[Task], m: usize) -> Option<Vec<Place>> {
    edf_fm_in_order(tasks, m).or_else(|| edf_fm_smallest_split(tasks, m))
}

/// On each processor whatever fits, the largest first; of what is then left the smallest is split.
fn edf_fm_smallest_split(tasks: &[Task], m: usize) -> Option<Vec<Place>> {
    if tasks.iter().any(|t| t.e > t.p) {
        return None;
    }
    let mut places: Vec<Option<Place>> = vec![None; tasks.len()];
    let mut load = whole(0);
    let mut before = whole(0);
    for cpu in 0..m {
        loop {
            let fitting = (0..tasks.len())
                .filter(|i| places[*i].is_none() && load + tasks[*i].u() <= whole(1));
            // Of equal ones the first.
            let Some(next) =
                fitting.max_by(|a, b| tasks[*a].u().cmp(&tasks[*b].u()).then(b.cmp(a)))
            else {
                break;
            };
            load += tasks[next].u();
            places[next] = Some(Place::Fixed(cpu));
        }
        let left = (0..tasks.len()).filter(|i| places[*i].is_none());
        // Of equal ones the last.
        let Some(last) = left.min_by(|a, b| tasks[*a].u().cmp(&tasks[*b].u()).then(b.cmp(a)))
        else {
            break;
        };
        let t = &tasks[last];
        let time = ((whole(1) - load) * whole(t.p)).floor().to_integer();
        if time == 0 {
            (load, before) = (whole(0), whole(0));
            continue;
        }
        if cpu + 1 == m || before + t.u() > whole(1) {
            return None;
        }
        places[last] = Some(Place::Migratory(cpu, time));
        (load, before) = (Q::new(t.e - time, t.p), t.u());
    }
    places.into_iter().collect()
}

/// Sequential next fit that fills every processor, shares in whole nanoseconds a period.
fn edf_fm_in_order(tasks: &[Task], m: usize) -> Option<Vec<Place>> {
    let (mut places, mut cpu, mut load) = (Vec::new(), 0, whole(0));
    // The task that came over from the processor before.
    let mut before = whole(0);
    for t in tasks {
        loop {
            if cpu == m || t.e > t.p {
                return None;
            }
            if load + t.u() <= whole(1) {
                load += t.u();
                places.push(Place::Fixed(cpu));
                break;
            }
            let time = ((whole(1) - load) * whole(t.p)).floor().to_integer();
            cpu += 1;
            if time == 0 {
                (load, before) = (whole(0), whole(0));
                continue;
            }
            if cpu == m || before + t.u() > whole(1) {
                return None;
            }
            places.push(Place::Migratory(cpu - 1, time));
            (load, before) = (Q::new(t.e - time, t.p), t.u());
            break;
        }
    }
    Some(places)
}

/// (Σ e (f + 1) − p (1 − S − V)) / (1 − S) for fixed tasks, 0 for others.
pub fn edf_fm_tardiness(tasks: &[Task], places: &[Place]) -> Vec<Q> {
    let shares_on = |cpu: usize| {
        tasks
            .iter()
            .zip(places)
            .filter_map(move |(t, place)| match place {
                Place::Migratory(first, time) if *first == cpu => Some((t, *time)),
                Place::Migratory(first, time) if first + 1 == cpu => Some((t, t.e - time)),
                _ => None,
            })
    };
    let bound = |(t, place): (&Task, &Place)| {
        let Place::Fixed(cpu) = place else {
            return whole(0);
        };
        let share: Q = shares_on(*cpu).map(|(t, time)| Q::new(time, t.p)).sum();
        let burst: Q = shares_on(*cpu)
            .map(|(t, time)| whole(t.e) * (Q::new(time, t.e) + whole(1)))
            .sum();
        if burst == whole(0) {
            return whole(0);
        }
        let fixed: Q = tasks
            .iter()
            .zip(places)
            .filter(|(_, p)| **p == Place::Fixed(*cpu))
            .map(|(t, _)| t.u())
            .sum();
        ((burst - whole(t.p) * (whole(1) - share - fixed)) / (whole(1) - share)).max(whole(0))
    };
    tasks.iter().zip(places).map(bound).collect()
}

/// The inflated utilization of all servers of NPS-F, first fit in the order of the set; `full`
/// servers may be of utilization 1.
pub fn nps_f(tasks: &[Task], delta: i128, full: bool) -> Option<Q> {
    let mut servers: Vec<Q> = Vec::new();
    for t in tasks {
        if t.e > t.p {
            return None;
        }
        let fits = |u: Q| u < whole(1) || full && u == whole(1);
        match servers.iter_mut().find(|u| fits(**u + t.u())) {
            Some(u) => *u += t.u(),
            None => servers.push(t.u()),
        }
    }
    let inflated = |u: &Q| whole(delta + 1) * u / (u + whole(delta));
    Some(servers.iter().map(inflated).sum())
}

/// Is h(t) ≤ t for all t up to the hyperperiod and the longest deadline?
pub fn fits_by_demand(tasks: &[Task]) -> bool {
    let hyperperiod = tasks.iter().fold(1, |l, t| num_integer::lcm(l, t.p));
    let last = hyperperiod + tasks.iter().map(|t| t.d).max().unwrap_or(0);
    let deadlines = tasks
        .iter()
        .flat_map(|t| (0..).map(|k| t.d + k * t.p).take_while(|d| *d <= last));
    let mut deadlines: Vec<i128> = deadlines.collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    total(tasks, Task::u) <= whole(1)
        && deadlines
            .iter()
            .all(|at| tasks.iter().map(|t| t.dbf(*at)).sum::<i128>() <= *at)
}
