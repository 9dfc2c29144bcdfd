//! What jobs do: they are released, complete, miss deadlines, use up budgets, and are unfinished at
//! the end.

use super::{Fault, Job, Observer, State, Status, fault, nth};
use crate::event::{Event, Flags};
use crate::header::{Origin, Releases};
use model::{CpuId, Duration, Enforcement, Instant, TaskId};

impl State {
    pub(super) fn release(&mut self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let timing = self.timings[event.task.index()];
        let state = &mut self.tasks[event.task.index()];
        let release = Instant::ZERO + event.deadline().since(Instant::ZERO + timing.deadline);
        let in_order = event.job == state.next;
        let before = state.last_release.replace(release);
        state.next = event.job.saturating_add(1);
        state.pending.push_back(Job {
            number: event.job,
            release,
            deadline: event.deadline(),
            cpu,
            missed: None,
        });
        if state.status == Status::Nothing {
            state.status = Status::Fresh;
            state.executed = Duration::ZERO;
        }
        self.last_release = Some(event.time);
        if !in_order {
            return Err(fault(
                "job-order",
                format!("job {} is released out of turn", nth(event.job)),
            ));
        }
        self.check_release_time(event, release, cpu)?;
        let apart = before.map(|b| release.since(b));
        self.check_separation(event.task, release, apart)
    }

    /// Checks that a deadline is as far from the release as the task says. A real processor may
    /// release late by the tolerance, of the time for which the processors were there; a simulated
    /// one by the jitter.
    fn check_release_time(&self, event: &Event, release: Instant, cpu: CpuId) -> Result<(), Fault> {
        let timing = self.timings[event.task.index()];
        // Written as sums, so that a deadline before the relative one does not pass for a release
        // at zero.
        let expected = event.time.checked_add(timing.deadline);
        let differs = |from: Instant| {
            event
                .deadline()
                .since(from)
                .max(from.since(event.deadline()))
        };
        let mut off = expected.map_or(Duration::MAX, differs);
        let slack = match self.origin {
            // The deadline counts from the arrival, and the release is later by the jitter at most.
            Origin::Simulated if event.time > release => self.jitters[event.task.index()],
            Origin::Simulated => Duration::ZERO,
            Origin::Real => self.tolerance,
        };
        if event.time > release {
            off = self.awake(release, event.time, Some(cpu));
        }
        if off > slack {
            let text = if slack > Duration::ZERO && event.time > release {
                format!("it is released {off} late, {slack} are allowed")
            } else {
                let (deadline, relative) = (event.deadline(), timing.deadline);
                format!("its deadline {deadline} is not {relative} after its release")
            };
            return Err(fault("release", text));
        }
        Ok(())
    }

    /// Checks a release against the one before it, which was `apart` earlier, or against the phase
    /// if it is the first of its task.
    fn check_separation(
        &self,
        task: TaskId,
        release: Instant,
        apart: Option<Duration>,
    ) -> Result<(), Fault> {
        let timing = self.timings[task.index()];
        let phase = self.phases[task.index()];
        let nominal = release.since(Instant::ZERO);
        let rule = match self.sporadic[task.index()] {
            true => Releases::Sporadic,
            false => self.releases,
        };
        let kept = match (rule, apart) {
            (Releases::Given, _) => true,
            (Releases::Periodic, Some(apart)) => apart == timing.period,
            (Releases::Sporadic, Some(apart)) => apart >= timing.period,
            (Releases::Periodic, None) => nominal == phase,
            (Releases::Sporadic, None) => nominal >= phase,
        };
        if kept {
            Ok(())
        } else {
            Err(fault(
                "release",
                match apart {
                    Some(apart) => format!(
                        "it is released {apart} after its predecessor, the period is {}",
                        timing.period
                    ),
                    None => format!("the first job is released at {release}, the phase is {phase}"),
                },
            ))
        }
    }

