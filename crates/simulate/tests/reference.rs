//! An independent slow reference, time step by time step from each policy's definition, agrees with
//! the engine.
//!
//! It keeps every job in a list, sorts all of them in every unit of time, and shares no code with
//! `policy` or `simulate`. In CI a few hundred sets a policy; the long run is
//! `WARMSET_REFERENCE_SETS=100000 cargo test --release -p warmset-simulate --test all reference::`.

use crate::support::{Instance, POLICIES, Random, UNIT, instance, occupancy};
use model::Assignment;
use std::cmp::Reverse;

/// A job in units of time.
struct Job {
    task: usize,
    number: u64,
    release: u64,
    deadline: u64,
    left: u64,
    done: u64,
    last: Option<usize>,
    /// Executed quanta of PD2; the order of promotion of ca-edf.
    quanta: u64,
    promoted: Option<u64>,
}

struct World<'a> {
    of: &'a Instance,
    jobs: Vec<Job>,
    /// By processor: index of the job that ran there in the unit before and is unfinished.
    running: Vec<Option<usize>>,
    /// By task: the processor where a job of it last ran.
    last: Vec<Option<usize>>,
    promotions: u64,
    phantom_used: (u64, u64),
}

/// Who runs in every unit, and the response times, by task.
fn reference(of: &Instance) -> (Vec<Vec<Option<u32>>>, Vec<Vec<u64>>) {
    let m = of.m as usize;
    let mut world = World {
        of,
        jobs: Vec::new(),
        running: vec![None; m],
        last: vec![None; of.tasks.len()],
        promotions: 0,
        phantom_used: (0, 0),
    };
    let mut table = Vec::new();
    let mut responses = vec![Vec::new(); of.tasks.len()];
    for now in 0..of.horizon {
        for (task, t) in of.tasks.iter().enumerate() {
            if now >= t.phase && (now - t.phase).is_multiple_of(t.period) {
                world.jobs.push(Job {
                    task,
                    number: (now - t.phase) / t.period,
                    release: now,
                    deadline: now + t.deadline,
                    left: t.wcet,
                    done: 0,
                    last: None,
                    quanta: 0,
                    promoted: None,
                });
            }
        }
        world.running = world.choose(now);
        table.push(
            world
                .running
                .iter()
                .map(|job| job.map(|j| world.jobs[j].task as u32))
                .collect(),
        );
        for place in 0..m {
            let Some(index) = world.running[place] else {
                continue;
            };
            let job = &mut world.jobs[index];
            job.left -= 1;
            job.done += 1;
            job.quanta += 1;
            job.last = Some(place);
            world.last[job.task] = Some(place);
            if job.left == 0 {
                responses[job.task].push((now + 1 - job.release) * UNIT);
                world.running[place] = None;
            }
        }
    }
    (table, responses)
}

