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
use crate::semi::edf_fm::{Fill, SLIVER, attempts, cap_of};
use crate::semi::next_fit::{Filling, Order};
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
        for (order, level) in attempts(tasks, cpus.len(), fill) {
            if holds_up_to(tasks, cpus.len(), fill, order, level, &price)? {
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
#[derive(Clone, Copy, Default)]
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

/// Why there is no assignment.
enum End {
    /// A task has no place.
    Refused,
    /// Too near to tell.
    Unclear,
}

fn clear<T>(answer: Option<T>) -> Result<T, End> {
    answer.ok_or(End::Unclear)
}

fn holds_up_to(
    tasks: &[Timing],
    m: usize,
    fill: Fill,
    order: Order,
    usual: Ratio,
    price: &Price,
) -> Option<bool> {
    let mut filling = Sequence {
        tasks,
        m,
        fill,
        usual,
        price,
        place: 0,
        site: Site::default(),
    };
    match order.place(tasks, &mut filling) {
        Ok(()) => Some(true),
        Err(End::Refused) => Some(false),
        Err(End::Unclear) => None,
    }
}

/// Processors that are filled.
struct Sequence<'a> {
    tasks: &'a [Timing],
    m: usize,
    fill: Fill,
    usual: Ratio,
    price: &'a Price,
    place: usize,
    site: Site,
}

impl Sequence<'_> {
    fn cap(&self) -> f64 {
        cap_of(self.place, self.m, self.usual).to_f64()
    }

    fn times(&self, task: usize) -> (u64, u64) {
        let t = &self.tasks[task];
        (t.wcet.nanos(), t.period.nanos().max(1))
    }

    /// The current processor with this task, if it fits.
    fn with(&self, task: usize) -> Result<Option<Site>, End> {
        let (wcet, period) = self.times(task);
        let (site, own) = (self.site, period - wcet);
        let with = Site {
            count: site.count + 1,
            own: site.own + wcet as f64 / period as f64,
            rate: site.rate + 1.0 / period as f64,
            room: Some(site.room.map_or(own, |room| room.min(own))),
            ..site
        };
        let Some((total, migratory)) = with.asks(self.price, with.count) else {
            return Ok(None);
        };
        let fits = clear(is_within(total, self.cap(), with.error))?
            && clear(is_within(migratory, 1.0, 0.0))?;
        Ok(fits.then_some(with))
    }
}

impl Filling for Sequence<'_> {
    type End = End;

    fn take(&mut self, tasks: &[usize]) -> Result<usize, End> {
        if self.place >= self.m {
            return Err(End::Refused);
        }
        for (count, &task) in tasks.iter().enumerate() {
            match self.with(task)? {
                Some(with) => self.site = with,
                None => return Ok(count),
            }
        }
        Ok(tasks.len())
    }

    fn fits(&mut self, task: usize) -> Result<bool, End> {
        Ok(self.with(task)?.is_some())
    }

    fn split(&mut self, task: usize) -> Result<bool, End> {
        let (wcet, period) = self.times(task);
        let (site, price) = (std::mem::take(&mut self.site), self.price);
        // As many of its jobs as there is room for.
        let next = price.migratory.get(self.place).copied();
        let (part, error) = clear(next.map_or(Some((0.0, 0.0)), |next| {
            largest_part(&site, price, (wcet, period), next, self.cap())
        }))?;
        let sliver = (wcet / SLIVER) as f64;
        let is_split = match (part <= 0.0, self.fill) {
            (true, _) => false,
            (false, Fill::Spread) => !clear(is_within(part, sliver - 0.5, 8.0 + error))?,
            (false, Fill::Full) => true,
        };
        self.place += 1;
        let Some(next) = next.filter(|_| is_split) else {
            return Ok(false);
        };
        // The migratory tasks of the processor behind.
        let shared = Site::shared(price, site.count + 1);
        let (_, before) = clear(site.asks(price, site.count + 1))?;
        let with = wcet + next + shared;
        if !clear(is_within(before + with as f64 / period as f64, 1.0, 0.0))? {
            return Err(End::Refused);
        }
        self.site = Site {
            count: 1,
            migratory: Some((wcet, period, self.place - 1, 1.0 - part / wcet as f64)),
            // The time is rounded to a nanosecond, and so is the share on each processor.
            error: (error + 4.0) / wcet as f64 * (wcet + next + price.shared) as f64
                / period as f64
                + 2.0 / period as f64,
            ..Site::default()
        };
        match self.site.asks(price, 1) {
            Some(_) => Ok(true),
            None => Err(End::Refused),
        }
    }
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
