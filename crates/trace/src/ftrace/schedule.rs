//! Records as a schedule: which job of which task each event is about.
//!
//! A job of a task begins when its thread is woken up, and ends when the thread sleeps. So a thread
//! has to sleep once per job and not within one: what waits for a lock sleeps, too, and is taken for
//! the end of a job, but for waits that no signal ends, which are suspensions. What a thread does
//! before it is seen to sleep or to be woken up is left out.

use super::finish::{jobs_of, with_misses};
use super::named::Named;
use super::nominal::Nominal;
use super::{Leaves, Record, Thread, What};
use crate::event::Event;
use model::{CpuId, Duration, Error, Instant, Result, TaskId, TaskSet, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// A schedule that Linux made.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The tasks; with periodic releases, with the phases that were found.
    pub set: TaskSet,
    /// The events, complete.
    pub events: Vec<Event>,
    /// By task, how many jobs were released.
    pub jobs: Vec<u64>,
    /// How many events the text says are missing.
    pub lost: u64,
    /// The processors on which anything happened.
    pub cpus: BTreeSet<CpuId>,
    /// What to know of it, a sentence each.
    pub notes: Vec<String>,
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    /// Not known yet.
    Unknown,
    Sleeps,
    /// Its job is released and has not run.
    Fresh,
    Runs(CpuId),
    /// Preempted, or woken up from a suspension; it last ran there.
    Waits(CpuId),
    Suspended(CpuId),
}

struct Task {
    does: Does,
    pid: Option<u32>,
    /// Jobs that were released.
    released: u64,
    /// When its job was put on its processor, and how long it ran before.
    since: Instant,
    ran: Duration,
}

struct Making<'a> {
    set: &'a TaskSet,
    names: &'a [Named],
    /// By number of a thread, its name and its task; `None`: of no task.
    of: BTreeMap<u32, (String, Option<TaskId>)>,
    tasks: Vec<Task>,
    events: Vec<Event>,
    /// By processor, since when a thread of no task keeps the tasks from it.
    taken: BTreeMap<CpuId, Instant>,
    /// Threads with a kernel priority up to this one do so.
    urgent: i32,
    lost: u64,
    /// When the first of the threads ended, and whose it was.
    ended: Option<(Instant, TaskId)>,
}

