//! What the engines show to an observer of events. For one that looks at none, nothing is made.
//!
//! An engine calls these wherever something happens, whoever watches: being observed changes
//! nothing else.

use crate::course::Processor;
use crate::jobs::{Jobs, Row};
use crate::observe::Observer;
use model::{CpuId, Duration, Instant, TaskId};
use policy::ServerId;
use std::collections::VecDeque;
use trace::{Event, Flags, Overhead};

/// An observer, and what it was shown of the processors. Processors are dense.
pub(crate) struct Show<O> {
    pub observer: O,
    now: Instant,
    ids: Vec<CpuId>,
    /// By processor: whether it was shown without a job, and if so, whether that was deliberate.
    idle: Vec<Option<bool>>,
    /// By processor: the server that it serves, or [`ServerId::NONE`].
    serving: Vec<ServerId>,
    /// Processors that have lost their jobs, and may be shown idle.
    emptied: VecDeque<Processor>,
}

impl<O: Observer> Show<O> {
    /// `idle`: whether processors count as idle from the start.
    pub fn new(observer: O, ids: &[CpuId], idle: bool) -> Self {
        let count = if O::EVENTS { ids.len() } else { 0 };
        Show {
            observer,
            now: Instant::ZERO,
            ids: ids[..count].to_vec(),
            idle: vec![idle.then_some(false); count],
            serving: vec![ServerId::NONE; count],
            emptied: Processor::all(count).collect(),
        }
    }

    /// Sets the time of what is shown from now on.
    #[inline(always)]
    pub fn advance(&mut self, now: u64) {
        if O::EVENTS {
            self.now = Instant::from_nanos(now);
        }
    }

    /// The next event happens on this processor.
    #[inline(always)]
    fn event(&mut self, cpu: Processor, make: impl FnOnce(Instant, CpuId) -> Event) {
        if O::EVENTS {
            self.observer.event(make(self.now, self.ids[cpu.index()]));
        }
    }

    /// Job `number` of a task is released. `how`: on which processor, and its deadline.
    #[inline(always)]
    pub fn release(&mut self, task: TaskId, number: u64, how: impl FnOnce() -> (Processor, u64)) {
        if O::EVENTS {
            let (cpu, deadline) = how();
            self.event(cpu, |now, cpu| {
                let deadline = Instant::from_nanos(deadline);
                Event::release(now, cpu, task, number, deadline)
            });
        }
    }

    /// A part of a job has to be done by an instant of its own.
    #[inline(always)]
    pub fn window(&mut self, cpu: Processor, job: &policy::Job, window: impl FnOnce() -> Instant) {
        self.event(cpu, |now, cpu| {
            Event::window(now, cpu, job.task, job.number, window())
        });
    }

    /// A job begins or resumes; `before` is the processor on which it ran before.
    #[inline(always)]
    pub fn start(
        &mut self,
        cpu: Processor,
        task: TaskId,
        jobs: &Jobs<'_>,
        before: Option<Processor>,
    ) {
        if O::EVENTS {
            self.idle[cpu.index()] = None;
            let (to, number) = (self.ids[cpu.index()], jobs.number(task));
            self.observer.event(match before {
                None => Event::start(self.now, to, task, number),
                Some(from) => {
                    let from = self.ids[from.index()];
                    Event::resumption(self.now, from, to, task, number)
                }
            });
        }
    }

    /// A job leaves its processor unfinished.
    #[inline(always)]
    pub fn preemption(&mut self, cpu: Processor, task: TaskId, jobs: &Jobs<'_>) {
        self.event(cpu, |now, cpu| {
            Event::preemption(now, cpu, task, jobs.number(task))
        });
    }

    /// The slice of a part is used up: it leaves its processor.
    #[inline(always)]
    pub fn exhaustion(&mut self, cpu: Processor, task: TaskId, jobs: &Jobs<'_>) {
        self.event(cpu, |now, cpu| {
            let executed = jobs.rows[task.index()].life.executed();
            Event::budget_exhausted(now, cpu, task, jobs.number(task), executed)
        });
        self.preemption(cpu, task, jobs);
    }

