//! EDF-WM with overheads: every placement and every cut accounts for the overheads of all that the
//! processor then has.
//!
//! 002 §4.2 and §6.1. The algorithm is that of [`crate::semi::edf_wm`]; a processor accepts a task
//! if exact EDF holds all of its tasks and slices with their overheads, and refuses it without a
//! trace else (the rolling back of 002 §6.1). How long a slice can be is found for the worst case,
//! that it comes from the farthest processor and its timer as early as can be; once the slices have
//! their order, each is charged for the migration that it really makes.

use super::System;
use super::account::{fixed, sliced};
use super::accounting::{Interrupts, Resident, disturbed, inflate, inflate_one, own_of, sections};
use super::bins::is_covered;
use crate::semi::edf_wm::{Host, Item, Position, Processor, Refusal, STEPS, Settings, assign_to};
use crate::uniprocessor::{Work, edf};
use model::assignment::Slices;
use model::{CpuId, Duration, Resumption, TaskId, Timing};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The slices of every task, in the order of the set, such that every processor holds them with
/// their overheads.
///
/// # Errors
/// The first task that can be neither placed nor split; the limit of work.
pub fn assign(
    tasks: &[Timing],
    cpus: &[CpuId],
    settings: &Settings,
    system: &System<'_>,
) -> Result<Slices, Refusal> {
    let books = Books {
        tasks,
        cpus,
        ways: system.ways(cpus.iter().copied()),
        system,
        is_free: system.is_free(),
        same: Same::of(system),
    };
    let site = |cpu: &CpuId| Site {
        books: &books,
        cpu: *cpu,
        residents: Vec::new(),
        inflated: OnceCell::new(),
        joined: OnceCell::new(),
        sums: books.same.as_ref().map(|_| Sums::default()),
    };
    let mut sites: Vec<Site<'_>> = cpus.iter().map(site).collect();
    assign_to(tasks, cpus, &mut sites, settings)
}

struct Books<'a> {
    tasks: &'a [Timing],
    cpus: &'a [CpuId],
    /// How a slice may come to a processor, at worst.
    ways: Vec<Resumption>,
    system: &'a System<'a>,
    is_free: bool,
    /// What every job pays, where all pay the same.
    same: Option<Same>,
}

/// What a job of a task that stays whole pays where all tasks have the same delays and no interrupt
/// costs anything, in nanoseconds.
struct Same {
    alone: u64,
    /// More where it is not alone.
    shared: u64,
}

impl Same {
    fn of(system: &System<'_>) -> Option<Self> {
        let o = system.overheads;
        let interrupts = [o.release, o.tick, o.timer_transfer];
        if !is_covered(system) || interrupts.iter().any(|cost| !cost.is_zero()) {
            return None;
        }
        let nothing = Timing::implicit(Duration::ZERO, Duration::ZERO);
        let resident = fixed(TaskId(0), nothing, system);
        let times = sections(1, system.counts());
        let alone = own_of(&resident, Duration::ZERO, times, system).total();
        Some(Same {
            alone: alone.nanos(),
            shared: resident.resuming.nanos(),
        })
    }
}

/// A processor with what it has accepted, and the same with overheads.
struct Site<'a> {
    books: &'a Books<'a>,
    cpu: CpuId,
    residents: Vec<Resident>,
    /// With the overheads of those who are here.
    inflated: OnceCell<Processor>,
    /// The same once a slice joins them, where that is the same for all slices.
    joined: OnceCell<Option<Processor>>,
    /// Where all tasks here are whole, have implicit deadlines, and pay the same.
    sums: Option<Sums>,
}

/// What the utilization of whole tasks with overheads is made of.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Σ e/p.
    own: f64,
    /// Σ 1/p, p in nanoseconds.
    rate: f64,
    /// The least p − e; `None`: there is no task.
    room: Option<u64>,
}

