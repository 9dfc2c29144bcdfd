//! EDF-WM: most tasks stay on one processor; the jobs of a few go through several, slice by slice
//! (002 §4.2).
//!
//! Slice k of a job is released when the window of slice k − 1 ends, and never before that slice
//! has used up its budget; on every processor whole jobs and slices are scheduled by EDF, a slice
//! by the end of its window. A job that completes within a slice is done with.
//!
//! Assumes an assignment whose windows do not exceed the deadline and whose slices are proven to
//! fit; not checked here.

use crate::catalog::{Info, Needs, Order, Tests};
use crate::cluster::{Cluster, Edf};
use crate::place::Nearness;
use crate::plan::{Plan, Route, Setup, each_alone};
use crate::queue::key;
use crate::spec::Spec;
use crate::{Decisions, DomainId, Event, Job, KeyedBy, KeyedSlice, Keys, Policy};
use model::{Assignment, Duration, Error, Instant, Result};
use std::sync::Arc;

/// What is known of it.
pub static INFO: Info = Info {
    name: "edf-wm",
    summary: "semi-partitioned EDF: jobs of a few tasks go through several processors in windows",
    parameters: "`edf-wm:slice=100us`: no slice is shorter, 50 us without it",
    keys: &["slice"],
    needs: |spec| {
        let shortest = shortest(spec)?;
        Ok(Needs::Slices { shortest })
    },
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Named("EDF-WM"),
    soft: Tests::Named("EDF-WM"),
    canonical: |spec| {
        let name = spec.info().name;
        Ok(match shortest(spec)? {
            None => name.to_owned(),
            Some(shortest) => format!("{name}:slice={shortest}"),
        })
    },
    suggested: &["edf-wm"],
    tried: &["edf-wm"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = EdfWm;

/// Builds it.
pub fn plan(_spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let Some(Assignment::Slices(assignment)) = setup.assignment else {
        return Err(
            Error::new("`edf-wm` needs an assignment in slices").remedy("assign the set first")
        );
    };
    let tasks = setup.set.len();
    let domain = |cpu| {
        assignment
            .cpus
            .iter()
            .position(|c| *c == cpu)
            .map(|at| DomainId(at as u32))
    };
    let ties = ties(assignment);
    let stages: Option<Vec<Arc<[Stage]>>> = assignment
        .tasks
        .iter()
        .zip(ties)
        .map(|(slices, ties)| {
            let mut after = Duration::ZERO;
            let stages: Option<Arc<[Stage]>> = slices
                .iter()
                .zip(ties)
                .map(|(slice, tie)| {
                    let released = after;
                    after = after.saturating_add(slice.window);
                    Some(Stage {
                        domain: domain(slice.cpu)?,
                        budget: slice.budget,
                        released,
                        due: after,
                        tie,
                    })
                })
                .collect();
            stages.filter(|s| !s.is_empty())
        })
        .collect();
    let Some(stages) = stages.filter(|s| s.len() == tasks) else {
        return Err(
            Error::new("the assignment does not fit the set and its own processors")
                .at("policy `edf-wm`")
                .remedy("make the assignment for this set"),
        );
    };
    let stages: Arc<[Arc<[Stage]>]> = stages.into();
    let rank = Edf::new(setup.set.timings().iter().map(|t| t.deadline));
    let domains = setup.domains(&each_alone(&assignment.cpus), |_, cpus| {
        let near = Nearness::of(setup.platform, cpus);
        Ok(EdfWm {
            stages: Arc::clone(&stages),
            processor: Cluster::new(rank.clone(), near, cpus.len(), tasks, None),
            part: vec![0; tasks],
            release: vec![Instant::ZERO; tasks],
            leaving: Vec::with_capacity(1),
        })
    })?;
    Ok(Plan {
        domains,
        route: Route::Fixed(stages.iter().map(|s| s[0].domain).collect()),
    })
}

/// How short a slice may be, where that is said: what an engine enforces may be coarser than what
/// 002 assumes.
fn shortest(spec: &Spec) -> Result<Option<Duration>> {
    match spec.duration("slice")? {
        Some(Duration::ZERO) => Err(spec
            .error("`slice` is zero")
            .remedy("write how long the shortest is, such as `slice=50us`")),
        shortest => Ok(shortest),
    }
}

/// By task and slice, who goes first when two are due at once: the earlier release, that is the
/// longer window; then the lower task.
fn ties(assignment: &model::assignment::Slices) -> Vec<Vec<u32>> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (task, slices) in assignment.tasks.iter().enumerate() {
        order.extend((0..slices.len()).map(|part| (task, part)));
    }
    order.sort_by_key(|(task, part)| std::cmp::Reverse(assignment.tasks[*task][*part].window));
    let mut ties: Vec<Vec<u32>> = assignment.tasks.iter().map(|s| vec![0; s.len()]).collect();
    for (place, (task, part)) in order.into_iter().enumerate() {
        ties[task][part] = place as u32;
    }
    ties
}

/// A slice of every job of a task.
#[derive(Clone, Copy, Debug)]
struct Stage {
    domain: DomainId,
    budget: Duration,
    /// After the job's release.
    released: Duration,
    /// After the job's release.
    due: Duration,
    /// Who goes first of those that are due at once.
    tie: u32,
}

/// EDF on one processor, with slices that come and go.
#[derive(Clone, Debug)]
pub struct EdfWm {
    /// By task.
    stages: Arc<[Arc<[Stage]>]>,
    processor: Cluster<Edf>,
    /// By task: which slice is or was here, and when its job was released.
    part: Vec<u32>,
    release: Vec<Instant>,
    /// Jobs that have used up their slice here; one at a time.
    leaving: Vec<model::TaskId>,
}

impl EdfWm {
    #[inline]
    fn stage(&self, job: &Job) -> (&Stage, bool) {
        let stages = &self.stages[job.task.index()];
        let last = stages.len() - 1;
        (&stages[(job.part as usize).min(last)], stages.len() > 1)
    }
}

impl Policy for EdfWm {
    const SLICES: bool = true;

    #[inline]
    fn happen(&mut self, event: Event, _now: Instant) {
        match event {
            Event::Ready(job) => {
                self.part[job.task.index()] = job.part;
                self.release[job.task.index()] = job.release;
                let due = self.window(&job).nanos();
                self.processor
                    .enter(key(due, self.stage(&job).0.tie, job.task));
            }
            Event::Done(task) => self.processor.leave(task),
            Event::Exhausted(task) => {
                self.processor.leave(task);
                self.leaving.push(task);
            }
            Event::Timer => {}
        }
    }

    #[inline]
    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        while let Some(task) = self.leaving.pop() {
            let part = self.part[task.index()] + 1;
            let stages = &self.stages[task.index()];
            if let Some(next) = stages.get(part as usize) {
                let at = self.release[task.index()] + next.released;
                out.push(task, next.domain, at.max(now), part);
            }
        }
        self.processor.choose(out);
    }

    fn keys(&self) -> Option<Keys> {
        let keyed = |stage: &Stage| KeyedSlice {
            domain: stage.domain,
            budget: stage.budget,
            released: stage.released,
            due: stage.due,
            tie: stage.tie,
        };
        let slices = |stages: &Arc<[Stage]>| match &**stages {
            [_] => Vec::new(),
            stages => stages.iter().map(keyed).collect(),
        };
        Some(Keys {
            tie: self.stages.iter().map(|stages| stages[0].tie).collect(),
            slices: self.stages.iter().map(slices).collect(),
            ..Keys::by(KeyedBy::Deadline)
        })
    }

    /// The budget of every slice but the last, which takes what is left.
    #[inline]
    fn slice(&self, job: &Job) -> Option<Duration> {
        let last = self.stages[job.task.index()].len() - 1;
        let (stage, _) = self.stage(job);
        ((job.part as usize) < last).then_some(stage.budget)
    }

    #[inline]
    fn window(&self, job: &Job) -> Instant {
        match self.stage(job) {
            (stage, true) => job.release + stage.due,
            (_, false) => job.deadline,
        }
    }
}
