//! WCETs with overheads: what a job has to be given, from the overheads and from who shares its
//! place (`docs/overheads.md`).
//! One delay: e′ = e + D. By piece: e′ = e + D*, the longest delay of a job that it can preempt. All
//! seven overheads: with c = e + a·scheduling + b·switch + i·IPI + its own delay + D*, interrupts
//! come at most w/T + 1 times in w time units, so that e′ = (c + Σ o)/(1 − Σ o/T) for the tick and
//! all releases of the place, and for timers that are transferred to it.

use crate::certificate::{Costs, Place, Q, Rule, Says, With};
use crate::claim::{Order, Set, q};
use crate::place::Here;
use crate::slots;
use num_traits::Zero;

/// Checks the form of the costs; their values are taken as given, but for a cache delay that the
/// claim names: each has to be that. By the rule of one delay each task has its own in quanta.
pub fn check(set: &Set<'_>, order: Order, costs: &Costs, with: &With) -> Result<(), String> {
    let code = [&costs.scheduling_ns, &costs.context_switch_ns, &costs.ipi_latency_ns];
    let interrupts = [&costs.release_ns, &costs.timer_transfer_ns, &costs.tick_ns];
    let are_free = interrupts.iter().chain(&code).all(|o| o.0.is_zero());
    let is_table = costs.delays_ns.len() == set.tasks.len()
        && costs.delays_ns.iter().all(|row| row.len() == costs.ways.len());
    let is_one = set.read.rule == Rule::OneDelay && costs.delays_ns.is_empty();
    let fits = match set.read.rule {
        Rule::OneDelay if is_one => are_free && costs.ways.is_empty(),
        Rule::OneDelay => {
            are_free && is_table && order == Order::Quanta && costs.delay_ns.0.is_zero()
        }
        Rule::ByPiece => are_free && is_table && costs.delay_ns.0.is_zero(),
        _ => is_table && costs.delay_ns.0.is_zero() && !costs.tick_period_ns.0.is_zero(),
    };
    let mut delays = costs.delays_ns.iter().flatten().chain(is_one.then_some(&costs.delay_ns));
    let are_named = with.cpmd_ns.as_ref().is_none_or(|n| delays.all(|delay| delay.0 == n.0));
    require!(fits && are_named, "the costs are not those of the rule, or of the margin");
    Ok(())
}

/// Compares the WCETs of a place with what they have to be: never less. A place that is said to be
/// refused must not be helped to that: there they are at most two nanoseconds more (rounding), and
/// the largest time of a document stands for all that are longer.
pub fn compare(here: &Here<'_>, costs: &Costs, says: Says) -> Result<(), String> {
    for (k, needed) in inflated(here, costs)?.into_iter().enumerate() {
        let (known, stated) = (needed.clone().min(q(u64::MAX)), &here.tasks[k].wcet);
        let holds = match says {
            Says::Yes => needed <= *stated,
            _ => known <= *stated && *stated <= q(u64::MAX).min(&known + q(2)),
        };
        require!(holds, "`{}` has {stated} ns and needs {}", here.name(k), needed.ceil());
    }
    Ok(())
}

/// The quantum of `pd2`, a millisecond.
pub fn quantum() -> Q {
    q(1_000_000)
}

fn endless() -> Q {
    q(u64::MAX) + q(1)
}

/// A task in a place, or the part of it that is there.
struct Resident {
    wcet: Q,
    /// The delays with which its execution begins there, and goes on after a preemption.
    begins: Q,
    resumes: Q,
    /// Which part of its jobs comes there.
    part: Q,
    /// How early its timers may be transferred there, if they are.
    early: Option<Q>,
    /// How often a job waits for a call from a processor of another place.
    calls: usize,
}

