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
use crate::semi::edf_wm::{Host, Item, Position, Processor, Refusal, STEPS, Settings, assign_to};
use crate::uniprocessor::{Work, edf};
use model::assignment::Slices;
use model::{CpuId, Duration, Resumption, TaskId, Timing};

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
    };
    let site = |cpu: &CpuId| Site {
        books: &books,
        cpu: *cpu,
        residents: Vec::new(),
        inflated: Processor::default(),
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
}

/// A processor with what it has accepted, and the same with overheads.
struct Site<'a> {
    books: &'a Books<'a>,
    cpu: CpuId,
    residents: Vec<Resident>,
    inflated: Processor,
}

/// A slice that is looked at: what the others are with it there, and what it costs itself.
struct Trial {
    others: Processor,
    /// What its execution with overheads may be at most.
    slice: Timing,
    interrupts: Interrupts,
    own: Duration,
}

impl Trial {
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

    fn settle(&mut self, resident: Resident) -> Option<()> {
        self.residents.push(resident);
        let inflated = inflate(&self.residents, 1, self.books.system);
        let timings: Vec<Timing> = inflated.into_iter().map(|(timing, _)| timing).collect();
        self.inflated = Processor::with(&timings)?;
        Some(())
    }

    /// `None`: there is no room for any slice.
    fn trial(&self, task: u32, slice: &Timing) -> Option<Trial> {
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
        let mut disturbed = disturbed(&residents, 1, system);
        let by_slice = disturbed.pop().unwrap_or_default();
        let others: Vec<Timing> = self
            .residents
            .iter()
            .zip(disturbed)
            .map(|(r, disturbed)| inflate_one(r, disturbed, &interrupts, 1, system).0)
            .collect();
        let others = Processor::with(&others)?;
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
        self.inflated.load()
    }

    fn len(&self) -> usize {
        self.residents.len()
    }

    fn accepts(&mut self, task: u32, item: &Item, work: &mut Work) -> bool {
        // Accounting anew for everybody here is work as well.
        let cost = self.residents.len() as u64 + 1;
        if !self.inflated.may_accept(item) || !(self.books.is_free || work.spend(cost)) {
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
        // What is accepted has WCETs within its deadlines.
        let _ = self.settle(fixed(TaskId(task), item.timing, self.books.system));
    }

    fn slice_at_most(&self, task: u32, slice: &Timing) -> Duration {
        let most =
            |trial: Trial| trial.budget(trial.others.slice_at_most(task, &trial.slice), slice);
        self.trial(task, slice).map_or(Duration::ZERO, most)
    }

    fn longest_slice(&mut self, task: u32, slice: &Timing, work: &mut Work) -> Duration {
        let Some(mut trial) = self.trial(task, slice) else {
            return Duration::ZERO;
        };
        let longest = trial.others.longest_slice(task, &trial.slice, work);
        let budget = trial.budget(longest, slice);
        // Cutting takes for granted that the others hold without the slice: that its interrupts
        // have not undone.
        if self.books.is_free || budget.is_zero() {
            return budget;
        }
        let mut all = trial.others.timings().to_vec();
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
        self.settle(resident)
    }
}