impl Sums {
    fn with(self, t: &Timing) -> Option<Self> {
        let (wcet, period) = (t.wcet.nanos(), t.period.nanos());
        let room = period.checked_sub(wcet)?;
        t.has_implicit_deadline().then_some(Sums {
            own: self.own + wcet as f64 / period as f64,
            rate: self.rate + 1.0 / period as f64,
            room: Some(self.room.map_or(room, |least| least.min(room))),
        })
    }

    /// Does a processor hold these so many tasks? `None`: too close for floating point.
    fn hold(&self, count: usize, same: &Same) -> Option<bool> {
        let each = same.alone + if count > 1 { same.shared } else { 0 };
        if self.room.is_some_and(|room| each > room) {
            return Some(false);
        }
        // Far above the rounding of the sums.
        let far = |u: f64| (u - 1.0).abs() > 1e-9;
        let u = self.own + each as f64 * self.rate;
        far(u).then_some(u < 1.0)
    }
}

/// A slice that is looked at: what the others are with it there, and what it costs itself.
struct Trial<'a> {
    others: Cow<'a, Processor>,
    /// What its execution with overheads may be at most.
    slice: Timing,
    interrupts: Interrupts,
    own: Duration,
}

impl Trial<'_> {
    /// The execution without overheads that this one with overheads leaves.
    fn budget(&self, with: Duration, slice: &Timing) -> Duration {
        let left = self.interrupts.shrink(with).saturating_sub(self.own);
        left.min(slice.wcet)
    }
}

impl Site<'_> {
    /// Everybody with overheads if this one comes, too. The last is this one.
    fn with(&self, candidate: Resident) -> Vec<Timing> {
        let mut residents = self.residents.clone();
        residents.push(candidate);
        let inflated = inflate(&residents, 1, self.books.system);
        inflated.into_iter().map(|(timing, _)| timing).collect()
    }

    fn settle(&mut self, resident: Resident) {
        self.residents.push(resident);
        self.inflated = OnceCell::new();
        self.joined = OnceCell::new();
    }

    /// Those who are here, with their overheads; `None`: one has no time for them.
    fn settled(&self) -> Option<Processor> {
        let inflated = inflate(&self.residents, 1, self.books.system);
        let timings: Vec<Timing> = inflated.into_iter().map(|(timing, _)| timing).collect();
        Processor::with(&timings)
    }

    /// The same, where all of them have: what is accepted has.
    fn inflated(&self) -> &Processor {
        self.inflated
            .get_or_init(|| self.settled().unwrap_or_default())
    }

    /// Does the processor hold one more whole task? `None`: it takes more than the sums to tell.
    fn clearly_accepts(&self, item: &Item, work: &mut Work) -> Option<bool> {
        let (same, sums) = (self.books.same.as_ref()?, self.sums?);
        let with = sums.with(&item.timing)?;
        let cost = self.residents.len() as u64 + 1;
        let holds = with.hold(self.residents.len() + 1, same)?;
        // As below: what utilization without the newcomer's overheads refuses is no work.
        let each = match self.residents.len() {
            0 | 1 => same.alone,
            _ => same.alone + same.shared,
        };
        let before = with.own + each as f64 * sums.rate;
        Some(before <= 1.0 && (self.books.is_free || work.spend(cost)) && holds)
    }

    /// Those who are here once a slice joins them.
    fn with_slice(&self, residents: &[Resident], interrupts: &Interrupts) -> Option<Processor> {
        let system = self.books.system;
        let mut disturbed = disturbed(residents, 1, system);
        disturbed.pop();
        let others: Vec<Timing> = self
            .residents
            .iter()
            .zip(disturbed)
            .map(|(r, disturbed)| inflate_one(r, disturbed, interrupts, 1, system).0)
            .collect();
        Processor::with(&others)
    }

    /// `None`: there is no room for any slice.
    fn trial(&self, task: u32, slice: &Timing) -> Option<Trial<'_>> {
        let system = self.books.system;
        let whole = &self.books.tasks[task as usize];
        // Which of the slices it will be is not known: at worst it is handed over, and its timer
        // comes as early as that of the first one.
        let first = sliced(TaskId(task), *slice, whole, 0, &self.books.ways, system);
        let later = sliced(TaskId(task), *slice, whole, 1, &self.books.ways, system);
        let resident = Resident {
            transfers: first.transfers.max(later.transfers),
            ..later
        };
        let mut residents = self.residents.clone();
        residents.push(resident);
        let interrupts = Interrupts::of(residents.iter(), system.overheads);
        let by_slice = disturbed(&residents, 1, system).pop().unwrap_or_default();
        // Where no interrupt costs anything, others pay for the delay of the slice, and that is the
        // same for all.
        let others = match self.books.same {
            Some(_) => {
                let made = || self.with_slice(&residents, &interrupts);
                Cow::Borrowed(self.joined.get_or_init(made).as_ref()?)
            }
            None => Cow::Owned(self.with_slice(&residents, &interrupts)?),
        };
        let times = sections(1, system.counts());
        let own = own_of(&resident, by_slice, times, system).total();
        let (most, _) = interrupts.stretch(slice.wcet.saturating_add(own));
        let most = Timing {
            wcet: most.min(slice.deadline).min(slice.period),
            ..*slice
        };
        Some(Trial {
            others,
            slice: most,
            interrupts,
            own,
        })
    }
}

