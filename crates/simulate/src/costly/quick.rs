//! The quick path through kernel work: what nothing depends on is no event.
//!
//! For observers that look at no events. Kernel work that does nothing but take time moves the job
//! back by its length; choosing and switching end with one event, or none. What reaches the
//! processor in the meantime turns that into an event again (`Quick::rest`).
//!
//! Ticks above all: there are several for each job, and they have no consequence. When the job of
//! a processor *at rest* ends is known with all ticks that come until then. Such a processor takes
//! note of its ticks when something else comes (`Quick::catch_up`); the others are
//! restless.
//!
//! `tests/quick.rs` holds this path against the plain one. The benchmark of this crate has both:
//! without this path most of a simulation with overheads would be ticks.

use super::core::Core;
use super::path::Path;
use crate::course::Processor;
use crate::kernel::{Cpu, Op, Work};
use crate::observe::Observer;
use model::TaskId;
use policy::place::Places;
use policy::{Place, Policy};
use trace::Overhead;

/// All processors of all domains count as one domain here, with this first processor.
const FIRST: Processor = Processor(0);

/// What the quick path keeps.
pub(super) struct Quick {
    /// How many ticks there were.
    ticks: u64,
    /// Whether processors can be at rest, so that ticks are no events there.
    rests: bool,
    /// The others: those that the next tick may find at something else than a job that executes,
    /// or nothing. By place from [`FIRST`] on.
    restless: Places,
}

/// What it keeps of a processor, which executes a job or waits for one while it does this work.
#[derive(Clone)]
pub(super) struct Local {
    /// When kernel work that is no event ends. Until then the processor does that, whatever
    /// [`Cpu::work`] says.
    free_at: u64,
    /// What that work is.
    quiet: Op,
    /// How many ticks it has taken note of.
    ticks: u64,
}

impl Default for Local {
    fn default() -> Self {
        Local {
            free_at: 0,
            quiet: Op::Tick,
            ticks: 0,
        }
    }
}

type Fast<'a, O> = Core<'a, O, Quick>;

impl Path for Quick {
    type Local = Local;

    fn new(rests: bool, processors: usize) -> Self {
        Quick {
            ticks: 0,
            rests,
            restless: Places::all(processors),
        }
    }

    #[inline(always)]
    fn next<P: Policy, O: Observer>(core: &mut Fast<'_, O>) -> u64 {
        loop {
            let next = core.next_event::<P>();
            if core.next_tick >= next.min(core.horizon) {
                return next.min(core.next_tick);
            }
            // Nothing else happens at this instant: a tick alone changes no decision.
            core.now = core.next_tick;
            core.next_tick += core.tick_period;
            Self::tick(core);
        }
    }

    /// Those that are at rest take note of it later.
    #[inline(always)]
    fn tick<O: Observer>(core: &mut Fast<'_, O>) {
        core.path.ticks += 1;
        let mut next = core.path.restless.lowest_from(Place(0));
        while let Some(place) = next {
            let cpu = FIRST.of(place);
            core.cpus[cpu.index()].local.ticks = core.path.ticks;
            Self::interrupt(core, cpu, Op::Tick);
            next = core.path.restless.lowest_from(Place(place.0 + 1));
        }
    }

