//! A slow scheduler, straight from the definitions, that makes correct traces to corrupt.
//!
//! At every instant: completions, then releases, then the jobs of highest priority of every domain
//! run; a running job stays where it is, a resumed one goes back where it last ran if it can.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]
#![allow(missing_docs)]

use model::assignment::Clustered;
use model::{Assignment, CpuId, Duration, Instant, Platform, Provenance, TaskId, TaskSet};
use trace::{Event, Header, Origin, Stage};

pub use testing::sets::set_ms as tasks;
pub use testing::times::{at_ms as at, ms};

/// The header of a simulated run on `clusters` of so many processors each; `cluster_of` per task.
pub fn header(set: TaskSet, policy: &str, clusters: &[u32], cluster_of: &[u32]) -> Header {
    let mut next = 0;
    let clusters = clusters
        .iter()
        .map(|size| {
            let cpus = (next..next + size).map(CpuId).collect();
            next += size;
            cpus
        })
        .collect();
    Header::simulated(
        set,
        Platform::symmetric(next),
        Stage {
            policy: policy.to_owned(),
            assignment: Some(Assignment::Clustered(Clustered {
                clusters,
                cluster_of: cluster_of.to_vec(),
            })),
            quantum: None,
        },
        Provenance {
            source: "the reference scheduler of the tests".to_owned(),
            ..Provenance::default()
        },
    )
}

/// The same head, of a real run.
pub fn real(header: &Header) -> Header {
    Header {
        origin: Origin::Real,
        ..header.clone()
    }
}

struct Live {
    number: u64,
    release: u64,
    deadline: u64,
    left: u64,
    total: u64,
    /// Where it last ran.
    last: Option<u32>,
}

