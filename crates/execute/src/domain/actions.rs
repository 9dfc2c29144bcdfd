//! What a policy has decided, before any of it is carried out.
//!
//! Deciding and carrying out are apart, so that it is known what each of them takes (002 §2.4:
//! scheduling and context switch), and so that decisions can be carried out in the best order.

use model::{Instant, TaskId};
use policy::{Decisions, DomainId, Place, ServerId};

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Run {
        place: Place,
        task: TaskId,
    },
    Idle {
        place: Place,
    },
    Push {
        task: TaskId,
        to: DomainId,
        at: Instant,
        part: u32,
    },
    Serve {
        place: Place,
        server: Option<ServerId>,
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
    pub fn moves(&self, task: TaskId, place: Place) -> bool {
        let comes = |a: &Action| match a {
            Action::Run {
                place: to,
                task: who,
            } => *who == task && *to != place,
            _ => false,
        };
        self.list.iter().any(comes)
    }
}

impl Decisions for Actions {
    fn run(&mut self, place: Place, task: TaskId) {
        self.list.push(Action::Run { place, task });
    }
    fn idle(&mut self, place: Place) {
        self.list.push(Action::Idle { place });
    }
    fn wake(&mut self, at: Instant) {
        self.wake = Some(at);
    }
    fn push(&mut self, task: TaskId, to: DomainId, at: Instant, part: u32) {
        self.list.push(Action::Push { task, to, at, part });
    }
    fn serve(&mut self, place: Place, server: Option<ServerId>) {
        self.list.push(Action::Serve { place, server });
    }
}
