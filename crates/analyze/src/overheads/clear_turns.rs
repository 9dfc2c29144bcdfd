//! EDF-fm with overheads, where the answer is clear: the verdict of [`super::edf_fm`] in a few
//! operations for a placement, or none.
//!
//! For sets whose tasks all have the same cache delays, where no interrupt costs anything. What the
//! tasks of a processor ask for is a sum in floating point, known to within what its shares of
//! migratory tasks are rounded by; a comparison that this does not decide leaves the whole set to
//! the exact computation.

use super::System;
use super::accounting::sections;
use super::bins::is_covered;
use crate::semi::edf_fm::{Fill, SLIVER, levels};
use model::{CpuId, Ratio, Resumption, TaskId, Timing};

/// What a job pays, in nanoseconds.
struct Price {
    /// On its own processor, alone there.
    fixed: u64,
    /// More where it is not alone.
    shared: u64,
    /// Of a migratory task, by the place of the first of its two processors, alone on one.
    migratory: Vec<u64>,
}

/// Does EDF-fm find an assignment of the set that holds, by either way of filling processors?
/// `None`: it is not clear.
pub fn accepts(tasks: &[Timing], cpus: &[CpuId], system: &System<'_>) -> Option<bool> {
    let o = system.overheads;
    let interrupts = [o.release, o.tick, o.timer_transfer];
    let longest = [o.scheduling, o.context_switch, o.ipi_latency];
    let is_long = longest.iter().any(|cost| cost.nanos() > 1 << 40);
    if interrupts.iter().any(|cost| !cost.is_zero()) || is_long || system.is_free() {
        return None;
    }
    if !is_covered(system) {
        return None;
    }
    if tasks.iter().any(|t| t.wcet > t.period) {
        return Some(false);
    }
    let price = Price::of(cpus, system);
    for fill in [Fill::Full, Fill::Spread] {
        for level in levels(tasks, cpus.len(), fill) {
            if holds_up_to(tasks, cpus.len(), fill, level, &price)? {
                return Some(true);
            }
        }
    }
    Some(false)
}

impl Price {
    fn of(cpus: &[CpuId], system: &System<'_>) -> Price {
        let o = system.overheads;
        let (scheduling, switches, calls) = sections(1, system.counts());
        let kernel = o.scheduling.nanos() * scheduling
            + o.context_switch.nanos() * switches
            + o.ipi_latency.nanos() * calls;
        let stays = system.delays.delay(TaskId(0), Resumption::Preemption);
        let moves = |pair: &[CpuId]| {
            let way = system.resumption(pair[0], pair[1]);
            let begins = system.delays.delay(TaskId(0), way).max(stays);
            kernel + o.ipi_latency.nanos() + begins.nanos()
        };
        Price {
            fixed: kernel + stays.nanos(),
            shared: stays.nanos(),
            migratory: cpus.windows(2).map(moves).collect(),
        }
    }
}

/// What is on a processor.
#[derive(Default)]
struct Site {
    count: usize,
    /// Σ e/p and Σ 1/p of its fixed tasks.
    own: f64,
    rate: f64,
    /// The least p − e of these.
    room: Option<u64>,
    /// The task of which some jobs come here from the processor before: e, p, its place, and which
    /// part of a job comes on average.
    migratory: Option<(u64, u64, usize, f64)>,
    /// By how much the total may be wrong.
    error: f64,
}

impl Site {
    /// What a job pays on top when so many tasks are here.
    fn shared(price: &Price, count: usize) -> u64 {
        if count > 1 { price.shared } else { 0 }
    }

    /// What the tasks ask for if there are `count`, and the migratory one with all of its jobs.
    /// `None`: one of them asks for more than a processor.
    fn asks(&self, price: &Price, count: usize) -> Option<(f64, f64)> {
        let shared = Site::shared(price, count);
        let each = price.fixed + shared;
        if self.room.is_some_and(|room| each > room) {
            return None;
        }
        let fixed = self.own + each as f64 * self.rate;
        match self.migratory {
            None => Some((fixed, 0.0)),
            Some((wcet, period, place, part)) => {
                let with = wcet + price.migratory[place] + shared;
                let whole = with as f64 / period as f64;
                (with <= period).then_some((fixed + whole * part, whole))
            }
        }
    }
}

