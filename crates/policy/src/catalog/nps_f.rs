//! NPS-F and C-NPS-F: tasks in servers, servers served in every slot by one processor or by two in
//! turn (002 §4.3).
//!
//! A server schedules its tasks by uniprocessor EDF whenever it is served; a server that moves to
//! another processor takes its running job along. Processors that are linked by a server are one
//! scheduling domain: under C-NPS-F no server leaves its cluster, and the domains follow.
//!
//! Assumes timetables in which no server is served twice at once; checked here.

use crate::catalog::{Info, Needs, Order, Tests};
use crate::cluster::{Edf, Rank};
use crate::plan::{Plan, Route, Setup};
use crate::queue::{Queue, task_of};
use crate::spec::Spec;
use crate::{
    Decisions, DomainId, Event, KeyedChange, KeyedServers, Keys, NONE, Place, Policy, ServerId,
};
use model::assignment::{Slots, Timetable};
use model::{Assignment, CpuId, CpuSet, Duration, Error, Instant, Result};

/// What is known of it.
pub static INFO: Info = Info {
    name: "nps-f",
    summary: "semi-partitioned EDF: tasks in servers, servers in the slots of processors",
    parameters: "`nps-f:delta=1`, up to 4 and more: slots per shortest period",
    keys: &["delta"],
    needs: |spec| needs(spec, None),
    order: |_| Ok(Order::Deadlines),
    hard: Tests::Named("NPS-F"),
    soft: Tests::Named("NPS-F"),
    canonical: |spec| canonical(spec, None),
    suggested: &["nps-f"],
    tried: &["nps-f"],
    ..Info::DEFAULT
};

/// Its state machine.
pub type Machine = NpsF;

/// Builds it.
pub fn plan(spec: &Spec, setup: &Setup<'_>) -> Result<Plan<Machine>> {
    let Some(Assignment::Slots(slots)) = setup.assignment else {
        return Err(Error::new(format!(
            "`{}` needs an assignment in slots",
            spec.info().name
        ))
        .remedy("assign the set first"));
    };
    let unfit = |cause: &str| {
        Err(spec
            .error(format!("the assignment {cause}"))
            .remedy("make the assignment for this set"))
    };
    let served = slots
        .timetables
        .iter()
        .flat_map(|t| &t.turns)
        .map(|turn| turn.server);
    let servers = slots
        .server_of
        .iter()
        .copied()
        .chain(served)
        .max()
        .map_or(0, |s| s as usize + 1);
    if slots.server_of.len() != setup.set.len() || slots.slot.is_zero() {
        return unfit("does not fit the set");
    }
    if servers.saturating_mul(setup.set.len()) > crate::plan::MAX_ENTRIES {
        return unfit("has too many servers for so many tasks");
    }
    if !is_sound(slots, servers) {
        return unfit("serves a server twice at once, or outside of the slot");
    }
    let components = components(slots, servers);
    let clusters: Vec<CpuSet> = components
        .iter()
        .map(|tables| tables.iter().map(|t| slots.timetables[*t].cpu).collect())
        .collect();
    let rank = Edf::new(setup.set.timings().iter().map(|t| t.deadline));
    let domains = setup.domains(&clusters, |index, cpus| {
        Ok(NpsF::new(
            slots,
            &components[index],
            cpus,
            rank.clone(),
            servers,
        ))
    })?;
    let domain_of = |server: u32| {
        let serves = |t: &usize| {
            slots.timetables[*t]
                .turns
                .iter()
                .any(|turn| turn.server == server)
        };
        components
            .iter()
            .position(|c| c.iter().any(serves))
            .map(|at| DomainId(at as u32))
    };
    let route: Option<Vec<DomainId>> = slots.server_of.iter().map(|s| domain_of(*s)).collect();
    match route {
        Some(route) => Ok(Plan {
            domains,
            route: Route::Fixed(route),
        }),
        None => unfit("has a server that no processor serves"),
    }
}

/// The assignment that is needed; `clusters`: servers stay within clusters around this cache level.
pub(super) fn needs(spec: &Spec, clusters: Option<model::ClusterSpec>) -> Result<Needs> {
    let delta = delta(spec)?;
    Ok(Needs::Slots { delta, clusters })
}

/// Slots per shortest period: at least one, and a number that servers' reserves still fit into.
fn delta(spec: &Spec) -> Result<u32> {
    match spec.parsed::<u16>("delta")? {
        Some(0) => Err(spec.error("`delta` is zero").remedy("write `delta=1`")),
        delta => Ok(u32::from(delta.unwrap_or(1))),
    }
}

