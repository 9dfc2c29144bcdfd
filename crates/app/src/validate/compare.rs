//! A run beside what was said of it: task by task, each job beyond its bound, and the picture.

use super::kernel::Around;
use super::observe::Job;
use super::plan::{Candidate, Cell, Wanted};
use super::results::{Beyond, CellSeen, TaskSeen, Validated, empty};
use crate::run::Ran;
use crate::simulate;
use model::{Duration, Instant, Result, TaskId};

/// Task by task: bound, simulator and reality.
pub(super) fn compare(
    cell: &Cell,
    candidate: &Candidate,
    simulated: &simulate::Simulated,
    ran: &Ran,
    around: &Around<'_>,
    stolen: f64,
) -> CellSeen {
    let (set, observed) = (&candidate.set, around.observed);
    let bounds: Vec<Option<Duration>> = set
        .ids()
        .map(|id| {
            let bounds = candidate.verdict.tasks.iter();
            let of = bounds.clone().find(|bound| bound.task == id);
            let is_accepted = cell.wanted == Wanted::Accepted;
            // Where no response time is known all that is said is that no deadline is missed.
            let deadline = set.timings()[id.index()].deadline;
            is_accepted.then(|| of.map_or(deadline, |bound| bound.response))
        })
        .collect();
    let mut tasks: Vec<TaskSeen> = set
        .timings()
        .iter()
        .zip(&bounds)
        .zip(&simulated.added_up.tasks)
        .zip(&observed.missed)
        .enumerate()
        .map(|(place, (((timing, bound), simulated), misses))| TaskSeen {
            task: set.name(TaskId(place as u32)),
            wcet_ns: timing.wcet.nanos(),
            period_ns: timing.period.nanos(),
            bound_ns: bound.map(Duration::nanos),
            simulated_ns: simulated.response.max_ns,
            observed_ns: 0,
            executed_ns: 0,
            jobs: 0,
            misses: *misses,
            simulated_misses: simulated.misses,
        })
        .collect();
    for job in &observed.jobs {
        if let Some(task) = tasks.get_mut(job.task) {
            task.jobs += 1;
            task.observed_ns = task.observed_ns.max(job.response().nanos());
            task.executed_ns = task.executed_ns.max(job.executed.nanos());
        }
    }
    let end = Instant::from_nanos(ran.ran.nanos());
    let unfinished = observed.unfinished(end);
    let done = observed.jobs.iter().map(|job| (job, false));
    let left = unfinished.iter().map(|job| (job, true));
    let beyond = done
        .chain(left)
        .filter_map(|(job, is_left)| beyond(job, is_left, *bounds.get(job.task)?, around))
        .collect();
    CellSeen {
        policy: candidate.policy.to_string(),
        part: candidate.part,
        utilization: set.utilization_f64(),
        tasks,
        beyond,
        standstills: observed.standstills.len() as u64,
        stood_still_ns: observed.standstills.iter().map(|s| s.length.nanos()).sum(),
        clean: ran.clean,
        kernel: around.summary(ran.ran.nanos(), stolen),
        ..empty(cell)
    }
}

/// The job, if it took longer than its bound.
fn beyond(
    job: &Job,
    unfinished: bool,
    bound: Option<Duration>,
    around: &Around<'_>,
) -> Option<Beyond> {
    let response = job.response();
    let bound = bound.filter(|bound| response > *bound)?;
    let kernel = around.window(job);
    let unaccounted = kernel
        .as_ref()
        .filter(|window| window.whole && !unfinished)
        .map(|window| window.unaccounted_ns(job.executed.nanos()));
    Some(Beyond {
        index: job.task,
        job: job.number,
        released_ns: job.released.nanos(),
        response_ns: response.nanos(),
        bound_ns: bound.nanos(),
        executed_ns: job.executed.nanos(),
        stood_still_ns: around.observed.stood_still_before(job).nanos(),
        unfinished,
        kernel,
        unaccounted_ns: unaccounted,
    })
}

/// Predicted against observed: bounds on the left, the simulator on the right; `id`: what the
/// picture is called.
pub fn figure(id: &str, validated: &Validated) -> Result<Option<report::Figure>> {
    let accepted = validated
        .cells
        .iter()
        .filter(|c| c.verdict == Wanted::Accepted);
    let mut groups: Vec<report::agreement::Group> = Vec::new();
    for cell in accepted {
        let place = groups.iter().position(|group| group.name == cell.policy);
        let place = place.unwrap_or_else(|| {
            groups.push(report::agreement::Group {
                name: cell.policy.clone(),
                bounds: Vec::new(),
                simulated: Vec::new(),
            });
            groups.len() - 1
        });
        for task in cell.tasks.iter().filter(|task| task.jobs > 0) {
            let observed = task.observed_ns as f64;
            if let Some(bound) = task.bound_ns {
                groups[place].bounds.push((bound as f64, observed));
            }
            groups[place]
                .simulated
                .push((task.simulated_ns as f64, observed));
        }
    }
    let (hard, soft) = (&validated.accepted_hard, &validated.accepted_soft);
    let caption = format!(
        "Each mark is a task of one of {} accepted sets, its longest response time in {} for real. \
         Above the line reality was worse than predicted. {} of {} jobs took longer than their \
         bound, {} more by no longer than the machine stood still.",
        hard.sets + soft.sets,
        validated.length,
        hard.jobs_beyond + soft.jobs_beyond,
        hard.jobs + soft.jobs,
        hard.jobs_excused + soft.jobs_excused
    );
    report::agreement::figure(id, &caption, &groups)
}