/// By task of a place the least WCET that holds its overheads.
pub fn inflated(here: &Here<'_>, costs: &Costs) -> Result<Vec<Q>, String> {
    let rule = here.set.read.rule;
    let is_served = here.order == Order::Servers;
    if is_served && !here.is_server && rule != Rule::OneDelay {
        return slots::inflated(here, costs);
    }
    let all = residents(here, costs)?;
    if here.order == Order::Quanta {
        return Ok(all.iter().enumerate().map(|(k, r)| in_quanta(here, costs, k, r)).collect());
    } else if rule == Rule::OneDelay {
        // The budgets of slices contain it.
        let of_slice = here.order == Order::Slices;
        let delay = if of_slice { Q::zero() } else { costs.delay_ns.0.clone() };
        return Ok(all.iter().map(|r| &r.wcet + &delay).collect());
    }
    let other = disturbed(here, &all);
    let direct = all.iter().zip(other).map(|(r, other)| &r.wcet + &r.begins + other);
    if rule == Rule::ByPiece {
        return Ok(direct.collect());
    }
    // How often a job pays. A hard guarantee has to bear what the kernel is in the midst of, on
    // several processors also that of the processor which is left.
    let counts = match (here.is_charged_hard(), here.m > 1, is_served) {
        (false, false, _) => [2, 2, 0],
        (false, true, _) => [2, 2, 1],
        (true, false, _) => [3, 3, 0],
        (true, true, true) => [4, 4, 1],
        (true, true, false) => [6, 5, 2],
    };
    let (release, timer) = (&costs.release_ns.0, &costs.timer_transfer_ns.0);
    let (mut once, mut rate) =
        (costs.tick_ns.0.clone(), &costs.tick_ns.0 / &costs.tick_period_ns.0);
    for (r, task) in all.iter().zip(&here.tasks) {
        // Of n jobs in a row n·part + 1 come here, or all.
        let more = q(usize::from(r.part < q(1)));
        let transfer = if r.early.is_some() { timer.clone() } else { Q::zero() };
        let early = &transfer * r.early.as_ref().unwrap_or(&Q::zero()) / &task.period;
        once += (release + &transfer) * (&r.part + more) + early * &r.part;
        rate += (release + &transfer) * &r.part / &task.period;
    }
    let calls = all.iter().map(|r| &costs.ipi_latency_ns.0 * q(r.calls));
    let own = direct.zip(calls).map(|(direct, calls)| direct + calls + costs.sections(counts));
    if is_served {
        // Other releases are charged to the server as a whole.
        return Ok(own.map(|own| own + release).collect());
    }
    let left = q(1) - rate;
    let stretched = |own: Q| if left > Q::zero() { (own + &once) / &left } else { endless() };
    Ok(own.map(stretched).collect())
}

impl Costs {
    /// The time of so many decisions, context switches and calls.
    pub fn sections(&self, [scheduling, switches, calls]: [usize; 3]) -> Q {
        &self.scheduling_ns.0 * q(scheduling)
            + &self.context_switch_ns.0 * q(switches)
            + &self.ipi_latency_ns.0 * q(calls)
    }
}

/// The quanta of a job that loses time in each: the delay; by piece in all but the first; or with a
/// decision, a switch and the ticks, and the releases that come meanwhile, in every quantum one of
/// each task, or all at most p/p′ + 2 times.
fn in_quanta(here: &Here<'_>, costs: &Costs, k: usize, own: &Resident) -> Q {
    let count = |time: Q, lost: Q| match quantum() - lost {
        usable if usable > Q::zero() => (time / usable).ceil() * quantum(),
        _ => endless(),
    };
    let wcet = || own.wcet.clone();
    match here.set.read.rule {
        Rule::OneDelay => {
            let own = costs.delays_ns.get(here.ids[k]).into_iter().flatten();
            let longest = own.chain([&costs.delay_ns]).map(|delay| delay.0.clone()).max();
            return count(wcet(), longest.unwrap_or_default());
        }
        Rule::ByPiece if own.wcet <= quantum() => return quantum(),
        Rule::ByPiece => return quantum() + count(wcet() - quantum(), own.resumes.clone()),
        _ => {}
    }
    let counts = match (here.is_charged_hard(), here.m > 1) {
        (false, _) => [1, 1, 0],
        (true, false) => [2, 1, 0],
        (true, true) => [3, 2, 1],
    };
    let ticks = &costs.tick_ns.0 * (quantum() / &costs.tick_period_ns.0).ceil();
    let each = &own.resumes + costs.sections(counts) + ticks;
    let release = &costs.release_ns.0;
    let times = here.tasks.iter().map(|t| &here.tasks[k].period / &t.period + q(2)).sum::<Q>();
    let apart = count(wcet() + (release * times).ceil(), each.clone());
    apart.min(count(wcet(), each + release * q(here.tasks.len())))
}

/// The longest delay with which a task can resume among these processors.
pub fn delay(here: &Here<'_>, costs: &Costs, task: usize, cpus: &[u32]) -> Result<Q, String> {
    let mut ways = vec!["preemption"];
    for (at, from) in cpus.iter().enumerate() {
        ways.extend(cpus[at + 1..].iter().map(|to| here.set.way(*from, *to)));
    }
    let column = |way: &&str| costs.ways.iter().position(|known| known == way);
    let columns = ways.iter().map(column).collect::<Option<Vec<usize>>>();
    let columns = columns.ok_or("a way to resume there has no cache delay")?;
    let delays = columns.iter().map(|column| costs.delays_ns[task][*column].0.clone());
    Ok(delays.max().unwrap_or_default())
}

