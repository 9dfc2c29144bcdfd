//! NPS-F and its clustered variant C-NPS-F: hard real time; tasks in servers, servers in a slot
//! that repeats.
//!
//! 002 §4.3; Bletsas, Andersson 2009 and 2011. Implicit deadlines. First fit puts tasks into
//! servers of capacity one; a server of utilization U is inflated to I(δ, U) = (δ + 1) U / (U + δ)
//! and runs for I S of every slot of length S = min p / δ, by EDF within. Servers are laid out
//! processor after processor; one that crosses the end of a processor goes on at the start of the
//! next one's slot, where it runs first. Feasible iff Σ I ≤ m. C-NPS-F keeps each server within a
//! cluster and counts Σ I per cluster while it packs (002 §4.3: the layout is considered in the
//! first step).
//!
//! The slot is rounded down and reserves are rounded up to whole nanoseconds: a set within rounding
//! of the bound is refused. No reserve is shorter than [`Settings::shortest`], and no turn of one
//! is shorter than [`Settings::turn`].

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::partition::Order;
use crate::verdict::{self, Decision, Exactness, Guarantee};
use model::assignment::{Serve, Slots, Timetable};
use model::{CpuId, Duration, Ratio, Timing, exact};
use num_integer::Integer;
use num_traits::ToPrimitive;

/// What may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// δ: more slots a period, less inflation. 1 is best with overheads (002 Obs. 6.4.1).
    pub delta: u32,
    /// In which order tasks are placed.
    pub order: Order,
    /// No reserve is shorter.
    pub shortest: Duration,
    /// No turn of a reserve that two processors share is shorter.
    pub turn: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            delta: 1,
            order: Order::Given,
            shortest: super::SHORTEST_RESERVE,
            turn: super::SHORTEST_SLICE,
        }
    }
}

/// Why there is no assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// This task (index, from 0) needs more than a processor, or fits in no server and no new one.
    Task(u32),
    /// The servers need more than the processors have.
    Servers,
    /// δ is zero or above 65535, there is no task, or the slot is shorter than the shortest
    /// reserve.
    Slot,
}

/// Utilizations in units of 2^-44, rounded up: S (δ + 1) u stays below 2^128 for any slot and δ <
/// 2^16.
pub(crate) const ONE: u64 = 1 << 44;

pub(crate) fn scaled(t: &Timing) -> u64 {
    let (e, p) = (t.wcet.nanos(), t.period.nanos().max(1));
    // The quotient is at most ONE: e ≤ p here.
    (u128::from(e) * u128::from(ONE)).div_ceil(u128::from(p)) as u64
}

/// The load of a server that one task of `u` joins, in units of [`ONE`]; `None` where that is more
/// than one processor.
///
/// Loads are above the true sum by less than a unit a member. Only where that decides are the
/// `count` `utilizations`, the newcomer's among them, added exactly.
pub(crate) fn joined(
    load: u64,
    u: u64,
    count: u64,
    utilizations: impl Iterator<Item = Ratio> + Clone,
) -> Option<u64> {
    let sum = load + u;
    if sum <= ONE {
        return Some(sum);
    }
    let is_close = sum - ONE < count;
    (is_close && exact::cmp_sum(utilizations, Ratio::ONE).is_le()).then_some(ONE)
}

/// The length of slots: S = min p / δ, rounded down; `None` without tasks or δ.
pub fn slot(tasks: &[Timing], delta: u32) -> Option<Duration> {
    let shortest = tasks.iter().map(|t| t.period.nanos()).min()?;
    Some(Duration::from_nanos(
        shortest.checked_div(u64::from(delta))?,
    ))
}

/// The reserve of a server of utilization `u` (in units of [`ONE`]): ⌈I(δ, u) S⌉.
pub(crate) fn length(slot: Duration, delta: u32, u: u64) -> u64 {
    let (s, delta) = (u128::from(slot.nanos()), u128::from(delta));
    let inflated = s * (delta + 1) * u128::from(u);
    // At most s, because u ≤ 1.
    inflated
        .div_ceil(u128::from(u) + delta * u128::from(ONE))
        .min(s) as u64
}

