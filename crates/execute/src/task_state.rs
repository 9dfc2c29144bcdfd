//! What the engine knows of a task: its parameters, and how far its jobs have come. Pure data.

use job::{Handed, Life, State};
use model::{CpuId, Duration, Timing};
use policy::Place;

/// The parameters of a task, which never change within a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Is it a program that knows nothing of jobs, so that its WCET is its budget?
    pub budgeted: bool,
    /// Is it stopped when its budget is used up? A program may go on as best-effort work instead.
    pub stops_beyond_budget: bool,
    /// Are its jobs released by something other than the time?
    pub triggered: bool,
    pub phase: Duration,
    pub period: Duration,
    pub deadline: Duration,
    pub wcet: Duration,
}

impl Parameters {
    /// Of a task that is a thread of this process, released by time.
    pub fn new(timing: &Timing, phase: Duration) -> Self {
        Parameters {
            budgeted: false,
            stops_beyond_budget: true,
            triggered: false,
            phase,
            period: timing.period,
            deadline: timing.deadline,
            wcet: timing.wcet,
        }
    }
}

/// How far the jobs of a task have come. One domain owns it at a time; it moves with the task.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    /// The task and its current job.
    pub life: Life<CpuId>,
    /// The processor time of the task up to which the life is told what it has executed. That is
    /// kept only where there are slices or budgets.
    pub accounted: u64,
    /// Where it runs.
    pub place: Option<Place>,
    /// Was the current job put on a processor in the step that released it?
    pub prompt: bool,
    /// The processor on which it last ran when this domain gave it away.
    left: Option<CpuId>,
}

impl TaskState {
    /// Of a task none of whose jobs was released.
    pub fn new(owned: bool) -> Self {
        TaskState {
            life: if owned { Life::new() } else { Life::away() },
            accounted: 0,
            place: None,
            prompt: false,
            left: None,
        }
    }

    /// Does this domain own the task?
    pub fn is_owned(&self) -> bool {
        self.life.state() != State::Away
    }

    /// The processor on which it last ran, as far as this domain knows; for traces.
    pub fn last(&self) -> Option<CpuId> {
        match self.is_owned() {
            true => self.life.last(),
            false => self.left,
        }
    }

    /// Gives the task, which runs nowhere, to another domain.
    pub fn hand_over(&mut self) -> Moving {
        self.left = self.life.last();
        Moving {
            handed: self.life.hand_over(),
            accounted: self.accounted,
            prompt: self.prompt,
        }
    }

    /// Takes the task over from another domain of the same stage.
    pub fn receive(&mut self, moving: Moving) {
        self.life.receive(moving.handed);
        self.accounted = moving.accounted;
        self.prompt = moving.prompt;
        self.place = None;
    }

    /// Takes the task over from another stage.
    pub fn receive_anew(&mut self, moving: Moving) {
        self.life.receive_anew(moving.handed);
        self.accounted = moving.accounted;
        self.prompt = false;
        self.place = None;
    }
}

/// A task on its way to another domain.
#[derive(Debug)]
pub(crate) struct Moving {
    pub handed: Handed<CpuId>,
    accounted: u64,
    prompt: bool,
}
