//! What servers in slots cost: NPS-F and C-NPS-F.
//!
//! 002 §6.1: server switches reduce the capacity that a server has for its tasks; a split server is
//! handed over by an IPI, and its tasks resume after a migration between its two processors, the
//! others after a preemption. No timers are transferred (002 §2.4).
//!
//! A server is uniprocessor EDF on less than a processor. Within an interval L that is not shorter
//! than its shortest period, its jobs, and the releases that interrupt it, ask for at most U L with
//!
//! U = Σ c / p + Σ Δrel / p + Σ Δrel / min p,
//!
//! the first sum over its own tasks (c: execution with what a job brings about by itself), the
//! others over all tasks whose servers share a processor with it; the last one is for the release
//! of each that begins the interval. Each of its turns in a slot loses the time to switch to it and
//! the ticks. What is left of its reserve, x of every slot S, supplies U L if δ x ≥ U ((δ + 1) S −
//! x) with δ = ⌊min p / S⌋, which is the inflation of NPS-F solved for U (002 §4.3).

use super::System;
use super::account::{Accounted, Piece, Place, by_task};
use super::accounting::{Resident, disturbed, own_of};
use super::kinds::{Kind, Lost, Parts};
use crate::verdict::Guarantee;
use model::assignment::Slots;
use model::{CpuId, CpuSet, Duration, Ratio, Resumption, TaskId, Timing, exact};

/// A server: its tasks, and how they can resume.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub members: Vec<TaskId>,
    /// With what each job brings about by itself, in the order of `members`.
    pub costs: Vec<(Timing, Parts)>,
    /// What a turn loses when it begins.
    pub switch: Parts,
}

impl Server {
    /// Of tasks that resume in these ways; `is_split`: on two processors by turns.
    pub(super) fn new(
        tasks: &[Timing],
        members: Vec<TaskId>,
        ways: &[Resumption],
        is_split: bool,
        system: &System<'_>,
    ) -> Self {
        let residents: Vec<Resident> = members
            .iter()
            .map(|task| {
                let delay = system.delays.longest(*task, ways);
                Resident::whole(tasks[task.index()], system.beginning(delay), delay)
            })
            .collect();
        let longest = residents
            .iter()
            .map(|r| r.resuming)
            .max()
            .unwrap_or_default();
        // A hard guarantee bears a kernel section that has begun, on the releasing processor and on
        // the serving one.
        let times = match (system.counts(), is_split) {
            (Guarantee::Soft, false) => (2, 2, 0),
            (Guarantee::Soft, true) => (2, 2, 1),
            (Guarantee::Hard, false) => (3, 3, 0),
            (Guarantee::Hard, true) => (4, 4, 1),
        };
        let costs = residents
            .iter()
            .zip(disturbed(&residents, 1, system))
            .map(|(r, disturbed)| {
                let mut parts = own_of(r, disturbed, times, system);
                parts.add(Kind::Release, system.overheads.release);
                (r.timing.inflated(parts.total()), parts)
            })
            .collect();
        Server {
            members,
            costs,
            switch: switch(longest, is_split, system),
        }
    }

    /// The shortest period; `None` without tasks.
    pub(super) fn shortest_period(&self) -> Option<Duration> {
        self.costs.iter().map(|(t, _)| t.period).min()
    }

    /// U, as terms to add up. `foreign`: releases of tasks in other servers that interrupt it.
    pub(super) fn demand<'a>(
        &'a self,
        foreign: &'a [Timing],
        system: &System<'_>,
    ) -> impl Iterator<Item = Ratio> + Clone + 'a {
        let release = system.overheads.release;
        let shortest = self.shortest_period().unwrap_or(Duration::from_nanos(1));
        let costs_release = !release.is_zero();
        let own = self.costs.iter().map(|(t, _)| t.utilization());
        let others = foreign.iter().filter(move |_| costs_release);
        let rate = others.map(move |t| {
            Timing {
                wcet: release,
                ..*t
            }
            .utilization()
        });
        let count = (self.members.len() + foreign.len()) as u64;
        let at_once = release.nanos().saturating_mul(count);
        let once = Ratio::new(at_once, shortest.nanos().max(1)).filter(|r| r.num() > 0);
        own.chain(rate).chain(once)
    }
}

