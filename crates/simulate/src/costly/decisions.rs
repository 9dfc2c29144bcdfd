//! How the engine with overheads takes decisions up: as wishes that processors act on when they
//! reschedule.

use super::core::Core;
use super::path::Path;
use crate::kernel::Op;
use crate::observe::Observer;
use model::{Instant, TaskId};
use policy::{Decisions, NONE};

/// Carries the decisions of one domain out.
pub(super) struct Out<'c, 'a, O, F: Path> {
    pub(super) core: &'c mut Core<'a, O, F>,
    pub(super) domain: u32,
    pub(super) base: u32,
    /// The processor that decides, or [`NONE`].
    pub(super) deciding: u32,
}

impl<O: Observer, F: Path> Decisions for Out<'_, '_, O, F> {
    #[inline]
    fn run(&mut self, place: u32, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        let replaced = std::mem::replace(&mut core.cpus[cpu as usize].wanted, task.0);
        if replaced == task.0 {
            return;
        }
        core.unwant(replaced, cpu);
        core.wanted_at[task.index()] = cpu;
        core.rearrange(cpu, self.deciding);
    }

    #[inline]
    fn idle(&mut self, place: u32) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        let replaced = std::mem::replace(&mut core.cpus[cpu as usize].wanted, NONE);
        if replaced != NONE {
            core.unwant(replaced, cpu);
            core.rearrange(cpu, self.deciding);
        } else {
            // It may be idle for another reason now.
            core.attend.push(cpu);
        }
    }

    #[inline]
    fn wake(&mut self, at: Instant) {
        self.core.timers.set(self.domain as usize, at.nanos());
    }

    fn push(&mut self, task: TaskId, to: u32, at: Instant, part: u32) {
        let core = &mut *self.core;
        let cpu = core.processors.base[to as usize];
        // In time, that processor programs a timer; too late for that, it is called.
        let by_call = at.nanos() <= core.now && core.costs.ipi_latency > 0;
        core.jobs.rows[task.index()].life.push(part);
        core.pushed[task.index()] = (to, by_call);
        if by_call {
            core.arrivals
                .set(task.index(), core.now + core.costs.ipi_latency);
            core.show_call(cpu, task.0, true);
        } else {
            core.arrivals.set(task.index(), at.nanos().max(core.now));
            if at.nanos() > core.now {
                core.interrupt(cpu, Op::Transfer { task: task.0 });
            }
        }
    }

    fn serve(&mut self, place: u32, server: Option<u32>) {
        self.core.show.server(self.base + place, server);
    }
}