/// The tasks of a place. By piece the first loading of a working set is in the WCET.
fn residents(here: &Here<'_>, costs: &Costs) -> Result<Vec<Resident>, String> {
    let rule = here.set.read.rule;
    let of = |k: usize| {
        let (id, given) = (here.ids[k], &here.set.tasks[here.ids[k]]);
        let slice = here.place.slices.get(k).copied();
        let longest = |cpus: &[u32]| match rule {
            Rule::OneDelay => Ok(Q::zero()),
            _ => delay(here, costs, id, cpus),
        };
        let elsewhere = |is_it: &dyn Fn(&Place, usize) -> bool| {
            let at = |p: &Place| p.tasks.iter().position(|t| *t == id);
            let found = here.all.iter().find(|p| at(p).is_some_and(|at| is_it(p, at)));
            let cpus = found.map(|p| [p.processors[0], here.cpus[0]]);
            cpus.ok_or(format!("no place has the other part of `{}`", here.name(k)))
        };
        let count = here.all.iter().filter(|p| p.tasks.contains(&id)).count();
        let stays = longest(&here.cpus)?;
        let budget = here.place.budgets_ns.get(k);
        let whole = Resident {
            wcet: budget.map_or(&given.wcet, |budget| &budget.0).clone(),
            begins: if rule == Rule::ByPiece { Q::zero() } else { stays.clone() },
            resumes: stays.clone(),
            part: q(1),
            early: None,
            calls: 0,
        };
        Ok(match (here.order, slice) {
            (Order::Turns, _) if here.part(k) < q(1) => {
                // The job before may complete as early as it is released.
                let cpus = elsewhere(&|p, _| p.processors != here.cpus)?;
                let begins = if rule == Rule::ByPiece { Q::zero() } else { longest(&cpus)? };
                let early = Some(given.period.clone());
                Resident { begins, part: here.part(k), early, calls: 1, ..whole }
            }
            (Order::Slices, Some(at)) if count > 1 => {
                // A slice comes when the one before is used up, the first when the job before is.
                require!(at < count, "a slice of `{}` is one too many", here.name(k));
                let before = (at + count - 1) % count;
                let migrates = longest(&elsewhere(&|p, own| p.slices[own] == before)?)?;
                let is_first = at == 0;
                let longer = given.period.clone().max(given.deadline.clone());
                let early = Some(if is_first { longer } else { here.tasks[k].deadline.clone() });
                let loaded = is_first && rule == Rule::ByPiece;
                let begins = if loaded { Q::zero() } else { migrates.clone() };
                let resumes = if is_first { stays } else { migrates };
                let calls = usize::from(!is_first);
                Resident { begins, resumes, early, calls, ..whole }
            }
            _ => whole,
        })
    };
    (0..here.ids.len()).map(of).collect()
}

/// By task of a place the longest delay of another task that goes on where one of its jobs
/// completes: of any other, or by piece of those that it can preempt there.
fn disturbed(here: &Here<'_>, all: &[Resident]) -> Vec<Q> {
    let by_piece = here.set.read.rule == Rule::ByPiece;
    let is_wide = here.m > 1 && here.order != Order::Servers;
    // No job waits on several processors where there are no more tasks than these.
    let waits = !by_piece || !is_wide || all.len() > here.m;
    // With jitter a task with a longer deadline may go first.
    let is_ordered = by_piece && !here.set.is_unordered();
    // Under EDF-fm tasks that run elsewhere, too, go first.
    let order = |k: usize| (all[k].part == q(1), &here.tasks[k].deadline);
    let can_preempt = |k: usize, other: usize| match (is_ordered, here.order.is_fixed()) {
        (false, _) => true,
        _ if here.order == Order::Releases => false,
        (true, true) => here.ranks[k] < here.ranks[other],
        (true, false) => is_wide || order(k) < order(other),
    };
    let longest = |k: usize| {
        let others = (0..all.len()).filter(|i| *i != k && waits && can_preempt(k, *i));
        others.map(|other| all[other].resumes.clone()).max().unwrap_or_default()
    };
    (0..all.len()).map(longest).collect()
}