impl World<'_> {
    /// Jobs that may run: of each task the first unfinished one.
    fn ready(&self) -> Vec<usize> {
        let mut ready: Vec<usize> = Vec::new();
        for index in 0..self.jobs.len() {
            let job = &self.jobs[index];
            if job.left > 0 && !ready.iter().any(|r| self.jobs[*r].task == job.task) {
                ready.push(index);
            }
        }
        ready
    }

    fn choose(&mut self, now: u64) -> Vec<Option<usize>> {
        let m = self.running.len();
        let ready = self.ready();
        let of = self.of;
        match (of.policy.split(':').next().unwrap(), &of.assignment) {
            ("pd2", _) => {
                let chosen = self.pd2(now, ready);
                self.seat(&(0..m).collect::<Vec<_>>(), chosen)
            }
            ("ca-edf", _) => {
                let chosen = self.cache_aware(now, ready);
                self.seat(&(0..m).collect::<Vec<_>>(), chosen)
            }
            (_, None | Some(Assignment::Quanta(_))) => {
                let all: Vec<usize> = (0..m).collect();
                if of.policy.contains("quantum=3us") && !now.is_multiple_of(3) {
                    return self.running.clone();
                }
                self.cluster(&all, ready)
            }
            (_, Some(Assignment::Clustered(c))) => {
                let mut next = vec![None; m];
                for (index, cluster) in c.clusters.iter().enumerate() {
                    let places: Vec<usize> = cluster.iter().map(|p| p.index()).collect();
                    let mine = |j: &usize| c.cluster_of[self.jobs[*j].task] as usize == index;
                    let mine = ready.iter().copied().filter(mine).collect();
                    for (place, job) in self.cluster(&places, mine).into_iter().enumerate() {
                        next[place] = next[place].or(job);
                    }
                }
                next
            }
            (_, Some(Assignment::Turns(a))) => {
                let home = |j: &usize| {
                    let job = &self.jobs[*j];
                    let turn = a.tasks[job.task];
                    // Deal out one by one: the first gets a job whenever it has fewer than its
                    // part.
                    let (mut given, mut to_first) = (0, true);
                    for k in 0..=job.number {
                        to_first = given * turn.whole < (k + 1) * turn.part;
                        given += u64::from(to_first);
                    }
                    if to_first { turn.first } else { turn.second }.index()
                };
                (0..m)
                    .map(|place| {
                        let mine = ready.iter().copied().filter(|j| home(j) == place);
                        mine.min_by_key(|j| {
                            let job = &self.jobs[*j];
                            let turn = a.tasks[job.task];
                            (
                                turn.first == turn.second,
                                job.deadline,
                                job.release,
                                job.task,
                            )
                        })
                    })
                    .collect()
            }
            (_, Some(Assignment::Slices(a))) => {
                // By executed time a job is in its slice; before that slice's release it may not
                // run.
                let slice = |j: &usize| {
                    let job = &self.jobs[*j];
                    let slices = &a.tasks[job.task];
                    let (mut part, mut budget) = (0, 0);
                    while part + 1 < slices.len() {
                        budget += slices[part].budget.nanos() / UNIT;
                        if job.done < budget {
                            break;
                        }
                        part += 1;
                    }
                    let window = |k: usize| slices[k].window.nanos() / UNIT;
                    let release = job.release + (0..part).map(window).sum::<u64>();
                    let due = if slices.len() == 1 {
                        job.deadline
                    } else {
                        release + window(part)
                    };
                    (release, due, slices[part].cpu.index())
                };
                (0..m)
                    .map(|place| {
                        let mine = ready.iter().copied().filter(|j| {
                            let (release, _, cpu) = slice(j);
                            cpu == place && release <= now
                        });
                        mine.min_by_key(|j| {
                            let (release, due, _) = slice(j);
                            (due, release, self.jobs[*j].task)
                        })
                    })
                    .collect()
            }
            (_, Some(Assignment::Slots(a))) => {
                let at = now % (a.slot.nanos() / UNIT) * UNIT;
                (0..m)
                    .map(|place| {
                        let turns = &a.timetables[place].turns;
                        let server = turns
                            .iter()
                            .find(|t| t.start.nanos() <= at && at < t.end.nanos())?;
                        let mine = |j: &usize| a.server_of[self.jobs[*j].task] == server.server;
                        ready
                            .iter()
                            .copied()
                            .filter(mine)
                            .min_by_key(|j| self.edf(*j))
                    })
                    .collect()
            }
        }
    }

    /// The quanta that are reserved for each job of a task.
    fn reserved(&self, task: usize) -> u64 {
        match &self.of.assignment {
            Some(Assignment::Quanta(quanta)) => quanta.reserved[task].nanos() / UNIT,
            _ => self.of.tasks[task].wcet,
        }
    }

    fn edf(&self, j: usize) -> (u64, u64, usize) {
        let job = &self.jobs[j];
        (job.deadline, job.release, job.task)
    }

    fn rank(&self, j: usize) -> (u64, u64, usize) {
        let job = &self.jobs[j];
        let t = &self.of.tasks[job.task];
        match self.of.policy.as_str() {
            "g-edf:ties=index" => (job.deadline, 0, job.task),
            "p-fp" | "g-fp" => (0, 0, job.task),
            "p-fp:dm" | "g-fp:dm" => (t.deadline, 0, job.task),
            "p-rm" | "p-fp:rm" | "g-fp:rm" => (t.period, 0, job.task),
            "g-fifo" => (job.release, 0, job.task),
            _ => self.edf(j),
        }
    }

    /// The best jobs run on these places.
    fn cluster(&self, places: &[usize], mut ready: Vec<usize>) -> Vec<Option<usize>> {
        ready.sort_by_key(|j| self.rank(*j));
        ready.truncate(places.len());
        self.seat(places, ready)
    }

    /// Who runs stays; then those that return to where a job of theirs last ran; then the lowest
    /// free place.
    fn seat(&self, places: &[usize], chosen: Vec<usize>) -> Vec<Option<usize>> {
        let mut next = vec![None; self.running.len()];
        let mut rest = Vec::new();
        for job in chosen {
            match self.running.iter().position(|r| *r == Some(job)) {
                Some(place) => next[place] = Some(job),
                None => rest.push(job),
            }
        }
        let mut others = Vec::new();
        for job in rest {
            match self.last[self.jobs[job].task] {
                Some(place) if next[place].is_none() => next[place] = Some(job),
                _ => others.push(job),
            }
        }
        for job in others {
            let place = places.iter().find(|p| next[**p].is_none()).unwrap();
            next[*place] = Some(job);
        }
        next
    }

    /// Subtasks with open windows by end of window, b-bit, group deadline, index; all by search
    /// from the definitions.
    fn pd2(&self, now: u64, ready: Vec<usize>) -> Vec<usize> {
        let windows = |j: usize, i: u64| {
            let t = &self.of.tasks[self.jobs[j].task];
            let (e, p) = (self.reserved(self.jobs[j].task), t.period);
            (
                (i - 1) * p / e,
                (i * p).div_ceil(e),
                !(i * p).is_multiple_of(e),
            )
        };
        let group = |j: usize, i: u64| {
            let t = &self.of.tasks[self.jobs[j].task];
            // Compared only between windows that overlap the next.
            if 2 * self.reserved(self.jobs[j].task) < t.period || !windows(j, i).2 {
                return 0;
            }
            // The earliest time from the end of this window on at which a cascade of windows of
            // length two must end: after a window that does not overlap the next, or before one of
            // length three.
            let mut k = i;
            loop {
                let (_, d, b) = windows(j, k);
                let (next_r, next_d, _) = windows(j, k + 1);
                if !b || next_d - next_r >= 3 {
                    return if b { next_d - 1 } else { d };
                }
                k += 1;
            }
        };
        let mut open: Vec<usize> = ready
            .into_iter()
            .filter(|j| self.jobs[*j].release + windows(*j, self.jobs[*j].quanta + 1).0 <= now)
            .collect();
        open.sort_by_key(|j| {
            let job = &self.jobs[*j];
            let (_, d, b) = windows(*j, job.quanta + 1);
            let group = group(*j, job.quanta + 1);
            let group = if group == 0 { 0 } else { job.release + group };
            (job.release + d, !b, Reverse(group), job.task)
        });
        open.truncate(self.running.len());
        open
    }

    /// 003, §3.1, with a cache of 4 MiB.
    fn cache_aware(&mut self, now: u64, mut ready: Vec<usize>) -> Vec<usize> {
        let of = self.of;
        let m = self.running.len() as f64;
        let tasks = of.tasks.iter().enumerate();
        let u: f64 = tasks
            .map(|(task, t)| self.reserved(task) as f64 / t.period as f64)
            .sum();
        // What is larger than the cache counts as large as the cache.
        let size = |task: usize| of.tasks[task].wss.min(4);
        let spare = (m - u + 1e-9).max(0.0);
        let whole = spare.floor();
        let mut best = (0, 1);
        let mut periods: Vec<u64> = of.tasks.iter().map(|t| t.period).collect();
        periods.sort_unstable();
        for p in periods {
            let e = ((spare - whole) * p as f64 + 1e-9).floor() as u64;
            if e > 0 && e * best.1 >= best.0 * p {
                best = (e, p);
            }
        }
        if self.phantom_used.0 != now / best.1 {
            self.phantom_used = (now / best.1, 0);
        }
        let phantoms = whole as u64 + u64::from(self.phantom_used.1 < best.0);
        let (mut chosen, mut idled, mut groups, mut used): (Vec<usize>, u64, Vec<u64>, u64) =
            (Vec::new(), 0, Vec::new(), 0);
        for _ in 0..self.running.len() {
            let tardy = ready
                .iter()
                .copied()
                .filter(|j| self.jobs[*j].deadline <= now);
            let tardy = tardy.min_by_key(|j| self.edf(*j));
            let head = ready.iter().copied().min_by_key(|j| {
                let job = &self.jobs[*j];
                match job.promoted {
                    Some(order) => (0, order, 0, job.task),
                    None => (1, size(job.task), job.deadline, job.task),
                }
            });
            let Some(job) = tardy.or(head) else { break };
            let task = self.jobs[job].task;
            let group = of.tasks[task].group.unwrap_or(1000 + task as u64);
            let more = if groups.contains(&group) {
                0
            } else {
                size(task)
            };
            if tardy.is_none() {
                if used + more > 4 && idled < phantoms {
                    idled += 1;
                    continue;
                }
                if self.jobs[job].promoted.is_none() {
                    self.promotions += 1;
                    self.jobs[job].promoted = Some(self.promotions);
                }
            }
            used += more;
            groups.push(group);
            ready.retain(|j| *j != job);
            chosen.push(job);
        }
        if idled > whole as u64 {
            self.phantom_used.1 += 1;
        }
        chosen
    }
}