/// The schedule of the header's first stage until `horizon`; `demand` says how long a job executes,
/// in ns.
pub fn schedule(
    header: &Header,
    horizon: Duration,
    demand: impl Fn(TaskId, u64) -> u64,
) -> Vec<Event> {
    let set = &header.tasks;
    let Some(Assignment::Clustered(placed)) = &header.stages[0].assignment else {
        panic!("the reference knows clusters only");
    };
    let fixed = header.stages[0].policy.contains("-rm") || header.stages[0].policy.contains("-fp");
    let n = set.len();
    let m = header.processors().len() as u32;
    let phase = |t: usize| set.details(TaskId(t as u32)).map_or(0, |d| d.phase.nanos());
    let mut next_release: Vec<u64> = (0..n).map(phase).collect();
    let mut next_number = vec![0; n];
    let mut pending: Vec<std::collections::VecDeque<Live>> =
        (0..n).map(|_| Default::default()).collect();
    let mut on: Vec<Option<usize>> = vec![None; m as usize];
    let mut events = Vec::new();
    let mut now = 0;
    loop {
        let time = Instant::from_nanos(now);
        // Completions.
        let mut emptied = Vec::new();
        for (cpu, place) in on.iter_mut().enumerate() {
            let Some(task) = *place else { continue };
            if pending[task][0].left == 0 {
                let job = pending[task].pop_front().unwrap();
                let (id, c) = (TaskId(task as u32), CpuId(cpu as u32));
                if now > job.deadline {
                    let deadline = Instant::from_nanos(job.deadline);
                    events.push(Event::deadline_miss(
                        time,
                        Some(c),
                        id,
                        job.number,
                        deadline,
                    ));
                }
                let executed = Duration::from_nanos(job.total);
                events.push(Event::completion(time, c, id, job.number, executed));
                *place = None;
                emptied.push(cpu);
            }
        }
        if now >= horizon.nanos() {
            break;
        }
        // Releases.
        for task in 0..n {
            if next_release[task] == now {
                let id = TaskId(task as u32);
                let deadline = now + set.timings()[task].deadline.nanos();
                let total = demand(id, next_number[task]);
                let home = placed.clusters[placed.cluster_of[task] as usize]
                    .lowest()
                    .unwrap();
                events.push(Event::release(
                    time,
                    home,
                    id,
                    next_number[task],
                    Instant::from_nanos(deadline),
                ));
                pending[task].push_back(Live {
                    number: next_number[task],
                    release: now,
                    deadline,
                    left: total,
                    total,
                    last: None,
                });
                next_number[task] += 1;
                next_release[task] += set.timings()[task].period.nanos();
            }
        }
        // Decisions.
        for (cluster, cpus) in placed.clusters.iter().enumerate() {
            let mut ready: Vec<usize> = (0..n)
                .filter(|t| placed.cluster_of[*t] as usize == cluster && !pending[*t].is_empty())
                .collect();
            ready.sort_by_key(|t| {
                let job = &pending[*t][0];
                match (fixed, header.stages[0].policy.contains("-rm")) {
                    (false, _) => (job.deadline, job.release, *t),
                    (true, true) => (set.timings()[*t].period.nanos(), 0, *t),
                    (true, false) => (0, 0, *t),
                }
            });
            ready.truncate(cpus.len());
            for cpu in cpus.iter() {
                if let Some(task) = on[cpu.index()].filter(|t| !ready.contains(t)) {
                    let job = &pending[task][0];
                    events.push(Event::preemption(
                        time,
                        cpu,
                        TaskId(task as u32),
                        job.number,
                    ));
                    on[cpu.index()] = None;
                    emptied.push(cpu.index());
                }
            }
            for task in ready {
                if on.contains(&Some(task)) {
                    continue;
                }
                let job = &mut pending[task][0];
                let free: Vec<CpuId> = cpus.iter().filter(|c| on[c.index()].is_none()).collect();
                let home = job.last.map(CpuId).filter(|c| free.contains(c));
                let cpu = home.unwrap_or(free[0]);
                let id = TaskId(task as u32);
                events.push(match job.last {
                    None => Event::start(time, cpu, id, job.number),
                    Some(last) => Event::resumption(time, CpuId(last), cpu, id, job.number),
                });
                job.last = Some(cpu.0);
                on[cpu.index()] = Some(task);
            }
        }
        for cpu in emptied {
            if on[cpu].is_none() {
                events.push(Event::idle(time, CpuId(cpu as u32)));
            }
        }
        // On to the next instant.
        let mut next = horizon.nanos();
        next = next.min(next_release.iter().copied().min().unwrap());
        for task in on.iter().flatten() {
            next = next.min(now + pending[*task][0].left);
        }
        for task in on.iter().flatten() {
            pending[*task][0].left -= next - now;
        }
        now = next;
    }
    let time = Instant::from_nanos(now);
    for cpu in 0..m as usize {
        // Processors that fell empty at the very end.
        let last = events
            .iter()
            .rev()
            .find(|e| e.cpu() == Some(CpuId(cpu as u32)));
        if last.is_some_and(|e| e.kind == trace::EventKind::Completion) {
            events.push(Event::idle(time, CpuId(cpu as u32)));
        }
    }
    for (task, jobs) in pending.iter().enumerate() {
        for job in jobs {
            if job.deadline <= now {
                let cpu = on
                    .iter()
                    .position(|t| *t == Some(task))
                    .filter(|_| job.number == jobs[0].number);
                let deadline = Instant::from_nanos(job.deadline);
                let id = TaskId(task as u32);
                events.push(Event::deadline_miss(
                    time,
                    cpu.map(|c| CpuId(c as u32)),
                    id,
                    job.number,
                    deadline,
                ));
            }
        }
    }
    events.push(Event::end(time));
    events
}

/// Every job executes for its WCET.
pub fn at_wcet(header: &Header) -> impl Fn(TaskId, u64) -> u64 + use<> {
    let wcets: Vec<u64> = header
        .tasks
        .timings()
        .iter()
        .map(|t| t.wcet.nanos())
        .collect();
    move |task, _| wcets[task.index()]
}

/// Checks events and returns what the checker says.
pub fn check(header: &Header, events: &[Event]) -> trace::Verdict {
    use trace::Sink;
    let options = trace::check::Options::for_trace(header);
    let mut checker = trace::Checker::new(header.clone(), options).unwrap();
    for event in events {
        checker.record(*event);
    }
    checker.finish()
}