/// What a turn of a server loses when it begins: the processor chooses and switches, and the job
/// that goes on reloads its working set.
///
/// For a hard guarantee the kernel may be in the midst of a section for the server before, and,
/// where a server comes from another processor, that one has to finish such a section, switch away
/// and call, and the choice is made again (002 §4.4.2).
fn switch(delay: Duration, is_split: bool, system: &System<'_>) -> Parts {
    let (scheduling, switches, calls) = match (system.counts(), is_split) {
        (Guarantee::Soft, false) => (1, 1, 0),
        (Guarantee::Soft, true) => (1, 1, 1),
        (Guarantee::Hard, false) => (2, 2, 0),
        (Guarantee::Hard, true) => (5, 4, 1),
    };
    let nothing = Resident::whole(
        Timing::implicit(Duration::ZERO, Duration::ZERO),
        delay,
        delay,
    );
    own_of(
        &nothing,
        Duration::ZERO,
        (scheduling, switches, calls),
        system,
    )
}

/// The ticks that hit a turn of this length in a slot, at most: one may have begun before it, and
/// the interval that is looked at may begin within it.
pub(super) fn ticks(length: Duration, system: &System<'_>) -> Duration {
    let (tick, period) = (system.overheads.tick, system.overheads.tick_period);
    if tick.is_zero() {
        return Duration::ZERO;
    }
    let span = length.saturating_add(tick).nanos();
    let count = span.div_ceil(period.nanos().max(1)).saturating_add(1);
    Duration::from_nanos(tick.nanos().saturating_mul(count))
}

/// Turns of a server: processor and length.
type Turns = Vec<(CpuId, Duration)>;

fn turns_of(assignment: &Slots, servers: usize) -> Vec<Turns> {
    let mut turns: Vec<Turns> = vec![Vec::new(); servers];
    for table in &assignment.timetables {
        for turn in &table.turns {
            if let Some(turns) = turns.get_mut(turn.server as usize) {
                turns.push((table.cpu, turn.end.saturating_sub(turn.start)));
            }
        }
    }
    turns
}

/// Every server with its turns and the releases of others that interrupt it.
pub(super) struct Laid {
    pub server: Server,
    pub turns: Turns,
    pub foreign: Vec<TaskId>,
}

impl Laid {
    fn foreign(&self, tasks: &[Timing]) -> Vec<Timing> {
        self.foreign.iter().map(|t| tasks[t.index()]).collect()
    }
}

/// The servers of an assignment.
pub(super) fn lay(tasks: &[Timing], assignment: &Slots, system: &System<'_>) -> Vec<Laid> {
    let count = assignment
        .server_of
        .iter()
        .map(|s| *s as usize + 1)
        .max()
        .unwrap_or(0);
    let mut members: Vec<Vec<TaskId>> = vec![Vec::new(); count];
    for (task, server) in assignment.server_of.iter().enumerate() {
        members[*server as usize].push(TaskId(task as u32));
    }
    let turns = turns_of(assignment, count);
    let mut laid: Vec<Laid> = members
        .iter()
        .zip(&turns)
        .map(|(members, turns)| {
            let cpus: CpuSet = turns.iter().map(|(cpu, _)| *cpu).collect();
            let ways = system.ways(cpus.iter());
            Laid {
                server: Server::new(tasks, members.clone(), &ways, cpus.len() > 1, system),
                turns: turns.clone(),
                foreign: Vec::new(),
            }
        })
        .collect();
    for (server, laid) in laid.iter_mut().enumerate() {
        let neighbors = neighbors(assignment, server as u32);
        let of = |s: &u32| members.get(*s as usize).into_iter().flatten();
        laid.foreign = neighbors.iter().flat_map(of).copied().collect();
    }
    laid
}

/// The servers that share a processor with one.
fn neighbors(assignment: &Slots, server: u32) -> Vec<u32> {
    let is_here =
        |table: &&model::assignment::Timetable| table.turns.iter().any(|t| t.server == server);
    let mut neighbors: Vec<u32> = assignment
        .timetables
        .iter()
        .filter(is_here)
        .flat_map(|table| table.turns.iter().map(|t| t.server))
        .filter(|s| *s != server)
        .collect();
    neighbors.sort_unstable();
    neighbors.dedup();
    neighbors
}

/// Is it served all the time by one processor? Then nothing switches.
pub(super) fn is_alone(turns: &Turns, slot: Duration) -> bool {
    matches!(turns[..], [(_, length)] if length == slot)
}

