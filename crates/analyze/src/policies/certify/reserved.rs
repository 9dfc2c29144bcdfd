//! Evidence for reservations: servers that take turns in slots, and whole quanta.
//!
//! Sources: as [`crate::semi::nps_f`] and [`crate::pd2`].

use super::format::{Number, Place, Proof, Turn};
use super::{Certifier, Here, big};
use crate::{assign, overheads};
use model::assignment::{Quanta, Slots};
use model::{Assignment, CpuSet, Duration, Timing};

impl Certifier<'_> {
    /// Each cluster with its servers, and why they hold their tasks.
    pub(super) fn served(&self, slots: &Slots) -> Vec<Place> {
        let charged = overheads::account(
            &self.case.tasks,
            &Assignment::Slots(slots.clone()),
            &self.question.system(self.case),
        );
        let tasks = charged.inflated;
        let place = |cluster: &CpuSet| {
            let tables = slots.timetables.iter().filter(|t| cluster.contains(t.cpu));
            let turns = tables.flat_map(|table| {
                table.turns.iter().map(|turn| Turn {
                    cpu: table.cpu.0,
                    server: turn.server,
                    from_ns: turn.start.into(),
                    until_ns: turn.end.into(),
                })
            });
            let turns: Vec<Turn> = turns.collect();
            let is_here = |task: &usize| turns.iter().any(|t| t.server == slots.server_of[*task]);
            let inside: Vec<usize> = (0..tasks.len()).filter(is_here).collect();
            let with_timing = inside.iter().map(|task| (*task, tasks[*task]));
            let here = self.here(with_timing.collect(), cluster.clone());
            let mut servers: Vec<(usize, u32)> = inside
                .iter()
                .map(|task| (self.original(*task), slots.server_of[*task]))
                .collect();
            servers.sort_unstable();
            let proof = Proof::NpsF {
                slot_ns: slots.slot.into(),
                servers: servers.into_iter().map(|(_, server)| server).collect(),
                turns,
            };
            Place {
                proof: Some(proof),
                ..here.place()
            }
        };
        let places = self.question.site.clusters.iter().map(place);
        places.filter(|place| !place.tasks.is_empty()).collect()
    }

    /// The tasks with what is reserved for them.
    pub(super) fn with_quanta(&self, quanta: &Quanta) -> Here {
        let reserve = |(t, reserved): (&Timing, &Duration)| Timing {
            wcet: *reserved,
            ..*t
        };
        let reserved = self.case.tasks.iter().zip(&quanta.reserved).map(reserve);
        self.here(reserved.enumerate().collect(), quanta.cpus.clone())
    }

    /// All tasks in the quanta that are reserved, and why these fit.
    pub(super) fn in_quanta(&self, quanta: &Quanta) -> Place {
        let here = self.with_quanta(quanta);
        let length = quanta.quantum.nanos().max(1);
        let count = |t: &Timing| Number::from(t.wcet.nanos() / length);
        let proof = Proof::Pd2 {
            quanta: here.tasks.iter().map(count).collect(),
            total: big(here.utilization()),
        };
        Place {
            proof: Some(proof),
            ..here.place()
        }
    }

    /// All tasks in the quanta that they need, which are too many.
    pub(super) fn without_quanta(&self, quantum: Duration) -> Place {
        let cpus = self.question.platform.usable();
        let system = self.question.system(self.case);
        let (quanta, _) = assign::in_quanta(&self.case.tasks, &cpus, quantum, &system);
        let here = self.with_quanta(&quanta);
        let refusals = self.overload(&here).into_iter().collect();
        Place {
            refusals,
            ..here.place()
        }
    }
}
