//! NPS-F and C-NPS-F: tasks in servers, servers in the slots of processors (002 §4.3).
//!
//! Every processor serves, in every slot, the servers of its timetable at their times and nobody in
//! between. A job runs only where its server is served, and there the earliest deadline of the
//! server runs; a server that is served idles only if none of its jobs is ready.

use crate::check::domains::{Domains, Key};
use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, State};
use model::Overhead;
use model::assignment::{Slots, Timetable};
use model::{CpuId, Duration, Instant, TaskId};

/// More slots without an event than any schedule has.
const MOST_SLOTS: u64 = 10_000_000;

/// What a processor is to do.
#[derive(Clone, Debug)]
struct Duty {
    table: Timetable,
    /// What it is to serve from the time that was looked up last …
    server: Option<u32>,
    /// … until then.
    until: Instant,
    /// Since when it has done something else, and whether that was reported.
    wrong: Option<(Instant, bool)>,
}

/// The rule of NPS-F.
pub struct Servers {
    domains: Domains,
    slot: Duration,
    server_of: Vec<u32>,
    duties: Vec<Duty>,
    /// Per server, where it is served.
    served: Vec<Option<CpuId>>,
    tolerance: Duration,
    /// Do decisions take time?
    overheads: bool,
}

impl Servers {
    /// Over domains that are the servers; `domains` starts without processors.
    pub fn new(domains: Domains, slots: &Slots, servers: usize, tolerance: Duration) -> Self {
        Servers {
            domains,
            slot: slots.slot,
            server_of: slots.server_of.clone(),
            duties: slots
                .timetables
                .iter()
                .map(|table| Duty {
                    table: table.clone(),
                    server: None,
                    until: Instant::ZERO,
                    wrong: None,
                })
                .collect(),
            served: vec![None; servers],
            tolerance,
            overheads: false,
        }
    }

    fn key(&self, task: TaskId, state: &State) -> Option<Key> {
        let job = state.tasks[task.index()].head()?;
        Some(Key {
            class: 0,
            deadline: job.deadline,
            release: job.release,
            task,
        })
    }

    fn wait(&mut self, task: TaskId, state: &State) {
        if let Some(key) = self.key(task, state) {
            self.domains.wait(self.server_of[task.index()], key);
        }
    }

    /// What the timetable of a processor says at `now`, and until when.
    fn look_up(&self, table: &Timetable, now: Instant) -> (Option<u32>, Instant) {
        let slot = self.slot.nanos().max(1);
        let (begin, within) = (now.nanos() / slot * slot, now.nanos() % slot);
        let at = |ns: u64| Instant::from_nanos(begin.saturating_add(ns));
        for turn in &table.turns {
            if within < turn.start.nanos() {
                return (None, at(turn.start.nanos()));
            }
            if within < turn.end.nanos() {
                return (Some(turn.server), at(turn.end.nanos()));
            }
        }
        (None, at(slot))
    }

    /// Did every processor do its duty from `from` to `to`?
    fn watch(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        // A damaged time must not take years.
        if to.since(from).nanos() / self.slot.nanos().max(1) > MOST_SLOTS {
            found.faults.push(Fault {
                rule: "slot",
                text: format!("nothing happens from {from} to {to}"),
            });
            return;
        }
        for place in 0..self.duties.len() {
            let cpu = self.duties[place].table.cpu;
            let serves = state.processors.get(cpu.index()).and_then(|p| p.server);
            let mut now = from;
            while now < to {
                if now >= self.duties[place].until {
                    let (server, until) = self.look_up(&self.duties[place].table, now);
                    (self.duties[place].server, self.duties[place].until) = (server, until);
                }
                let duty = &mut self.duties[place];
                let until = duty.until.min(to);
                if serves == duty.server {
                    if let Some((since, _)) = duty.wrong.take() {
                        found.lengths.push(state.awake(since, now, Some(cpu)));
                    }
                } else if state
                    .processors
                    .get(cpu.index())
                    .is_some_and(|p| p.is_settling())
                {
                    duty.wrong = None;
                } else {
                    let (since, reported) = duty.wrong.get_or_insert((now, false));
                    if !*reported && state.awake(*since, until, Some(cpu)) > self.tolerance {
                        *reported = true;
                        let name = |s: Option<u32>| {
                            s.map_or("nobody".to_owned(), |s| format!("N{}", u64::from(s) + 1))
                        };
                        found.faults.push(Fault {
                            rule: "slot",
                            text: format!(
                                "{cpu:?} serves {} from {since} to {until}, its timetable says {}",
                                name(serves),
                                name(duty.server)
                            ),
                        });
                    }
                }
                now = until;
            }
        }
    }
}

