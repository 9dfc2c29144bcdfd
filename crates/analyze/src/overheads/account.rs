//! What everything costs in an assignment: every task, every processor or cluster, every overhead.
//!
//! 002 §6.1. Clusters: P-, C- and G-EDF and fixed priorities alike. Turns (EDF-fm): a migratory
//! task is charged on each of its processors for what it brings there: its part of the releases, a
//! timer transfer for each, an IPI where that comes too late, a migration instead of a preemption
//! when a job begins. Slices (EDF-WM): every slice is released, scheduled and switched to by
//! itself; the processor of the next slice programs a timer for it, a slice that is handed over
//! late comes with an IPI, and each begins with the delay of the migration from the processor
//! before, the first one with that from the last.

use super::accounting::{Resident, inflate};
use super::kinds::{Lost, Parts};
use super::{CacheCharge, System, one_delay, quanta, slots};
use model::assignment::{Clustered, Slices, Turns};
use model::{Assignment, CpuSet, Duration, Ratio, TaskId, Timing};
use serde::Serialize;

/// An assignment with what it costs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Accounted {
    /// Every task with a WCET that holds its overheads, in the order of the set; rounded up to
    /// whole nanoseconds. Of a task that takes turns the dearer one; of one in slices the sum of
    /// its slices.
    #[serde(skip)]
    pub inflated: Vec<Timing>,
    /// What one job of each task pays, in the order of the set: exactly what `inflated` has more.
    pub parts: Vec<Parts>,
    /// Every task, or every part of one that has its own place.
    #[serde(skip)]
    pub pieces: Vec<Piece>,
    /// Every processor or cluster, in the order of the assignment.
    pub places: Vec<Place>,
}

/// A task, or a part of it, in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which task.
    pub task: TaskId,
    /// Where, as an index into [`Accounted::places`].
    pub place: u32,
    /// Its execution there with overheads; the window of a slice as deadline.
    pub timing: Timing,
    /// What of that is for which overhead.
    pub parts: Parts,
    /// Which part of the jobs comes here, as `part` of `whole`.
    pub jobs: (u64, u64),
}

impl Piece {
    /// Its utilization of the place, rounded up to a nanosecond a period.
    pub fn utilization(&self) -> Ratio {
        let time = share(self.timing.wcet, self.jobs);
        Timing {
            wcet: time,
            ..self.timing
        }
        .utilization()
    }
}

/// This part of a time, rounded up.
pub(super) fn share(time: Duration, (part, whole): (u64, u64)) -> Duration {
    let share = (u128::from(time.nanos()) * u128::from(part)).div_ceil(u128::from(whole.max(1)));
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// A processor or cluster and where its capacity goes. Numbers of processors, for people: verdicts
/// do not rest on them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Place {
    /// Its processors.
    pub processors: CpuSet,
    /// What execution takes.
    pub own: f64,
    /// What each overhead takes.
    pub lost: Lost,
}

impl Accounted {
    /// How many processors all places together lose to each overhead.
    pub fn lost(&self) -> Lost {
        let mut all = Lost::default();
        for place in &self.places {
            all.add_all(&place.lost);
        }
        all
    }
}

/// A place and who lives there.
pub(super) struct Occupied {
    pub cpus: CpuSet,
    pub residents: Vec<(TaskId, Resident)>,
}

/// What an assignment costs. It is taken as it is: whether it holds is for a test to say.
///
/// By the rule of one delay it was made for tasks that contain the delay ([`System::books`]).
pub fn account(tasks: &[Timing], assignment: &Assignment, system: &System<'_>) -> Accounted {
    match (assignment, system.charge) {
        // A job pays in each quantum, by that rule as well.
        (Assignment::Quanta(q), _) => quanta::account(tasks, &q.cpus, q.quantum, system),
        (_, CacheCharge::OneDelay(delay)) => one_delay::account(tasks, assignment, delay),
        _ => account_in(tasks, assignment, system),
    }
}

