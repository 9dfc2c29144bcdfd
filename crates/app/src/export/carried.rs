//! What of a plan a class of Linux can carry: processors and priorities by task, or why it cannot.

use model::assignment::Clustered;
use model::{Assignment, CpuSet, Duration, Error, Result, TaskId, TaskSet, Workload};
use policy::Spec;
use policy::catalog::{Order, Priority};
use std::cmp::Reverse;

/// The scheduling class that makes the policy's decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// SCHED_FIFO.
    Fixed,
    /// SCHED_DEADLINE.
    Deadline,
}

/// A task of a plan that can be carried.
#[derive(Clone, Debug)]
pub(super) struct Placed<'a> {
    pub name: String,
    /// The place of its processors among [`Carried::places`].
    pub place: usize,
    /// Where it may run.
    pub cpus: CpuSet,
    /// Its priority under SCHED_FIFO.
    pub priority: Option<u32>,
    pub wcet: Duration,
    pub period: Duration,
    pub deadline: Duration,
    /// The program that it is, with its arguments.
    pub command: Option<&'a [String]>,
    pub workload: Option<&'a Workload>,
}

/// A plan that a class of Linux can carry.
#[derive(Clone, Debug)]
pub(super) struct Carried<'a> {
    pub set: &'a TaskSet,
    pub policy: String,
    pub class: Class,
    /// Processors that are scheduled on their own.
    pub places: Vec<CpuSet>,
    /// In the order of the set.
    pub tasks: Vec<Placed<'a>>,
}

/// The highest priority of SCHED_FIFO that tasks get. The kernel's own threads that move tasks and
/// stop processors have 99.
const HIGHEST: u32 = 98;
/// The most urgent task gets this one where that is enough: tools of a system that have to get
/// through to it stay possible.
const USUAL: u32 = 90;

/// The tasks with their processors and priorities.
///
/// # Errors
/// No class of Linux makes the decisions of this policy; more priorities than SCHED_FIFO has.
pub(super) fn carried<'a>(
    set: &'a TaskSet,
    policy: &Spec,
    assignment: &Assignment,
) -> Result<Carried<'a>> {
    let class = class(policy)?;
    let clusters = match assignment {
        Assignment::Clustered(clusters) => clusters,
        // The classes above take no other.
        _ => {
            return Err(refuse(
                policy,
                "its assignment is not one to processors or clusters",
            ));
        }
    };
    let mut tasks: Vec<Placed<'_>> = Vec::with_capacity(set.len());
    for id in set.ids() {
        tasks.push(placed(set, id, clusters, class)?);
    }
    if class == Class::Fixed {
        for place in 0..clusters.clusters.len() {
            let order = most_urgent_first(set, policy, clusters, place)?;
            give_priorities(&mut tasks, &order, &clusters.clusters[place])?;
        }
    }
    Ok(Carried {
        set,
        policy: policy.to_string(),
        class,
        places: clusters.clusters.clone(),
        tasks,
    })
}

/// The class of Linux that decides as the policy does.
fn class(policy: &Spec) -> Result<Class> {
    if policy.value("quantum").is_some() && policy.info().name != "pd2" {
        return Err(refuse(
            policy,
            "it decides at the boundaries of quanta alone, and Linux at any time",
        ));
    }
    match policy.info().name {
        "p-edf" | "c-edf" | "g-edf" => Ok(Class::Deadline),
        "p-rm" | "p-fp" | "g-fp" => Ok(Class::Fixed),
        "edf-fm" => Err(refuse(
            policy,
            "jobs of a task take turns on two processors, and Linux moves no thread job by job",
        )),
        "edf-wm" => Err(refuse(
            policy,
            "jobs go on on another processor when a slice is used up, and Linux has no slices",
        )),
        "nps-f" | "c-nps-f" => Err(refuse(
            policy,
            "tasks run in servers that have fixed times on processors, and Linux has no such \
             timetable",
        )),
        "pd2" => Err(refuse(
            policy,
            "it decides quantum by quantum which tasks run, and Linux does not know their windows",
        )),
        "ca-edf" => Err(refuse(
            policy,
            "it asks which working sets fit into a cache together, and Linux does not",
        )),
        "g-fifo" => Err(refuse(
            policy,
            "under SCHED_FIFO threads of equal priority wait for one processor each, and not in the \
             order of releases for all of them",
        )),
        _ => Err(refuse(policy, "none decides as it does")),
    }
}

fn refuse(policy: &Spec, why: &str) -> Error {
    Error::new(format!(
        "no scheduling class of Linux can carry {policy}: {why}"
    ))
    .remedy("`warmset run --plan` runs it; or plan with `warmset advise --policy p-rm` or `p-edf`")
}

fn placed<'a>(
    set: &'a TaskSet,
    id: TaskId,
    clusters: &Clustered,
    class: Class,
) -> Result<Placed<'a>> {
    let (name, timing) = (set.name(id), set.timings()[id.index()]);
    let at = |e: Error| e.at(format!("task {name}"));
    let place = clusters.cluster_of[id.index()] as usize;
    let Some(all) = clusters.clusters.get(place) else {
        return Err(at(
            Error::new("the plan has no processors for it").remedy("have the plan made again")
        ));
    };
    let details = set.details(id);
    let own = details.and_then(|d| d.cpus.as_ref());
    let cpus = own.map_or_else(|| all.clone(), |own| all.intersection(own));
    if class == Class::Deadline && cpus.len() < all.len() {
        return Err(at(Error::new(format!(
            "it may run on {cpus} of the processors {all}, and the kernel refuses SCHED_DEADLINE to \
             threads that are kept to some of those that are scheduled together"
        ))
        .remedy("leave `cpus` out, or plan with `--policy p-edf`")));
    }
    let workload = details.and_then(|d| d.workload.as_ref());
    let command = match workload {
        Some(Workload::Exec { command, .. } | Workload::Program { command, .. }) => {
            Some(command.as_slice())
        }
        _ => None,
    };
    Ok(Placed {
        place,
        cpus,
        priority: None,
        wcet: timing.wcet,
        period: timing.period,
        deadline: timing.deadline,
        command,
        workload,
        name,
    })
}

/// The tasks of a place as the policy ranks them: ties are broken by the order of the set.
fn most_urgent_first(
    set: &TaskSet,
    policy: &Spec,
    clusters: &Clustered,
    place: usize,
) -> Result<Vec<TaskId>> {
    let mut tasks: Vec<TaskId> = clusters.tasks_of(place).collect();
    let timing = |id: &TaskId| set.timings()[id.index()];
    match policy.order()? {
        Order::Fixed(Priority::RateMonotonic) => tasks.sort_by_key(|id| timing(id).period),
        Order::Fixed(Priority::DeadlineMonotonic) => tasks.sort_by_key(|id| timing(id).deadline),
        _ => tasks.sort_by_key(|id| Reverse(set.details(*id).and_then(|d| d.priority))),
    }
    Ok(tasks)
}

/// Gives each task of a place its own priority.
fn give_priorities(tasks: &mut [Placed<'_>], order: &[TaskId], cpus: &CpuSet) -> Result<()> {
    let levels = order.len() as u32;
    if levels > HIGHEST {
        return Err(Error::new(format!(
            "SCHED_FIFO has {HIGHEST} priorities below the kernel's own threads, and on {cpus} are \
             {levels} tasks"
        ))
        .remedy("`warmset run --plan` runs it"));
    }
    let top = levels.max(USUAL);
    for (id, priority) in order.iter().zip((1..=top).rev()) {
        tasks[id.index()].priority = Some(priority);
    }
    Ok(())
}
