//! What follows from the events of a schedule: misses, and how many jobs there are.

use crate::event::{Event, EventKind};
use model::{CpuId, Instant, TaskId};
use std::collections::VecDeque;

/// By task, how many jobs are released.
pub(super) fn jobs_of(events: &[Event], tasks: usize) -> Vec<u64> {
    let mut jobs = vec![0; tasks];
    for event in events.iter().filter(|e| e.kind == EventKind::Release) {
        jobs[event.task.index()] += 1;
    }
    jobs
}

/// The events with the misses that they show, each just before its completion, and with an end.
pub(super) fn with_misses(events: Vec<Event>, tasks: usize, end: Instant) -> Vec<Event> {
    let mut pending: Vec<VecDeque<(u64, Instant)>> = vec![VecDeque::new(); tasks];
    // By task, the processor that its job is on.
    let mut on: Vec<Option<CpuId>> = vec![None; tasks];
    let mut out = Vec::with_capacity(events.len() + 1);
    for event in events {
        match event.kind {
            EventKind::Release => {
                pending[event.task.index()].push_back((event.job, event.deadline()));
            }
            EventKind::Completion => {
                if let Some((job, deadline)) = pending[event.task.index()].pop_front()
                    && event.time > deadline
                {
                    let cpu = event.cpu();
                    out.push(Event::deadline_miss(
                        event.time, cpu, event.task, job, deadline,
                    ));
                }
            }
            _ => {}
        }
        if event.kind.puts_on() {
            on[event.task.index()] = event.cpu();
        } else if event.kind.takes_off() {
            on[event.task.index()] = None;
        }
        out.push(event);
    }
    for (index, jobs) in pending.iter().enumerate() {
        for (place, (job, deadline)) in jobs.iter().enumerate() {
            if *deadline <= end {
                let task = TaskId(index as u32);
                let cpu = on[index].filter(|_| place == 0);
                out.push(Event::deadline_miss(end, cpu, task, *job, *deadline));
            }
        }
    }
    out.push(Event::end(end));
    out
}