fn account_in(tasks: &[Timing], assignment: &Assignment, system: &System<'_>) -> Accounted {
    match assignment {
        Assignment::Clustered(c) => settle(tasks, clusters(tasks, c, system), system),
        Assignment::Turns(t) => settle(tasks, turns(tasks, t, system), system),
        Assignment::Slices(s) => settle(tasks, slices(tasks, s, system), system),
        Assignment::Slots(s) => slots::account(tasks, s, system),
        Assignment::Quanta(q) => quanta::account(tasks, &q.cpus, q.quantum, system),
    }
}

/// The longest cache delay with which a job resumes in an assignment.
pub fn longest_delay(tasks: &[Timing], assignment: &Assignment, system: &System<'_>) -> Duration {
    let occupied = match assignment {
        Assignment::Clustered(c) => clusters(tasks, c, system),
        Assignment::Turns(t) => turns(tasks, t, system),
        Assignment::Slices(s) => slices(tasks, s, system),
        Assignment::Slots(s) => return slots::longest_delay(tasks, s, system),
        Assignment::Quanta(q) => {
            let together = Clustered {
                clusters: vec![q.cpus.clone()],
                cluster_of: vec![0; tasks.len()],
            };
            clusters(tasks, &together, system)
        }
    };
    let residents = occupied.iter().flat_map(|h| &h.residents);
    let delays = residents.map(|(_, r)| r.beginning.max(r.resuming));
    delays.max().unwrap_or_default()
}

/// Inflates place by place.
fn settle(tasks: &[Timing], occupied: Vec<Occupied>, system: &System<'_>) -> Accounted {
    let mut pieces = Vec::with_capacity(tasks.len());
    let mut places = Vec::with_capacity(occupied.len());
    for (place, one) in occupied.into_iter().enumerate() {
        let residents: Vec<Resident> = one.residents.iter().map(|(_, r)| *r).collect();
        let mut here = Place {
            processors: one.cpus,
            own: 0.0,
            lost: Lost::default(),
        };
        let inflated = inflate(&residents, here.processors.len(), system);
        for ((task, resident), (timing, parts)) in one.residents.iter().zip(inflated) {
            let part = resident.jobs.0 as f64 / resident.jobs.1.max(1) as f64;
            here.own += resident.timing.utilization().to_f64() * part;
            here.lost.add(&parts, timing.period, part);
            pieces.push(Piece {
                task: *task,
                place: place as u32,
                timing,
                parts,
                jobs: resident.jobs,
            });
        }
        places.push(here);
    }
    let (inflated, parts) = by_task(tasks, &pieces);
    Accounted {
        inflated,
        parts,
        pieces,
        places,
    }
}

/// Slices add up; of turns the dearer one counts.
pub(super) fn by_task(tasks: &[Timing], pieces: &[Piece]) -> (Vec<Timing>, Vec<Parts>) {
    let mut parts = vec![Parts::default(); tasks.len()];
    for piece in pieces {
        let sum = &mut parts[piece.task.index()];
        if piece.jobs.0 == piece.jobs.1 {
            sum.add_all(&piece.parts);
        } else if piece.parts.total() > sum.total() {
            *sum = piece.parts;
        }
    }
    let inflated = tasks.iter().zip(&parts).map(|(t, p)| t.inflated(p.total()));
    (inflated.collect(), parts)
}

/// Every task of a cluster can resume in every way that its processors have.
pub(super) fn clusters(
    tasks: &[Timing],
    assignment: &Clustered,
    system: &System<'_>,
) -> Vec<Occupied> {
    let mut occupied: Vec<Occupied> = assignment
        .clusters
        .iter()
        .map(|cpus| Occupied {
            cpus: cpus.clone(),
            residents: Vec::new(),
        })
        .collect();
    let ways: Vec<_> = assignment
        .clusters
        .iter()
        .map(|cpus| system.ways(cpus.iter()))
        .collect();
    for (index, (t, c)) in tasks.iter().zip(&assignment.cluster_of).enumerate() {
        let task = TaskId(index as u32);
        let delay = system.delays.longest(task, &ways[*c as usize]);
        let resident = Resident::whole(*t, system.beginning(delay), delay);
        occupied[*c as usize].residents.push((task, resident));
    }
    occupied
}

