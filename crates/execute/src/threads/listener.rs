//! The listener: the thread that hears what releases the jobs of sporadic tasks
//! ([`crate::trigger::ear`]), and tells the dispatcher whose duty that is. It runs above all jobs
//! and below the dispatchers, for some microseconds each time.

use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use crate::trigger::Triggers;
use crate::trigger::ear::{self, Bell, Hears};
use model::{Duration, Error, Result, TaskId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// The listener of a run.
pub(crate) struct Listener {
    bell: Bell,
    pub thread: JoinHandle<()>,
}

impl Listener {
    /// Starts it, where there is something to listen to. `periods`: by task.
    ///
    /// # Errors
    /// No thread or no descriptor can be had.
    pub fn start(
        team: &Arc<ThreadTeam>,
        triggers: &Triggers,
        periods: Vec<Duration>,
    ) -> Result<Option<Self>> {
        if triggers.is_empty() {
            return Ok(None);
        }
        let bell = Bell::new().map_err(|e| cannot(&e))?;
        let (team, triggers) = (Arc::clone(team), triggers.clone());
        let end = bell.try_clone().map_err(|e| cannot(&e))?;
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .stack_size(256 << 10)
            .spawn(move || listen(&team, &triggers, &periods, &end))
            .map_err(|e| cannot(&e).remedy(MORE_THREADS))?;
        Ok(Some(Listener { bell, thread }))
    }

    /// Lets it end.
    pub fn stop(&self) {
        self.bell.ring();
    }
}

fn cannot(e: &io::Error) -> Error {
    Error::new(format!("cannot listen for triggers: {e}"))
}

fn listen(team: &ThreadTeam, triggers: &Triggers, periods: &[Duration], bell: &Bell) {
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.raise(kernel::LISTENER) {
        team.fail(cannot(&e).remedy("run as root"));
        return;
    }
    kernel::without_timer_slack();
    team.host.listens.store(true, Ordering::Release);
    triggers.listen(periods, bell, team);
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

impl Hears for ThreadTeam {
    fn asks(&self, task: TaskId, count: u64) {
        self.trigger(task, count);
    }

    fn ended(&self, task: TaskId) {
        self.trigger_ended(task);
    }

    fn fails(&self, task: TaskId, error: &io::Error) {
        self.fail(ear::unreadable(self.name(task), error));
    }

    fn is_over(&self) -> bool {
        self.host.stop.load(Ordering::Acquire)
    }
}
