//! How the engine with overheads goes through kernel work: what happens when it begins and ends.
//!
//! The engine is compiled for each path. [`Plain`] makes an event of every end; the quick path has
//! a file of its own.

use super::core::Core;
use crate::course::Processor;
use crate::kernel::{Op, Work};
use crate::observe::Observer;
use model::TaskId;
use policy::Policy;

/// A way through kernel work. All functions are about processor `cpu` of a core at its present
/// instant.
pub(super) trait Path: Sized {
    /// What it keeps of each processor.
    type Local: Clone + Default;

    /// For so many processors. `rests`: whether ticks are shorter than their period, and jobs have
    /// no limits that may depend on when ticks come.
    fn new(rests: bool, processors: usize) -> Self;

    /// When something happens next that has to be looked at.
    fn next<P: Policy, O: Observer>(core: &mut Core<'_, O, Self>) -> u64;

    /// The tick interrupts every processor.
    fn tick<O: Observer>(core: &mut Core<'_, O, Self>);

    /// An interrupt reaches a processor.
    fn interrupt<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, op: Op);

    /// A processor has something to do besides its job: it goes on to that, after the kernel work
    /// that it does.
    fn disturb<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor);

    /// Stops the execution of the loaded job, if it executes, without taking it off.
    fn pause<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor);

    /// How long the switch takes that is done together with this work.
    fn switch_within<O: Observer>(core: &Core<'_, O, Self>, cpu: Processor, op: Op) -> u64;

    /// A job was chosen that is not loaded. Returns whether the processor goes on with kernel work.
    fn switch<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, next: TaskId) -> bool;

    /// Whether an interrupt that has waited is serviced at once, before any decision.
    fn comes_first(op: Op) -> bool;

    /// Services an interrupt that has waited for the decisions of this instant, on a processor that
    /// does nothing. Returns whether that keeps it from going on.
    fn serve<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, op: Op) -> bool;

    /// Chooses a job, or none, on a processor that does nothing. Returns whether that keeps it from
    /// going on.
    fn choose<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, next: TaskId) -> bool;

    /// When a processor is free that goes on with its job now.
    fn free_at<O: Observer>(core: &Core<'_, O, Self>, cpu: Processor) -> u64;

    /// A processor executes its job, or has none: says when the job has to be looked at.
    fn settle<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor);

    /// The simulation ends: gives back what was charged for later to kernel work that is no event.
    /// Returns whether the processor did such work.
    fn give_back<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor) -> bool;
}

/// All kernel work ends with an event.
pub(super) struct Plain;

impl Path for Plain {
    type Local = ();

    fn new(_rests: bool, _processors: usize) -> Self {
        Plain
    }

    #[inline(always)]
    fn next<P: Policy, O: Observer>(core: &mut Core<'_, O, Self>) -> u64 {
        core.next_event::<P>().min(core.next_tick)
    }

    fn tick<O: Observer>(core: &mut Core<'_, O, Self>) {
        for cpu in Processor::all(core.cpus.len()) {
            Self::interrupt(core, cpu, Op::Tick);
        }
    }

    #[inline]
    fn interrupt<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, op: Op) {
        if let Work::Kernel(_) = core.cpus[cpu.index()].work {
            core.cpus[cpu.index()].queue.push_back(op);
        } else {
            core.pause_at(cpu, core.now);
            core.begin(cpu, op);
        }
    }

    #[inline]
    fn disturb<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor) {
        if !matches!(core.cpus[cpu.index()].work, Work::Kernel(_)) {
            core.pause_at(cpu, core.now);
            core.attend.push(cpu);
        }
    }

    #[inline]
    fn pause<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor) {
        core.pause_at(cpu, core.now);
    }

    #[inline(always)]
    fn switch_within<O: Observer>(_core: &Core<'_, O, Self>, _cpu: Processor, _op: Op) -> u64 {
        0
    }

    #[inline]
    fn switch<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, next: TaskId) -> bool {
        core.begin(cpu, Op::Switch { next });
        true
    }

    #[inline(always)]
    fn comes_first(_op: Op) -> bool {
        true
    }

    #[inline]
    fn serve<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, op: Op) -> bool {
        core.begin(cpu, op);
        true
    }

    #[inline]
    fn choose<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor, next: TaskId) -> bool {
        core.begin(cpu, Op::Choose { next });
        true
    }

    #[inline(always)]
    fn free_at<O: Observer>(core: &Core<'_, O, Self>, _cpu: Processor) -> u64 {
        core.now
    }

    #[inline]
    fn settle<O: Observer>(core: &mut Core<'_, O, Self>, cpu: Processor) {
        let here = &core.cpus[cpu.index()];
        if let Work::Job = here.work {
            let end = core.jobs.until(here.loaded, here.since);
            core.ends.set(cpu.index(), end);
        }
    }

    fn give_back<O: Observer>(_core: &mut Core<'_, O, Self>, _cpu: Processor) -> bool {
        false
    }
}