/// [`length`] of the true utilization of `count` members. `u` is above it by less than one unit a
/// member; only where that matters is it added exactly.
pub(crate) fn exact_length(
    slot: Duration,
    delta: u32,
    u: u64,
    count: u32,
    utilizations: impl Iterator<Item = Ratio>,
) -> u64 {
    let (s, d) = (u128::from(slot.nanos()), u128::from(delta));
    let (above, below) = (
        s * (d + 1) * u128::from(u),
        u128::from(u) + d * u128::from(ONE),
    );
    let quotient = above / below;
    let rest = above - quotient * below;
    let high = (quotient + u128::from(rest > 0)).min(s) as u64;
    // I(δ, u) grows by less than (δ + 1) / δ a u, so that the quotient grows by less than this much
    // of its remainder.
    let error = (s * (d + 1) * (d + 1) / d.max(1) + 1) * u128::from(count);
    if rest == 0 || rest > error {
        return high;
    }
    // With u = n / d it is (δ + 1) S n / (n + δ d): to reduce n / d would take longest, and changes
    // nothing.
    let (n, d) = exact::sum_unreduced(utilizations);
    let above = &n * slot.nanos() * (u64::from(delta) + 1);
    let below = n + d * delta;
    above.div_ceil(&below).to_u64().unwrap_or(high).min(high)
}

/// The servers of every task and their reserves; `clusters` are processors in the order of the
/// layout, one list for NPS-F.
///
/// # Errors
/// See [`Refusal`]. Deadlines are not looked at.
pub fn assign(
    tasks: &[Timing],
    clusters: &[Vec<CpuId>],
    settings: &Settings,
) -> Result<Slots, Refusal> {
    let empty = |cpu: &CpuId| Timetable {
        cpu: *cpu,
        turns: Vec::new(),
    };
    let mut timetables: Vec<Timetable> = clusters.iter().flatten().map(empty).collect();
    let sizes: Vec<usize> = clusters.iter().map(Vec::len).collect();
    let (slot, server_of) = lay_out(tasks, &sizes, settings, |cpu, turn| {
        timetables[cpu].turns.push(turn)
    })?;
    Ok(Slots {
        slot,
        server_of,
        timetables,
    })
}

/// The slot and the server of every task; every turn of a server is given to `serve` with its
/// processor, by place in the layout of all clusters. Of these it needs only the sizes.
fn lay_out(
    tasks: &[Timing],
    sizes: &[usize],
    settings: &Settings,
    mut serve: impl FnMut(usize, Serve),
) -> Result<(Duration, Vec<u32>), Refusal> {
    if let Some(heavy) = tasks.iter().position(|t| t.wcet > t.period) {
        return Err(Refusal::Task(heavy as u32));
    }
    let slot = slot(tasks, settings.delta).ok_or(Refusal::Slot)?;
    if slot < settings.shortest || slot.is_zero() || settings.delta >= 1 << 16 {
        return Err(Refusal::Slot);
    }
    let mut order = Vec::new();
    settings.order.sort(tasks, &mut order);
    let mut packing = Packing {
        slot,
        settings,
        room: sizes
            .iter()
            .map(|cpus| *cpus as u128 * u128::from(slot.nanos()))
            .collect(),
        loads: Vec::new(),
        counts: Vec::new(),
        cluster_of: Vec::new(),
        most: 2 * sizes.iter().sum::<usize>(),
    };
    let mut server_of = vec![u32::MAX; tasks.len()];
    for index in order {
        let new = &tasks[index as usize];
        let members = |server: u32| {
            let all = server_of
                .iter()
                .zip(tasks)
                .filter(move |(s, _)| **s == server);
            all.map(|(_, t)| t.utilization()).chain([new.utilization()])
        };
        let server = packing
            .place(scaled(new), members)
            .ok_or(Refusal::Task(index))?;
        server_of[index as usize] = server;
    }
    if packing.room.is_empty() {
        return Err(Refusal::Servers);
    }
    let mut before = 0;
    for (cluster, cpus) in sizes.iter().enumerate() {
        let mut layout = Layout {
            cpus: *cpus,
            slot: slot.nanos(),
            shortest: settings.turn.nanos().max(1),
            at: 0,
            start: 0,
            serve: |cpu: usize, turn| serve(before + cpu, turn),
        };
        for (server, load) in packing.loads.iter().enumerate() {
            if packing.cluster_of[server] == cluster {
                let members = server_of
                    .iter()
                    .zip(tasks)
                    .filter(|(s, _)| **s == server as u32);
                let count = packing.counts[server];
                let utilizations = members.map(|(_, t)| t.utilization());
                let length = exact_length(slot, settings.delta, *load, count, utilizations);
                let length = length.max(settings.shortest.nanos());
                layout.add(server as u32, length).ok_or(Refusal::Servers)?;
            }
        }
        before += cpus;
    }
    Ok((slot, server_of))
}

