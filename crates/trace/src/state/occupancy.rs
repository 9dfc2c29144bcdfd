//! Which job is on which processor, what it was charged, and in which overheads the processor is.

use super::observer::{Doing, Observer, Span, Took};
use super::parts::{Fault, Open, Status};
use super::{MAX_NESTED, State, fault, interrupts, nth};
use crate::event::{Event, EventKind};
use model::{CpuId, Duration, Instant, TaskId};

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

    /// A job leaves its processor, to go on later.
    pub(super) fn leave(&mut self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        self.on_processor(event, cpu)?;
        self.tasks[event.task.index()].status = if event.kind == EventKind::Preemption {
            Status::Preempted(cpu)
        } else {
            Status::Suspended(cpu)
        };
        self.vacate(cpu);
        Ok(())
    }

    pub(super) fn wake_up(&mut self, event: &Event) -> Result<(), Fault> {
        let state = &mut self.tasks[event.task.index()];
        match state.status {
            Status::Suspended(cpu) if state.head().is_some_and(|j| j.number == event.job) => {
                state.status = Status::Preempted(cpu);
                Ok(())
            }
            _ => Err(fault(
                "suspension",
                "a job wakes up that is not suspended".to_owned(),
            )),
        }
    }

    pub(super) fn idle(&mut self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let processor = &mut self.processors[cpu.index()];
        if let Some(task) = processor.running {
            return Err(fault(
                "idle",
                format!("{cpu:?} is called idle while task {} is on it", task.0 + 1),
            ));
        }
        let before = processor.idle.replace(event.flags);
        if before == Some(event.flags) {
            return Err(fault("idle", format!("{cpu:?} is called idle twice")));
        }
        Ok(())
    }

    pub(super) fn begin_server(&mut self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let server = u32::try_from(event.argument).unwrap_or(u32::MAX);
        match self.processors[cpu.index()].server.replace(server) {
            None => Ok(()),
            Some(old) => Err(fault(
                "server",
                format!(
                    "{cpu:?} begins N{} before it ended N{}",
                    server + 1,
                    old + 1
                ),
            )),
        }
    }

    pub(super) fn end_server(&mut self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let served = self.processors[cpu.index()].server.take();
        if served.map(u64::from) == Some(event.argument) {
            Ok(())
        } else {
            Err(fault(
                "server",
                format!("{cpu:?} ends a server that it does not serve"),
            ))
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
        let opened = Open {
            overhead,
            job: (event.task != Event::NO_TASK).then_some((event.task, event.job)),
            since: event.time,
            within: Duration::ZERO,
        };
        if !overhead.occupies_processor() {
            return self.interrupt(event, cpu, opened, observer);
        }
        let processor = &mut self.processors[cpu.index()];
        if event.kind == EventKind::OverheadBegin {
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
            let whole = event.time.since(last.since);
            if let Some(outer) = processor.overheads.last_mut() {
                outer.within = outer.within.saturating_add(whole);
            }
            observer.took(Took {
                overhead,
                cpu,
                begun: last.since,
                ended: event.time,
                length: whole.saturating_sub(last.within),
            });
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

    /// Follows an interrupt between processors, which occupies neither while it is on its way: its
    /// begin is when it is sent, its end when it arrives.
    fn interrupt(
        &mut self,
        event: &Event,
        cpu: CpuId,
        opened: Open,
        observer: &mut impl Observer,
    ) -> Result<(), Fault> {
        let processor = &mut self.processors[cpu.index()];
        if event.kind == EventKind::OverheadBegin {
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
            doing: Doing::Overhead(opened.overhead),
            job,
            serves: job,
            from: sent.since,
            to: event.time,
        });
        observer.took(Took {
            overhead: opened.overhead,
            cpu,
            begun: sent.since,
            ended: event.time,
            length: event.time.since(sent.since),
        });
        if sent.job.is_some() && sent.job != opened.job {
            return Err(fault(
                "overhead",
                "the interrupt that arrives served another job when it was sent".to_owned(),
            ));
        }
        Ok(())
    }
}