fn sets() -> u64 {
    std::env::var("WARMSET_REFERENCE_SETS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(400)
}

/// The policies that are defined here a second time. One that is not has the checker's rule alone.
const DEFINED: &[&str] = &[
    "p-edf", "g-edf", "c-edf", "p-rm", "p-fp", "g-fp", "edf-fm", "edf-wm", "nps-f", "c-nps-f",
    "pd2", "ca-edf", "g-fifo",
];

#[test]
fn the_engine_agrees_with_every_definition() {
    for (index, policy) in POLICIES.iter().enumerate() {
        if !policy
            .split(':')
            .next()
            .is_some_and(|name| DEFINED.contains(&name))
        {
            println!("{policy}: no definition here; the checker has its rule");
            continue;
        }
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15 + index as u64);
        for set in 0..sets() {
            let instance = instance(&mut random, policy);
            let (expected, responses) = reference(&instance);
            let (summary, simulated, events) = instance.simulate(&instance.scenario(), None);
            assert_eq!(
                simulated.of, responses,
                "{policy}, set {set}: {instance:#?}"
            );
            let table = occupancy(&events, instance.m, instance.horizon);
            for (now, (ours, theirs)) in table.iter().zip(&expected).enumerate() {
                assert_eq!(
                    ours, theirs,
                    "{policy}, set {set}, time {now}: {instance:#?}"
                );
            }
            let completed: usize = responses.iter().map(Vec::len).sum();
            assert_eq!(summary.completed(), completed as u64);
        }
    }
}