/// First fit into servers. With several clusters the sum of reserves of each is watched, too; with
/// one the layout shows it.
struct Packing<'a> {
    slot: Duration,
    settings: &'a Settings,
    /// Reserves that each cluster still holds, in nanoseconds a slot.
    room: Vec<u128>,
    loads: Vec<u64>,
    counts: Vec<u32>,
    cluster_of: Vec<usize>,
    /// Any two servers together hold more than one processor's worth, or they would be one: 2 m + 1
    /// are too many for m. In clusters a full one may force a new server elsewhere, so that there
    /// the room decides.
    most: usize,
}

impl Packing<'_> {
    fn length(&self, load: u64) -> u64 {
        length(self.slot, self.settings.delta, load).max(self.settings.shortest.nanos())
    }

    /// The server that a task joins; `members` are the utilizations in a server that it would join,
    /// with its own.
    fn place<M: Iterator<Item = Ratio> + Clone>(
        &mut self,
        u: u64,
        members: impl Fn(u32) -> M,
    ) -> Option<u32> {
        let clustered = self.room.len() > 1;
        for server in 0..self.loads.len() {
            let load = self.loads[server];
            let count = u64::from(self.counts[server]) + 1;
            let Some(with) = joined(load, u, count, members(server as u32)) else {
                continue;
            };
            if clustered {
                let more = u128::from(self.length(with).saturating_sub(self.length(load)));
                let room = &mut self.room[self.cluster_of[server]];
                match room.checked_sub(more) {
                    Some(left) => *room = left,
                    None => continue,
                }
            }
            self.loads[server] = with;
            self.counts[server] += 1;
            return Some(server as u32);
        }
        let mut cluster = 0;
        if !clustered && self.loads.len() > self.most {
            return None;
        }
        if clustered {
            let need = u128::from(self.length(u));
            cluster = self.room.iter().position(|room| need <= *room)?;
            self.room[cluster] -= need;
        }
        self.loads.push(u);
        self.counts.push(1);
        self.cluster_of.push(cluster);
        Some(self.loads.len() as u32 - 1)
    }
}

/// Lays reserves on processors, one after the other.
struct Layout<F> {
    cpus: usize,
    slot: u64,
    /// The shortest turn.
    shortest: u64,
    at: usize,
    start: u64,
    serve: F,
}

impl<F: FnMut(usize, Serve)> Layout<F> {
    fn serve(&mut self, server: u32, length: u64) -> Option<()> {
        if self.at >= self.cpus {
            return None;
        }
        let end = self.start + length;
        let turn = Serve {
            start: Duration::from_nanos(self.start),
            end: Duration::from_nanos(end),
            server,
        };
        (self.serve)(self.at, turn);
        self.start = end;
        Some(())
    }

