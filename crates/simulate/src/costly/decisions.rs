//! How the engine with overheads takes decisions up: as wishes that processors act on when they
//! reschedule.

use super::core::Core;
use super::path::Path;
use crate::course::Processor;
use crate::kernel::Op;
use crate::observe::Observer;
use model::{Instant, TaskId};
use policy::{Decisions, DomainId, Place, ServerId};

/// Carries the decisions of one domain out.
pub(super) struct Out<'c, 'a, O, F: Path> {
    pub(super) core: &'c mut Core<'a, O, F>,
    pub(super) domain: DomainId,
    pub(super) base: Processor,
    /// The processor that decides, or [`Processor::NONE`].
    pub(super) deciding: Processor,
}

impl<O: Observer, F: Path> Decisions for Out<'_, '_, O, F> {
    #[inline]
    fn run(&mut self, place: Place, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base.of(place);
        let replaced = std::mem::replace(&mut core.cpus[cpu.index()].wanted, task);
        if replaced == task {
            return;
        }
        core.unwant(replaced, cpu);
        core.wanted_at[task.index()] = cpu;
        core.rearrange(cpu, self.deciding);
    }

    #[inline]
    fn idle(&mut self, place: Place) {
        let core = &mut *self.core;
        let cpu = self.base.of(place);
        let replaced = std::mem::replace(&mut core.cpus[cpu.index()].wanted, TaskId::NONE);
        if replaced != TaskId::NONE {
            core.unwant(replaced, cpu);
            core.rearrange(cpu, self.deciding);
        } else {
            // It may be idle for another reason now.
            core.attend.push(cpu);
        }
    }

    #[inline]
    fn wake(&mut self, at: Instant) {
        self.core.timers.set(self.domain.index(), at.nanos());
    }

    fn push(&mut self, task: TaskId, to: DomainId, at: Instant, part: u32) {
        let core = &mut *self.core;
        let cpu = core.processors.base[to.index()];
        // In time, that processor programs a timer; too late for that, it is called.
        let by_call = at.nanos() <= core.now && core.costs.ipi_latency > 0;
        core.jobs.rows[task.index()].life.push(part);
        core.pushed[task.index()] = (to, by_call);
        if by_call {
            core.arrivals
                .set(task.index(), core.now + core.costs.ipi_latency);
            core.show_call(cpu, task, true);
        } else {
            core.arrivals.set(task.index(), at.nanos().max(core.now));
            if at.nanos() > core.now {
                core.interrupt(cpu, Op::Transfer { task });
            }
        }
    }

    fn serve(&mut self, place: Place, server: Option<ServerId>) {
        self.core.show.server(self.base.of(place), server);
    }
}
