//! What the engine with overheads tells observers of events.

use super::Core;
use crate::kernel::Op;
use crate::observe::{self, Observer};
use model::{Instant, TaskId};
use policy::{Domain, NONE, Policy};
use trace::{Event as Record, Overhead};

impl<O: Observer> Core<'_, O> {
    pub(super) fn show_overhead(&mut self, cpu: u32, kind: Overhead, op: Op, begins: bool) {
        if self.cost(op).1 == 0 {
            return;
        }
        let job = self.served(cpu, op);
        let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
        self.observer.event(match begins {
            true => Record::overhead_begin(now, id, kind, job),
            false => Record::overhead_end(now, id, kind, job),
        });
    }

    /// An inter-processor interrupt is sent or arrives, on behalf of a task if one is known then.
    pub(super) fn show_call(&mut self, cpu: u32, task: u32, begins: bool) {
        let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
        let job = (task != NONE).then(|| (TaskId(task), self.jobs.rows[task as usize].number));
        self.observer.event(match begins {
            true => Record::overhead_begin(now, id, Overhead::IpiLatency, job),
            false => Record::overhead_end(now, id, Overhead::IpiLatency, job),
        });
    }

    /// Tells that a processor has no job, if that is news.
    pub(super) fn show_idle<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        let domain = self.processors.domain_of[cpu as usize];
        let place = cpu - self.processors.base[domain as usize];
        let deliberate = domains[domain as usize].policy.is_deliberately_idle(place);
        let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
        let shown = &mut self.cpus[cpu as usize].shown_idle;
        observe::show_idle(&mut self.observer, shown, now, id, deliberate);
    }
}