    #[inline]
    fn interrupt<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, op: Op) {
        Self::catch_up(core, cpu);
        let here = &core.cpus[cpu.index()];
        match here.work {
            Work::Kernel(_) => core.cpus[cpu.index()].queue.push_back(op),
            _ if !here.queue.is_empty() => core.cpus[cpu.index()].queue.push_back(op),
            _ if here.local.free_at > core.now => {
                Self::rest(core, cpu);
                core.cpus[cpu.index()].queue.push_back(op);
            }
            _ if op.has_no_consequence() && is_quiet(here, core.now) => {
                Self::work_quietly(core, cpu, op)
            }
            _ => {
                Self::pause(core, cpu);
                core.begin(cpu, op);
            }
        }
    }

    #[inline]
    fn disturb<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) {
        Self::catch_up(core, cpu);
        let here = &core.cpus[cpu.index()];
        if matches!(here.work, Work::Kernel(_)) {
            return;
        }
        if here.local.free_at > core.now {
            Self::rest(core, cpu);
        } else {
            Self::pause(core, cpu);
            core.attend.push(cpu);
        }
    }

    #[inline]
    fn pause<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) {
        Self::catch_up(core, cpu);
        core.path.restless.insert(cpu.place_from(FIRST));
        core.pause_at(cpu, core.now);
    }

    /// Nobody sees where choosing ends and switching begins: both at once.
    #[inline(always)]
    fn switch_within<O: Observer>(core: &Fast<'_, O>, cpu: Processor, op: Op) -> u64 {
        match op {
            Op::Choose { next }
                if next != TaskId::NONE && next != core.cpus[cpu.index()].loaded =>
            {
                core.costs.context_switch
            }
            _ => 0,
        }
    }

    #[inline]
    fn switch<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, next: TaskId) -> bool {
        core.load(cpu, next, core.now);
        false
    }

    #[inline(always)]
    fn comes_first(op: Op) -> bool {
        !op.has_no_consequence()
    }

    #[inline]
    fn serve<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, op: Op) -> bool {
        let here = &core.cpus[cpu.index()];
        if here.reschedule || !here.queue.is_empty() || !op.has_no_consequence() {
            core.begin(cpu, op);
            return true;
        }
        // The job goes on behind it.
        Self::charge_quietly(core, cpu, op);
        false
    }

    #[inline(always)]
    fn choose<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, next: TaskId) -> bool {
        if Self::choose_quietly(core, cpu, next) {
            return false;
        }
        core.begin(cpu, Op::Choose { next });
        true
    }

    #[inline(always)]
    fn free_at<O: Observer>(core: &Fast<'_, O>, cpu: Processor) -> u64 {
        core.now.max(core.cpus[cpu.index()].local.free_at)
    }

    /// A processor is at rest if the next tick finds it so. Ticks need no event then.
    #[inline(always)]
    fn settle<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) {
        let here = &core.cpus[cpu.index()];
        let rests = core.path.rests;
        if rests && here.local.free_at <= core.next_tick {
            core.path.restless.remove(cpu.place_from(FIRST));
        } else {
            core.path.restless.insert(cpu.place_from(FIRST));
        }
        if matches!(here.work, Work::Job) {
            let mut end = core.jobs.until(here.loaded, here.since);
            // A job without budget that is back exactly at the end of a quantum: what interrupts
            // its processor at that instant comes before it is cut short, as it does where the end
            // of kernel work is an event.
            if end == here.since && here.local.free_at > core.now {
                Self::rest(core, cpu);
                return;
            }
            // A tick at the end comes after it.
            if rests && end > core.next_tick {
                let behind = end - core.next_tick.max(here.since);
                end += core.costs.tick * behind.div_ceil(core.tick_period - core.costs.tick);
            }
            core.ends.set(cpu.index(), end);
        }
    }

    /// What such work delays has not begun again.
    fn give_back<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) -> bool {
        Self::catch_up(core, cpu);
        let here = &core.cpus[cpu.index()];
        let (quiet, left) = (
            here.local.quiet,
            here.local.free_at.saturating_sub(core.now),
        );
        if left == 0 {
            return false;
        }
        let slot = core.account(cpu, quiet);
        let of_switch = match quiet {
            Op::Switch { .. } => left.min(core.costs.context_switch),
            _ => 0,
        };
        let (kind, _) = match quiet {
            // With the choice before it.
            Op::Switch { next } => core.cost(Op::Choose { next }),
            other => core.cost(other),
        };
        core.lost[slot][Overhead::ContextSwitch as usize] -= of_switch;
        core.lost[slot][kind as usize] -= left - of_switch;
        true
    }
}

