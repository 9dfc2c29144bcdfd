//! NPS-F and C-NPS-F with overheads: servers are packed for the worst case, and mapped with what
//! they really cost.
//!
//! 002 §4.3 and §6.1. Before the mapping nobody knows which servers will be split: while tasks are
//! packed, every job counts as one that migrates the farthest that its cluster allows, and every
//! server as handed over in each slot, so that none outgrows its slot later. In the mapping that
//! pessimism goes: a server that fits as a whole pays for preemptions and its own switch only, a
//! split one for the migration between its two processors.
//!
//! Which releases of other servers' tasks interrupt a server follows from the mapping, too. It
//! begins with none; while a server turns out to have neighbors that it was not sized for, it is
//! sized anew with those and everything is mapped again. What comes out has been checked as a whole
//! ([`super::holds`]).

use super::System;
use super::slots::{self, Server};
use crate::semi::nps_f::{ONE, Refusal, Settings, exact_length, joined, length, scaled, slot};
use model::assignment::{Serve, Slots, Timetable};
use model::{CpuId, Duration, Ratio, Resumption, TaskId, Timing};

/// The servers of every task and their reserves, with overheads; `clusters` are processors in the
/// order of the layout, one list for NPS-F. Each placement accounts for its server anew: the time
/// grows with the square of the tasks of a server.
///
/// # Errors
/// See [`Refusal`]. Deadlines are not looked at.
pub fn assign(
    tasks: &[Timing],
    clusters: &[Vec<CpuId>],
    settings: &Settings,
    system: &System<'_>,
) -> Result<Slots, Refusal> {
    if let Some(heavy) = tasks.iter().position(|t| t.wcet > t.period) {
        return Err(Refusal::Task(heavy as u32));
    }
    let slot = slot(tasks, settings.delta).ok_or(Refusal::Slot)?;
    if slot < settings.shortest || slot.is_zero() || settings.delta >= 1 << 16 {
        return Err(Refusal::Slot);
    }
    let sizing = Sizing {
        tasks,
        clusters,
        ways: clusters
            .iter()
            .map(|c| system.ways(c.iter().copied()))
            .collect(),
        slot,
        settings,
        system,
    };
    let servers = sizing.pack()?;
    let mut neighbors: Vec<Vec<TaskId>> = vec![Vec::new(); servers.len()];
    for _ in 0..MAPPINGS {
        let slots = sizing.map(&servers, &neighbors).ok_or(Refusal::Servers)?;
        let laid = slots::lay(tasks, &slots, system);
        let mut is_sound = true;
        for (laid, known) in laid.iter().zip(&mut neighbors) {
            if !slots::is_supplied(tasks, laid, slot, system) {
                is_sound = false;
                known.extend_from_slice(&laid.foreign);
                known.sort_unstable();
                known.dedup();
            }
        }
        if is_sound {
            return Ok(slots);
        }
    }
    Err(Refusal::Servers)
}

/// How often servers are sized anew because of the neighbors that they got.
const MAPPINGS: usize = 8;

/// The tasks of a server, its cluster, and what it takes of a slot there.
struct Packed {
    members: Vec<TaskId>,
    cluster: usize,
    load: u64,
    need: u64,
    /// The utilization of its processor that the worst mapping costs, in units of [`ONE`].
    worst: u64,
}

struct Sizing<'a> {
    tasks: &'a [Timing],
    clusters: &'a [Vec<CpuId>],
    /// How a job may resume in each cluster, at worst.
    ways: Vec<Vec<Resumption>>,
    slot: Duration,
    settings: &'a Settings,
    system: &'a System<'a>,
}