    /// The current job of a task ends: its budget is used up if it is `cut` short, its deadline is
    /// missed if it is late.
    #[inline(always)]
    pub fn end(&mut self, cpu: Processor, task: TaskId, jobs: &Jobs<'_>, cut: bool) {
        if O::EVENTS {
            self.show_end(cpu, task, &jobs.rows[task.index()], cut);
        }
    }

    fn show_end(&mut self, cpu: Processor, task: TaskId, row: &Row, cut: bool) {
        let (now, cpu, number) = (self.now, self.ids[cpu.index()], row.life.number());
        let deadline = row.life.deadline();
        let observer = &mut self.observer;
        if cut {
            let budget = Duration::from_nanos(row.wcet);
            observer.event(Event::budget_exhausted(now, cpu, task, number, budget));
        }
        if now > deadline {
            observer.event(Event::deadline_miss(now, Some(cpu), task, number, deadline));
        }
        let done = Event::completion(now, cpu, task, number, row.life.executed());
        observer.event(if cut { done.flagged(Flags::CUT) } else { done });
    }

    /// An overhead begins or ends, of a job if it is known.
    #[inline(always)]
    pub fn overhead(
        &mut self,
        cpu: Processor,
        kind: Overhead,
        begins: bool,
        job: impl FnOnce() -> Option<(TaskId, u64)>,
    ) {
        self.event(cpu, |now, cpu| match begins {
            true => Event::overhead_begin(now, cpu, kind, job()),
            false => Event::overhead_end(now, cpu, kind, job()),
        });
    }

    /// A processor has lost its job, or was to have none already.
    #[inline(always)]
    pub fn emptied(&mut self, cpu: Processor) {
        if O::EVENTS {
            self.emptied.push_back(cpu);
        }
    }

    /// The processor that lost its job first of those that were not looked at since.
    pub fn next_emptied(&mut self) -> Option<Processor> {
        self.emptied.pop_front()
    }

    /// A processor has no job, which is shown if it is news: if it was not shown before with the
    /// same reason.
    #[inline(always)]
    pub fn idle(&mut self, cpu: Processor, deliberate: impl FnOnce() -> bool) {
        if O::EVENTS {
            let deliberate = deliberate();
            if self.idle[cpu.index()].replace(deliberate) == Some(deliberate) {
                return;
            }
            let event = Event::idle(self.now, self.ids[cpu.index()]);
            self.observer.event(match deliberate {
                true => event.flagged(Flags::DELIBERATE),
                false => event,
            });
        }
    }

    /// A processor begins, or with `None` ceases, to serve a server.
    #[inline(always)]
    pub fn server(&mut self, cpu: Processor, server: Option<ServerId>) {
        if O::EVENTS {
            let (now, id) = (self.now, self.ids[cpu.index()]);
            let serving = &mut self.serving[cpu.index()];
            let before = std::mem::replace(serving, server.unwrap_or(ServerId::NONE));
            if before != ServerId::NONE {
                self.observer.event(Event::server_end(now, id, before.0));
            }
            if let Some(server) = server {
                self.observer.event(Event::server_begin(now, id, server.0));
            }
        }
    }

    /// A job is incomplete at the end, its deadline reached.
    #[inline(always)]
    pub fn unfinished(&mut self, task: TaskId, number: u64, deadline: u64) {
        if O::EVENTS {
            let deadline = Instant::from_nanos(deadline);
            let event = Event::deadline_miss(self.now, None, task, number, deadline);
            self.observer.event(event);
        }
    }

    /// The simulation ends.
    pub fn close(&mut self) {
        if O::EVENTS {
            self.observer.event(Event::end(self.now));
        }
    }
}