/// Whether kernel work on whose end nothing depends may be done without an event: only where
/// nothing is under way or due. A job executes, or there is none.
#[inline(always)]
fn is_quiet(here: &Cpu<Local>, now: u64) -> bool {
    let executes = matches!(here.work, Work::Job);
    let idles = matches!(here.work, Work::Idle) & (here.loaded == TaskId::NONE) & !here.reschedule;
    (executes | idles) & (here.local.free_at <= now)
}

impl Quick {
    /// A processor at rest has been interrupted by ticks of which it took no note: its job has
    /// executed so much less.
    #[inline(always)]
    fn catch_up<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) {
        let here = &mut core.cpus[cpu.index()];
        let missed = core.path.ticks - here.local.ticks;
        if missed == 0 {
            return;
        }
        let time = missed * core.costs.tick;
        here.since += time;
        here.local = Local {
            free_at: core.next_tick - core.tick_period + core.costs.tick,
            quiet: Op::Tick,
            ticks: core.path.ticks,
        };
        let slot = (here.loaded.index()).min(core.lost.len() - 1);
        core.lost[slot][Overhead::Tick as usize] += time;
    }

    /// Does kernel work on whose end nothing depends: the job, if one executes, goes on so much
    /// later.
    #[inline]
    fn work_quietly<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, op: Op) {
        Self::charge_quietly(core, cpu, op);
        let now = core.now;
        let here = &mut core.cpus[cpu.index()];
        if matches!(here.work, Work::Job) {
            let executed = now - here.since;
            here.since = here.local.free_at;
            core.jobs.execute(here.loaded, executed);
        }
        Self::settle(core, cpu);
    }

    /// Kernel work begins on whose end nothing depends.
    #[inline]
    fn charge_quietly<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, op: Op) {
        let (kind, time) = core.cost(op);
        let slot = core.account(cpu, op);
        core.lost[slot][kind as usize] += time;
        let local = &mut core.cpus[cpu.index()].local;
        local.free_at = core.now + time;
        local.quiet = op;
    }

    /// Makes an event of the end of the kernel work that a processor does without one.
    #[cold]
    fn rest<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor) {
        let free_at = core.cpus[cpu.index()].local.free_at;
        core.path.restless.insert(cpu.place_from(FIRST));
        core.pause_at(cpu, free_at);
        core.cpus[cpu.index()].work = Work::Kernel(Op::Rest);
        core.ends.set(cpu.index(), free_at);
    }

    /// Chooses, and switches if need be, without an event at the end, where nothing depends on when
    /// that is: nobody waits for the job that was loaded; the task that is switched to releases no
    /// job in the meantime, which would go where this one runs; and its job is not cut short as
    /// soon as it is chosen, which comes after all choices of that instant. Returns whether that is
    /// so.
    #[inline(always)]
    fn choose_quietly<O: Observer>(core: &mut Fast<'_, O>, cpu: Processor, next: TaskId) -> bool {
        let here = &core.cpus[cpu.index()];
        let mut end = core.now + core.costs.scheduling;
        let slot = (next.index()).min(core.lost.len() - 1);
        let switches = next != here.loaded;
        if switches {
            end += core.costs.context_switch;
        }
        if core.jobs.limits.any() && next != TaskId::NONE && core.jobs.until(next, end) == end {
            return false;
        }
        if switches {
            let overtaken = core.jobs.rows[slot].next_release <= end;
            if here.loaded != TaskId::NONE
                || overtaken
                || core.scenario.stop_at_miss
                || end > core.horizon
            {
                return false;
            }
            core.lost[slot][Overhead::ContextSwitch as usize] += core.costs.context_switch;
            core.load(cpu, next, end);
        }
        core.lost[slot][Overhead::Scheduling as usize] += core.costs.scheduling;
        let (now, scheduling) = (core.now, core.costs.scheduling);
        let local = &mut core.cpus[cpu.index()].local;
        local.free_at = end;
        local.quiet = match end - now > scheduling {
            true => Op::Switch { next },
            false => Op::Choose { next },
        };
        true
    }
}
