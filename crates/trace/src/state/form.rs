//! What can be said of an event without the schedule.

use super::{Fault, State, fault};
use crate::event::{Event, EventKind, Flags};

impl State {
    /// Everything that can be said of an event without the schedule: processor, task, flags, fields
    /// that mean nothing.
    pub(crate) fn check_form(&self, event: &Event) -> Result<(), Fault> {
        let bad = |text: String| Err(fault("well-formed", text));
        if event.time < self.now {
            return bad(format!("time goes back from {}", self.now));
        }
        if self.ended {
            return bad("an event after the end".to_owned());
        }
        let kind = event.kind;
        match event.cpu() {
            Some(cpu) if !self.processors.get(cpu.index()).is_some_and(|p| p.usable) => {
                return bad(format!("the platform has no usable processor {cpu:?}"));
            }
            None if !matches!(
                kind,
                EventKind::End
                    | EventKind::PolicySwitch
                    | EventKind::DeadlineMiss
                    | EventKind::Lost
            ) =>
            {
                return bad("it names no processor".to_owned());
            }
            Some(_) if matches!(kind, EventKind::End | EventKind::PolicySwitch) => {
                return bad("it names a processor".to_owned());
            }
            _ => {}
        }
        let is_overhead = matches!(kind, EventKind::OverheadBegin | EventKind::OverheadEnd);
        let names_job = event.task != Event::NO_TASK;
        if names_job && event.task.index() >= self.tasks.len() {
            return bad(format!(
                "the set has no task {}",
                u64::from(event.task.0) + 1
            ));
        }
        if names_job != kind.has_job() && !is_overhead {
            let text = if names_job {
                "it names a job"
            } else {
                "it names no job"
            };
            return bad(text.to_owned());
        }
        if !names_job && event.job != 0 {
            return bad("it has a job number without a task".to_owned());
        }
        let argument_fits = match kind {
            EventKind::Start
            | EventKind::Preemption
            | EventKind::Resumption
            | EventKind::Idle
            | EventKind::Suspension
            | EventKind::WakeUp
            | EventKind::Quantum
            | EventKind::End => event.argument == 0,
            EventKind::OverheadBegin | EventKind::OverheadEnd => event.overhead_kind().is_some(),
            EventKind::PolicySwitch => event.argument < self.stages,
            EventKind::ServerBegin | EventKind::ServerEnd => event.argument < u64::from(u32::MAX),
            EventKind::Lost => event.argument > 0,
            EventKind::Standstill => event.argument > 0 && event.argument <= event.time.nanos(),
            _ => true,
        };
        if !argument_fits {
            return bad(format!("its argument {} means nothing", event.argument));
        }
        let allowed = match kind {
            EventKind::Completion => Flags::CUT,
            EventKind::Idle => Flags::DELIBERATE,
            _ => Flags::NONE,
        };
        if !allowed.has(event.flags) {
            return bad(format!("its flags {:#x} mean nothing", event.flags.0));
        }
        Ok(())
    }
}
