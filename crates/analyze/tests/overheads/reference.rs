//! The accounting again, slowly, straight from `docs/overheads.md`, in rational arithmetic. Times
//! in microseconds.

use analyze::Guarantee;
use analyze::overheads::{Accounted, Overheads};
use model::assignment::Slots;
use model::{Assignment, CpuId, Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

type Number = BigRational;

fn whole(n: u64) -> Number {
    Number::from_integer(BigInt::from(n))
}
fn time(d: Duration) -> Number {
    whole(d.nanos()) / whole(1_000)
}

/// A task, or what of it lives in one place.
struct Part {
    task: usize,
    place: usize,
    execution: Number,
    period: Number,
    /// f
    share: Number,
    /// Are there all jobs?
    is_whole: bool,
    begins: u64,
    resumes: u64,
    /// J, where timers are transferred.
    early: Option<Number>,
    calls: u64,
}

/// On a platform without caches: every migration is through memory.
fn parts(
    set: &[Timing],
    assignment: &Assignment,
    by_task: &[(u64, u64)],
) -> Option<(Vec<usize>, Vec<Part>)> {
    let part = |task: usize, place: usize| {
        let t: &Timing = &set[task];
        let (stays, _) = by_task[task];
        Part {
            task,
            place,
            execution: time(t.wcet),
            period: time(t.period),
            share: Number::one(),
            is_whole: true,
            begins: stays,
            resumes: stays,
            early: None,
            calls: 0,
        }
    };
    let at = |cpus: &[CpuId], cpu: CpuId| cpus.iter().position(|c| *c == cpu).unwrap();
    let mut all = Vec::new();
    let widths = match assignment {
        Assignment::Clustered(clustered) => {
            let widths: Vec<usize> = clustered.clusters.iter().map(|c| c.len()).collect();
            for (task, c) in clustered.cluster_of.iter().enumerate() {
                let mut here = part(task, *c as usize);
                if widths[here.place] > 1 {
                    let (stays, more) = by_task[task];
                    (here.begins, here.resumes) = (stays + more, stays + more);
                }
                all.push(here);
            }
            widths
        }
        Assignment::Turns(turns) => {
            for (task, turn) in turns.tasks.iter().enumerate() {
                if turn.first == turn.second {
                    all.push(part(task, at(&turns.cpus, turn.first)));
                    continue;
                }
                let share = whole(turn.part) / whole(turn.whole);
                for (cpu, share) in [
                    (turn.first, share.clone()),
                    (turn.second, Number::one() - share),
                ] {
                    let (stays, more) = by_task[task];
                    all.push(Part {
                        share,
                        is_whole: false,
                        begins: stays + more,
                        early: Some(time(set[task].period)),
                        calls: 1,
                        ..part(task, at(&turns.cpus, cpu))
                    });
                }
            }
            vec![1; turns.cpus.len()]
        }
        Assignment::Slices(slices) => {
            for (task, cut) in slices.tasks.iter().enumerate() {
                for (number, slice) in cut.iter().enumerate() {
                    let mut here = part(task, at(&slices.cpus, slice.cpu));
                    if cut.len() > 1 {
                        let (stays, more) = by_task[task];
                        here.execution = time(slice.budget);
                        here.begins = stays + more;
                        if number > 0 {
                            here.resumes = stays + more;
                        }
                        here.early = Some(time(if number == 0 {
                            set[task].period
                        } else {
                            slice.window
                        }));
                        here.calls = u64::from(number > 0);
                    }
                    all.push(here);
                }
            }
            vec![1; slices.cpus.len()]
        }
        Assignment::Slots(_) | Assignment::Quanta(_) => return None,
    };
    Some((widths, all))
}

/// e′ of every part.
fn inflated(
    parts: &[Part],
    widths: &[usize],
    o: &Overheads,
    guarantee: Guarantee,
) -> Vec<Option<Number>> {
    let one = |here: &Part| {
        let (scheduling, switches, calls) = match (guarantee, widths[here.place]) {
            (Guarantee::Soft, 1) => (2, 2, 0),
            (Guarantee::Soft, _) => (2, 2, 1),
            (Guarantee::Hard, 1) => (3, 3, 0),
            (Guarantee::Hard, _) => (6, 5, 2),
        };
        let neighbors = || parts.iter().filter(|p| p.place == here.place);
        let disturbed = neighbors()
            .filter(|p| p.task != here.task)
            .map(|p| p.resumes)
            .max();
        let c = here.execution.clone()
            + time(o.scheduling) * whole(scheduling)
            + time(o.context_switch) * whole(switches)
            + time(o.ipi_latency) * whole(calls + here.calls)
            + whole(here.begins + disturbed.unwrap_or(0));
        let mut once = time(o.tick);
        let mut rate = time(o.tick) / time(o.tick_period);
        for p in neighbors() {
            let extra = if p.is_whole {
                Number::zero()
            } else {
                Number::one()
            };
            once += time(o.release) * (&p.share + &extra);
            rate += time(o.release) * &p.share / &p.period;
            if let Some(early) = &p.early {
                once += time(o.timer_transfer)
                    * (&p.share * (early / &p.period + Number::one()) + &extra);
                rate += time(o.timer_transfer) * &p.share / &p.period;
            }
        }
        (rate < Number::one()).then(|| (c + once) / (Number::one() - rate))
    };
    parts.iter().map(one).collect()
}

/// Is what was accounted the same, but for nanoseconds that were rounded up?
pub fn agrees(
    set: &[Timing],
    assignment: &Assignment,
    overheads: &Overheads,
    by_task: &[(u64, u64)],
    guarantee: Guarantee,
    accounted: &Accounted,
) {
    let Some((widths, parts)) = parts(set, assignment, by_task) else {
        return;
    };
    assert_eq!(parts.len(), accounted.pieces.len());
    for (part, slow) in parts
        .iter()
        .zip(inflated(&parts, &widths, overheads, guarantee))
    {
        let is_it = |p: &&analyze::overheads::Piece| {
            p.task.index() == part.task && p.place as usize == part.place
        };
        let fast = accounted.pieces.iter().find(is_it).unwrap().timing.wcet;
        match slow {
            None => assert_eq!(fast, Duration::MAX),
            Some(slow) => {
                let over = (time(fast) - &slow) / &slow * whole(1_000_000_000);
                let over = over.to_f64().unwrap();
                // A nanosecond for each interrupt that comes once, and one at the end, of at least
                // tens of microseconds.
                let roundings = 1e6 * (2 * parts.len() + 2) as f64 / slow.to_f64().unwrap();
                assert!(
                    over >= 0.0,
                    "{part_task} is charged too little",
                    part_task = part.task
                );
                assert!(over <= 3.0 * roundings, "{over} parts in a billion");
            }
        }
    }
}

/// Has every server what it needs? `docs/overheads.md`, NPS-F.
pub fn servers_are_supplied(
    set: &[Timing],
    slots: &Slots,
    o: &Overheads,
    by_task: &[(u64, u64)],
    guarantee: Guarantee,
) -> bool {
    let servers = slots.server_of.iter().max().map_or(0, |s| *s + 1);
    let slot = time(slots.slot);
    let is_hard = guarantee == Guarantee::Hard;
    (0..servers).all(|server| {
        let turns: Vec<(CpuId, Number)> = slots
            .timetables
            .iter()
            .flat_map(|t| t.turns.iter().map(|turn| (t.cpu, *turn)))
            .filter(|(_, turn)| turn.server == server)
            .map(|(cpu, turn)| (cpu, time(turn.end) - time(turn.start)))
            .collect();
        let is_split = turns.iter().any(|(cpu, _)| *cpu != turns[0].0);
        let delay = |task: usize| by_task[task].0 + if is_split { by_task[task].1 } else { 0 };
        let of = |wanted: u32| (0..set.len()).filter(move |i| slots.server_of[*i] == wanted);
        let own: Vec<usize> = of(server).collect();
        let beside = |other: &u32| {
            slots.timetables.iter().any(|t| {
                let has = |s: u32| t.turns.iter().any(|turn| turn.server == s);
                has(server) && has(*other)
            })
        };
        let others: Vec<usize> = (0..servers)
            .filter(|s| *s != server)
            .filter(beside)
            .flat_map(of)
            .collect();
        let shortest = own.iter().map(|i| time(set[*i].period)).min().unwrap();
        let pay = |(scheduling, switches, calls): (u64, u64, u64)| {
            time(o.scheduling) * whole(scheduling)
                + time(o.context_switch) * whole(switches)
                + time(o.ipi_latency) * whole(calls)
        };
        let sections = match (is_hard, is_split) {
            (false, false) => (2, 2, 0),
            (false, true) => (2, 2, 1),
            (true, false) => (3, 3, 0),
            (true, true) => (4, 4, 1),
        };
        let mut demand = time(o.release) * whole((own.len() + others.len()) as u64) / &shortest;
        for i in &own {
            let disturbed = own
                .iter()
                .filter(|j| *j != i)
                .map(|j| delay(*j))
                .max()
                .unwrap_or(0);
            let c =
                time(set[*i].wcet) + pay(sections) + whole(delay(*i) + disturbed) + time(o.release);
            if c > time(set[*i].period) {
                return false;
            }
            demand += c / time(set[*i].period);
        }
        for i in &others {
            demand += time(o.release) / time(set[*i].period);
        }
        let switch = match (is_hard, is_split) {
            (false, false) => (1, 1, 0),
            (false, true) => (1, 1, 1),
            (true, false) => (2, 2, 0),
            (true, true) => (5, 4, 1),
        };
        let is_alone = turns.len() == 1 && turns[0].1 == slot;
        let mut left = Number::zero();
        for (_, length) in &turns {
            let mut lost = Number::zero();
            if !is_alone {
                lost += pay(switch) + whole(own.iter().map(|i| delay(*i)).max().unwrap_or(0));
            }
            let ticks = ((length + time(o.tick)) / time(o.tick_period)).ceil() + Number::one();
            lost += ticks * time(o.tick);
            if &lost < length {
                left += length - lost;
            }
        }
        let delta = (&shortest / &slot).floor();
        &delta * &left >= demand * ((delta + Number::one()) * &slot - left)
    })
}