impl Sizing<'_> {
    /// The reserve of a server on `turns` processors, not below the shortest. `None`: it needs more
    /// than a processor.
    fn reserve(&self, server: &Server, foreign: &[TaskId], turns: u64) -> Option<u64> {
        if server.costs.iter().any(|(t, _)| t.wcet > t.period) {
            return None;
        }
        let foreign: Vec<Timing> = foreign.iter().map(|t| self.tasks[t.index()]).collect();
        let demand = server.demand(&foreign, self.system);
        let load = demand
            .clone()
            .map(|u| u128::from(scaled_ratio(u)))
            .sum::<u128>();
        let count = demand.clone().count() as u32;
        let load = joined(0, u64::try_from(load).ok()?, count.into(), demand.clone())?;
        let net = exact_length(self.slot, self.settings.delta, load, count, demand);
        let fixed = server
            .switch
            .total()
            .nanos()
            .saturating_add(ticks_besides(self.system));
        let net = net.saturating_add(fixed.saturating_mul(turns));
        // Longer by the ticks that come within, which are more the longer it is.
        let slot = self.slot.nanos();
        let mut length = net;
        loop {
            let next = net.saturating_add(ticks_within(length, self.system));
            if next <= length || next > slot {
                length = length.max(next);
                break;
            }
            length = next;
        }
        let length = length.max(self.settings.shortest.nanos());
        (length <= slot).then_some(length)
    }

    fn server(&self, members: &[TaskId], ways: &[Resumption], is_split: bool) -> Server {
        Server::new(self.tasks, members.to_vec(), ways, is_split, self.system)
    }

    /// First fit, every job a migrating one.
    fn pack(&self) -> Result<Vec<Packed>, Refusal> {
        let mut order = Vec::new();
        self.settings.order.sort(self.tasks, &mut order);
        let is_clustered = self.clusters.len() > 1;
        let mut room: Vec<u128> = self
            .clusters
            .iter()
            .map(|c| c.len() as u128 * u128::from(self.slot.nanos()))
            .collect();
        if room.is_empty() {
            return Err(Refusal::Servers);
        }
        let most = 2 * self.clusters.iter().map(Vec::len).sum::<usize>();
        let mut servers: Vec<Packed> = Vec::new();
        for index in order {
            let task = TaskId(index);
            let u = scaled(&self.tasks[index as usize]);
            let mut is_placed = false;
            for server in &mut servers {
                if server.worst + u > ONE && !self.system.is_free() {
                    continue;
                }
                let count = server.members.len() as u64 + 1;
                let members = server.members.iter().chain([&task]);
                let utilizations = members.map(|t| self.tasks[t.index()].utilization());
                let before = server.load;
                let Some(load) = joined(before, u, count, utilizations) else {
                    continue;
                };
                server.members.push(task);
                server.load = load;
                let left = &mut room[server.cluster];
                if let Some((need, worst)) = self.need(server)
                    && (!is_clustered || u128::from(need) <= *left + u128::from(server.need))
                {
                    *left = (*left + u128::from(server.need)).saturating_sub(u128::from(need));
                    (server.need, server.worst) = (need, worst);
                    is_placed = true;
                    break;
                }
                server.members.pop();
                server.load = before;
            }
            if is_placed {
                continue;
            }
            if !is_clustered && servers.len() > most {
                return Err(Refusal::Task(index));
            }
            let alone = |cluster| Packed {
                members: vec![task],
                cluster,
                load: u,
                need: 0,
                worst: 0,
            };
            let found = (0..self.clusters.len()).find_map(|cluster| {
                let server = alone(cluster);
                let (need, worst) = self.need(&server)?;
                let fits = !is_clustered || u128::from(need) <= room[cluster];
                fits.then_some(Packed {
                    need,
                    worst,
                    ..server
                })
            });
            let server = found.ok_or(Refusal::Task(index))?;
            let left = &mut room[server.cluster];
            *left = left.saturating_sub(u128::from(server.need));
            servers.push(server);
        }
        Ok(servers)
    }

    /// What a server takes of a slot if it is mapped as a whole, and what it uses at worst. `None`:
    /// handed over in every slot it would outgrow it.
    fn need(&self, server: &Packed) -> Option<(u64, u64)> {
        if self.system.is_free() {
            let net = length(self.slot, self.settings.delta, server.load);
            return Some((net.max(self.settings.shortest.nanos()), server.load));
        }
        let worst = self.server(&server.members, &self.ways[server.cluster], true);
        self.reserve(&worst, &[], 2)?;
        let used = worst
            .demand(&[], self.system)
            .map(scaled_ratio)
            .map(u128::from)
            .sum::<u128>();
        // Roundings of a unit each must not refuse what fits exactly.
        let used = u64::try_from(used)
            .ok()?
            .saturating_sub(server.members.len() as u64 + 1);
        let best = self.server(&server.members, &[Resumption::Preemption], false);
        Some((self.reserve(&best, &[], 1)?, used))
    }

    /// Server after server on processor after processor, each cluster by itself.
    fn map(&self, servers: &[Packed], neighbors: &[Vec<TaskId>]) -> Option<Slots> {
        let mut server_of = vec![0; self.tasks.len()];
        let mut timetables = Vec::new();
        for (cluster, cpus) in self.clusters.iter().enumerate() {
            let mut layout = Layout::new(cpus);
            for (index, server) in servers.iter().enumerate() {
                if server.cluster == cluster {
                    self.lay(&mut layout, index as u32, server, &neighbors[index])?;
                }
                for task in &server.members {
                    server_of[task.index()] = index as u32;
                }
            }
            timetables.append(&mut layout.timetables);
        }
        Some(Slots {
            slot: self.slot,
            server_of,
            timetables,
        })
    }

    fn lay(
        &self,
        layout: &mut Layout,
        index: u32,
        server: &Packed,
        foreign: &[TaskId],
    ) -> Option<()> {
        let (slot, shortest) = (self.slot.nanos(), self.settings.turn.nanos().max(1));
        // What is too short to be policed is left idle.
        if slot - layout.start < shortest {
            layout.next();
        }
        loop {
            let whole = self.server(&server.members, &[Resumption::Preemption], false);
            let left = slot - layout.start;
            if let Some(length) = self.reserve(&whole, foreign, 1)
                && length <= left
            {
                return layout.serve(index, length);
            }
            let (here, next) = (layout.cpu(0)?, layout.cpu(1)?);
            let way = self.system.resumption(here, next);
            let split = self.server(&server.members, &[Resumption::Preemption, way], true);
            let length = self.reserve(&split, foreign, 2)?;
            let switch = split.switch.total().nanos();
            // A turn that is lost in switching is none.
            if left <= switch {
                layout.next();
                continue;
            }
            let first = left.min(length.saturating_sub(1)).max(1);
            // It runs first on the next processor and comes back at the end of the slot: no longer
            // than until then.
            let second = length.saturating_sub(first).max(shortest);
            if second > slot - first {
                return None;
            }
            layout.serve(index, first)?;
            layout.next();
            return layout.serve(index, second);
        }
    }
}