/// Does every server have, with its overheads, what its tasks need?
pub(super) fn hold(tasks: &[Timing], assignment: &Slots, system: &System<'_>) -> bool {
    lay(tasks, assignment, system)
        .iter()
        .all(|laid| is_supplied(tasks, laid, assignment.slot, system))
}

/// What is left of a server's reserve in a slot.
fn supply(laid: &Laid, slot: Duration, system: &System<'_>) -> Duration {
    let mut left = Duration::ZERO;
    for (_, length) in &laid.turns {
        let switch = match is_alone(&laid.turns, slot) {
            true => Duration::ZERO,
            false => laid.server.switch.total(),
        };
        let lost = switch.saturating_add(ticks(*length, system));
        left = left.saturating_add(length.saturating_sub(lost));
    }
    left
}

pub(super) fn is_supplied(
    tasks: &[Timing],
    laid: &Laid,
    slot: Duration,
    system: &System<'_>,
) -> bool {
    let Some(shortest) = laid.server.shortest_period() else {
        return true;
    };
    if laid.server.costs.iter().any(|(t, _)| t.wcet > t.period) {
        return false;
    }
    let (slot, left) = (slot.nanos().max(1), supply(laid, slot, system).nanos());
    let delta = shortest.nanos() / slot;
    let (Some(supplied), Some(within)) = (
        delta.checked_mul(left),
        (delta + 1)
            .checked_mul(slot)
            .and_then(|all| all.checked_sub(left)),
    ) else {
        return false;
    };
    let foreign = laid.foreign(tasks);
    let demand = laid.server.demand(&foreign, system);
    match Ratio::new(supplied, within) {
        Some(bound) => exact::cmp_sum(demand, bound).is_le(),
        None => false,
    }
}

/// The longest cache delay of any task, between the processors of its server.
pub(super) fn longest_delay(tasks: &[Timing], assignment: &Slots, system: &System<'_>) -> Duration {
    let laid = lay(tasks, assignment, system);
    let delays = laid.iter().map(|laid| laid.server.switch[Kind::Cpmd]);
    delays.max().unwrap_or_default()
}

/// What an assignment in slots costs.
pub(super) fn account(tasks: &[Timing], assignment: &Slots, system: &System<'_>) -> Accounted {
    let mut places: Vec<Place> = assignment
        .timetables
        .iter()
        .map(|table| Place {
            processors: [table.cpu].into_iter().collect(),
            own: 0.0,
            lost: Lost::default(),
        })
        .collect();
    let mut pieces: Vec<Piece> = Vec::with_capacity(tasks.len());
    let place_of = |cpu: CpuId| assignment.timetables.iter().position(|t| t.cpu == cpu);
    for laid in lay(tasks, assignment, system) {
        let foreign = laid.foreign(tasks);
        let reserve: u64 = laid.turns.iter().map(|(_, l)| l.nanos()).sum();
        for (cpu, length) in &laid.turns {
            let Some(place) = place_of(*cpu) else {
                continue;
            };
            let place = &mut places[place];
            let part = length.nanos() as f64 / reserve.max(1) as f64;
            for (task, (timing, parts)) in laid.server.members.iter().zip(&laid.server.costs) {
                place.own += tasks[task.index()].utilization().to_f64() * part;
                place.lost.add(parts, timing.period, part);
            }
            let mut switch = match is_alone(&laid.turns, assignment.slot) {
                true => Parts::default(),
                false => laid.server.switch,
            };
            switch.add(Kind::Tick, ticks(*length, system));
            place.lost.add(&switch, assignment.slot, 1.0);
            let others = laid.server.demand(&foreign, system).map(Ratio::to_f64);
            let interrupts: f64 = others.skip(laid.server.members.len()).sum();
            place.lost[Kind::Release] += interrupts * part;
        }
        let first = laid.turns.first().and_then(|(cpu, _)| place_of(*cpu));
        for (task, (timing, parts)) in laid.server.members.iter().zip(&laid.server.costs) {
            pieces.push(Piece {
                task: *task,
                place: first.unwrap_or(0) as u32,
                timing: *timing,
                parts: *parts,
                jobs: (1, 1),
            });
        }
    }
    let (inflated, parts) = by_task(tasks, &pieces);
    Accounted {
        inflated,
        parts,
        pieces,
        places,
    }
}