    /// Serves one more server for `length` of every slot. `None`: it does not fit.
    fn add(&mut self, server: u32, length: u64) -> Option<()> {
        // What is too short to be policed is left idle.
        if self.slot - self.start < self.shortest {
            (self.at, self.start) = (self.at + 1, 0);
        }
        let here = length.min(self.slot - self.start);
        self.serve(server, here)?;
        if here < length {
            // It runs first on the next processor and comes back at the end of the slot: no longer
            // than until then.
            let there = (length - here).max(self.shortest);
            if there > self.slot - here {
                return None;
            }
            (self.at, self.start) = (self.at + 1, 0);
            self.serve(server, there)?;
        }
        Some(())
    }
}

const fn info(
    name: &'static str,
    policy: &'static str,
    about: &'static str,
    run: fn(&[Timing], u32) -> Decision,
) -> TestInfo {
    TestInfo {
        name,
        policy,
        guarantee: Guarantee::Hard,
        exactness: Exactness::Sufficient,
        source: "002 §4.3; Bletsas, Andersson 2011",
        preconditions: "implicit deadlines",
        about,
        run,
        run_inflated: None,
        on_grid: None,
        carries: Carries::Nothing,
    }
}

/// NPS-F with δ = 1.
pub const INFO: TestInfo = info(
    "NPS-F",
    "nps-f",
    "First fit into servers of capacity one; accepted if the inflated servers (δ = 1) fit on the processors one after the other, \
     no reserve below 150 us (002 §5.1.2).",
    |tasks, m| decide(tasks, &[m as usize]),
);

/// C-NPS-F with δ = 1, clusters of two processors.
pub const CLUSTERED: TestInfo = info(
    "C-NPS-F",
    "c-nps-f",
    "NPS-F within clusters, here of two neighboring processors (an odd last one by itself): no server crosses between them.",
    |tasks, m| {
        let mut sizes = vec![2; m as usize / 2];
        sizes.extend((m % 2 == 1).then_some(1));
        decide(tasks, &sizes)
    },
);

fn decide(tasks: &[Timing], sizes: &[usize]) -> Decision {
    verdict::implicit_deadlines(tasks)?;
    Ok(lay_out(tasks, sizes, &Settings::default(), |_, _| {}).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_rational::BigRational;
    use testing::random::Random;

    /// By the formula, in fractions that are reduced. Slots are so long that what rounding adds to
    /// a load is more than a nanosecond of the reserve.
    #[test]
    fn reserves_are_those_of_the_formula() {
        let mut random = Random::new(1);
        let mut lower = 0;
        for _ in 0..2_000 {
            let count = random.among(1, 12);
            let members: Vec<Timing> = (0..count)
                .map(|_| {
                    let period = random.among(1_000, 1_000_000_007);
                    let wcet = random.among(1, period / count);
                    Timing::implicit(Duration::from_nanos(wcet), Duration::from_nanos(period))
                })
                .collect();
            let delta = random.among(1, 6) as u32;
            let slot = Duration::from_nanos(random.among(1, 1 << 40));
            let load = members.iter().map(scaled).sum();
            let all = || members.iter().map(Timing::utilization);
            let reserve = exact_length(slot, delta, load, count as u32, all());
            let whole = |n: u64| BigRational::from_integer(n.into());
            let (u, delta_big) = (exact::sum(all()), whole(delta.into()));
            let inflated = (&delta_big + whole(1)) * &u / (u + delta_big) * whole(slot.nanos());
            let wanted = inflated.ceil().to_integer().to_u64();
            assert_eq!(Some(reserve), wanted, "{members:?} {slot} {delta}");
            lower += u32::from(reserve < length(slot, delta, load));
        }
        assert!(lower > 0, "the rounded load decides all of them");
    }
}