fn one_each(cpus: &[model::CpuId]) -> Vec<Occupied> {
    cpus.iter()
        .map(|cpu| Occupied {
            cpus: [*cpu].into_iter().collect(),
            residents: Vec::new(),
        })
        .collect()
}

fn turns(tasks: &[Timing], assignment: &Turns, system: &System<'_>) -> Vec<Occupied> {
    let mut occupied = one_each(&assignment.cpus);
    let mut add = |cpu, task, resident| {
        if let Some(place) = assignment.cpus.iter().position(|c| *c == cpu) {
            occupied[place].residents.push((task, resident));
        }
    };
    for (index, (t, turn)) in tasks.iter().zip(&assignment.tasks).enumerate() {
        let task = TaskId(index as u32);
        if !turn.is_migratory() {
            add(turn.first, task, fixed(task, *t, system));
            continue;
        }
        let rest = turn.whole.saturating_sub(turn.part);
        for (cpu, part) in [(turn.first, turn.part), (turn.second, rest)] {
            add(
                cpu,
                task,
                migratory(
                    task,
                    *t,
                    (turn.first, turn.second),
                    (part, turn.whole),
                    system,
                ),
            );
        }
    }
    occupied
}

/// A task that stays on one processor.
pub(super) fn fixed(task: TaskId, timing: Timing, system: &System<'_>) -> Resident {
    let delay = system.delays.preemption(task);
    Resident::whole(timing, system.beginning(delay), delay)
}

/// A task on one of two processors on which its jobs take turns. A timer may be transferred as soon
/// as the job before is complete, and that never misses: up to a period early. If that is too late
/// for a timer, the job is handed over by an IPI.
pub(super) fn migratory(
    task: TaskId,
    timing: Timing,
    (first, second): (model::CpuId, model::CpuId),
    jobs: (u64, u64),
    system: &System<'_>,
) -> Resident {
    let way = system.resumption(first, second);
    let stays = system.delays.preemption(task);
    Resident {
        beginning: system.beginning(system.delays.delay(task, way).max(stays)),
        jobs,
        transfers: Some(timing.period),
        calls: 1,
        ..Resident::whole(timing, stays, stays)
    }
}

fn slices(tasks: &[Timing], assignment: &Slices, system: &System<'_>) -> Vec<Occupied> {
    let mut occupied = one_each(&assignment.cpus);
    for (index, (t, slices)) in tasks.iter().zip(&assignment.tasks).enumerate() {
        let task = TaskId(index as u32);
        for (at, slice) in slices.iter().enumerate() {
            let Some(place) = assignment.cpus.iter().position(|c| *c == slice.cpu) else {
                continue;
            };
            let resident = match slices.len() {
                1 => fixed(task, *t, system),
                count => {
                    let before = slices[(at + count - 1) % count].cpu;
                    let way = system.resumption(before, slice.cpu);
                    let timing = Timing {
                        wcet: slice.budget,
                        period: t.period,
                        deadline: slice.window,
                    };
                    sliced(task, timing, t, at, &[way], system)
                }
            };
            occupied[place].residents.push((task, resident));
        }
    }
    occupied
}

/// The slice of a job that comes at `at`th place, after one of these migrations.
///
/// Its timer is programmed when the slice before is used up, within that one's window; that of the
/// first one when the job before completes. A slice that is used up at the very end of its window
/// is handed over by an IPI.
///
/// Every slice but the first resumes a job that has run elsewhere: it begins with the delay of a
/// migration by any rule. If it is preempted in the midst of that, what it has to load is still
/// elsewhere: it resumes with the same delay.
pub(super) fn sliced(
    task: TaskId,
    timing: Timing,
    whole: &Timing,
    at: usize,
    ways: &[model::Resumption],
    system: &System<'_>,
) -> Resident {
    let stays = system.delays.preemption(task);
    let early = match at {
        0 => whole.period.max(whole.deadline),
        _ => timing.deadline,
    };
    let migration = system.delays.longest(task, ways).max(stays);
    Resident {
        beginning: match at {
            0 => system.beginning(migration),
            _ => migration,
        },
        transfers: Some(early),
        calls: u64::from(at > 0),
        ..Resident::whole(timing, stays, if at == 0 { stays } else { migration })
    }
}
