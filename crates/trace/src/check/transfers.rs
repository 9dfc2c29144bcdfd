//! Timers that a processor programs for a job that comes to it later (002 §5.1.2).
//!
//! - EDF-WM: when a slice is used up before the window of the next one opens, the processor of that
//!   one programs a timer.
//! - EDF-fm: when a job has ended whose successor is to come to the other processor, that one
//!   programs a timer for its release.

use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::state::{Fault, State};
use model::assignment::{Slice, Turn};
use model::{Assignment, CpuId, Duration, TaskId};

/// Who has to program a timer for whom.
pub struct Transfers {
    splits: Splits,
    /// By processor, the tasks for which it has to, as it came to that.
    owed: Vec<Vec<TaskId>>,
}

/// How the policy splits tasks.
enum Splits {
    /// In no way that needs timers.
    Not,
    /// The slices of each task, and in which one its first pending job is.
    Slices(Vec<Vec<Slice>>, Vec<usize>),
    /// The turns of each task, and where it is between two jobs.
    Turns(Vec<Turn>, Vec<Between>),
}

/// A task whose job has ended before the next one is released.
#[derive(Clone, Copy, Default)]
struct Between {
    /// Where it ended.
    from: Option<CpuId>,
    /// Which processor has programmed a timer since.
    told: Option<CpuId>,
}

impl Transfers {
    /// With the assignment in the head of a trace.
    pub fn new(header: &Header, processors: usize) -> Self {
        let assignment = match &header.stages[..] {
            [stage] => stage.assignment.as_ref(),
            // What is handed over where policies take turns is nobody's rule.
            _ => None,
        };
        let tasks = header.tasks.len();
        let splits = match assignment {
            Some(Assignment::Slices(slices)) if slices.tasks.len() == tasks => {
                Splits::Slices(slices.tasks.clone(), vec![0; tasks])
            }
            Some(Assignment::Turns(turns)) if turns.tasks.len() == tasks => {
                Splits::Turns(turns.tasks.clone(), vec![Between::default(); tasks])
            }
            _ => Splits::Not,
        };
        Transfers {
            splits,
            owed: vec![Vec::new(); processors],
        }
    }

    /// An event of a job on a processor is about to change the state.
    pub fn event(&mut self, event: &Event, cpu: CpuId, state: &State, faults: &mut Vec<Fault>) {
        let task = event.task.index();
        match (&mut self.splits, event.kind) {
            (Splits::Slices(_, part), EventKind::Completion) => part[task] = 0,
            (Splits::Slices(slices, part), EventKind::BudgetExhausted) => {
                let (slices, part) = (&slices[task], &mut part[task]);
                let Some(next) = slices.get(*part + 1) else {
                    return;
                };
                *part += 1;
                let windows = slices[..*part].iter().map(|s| s.window);
                let opens = windows.fold(Duration::ZERO, Duration::saturating_add);
                let job = state.tasks[task].head();
                let opens = job.and_then(|job| job.release.checked_add(opens));
                if opens.is_some_and(|opens| opens > event.time) {
                    self.owed[next.cpu.index()].push(event.task);
                }
            }
            (Splits::Turns(turns, between), EventKind::Completion)
                if turns[task].is_migratory() =>
            {
                // One that is late is followed at once, wherever it is.
                let last = state.tasks[task].pending.len() == 1;
                between[task] = Between {
                    from: last.then_some(cpu),
                    told: None,
                };
            }
            (Splits::Turns(_, between), EventKind::Release) => {
                let Between { from, told } = std::mem::take(&mut between[task]);
                let due = from.is_some_and(|from| from != cpu).then_some(cpu);
                match (due, told) {
                    (Some(due), None) => self.owed[due.index()].push(event.task),
                    (due, Some(told)) if due != Some(told) => {
                        faults.push(in_vain(told, event.task))
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// A processor begins to program a timer for a task.
    pub fn begin(&mut self, task: TaskId, cpu: CpuId, faults: &mut Vec<Fault>) {
        let owed = &mut self.owed[cpu.index()];
        if let Some(at) = owed.iter().position(|t| *t == task) {
            owed.remove(at);
            return;
        }
        match &mut self.splits {
            Splits::Turns(_, between) => {
                let between = &mut between[task.index()];
                match (between.from, between.told) {
                    (Some(from), None) if from != cpu => between.told = Some(cpu),
                    _ => faults.push(in_vain(cpu, task)),
                }
            }
            Splits::Slices(..) => faults.push(in_vain(cpu, task)),
            Splits::Not => {}
        }
    }

    /// A processor executes, reloads or idles: for whom it has programmed no timer, said once.
    pub fn missing(&mut self, cpu: CpuId) -> Option<TaskId> {
        let owed = &mut self.owed[cpu.index()];
        let first = owed.first().copied();
        owed.clear();
        first
    }
}

fn in_vain(cpu: CpuId, task: TaskId) -> Fault {
    Fault {
        rule: "overhead",
        text: format!(
            "{cpu:?} programs a timer for task {}, whose next job or slice does not come to it",
            task.0 + 1
        ),
    }
}
