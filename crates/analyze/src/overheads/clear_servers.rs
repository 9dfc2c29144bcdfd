//! NPS-F and C-NPS-F with overheads, where the answer is clear: the verdict of [`super::nps_f`] in a
//! few operations for a placement, or none.
//!
//! For sets whose tasks all have the same cache delays, where no interrupt costs anything. A server
//! of A = Σ e/p and B = Σ 1/p, each job of which pays c, needs U = A + c·B and takes
//! I(δ, U)·S plus what its turns lose of every slot. These numbers are kept in floating point, and
//! every length as known to within a nanosecond a server; a comparison that this does not decide
//! leaves the whole set to the exact computation.
//!
//! What is mapped holds: a reserve of x = ⌈I(δ, U)·S⌉ besides what its turns lose has δ·x ≥ U·((δ +
//! 1)·S − x), and longer periods need less. So a set that can be mapped is accepted.

use super::System;
use super::bins::is_covered;
use crate::semi::nps_f::{Settings, slot};
use crate::verdict::Guarantee;
use model::{CpuId, Resumption, TaskId, Timing};

/// How far two lengths in nanoseconds must lie apart to be told apart where one is a sum of reserves
/// that are each known to within one, of at most so many servers.
const NEAR: f64 = 200.0;
const MOST_SERVERS: usize = 190;

/// The same where one reserve, before it is rounded up, meets whole nanoseconds: far above the
/// rounding of sums of a slot's length.
const ROUNDED: f64 = 1e-2;

/// The tasks of a server.
#[derive(Clone)]
struct Server {
    cluster: usize,
    count: usize,
    own: f64,
    rate: f64,
    /// The least p − e of its tasks.
    room: u64,
    /// What it takes of a slot if it is mapped as a whole.
    need: f64,
}

/// What a job and a turn pay, in nanoseconds.
#[derive(Clone, Copy)]
struct Price {
    alone: u64,
    /// More for a job that is not alone.
    shared: u64,
    turn: u64,
}

impl Price {
    /// Of tasks that resume in these ways; `is_split`: in a server on two processors.
    fn of(ways: &[Resumption], is_split: bool, system: &System<'_>) -> Price {
        let o = system.overheads;
        let delay = system.delays.longest(TaskId(0), ways).nanos();
        let calls = u64::from(is_split);
        // As `slots::Server::new` and `slots::switch` count them.
        let (decisions, turn) = match (system.counts(), is_split) {
            (Guarantee::Soft, _) => (2, (1, 1, calls)),
            (Guarantee::Hard, false) => (3, (2, 2, 0)),
            (Guarantee::Hard, true) => (4, (5, 4, 1)),
        };
        let sum = |(scheduling, switches, calls): (u64, u64, u64)| {
            o.scheduling.nanos() * scheduling
                + o.context_switch.nanos() * switches
                + o.ipi_latency.nanos() * calls
        };
        Price {
            alone: sum((decisions, decisions, calls)) + delay,
            shared: delay,
            turn: sum(turn) + delay,
        }
    }

    fn each(&self, count: usize) -> u64 {
        self.alone + if count > 1 { self.shared } else { 0 }
    }
}

/// Is `a` below `b`? `None`: too near.
fn is_below(a: f64, b: f64) -> Option<bool> {
    ((a - b).abs() > NEAR).then_some(a < b)
}

/// One set at one price.
struct Sizing<'a> {
    clusters: &'a [Vec<CpuId>],
    system: &'a System<'a>,
    slot: f64,
    delta: f64,
    shortest: f64,
    turn: f64,
    /// In a server as a whole, and in each cluster by the worst mapping.
    whole: Price,
    worst: Vec<Price>,
}

/// Does NPS-F accept the set, in these clusters? `None`: it is not clear.
pub fn accepts(
    tasks: &[Timing],
    clusters: &[Vec<CpuId>],
    settings: &Settings,
    system: &System<'_>,
) -> Option<bool> {
    let o = system.overheads;
    let interrupts = [o.release, o.tick].iter().any(|cost| !cost.is_zero());
    let longest = [o.scheduling, o.context_switch, o.ipi_latency];
    let is_long = longest.iter().any(|cost| cost.nanos() > 1 << 40);
    if interrupts || is_long || system.is_free() || !is_covered(system) || clusters.is_empty() {
        return None;
    }
    if tasks.iter().any(|t| t.wcet > t.period) {
        return Some(false);
    }
    let Some(slot) = slot(tasks, settings.delta) else {
        return Some(false);
    };
    if slot < settings.shortest || slot.is_zero() || settings.delta >= 1 << 16 {
        return Some(false);
    }
    let sizing = Sizing {
        clusters,
        system,
        slot: slot.nanos() as f64,
        delta: f64::from(settings.delta),
        shortest: settings.shortest.nanos() as f64,
        turn: settings.turn.nanos().max(1) as f64,
        whole: Price::of(&[Resumption::Preemption], false, system),
        worst: clusters
            .iter()
            .map(|cpus| Price::of(&system.ways(cpus.iter().copied()), true, system))
            .collect(),
    };
    let mut order = Vec::new();
    settings.order.sort(tasks, &mut order);
    match sizing.pack(tasks, &order)? {
        Some(servers) => sizing.map(&servers),
        None => Some(false),
    }
}

