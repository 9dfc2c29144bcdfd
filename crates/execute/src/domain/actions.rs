//! What a policy has decided, before any of it is carried out.
//!
//! Deciding and carrying out are apart, so that it is known what each of them takes (002 §2.4: scheduling and context
//! switch), and so that decisions can be carried out in the best order.

use model::{Instant, TaskId};
use policy::Decisions;

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Run {
        place: u32,
        task: u32,
    },
    Idle {
        place: u32,
    },
    Push {
        task: u32,
        to: u32,
        at: Instant,
        part: u32,
    },
    Serve {
        place: u32,
        server: Option<u32>,
    },
}

/// The decisions of one moment, in their order.
#[derive(Debug)]
pub(super) struct Actions {
    pub list: Vec<Action>,
    /// When the policy wants to be woken.
    pub wake: Option<Instant>,
}

impl Actions {
    /// With room for what a policy decides at once for so many places and tasks.
    pub fn new(places: usize, tasks: usize) -> Self {
        Actions {
            list: Vec::with_capacity(6 * places + tasks),
            wake: None,
        }
    }

    /// Is the task, which is at this place, to run at another one?
    pub fn moves(&self, task: u32, place: u32) -> bool {
        let comes =
            |a: &Action| matches!(a, Action::Run { place: to, task: who } if *who == task && *to != place);
        self.list.iter().any(comes)
    }
}

impl Decisions for Actions {
    fn run(&mut self, place: u32, task: TaskId) {
        self.list.push(Action::Run { place, task: task.0 });
    }
    fn idle(&mut self, place: u32) {
        self.list.push(Action::Idle { place });
    }
    fn wake(&mut self, at: Instant) {
        self.wake = Some(at);
    }
    fn push(&mut self, task: TaskId, to: u32, at: Instant, part: u32) {
        self.list.push(Action::Push {
            task: task.0,
            to,
            at,
            part,
        });
    }
    fn serve(&mut self, place: u32, server: Option<u32>) {
        self.list.push(Action::Serve { place, server });
    }
}