/// The ticks that hit a reserve of this length in any number of turns are at most these, and
/// [`ticks_besides`] for each turn.
fn ticks_within(length: u64, system: &System<'_>) -> u64 {
    let (tick, period) = (
        system.overheads.tick.nanos(),
        system.overheads.tick_period.nanos(),
    );
    tick.saturating_mul(length / period.max(1))
}

fn ticks_besides(system: &System<'_>) -> u64 {
    let (tick, period) = (
        system.overheads.tick.nanos(),
        system.overheads.tick_period.nanos(),
    );
    tick.saturating_mul(tick.div_ceil(period.max(1)) + 2)
}

fn scaled_ratio(u: Ratio) -> u64 {
    if u > Ratio::ONE {
        return ONE + 1;
    }
    scaled(&Timing::implicit(
        Duration::from_nanos(u.num()),
        Duration::from_nanos(u.den()),
    ))
}

/// Reserves on processors, one after the other.
struct Layout {
    timetables: Vec<Timetable>,
    at: usize,
    start: u64,
}

impl Layout {
    fn new(cpus: &[CpuId]) -> Self {
        let empty = |cpu: &CpuId| Timetable {
            cpu: *cpu,
            turns: Vec::new(),
        };
        Layout {
            timetables: cpus.iter().map(empty).collect(),
            at: 0,
            start: 0,
        }
    }

    fn next(&mut self) {
        (self.at, self.start) = (self.at + 1, 0);
    }

    fn cpu(&self, further: usize) -> Option<CpuId> {
        self.timetables.get(self.at + further).map(|t| t.cpu)
    }

    fn serve(&mut self, server: u32, length: u64) -> Option<()> {
        let end = self.start + length;
        self.timetables.get_mut(self.at)?.turns.push(Serve {
            start: Duration::from_nanos(self.start),
            end: Duration::from_nanos(end),
            server,
        });
        self.start = end;
        Some(())
    }
}