impl Sizing<'_> {
    /// I(δ, U)·S and what `turns` lose, of which a nanosecond may be lacking.
    fn reserve(&self, server: &Server, price: &Price, turns: f64) -> f64 {
        let u = server.own + price.each(server.count) as f64 * server.rate;
        let inflated = (self.delta + 1.0) * u / (u + self.delta);
        let length = inflated * self.slot + price.turn as f64 * turns;
        // The shortest counts what its turns lose as well.
        length.max(self.shortest)
    }

    /// Does a server fit into its slot in the worst mapping?
    fn fits(&self, server: &Server) -> Option<bool> {
        let price = &self.worst[server.cluster];
        if price.each(server.count) > server.room {
            return Some(false);
        }
        // A server within its slot asks for no more than a processor: a turn costs something.
        let length = self.reserve(server, price, 2.0);
        if length <= self.shortest {
            return Some(true);
        }
        let distance = self.slot - length;
        (distance.abs() > ROUNDED).then_some(distance > 0.0)
    }

    /// First fit. `Some(None)`: some task fits nowhere.
    fn pack(&self, tasks: &[Timing], order: &[u32]) -> Option<Option<Vec<Server>>> {
        let is_clustered = self.clusters.len() > 1;
        let mut left: Vec<f64> = self
            .clusters
            .iter()
            .map(|cpus| cpus.len() as f64 * self.slot)
            .collect();
        let most = 2 * self.clusters.iter().map(Vec::len).sum::<usize>();
        let mut servers: Vec<Server> = Vec::new();
        'tasks: for index in order {
            let t = &tasks[*index as usize];
            let (wcet, period) = (t.wcet.nanos(), t.period.nanos().max(1));
            let (own, rate) = (wcet as f64 / period as f64, 1.0 / period as f64);
            for server in &mut servers {
                if server.own + own > 1.0 + 1e-9 {
                    continue;
                }
                let mut with = Server {
                    count: server.count + 1,
                    own: server.own + own,
                    rate: server.rate + rate,
                    room: server.room.min(period - wcet),
                    ..*server
                };
                if !self.fits(&with)? {
                    continue;
                }
                with.need = self.reserve(&with, &self.whole, 1.0);
                let free = left[server.cluster] + server.need;
                if is_clustered && !is_below(with.need, free)? {
                    continue;
                }
                left[server.cluster] = free - with.need;
                *server = with;
                continue 'tasks;
            }
            if !is_clustered && servers.len() > most || servers.len() > MOST_SERVERS {
                return (servers.len() <= MOST_SERVERS).then_some(None);
            }
            let mut found = false;
            for (cluster, left) in left.iter_mut().enumerate() {
                let mut server = Server {
                    cluster,
                    count: 1,
                    own,
                    rate,
                    room: period - wcet,
                    need: 0.0,
                };
                server.need = self.reserve(&server, &self.whole, 1.0);
                if self.fits(&server)? && (!is_clustered || is_below(server.need, *left)?) {
                    *left -= server.need;
                    servers.push(server);
                    found = true;
                    break;
                }
            }
            if !found {
                return Some(None);
            }
        }
        Some(Some(servers))
    }

    /// Server after server on processor after processor, each cluster by itself.
    fn map(&self, servers: &[Server]) -> Option<bool> {
        for (cluster, cpus) in self.clusters.iter().enumerate() {
            let (mut at, mut start) = (0, 0.0);
            for server in servers.iter().filter(|server| server.cluster == cluster) {
                if is_below(self.slot - start, self.turn)? {
                    (at, start) = (at + 1, 0.0);
                }
                match self.lay(server, cpus, at, start)? {
                    Some(next) => (at, start) = next,
                    None => return Some(false),
                }
            }
        }
        Some(true)
    }

    /// Where the next server begins, behind this one; `Some(None)`: it does not fit.
    fn lay(
        &self,
        server: &Server,
        cpus: &[CpuId],
        mut at: usize,
        mut start: f64,
    ) -> Option<Option<(usize, f64)>> {
        loop {
            let Some(here) = cpus.get(at) else {
                return Some(None);
            };
            let left = self.slot - start;
            if is_below(server.need, left)? {
                return Some(Some((at, start + server.need)));
            }
            let Some(next) = cpus.get(at + 1) else {
                return Some(None);
            };
            let ways = [Resumption::Preemption, self.system.resumption(*here, *next)];
            let price = Price::of(&ways, true, self.system);
            let length = self.reserve(server, &price, 2.0);
            if price.each(server.count) > server.room || !is_below(length, self.slot)? {
                return Some(None);
            }
            if is_below(left, price.turn as f64)? {
                (at, start) = (at + 1, 0.0);
                continue;
            }
            // Above the length that it would have as a whole by less than it has.
            if !is_below(left, length - 1.0)? {
                return None;
            }
            let second = (length - left).max(self.turn);
            if !is_below(second, self.slot - left)? {
                return Some(None);
            }
            return Some(Some((at + 1, second)));
        }
    }
}