impl Host for Site<'_> {
    fn load(&self) -> u128 {
        self.inflated().load()
    }

    fn len(&self) -> usize {
        self.residents.len()
    }

    fn accepts(&mut self, task: u32, item: &Item, work: &mut Work) -> bool {
        if let Some(says) = self.clearly_accepts(item, work) {
            return says;
        }
        // Accounting anew for everybody here is work as well.
        let cost = self.residents.len() as u64 + 1;
        if !self.inflated().may_accept(item) || !(self.books.is_free || work.spend(cost)) {
            return false;
        }
        let resident = fixed(TaskId(task), item.timing, self.books.system);
        let mut all = self.with(resident);
        let Some(last) = all.pop().and_then(Item::new) else {
            return false;
        };
        Processor::with(&all).is_some_and(|mut others| others.accepts(task, &last, work))
    }

    fn add(&mut self, task: u32, item: &Item) {
        self.sums = self.sums.and_then(|sums| sums.with(&item.timing));
        self.settle(fixed(TaskId(task), item.timing, self.books.system));
    }

    fn slice_at_most(&self, task: u32, slice: &Timing) -> Duration {
        let most =
            |trial: Trial<'_>| trial.budget(trial.others.slice_at_most(task, &trial.slice), slice);
        self.trial(task, slice).map_or(Duration::ZERO, most)
    }

    fn longest_slice(
        &mut self,
        task: u32,
        slice: &Timing,
        least: Duration,
        work: &mut Work,
    ) -> Duration {
        let is_free = self.books.is_free;
        let Some(trial) = self.trial(task, slice) else {
            return Duration::ZERO;
        };
        let mut others = trial.others.clone().into_owned();
        // Interrupts only take from it.
        let least_with = least.saturating_add(trial.own);
        let longest = others.longest_slice(task, &trial.slice, least_with, work);
        let budget = trial.budget(longest, slice);
        // Cutting takes for granted that the others hold without the slice: that its interrupts
        // have not undone.
        if is_free || budget < least || budget.is_zero() {
            return budget;
        }
        let mut all = others.timings().to_vec();
        all.push(Timing {
            wcet: longest,
            ..*slice
        });
        let limit = STEPS * all.len() as u64;
        match work.lend(limit, |w| edf::decide_by_demand_within(&all, w)) {
            Ok(true) => budget,
            _ => Duration::ZERO,
        }
    }

    fn add_slice(&mut self, task: u32, slice: Timing, position: Position) -> Option<()> {
        let books = self.books;
        let way = books
            .system
            .resumption(books.cpus[position.before], self.cpu);
        let whole = &books.tasks[task as usize];
        let resident = sliced(
            TaskId(task),
            slice,
            whole,
            position.at,
            &[way],
            books.system,
        );
        self.sums = None;
        self.settle(resident);
        let settled = self.settled()?;
        let _ = self.inflated.set(settled);
        Some(())
    }
}