    pub(super) fn complete(
        &mut self,
        event: &Event,
        cpu: CpuId,
        observer: &mut impl Observer,
    ) -> Result<(), Fault> {
        self.on_processor(event, cpu)?;
        self.vacate(cpu);
        let simulated = self.is_simulated();
        let state = &mut self.tasks[event.task.index()];
        let executed = std::mem::take(&mut state.executed);
        let Some(job) = state.pending.pop_front() else {
            return Ok(());
        };
        state.status = if state.pending.is_empty() {
            Status::Nothing
        } else {
            Status::Fresh
        };
        observer.done(event.task, &job, event.time, executed);
        let cut = event.flags.has(Flags::CUT);
        // A job whose budget was used up before it was preempted or interrupted is cut short as
        // soon as it comes back, whatever was released then.
        let comes_to_be_cut = cut && self.processors[cpu.index()].back == event.time;
        if simulated && self.last_release == Some(event.time) && !comes_to_be_cut {
            return Err(fault(
                "order",
                "a completion stands after a release of the same instant".to_owned(),
            ));
        }
        check_reported_miss(&job, event.time)?;
        if simulated {
            self.check_execution(event, executed)?;
        }
        Ok(())
    }

    /// Checks how long the job of a simulation executed until it completed: as long as its
    /// completion says, and within its WCET or cut short there as the enforcement demands.
    fn check_execution(&self, event: &Event, executed: Duration) -> Result<(), Fault> {
        let cut = event.flags.has(Flags::CUT);
        let said = Duration::from_nanos(event.argument);
        if said != executed {
            return Err(fault(
                "execution",
                format!("it says that it executed {said}, the trace shows {executed}"),
            ));
        }
        let wcet = self.timings[event.task.index()].wcet;
        if cut && matches!(self.enforcement, None | Some(Enforcement::Off)) {
            return Err(fault(
                "budget",
                "it is cut short without enforcement".to_owned(),
            ));
        }
        let must_keep = matches!(self.enforcement, None | Some(Enforcement::Exact));
        if must_keep && executed > wcet {
            return Err(fault(
                "budget",
                format!("it executed {executed}, its WCET is {wcet}"),
            ));
        }
        if cut && executed < wcet {
            return Err(fault(
                "budget",
                format!("it is cut short after {executed}, before its WCET {wcet}"),
            ));
        }
        Ok(())
    }

    pub(super) fn miss(&mut self, event: &Event) -> Result<(), Fault> {
        let state = &mut self.tasks[event.task.index()];
        let Some(job) = state.pending.iter_mut().find(|j| j.number == event.job) else {
            return Err(fault(
                "misses",
                "a job misses its deadline that is not pending".to_owned(),
            ));
        };
        let known = job.missed.replace(event.time).is_some();
        if event.deadline() != job.deadline {
            return Err(fault("misses", format!("its deadline is {}", job.deadline)));
        }
        if known {
            return Err(fault("misses", "its miss is reported twice".to_owned()));
        }
        if event.time < job.deadline {
            job.missed = None;
            return Err(fault("misses", "its deadline has not passed".to_owned()));
        }
        if let (Some(cpu), status) = (event.cpu(), state.status)
            && (status != Status::Running(cpu)
                || state.head().is_none_or(|j| j.number != event.job))
        {
            return Err(fault("misses", format!("it is not on {cpu:?}")));
        }
        Ok(())
    }

    pub(super) fn exhaust(&self, event: &Event) -> Result<(), Fault> {
        let executed = self.tasks[event.task.index()].executed;
        let budget = Duration::from_nanos(event.argument);
        let wcet = self.timings[event.task.index()].wcet;
        if !self.is_simulated() || self.has_slices {
            return Ok(());
        }
        let kept = match self.enforcement {
            Some(Enforcement::Exact) => budget == wcet && executed == budget,
            Some(Enforcement::PerQuantum) => budget == wcet && executed >= budget,
            None | Some(Enforcement::Off) => false,
        };
        if kept {
            Ok(())
        } else {
            Err(fault(
                "budget",
                format!(
                    "a budget of {budget} is called used up after {executed}, the WCET is {wcet}"
                ),
            ))
        }
    }