/// The name with the clusters written out, and without a `delta` of one.
pub(super) fn canonical(spec: &Spec, clusters: Option<model::ClusterSpec>) -> Result<String> {
    let name = spec.info().name;
    Ok(match (clusters, delta(spec)?) {
        (None, 1) => name.to_owned(),
        (None, delta) => format!("{name}:delta={delta}"),
        (Some(clusters), 1) => format!("{name}:{clusters}"),
        (Some(clusters), delta) => format!("{name}:{clusters},delta={delta}"),
    })
}

/// In order, apart, within the slot; no server at two places at once.
fn is_sound(slots: &Slots, servers: usize) -> bool {
    let mut times = vec![Vec::new(); servers];
    for table in &slots.timetables {
        let mut after = Duration::ZERO;
        for turn in &table.turns {
            if turn.start < after || turn.start >= turn.end || turn.end > slots.slot {
                return false;
            }
            after = turn.end;
            if let Some(times) = times.get_mut(turn.server as usize) {
                times.push((turn.start, turn.end));
            }
        }
    }
    times.iter_mut().all(|times| {
        times.sort_unstable();
        times.windows(2).all(|w| w[0].1 <= w[1].0)
    })
}

/// The timetables in groups that share no server.
fn components(slots: &Slots, servers: usize) -> Vec<Vec<usize>> {
    let mut component: Vec<usize> = (0..slots.timetables.len()).collect();
    let mut first_of = vec![None; servers];
    for (t, table) in slots.timetables.iter().enumerate() {
        for turn in &table.turns {
            match first_of.get_mut(turn.server as usize) {
                Some(Some(first)) => {
                    let (from, to) = (component[t], component[*first]);
                    component
                        .iter_mut()
                        .filter(|c| **c == from)
                        .for_each(|c| *c = to);
                }
                Some(unseen) => *unseen = Some(t),
                None => {}
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for c in 0..component.len() {
        let group: Vec<usize> = (0..component.len())
            .filter(|t| component[*t] == c)
            .collect();
        if !group.is_empty() {
            groups.push(group);
        }
    }
    groups
}

/// From this offset in the slot on, a processor serves this server, or none ([`ServerId::NONE`]).
#[derive(Clone, Copy, Debug)]
struct Change {
    offset: u64,
    place: Place,
    server: ServerId,
}

/// Linked processors and their servers.
#[derive(Clone, Debug)]
pub struct NpsF {
    slot: u64,
    /// All changes of a slot, by offset; at least one at offset zero for every place.
    changes: Vec<Change>,
    /// The change that comes next, and the beginning of the slot that it is in.
    next: usize,
    slot_start: u64,
    rank: Edf,
    /// By task.
    server_of: Vec<ServerId>,
    /// By server: its ready jobs, the running one included.
    ready: Vec<Queue>,
    /// By server: the place that serves it, or [`Place::NONE`].
    place_of: Vec<Place>,
    /// By place: the server, or [`ServerId::NONE`].
    serving: Vec<ServerId>,
    /// By place: the task that runs, or [`NONE`].
    running: Vec<u32>,
    /// By place: the server that the timetable says, or [`ServerId::NONE`].
    due: Vec<ServerId>,
    /// Places to look at in this decision.
    touched: Vec<Place>,
    timer: bool,
}

impl NpsF {
    fn new(slots: &Slots, tables: &[usize], cpus: &[CpuId], rank: Edf, servers: usize) -> Self {
        let mut changes = Vec::new();
        for table in tables {
            let Timetable { cpu, turns } = &slots.timetables[*table];
            // Every processor of the component is in the domain.
            let place = Place(cpus.iter().position(|c| c == cpu).unwrap_or(0) as u32);
            let mut after = 0;
            for turn in turns {
                if turn.start.nanos() > after || (after == 0 && turn.start.nanos() > 0) {
                    changes.push(Change {
                        offset: after,
                        place,
                        server: ServerId::NONE,
                    });
                }
                changes.push(Change {
                    offset: turn.start.nanos(),
                    place,
                    server: ServerId(turn.server),
                });
                after = turn.end.nanos();
            }
            if after < slots.slot.nanos() {
                changes.push(Change {
                    offset: after,
                    place,
                    server: ServerId::NONE,
                });
            }
        }
        changes.sort_by_key(|c| (c.offset, c.place));
        let tasks = slots.server_of.len();
        // Queues are as large as the set only for the servers of this domain.
        let here = |server: usize| changes.iter().any(|c| c.server.index() == server);
        NpsF {
            slot: slots.slot.nanos(),
            next: 0,
            slot_start: 0,
            rank,
            server_of: slots.server_of.iter().map(|s| ServerId(*s)).collect(),
            ready: (0..servers)
                .map(|s| Queue::new(if here(s) { tasks } else { 0 }))
                .collect(),
            place_of: vec![Place::NONE; servers],
            serving: vec![ServerId::NONE; cpus.len()],
            running: vec![NONE; cpus.len()],
            due: vec![ServerId::NONE; cpus.len()],
            touched: Vec::with_capacity(changes.len() + tasks),
            timer: true,
            changes,
        }
    }

    /// Applies the changes that are due. Where several of a place are, because the engine comes
    /// late or the policy takes over from another one, only the latest counts. Those that leave a
    /// server are first, so that a server is never at two places.
    fn turn_over(&mut self, now: u64, out: &mut impl Decisions) {
        if now >= self.slot_start + self.slot {
            // Every slot begins with all places.
            (self.next, self.slot_start) = (0, now / self.slot * self.slot);
        }
        let from = self.next;
        let mut due = 0;
        while let Some(change) = self.changes.get(self.next)
            && self.slot_start + change.offset <= now
        {
            self.due[change.place.index()] = change.server;
            due += 1;
            self.next += 1;
            if self.next == self.changes.len() {
                self.next = 0;
                self.slot_start += self.slot;
            }
        }
        for leaving in [true, false] {
            for at in (from..self.changes.len()).chain(0..from).take(due) {
                let place = self.changes[at].place;
                let (before, server) = (self.serving[place.index()], self.due[place.index()]);
                if before == server {
                    continue;
                }
                if leaving && before != ServerId::NONE {
                    self.release(place, before, out);
                } else if !leaving && server != ServerId::NONE {
                    self.serving[place.index()] = server;
                    self.place_of[server.index()] = place;
                    self.touched.push(place);
                    out.serve(place, Some(server));
                }
            }
        }
    }

    /// A place ceases to serve a server.
    fn release(&mut self, place: Place, server: ServerId, out: &mut impl Decisions) {
        self.serving[place.index()] = ServerId::NONE;
        self.place_of[server.index()] = Place::NONE;
        if self.running[place.index()] != NONE {
            self.running[place.index()] = NONE;
            out.idle(place);
        }
        out.serve(place, None);
    }
}

impl Policy for NpsF {
    #[inline]
    fn happen(&mut self, event: Event, _now: Instant) {
        let (task, ready) = match event {
            Event::Ready(job) => (job.task, Some(self.rank.key(&job))),
            Event::Done(task) | Event::Exhausted(task) => (task, None),
            Event::Timer => {
                self.timer = true;
                return;
            }
        };
        let server = self.server_of[task.index()].index();
        let place = self.place_of[server];
        match ready {
            Some(key) => self.ready[server].push(key),
            None => {
                self.ready[server].remove(task);
                if place != Place::NONE && self.running[place.index()] == task.0 {
                    self.running[place.index()] = NONE;
                }
            }
        }
        if place != Place::NONE {
            self.touched.push(place);
        }
    }

    fn keys(&self) -> Option<Keys> {
        let change = |change: &Change| KeyedChange {
            offset: Duration::from_nanos(change.offset),
            place: change.place,
            server: (change.server != ServerId::NONE).then_some(change.server),
        };
        Some(Keys {
            servers: Some(KeyedServers {
                period: Duration::from_nanos(self.slot),
                server_of: self.server_of.clone(),
                changes: self.changes.iter().map(change).collect(),
            }),
            ..self.rank.keys()?
        })
    }

    fn decide(&mut self, now: Instant, out: &mut impl Decisions) {
        if std::mem::take(&mut self.timer) {
            self.turn_over(now.nanos(), out);
            if let Some(change) = self.changes.get(self.next) {
                out.wake(Instant::from_nanos(self.slot_start + change.offset));
            }
        }
        while let Some(place) = self.touched.pop() {
            let server = self.serving[place.index()];
            if server == ServerId::NONE {
                continue;
            }
            let best = self.ready[server.index()]
                .peek()
                .map_or(NONE, |key| task_of(key).0);
            if best != NONE && self.running[place.index()] != best {
                self.running[place.index()] = best;
                out.run(place, model::TaskId(best));
            }
        }
    }
}