impl Schedule {
    /// The schedule of a task set, whose threads are named in its order. `periodic`: each task is
    /// released at multiples of its period, of which wake-ups are late by a while; otherwise a job
    /// is released when its thread is woken up.
    ///
    /// # Errors
    /// A name that fits several threads, or none; a thread that runs without having been woken up;
    /// the line is named.
    pub fn of(
        records: &[Record<'_>],
        set: &TaskSet,
        names: &[Named],
        periodic: bool,
    ) -> Result<Schedule> {
        let mut making = Making::new(records, set, names)?;
        let begin = records.first().map_or(Instant::ZERO, |r| r.time);
        let end = records
            .last()
            .map_or(Instant::ZERO, |r| Instant::ZERO + r.time.since(begin));
        check_length(set, end)?;
        // The first event of a wake-up counts; `sched_wakeup` alone is taken where there are no others.
        let has_waking = records
            .iter()
            .any(|r| matches!(r.what, What::Wake { first: true, .. }));
        for record in records {
            let at = Instant::ZERO + record.time.since(begin);
            let done = match record.what {
                What::Switch { from, leaves, to } => {
                    making.switch(at, record.cpu, &from, leaves, &to)
                }
                What::Wake {
                    thread,
                    target,
                    first,
                } if first || !has_waking => {
                    making.wake(at, target, &thread);
                    Ok(())
                }
                What::Wake { .. } => Ok(()),
                What::Lost(count) => {
                    making.lost = making.lost.saturating_add(count);
                    making.events.push(Event::lost(at, record.cpu, count));
                    Ok(())
                }
            };
            done.map_err(|e| e.at(format!("line {}", record.line)))?;
        }
        making.finish(records, end, periodic)
    }
}

/// Refuses a set whose deadlines would lie beyond the times that there are.
fn check_length(set: &TaskSet, end: Instant) -> Result<()> {
    let fits = |t: &Timing| {
        let later = end.checked_add(t.deadline)?;
        later.checked_add(t.period)?.checked_add(t.period)
    };
    let beyond = set.timings().iter().position(|t| fits(t).is_none());
    match beyond {
        None => Ok(()),
        Some(index) => Err(Error::new(format!(
            "a deadline of task `{}` lies beyond 584 years",
            set.name(TaskId(index as u32))
        ))
        .remedy("correct its period and its deadline, or the times of the text")),
    }
}

impl<'a> Making<'a> {
    fn new(records: &[Record<'_>], set: &'a TaskSet, names: &'a [Named]) -> Result<Self> {
        let mut making = Making {
            set,
            names,
            of: BTreeMap::new(),
            tasks: set
                .ids()
                .map(|_| Task {
                    does: Does::Unknown,
                    pid: None,
                    released: 0,
                    since: Instant::ZERO,
                    ran: Duration::ZERO,
                })
                .collect(),
            events: Vec::new(),
            taken: BTreeMap::new(),
            urgent: i32::MIN,
            lost: 0,
            ended: None,
        };
        for record in records {
            let at = |e: Error| e.at(format!("line {}", record.line));
            match &record.what {
                What::Switch { from, to, .. } => {
                    making.know(from).map_err(at)?;
                    making.know(to).map_err(at)?;
                }
                What::Wake { thread, .. } => making.know(thread).map_err(at)?,
                What::Lost(_) => {}
            }
        }
        for (task, name) in set.ids().zip(names) {
            if making.tasks[task.index()].pid.is_none() {
                let named = match name {
                    Named::Comm(comm) => format!("`{comm}`"),
                    Named::Pid(pid) => format!("number {pid}"),
                };
                return Err(Error::new(format!(
                    "no thread has the name or number that task `{}` has: {named}",
                    set.name(task)
                ))
                .remedy("say which thread it is: `--thread TASK=COMM` or `--thread TASK=PID`"));
            }
        }
        Ok(making)
    }

    /// Finds out whose thread this is.
    fn know(&mut self, thread: &Thread<'_>) -> Result<()> {
        if thread.pid == 0 {
            return Ok(());
        }
        let known = self.of.get(&thread.pid);
        let mut mine = known.and_then(|(_, task)| *task);
        // A thread may take its name after it began.
        if mine.is_none() && known.is_none_or(|(comm, _)| comm != thread.comm) {
            let found = self.names.iter().position(|name| name.is(thread));
            mine = found.map(|place| TaskId(place as u32));
            self.of.insert(thread.pid, (thread.comm.to_owned(), mine));
            if let Some(task) = mine {
                let known = self.tasks[task.index()].pid.replace(thread.pid);
                if let Some(other) = known.filter(|pid| *pid != thread.pid) {
                    return Err(Error::new(format!(
                        "threads {other} and {} both have the name of task `{}`",
                        thread.pid,
                        self.set.name(task)
                    ))
                    .remedy("say which one it is: `--thread TASK=PID`"));
                }
            }
        }
        if mine.is_some() && thread.prio < 100 {
            self.urgent = self.urgent.max(thread.prio);
        }
        Ok(())
    }

    fn task_of(&self, thread: &Thread<'_>) -> Option<TaskId> {
        self.of.get(&thread.pid).and_then(|(_, task)| *task)
    }

    fn wake(&mut self, at: Instant, cpu: CpuId, thread: &Thread<'_>) {
        let Some(id) = self.task_of(thread) else {
            return;
        };
        match self.tasks[id.index()].does {
            Does::Unknown | Does::Sleeps => self.release(at, cpu, id),
            Does::Suspended(_) => {
                let job = self.tasks[id.index()].released - 1;
                self.events.push(Event::wake_up(at, cpu, id, job));
                if let Does::Suspended(last) = self.tasks[id.index()].does {
                    self.tasks[id.index()].does = Does::Waits(last);
                }
            }
            // It was about to sleep, and is woken up before it has left: its job is done and the
            // next one goes on at once.
            Does::Runs(on) => {
                self.complete(at, on, id);
                self.release(at, on, id);
                self.put_on(at, on, id);
            }
            // Woken up already.
            Does::Fresh | Does::Waits(_) => {}
        }
    }

    fn release(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let job = task.released;
        task.released += 1;
        task.does = Does::Fresh;
        task.ran = Duration::ZERO;
        let deadline = at + self.set.timings()[id.index()].deadline;
        self.events.push(Event::release(at, cpu, id, job, deadline));
    }

    fn put_on(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let job = task.released - 1;
        self.events.push(match task.does {
            Does::Waits(last) => Event::resumption(at, last, cpu, id, job),
            _ => Event::start(at, cpu, id, job),
        });
        task.does = Does::Runs(cpu);
        task.since = at;
    }

    fn complete(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let executed = task.ran.saturating_add(at.since(task.since));
        self.events
            .push(Event::completion(at, cpu, id, task.released - 1, executed));
        task.does = Does::Sleeps;
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        from: &Thread<'_>,
        leaves: Leaves,
        to: &Thread<'_>,
    ) -> Result<()> {
        if let Some(since) = self.taken.remove(&cpu) {
            self.events
                .push(Event::standstill(at, cpu, at.since(since)));
        }
        let left = match self.task_of(from) {
            Some(id) => self.leave(at, cpu, id, leaves),
            None => false,
        };
        match self.task_of(to) {
            Some(id) => match self.tasks[id.index()].does {
                // It may have been woken up before the text begins.
                Does::Unknown => Ok(()),
                Does::Fresh | Does::Waits(_) => {
                    self.put_on(at, cpu, id);
                    Ok(())
                }
                // After a loss nothing is certain, and nothing is checked.
                _ if self.lost > 0 => {
                    self.tasks[id.index()].does = Does::Unknown;
                    Ok(())
                }
                does => Err(Error::new(match does {
                    Does::Runs(on) => {
                        format!("task `{}` runs on {on:?} already", self.set.name(id))
                    }
                    _ => format!(
                        "task `{}` runs without having been woken up",
                        self.set.name(id)
                    ),
                })
                .remedy(
                    "record sched_waking or sched_wakeup, too, of all processors; if perf lost \
                     events, print where: perf script --show-lost-events",
                )),
            },
            None => {
                if left {
                    self.events.push(Event::idle(at, cpu));
                }
                // The kernel's stopper goes before all classes, whatever its number says.
                let stops = to.comm.starts_with("migration/");
                if to.pid != 0 && (to.prio <= self.urgent || stops) {
                    self.taken.insert(cpu, at);
                }
                Ok(())
            }
        }
    }

    /// The thread of a task leaves its processor; returns whether its job was on it.
    fn leave(&mut self, at: Instant, cpu: CpuId, id: TaskId, leaves: Leaves) -> bool {
        if leaves == Leaves::Ends && self.ended.is_none() {
            self.ended = Some((at, id));
        }
        let is_over = matches!(leaves, Leaves::Sleeps | Leaves::Ends);
        let task = &mut self.tasks[id.index()];
        if !matches!(task.does, Does::Runs(_)) {
            // What it did before is not known; from now on it is.
            if is_over && task.does == Does::Unknown {
                task.does = Does::Sleeps;
            }
            return false;
        }
        if is_over {
            self.complete(at, cpu, id);
            return true;
        }
        let job = task.released - 1;
        task.ran = task.ran.saturating_add(at.since(task.since));
        let (does, event) = match leaves {
            Leaves::Blocked => (Does::Suspended(cpu), Event::suspension(at, cpu, id, job)),
            _ => (Does::Waits(cpu), Event::preemption(at, cpu, id, job)),
        };
        task.does = does;
        self.events.push(event);
        true
    }

    /// Ends the schedule: releases get their nominal instants, misses are told, and what is left of
    /// threads of no task.
    fn finish(
        mut self,
        records: &[Record<'_>],
        mut end: Instant,
        periodic: bool,
    ) -> Result<Schedule> {
        for (cpu, since) in std::mem::take(&mut self.taken) {
            if end > since {
                self.events
                    .push(Event::standstill(end, cpu, end.since(since)));
            }
        }
        let mut notes = Vec::new();
        if let (true, Some((at, id))) = (periodic, self.ended) {
            // Afterwards nothing releases the jobs of this task.
            self.events.retain(|event| event.time <= at);
            end = at;
            notes.push(format!(
                "the schedule ends at {}, where the thread of task `{}` ends",
                at.since(Instant::ZERO),
                self.set.name(id)
            ));
        }
        for id in self.set.ids() {
            if self.tasks[id.index()].released == 0 {
                notes.push(format!(
                    "task `{}` was not woken up in this time: it has no job",
                    self.set.name(id)
                ));
            }
        }
        let mut set = self.set.clone();
        if periodic {
            let nominal = Nominal::of(&self.events, self.set)?;
            end = end + nominal.shift;
            set = nominal.apply(&mut self.events, self.set)?;
        }
        let events = with_misses(self.events, set.len(), end);
        let cpus = records.iter().map(|r| r.cpu).collect();
        Ok(Schedule {
            set,
            jobs: jobs_of(&events, self.set.len()),
            events,
            lost: self.lost,
            cpus,
            notes,
        })
    }
}