/// Is `a` at most `b`? `None`: too near.
fn is_within(a: f64, b: f64, error: f64) -> Option<bool> {
    let near = error + 1e-10;
    ((a - b).abs() > near).then_some(a <= b)
}

fn holds_up_to(
    tasks: &[Timing],
    m: usize,
    fill: Fill,
    usual: Ratio,
    price: &Price,
) -> Option<bool> {
    let cap_of = |place: usize| match place + 1 == m {
        true => 1.0,
        false => usual.to_f64(),
    };
    let (mut place, mut site) = (0, Site::default());
    let mut index = 0;
    while let Some(t) = tasks.get(index) {
        if place >= m {
            return Some(false);
        }
        let (wcet, period) = (t.wcet.nanos(), t.period.nanos().max(1));
        let cap = cap_of(place);
        // As a whole.
        let with = Site {
            count: site.count + 1,
            own: site.own + wcet as f64 / period as f64,
            rate: site.rate + 1.0 / period as f64,
            room: Some(
                site.room
                    .map_or(period - wcet, |room| room.min(period - wcet)),
            ),
            ..site
        };
        let fits = match with.asks(price, with.count) {
            None => false,
            Some((total, migratory)) => {
                is_within(total, cap, with.error)? && is_within(migratory, 1.0, 0.0)?
            }
        };
        if fits {
            site = with;
            index += 1;
            continue;
        }
        // As many of its jobs as there is room for.
        let next = price.migratory.get(place).copied();
        let (part, error) = next.map_or(Some((0.0, 0.0)), |next| {
            largest_part(&site, price, (wcet, period), next, cap)
        })?;
        let sliver = (wcet / SLIVER) as f64;
        let is_split = match (part <= 0.0, fill) {
            (true, _) => false,
            (false, Fill::Spread) => !is_within(part, sliver - 0.5, 8.0 + error)?,
            (false, Fill::Full) => true,
        };
        place += 1;
        if !is_split {
            site = Site::default();
            continue;
        }
        let Some(next) = next else {
            return Some(false);
        };
        // The migratory tasks of the processor behind.
        let shared = Site::shared(price, site.count + 1);
        let (_, before) = site.asks(price, site.count + 1)?;
        let with = wcet + next + shared;
        if !is_within(before + with as f64 / period as f64, 1.0, 0.0)? {
            return Some(false);
        }
        let there = Site {
            count: 1,
            migratory: Some((wcet, period, place - 1, 1.0 - part / wcet as f64)),
            // The time is rounded to a nanosecond, and so is the share on each processor.
            error: (error + 4.0) / wcet as f64 * (wcet + next + price.shared) as f64
                / period as f64
                + 2.0 / period as f64,
            ..Site::default()
        };
        if there.asks(price, 1).is_none() {
            return Some(false);
        }
        site = there;
        index += 1;
    }
    Some(true)
}

/// The largest part of a job's time, in nanoseconds, that a processor has room for, and by how much
/// that may be wrong; zero if there is none.
fn largest_part(
    site: &Site,
    price: &Price,
    (wcet, period): (u64, u64),
    migrates: u64,
    cap: f64,
) -> Option<(f64, f64)> {
    let with = wcet + migrates + Site::shared(price, site.count + 1);
    let others = match site.asks(price, site.count + 1) {
        Some((others, _)) if with <= period => others,
        _ => return Some((0.0, 0.0)),
    };
    let per_time = with as f64 / period as f64 / wcet as f64;
    let part = (cap - others) / per_time;
    let error = (site.error + 1e-10) / per_time + 4.0;
    if part < -error {
        return Some((0.0, 0.0));
    }
    // Is there a nanosecond? And never the whole job.
    let most = wcet as f64 - 1.0;
    if part < error + 1.0 {
        return None;
    }
    if part > most - error {
        return None;
    }
    Some((part, error))
}
