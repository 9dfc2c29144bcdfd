//! Which job is on which processor, what it was charged, and in which overheads the processor is.

use super::observer::{Doing, Observer, Span};
use super::parts::{Fault, Open, Status};
use super::{MAX_NESTED, State, fault, interrupts, nth};
use crate::event::{Event, EventKind};
use model::{CpuId, Instant, TaskId};

impl State {
    /// What `cpu` did since it was last accounted for.
    #[inline]
    pub(super) fn account(&mut self, cpu: CpuId, until: Instant, observer: &mut impl Observer) {
        let processor = &mut self.processors[cpu.index()];
        let from = std::mem::replace(&mut processor.accounted, until);
        if from >= until {
            return;
        }
        let job = match processor.running {
            Some(task) => {
                let state = &mut self.tasks[task.index()];
                if processor.overheads.is_empty() {
                    state.executed = state.executed.saturating_add(until.since(from));
                }
                state.pending.front().map(|job| (task, job.number))
            }
            None => None,
        };
        let (doing, serves) = match processor.overheads.last() {
            Some(open) => (Doing::Overhead(open.overhead), open.job),
            None if job.is_some() => (Doing::Executing, job),
            None => return,
        };
        observer.span(Span {
            cpu,
            doing,
            job: job.or(serves),
            serves,
            from,
            to: until,
        });
    }

    /// Accounts for what every processor did up to `until`.
    pub fn account_all(&mut self, until: Instant, observer: &mut impl Observer) {
        for cpu in 0..self.processors.len() as u32 {
            self.account(CpuId(cpu), until, observer);
        }
    }

    pub(super) fn put_on(&mut self, event: &Event, task: TaskId, cpu: CpuId) -> Result<(), Fault> {
        let state = &mut self.tasks[task.index()];
        let Some(head) = state.pending.front() else {
            return Err(if event.job < state.next {
                fault("past-completion", "it runs after its completion".to_owned())
            } else {
                fault("before-release", "it runs before its release".to_owned())
            });
        };
        if event.job != head.number {
            return Err(if event.job < head.number {
                fault("past-completion", "it runs after its completion".to_owned())
            } else if event.job >= state.next {
                fault("before-release", "it runs before its release".to_owned())
            } else {
                fault(
                    "job-order",
                    format!(
                        "it runs before job {} of its task is done",
                        nth(head.number)
                    ),
                )
            });
        }
        let old = state.status;
        if let Status::Running(elsewhere) = old {
            return Err(fault(
                "one-processor",
                format!("it runs on {elsewhere:?} already"),
            ));
        }
        let processor = &mut self.processors[cpu.index()];
        let displaced = processor.running.replace(task);
        processor.back = event.time;
        processor.idle = None;
        state.status = Status::Running(cpu);
        if let Some(other) = displaced {
            // The one that was there has to be somewhere: as if it had been preempted.
            self.tasks[other.index()].status = Status::Preempted(cpu);
            return Err(fault(
                "one-job",
                format!("{cpu:?} still has a job of task {}", other.0 + 1),
            ));
        }
        match (event.kind, old) {
            (EventKind::Start, Status::Fresh) => Ok(()),
            (EventKind::Resumption, Status::Preempted(last)) if last == cpu => Ok(()),
            (EventKind::Migration, Status::Preempted(last))
                if last != cpu && u64::from(last.0) == event.argument =>
            {
                Ok(())
            }
            (_, Status::Suspended(_)) => {
                Err(fault("suspension", "it runs while suspended".to_owned()))
            }
            (EventKind::Start, _) => {
                Err(fault("well-formed", "it starts a second time".to_owned()))
            }
            (_, Status::Fresh) => Err(fault(
                "well-formed",
                "it goes on without having started".to_owned(),
            )),
            (_, Status::Preempted(last)) => {
                Err(fault("well-formed", format!("it last ran on {last:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Is the job of the event on its processor?
    pub(super) fn on_processor(&self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let head = self.tasks[event.task.index()].head();
        if self.processors[cpu.index()].running == Some(event.task)
            && head.is_some_and(|j| j.number == event.job)
        {
            return Ok(());
        }
        Err(fault("not-running", format!("it is not on {cpu:?}")))
    }

    pub(super) fn vacate(&mut self, cpu: CpuId) {
        self.processors[cpu.index()].running = None;
        if !self.vacated.contains(&cpu) {
            self.vacated.push(cpu);
        }
    }

    pub(super) fn overhead(
        &mut self,
        event: &Event,
        cpu: CpuId,
        observer: &mut impl Observer,
    ) -> Result<(), Fault> {
        let Some(overhead) = event.overhead_kind() else {
            return Ok(());
        };
        let begins = event.kind == EventKind::OverheadBegin;
        let processor = &mut self.processors[cpu.index()];
        let opened = Open {
            overhead,
            job: (event.task != Event::NO_TASK).then_some((event.task, event.job)),
            since: event.time,
        };
        if !overhead.occupies_processor() {
            if begins {
                processor.interrupts.push_back(opened);
                return Ok(());
            }
            let Some(sent) = interrupts::arrived(&mut processor.interrupts, opened.job) else {
                return Err(fault(
                    "overhead",
                    "an interrupt arrives that was not sent".to_owned(),
                ));
            };
            // Whom it serves may be known only when it arrives.
            let job = sent.job.or(opened.job);
            observer.span(Span {
                cpu,
                doing: Doing::Overhead(overhead),
                job,
                serves: job,
                from: sent.since,
                to: event.time,
            });
            if sent.job.is_some() && sent.job != opened.job {
                return Err(fault(
                    "overhead",
                    "the interrupt that arrives served another job when it was sent".to_owned(),
                ));
            }
            return Ok(());
        }
        if begins {
            if processor.overheads.len() >= MAX_NESTED {
                return Err(fault(
                    "overhead",
                    format!("{MAX_NESTED} overheads are open on {cpu:?}"),
                ));
            }
            processor.overheads.push(opened);
            return Ok(());
        }
        let last = processor.overheads.last().copied();
        let open = last.map(|open| open.overhead);
        if let Some(last) = last.filter(|last| last.overhead == overhead) {
            processor.overheads.pop();
            processor.back = event.time;
            if last.job != opened.job {
                return Err(fault(
                    "overhead",
                    "it ends for another job than it began for".to_owned(),
                ));
            }
            return Ok(());
        }
        // Close it anyway if it is open further out, so that one lost end does not spoil the rest.
        if let Some(at) = processor
            .overheads
            .iter()
            .rposition(|o| o.overhead == overhead)
        {
            processor.overheads.truncate(at);
        }
        Err(fault(
            "overhead",
            match open {
                Some(open) => format!("it ends while {open} is open within"),
                None => "it ends without having begun".to_owned(),
            },
        ))
    }
}