    pub(super) fn end(&mut self, observer: &mut impl Observer) -> Result<(), Fault> {
        self.ended = true;
        let now = self.now;
        self.account_all(now, observer);
        for task in 0..self.tasks.len() {
            self.released_all(task)?;
            self.within_budget(task)?;
            for job in &self.tasks[task].pending {
                let name = || format!("job {} of task {}", nth(job.number), task + 1);
                if job.missed.is_some_and(|at| at != now) {
                    let text = format!("the miss of {} is reported before it is over", name());
                    return Err(fault("misses", text));
                }
                if job.missed.is_none() && job.deadline <= now {
                    let text = format!(
                        "{} is unfinished at its deadline {}, which is not reported",
                        name(),
                        job.deadline
                    );
                    return Err(fault("misses", text));
                }
            }
        }
        Ok(())
    }

    /// At the end: was every job of a periodic task released that was due before it?
    fn released_all(&self, task: usize) -> Result<(), Fault> {
        if self.releases != Releases::Periodic || self.sporadic[task] {
            return Ok(());
        }
        let state = &self.tasks[task];
        let due = match state.last_release {
            None => Instant::ZERO.checked_add(self.phases[task]),
            Some(last) => last.checked_add(self.timings[task].period),
        };
        // It arrives then, and is released within its jitter.
        let due = due.and_then(|due| due.checked_add(self.jitters[task]));
        let is_overdue = |due: Instant| match self.origin {
            Origin::Simulated => due < self.now,
            Origin::Real => self.awake(due, self.now, None) > self.tolerance,
        };
        match due.filter(|due| is_overdue(*due)) {
            None => Ok(()),
            Some(due) => Err(fault(
                "release",
                format!(
                    "job {} of task {}, due at {due}, is not released",
                    nth(state.next),
                    task + 1
                ),
            )),
        }
    }

    /// At the end of a simulation: has the current job of a task executed within its WCET, and is
    /// it done if it used all of that?
    fn within_budget(&self, task: usize) -> Result<(), Fault> {
        let must_keep = matches!(self.enforcement, None | Some(Enforcement::Exact));
        if !self.is_simulated() || !must_keep {
            return Ok(());
        }
        let (state, wcet) = (&self.tasks[task], self.timings[task].wcet);
        let Some(job) = state.head() else {
            return Ok(());
        };
        let on = match state.status {
            Status::Running(cpu) => Some(&self.processors[cpu.index()]),
            _ => None,
        };
        // A job completes when it has executed its WCET; while its processor is busy with an
        // overhead that may wait.
        let is_due = on.is_some_and(|p| p.overheads.is_empty() && p.back < self.now);
        if state.executed > wcet || (is_due && state.executed == wcet) {
            return Err(fault(
                "budget",
                format!(
                    "job {} of task {} is unfinished after {}, its WCET is {wcet}",
                    nth(job.number),
                    task + 1,
                    state.executed
                ),
            ));
        }
        Ok(())
    }
}

/// Checks that the miss of a job that completes is reported if and only if there is one, and at the
/// time of its completion.
fn check_reported_miss(job: &Job, completed: Instant) -> Result<(), Fault> {
    let late = completed > job.deadline;
    match job.missed {
        None if late => Err(fault(
            "misses",
            format!("its miss of the deadline {} is not reported", job.deadline),
        )),
        Some(_) if !late => Err(fault(
            "misses",
            format!(
                "it is reported to have missed its deadline {}",
                job.deadline
            ),
        )),
        Some(at) if at != completed => Err(fault(
            "misses",
            format!("its miss is reported at {at}, not at its completion"),
        )),
        _ => Ok(()),
    }
}