impl Rule for Servers {
    fn begin(&mut self, state: &State) {
        for (task, t) in state.tasks.iter().enumerate() {
            if t.is_waiting() {
                self.wait(TaskId(task as u32), state);
            }
        }
    }

    fn event(&mut self, event: &Event, state: &State, found: &mut Found) {
        let task = event.task;
        let Some(cpu) = event.cpu() else { return };
        match event.kind {
            EventKind::ServerBegin | EventKind::ServerEnd => {
                let server = event.argument as usize;
                let Some(place) = self.served.get_mut(server) else {
                    found.faults.push(Fault {
                        rule: "slot",
                        text: "there is no such server".to_owned(),
                    });
                    return;
                };
                let begins = event.kind == EventKind::ServerBegin;
                if begins && let Some(elsewhere) = *place {
                    found.faults.push(Fault {
                        rule: "slot",
                        text: format!("N{} is served by {elsewhere:?} already", server + 1),
                    });
                }
                *place = begins.then_some(cpu);
                let cpus: &[CpuId] = if begins { &[cpu] } else { &[] };
                self.domains.move_to(server as u32, cpus);
            }
            EventKind::Release => {
                let t = &state.tasks[task.index()];
                if t.pending.len() == 1 && t.is_waiting() {
                    self.wait(task, state);
                }
            }
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                if let Some(key) = self.key(task, state) {
                    self.domains.run(cpu, key);
                }
                let server = self.server_of[task.index()];
                // Whom a processor switches to may be fixed before its server changes; it has to
                // switch again at once then.
                if !self.overheads && state.processors[cpu.index()].server != Some(server) {
                    found.faults.push(Fault {
                        rule: "place",
                        text: format!(
                            "task {} runs on {cpu:?}, which does not serve N{}",
                            task.0 + 1,
                            u64::from(server) + 1
                        ),
                    });
                }
            }
            EventKind::Preemption => {
                self.domains.stop(cpu);
                self.wait(task, state);
            }
            EventKind::Completion => {
                self.domains.stop(cpu);
                if state.tasks[task.index()].is_waiting() {
                    self.wait(task, state);
                }
            }
            EventKind::Suspension => self.domains.stop(cpu),
            EventKind::WakeUp => self.wait(task, state),
            EventKind::OverheadBegin | EventKind::OverheadEnd => {
                self.overheads = true;
                self.domains.touch_cpu(cpu);
            }
            _ => {}
        }
    }

    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        self.watch(from, to, state, found);
        // Whoever is on a processor belongs to the server that it serves.
        if state.is_simulated() {
            for duty in &self.duties {
                let Some(processor) = state.processors.get(duty.table.cpu.index()) else {
                    continue;
                };
                let server = processor.running.map(|task| self.server_of[task.index()]);
                if server.is_some() && server != processor.server && !processor.is_settling() {
                    found.faults.push(Fault {
                        rule: "place",
                        text: format!(
                            "a job stays on {:?} after its server has gone",
                            duty.table.cpu
                        ),
                    });
                }
            }
        }
        if self.overheads || !state.is_simulated() {
            for duty in &self.duties {
                let cpu = duty.table.cpu;
                let Some(processor) = state.processors.get(cpu.index()) else {
                    continue;
                };
                // A job that is on a processor, or that it is switching to, is out of reach of all
                // others until it lets go.
                let switching = processor
                    .overheads
                    .iter()
                    .filter_map(|open| match open.overhead {
                        Overhead::Scheduling | Overhead::ContextSwitch => {
                            open.job.map(|(task, _)| task)
                        }
                        _ => None,
                    });
                for task in processor.running.into_iter().chain(switching) {
                    if let Some(server) = self.server_of.get(task.index())
                        && self.served[*server as usize] != Some(cpu)
                    {
                        self.domains.leave_behind(*server);
                    }
                }
            }
        }
        let lengths = &mut found.lengths;
        self.domains
            .hold(from, to, state, &mut found.faults, &mut |d| {
                lengths.push(d);
            });
    }
}
